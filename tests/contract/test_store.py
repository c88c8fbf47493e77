"""What every store promises (`protocols.Store`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.audit_chain import GENESIS, chain_faults, fingerprint
from offbook.log.store import PARENT_NOTE, ExaminedMessage, Store
from offbook.log.verification import verify
from offbook.model.errors import StoreError
from offbook.model.status import CaptureClaim, Counts
from offbook.model.types import AuditDraft, BlobRef, Entry, Mark, Message, Scope, SessionGaps

OpenStore = Callable[[], Store]
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
CHAT = Scope(agent_id="main", session_id="chat")
GAPS = SessionGaps()


def entry(text: str, *, id: str | None = None, ts: datetime | None = NOON, **fields: object) -> Entry:
    message = Message(role="user", content=text, id=id, ts=ts)
    return Entry(message=message, chars=len(text), fingerprint=fingerprint(message), **fields)  # type: ignore[arg-type]


def said(scope: Scope = CHAT, verb: str = "onMessage") -> AuditDraft:
    return AuditDraft(verb=verb, actor="test", session_id=scope.session_id)


async def add(store: Store, *entries: Entry, scope: Scope = CHAT, **options: object):  # type: ignore[no-untyped-def]
    return await store.append(scope, entries, said(scope), gaps=GAPS, **options)  # type: ignore[arg-type]


async def texts(store: Store, scope: Scope = CHAT) -> list[object]:
    return [logged.message.content for logged in await store.messages(scope, limit=10_000)]


# ── the log ──


async def test_what_was_appended_comes_back_as_it_was(store: Store) -> None:
    message = Message(
        role="assistant",
        content=[
            {"type": "text", "text": "你好 👋 \x00 end"},
            {
                "type": "tool-call",
                "id": "c1",
                "name": "search",
                "arguments": {"q": "x", "n": 1.5, "deep": [None, True]},
            },
            {"type": "something-new", "payload": {"kept": "as it is"}},
        ],
        id="m-1",
        ts=NOON,
        name="Ada",
        tool_call_id="c0",
        model="fake-1",
        origin="web",
        meta={"run": 7},
    )
    whole = Entry(
        message=message,
        noise="short",
        redactions={"aws-key": 2},
        blobs=[BlobRef(path=[0, "text"], sha256="ab" * 32, chars=9, bytes=12)],
        chars=12,
        fingerprint=b"f" * 16,
    )
    receipt = await add(store, whole)
    (logged,) = await store.messages(CHAT)
    assert (receipt.accepted, receipt.first_seq, receipt.last_seq) == (1, 1, 1)
    assert logged.entry == whole
    assert logged.seq == 1


async def test_a_message_without_a_time_gets_the_time_it_arrived(store: Store) -> None:
    await add(store, entry("when was that?", ts=None))
    (logged,) = await store.messages(CHAT)
    assert logged.message.ts == logged.received_at


async def test_sequence_numbers_have_no_gaps(store: Store) -> None:
    first = await add(store, entry("one", id="1"), entry("two", id="2"))
    second = await add(store, entry("two", id="2"), entry("three", id="3"))
    assert (first.first_seq, first.last_seq) == (1, 2)
    assert (second.accepted, second.duplicates, second.first_seq, second.last_seq) == (1, 1, 2, 3)
    assert [logged.seq for logged in await store.messages(CHAT)] == [1, 2, 3]


async def test_a_retry_is_counted_and_not_stored_again(store: Store) -> None:
    first = await add(store, entry("hello", id="1"))
    again = await add(store, entry("hello", id="1", ts=NOON + timedelta(seconds=3)))
    assert (again.accepted, again.duplicates, again.conflicts) == (0, 1, [])
    assert (again.first_seq, again.last_seq) == (first.first_seq, first.last_seq)
    assert await texts(store) == ["hello"]


async def test_a_duplicate_inside_one_batch_is_found(store: Store) -> None:
    receipt = await add(store, entry("hello", id="1"), entry("hello", id="1"))
    assert (receipt.accepted, receipt.duplicates) == (1, 1)


async def test_the_same_id_with_other_content_is_reported_and_not_overwritten(store: Store) -> None:
    await add(store, entry("the truth", id="1"))
    receipt = await add(store, entry("something else", id="1"))
    assert [(conflict.id, conflict.seq) for conflict in receipt.conflicts] == [("1", 1)]
    assert await texts(store) == ["the truth"]
    assert (await store.counts("main")).conflicts == 1


async def test_equal_messages_without_ids_are_all_kept(store: Store) -> None:
    await add(store, entry("yes"), entry("yes"))
    await add(store, entry("yes"))
    assert await texts(store) == ["yes", "yes", "yes"]


async def test_order_is_order_of_arrival_across_concurrent_writers(store: Store) -> None:
    async def writer(name: str) -> None:
        for number in range(20):
            await add(store, entry(f"{name} {number}", id=f"{name}-{number}"))

    await asyncio.gather(*[writer(f"w{index}") for index in range(8)])
    log = [str(text) for text in await texts(store)]
    assert len(log) == 160
    for index in range(8):
        mine = [text for text in log if text.startswith(f"w{index} ")]
        assert mine == [f"w{index} {number}" for number in range(20)]
    assert [logged.seq for logged in await store.messages(CHAT, limit=1_000)] == list(range(1, 161))


async def test_a_session_with_its_newest_messages(store: Store) -> None:
    assert await store.session_and_newest(CHAT, limit=3) == (None, [])
    await add(store, *[entry(str(number)) for number in range(1, 8)])
    session, newest = await store.session_and_newest(CHAT, limit=3)
    assert session == await store.session(CHAT)
    assert newest == await store.messages_before(CHAT, before_seq=8, limit=3)


async def test_reading_backwards(store: Store) -> None:
    await add(store, *[entry(str(number)) for number in range(1, 8)])
    before = await store.messages_before(CHAT, before_seq=6, limit=3)
    assert [logged.seq for logged in before] == [5, 4, 3]
    assert await store.messages_before(CHAT, before_seq=1) == []


async def test_it_is_still_there_after_opening_again(open_store: OpenStore) -> None:
    store = open_store()
    await add(store, entry("remember me", id="1"))
    key = await store.installation_key()
    await store.close()
    again = open_store()
    assert await texts(again) == ["remember me"]
    assert (await add(again, entry("remember me", id="1"))).duplicates == 1
    assert await again.installation_key() == key
    assert len(key) == 32
    await again.close()


# ── isolation ──


async def test_two_agents_with_the_same_session_never_meet(store: Store) -> None:
    theirs = Scope(agent_id="other", session_id="chat")
    await add(store, entry("mine", id="1"))
    await add(store, entry("theirs", id="1"), scope=theirs)
    assert await texts(store) == ["mine"]
    assert await texts(store, theirs) == ["theirs"]
    assert (await store.counts("main")).messages == 1
    assert [session.agent_id for session in await store.sessions("main")] == ["main"]
    assert {event.agent_id for event in await store.newest_audit_events("other")} == {"other"}
    assert await store.agents() == ["main", "other"]


@pytest.mark.parametrize("name", ["%", "a'; DROP TABLE messages; --", "名前", "a/../b", " "])
async def test_names_are_only_names(store: Store, name: str) -> None:
    odd = Scope(agent_id=name, session_id=name)
    await add(store, entry("in the odd one"), scope=odd)
    assert await texts(store, odd) == ["in the odd one"]
    assert await texts(store) == []


async def test_nothing_is_known_of_a_stranger(store: Store) -> None:
    nobody = Scope(agent_id="nobody", session_id="none")
    assert await store.session(nobody) is None
    assert await store.messages(nobody) == []
    assert await store.marks(nobody) == []
    assert await store.counts("nobody") == Counts()
    assert await store.captures("nobody") == []
    assert await store.audit_head("nobody") == GENESIS


async def test_which_ids_a_session_does_not_hold(store: Store) -> None:
    await add(store, entry("one", id="1"), entry("two", id='"quoted", ü 👋'), entry("three"))
    await add(store, entry("four", id="4"), scope=Scope(agent_id="main", session_id="work"))
    await add(store, entry("five", id="5"), scope=Scope(agent_id="other", session_id="chat"))
    assert await store.missing(CHAT, ["5", "1", "4", '"quoted", ü 👋', "none", "4", "I", "null"]) == [
        *("5", "4", "none", "I", "null")
    ]
    assert await store.missing(CHAT, ["1"]) == []
    placed = await store.messages_at("main", await store.places_of(CHAT, ['"quoted", ü 👋', "5", "1"]))
    assert [(each.session_id, each.logged.seq) for each in placed] == [("chat", 1), ("chat", 2)]
    assert await store.missing(CHAT, []) == []
    assert await store.missing(Scope(agent_id="other", session_id="chat"), ["1", "5"]) == ["1"]


async def test_of_a_session_that_is_not_there_every_id_is_missing(store: Store) -> None:
    await add(store, entry("one", id="1"))
    for scope in (Scope(agent_id="nobody", session_id="chat"), Scope(agent_id="main", session_id="none")):
        assert await store.missing(scope, ["1", "2"]) == ["1", "2"]
        assert await store.session(scope) is None
    assert await store.agents() == ["main"]
    assert len(await store.audit_events("main")) == 1


async def test_a_thousand_ids_are_asked_for_at_once(store: Store) -> None:
    await add(store, *[entry(f"number {number}", id=str(number)) for number in range(0, 1_000, 2)])
    assert await store.missing(CHAT, [str(number) for number in range(1_000)]) == [
        str(number) for number in range(1, 1_000, 2)
    ]


# ── sessions ──


async def test_a_session_knows_which_one_started_it(open_store: OpenStore) -> None:
    store = open_store()
    child = Scope(agent_id="main", session_id="child")
    start = said(child, "hooks/session-start")
    await store.mark(child, Mark(kind="start", at=NOON), start, parent_session_id="agent:other:chat")
    await add(store, entry("hello"), scope=child)
    await add(store, entry("hello"))
    await store.close()
    store = open_store()
    session = await store.session(child)
    assert session is not None
    assert (session.parent_session_id, session.last_seq) == ("agent:other:chat", 1)
    assert await store.session_note(child, PARENT_NOTE) == "agent:other:chat"
    parents = {"chat": None, "child": "agent:other:chat"}
    assert {one.session_id: one.parent_session_id for one in await store.sessions("main")} == parents
    assert {one.session_id: one.parent_session_id for one in await store.sessions_after("main")} == parents
    assert await store.agents() == ["main"]
    await store.close()


async def test_the_event_of_a_start_says_which_parent_is_noted(store: Store) -> None:
    start = said(verb="hooks/session-start")
    for parent in (None, "first", None, "second"):
        await store.mark(CHAT, Mark(kind="start", at=NOON), start, parent_session_id=parent)
    await store.set_session_note(CHAT, PARENT_NOTE, "third")
    await store.mark(CHAT, Mark(kind="start", at=NOON), start)
    await store.mark(CHAT, Mark(kind="end", at=NOON), said(verb="hooks/session-end"))
    events = await store.audit_events("main")
    told = [event.details.get("parentSessionId") for event in events]
    assert told == [None, "first", "first", "second", "third", None]
    assert "parentSessionId" not in events[0].details
    session = await store.session(CHAT)
    assert session is not None
    assert session.parent_session_id == "third"
    assert (await store.counts("main")).sessions == 1


async def test_gaps_are_marked(store: Store) -> None:
    for hours in (0, 1, 4, 11, 2):  # the last: a clock that jumped back
        await add(store, entry(f"after {hours} hours", ts=NOON + timedelta(hours=hours)))
    marks = await store.marks(CHAT)
    assert [(mark.kind, mark.seq) for mark in marks] == [("first", 0), ("interrupted", 2), ("new", 3)]


async def test_gaps_inside_a_batch_are_marked_too(store: Store) -> None:
    await add(store, *[entry(f"after {hours} hours", ts=NOON + timedelta(hours=hours)) for hours in (0, 10, 13, 14)])
    assert [(mark.kind, mark.seq) for mark in await store.marks(CHAT)] == [("first", 0), ("new", 1), ("interrupted", 2)]


async def test_an_end_is_recorded_with_its_reason_and_lifted_by_the_next_message(store: Store) -> None:
    await add(store, entry("hello"))
    await store.mark(CHAT, Mark(kind="end", at=NOON, reason="reset"), said(verb="hooks/session-end"))
    ended = await store.session(CHAT)
    assert ended is not None
    assert (ended.end_reason, ended.ended_at, ended.last_seq) == ("reset", NOON, 1)
    await add(store, entry("here again"))
    again = await store.session(CHAT)
    assert again is not None
    assert (again.ended_at, again.end_reason) == (None, None)
    assert [(mark.kind, mark.reason) for mark in await store.marks(CHAT)] == [("first", None), ("end", "reset")]


async def test_a_command_behind_the_end_opens_nothing(store: Store) -> None:
    """A host writes `/new` and its answer after it has told of the end."""
    await add(store, entry("hello"))
    await store.mark(CHAT, Mark(kind="end", at=NOON, reason="new"), said(verb="hooks/session-end"))
    await add(store, entry("/new", noise="command"), entry("New session started.", noise="command"))
    ended = await store.session(CHAT)
    assert ended is not None
    assert (ended.end_reason, ended.ended_at, ended.last_seq) == ("new", NOON, 3)
    await add(store, entry("[cron:daily] look", noise="cron"))
    again = await store.session(CHAT)
    assert again is not None
    assert again.ended_at is None


async def test_sessions_come_newest_first(store: Store) -> None:
    for name in ("a", "b", "c", "a", "b"):
        await add(store, entry("hello"), scope=Scope(agent_id="main", session_id=name))
    assert [session.session_id for session in await store.sessions("main")] == ["b", "a", "c"]
    assert [session.session_id for session in await store.sessions("main", limit=2)] == ["b", "a"]


async def test_sessions_are_found_by_a_part_of_their_ids(store: Store) -> None:
    for name in ("Garden-1", "work", "garden-2"):
        await add(store, entry("hello"), scope=Scope(agent_id="main", session_id=name))
    assert [session.session_id for session in await store.sessions("main", matching="GARDEN")] == [
        "garden-2",
        "Garden-1",
    ]
    assert await store.sessions("main", matching="kitchen") == []


# ── counts and capture ──


async def test_the_days_on_which_something_was_said(store: Store) -> None:
    other = Scope(agent_id="main", session_id="other")
    await add(store, entry("one"), entry("four", ts=NOON + timedelta(hours=13)))
    await add(store, entry("two"), entry("old", ts=NOON - timedelta(days=400)), scope=other)
    await add(store, entry("not mine"), scope=Scope(agent_id="somebody", session_id="chat"))
    days = await store.activity("main", since=NOON.date() - timedelta(days=30))
    assert [(day.day, day.messages, day.chars) for day in days] == [("2026-11-15", 2, 6), ("2026-11-16", 1, 4)]
    assert await store.activity("nobody", since=NOON.date()) == []


async def test_counts(store: Store) -> None:
    await add(store, entry("12345", noise="short", redactions={"jwt": 2}), entry("1234567", id="1"))
    await add(store, entry("1234567", id="1"))
    counts = await store.counts("main")
    assert counts == Counts(
        messages=2, chars=12, sessions=1, noise=1, duplicates=1, conflicts=0, redactions=2, blobs=0, audit_events=2
    )


async def test_counts_are_exact_however_many_events_there_were(store: Store) -> None:
    for number in range(700):
        await add(store, entry("12345", id=str(number % 600)), scope=Scope(agent_id="main", session_id=str(number % 3)))
    counts = await store.counts("main")
    assert (counts.messages, counts.duplicates, counts.chars, counts.sessions) == (600, 100, 3_000, 3)
    assert counts.audit_events == 700


async def test_counts_and_activity_outlive_the_process(open_store: OpenStore) -> None:
    store = open_store()
    for name in ("a", "b", "a"):
        await add(store, entry("12345"), scope=Scope(agent_id="main", session_id=name))
    before = await store.counts("main"), await store.sessions("main")
    await store.close()
    again = open_store()
    assert (await again.counts("main"), await again.sessions("main")) == before
    await again.close()


async def test_capture_tells_retries_from_losses(store: Store) -> None:
    def claim(first: int, last: int, sent: int) -> CaptureClaim:
        return CaptureClaim(client="laptop", first=first, last=last, sent=sent)

    await add(store, entry("1", id="1"), entry("2", id="2"), claim=claim(1, 2, 5))
    await add(store, entry("1", id="1"), entry("2", id="2"), claim=claim(1, 2, 5))  # the answer was lost: a retry
    await add(store, entry("5", id="5"), claim=claim(5, 5, 9))  # 3 and 4 never came
    (capture,) = await store.captures("main")
    assert (capture.sent, capture.received, capture.missing, capture.waiting) == (9, 3, 2, 4)


# ── audit ──


async def test_every_write_leaves_one_event_in_one_chain(store: Store) -> None:
    await add(store, entry("hello", id="1"))
    await store.mark(CHAT, Mark(kind="start", at=NOON), said(verb="hooks/session-start"))
    event = await store.record("main", AuditDraft(verb="status", actor="test", details={"b": 1, "a": [1.5, None]}))
    events = await store.audit_events("main")
    assert [event.verb for event in events] == ["onMessage", "hooks/session-start", "status"]
    assert events[-1] == event
    assert not list(chain_faults(events, GENESIS))
    head = await store.audit_head("main")
    assert (head.seq, head.hash) == (3, events[-1].hash)
    assert "hello" not in str(events)


async def test_events_can_be_asked_for_by_session_and_from_a_place(store: Store) -> None:
    for name in ("a", "b", "a"):
        await add(store, entry("hello"), scope=Scope(agent_id="main", session_id=name))
    assert [event.seq for event in await store.audit_events("main", session_id="a")] == [1, 3]
    assert [event.seq for event in await store.audit_events("main", after_seq=1, limit=1)] == [2]
    assert [event.seq for event in await store.newest_audit_events("main", limit=2)] == [2, 3]


async def test_the_newest_events_of_some_verbs_before_an_event_and_a_time(store: Store) -> None:
    said_in = {"a": ["onMessage", "swap", "recall", "onMessage", "compress", "swap"], "b": ["swap", "compress"]}
    for session_id, verbs in said_in.items():
        for verb in verbs:
            await store.record("main", AuditDraft(verb=verb, actor="test", session_id=session_id))
    await store.record("main", AuditDraft(verb="compress", actor="test"))

    async def seqs(**asked: Any) -> list[int]:
        return [event.seq for event in await store.newest_audit_events("main", **asked)]

    assert await seqs() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert await seqs(before_seq=4) == [1, 2, 3]
    assert await seqs(before_seq=4, limit=2) == [2, 3]
    assert await seqs(before_seq=1) == await seqs(before_seq=-1) == await seqs(limit=0) == []
    assert await seqs(before_seq=2**70) == await seqs()
    assert await seqs(verbs=["swap", "compress"]) == [2, 5, 6, 7, 8, 9]
    assert await seqs(verbs=["swap", "compress"], session_id="a") == [2, 5, 6]
    assert await seqs(verbs=["compress", "swap", "swap"], session_id="a", limit=2) == [5, 6]
    assert await seqs(verbs=["swap"], session_id="a", before_seq=6) == [2]
    assert await seqs(verbs=["onMessage", "swap"], session_id="a") == [1, 2, 4, 6]
    assert await seqs(verbs=["onMessage"], session_id="a", limit=1) == [4]
    assert await seqs(verbs=["swap"], session_id="a", limit=0) == []
    for nothing in ([], ["unheard of"]):
        assert await seqs(verbs=nothing) == await seqs(verbs=nothing, session_id="a") == []
    assert await seqs(verbs=["swap"], session_id="nowhere") == []
    assert await store.newest_audit_events("other", session_id="a", verbs=["swap"]) == []

    times = [event.at for event in await store.audit_events("main")]
    for session_id in (None, "a"):
        through = [seq for seq in await seqs(session_id=session_id) if times[seq - 1] <= times[4]]
        assert await seqs(session_id=session_id, until=times[4]) == through
    swaps = [seq for seq in (2, 6) if times[seq - 1] <= times[2]]
    assert await seqs(session_id="a", verbs=["swap"], until=times[2]) == swaps
    assert await seqs(until=times[0] - timedelta(days=1)) == []
    assert await seqs(session_id="a", verbs=["swap"], until=times[0] - timedelta(days=1)) == []


async def test_a_whole_store_verifies(store: Store) -> None:
    for number in range(30):
        await add(store, entry(f"a {number}"), entry(f"b {number}", id=f"{number % 7}"))
        await store.record("main", AuditDraft(verb="status", actor="test"))
    assert [fault async for fault in verify(store, "main")] == []


async def test_who_verifies_gets_the_same_with_what_is_noted_beside_it(store: Store) -> None:
    await add(store, entry("12345"), entry("1234567"))
    await add(store, entry("123"))
    rows = await store.examined_messages(CHAT, after_seq=1, limit=2)
    assert [row.logged for row in rows if isinstance(row, ExaminedMessage)] == await store.messages(CHAT, after_seq=1)
    assert [row.chars_through for row in rows if isinstance(row, ExaminedMessage)] == [12, 15]
    assert await store.examined_audit_events("main", after_seq=1) == await store.audit_events("main", after_seq=1)
    assert await store.examined_messages(Scope(agent_id="nobody", session_id="none")) == []


async def test_counts_are_noted_with_the_head_they_count_to(store: Store) -> None:
    assert await store.noted_counts("nobody") == (GENESIS, Counts())
    for number in range(300):
        await add(store, entry("12345", id=str(number)))
    head, counts = await store.noted_counts("main")
    assert 0 < head.seq == counts.audit_events == counts.messages
    assert (await store.audit_events("main", after_seq=head.seq - 1, limit=1))[0].hash == head.hash


# ── care ──


async def test_a_backup_is_a_whole_store(store: Store, tmp_path: Path, open_store: OpenStore) -> None:
    async def keep_writing() -> None:
        for number in range(200):
            await add(store, entry(f"while it runs {number}"))

    await add(store, *[entry(f"before {number}") for number in range(50)])
    copy = tmp_path / "copy.db"
    await asyncio.gather(store.backup(copy), keep_writing())
    assert copy.stat().st_size > 0
    with pytest.raises(StoreError, match="exists"):
        await store.backup(copy)


async def test_a_healthy_store_has_no_faults(store: Store) -> None:
    await add(store, entry("hello"))
    assert [fault async for fault in store.faults()] == []


async def test_a_closed_store_says_so(open_store: OpenStore) -> None:
    store = open_store()
    await store.close()
    await store.close()
    with pytest.raises(StoreError):
        await add(store, entry("too late"))
    with pytest.raises(StoreError):
        await store.messages(CHAT)


async def test_an_operation_that_fails_takes_no_other_with_it(store: Store) -> None:
    broken = msgspec.structs.replace(entry("broken"), chars="not a number")
    outcomes = await asyncio.gather(
        add(store, entry("before")), add(store, broken), add(store, entry("after")), return_exceptions=True
    )
    assert isinstance(outcomes[1], StoreError)
    assert await texts(store) == ["before", "after"]
    assert [fault async for fault in verify(store, "main")] == []


# ── properties ──

batches = st.lists(
    st.tuples(
        st.sampled_from(["main", "other"]),
        st.sampled_from(["chat", "work"]),
        st.lists(st.tuples(st.sampled_from([None, "1", "2", "3"]), st.text(max_size=20)), min_size=1, max_size=4),
    ),
    max_size=12,
)


@given(batches)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_any_history_is_kept_once_and_in_order(tmp_path_factory: pytest.TempPathFactory, history) -> None:  # type: ignore[no-untyped-def]
    from tests.contract.conftest import fresh_stores

    for store in fresh_stores(tmp_path_factory):
        expected: dict[Scope, list[str]] = {}
        seen: dict[tuple[Scope, str], int] = {}
        for agent, session, messages in history:
            scope = Scope(agent_id=agent, session_id=session)
            receipt = await add(store, *[entry(text, id=id) for id, text in messages], scope=scope)
            accepted = 0
            for id, text in messages:
                if id is None or (scope, id) not in seen:
                    expected.setdefault(scope, []).append(text)
                    seen[scope, id or ""] = 1
                    accepted += 1
            assert receipt.accepted == accepted
            assert receipt.duplicates == len(messages) - accepted
        for scope, log in expected.items():
            assert await texts(store, scope) == log
        for agent in await store.agents():
            assert [fault async for fault in verify(store, agent)] == []
        await store.close()
