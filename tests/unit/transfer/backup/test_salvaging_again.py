"""What a salvage finds that was cut, salvaged or altered before, and what it cannot mend."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path

import apsw
import msgspec
import pytest

from offbook.api.doctor import mend_log
from offbook.log.audit_chain import micros, seal
from offbook.log.sql.head import head_path
from offbook.log.sqlite import cut_events
from offbook.log.sqlite.point_in_time import cut_after
from offbook.log.sqlite.salvage import salvage
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreError
from offbook.model.home import Home
from offbook.model.receipt import ForgottenSpan
from offbook.model.types import AuditDraft, AuditEvent
from offbook.transfer.backup import damage, salvaging
from tests.unit.small_memory import exchange, small_memory, talk, talked, user
from tests.unit.transfer.backup.test_salvaging import everything, faults_of, tamper

LOSE_EVENT = "DELETE FROM audit WHERE agent = 1 AND seq = 2"
LOSE_MESSAGE = "DELETE FROM messages WHERE place = (1 << 32) + 4"


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    await talked(tmp_path / "home", 3)
    return Home(tmp_path / "home")


async def with_second_agent(home: Home) -> None:
    async with small_memory(home.folder) as memory:
        for number in range(3):
            await memory.on_message(memory.scope("talk", "second"), exchange(number))


async def events_of(path: Path, agent: str = "main") -> list[AuditEvent]:
    store = SqliteStore(path, read_only=True)
    try:
        return list(await store.audit_events(agent, limit=10_000))
    finally:
        await store.close()


def salvaged(home: Home, name: str, *names: str) -> Path:
    fresh = home.folder / f"{name}.db"
    salvage(home.database, fresh, kept_as="elsewhere", names=names)
    return fresh


# ── after a restore as of a moment ──


@pytest.mark.parametrize("is_clipped", [True, False])
async def test_new_messages_with_numbers_that_were_forgotten_once_are_saved(
    home: Home, is_clipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not clipped: a restore of before named numbers behind the end of the shorter session, too."""
    then = (await events_of(home.database))[-1].at
    async with small_memory(home.folder) as memory:
        await talk(memory, 3, first=3)
        await memory.forget("main", session_id="chat")
    if not is_clipped:
        monkeypatch.setattr(cut_events, "_held", lambda spans, _: msgspec.convert(spans, list[ForgottenSpan]))
    cut_after(home.database, then)
    (forget,) = [event for event in await events_of(home.database) if event.verb == "forget"]
    last = 6 if is_clipped else 12
    assert forget.details["spans"] == [{"sessionId": "chat", "firstSeq": 1, "lastSeq": last}]
    async with small_memory(home.folder) as memory:
        receipt = await memory.on_message(memory.scope("chat"), [user("It has a number that was forgotten once.")])
        assert receipt.first_seq == 7
    assert await everything(salvaged(home, "fresh")) == await everything(home.database)


async def test_a_cut_before_a_salvage_keeps_what_vouches_for_the_stand_ins_that_stay(home: Home) -> None:
    tamper(home.database, LOSE_EVENT, LOSE_MESSAGE)
    then = (await events_of(home.database))[-1].at
    async with small_memory(home.folder) as memory:
        await talk(memory, 3, first=3)
    late = (await events_of(home.database))[-2].seq
    tamper(home.database, f"DELETE FROM audit WHERE agent = 1 AND seq = {late}")
    await mend_log(home, {})
    tamper(home.database)
    assert [event.seq for event in await events_of(home.database) if event.verb == "lost"] == [2, late]
    cut_after(home.database, then)
    assert (await events_of(home.database))[-1].details["events"] == [[2, 2]]
    assert await faults_of(home.database) == []
    tamper(home.database, "UPDATE audit SET details = json_set(details, '$.chars', 1) WHERE verb = 'lost'")
    assert await faults_of(home.database) != []


# ── names ──


@pytest.mark.parametrize(("names", "expected"), [(("main", "second"), "second"), (("main", "other"), "recovered-2")])
async def test_an_agent_that_lost_its_name_is_not_taken_for_another_by_its_stand_ins(
    home: Home, names: tuple[str, ...], expected: str
) -> None:
    await with_second_agent(home)
    tamper(home.database, "DELETE FROM audit WHERE agent = 2 AND seq = 1")
    await mend_log(home, {})
    before = await everything(home.database)
    tamper(home.database, "DELETE FROM agents WHERE agent = 2")
    fresh = salvaged(home, "fresh", *names)
    after = await everything(fresh)
    assert after == {(expected if agent == "second" else agent, *rest): one for (agent, *rest), one in before.items()}
    assert await faults_of(fresh) == []


