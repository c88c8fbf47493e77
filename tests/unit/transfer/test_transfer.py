"""Everything an agent has goes out as records and comes in again as it was, once, however often and however broken off."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.memory import Memory
from offbook.log.store import Store
from offbook.model.errors import WrongShape
from offbook.model.lesson import LessonDraft
from offbook.model.record import (
    FOLLOWS_REFUSED,
    AgentRecord,
    Followed,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    SessionRecord,
    SummaryRecord,
    name_of,
)
from offbook.model.settings.sections import TurnSettings
from offbook.model.types import AuditDraft, Message, now
from offbook.models.relation import RelationModel
from offbook.transfer import record_pages
from offbook.transfer.record_files import batches
from tests.unit.projections.doubles import WordsJudge
from tests.unit.small_memory import assistant, caught_up, small_memory, talk, user

LARGE = "wörter, 漢字 und 🦉; " * 3_600
"""Longer than what is stored in its row."""


async def pages(memory: Memory, agent_id: str = "main", limit: int = 500) -> list[Record]:
    records: list[Record] = []
    after: str | None = None
    while True:
        page = await memory.export(agent_id, after=after, limit=limit)
        assert len(page.records) <= limit
        records += page.records
        after = page.next
        if after is None:
            return records


async def send(memory: Memory, records: Sequence[Record], agent_id: str = "main", size: int = 500) -> dict[str, str]:
    """As a client does; why what was refused was refused, by name."""
    refused: dict[str, str] = {}
    for batch in batches(iter(records), most_records=size):
        imported = await memory.import_records(agent_id, batch.records, follows=batch.follows)
        refused |= {each.record: each.reason for each in imported.refused}
    return refused


async def take(memory: Memory, records: Sequence[Record], agent_id: str = "main", size: int = 500) -> dict[str, str]:
    refused = await send(memory, records, agent_id, size)
    await memory.import_records(agent_id, [], done=True)
    return refused


def encoded(records: Sequence[Record]) -> bytes:
    return b"\n".join(msgspec.json.encode(record) for record in records)


def kinds(records: Sequence[Record]) -> set[str]:
    return {type(record).__name__ for record in records}


def store_of(memory: Memory) -> Store:
    return memory._store


async def live(memory: Memory) -> None:
    """A life with everything in it."""
    chat = await talk(memory, 30)
    await memory.session_end(chat, reason="daily")
    await memory.on_message(chat, [user("/new")])
    other = memory.scope("agent:main:子🦉")
    await memory.session_start(other, parent_session_id="chat")
    call = {"type": "tool-call", "id": "c", "name": "look", "arguments": {"at": [1, 2.5, None], "中": "文"}}
    await memory.on_message(
        other,
        [
            user("Please remember that my cat is called Ada, 记住我的猫叫 Ada 🐈.", id="m1", meta={"a": {"b": []}}),
            assistant([call], model="m"),  # type: ignore[arg-type]
            Message(role="tool", content="Nothing there.", tool_call_id="c", name="look"),
            user(LARGE),
            user("ok"),
            user(f"my token is ghp_{'a1B2c3' * 6}, keep it"),
            user("\x00 a NUL and a line\u2028separator"),
        ],
    )
    await memory.pre_compaction(other, [user("ok"), assistant("Something that was not saved before this moment.")])
    await memory.post_compaction(other, {"new": "context"})
    await memory.session_start(memory.scope("only a start"))
    await memory.cross("main", enabled=True)
    placed = (await store_of(memory).arrivals("main", after_event=0)).messages
    await store_of(memory).pin("main", [placed[9].place, placed[2].place], pinned=True, event=event("pin"))
    await store_of(memory).pin("main", [placed[-1].place, placed[9].place], pinned=True, event=event("pin"))
    await store_of(memory).pin("main", [placed[2].place], pinned=False, event=event("unpin"))
    await learn(memory, [placed[0].place, placed[-3].place])
    await settled(memory)


async def lived(home: Path) -> list[Record]:
    """Such a life at `home`, closed, and what it exports."""
    async with small_memory(home) as memory:
        await live(memory)
        return await pages(memory)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    home = tmp_path_factory.mktemp("life") / "one"
    judge = WordsJudge()
    with pytest.MonkeyPatch.context() as patched:  # it is made before `words_judge` is there
        patched.setattr(RelationModel, "replaces", lambda _self, pairs: judge.replaces(pairs))
        return home, asyncio.run(lived(home))


@pytest.fixture
def home(life: tuple[Path, list[Record]], tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return shutil.copytree(life[0], tmp_path / "one")


@pytest.fixture
def records(life: tuple[Path, list[Record]]) -> list[Record]:
    return life[1]


async def settled(memory: Memory, agent_id: str = "main") -> None:
    """Nothing is left to be made of what was said."""
    await caught_up(memory)
    await memory.maintain(agent_id, tasks=["lessons"])


def event(verb: str) -> AuditDraft:
    return AuditDraft(verb=verb, actor="test")


def draft(key: str, places: list[int], **fields: Any) -> LessonDraft:
    given = {"kind": "fact", "text": f"It is {key}.", "key": key, "confidence": 0.5, "times": 2, "places": places}
    return LessonDraft(first_seen=now(), last_seen=now(), **(given | fields))


async def learn(memory: Memory, places: list[int]) -> None:
    store = store_of(memory)
    first, second, _ = await store.keep_lessons(
        "main",
        [draft("the cat", places), draft("猫", places[:1]), draft("gone", places)],
        replaced={},
        event=event("l"),
    )
    judged = msgspec.structs.replace(first, status="edited", learnt_text=first.text, text="The cat is Ada.")
    await store.judge_lesson("main", judged, [], event("l"))
    await store.keep_lessons("main", [draft("new", places)], replaced={second.id: "new"}, event=event("l"))


# ── round trips ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [3, 500])
async def test_what_goes_out_comes_in_and_goes_out_the_same(
    home: Path, records: list[Record], tmp_path: Path, size: int
) -> None:
    async with small_memory(home) as memory:
        before = await pages(memory)
        assert encoded(before) == encoded(records)
        assert kinds(before) == {
            f"{kind}Record" for kind in ["Agent", "Session", "Message", "Mark", "Summary", "Lesson"]
        }
        assert {record.level for record in before if isinstance(record, SummaryRecord)} >= {1, 2}
        assert encoded(await pages(memory, limit=7)) == encoded(before)
        status = await memory.status("main")
    async with small_memory(tmp_path / "two") as memory:
        assert await take(memory, before, size=size) == {}
        await settled(memory)
        assert encoded(await pages(memory)) == encoded(before)
        again = await memory.status("main")
        assert (again.counts.messages, again.counts.sessions) == (status.counts.messages, status.counts.sessions)
        assert (again.pinned, again.counts.redactions) == (2, 1)
        assert again.summaries.counts == status.summaries.counts
        report = await memory.audit("main")
        assert report.verified
        found = await memory.recall(memory.scope("elsewhere"), "what is my cat called")
        assert "Ada" in found.entries[0].text


async def test_twice_changes_nothing(home: Path, records: list[Record]) -> None:
    async with small_memory(home) as memory:
        imported = await memory.import_records("main", records, done=True)
        assert (imported.taken, imported.already_there, imported.refused) == (0, len(records), [])
        await settled(memory)
        assert encoded(await pages(memory)) == encoded(records)
        marks = [record for record in records if isinstance(record, MarkRecord)]
        assert len({(record.session_id, record.seq, record.kind, record.at) for record in marks}) == len(marks)


@pytest.mark.parametrize("broken_off_at", [1, 61, 95])
async def test_broken_off_and_begun_again_it_is_the_same(
    tmp_path: Path, records: list[Record], broken_off_at: int
) -> None:
    """The store is closed between two requests, and all is sent again from the beginning."""
    async with small_memory(tmp_path / "two") as memory:
        assert await send(memory, records[:broken_off_at], size=10) == {}
    async with small_memory(tmp_path / "two") as memory:
        assert await take(memory, records, size=13) == {}
        await settled(memory)
        assert encoded(await pages(memory)) == encoded(records)


async def test_nothing_is_there_already_where_there_was_nothing(tmp_path: Path) -> None:
    records = [AgentRecord(agent_id="main"), SessionRecord(session_id="chat", started_at=now())]
    async with small_memory(tmp_path) as memory:
        first = await memory.import_records("main", records)
        assert (first.taken, first.already_there) == (2, 0)
        again = await memory.import_records("main", records)
        assert (again.taken, again.already_there) == (0, 2)


async def test_under_another_name_it_is_another_agents(home: Path, records: list[Record]) -> None:
    async with small_memory(home) as memory:
        assert await take(memory, records, "other") == {}
        await settled(memory, "other")
        there = await pages(memory, "other")
        assert there[0] == AgentRecord(agent_id="other", cross_search=True)
        assert encoded(there[1:]) == encoded(records[1:])
        assert encoded(await pages(memory)) == encoded(records)


PATIENT = TurnSettings(deadline=timedelta(seconds=20))
"""A busy machine is slow."""
GRAZ, VIENNA = "Our backup server Anna runs in Graz.", "Our backup server Anna runs in Vienna."


async def told(memory: Memory, session: str) -> tuple[str, str]:
    await caught_up(memory)
    turn = await memory.prepare_turn(memory.scope(session), "Where does our backup server Anna run?")
    found = await memory.recall(memory.scope("elsewhere"), "Where does our backup server Anna run?")
    return strip_times(turn.recall), str([entry.text for entry in found.entries])


@pytest.mark.parametrize("verdicts", [["edit"], ["edit", "reject"], ["edit", "reject", "accept"]])
async def test_what_a_person_wrote_holds_where_it_is_imported(tmp_path: Path, verdicts: list[Any]) -> None:
    async with small_memory(tmp_path / "one", turn=PATIENT) as memory:
        await memory.on_message(memory.scope("chat"), [user(GRAZ)])
        await settled(memory)
        (lesson,) = (await memory.lessons("main")).lessons
        for verdict in verdicts:
            await memory.judge_lesson("main", lesson.id, verdict, VIENNA if verdict == "edit" else None)
        before, there = await pages(memory), await told(memory, "new")
        held, gone = ("Graz", "Vienna") if verdicts[-1] == "reject" else ("Vienna", "Graz")
        assert (held in there[1], gone in there[1]) == (True, False)
    async with small_memory(tmp_path / "two", turn=PATIENT) as memory:
        # Another lesson has the number here, so it gets the next.
        await memory.on_message(memory.scope("mine"), [user("I prefer short answers without bullet points.")])
        await settled(memory)
        for _ in range(2):
            assert await take(memory, before) == {}
            assert (await told(memory, "new"))[1] == there[1]
        events = await store_of(memory).audit_events("main", limit=1_000)
        links = [event.details["lesson"] for event in events if event.verb == "supersede"]
        assert links == ["lesson-0002"], "the second time nothing is new"
    async with small_memory(tmp_path / "three", turn=PATIENT) as memory:
        assert await take(memory, before) == {}
        assert await told(memory, "new") == there
        await settled(memory)
        assert encoded(await pages(memory)) == encoded(before)


def strip_times(text: str) -> str:
    return re.sub(r"\([^()]*ago\)|\(just now\)|mark=\"\w+\"", "", text)


# ── while it comes in ─────────────────────────────────────────────────────────────────────────


async def test_nothing_is_made_of_half_an_import(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        await talk(memory, 30)
        await memory.on_message(memory.scope("chat"), [user("I prefer short answers without bullet points.")])
        await caught_up(memory)
        records = await pages(memory)
    messages = [record for record in records if not isinstance(record, SummaryRecord | LessonRecord)]
    async with small_memory(tmp_path / "two") as memory:
        await memory.import_records("main", messages)
        assert (await memory.ping()).backlog
        await memory.maintain("main", tasks=["index", "lessons"])
        assert await store_of(memory).summary_counts("main") == {}
        assert await store_of(memory).lesson_counts("main") == {}
        await memory.import_records("main", [], done=True)
        await settled(memory)
        assert await store_of(memory).summary_counts("main")
        assert await store_of(memory).lesson_counts("main")


# ── what does not fit ─────────────────────────────────────────────────────────────────────────


async def test_another_conversation_of_the_same_name_is_not_mixed_with_it(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        await talk(memory, 30)
        await caught_up(memory)
        records = await pages(memory)
    async with small_memory(tmp_path / "two") as memory:
        await talk(memory, 3, first=100)
        own = await pages(memory)
        refused = await take(memory, records, size=10)
        assert "--agent" in refused["message chat#1"]
        assert FOLLOWS_REFUSED in refused["message chat#2"]
        assert "not here" in refused["summary L1-0001"]
        assert {name_of(each) for each in records if isinstance(each, MessageRecord | SummaryRecord)} <= set(refused)
        assert [each for each in await pages(memory) if isinstance(each, MessageRecord)] == [
            each for each in own if isinstance(each, MessageRecord)
        ]


async def test_what_has_grown_since_keeps_what_it_has(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        await talk(memory, 10)
        records = await pages(memory)
        await talk(memory, 3, first=10)
        assert await take(memory, records) == {}
        assert len([each for each in await pages(memory) if isinstance(each, MessageRecord)]) == 26


async def test_beside_other_sessions_merges_are_left_to_the_background(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        await talk(memory, 30)
        await caught_up(memory)
        records = await pages(memory)
    async with small_memory(tmp_path / "two") as memory:
        await talk(memory, 12, session="other", first=50)
        await caught_up(memory)
        refused = await take(memory, records)
        merged = [each for each in records if isinstance(each, SummaryRecord) and each.sources]
        assert set(refused) == {name_of(each) for each in merged}
        await caught_up(memory)
        assert encoded([each for each in await pages(memory) if isinstance(each, MessageRecord)]).count(b'"chat"') == 60
        counts = await store_of(memory).summary_counts("main")
        assert counts[2] >= len(merged)


async def test_messages_out_of_order_and_without_their_session_are_refused(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        await talk(memory, 4)
        _, session, *rest = await pages(memory)
    messages = [record for record in rest if isinstance(record, MessageRecord)]
    async with small_memory(tmp_path / "two") as memory:
        (refused,) = (await memory.import_records("main", messages[:1])).refused
        assert "session record" in refused.reason
        imported = await memory.import_records("main", [session, messages[1]])
        assert imported.taken == 1
        assert "ends at message 0" in imported.refused[0].reason
        assert (await memory.import_records("main", [session, messages[0]])).taken == 1
        (refused,) = (await memory.import_records("main", [messages[1]])).refused
        assert "not certain that message 1" in refused.reason
        elsewhere = Followed(session_id="chat", seq=1, at=now())
        (refused,) = (await memory.import_records("main", [messages[1]], follows=elsewhere)).refused
        assert "not certain that message 1" in refused.reason
        assert (await memory.import_records("main", messages[:3])).taken == 2


async def test_what_was_forgotten_stays_forgotten(tmp_path: Path) -> None:
    record = MessageRecord(
        session_id="chat",
        seq=1,
        message=Message(role="user", content="[forgotten]", ts=now()),
        noise="forgotten",
    )
    said = msgspec.structs.replace(
        record, noise=None, message=msgspec.structs.replace(record.message, content="It was said.")
    )
    session = SessionRecord(session_id="chat", started_at=now())
    async with small_memory(tmp_path / "one") as memory:
        await memory.import_records("main", [session, record])
        (logged,) = await store_of(memory).messages(memory.scope("chat"))
        assert logged.entry.noise == "forgotten"
        assert (await memory.import_records("main", [said])).already_there == 1
        (logged,) = await store_of(memory).messages(memory.scope("chat"))
        assert logged.message.content == "[forgotten]"


def _deep() -> Any:
    deep: Any = "x"
    for _ in range(120):
        deep = [deep]
    return [{"type": "x", "x": deep}]


AT_FAULT: list[tuple[Record, str]] = [
    (MessageRecord(session_id="chat", seq=2, message=Message(role="user", content=_deep())), "levels deep"),
    (MessageRecord(session_id="chat", seq=2, message=Message(role="user", content="x", name="\x00")), "NUL"),
    (SessionRecord(session_id="\x00", started_at=now()), "NUL"),
    (SessionRecord(session_id="x" * 600, started_at=now()), "600 bytes"),
    (SessionRecord(session_id="x", started_at=datetime(1800, 1, 1, tzinfo=UTC)), "1901"),
    (MarkRecord(session_id="x", seq=0, kind="end", at=datetime(9999, 1, 1, tzinfo=UTC)), "8999"),
    (AgentRecord(agent_id="\ud800"), "surrogate"),
]


async def test_a_request_with_a_record_at_fault_changes_nothing(tmp_path: Path) -> None:
    sound = SessionRecord(session_id="chat", started_at=now())
    async with small_memory(tmp_path / "one") as memory:
        for record, told in AT_FAULT:
            with pytest.raises(WrongShape, match=told):
                await memory.import_records("main", [sound, record])
            assert await store_of(memory).sessions("main") == []


async def test_a_memory_with_holes_goes_out_and_comes_in_the_same(
    home: Path, tmp_path: Path, records: list[Record]
) -> None:
    async with small_memory(home) as memory:
        for words in ("module_7.py", "my cat is called", "Nothing there"):
            assert (await memory.forget("main", matching=words, reason="test")).reached.messages
        await settled(memory)
        left = await pages(memory)
        assert b"module_7.py" not in encoded(left)
        assert await take(memory, left) == {}
        assert not [each for each in await take(memory, records) if each.startswith("message")]
        await settled(memory)
        assert b"module_7.py" not in encoded(await pages(memory))
    async with small_memory(tmp_path / "two") as memory:
        assert await take(memory, left) == {}
        await settled(memory)
        assert encoded(await pages(memory)) == encoded(left)


async def test_a_summary_from_before_something_was_forgotten_is_refused(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        await talk(memory, 30)
        await caught_up(memory)
        whole = await pages(memory)
    async with small_memory(tmp_path / "two") as memory:
        assert await send(memory, [each for each in whole if not isinstance(each, SummaryRecord)]) == {}
        await memory.forget("main", matching="module_1.py", reason="test")
        refused = await take(memory, whole)
        assert "forgotten here since" in refused["summary L1-0001"]
        await caught_up(memory)
        assert b"module_1.py" not in encoded(await pages(memory))


async def test_consent_that_was_refused_here_stays_refused(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        await memory.cross("main", enabled=False)
        refused = await take(memory, [AgentRecord(agent_id="main", cross_search=True)])
        assert "stays so" in refused["agent main"]
        assert not (await memory.cross("main")).enabled


async def test_a_page_that_does_not_follow_any_is_refused(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "one") as memory:
        for after in ("", "x", "[]", '["session","unknown"]', '["summary","L1-0009"]', '["agent","",-1]'):
            with pytest.raises(WrongShape, match="`next` of the page before"):
                await memory.export("main", after=after)


async def test_a_page_has_a_bound_and_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_pages, "MOST_BYTES", 4_000)
    async with small_memory(tmp_path / "one") as memory:
        await memory.on_message(memory.scope("chat"), [user("x y " * 600), user("z a " * 600)])
        page = await memory.export("main")
        assert page.next is not None
        assert sum(isinstance(record, MessageRecord) for record in page.records) == 1
        events = (await memory.audit("main")).events
        assert [each.details for each in events if each.verb == "export"] == [{"records": 4, "messages": 1}]
