"""Exported records told to a provider, in order, each once; or, in a dry run, what would become of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import msgspec

from offbook.client.clients import Client
from offbook.client.history.conversations import Problem
from offbook.model.errors import ProviderRefused
from offbook.model.record import FOLLOWS_REFUSED, Imported, Record, name_of
from offbook.transfer.held_memory import Held
from offbook.transfer.import_preview import ImportPreview
from offbook.transfer.provider_export import records
from offbook.transfer.record_files import Batch, Source, batches, read_records

TRIES = 6
FIRST_PAUSE_SECONDS = 0.25
TOO_LARGE = 413
NAMED_AT_MOST = 1_000
"""Refused records that are told one by one; all are counted."""

Advance = Callable[[int], None]


class AgentRecords(msgspec.Struct, kw_only=True, rename="camel"):
    """What an export has of one agent, and what became of it."""

    agent_id: str
    exported_as: str
    counts: dict[str, int] = {}
    """Records of each type."""
    records: int = 0
    taken: int = 0
    """In a dry run: what would be."""
    already_there: int = 0
    refused: int = 0


class RecordsReport(msgspec.Struct, kw_only=True, rename="camel"):
    path: str
    is_dry_run: bool = msgspec.field(name="dryRun")
    agents: list[AgentRecords] = []
    problems: list[Problem] = []
    """What was refused, and why; what only follows one that was refused is counted."""
    seconds: float = 0.0

    @property
    def refused(self) -> int:
        return sum(agent.refused for agent in self.agents)

    def problem(self, where: str, reason: str) -> None:
        if len(self.problems) < NAMED_AT_MOST and reason != FOLLOWS_REFUSED:
            self.problems.append(Problem(where=where, reason=reason))


def examined(source: Source, agent: AgentRecords, advance: Advance) -> None:
    """Everything is read once, so that nothing is stored of an export that is not whole."""
    counts: Counter[str] = Counter()
    for batch in batches(read_records(source)):
        counts.update(type_of(record) for record in batch.records)
        advance(batch.size_bytes)
    agent.counts = dict(counts)
    agent.records = counts.total()


def type_of(record: Record) -> str:
    return str(type(record).__struct_config__.tag)


class RecordImport:
    def __init__(self, client: Client, report: RecordsReport, advance: Advance) -> None:
        self._client = client
        self._report = report
        self._advance = advance

    def take(self, source: Source, agent: AgentRecords) -> None:
        for batch in batches(read_records(source)):
            self._send(batch, agent)
            self._advance(batch.size_bytes)
        self._patiently(lambda: self._client.import_records([], done=True, agent_id=agent.agent_id))

    def _send(self, batch: Batch, agent: AgentRecords) -> None:
        try:
            imported: Imported = self._patiently(
                lambda: self._client.import_records(batch.records, follows=batch.follows, agent_id=agent.agent_id)
            )
        except ProviderRefused as error:
            if error.document.get("status") != TOO_LARGE:
                raise
            self._send_smaller(batch, agent, str(error.document.get("detail", "")))
            return
        agent.taken += imported.taken
        agent.already_there += imported.already_there
        agent.refused += len(imported.refused)
        for refused in imported.refused:
            self._report.problem(f"{agent.agent_id}: {refused.record}", refused.reason)

    def _send_smaller(self, batch: Batch, agent: AgentRecords, detail: str) -> None:
        """A provider may take less at once than we thought."""
        if len(batch.records) == 1:
            agent.refused += 1
            self._report.problem(f"{agent.agent_id}: {name_of(batch.records[0])}", detail)
            return
        half = len(batch.records) // 2
        pieces = batches(iter(batch.records), most_records=half)
        for number, piece in enumerate(pieces):
            self._send(piece if number else piece._replace(follows=batch.follows), agent)

    def foresee(self, source: Source, agent: AgentRecords, *, is_known: bool) -> None:
        """What `take` would count and name, in the same requests. An agent that the provider does not know is not asked
        about: asking would make it known."""
        foreseeing = ImportPreview(Held(records(self._client, agent.agent_id) if is_known else ()))
        for batch in batches(read_records(source)):
            for record, admission in zip(batch.records, foreseeing.batch(batch), strict=True):
                agent.taken += admission.is_taken
                agent.refused += admission.refused is not None
                agent.already_there += not admission.is_taken and admission.refused is None
                if admission.refused is not None:
                    self._report.problem(f"{agent.agent_id}: {name_of(record)}", admission.refused)
            self._advance(batch.size_bytes)

    def _patiently(self, ask: Callable[[], Imported]) -> Imported:
        """A provider that is overloaded says so and is asked again."""
        for attempt in range(TRIES):
            try:
                return ask()
            except ProviderRefused as error:
                if not error.document.get("retryable") or attempt == TRIES - 1:
                    raise
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("the last try returns or raises")