@pytest.mark.parametrize(("taken", "given"), [("second", "recovered-2"), ("recovered-2", "recovered-2-2")])
async def test_a_name_that_is_taken_is_not_given_twice(home: Home, taken: str, given: str) -> None:
    await with_second_agent(home)
    tamper(home.database, "DELETE FROM agents WHERE agent = 2", f"UPDATE agents SET name = '{taken}' WHERE agent = 1")
    agents = {agent for agent, *_ in await everything(salvaged(home, "fresh", taken))}
    assert agents == {taken, given}


async def test_a_session_of_nobody_known_is_not_given_to_an_agent_among_several(home: Home) -> None:
    await with_second_agent(home)
    tamper(
        home.database,
        "DELETE FROM sessions WHERE session = 2",
        "DELETE FROM audit WHERE agent = 2 AND session = 'talk'",
        "INSERT INTO audit SELECT 2, 1, at, 'status', actor, NULL, '{}', previous, hash FROM audit WHERE seq = 1",
    )
    fresh = salvaged(home, "fresh")
    sessions = {place[:2] for place in await everything(fresh)}
    assert sessions == {("main", "chat"), ("recovered-session-2", "recovered-2")}
    assert await faults_of(fresh) == []


# ── a second salvage ──


async def test_a_salvage_names_again_what_one_named_whose_event_is_lost(home: Home) -> None:
    tamper(home.database, LOSE_EVENT, LOSE_MESSAGE)
    await mend_log(home, {})
    tamper(home.database, "DELETE FROM audit WHERE verb = 'salvage'")
    done, unmended = await mend_log(home, {})
    assert (unmended, "0 messages and 1 audit event lost" in done[0]) == ([], True)
    assert await faults_of(home.database) == []
    details = (await events_of(home.database))[-1].details
    assert details["spans"] == [{"sessionId": "chat", "firstSeq": 4, "lastSeq": 4}]
    assert details["events"][0] == [2, 2]
    assert await mend_log(home, {}) == ([], [])


async def test_a_stand_in_that_was_altered_is_a_fault_and_made_anew(home: Home) -> None:
    tamper(home.database, LOSE_EVENT)
    await mend_log(home, {})
    before = (await events_of(home.database))[1]
    assert (before.verb, before.details["firstSeq"]) == ("lost", 3)
    tamper(home.database, "UPDATE audit SET details = json_set(details, '$.chars', 1) WHERE verb = 'lost'")
    tamper(home.database, "UPDATE agents SET counts = counts, noted_seq = 0, noted_hash = ''")
    assert any("stands for lost audit events" in fault.what for fault in await faults_of(home.database))
    await mend_log(home, {})
    assert (await events_of(home.database))[1] == before
    assert await faults_of(home.database) == []


# ── what it cannot mend ──


async def test_what_would_still_be_at_fault_is_left_as_it_is(home: Home) -> None:
    """An event that says it stored millions of messages that are not there."""
    newest = (await events_of(home.database))[-1]
    details = {"accepted": 5_000_000, "firstSeq": 7, "lastSeq": 5_000_006, "hash": "0" * 64}
    draft = AuditDraft(verb="onMessage", actor="host", session_id="chat", details=details)
    event = seal("main", draft, newest, newest.at)  # type: ignore[arg-type]
    connection = apsw.Connection(str(home.database))
    connection.execute(
        "INSERT INTO audit (agent, seq, at, verb, actor, session, details, previous, hash) VALUES (1,?,?,?,?,?,?,?,?)",
        (event.seq, micros(event.at), event.verb, event.actor, "chat", json.dumps(details), event.previous, event.hash),
    )
    connection.close()
    head_path(home.database).unlink()
    assert await damage(home)
    before = home.database.read_bytes()
    done, (finding,) = await mend_log(home, {})
    assert (done, finding.level) == ([], "fail")
    assert "left as it is; restore a backup" in finding.what
    assert home.database.read_bytes() == before
    assert not [*home.folder.glob("damaged-*"), *home.folder.glob(".restore-*")]


@pytest.mark.parametrize(
    ("cause", "is_damage"), [(apsw.IOError("disk I/O error"), False), (apsw.SQLError("no such table: agents"), True)]
)
async def test_an_answer_that_the_disk_failed_to_give_once_is_no_damage(
    home: Home, cause: Exception, is_damage: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("the store failed") from cause

    monkeypatch.setattr(salvaging, "SqliteStore", fail)
    assert bool(await damage(home)) == is_damage
    monkeypatch.setattr(salvaging, "_pages", lambda *_: iter([None]))
    assert await damage(home)


def test_a_page_is_asked_for_again_before_it_is_given_up() -> None:
    class Failing(io.BytesIO):
        asked = 0

        def read(self, size: int | None = -1, /) -> bytes:
            Failing.asked += 1
            if Failing.asked < salvaging.READS or self.tell():
                raise OSError(errno.EIO, "Input/output error")
            return super().read(size)

    content = b"x" * salvaging.USUAL_PAGE_BYTES
    pages = list(salvaging._pages(Failing(content * 2), 2 * len(content)))  # type: ignore[arg-type]
    assert pages == [content, None]
