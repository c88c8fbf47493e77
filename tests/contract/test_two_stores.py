"""One history told to every store: the same rows, numbers, hashes and exports, whatever database holds them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.log.blobs import BlobFiles
from offbook.log.postgres.connection import PostgresConnection
from offbook.log.reading import LogReader
from offbook.log.sql import ledger
from offbook.log.sql.connection import Connection
from offbook.log.sql.copying import KEYS
from offbook.log.sql.row_ids import MOST_MESSAGES
from offbook.log.sqlite.connection import open_reader
from offbook.log.store import Store
from offbook.log.verification import verify
from offbook.model.status import CaptureClaim
from offbook.model.summary import Completion, Usage
from offbook.model.turn import TurnMemory
from offbook.model.types import AuditDraft, Mark, Scope
from offbook.transfer.record_pages import RecordPages
from tests.contract.conftest import OPENERS
from tests.contract.test_store import NOON, add, entry
from tests.contract.test_store_compression import SWAP, context, made, span
from tests.contract.test_store_forget import receipt
from tests.contract.test_store_lessons import draft, keep
from tests.contract.test_store_recall import link, vector

AGENTS = ["main", "Zoë", "zoe", "with\x00nul", "\x01\x02"]
SESSIONS = ["chat", "CHAT", "ärger", "\x00", "a\x01\x00\x00"]
WORDS = ["harbour", "ß", "你好", "\x00", "\x01\x01\x00", "'; --", "%s $1 ?", "\\u0000", ""]
STEPS = 60


class Clock:
    """A second later each time it is asked."""

    def __init__(self) -> None:
        self._at = NOON

    def __call__(self) -> datetime:
        self._at += timedelta(seconds=1)
        return self._at


@contextmanager
def one_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And every note written at once, not now and then."""
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "NOTE_SECONDS", 0.0)
        for name, module in list(sys.modules.items()):
            if name.startswith("offbook.log.") and hasattr(module, "now"):
                patch.setattr(module, "now", clock)
        yield


