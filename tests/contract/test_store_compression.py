"""What every store promises to compression (`protocols.Store`): summaries, their cost, contexts, notes of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.store import Store
from offbook.log.verification import verify
from offbook.model.errors import StoreError
from offbook.model.summary import (
    Completion,
    Dropped,
    HandedContext,
    Ledger,
    Loss,
    Node,
    SourceSpan,
    Spending,
    StateRecord,
    Summary,
    SummaryDraft,
    SummaryText,
    Usage,
)
from offbook.model.types import AuditDraft, Message, Part, Scope, now
from tests.contract.test_store import CHAT, NOON, add, entry

OpenStore = Callable[[], Store]
WORK = Scope(agent_id="main", session_id="work")
THEIRS = Scope(agent_id="other", session_id="chat")
DAY = NOON.date()
MADE = AuditDraft(verb="summarize", actor="test", session_id="chat", details={"level": 1})
AGAIN = AuditDraft(verb="summarize", actor="test", details={"again": True})
SWAP = AuditDraft(verb="swap", actor="test", session_id="chat", details={"generation": 1})
BROKEN = AuditDraft(verb="summarize", actor="test", details={"unwritable": object()})
NO_IDS = ["", "L1-1", "L1-00001", "L0-0001", "L10-0001", "L1-0099", "L1-" + "9" * 18, "L1-" + "9" * 40, "L١-0001", "x"]


def span(first: int, last: int, session_id: str = "chat") -> SourceSpan:
    return SourceSpan(session_id=session_id, first_seq=first, last_seq=last)


def draft(*spans: SourceSpan, level: int = 1, **fields: Any) -> SummaryDraft:
    """Times rise with the number of the first message."""
    first_at = NOON + timedelta(minutes=spans[0].first_seq if spans else 0)
    given = {
        "text": "They moved the harbour trip.\nIt is on Friday.",
        "rank": [1, 0],
        "brief": "harbour trip",
        "source_messages": 4,
        "source_tokens": 400,
        "tokens": 40,
        "first_at": first_at,
        "last_at": first_at + timedelta(minutes=1),
        "summarizer": "extractive",
        "prompt_version": "1",
        "fingerprint": "f" * 64,
    } | fields
    return SummaryDraft(level=level, spans=list(spans), **given)


async def talk(store: Store, messages: int, scope: Scope = CHAT) -> None:
    await add(store, *[entry(f"message {number}") for number in range(messages)], scope=scope)


async def made(store: Store, *spans: SourceSpan, agent_id: str = "main", **fields: Any) -> Summary:
    return await store.add_summary(agent_id, draft(*spans, **fields), MADE)


def ids(found: list[Summary] | list[Node]) -> list[str]:
    return [each.id for each in found]


def context(generation: int, at: datetime = NOON, **fields: Any) -> HandedContext:
    given = {
        "kind": "swap",
        "last_seq": 3,
        "used_tokens": 900,
        "context_window": 1_000,
        "tokens_after": 90,
        "max_chars": 400,
        "memory": "what stays",
        "messages": [Message(role="user", content="你好 👋 \x00", ts=NOON)],
        "parts": [Part(kind="summary", first_seq=1, last_seq=2, chars=9, id="L1-0001", level=1)],
        "ledger": Ledger(),
    } | fields
    return HandedContext(generation=generation, at=at, **given)


async def generation(store: Store, scope: Scope = CHAT) -> int:
    session = await store.session(scope)
    assert session is not None
    return session.generation


async def verbs(store: Store, agent_id: str = "main") -> list[str]:
    return [event.verb for event in await store.audit_events(agent_id, limit=10_000)]


async def no_faults(store: Store, agent_id: str = "main") -> bool:
    faults = [fault async for fault in verify(store, agent_id)] + [fault async for fault in store.faults()]
    return not faults + [fault async for fault in store.derived_faults()]


# ── adding summaries ──


async def test_a_summary_comes_back_as_it_was(store: Store) -> None:
    await talk(store, 8)
    whole = draft(
        span(2, 5),
        text="你好 👋 \x00 end\nsecond",
        rank=[0, 1],
        brief="你好 \x00 👋",
        usage=Usage(input_tokens=900, cached_tokens=800, output_tokens=70, dollars=0.0123456789),
        kept=[Loss(kind="name", text="Ada", session_id="chat", seq=2)],
        losses=[Loss(kind="number", text="14:20", session_id="chat", seq=3)],
        lost=7,
        first_at=NOON + timedelta(microseconds=1),
    )
    before = now()
    summary = await store.add_summary("main", whole, MADE)
    assert (summary.id, summary.agent_id, summary.parent) == ("L1-0001", "main", None)
    assert before <= summary.made_at <= now()
    assert summary.draft == whole
    assert await store.summary("main", "L1-0001") == summary
    assert await store.summary_texts("main", ["L1-0001"]) == {
        "L1-0001": SummaryText(text=whole.text, rank=[0, 1], kept=whole.kept, losses=whole.losses, lost=7)
    }


async def test_numbers_are_those_of_the_agent_and_level(store: Store) -> None:
    await talk(store, 8)
    await talk(store, 8, WORK)
    await talk(store, 8, THEIRS)
    found = [
        await made(store, span(1, 2)),
        await made(store, span(1, 2, "work")),
        await made(store, span(1, 4), level=2),
        await made(store, span(1, 2), agent_id="other"),
        await made(store, span(3, 4)),
    ]
    assert ids(found) == ["L1-0001", "L1-0002", "L2-0001", "L1-0001", "L1-0003"]


async def test_the_event_says_which_it_is(store: Store) -> None:
    await talk(store, 2)
    await made(store, span(1, 2))
    (event,) = await store.audit_events("main", after_seq=1)
    assert (event.verb, event.session_id, event.details) == ("summarize", "chat", {"level": 1, "id": "L1-0001"})


async def test_the_same_again_changes_nothing(store: Store) -> None:
    await talk(store, 4)
    first = await made(store, span(1, 2))
    for event, summarizer in ((MADE, "extractive"), (AGAIN, "extractive"), (MADE, "openai:a-model")):
        same = draft(span(1, 2), text="another text", summarizer=summarizer)
        assert await store.add_summary("main", same, event) == first
    assert await store.summaries("main") == [first]
    assert await store.summary_counts("main") == {1: 1}
    assert await verbs(store) == ["onMessage", "summarize"]


async def test_two_that_come_at_once_are_one(store: Store) -> None:
    await talk(store, 4)
    both = await asyncio.gather(made(store, span(1, 2)), made(store, span(1, 2), text="another"))
    assert both[0] == both[1]
    assert await store.summary_counts("main") == {1: 1}


async def test_another_summarizer_may_write_it_again_under_its_id(store: Store) -> None:
    await talk(store, 8)
    first, second = await made(store, span(1, 2)), await made(store, span(3, 4))
    merged = await made(store, span(1, 4), level=2, sources=[first.id, second.id])
    better = draft(span(1, 2), text="better", brief="b", tokens=5, rank=[0], summarizer="openai:a-model", lost=1)
    again = await store.add_summary("main", better, AGAIN)
    assert (again.id, again.parent, again.draft) == (first.id, merged.id, better)
    assert again.made_at >= first.made_at
    assert await store.summary("main", first.id) == again
    assert ids(await store.summaries("main")) == [merged.id, second.id, first.id]
    assert (await store.summary_texts("main", [first.id]))[first.id].text == "better"
    node = (await store.nodes(CHAT, level=1, through_seq=2))[0]
    assert (node.id, node.chars, node.tokens, node.brief, node.parent) == (first.id, 6, 5, "b", merged.id)

    best = draft(span(1, 4), level=2, text="best", sources=[second.id, first.id], summarizer="openai:a-model")
    assert (await store.add_summary("main", best, AGAIN)).id == merged.id
    assert await store.summary_counts("main") == {1: 2, 2: 1}
    assert [event.details for event in await store.audit_events("main", after_seq=4)] == [
        {"again": True, "id": first.id},
        {"again": True, "id": merged.id},
    ]


async def test_what_is_written_again_keeps_its_sources(store: Store) -> None:
    await talk(store, 8)
    first, second, third = [await made(store, span(each, each + 1)) for each in (1, 3, 5)]
    merged = await made(store, span(1, 4), level=2, sources=[first.id, second.id])
    for sources in ([], [first.id], [first.id, second.id, third.id]):
        other = draft(span(1, 4), level=2, sources=sources, summarizer="openai:a-model")
        with pytest.raises(StoreError, match="L2-0001 merges"):
            await store.add_summary("main", other, AGAIN)
    assert await store.summary("main", merged.id) == merged


# ── what is refused ──


@pytest.mark.parametrize(
    "spans",
    [
        [span(1, 4)],
        [span(3, 3)],
        [span(4, 6)],
        [span(1, 9)],
        [span(2, 4)],
        [span(3, 5)],
        [span(3, 4), span(1, 2, "work")],
        [span(1, 2, "work"), span(4, 8)],
    ],
)
async def test_those_of_one_level_do_not_overlap(store: Store, spans: list[SourceSpan]) -> None:
    await talk(store, 9)
    await talk(store, 9, WORK)
    kept = [await made(store, span(3, 4)), await made(store, span(7, 7))]
    with pytest.raises(StoreError, match="stands for some of"):
        await made(store, *spans)
    assert await store.summaries("main") == kept[::-1]
    assert await store.nodes(WORK, level=1) == []
    assert await verbs(store) == ["onMessage", "onMessage", "summarize", "summarize"]
    assert ids([await made(store, *spans, level=2)]) == ["L2-0001"]


async def test_those_side_by_side_do_not_overlap(store: Store) -> None:
    await talk(store, 9)
    for first, last in ((4, 6), (1, 3), (9, 9), (7, 8)):
        await made(store, span(first, last))
    assert [node.last_seq for node in await store.nodes(CHAT, level=1)] == [9, 8, 6, 3]


async def test_one_of_several_sessions_overlaps_too(store: Store) -> None:
    await talk(store, 9)
    await talk(store, 9, WORK)
    both = await made(store, span(1, 4), span(1, 9, "work"))
    assert await made(store, span(1, 9, "work"), span(1, 4)) == both
    for spans in ([span(1, 4)], [span(5, 9, "work")], [span(1, 4), span(1, 8, "work")]):
        with pytest.raises(StoreError, match="stands for some of"):
            await made(store, *spans)
    assert (await made(store, span(5, 9))).id == "L1-0002"


@pytest.mark.parametrize(
    "spans",
    [
        [],
        [span(1, 10)],
        [span(5, 4)],
        [span(10, 12)],
        [span(0, 3)],
        [span(1, 2**70)],
        [span(1, 2, "none")],
        [span(1, 2, "")],
        [span(1, 2, "hers")],
        [span(1, 2), span(1, 2, "hers")],
        [span(1, 4), span(4, 5)],
        [span(4, 5), span(1, 4)],
    ],
)
async def test_spans_lie_in_the_agents_log(store: Store, spans: list[SourceSpan]) -> None:
    await talk(store, 9)
    await talk(store, 9, Scope(agent_id="other", session_id="hers"))
    with pytest.raises(StoreError):
        await made(store, *spans)
    assert await store.summaries("main") == []
    assert await store.summarised_through(CHAT) == 0
    assert await verbs(store) == ["onMessage"]


async def test_a_stranger_has_nothing_to_summarise(store: Store) -> None:
    await talk(store, 9)
    with pytest.raises(StoreError, match="'nobody' has no session 'chat'"):
        await made(store, span(1, 2), agent_id="nobody")
    assert await store.agents() == ["main"]


@pytest.mark.parametrize("fields", [{"level": 0}, {"level": 10}, {"text": 5}, {"text": "\ud800"}, {"losses": ["none"]}])
async def test_what_could_not_be_read_again_is_refused(store: Store, fields: dict[str, Any]) -> None:
    await talk(store, 9)
    with pytest.raises(StoreError, match="could not be read again"):
        await made(store, span(1, 2), **fields)
    assert await store.summary_counts("main") == {}


async def test_sources_know_what_merges_them(store: Store) -> None:
    await talk(store, 9)
    first, second, third = [await made(store, span(each, each)) for each in (1, 2, 3)]
    merged = await made(store, span(1, 2), level=2, sources=[first.id, second.id, first.id])
    assert [summary.parent for summary in await store.summaries("main", level=1)] == [None, merged.id, merged.id]
    assert [node.parent for node in await store.nodes(CHAT, level=1)] == [None, merged.id, merged.id]
    assert await store.summary("main", merged.id) == merged
    assert ids(await store.unmerged("main", level=1)) == [third.id]


async def test_a_source_is_the_agents_and_merged_once(store: Store) -> None:
    await talk(store, 9)
    await talk(store, 9, THEIRS)
    first, second, third = [await made(store, span(each, each)) for each in (1, 2, 3)]
    theirs = [await made(store, span(each, each), agent_id="other") for each in (1, 2, 3, 4)][-1]
    await made(store, span(1, 1), level=2, sources=[first.id])
    for wrong in (first.id, theirs.id, "L2-0002", *NO_IDS):
        with pytest.raises(StoreError, match=r"merged"):
            await made(store, span(2, 3), level=2, sources=[second.id, wrong, third.id])
    assert ids(await store.unmerged("main", level=1)) == [second.id, third.id]
    assert await store.summary_counts("main") == {1: 3, 2: 1}
    assert len(await store.unmerged("other", level=1)) == 4
    assert (await made(store, span(2, 3), level=2, sources=[second.id, third.id])).id == "L2-0002"


async def test_a_merge_tried_again_is_the_one_that_is_there(store: Store) -> None:
    """Who was killed between the write and its answer comes with the same sources, merged by now."""
    await talk(store, 9)
    sources = ids([await made(store, span(each, each)) for each in (1, 2)])
    merged = await made(store, span(1, 2), level=2, sources=sources)
    assert await made(store, span(1, 2), level=2, sources=sources) == merged


# ── reading summaries ──


async def test_the_newest_made_come_first_and_in_pieces(store: Store) -> None:
    await talk(store, 40)
    await talk(store, 30, WORK)
    everything = []
    for number in range(1, 21):
        everything.append(await made(store, span(number, number)))
        if number % 2 == 0:
            everything.append(await made(store, span(21 - number, 21 - number, "work")))
            everything.append(await made(store, span(number - 1, number), level=2))
        if number % 10 == 0:
            spans = span(number - 9, number), span(number - 9, number, "work"), span(20 + number, 20 + number)
            everything.append(await made(store, *spans, level=3))
    everything.reverse()

    async def in_pieces(limit: int, **which: Any) -> list[Summary]:
        found = await store.summaries("main", limit=limit, **which)
        while len(piece := await store.summaries("main", before=found[-1].id, limit=limit, **which)):
            assert len(piece) <= limit
            found += piece
        return found

    def expected(level: int | None, session_id: str | None) -> list[Summary]:
        return [
            summary
            for summary in everything
            if level in (None, summary.draft.level)
            and (session_id is None or any(each.session_id == session_id for each in summary.draft.spans))
        ]

    for level in (None, 1, 2, 3):
        for session_id in (None, "chat", "work"):
            wanted = expected(level, session_id)
            assert await store.summaries("main", level=level, session_id=session_id) == wanted
            if wanted:
                assert await in_pieces(7, level=level, session_id=session_id) == wanted
    before = next(summary for summary in everything if summary.draft.level == 2)
    later = everything.index(before)
    assert (
        await store.summaries("main", level=1, before=before.id, limit=2)
        == [summary for summary in everything[later:] if summary.draft.level == 1][:2]
    )
    assert await store.summaries("main", limit=0) == []
    assert await store.summaries("main", level=7) == await store.summaries("main", level=99) == []


async def test_nothing_lies_before_a_summary_that_is_not_there(store: Store) -> None:
    await talk(store, 9)
    await made(store, span(1, 2))
    for unknown in NO_IDS:
        assert await store.summaries("main", before=unknown) == []
        assert await store.summary("main", unknown) is None
    assert await store.summary_texts("main", [*NO_IDS, "L1-0001", "L1-0001"]) == await store.summary_texts(
        "main", ["L1-0001"]
    )


async def test_nodes_are_those_that_end_last_and_not_after(store: Store) -> None:
    await talk(store, 20)
    await talk(store, 20, WORK)
    for first, last in ((5, 8), (1, 4), (9, 12)):
        await made(store, span(first, last))
    await made(store, span(13, 16), span(1, 4, "work"))
    await made(store, span(5, 8, "work"))
    await made(store, span(1, 8), level=2)
    ends = {
        None: [12, 8, 4],
        20: [12, 8, 4],
        12: [12, 8, 4],
        11: [8, 4],
        8: [8, 4],
        4: [4],
        3: [],
        0: [],
        -1: [],
        2**70: [12, 8, 4],
    }
    for through, expected in ends.items():
        assert [node.last_seq for node in await store.nodes(CHAT, level=1, through_seq=through)] == expected
    assert [node.last_seq for node in await store.nodes(CHAT, level=1, limit=2)] == [12, 8]
    assert [node.id for node in await store.nodes(WORK, level=1)] == ["L1-0005"]
    whole = draft(span(1, 8), level=2)
    assert await store.nodes(CHAT, level=2) == [
        Node(
            id="L2-0001",
            level=2,
            first_seq=1,
            last_seq=8,
            chars=len(whole.text),
            tokens=40,
            brief="harbour trip",
            first_at=whole.first_at,
            last_at=whole.last_at,
        )
    ]
    assert await store.nodes(CHAT, level=3) == []


async def test_a_message_is_held_by_one_summary_of_each_level_at_most(store: Store) -> None:
    for scope in (CHAT, WORK, THEIRS):
        await talk(store, 20, scope)
    for first, last in ((1, 4), (5, 8), (11, 12)):
        await made(store, span(first, last))
    await made(store, span(1, 8), level=2)
    await made(store, span(13, 16), span(1, 4, "work"))
    await made(store, span(1, 20), level=9, agent_id="other")
    held = {
        0: [],
        -1: [],
        1: ["L1-0001", "L2-0001"],
        4: ["L1-0001", "L2-0001"],
        5: ["L1-0002", "L2-0001"],
        9: [],
        11: ["L1-0003"],
        12: ["L1-0003"],
        13: [],
        21: [],
        2**70: [],
    }
    for seq, expected in held.items():
        assert ids(await store.nodes_holding(CHAT, seq=seq)) == expected
    (first,) = await store.nodes(CHAT, level=1, through_seq=4)
    assert (await store.nodes_holding(CHAT, seq=2))[0] == first
    assert await store.nodes_holding(WORK, seq=2) == []
    assert ids(await store.nodes_holding(THEIRS, seq=2)) == ["L9-0001"]


async def test_how_far_a_session_is_summarised(store: Store) -> None:
    await talk(store, 20)
    await talk(store, 20, WORK)
    assert await store.summarised_through(CHAT) == 0
    await made(store, span(5, 8))
    await made(store, span(1, 4))
    await made(store, span(1, 20), level=2)
    assert await store.summarised_through(CHAT) == 8
    await made(store, span(9, 10), span(1, 5, "work"))
    assert (await store.summarised_through(CHAT), await store.summarised_through(WORK)) == (10, 5)


async def test_the_unmerged_come_oldest_first(store: Store) -> None:
    await talk(store, 20)
    await talk(store, 20, WORK)
    late, early = [await made(store, span(each, each)) for each in (9, 3)]
    work = await made(store, span(5, 5, "work"))
    both = await made(store, span(1, 1), span(1, 1, "work"))
    gone = await made(store, span(12, 12))
    over = await made(store, span(12, 12), level=2, sources=[gone.id])
    assert await store.unmerged("main", level=1) == [both, early, work, late]
    assert await store.unmerged("main", level=1, limit=2) == [both, early]
    assert await store.unmerged("main", level=1, session_id="chat") == [early, late]
    assert await store.unmerged("main", level=1, session_id="chat", limit=1) == [early]
    assert await store.unmerged("main", level=1, session_id="work") == [work]
    assert await store.unmerged("main", level=2) == [over]
    assert await store.unmerged("main", level=3) == []


async def test_within_a_session_a_clock_that_jumped_back_changes_no_order(store: Store) -> None:
    await talk(store, 20)
    first = await made(store, span(1, 2), first_at=NOON + timedelta(days=2))
    second = await made(store, span(3, 4), first_at=NOON)
    assert ids(await store.unmerged("main", level=1, session_id="chat")) == [first.id, second.id]
    assert ids(await store.unmerged("main", level=1)) == [second.id, first.id]


async def test_thousands_of_summaries_are_counted_and_looked_through(store: Store) -> None:
    # Each statement to a server is a round trip, and a summary takes a dozen.
    many = 5_000 if store.kind == "sqlite" else 600
    last = 2 * many
    for _ in range(last // 400):
        await talk(store, 400)
    every = range(1, last + 1, 2)
    await asyncio.gather(*[made(store, span(first, first + 1)) for first in every])
    assert await store.summary_counts("main") == {1: many}
    assert [node.last_seq for node in await store.nodes(CHAT, level=1, limit=3)] == [last, last - 2, last - 4]
    assert [node.last_seq for node in await store.nodes(CHAT, level=1, through_seq=many + 1, limit=2)] == [
        many,
        many - 2,
    ]
    assert await store.summarised_through(CHAT) == last
    assert [each.draft.spans for each in await store.unmerged("main", level=1, limit=1)] == [[span(1, 2)]]
    everything = await store.summaries("main", limit=10_000)
    assert sorted(ids(everything)) == [f"L1-{number:04}" for number in range(1, many + 1)]
    assert len(await store.summary_texts("main", ids(everything))) == many


# ── isolation ──


async def test_two_agents_with_sessions_of_one_name(store: Store) -> None:
    for scope in (CHAT, THEIRS):
        await talk(store, 9, scope)
    mine = await made(store, span(1, 4), text="mine")
    theirs = await made(store, span(1, 4), text="theirs", agent_id="other")
    more = await made(store, span(5, 6), text="more", agent_id="other")
    assert mine.id == theirs.id == "L1-0001"
    for agent_id, scope, expected in (("main", CHAT, [mine]), ("other", THEIRS, [theirs, more])):
        assert await store.summaries(agent_id) == expected[::-1]
        assert await store.summaries(agent_id, session_id="chat") == expected[::-1]
        assert await store.unmerged(agent_id, level=1) == expected
        assert await store.unmerged(agent_id, level=1, session_id="chat") == expected
        assert ids(await store.nodes(scope, level=1)) == ids(expected[::-1])
        assert await store.summary_counts(agent_id) == {1: len(expected)}
        assert await store.summary(agent_id, "L1-0001") == expected[0]
        assert (await store.summary_texts(agent_id, ["L1-0001"]))["L1-0001"].text == expected[0].draft.text
    assert await store.summary("main", more.id) is None
    assert await store.summary_texts("main", [more.id]) == {}
    assert await store.summaries("main", before=more.id) == []
    assert (await store.summarised_through(CHAT), await store.summarised_through(THEIRS)) == (4, 6)

    await store.hand_over(THEIRS, context(1), SWAP)
    await store.set_session_note(THEIRS, "name", "theirs")
    assert await store.handed(CHAT) is None
    assert (await generation(store), await generation(store, THEIRS)) == (0, 1)
    assert await store.session_note(CHAT, "name") is None
    assert (await verbs(store), len(await verbs(store, "other"))) == (["onMessage", "summarize"], 4)


async def test_nothing_is_known_of_a_stranger(store: Store) -> None:
    await talk(store, 9)
    await made(store, span(1, 4))
    for scope in (Scope(agent_id="nobody", session_id="chat"), Scope(agent_id="main", session_id="none")):
        assert await store.nodes(scope, level=1) == []
        assert await store.nodes_holding(scope, seq=1) == []
        assert await store.summarised_through(scope) == 0
        assert await store.handed(scope) is None
        assert await store.handed(scope, at=NOON) is None
        assert await store.unmerged(scope.agent_id, level=1, session_id=scope.session_id) == []
        assert await store.summaries(scope.agent_id, session_id=scope.session_id) == []
        await store.set_session_note(scope, "name", "value")
        await store.set_session_note(scope, "name", None)
        assert await store.session_note(scope, "name") is None
        with pytest.raises(StoreError):
            await store.hand_over(scope, context(1), SWAP)
    assert await store.summaries("nobody") == []
    assert await store.summary("nobody", "L1-0001") is None
    assert await store.summary_texts("nobody", ["L1-0001"]) == {}
    assert await store.unmerged("nobody", level=1) == []
    assert await store.summary_counts("nobody") == {}
    assert await store.completion("nobody", "f") is None
    assert await store.spending(DAY, agent_id="nobody") == []
    assert await store.spent("nobody") == Usage()
    assert await store.sessions_after("nobody") == []
    assert await store.agents() == ["main"]
    assert [session.session_id for session in await store.sessions("main")] == ["chat"]


# ── what models were paid for ──


def answer(
    fingerprint: str = "f1", summarizer: str = "openai:a-model", text: str = "你好 👋 \x00", **used: Any
) -> Completion:
    usage = Usage(**({"input_tokens": 100, "cached_tokens": 60, "output_tokens": 10, "dollars": 0.25} | used))
    return Completion(fingerprint=fingerprint, summarizer=summarizer, text=text, usage=usage)


async def test_an_answer_is_kept_and_paid_for_once(store: Store) -> None:
    await store.add_completion("main", answer(), NOON)
    await store.add_completion("main", answer(text="another", dollars=9.0), NOON + timedelta(days=1))
    assert await store.completion("main", "f1") == answer()
    assert await store.completion("main", "f2") is None
    assert await store.completion("other", "f1") is None
    assert await store.spending(DAY) == [Spending(summarizer="openai:a-model", calls=1, usage=answer().usage)]
    assert await store.spending(DAY + timedelta(days=1)) == []
    assert await verbs(store) == []


async def test_spending_is_of_a_day_of_one_agent_or_of_all(store: Store) -> None:
    usage = answer().usage
    midnight = NOON.replace(hour=23, minute=59, second=59, microsecond=999_999)
    await store.add_completion("main", answer("1"), NOON)
    await store.add_completion("main", answer("2"), midnight)
    await store.add_completion("main", answer("3"), midnight + timedelta(microseconds=1))
    await store.add_completion("main", answer("4", "local"), NOON)
    await store.add_completion("other", answer("1"), NOON)
    # The day is that of Greenwich: here it is noon of the 15th there.
    await store.add_completion("other", answer("5"), NOON.astimezone(timezone(timedelta(hours=13))))

    def of(summarizer: str, calls: int) -> Spending:
        used = sum([usage] * calls, Usage())
        return Spending(summarizer=summarizer, calls=calls, usage=used)

    assert await store.spending(DAY) == [of("local", 1), of("openai:a-model", 4)]
    assert await store.spending(DAY, agent_id="main") == [of("local", 1), of("openai:a-model", 2)]
    assert await store.spending(DAY, agent_id="other") == [of("openai:a-model", 2)]
    assert await store.spending(DAY + timedelta(days=1)) == [of("openai:a-model", 1)]
    assert await store.spending(date(1999, 1, 1)) == []
    assert await store.spent("main") == of("", 4).usage
    assert await store.spent("other") == of("", 2).usage


@pytest.mark.parametrize("used", [{"dollars": float("nan")}, {"input_tokens": "many"}, {"output_tokens": 2**70}])
async def test_an_answer_that_cannot_be_kept_costs_nothing(store: Store, used: dict[str, Any]) -> None:
    with pytest.raises(StoreError):
        await store.add_completion("main", answer(**used), NOON)
    assert await store.completion("main", "f1") is None
    assert await store.spending(DAY) == []
    assert await store.agents() == []


# ── contexts ──


async def test_a_context_comes_back_as_it_was(store: Store) -> None:
    await talk(store, 3)
    dropped = Dropped(kind="number", text="14:20", session_id="chat", seq=3, expand="L1-0001")
    state = StateRecord(kind="open loop", text="which tide? 🌊", first_seq=1, last_seq=2, at=NOON)
    kept = Ledger(verbatim=[Part(kind="verbatim", first_seq=3, last_seq=3, chars=9)], dropped=[dropped], state=[state])
    blocks = [{"type": "tool-call", "id": "c1", "arguments": {"n": 1.5, "deep": [None, True]}}]
    whole = context(1, messages=[Message(role="assistant", content=blocks, meta={"run": 7})], ledger=kept)
    await store.hand_over(CHAT, whole, SWAP)
    assert await store.handed(CHAT) == whole
    assert await generation(store) == 1
    (event,) = await store.audit_events("main", after_seq=1)
    assert (event.verb, event.session_id, event.details) == ("swap", "chat", {"generation": 1})


async def test_a_generation_follows_the_one_before_it(store: Store) -> None:
    await talk(store, 3)
    await store.hand_over(CHAT, context(0, kind="start"), None)
    await store.hand_over(CHAT, context(1), SWAP)
    with pytest.raises(StoreError, match="generation 1"):
        await store.hand_over(CHAT, context(2, kind="start"), None)
    await store.hand_over(CHAT, context(1, kind="start", memory="again"), None)
    handed = await store.handed(CHAT)
    assert handed is not None
    assert handed.memory == "again"
    for wrong in (-1, 0, 1, 3):
        with pytest.raises(StoreError, match="generation 1"):
            await store.hand_over(CHAT, context(wrong), SWAP)
    await store.hand_over(CHAT, context(2), SWAP)
    assert await generation(store) == 2
    assert await verbs(store) == ["onMessage", "swap", "swap"]


async def test_of_two_that_hand_over_at_once_one_does(store: Store) -> None:
    await talk(store, 3)
    swaps = [store.hand_over(CHAT, context(1, memory=str(number)), SWAP) for number in range(5)]
    outcomes = await asyncio.gather(*swaps, return_exceptions=True)
    assert sorted(outcome is None for outcome in outcomes) == [False] * 4 + [True]
    handed = await store.handed(CHAT)
    assert handed is not None
    assert outcomes[int(handed.memory)] is None
    assert await verbs(store) == ["onMessage", "swap"]


async def test_what_the_agent_ran_on_at_a_time(store: Store) -> None:
    await talk(store, 3)
    times = [NOON, NOON + timedelta(hours=2), NOON + timedelta(hours=1), NOON + timedelta(hours=3)]
    for number, at in enumerate(times, 1):
        await store.hand_over(CHAT, context(number, at), SWAP)

    async def at(moment: datetime | None) -> int | None:
        found = await store.handed(CHAT, at=moment)
        return found.generation if found else None

    assert await at(None) == 4
    assert await at(NOON - timedelta(microseconds=1)) is None
    assert await at(NOON) == await at(NOON + timedelta(minutes=59)) == 1
    # The third came after the second, whatever the clock said.
    assert await at(NOON + timedelta(hours=1)) == await at(NOON + timedelta(hours=2)) == 3
    assert await at(NOON + timedelta(hours=3)) == await at(NOON + timedelta(days=99)) == 4


async def test_a_context_that_could_not_be_read_again_is_refused(store: Store) -> None:
    await talk(store, 3)
    for fields in ({"kind": "neither"}, {"memory": "\ud800"}, {"messages": [Message(role="user", content="x", id="")]}):
        with pytest.raises(StoreError, match="could not be read again"):
            await store.hand_over(CHAT, context(1, **fields), SWAP)
    assert (await store.handed(CHAT), await generation(store), await verbs(store)) == (None, 0, ["onMessage"])


async def test_messages_go_on_after_a_swap(store: Store) -> None:
    await talk(store, 3)
    await store.hand_over(CHAT, context(1), SWAP)
    await talk(store, 3)
    session = await store.session(CHAT)
    assert session is not None
    assert (session.generation, session.last_seq) == (1, 6)


# ── notes of a session, and all its neighbours ──


async def test_notes_of_a_session(store: Store) -> None:
    await talk(store, 1)
    await talk(store, 1, WORK)
    await store.set_session_note(CHAT, "state", "one")
    await store.set_session_note(CHAT, "state", "你好 👋 \x00")
    await store.set_session_note(CHAT, "other", "")
    await store.set_session_note(WORK, "state", "elsewhere")
    assert await store.session_note(CHAT, "state") == "你好 👋 \x00"
    assert await store.session_note(CHAT, "other") == ""
    await store.set_session_note(CHAT, "state", None)
    await store.set_session_note(CHAT, "state", None)
    assert await store.session_note(CHAT, "state") is None
    assert await store.session_note(WORK, "state") == "elsewhere"
    assert await verbs(store) == ["onMessage", "onMessage"]


async def test_sessions_are_gone_through_in_the_order_they_were_made(store: Store) -> None:
    keys = [f"s{(number * 7) % 10}" for number in range(10)]
    for key in keys:
        await talk(store, 1, Scope(agent_id="main", session_id=key))
        await talk(store, 1, Scope(agent_id="other", session_id=key))
    await talk(store, 1, Scope(agent_id="main", session_id=keys[0]))
    everything = await store.sessions_after("main")
    assert [session.session_id for session in everything] == keys
    assert everything[0] == await store.session(Scope(agent_id="main", session_id=keys[0]))
    seen: list[str] = []
    while piece := await store.sessions_after("main", after=seen[-1] if seen else None, limit=3):
        assert len(piece) <= 3
        seen += [session.session_id for session in piece]
    assert seen == keys
    assert await store.sessions_after("main", after="none") == []


# ── with the rest of the store ──


async def test_a_write_that_fails_leaves_neither_row_nor_event(store: Store) -> None:
    await talk(store, 9)
    first = await made(store, span(1, 2))
    merge = draft(span(1, 2), level=2, sources=[first.id])
    better = draft(span(1, 2), text="better", summarizer="openai:a-model")
    again = msgspec.structs.replace(BROKEN, details=BROKEN.details | {"again": True})
    for write in (
        store.add_summary("main", draft(span(3, 4)), BROKEN),
        store.add_summary("main", merge, BROKEN),
        store.add_summary("main", better, again),
        store.hand_over(CHAT, context(1), BROKEN),
    ):
        with pytest.raises(StoreError):
            await write
    assert await store.summaries("main") == [first]
    assert await store.unmerged("main", level=1) == [first]
    assert await store.summary_counts("main") == {1: 1}
    assert await store.summarised_through(CHAT) == 2
    assert (await store.handed(CHAT), await generation(store)) == (None, 0)
    assert await verbs(store) == ["onMessage", "summarize"]
    assert ids([await made(store, span(3, 4)), await store.add_summary("main", merge, MADE)]) == ["L1-0002", "L2-0001"]
    await store.hand_over(CHAT, context(1), SWAP)
    assert await no_faults(store)


async def test_what_failed_beside_others_leaves_theirs(store: Store) -> None:
    await talk(store, 9)
    outcomes = await asyncio.gather(
        made(store, span(1, 2)),
        made(store, span(2, 3)),
        store.add_summary("main", draft(span(5, 6)), BROKEN),
        made(store, span(3, 4)),
        return_exceptions=True,
    )
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False, True, True, False]
    assert ids(await store.summaries("main")) == ["L1-0002", "L1-0001"]
    assert await no_faults(store)


async def test_it_leaves_counts_and_chain_as_they_are(store: Store) -> None:
    await talk(store, 200)
    before = await store.counts("main")
    for number in range(1, 151):
        await made(store, span(number, number))
        await store.add_completion("main", answer(str(number)), NOON)
        await store.hand_over(CHAT, context(number), SWAP)
        await store.set_session_note(CHAT, "state", str(number))
    after = await store.counts("main")
    assert after == msgspec.structs.replace(before, audit_events=before.audit_events + 300)
    assert await no_faults(store)


async def test_it_is_all_there_after_opening_again(open_store: OpenStore) -> None:
    async def kept(store: Store) -> list[object]:
        return [
            await store.summaries("main"),
            await store.nodes(CHAT, level=1),
            await store.summary_texts("main", ["L1-0001", "L2-0001"]),
            await store.summarised_through(CHAT),
            await store.unmerged("main", level=1),
            await store.summary_counts("main"),
            await store.completion("main", "f1"),
            await store.spending(DAY),
            await store.spent("main"),
            await store.handed(CHAT),
            await store.session_note(CHAT, "state"),
            await store.sessions_after("main"),
        ]

    store = open_store()
    await talk(store, 9)
    first, _ = await made(store, span(1, 2)), await made(store, span(3, 4))
    await made(store, span(1, 2), level=2, sources=[first.id])
    await store.add_completion("main", answer(), NOON)
    await store.hand_over(CHAT, context(1), SWAP)
    await store.set_session_note(CHAT, "state", "value")
    before = await kept(store)
    assert all(before)
    await store.close()
    again = open_store()
    assert await kept(again) == before
    assert (await made(again, span(5, 6))).id == "L1-0003"
    await again.close()


async def test_an_empty_store_answers(store: Store) -> None:
    assert await store.summaries("main") == []
    assert await store.unmerged("main", level=1) == []
    assert await store.summary_counts("main") == {}
    assert await store.spending(DAY) == []
    assert await store.spent("main") == Usage()
    assert await store.sessions_after("main") == []


# ── properties ──

LONGEST = 12
stretches = st.tuples(
    st.sampled_from(["main", "other"]),
    st.integers(min_value=1, max_value=2),
    st.integers(min_value=0, max_value=LONGEST + 1),
    st.integers(min_value=0, max_value=LONGEST + 1),
)


@given(st.lists(stretches, max_size=25))
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_what_is_kept_never_overlaps_and_is_found(tmp_path_factory: pytest.TempPathFactory, history) -> None:  # type: ignore[no-untyped-def]
    from tests.contract.conftest import fresh_stores

    for store in fresh_stores(tmp_path_factory):
        for scope in (CHAT, THEIRS):
            await talk(store, LONGEST, scope)
        kept: dict[tuple[str, int], dict[tuple[int, int], str]] = {}
        for agent, level, first, last in history:
            mine = kept.setdefault((agent, level), {})
            meets = [each for each in mine if each[0] <= last and first <= each[1]]
            if 1 <= first <= last <= LONGEST and (not meets or meets == [(first, last)]):
                summary = await made(store, span(first, last), level=level, agent_id=agent)
                expected = f"L{level}-{len(mine) + 1:04}"
                assert summary.id == mine.setdefault((first, last), expected)
            else:
                with pytest.raises(StoreError):
                    await made(store, span(first, last), level=level, agent_id=agent)
        for (agent, level), mine in kept.items():
            scope = Scope(agent_id=agent, session_id="chat")
            nodes = await store.nodes(scope, level=level)
            assert [((each.first_seq, each.last_seq), each.id) for each in nodes] == sorted(mine.items(), reverse=True)
            assert ids(await store.summaries(agent, level=level)) == sorted(mine.values(), reverse=True)
            assert (await store.summary_counts(agent)).get(level, 0) == len(mine)
        for scope in (CHAT, THEIRS):
            ends = [last for _, last in kept.get((scope.agent_id, 1), {})]
            assert await store.summarised_through(scope) == max(ends, default=0)
            assert await no_faults(store, scope.agent_id)
        await store.close()
