"""What every store promises to imports (`protocols.Store`): everything in the place it had elsewhere, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.store import Store
from offbook.model.errors import StoreError
from offbook.model.lesson import Lesson, LessonSource
from offbook.model.record import FOLLOWS_REFUSED, Admission, Followed, PlacedEntry, SessionOpening, SessionPart
from offbook.model.types import AuditDraft, Entry, Mark, Scope
from tests.contract.test_store import CHAT, NOON, add, entry, texts
from tests.contract.test_store_compression import THEIRS, WORK, draft, no_faults, span

OpenStore = Callable[[], Store]
EVENT = AuditDraft(verb="import", actor="test", session_id="chat")
BROKEN = AuditDraft(verb="import", actor="test", session_id="chat", details={"unwritable": object()})
OPENING = SessionOpening(started_at=NOON - timedelta(days=9), parent_session_id="parent")
MINUTE = timedelta(minutes=1)


def placed(seq: int, text: str | None = None, **fields: object) -> PlacedEntry:
    pinned = fields.pop("pinned", None)
    made = entry(text or f"message {seq}", ts=NOON + seq * MINUTE, **fields)  # type: ignore[arg-type]
    return PlacedEntry(seq=seq, entry=made, pinned=pinned)  # type: ignore[arg-type]


async def admit(store: Store, *parts: SessionPart, scope: Scope = CHAT) -> list[str]:
    return told(await store.admit(scope, parts, msgspec.structs.replace(EVENT, session_id=scope.session_id)))


def told(admissions: Sequence[Admission]) -> list[str]:
    return [each.refused or ("taken" if each.is_taken else "there") for each in admissions]


# ── sessions ──


async def test_everything_is_where_it_was(store: Store) -> None:
    ended = Mark(kind="end", at=NOON + 3 * MINUTE, seq=2, reason="idle")
    parts = [OPENING, Mark(kind="start", at=NOON, seq=0), placed(1, pinned=2), placed(2, id="m2", pinned=1), ended]
    assert await admit(store, *parts) == ["taken"] * 5
    session = await store.session(CHAT)
    assert session is not None
    assert (session.started_at, session.parent_session_id, session.last_seq) == (OPENING.started_at, "parent", 2)
    assert (session.ended_at, session.end_reason) == (ended.at, "idle")
    assert await store.marks(CHAT) == [Mark(kind="start", at=NOON, seq=0), ended]
    assert await texts(store) == ["message 1", "message 2"]
    pinned = await store.messages_at("main", await store.pinned("main"))
    assert [each.logged.seq for each in pinned] == [1, 2]
    assert (await store.hold_counts("main")).pinned == 2
    counts = await store.counts("main")
    assert (counts.messages, counts.sessions, counts.duplicates) == (2, 1, 0)
    arrived = await store.arrivals("main", after_event=0)
    assert [each.logged.seq for each in arrived.messages] == [1, 2]
    (event,) = await store.audit_events("main")
    assert event.details["accepted"] == 2
    assert (event.details["marks"], event.details["pins"]) == (2, 2)
    await no_faults(store)


async def test_the_same_again_is_there_and_leaves_nothing(store: Store) -> None:
    parts = [OPENING, placed(1, pinned=1), Mark(kind="end", at=NOON, seq=1)]
    await admit(store, *parts)
    before = await store.audit_events("main")
    assert await admit(store, *parts) == ["there"] * 3
    assert await store.audit_events("main") == before
    assert len(await store.marks(CHAT)) == 1
    assert (await store.hold_counts("main")).pinned == 1


async def test_what_is_said_after_the_end_opens_the_session_again(store: Store) -> None:
    await admit(store, OPENING, placed(1), Mark(kind="end", at=NOON, seq=1), placed(2))
    session = await store.session(CHAT)
    assert session is not None
    assert session.ended_at is None


async def test_silence_is_not_marked_anew(store: Store) -> None:
    late = PlacedEntry(seq=2, entry=entry("much later", ts=NOON + timedelta(days=3)))
    await admit(store, OPENING, placed(1), late)
    assert await store.marks(CHAT) == []


async def test_another_message_in_its_place_stays_and_nothing_follows_it(store: Store) -> None:
    await add(store, entry("ours"))
    first, second, *rest = await admit(store, OPENING, placed(1), placed(2), Mark(kind="end", at=NOON, seq=2))
    assert first == "there"
    assert "another message" in second
    assert rest == [FOLLOWS_REFUSED] * 2
    assert await texts(store) == ["ours"]
    session = await store.session(CHAT)
    assert session is not None
    assert session.parent_session_id == "parent"


async def test_a_message_needs_its_session_and_the_one_before(store: Store) -> None:
    assert "session record" in (await admit(store, placed(1)))[0]
    assert await store.session(CHAT) is None
    assert "ends at message 0" in (await admit(store, OPENING, placed(2)))[1]
    await admit(store, placed(1))
    assert "not certain" in (await admit(store, placed(2)))[0]
    elsewhere = Followed(session_id="chat", seq=1, at=NOON)
    assert "not certain" in (await admit(store, elsewhere, placed(2)))[1]
    before = Followed(session_id="chat", seq=1, at=NOON + MINUTE)
    assert await admit(store, before, placed(2)) == ["there", "taken"]
    assert await admit(store, placed(2), placed(3)) == ["there", "taken"]
    assert "belongs after message 9" in (await admit(store, placed(3), Mark(kind="end", at=NOON, seq=9)))[1]
    assert "belongs after message 1" in (await admit(store, placed(3), Mark(kind="end", at=NOON, seq=1)))[1]


async def test_an_id_that_is_elsewhere_in_the_session_is_refused(store: Store) -> None:
    await admit(store, OPENING, placed(1, id="m1"))
    assert "'m1'" in (await admit(store, placed(1, id="m1"), placed(2, id="m1")))[1]


async def test_what_was_forgotten_on_either_side_is_the_same_by_its_time(store: Store) -> None:
    await admit(store, OPENING, placed(1, "[forgotten]", noise="forgotten"), placed(2))
    assert await admit(store, placed(1, "what it said"), placed(2, "[forgotten]", noise="forgotten")) == ["there"] * 2
    other = PlacedEntry(seq=1, entry=entry("said at another time", ts=NOON))
    assert "another message" in (await admit(store, other))[0]


async def test_it_is_all_or_nothing(store: Store, open_store: OpenStore) -> None:
    with pytest.raises(StoreError):
        await store.admit(CHAT, [OPENING, placed(1, pinned=1)], BROKEN)
    assert await store.session(CHAT) is None
    assert await admit(store, OPENING, placed(1, pinned=1)) == ["taken"] * 2
    await store.close()
    again = open_store()
    try:
        assert await texts(again) == ["message 1"]
        await no_faults(again)
    finally:
        await again.close()


async def test_agents_and_sessions_are_apart(store: Store) -> None:
    for scope in (CHAT, WORK, THEIRS):
        assert await admit(store, OPENING, placed(1, scope.agent_id + scope.session_id), scope=scope) == ["taken"] * 2
    assert await texts(store, THEIRS) == ["otherchat"]
    assert (await store.counts("other")).messages == 1


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(cuts=st.lists(st.integers(0, 12), max_size=6), overlap=st.integers(0, 3))
async def test_in_whatever_pieces_it_comes_it_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], overlap: int
) -> None:
    from offbook.log.sqlite.store import SqliteStore

    parts: list[SessionPart] = [OPENING]
    for seq in range(1, 6):
        parts += [placed(seq, pinned=6 - seq), Mark(kind="pre-compaction", at=NOON + seq * MINUTE, seq=seq)]
    folder: Path = tmp_path_factory.mktemp("pieces")
    store = SqliteStore(folder / "offbook.db")
    try:
        edges = sorted({0, *(cut for cut in cuts if cut < len(parts)), len(parts)})
        for first, last in pairwise(edges):
            before = [part for part in parts[:first] if isinstance(part, PlacedEntry)][-1:]
            given_again = parts[max(0, first - overlap) : first]
            await store.admit(CHAT, [*_followed(before), *given_again, *parts[first:last]], EVENT)
        assert await texts(store) == [f"message {seq}" for seq in range(1, 6)]
        assert [mark.seq for mark in await store.marks(CHAT)] == [1, 2, 3, 4, 5]
        pinned = await store.messages_at("main", await store.pinned("main"))
        assert [each.logged.seq for each in pinned] == [1, 2, 3, 4, 5]
    finally:
        await store.close()


def _followed(before: Sequence[PlacedEntry]) -> list[Followed]:
    def at(made: Entry) -> Followed:
        assert made.message.ts is not None
        return Followed(session_id="chat", seq=before[0].seq, at=made.message.ts)

    return [at(each.entry) for each in before]


# ── summaries ──


async def test_summaries_come_in_the_order_they_were_made(store: Store) -> None:
    await add(store, *(entry(f"message {number}") for number in range(40)))
    ids = [
        (await store.add_summary("main", each, AuditDraft(verb="x", actor="test"))).id
        for each in (
            draft(span(11, 20)),
            draft(span(1, 10)),
            draft(span(1, 20), level=2, sources=["L1-0001", "L1-0002"]),
            draft(span(21, 30)),
        )
    ]
    assert [each.id for each in await store.summaries_after("main")] == ids
    assert [each.id for each in await store.summaries_after("main", limit=2)] == ids[:2]
    assert [each.id for each in await store.summaries_after("main", after=ids[1], limit=9)] == ids[2:]
    assert await store.summaries_after("main", after=ids[-1]) == []
    assert await store.summaries_after("main", after="L1-0099") == []
    assert await store.summaries_after("other") == []


async def test_what_was_forgotten_of_a_stretch_is_counted(store: Store) -> None:
    gone = [placed(seq, "[forgotten]", noise="forgotten") for seq in (2, 4)]
    await admit(store, OPENING, placed(1), gone[0], placed(3), gone[1])
    assert await store.forgotten_in(CHAT, first_seq=1, last_seq=4) == 2
    assert await store.forgotten_in(CHAT, first_seq=3, last_seq=2**40) == 1
    assert await store.forgotten_in(WORK, first_seq=1, last_seq=4) == 0


# ── lessons ──


def lesson(id_: str, key: str, *sources: tuple[int, int], **fields: object) -> Lesson:
    made = Lesson(
        id=id_,
        agent_id="elsewhere",
        kind="fact",
        text=f"It is {key}.",
        status="edited",
        confidence=0.5,
        first_seen=NOON,
        last_seen=NOON + MINUTE,
        times=7,
        sources=[LessonSource(session_id="chat", seq=seq, at=NOON + at * MINUTE) for seq, at in sources],
        learnt_by="rules",
        key=key,
    )
    return msgspec.structs.replace(made, **fields)


async def test_lessons_keep_their_numbers_and_everything_else(store: Store) -> None:
    await admit(store, OPENING, placed(1), placed(2))
    given = [
        lesson("lesson-0002", "tea", (1, 1), (2, 2), learnt_text="It was tea.", about="茶"),
        lesson("lesson-0005", "coffee", (2, 2), replaced_by="lesson-0007", status="learnt"),
        lesson("lesson-0007", "milk"),
    ]
    assert told(await store.admit_lessons("main", given, EVENT)) == ["taken"] * 3
    for each in given:
        assert await store.lesson("main", each.id) == msgspec.structs.replace(each, agent_id="main")
    assert told(await store.admit_lessons("main", given, EVENT)) == ["there"] * 3
    events = [event.details.get("lessons") for event in await store.audit_events("main")]
    assert events == [None, 3]


async def test_a_number_that_is_taken_is_not_taken_away(store: Store) -> None:
    await admit(store, OPENING, placed(1))
    await store.admit_lessons("main", [lesson("lesson-0001", "ours")], EVENT)
    given = [lesson("lesson-0001", "theirs", replaced_by="lesson-0002"), lesson("lesson-0002", "newer")]
    assert told(await store.admit_lessons("main", given, EVENT)) == ["taken", "taken"]
    found = {each.key: each for each in await store.lessons("main")}
    assert found["ours"].id == "lesson-0001"
    assert found["theirs"].replaced_by == found["newer"].id
    assert len({each.id for each in found.values()}) == 3


async def test_a_lesson_without_its_sources_is_refused(store: Store) -> None:
    await admit(store, OPENING, placed(1), placed(2, "[forgotten]", noise="forgotten"))
    given = [
        lesson("lesson-0001", "another time", (1, 9)),
        lesson("lesson-0002", "nowhere", (9, 9)),
        lesson("lesson-0003", "forgotten", (2, 2)),
        lesson("lesson-0004", "one of two", (9, 9), (1, 1)),
        lesson("x", "no id"),
    ]
    elsewhere, nowhere, forgotten, taken, nameless = told(await store.admit_lessons("main", given, EVENT))
    assert "not here" in elsewhere
    assert "not here" in nowhere
    assert "forgotten here" in forgotten
    assert taken == "taken"
    assert "no lesson's id" in nameless
    (kept,) = await store.lessons("main")
    assert [source.seq for source in kept.sources] == [1]