class Narrator:
    """The same seed tells the same history, as long as the store answers the same."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store = store
        self._random = random.Random(seed)
        self._made: dict[Scope, int] = {}
        self.answers: list[object] = []

    async def tell(self, steps: int) -> None:
        for number in range(steps):
            scope = Scope(agent_id=self._random.choice(AGENTS), session_id=self._random.choice(SESSIONS))
            step = self._random.choice(
                [self._say] * 4 + [self._mark, self._hold, self._link, self._derive, self._forget]
            )
            await step(scope, number)

    def _text(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, 6)))

    def _event(self, scope: Scope, verb: str) -> AuditDraft:
        return AuditDraft(verb=verb, actor="test", session_id=scope.session_id, details={"said": self._text()})

    async def _say(self, scope: Scope, number: int) -> None:
        strange = f"\x00\x01{number % 7}\\u0000"
        ids = [self._random.choice([None, f"{self._random.randint(1, 9)}", strange]) for _ in range(4)]
        asked = [id_ for id_ in ids if id_ is not None]
        self.answers.append(await self._store.missing(scope, asked))
        self.answers.append(await self._store.places_of(scope, asked))
        entries = [entry(self._text(), id=id_) for id_ in ids]
        claim = CaptureClaim(
            client=self._random.choice(WORDS) or "c", first=number + 1, last=number + 4, sent=number + 9
        )
        await add(self._store, *entries, scope=scope, claim=claim)

    async def _mark(self, scope: Scope, _number: int) -> None:
        kind = self._random.choice(["start", "end"])
        parent = self._random.choice([None, *SESSIONS]) if kind == "start" else None
        mark = Mark(kind=kind, at=NOON, reason=self._random.choice([None, self._text()]))  # type: ignore[arg-type]
        await self._store.mark(scope, mark, self._event(scope, f"hooks/{kind}"), parent_session_id=parent)

    async def _places(self, scope: Scope) -> list[int]:
        seqs = sorted(self._random.sample(range(1, 30), 6))
        return await self._store.places(scope, seqs)

    async def _hold(self, scope: Scope, _number: int) -> None:
        places = await self._places(scope)
        await self._store.recalled(scope.agent_id, places, self._event(scope, "recall"))
        is_pinned = self._random.random() < 0.7
        await self._store.pin(scope.agent_id, places[:3], pinned=is_pinned, event=self._event(scope, "pin"))
        await self._store.set_agent_note(scope.agent_id, self._random.choice(WORDS), self._text(), None)
        vectors = [vector(place, self._random.randbytes(8), part) for place in places for part in (0, 1)]
        await self._store.add_vectors(scope.agent_id, self._random.choice(["m", "n"]), vectors)

    async def _link(self, scope: Scope, _number: int) -> None:
        places = await self._places(scope)
        links = [link(old, new, note=self._text()) for old, new in pairwise(places)]
        await self._store.supersede(scope.agent_id, links, self._event(scope, "link"))
        if places:
            await self._store.unlink(scope.agent_id, places[0], None, self._event(scope, "unlink"))
        drafts = [draft(self._text(), key=self._random.choice(WORDS), places=places[:2]) for _ in range(2)]
        await keep(self._store, *drafts, agent_id=scope.agent_id)

    async def _derive(self, scope: Scope, number: int) -> None:
        session = await self._store.session(scope)
        if session is None:
            return
        first = self._made.get(scope, 0) + 1
        if session.last_seq > first:
            self._made[scope] = first + 1
            part = span(first, first + 1, scope.session_id)
            await made(self._store, part, agent_id=scope.agent_id, text=self._text() or "t", brief=self._text())
        generation = session.generation + 1
        await self._store.hand_over(scope, context(generation), SWAP)
        await self._store.set_session_note(scope, "topics", self._text())
        answer = Completion(
            fingerprint=f"{number}", summarizer="m", text=self._text(), usage=Usage(input_tokens=3, dollars=0.1)
        )
        await self._store.add_completion(scope.agent_id, answer, NOON)
        memory = TurnMemory(epoch=str(number), at=NOON, text=self._text(), tokens=1, parts=[])
        await self._store.keep_turn_memory(scope, memory)

    async def _forget(self, scope: Scope, _number: int) -> None:
        places = (await self._places(scope))[:1]
        lineage = await self._store.lineage(scope.agent_id, places)
        if lineage.places and not lineage.summaries:
            seq = places[0] & MOST_MESSAGES
            spans = [{"sessionId": scope.session_id, "firstSeq": seq, "lastSeq": seq}]
            event = AuditDraft(verb="forget", actor="test", details={"how": "matching", "spans": spans})
            await self._store.erase(scope.agent_id, lineage, {}, receipt(seq, session_id=scope.session_id), event)


def rows_of(connection: Connection) -> dict[str, list[Any]]:
    """Every row of every table, but for what tells two stores apart."""
    return {
        table: connection.execute(f"SELECT * FROM {table} ORDER BY {', '.join(keys)}").fetchall()
        for table, keys in KEYS.items()
        if table != "installation"
    }


READERS: dict[str, Callable[[Path], Connection]] = {
    "sqlite": lambda folder: open_reader(folder / "offbook.db"),
    "encrypted": lambda folder: open_reader(folder / "offbook.db"),
    "postgres": lambda folder: PostgresConnection((folder / "postgres.url").read_text(), name="test", read_only=True),
}


async def exported(store: Store, folder: Path) -> list[bytes]:
    pages = RecordPages(store, LogReader(store, BlobFiles(folder)))
    found: list[bytes] = []
    for agent in await store.agents():
        after: str | None = None
        while True:
            page = await pages.page(agent, after, 100)
            found += [msgspec.json.encode(record) for record in page.records]
            after = page.next
            if after is None:
                break
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_one_history_is_the_same_in_every_store(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: dict[str, dict[str, list[Any]]] = {}
    exports: dict[str, list[bytes]] = {}
    answers: dict[str, list[object]] = {}
    assert OPENERS.keys() == READERS.keys()
    for kind, opener in OPENERS.items():
        folder = tmp_path / kind
        folder.mkdir()
        with one_clock(monkeypatch):
            store = opener(folder)()
            narrator = Narrator(store, seed)
            await narrator.tell(STEPS)
            for agent in AGENTS:
                narrator.answers.append(msgspec.json.encode(await store.activity(agent, since=NOON.date())))
                narrator.answers.append(msgspec.json.encode(await store.spent(agent)))
                narrator.answers.append(msgspec.json.encode(await store.counts(agent)))
            narrator.answers.append(msgspec.json.encode(await store.spending(NOON.date())))
            answers[kind] = narrator.answers
            assert [fault for agent in await store.agents() async for fault in verify(store, agent)] == []
            exports[kind] = await exported(store, folder)
            await store.close()
        connection = READERS[kind](folder)
        rows[kind] = rows_of(connection)
        connection.close()
    assert len(rows["sqlite"]["audit"]) > STEPS / 2
    for kind in OPENERS:
        for table in KEYS.keys() - {"installation"}:
            assert rows[kind][table] == rows["sqlite"][table], (kind, table)
        assert exports[kind] == exports["sqlite"], kind
        assert answers[kind] == answers["sqlite"], kind
