"""Every kind of fault against every verb: what the user sees.

A fault of ours is never answered as if it were the client's (4xx), and never without a problem document; a mistake of
the client's always is a 4xx.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.acceptance.daemon import Daemon, Reply, bearer, running

from benchmarks.prove import damage
from benchmarks.prove.campaign import Tried
from benchmarks.prove.planted import (
    ENVIRON,
    NO_JOB,
    Fields,
    Planted,
    bound_token,
    claim,
    offer_jobs,
    plant,
    samples,
    settled,
)
from benchmarks.prove.starts import STARTS, Start, started
from benchmarks.results import Cell
from benchmarks.trials.small_disk import MountRefused, small_disk
from offbook.api.verbs import VERBS
from offbook.client.async_client import AsyncClient
from offbook.model.errors import OffbookError, ProviderUnavailable

AGENT = "alice"
DISK_BYTES = 60_000_000
PROBLEM_FIELDS = {"type", "title", "status", "detail", "retryable"}
HUGE_BYTES = 10**10
CLIENT_SECONDS = 60.0

Send = Callable[[Daemon, str, Fields], Reply]


class Column(NamedTuple):
    """A fault, and what came of each verb under it."""

    name: str
    is_ours: bool
    cells: dict[str, str]
    wrong: list[str]


class Fault(NamedTuple):
    """Of ours: what is done to the folder before the start, or to the daemon while it runs."""

    name: str
    before: Callable[[Path], None] = lambda home: None
    during: Callable[[Daemon], None] = lambda daemon: None
    environ: Mapping[str, str] = {}
    is_on_small_disk: bool = False


def _page_of(table: str) -> Callable[[Path], None]:
    return lambda home: damage.overwrite_page(home / "offbook.db", table)


def _kill_workers(daemon: Daemon) -> None:
    if not damage.kill_workers(daemon):
        raise AssertionError("there was no worker to kill")


OURS = (
    Fault("disk full", during=lambda daemon: damage.fill(daemon.home), is_on_small_disk=True),
    Fault("a page of the messages damaged", before=_page_of("messages")),
    Fault("a page of the summaries damaged", before=_page_of("summary_texts")),
    Fault("a page of the audit chain damaged", before=_page_of("audit")),
    Fault("large parts lost", before=lambda home: damage.delete_files(home / "blobs")),
    Fault("index scrambled under it", during=lambda daemon: damage.scramble_files(daemon.home / "index")),
    Fault("index deleted under it", during=lambda daemon: shutil.rmtree(daemon.home / "index")),
    Fault("index scrambled before the start", before=lambda home: damage.scramble_files(home / "index")),
    Fault("worker killed", during=_kill_workers, environ={"OFFBOOK_MAINTENANCE_OWN_PROCESS": "true"}),
    Fault(
        "embedding model away",
        environ={"OFFBOOK_EMBEDDING_MODEL": "absent", "OFFBOOK_EMBEDDING_ENDPOINT": "http://127.0.0.1:9/v1"},
    ),
)
QUICK = tuple(
    fault for fault in OURS if fault.name.startswith(("a page of the messages", "large", "index scrambled u"))
)


# ── mistakes of the client ────────────────────────────────────────────────────────────────────


def _raw(daemon: Daemon, verb: str, body: bytes, token: str, **headers: str) -> Reply:
    return daemon.send("POST", f"/v1/{verb}", body, {**bearer(token), **headers})


def theirs(stranger: str) -> dict[str, Send]:
    """By name. `stranger` is a token that is for another agent only."""
    return {
        "wrong token": lambda daemon, verb, fields: daemon.ask(verb, token="not-a-token", **fields),
        "token of another agent": lambda daemon, verb, fields: daemon.ask(verb, token=stranger, **fields),
        "body too large": lambda daemon, verb, fields: _raw(
            daemon, verb, b"{", daemon.token, **{"content-length": str(HUGE_BYTES)}
        ),
        "not JSON": lambda daemon, verb, fields: _raw(daemon, verb, msgspec.json.encode(fields)[:-1], daemon.token),
        "unknown field": lambda daemon, verb, fields: daemon.ask(verb, **fields, notAField=1),
    }


WITHOUT_JOB = "404, for no job was to be had"
OPEN_TO_ALL = {"ping"}
"""About no agent: every token opens it."""


NO_MODEL = "embeddings are switched off"
"""What is degraded without a model, which these trials have none of: said of every answer of recall."""


def cell_of(reply: Reply) -> str:
    """What the user sees, in a few words."""
    if reply.status == 200:
        answer = reply.json()
        degraded = answer.get("degraded", []) if isinstance(answer, dict) else []
        return "200 degraded" if any(NO_MODEL not in what for what in degraded) else "200"
    if fault := problem_fault(reply):
        return f"{reply.status}: {fault}"
    problem = reply.json()
    slug = problem["type"].rpartition(":")[2]
    return f"{reply.status} {slug}" + (", retryable" if problem["retryable"] else "")


def problem_fault(reply: Reply) -> str | None:
    """What is wrong with an error as a document: it must say what happened and whether to try again."""
    if reply.content_type != "application/problem+json":
        return f"no problem document but {reply.content_type or 'nothing'}"
    problem = reply.json()
    if set(problem) != PROBLEM_FIELDS or problem["status"] != reply.status:
        return f"a problem document with {sorted(problem)}"
    return None if problem["detail"].strip() else "a problem document that does not say what to do"


def is_right(cell: str, *, is_ours: bool, is_open: bool = False) -> bool:
    """Of ours: an answer, or a 5xx that is told. Of theirs: a 4xx."""
    if ": " in cell:
        return False
    if is_ours:
        return cell.startswith(("200", "5")) or cell == WITHOUT_JOB
    return cell.startswith("4") or (is_open and cell == "200")


# ── the trial ─────────────────────────────────────────────────────────────────────────────────


class FaultMatrix:
    def __init__(self, folder: Path, faults: tuple[Fault, ...] = OURS) -> None:
        self._folder = folder
        self._faults = faults
        self._planted: Planted
        self._without_job: set[str] = set()
        self.told: list[str] = []

    def run(self) -> Iterator[Column]:
        yield from self._without_fault()
        for fault in self._faults:
            try:
                yield self._with(fault)
            except MountRefused as refused:
                self.told.append(f"{fault.name}: not run, {refused}")
        yield self._killed_in_the_middle()

    def starts(self) -> list[Start]:
        """What `offbook serve` says where it had better not start. After `run`."""
        made = []
        for harm in STARTS:
            with self._copied() as copy:
                made.append(started(copy, harm))
        return made

    def _without_fault(self) -> Iterator[Column]:
        """What is planted, kept for the others; then the client's mistakes, which change nothing; then none."""
        home = self._folder / "planted"
        home.mkdir(mode=0o700)
        stranger = bound_token(home, "stranger", "somebody-else")
        with running(ENVIRON, home=home) as daemon:
            self._planted = plant(daemon, AGENT, "fq")
            settled(daemon)
        with self._copied() as copy, running(ENVIRON, home=copy) as daemon:
            mistakes = [
                self._column(name, {verb: send(daemon, verb, fields) for verb, fields in self._samples().items()})
                for name, send in theirs(stranger).items()
            ]
            offer_jobs(daemon, self._planted)
            usual = self._column("none", self._asked(daemon), is_ours=True)
        yield usual._replace(wrong=[f"{verb} in order: {cell}" for verb, cell in usual.cells.items() if cell != "200"])
        yield from mistakes

    def _with(self, fault: Fault) -> Column:
        with ExitStack() as stack:
            copy = stack.enter_context(self._copied(is_on_small_disk=fault.is_on_small_disk))
            fault.before(copy)
            try:
                daemon = stack.enter_context(running({**ENVIRON, **fault.environ}, home=copy))
            except RuntimeError as ended:
                return self._not_started(fault.name, str(ended))
            offer_jobs(daemon, self._planted)
            fault.during(daemon)
            column = self._column(fault.name, self._asked(daemon), is_ours=True)
            if daemon.process.poll() is not None:
                column.wrong.append(f"{fault.name}: the daemon ended with {daemon.process.returncode}")
            told = daemon.log.read_text()
            if "request.fail" in told:
                column.wrong.append(f"{fault.name}: not foreseen: {told[told.index('request.fail') :][:1_500]}")
            return column

    def _not_started(self, name: str, log: str) -> Column:
        told = log[log.index("offbook: ") :].splitlines()[0] if "offbook: " in log else ""
        self.told.append(f"{name}: it does not start, `{told}`")
        wrong = [] if told and "Traceback" not in log else [f"{name}: {log[-1_000:]}"]
        return Column(name, True, dict.fromkeys(VERBS, "does not start"), wrong)

    def _samples(self, job_id: str | None = None) -> dict[str, Fields]:
        made = samples(self._planted, job_id) if job_id else samples(self._planted)
        if made.keys() != VERBS.keys():
            raise AssertionError(f"verbs without a sample request: {sorted(made.keys() ^ VERBS.keys())}")
        return made

    def _asked(self, daemon: Daemon) -> dict[str, Reply]:
        replies: dict[str, Reply] = {}
        self._without_job = set()
        for verb, fields in self._samples(claim(daemon, self._planted)).items():
            again = {"jobId": claim(daemon, self._planted)} if verb == "jobs/fail" else {}
            sent = {**fields, **again}
            self._without_job |= {verb} if sent.get("jobId") == NO_JOB else set()
            replies[verb] = daemon.ask(verb, **sent)
        return replies

    def _column(self, name: str, replies: Mapping[str, Reply], *, is_ours: bool = False) -> Column:
        cells = {verb: cell_of(reply) for verb, reply in replies.items()}
        if is_ours:
            cells |= {verb: WITHOUT_JOB for verb in self._without_job if cells[verb].startswith("404")}
        is_stranger = name.startswith("token of")
        wrong = [
            f"{name}, {verb}: {cell} {replies[verb].body[:300]!r}"
            for verb, cell in cells.items()
            if not is_right(cell, is_ours=is_ours, is_open=is_stranger and verb in OPEN_TO_ALL)
        ]
        return Column(name, is_ours, cells, wrong)

    def _killed_in_the_middle(self) -> Column:
        """Every verb is asked, none is answered: what the client raises. What `record` was given arrives after all."""
        with self._copied() as copy, running(ENVIRON, home=copy) as daemon:
            raised = asyncio.run(self._killed(daemon))
        cells = {verb: _raised_in_words(error) for verb, error in raised.items()}
        wrong = [
            f"killed in the middle, {verb}: {cells[verb]}"
            for verb, error in raised.items()
            if not (isinstance(error, ProviderUnavailable) and error.retryable)
        ]
        return Column("killed in the middle (client)", True, cells, wrong)

    async def _killed(self, daemon: Daemon) -> dict[str, BaseException | Any]:
        client = AsyncClient(
            daemon.tcp_endpoint, token=daemon.token, home=self._folder / "client", timeout_seconds=CLIENT_SECONDS
        )
        async with client:
            daemon.process.send_signal(signal.SIGSTOP)
            asking = {
                verb: asyncio.ensure_future(client.call(verb, fields)) for verb, fields in self._samples().items()
            }
            await asyncio.sleep(0.5)
            client.record("kept", ("user", "This waits in the outbox."), agent_id=AGENT)
            daemon.process.kill()
            await asyncio.gather(*asking.values(), return_exceptions=True)
            kept = await client.sync()
        raised: dict[str, Any] = {verb: future.exception() for verb, future in asking.items()}
        return raised | ({} if kept else {"onMessage": AssertionError("the outbox kept nothing")})

    @contextmanager
    def _copied(self, *, is_on_small_disk: bool = False) -> Iterator[Path]:
        """What is planted, in a folder of its own."""
        home = self._folder / "copy"
        with ExitStack() as stack:
            if is_on_small_disk:
                stack.enter_context(small_disk(home, DISK_BYTES))
            damage.copy_of(self._folder / "planted", home)
            yield home
            if not is_on_small_disk:
                shutil.rmtree(home)


def _raised_in_words(error: BaseException | None) -> str:
    if isinstance(error, OffbookError):
        return f"raises {type(error).__name__}" + (", retryable" if error.retryable else "")
    return f"raises {type(error).__name__}: {error}" if error else "an answer"


def tried(folder: Path, faults: tuple[Fault, ...] = OURS) -> Tried:
    trial = FaultMatrix(folder, faults)
    columns = list(trial.run())
    rows: list[dict[str, Cell]] = [
        {"verb": verb, **{column.name: column.cells[verb] for column in columns}} for verb in VERBS
    ]
    starts = trial.starts() if faults == OURS else []
    cells = sum(len(column.cells) for column in columns)
    return Tried(
        size=f"{cells:,} cells: {len(columns)} states of the provider or of the request, {len(VERBS)} verbs each",
        seed=None,
        figures={"cells": cells, "not as they should be": sum(len(column.wrong) for column in columns)},
        wrong=[fault for column in columns for fault in column.wrong]
        + [fault for one in starts for fault in one.wrong],
        matrix=rows,
        legend=[
            *(f"At the start, {start.harm}: {start.told}" for start in starts),
            *trial.told,
        ],
    )
