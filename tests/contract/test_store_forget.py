"""What every store promises to forgetting (`protocols.Store`, `protocols.Blobs`): lineage, erasing, what is kept beside
the log, receipts, and no byte left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.log.blobs import BlobFiles
from offbook.log.store import Blobs, Store
from offbook.model.errors import StoreBusy, StoreCorrupt, StoreError
from offbook.model.lesson import LessonDraft
from offbook.model.memory_entry import Supersession
from offbook.model.receipt import FORGOTTEN, FORGOTTEN_TEXT, ForgetReceipt, ForgottenSpan, Lineage, Reached
from offbook.model.summary import Completion, SummaryDraft, Usage
from offbook.model.turn import TurnMemory
from offbook.model.types import AuditDraft, BlobRef, Mark, Scope
from tests.contract.test_store import CHAT, NOON, add, entry, texts
from tests.contract.test_store_compression import MADE, SWAP, THEIRS, WORK, context, draft, no_faults, span, talk, verbs
from tests.contract.test_store_lessons import keep
from tests.contract.test_store_recall import vector

OpenStore = Callable[[], Store]
SECRET = "xyzzy-plugh-42"
EVENT = AuditDraft(verb="forget", actor="test", details={"how": "matching"})
NOTHING = AuditDraft(verb="test", actor="test")
TABLES = {"summary_texts", "lessons", "contexts", "turn_memories", "completions", "marks", "sessions", "session_notes"}


def receipt(*seqs: int, session_id: str = "chat", **fields: Any) -> ForgetReceipt:
    given = {
        "id": "forget-1",
        "agent_id": "main",
        "at": NOON,
        "by": "test",
        "reason": "",
        "dry_run": False,
        "how": "matching",
        "reached": Reached(messages=len(seqs)),
        "spans": [ForgottenSpan(session_id=session_id, first_seq=seq, last_seq=seq) for seq in seqs],
        "probes": [],
        "outside": [],
        "residue": [],
    } | fields
    return ForgetReceipt(**given)


def forgetting(*seqs: int) -> AuditDraft:
    spans = [{"sessionId": "chat", "firstSeq": seq, "lastSeq": seq} for seq in seqs]
    return msgspec.structs.replace(EVENT, details={**EVENT.details, "spans": spans})


async def erase(store: Store, lineage: Lineage, *seqs: int, rewritten: dict[str, SummaryDraft] | None = None) -> int:
    number, event = await store.erase("main", lineage, rewritten or {}, receipt(*seqs), forgetting(*seqs))
    assert event.verb == "forget"
    assert event.details["messages"] == len(lineage.places)
    assert event.details["erasure"] == number
    return number


async def kept(store: Store, agent_id: str = "main") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    async for one in store.kept_texts(agent_id):
        found.setdefault(one.table, []).append(one.text)
    return found


async def everything(store: Store, scope: Scope = CHAT) -> None:
    """Four messages, the second and the third of which hold it, and all that can come of them holds it, too."""
    said = [entry("before"), entry(f"it is {SECRET}", id="two"), entry(f"so {SECRET}", id="three"), entry("after")]
    await add(store, *said, scope=scope)
    one, two, three, four = await store.places(scope, [1, 2, 3, 4])
    agent_id = scope.agent_id
    await store.add_vectors(agent_id, "m", [vector(place) for place in (one, two, three, four)])
    await store.pin(agent_id, [one, two], pinned=True, event=NOTHING)
    await store.recalled(agent_id, [two, four], NOTHING)
    await store.supersede(agent_id, [Supersession(old_place=two, new_place=three, kind="restate", at=NOON)], NOTHING)
    summary = await store.add_summary(agent_id, draft(span(1, 4), text=f"it was {SECRET}", brief=SECRET), MADE)
    await store.add_summary(agent_id, draft(span(1, 4), level=2, text=f"L2 {SECRET}", sources=[summary.id]), MADE)
    lesson = LessonDraft(
        text=f"remember {SECRET}",
        key="k",
        kind="fact",
        confidence=1.0,
        first_seen=NOON,
        last_seen=NOON,
        times=1,
        places=[two],
    )
    await keep(store, lesson, agent_id=agent_id)
    await store.hand_over(scope, context(1, memory=SECRET), SWAP)
    await store.keep_turn_memory(scope, TurnMemory(epoch="0", at=NOON, text=SECRET, tokens=1, parts=[]))
    await store.add_completion(agent_id, Completion(fingerprint="f", summarizer="m", text=SECRET, usage=Usage()), NOON)
    await store.mark(scope, Mark(kind="end", at=NOON, reason=SECRET), NOTHING)
    await store.set_session_note(scope, "topics", SECRET)


async def lineage_of(store: Store, *seqs: int, scope: Scope = CHAT) -> Lineage:
    return await store.lineage(scope.agent_id, await store.places(scope, seqs))


# ── what came of some messages ──


async def test_a_lineage_is_all_that_came_of_the_messages(store: Store) -> None:
    await everything(store)
    found = await lineage_of(store, 2, 3)
    assert found.places == await store.places(CHAT, [2, 3])
    assert (found.sessions, found.summaries, found.lessons) == (["chat"], ["L1-0001", "L2-0001"], ["lesson-0001"])
    assert found.reached == Reached(
        messages=2, vectors=2, summaries=2, lessons=1, contexts=1, turn_memories=1, notes=1, completions=1,
        supersessions=1,
    )  # fmt: skip
    assert (await lineage_of(store, 4)).lessons == []


async def test_messages_are_found_by_the_hashes_of_their_rows(store: Store) -> None:
    await everything(store)
    logged = await store.messages(CHAT, limit=10)
    places = await store.places(CHAT, [one.seq for one in logged])
    wanted = {logged[2].hash, logged[0].hash, b"another"}
    assert await store.places_hashed("main", wanted) == [places[0], places[2]]
    assert await store.places_hashed("main", frozenset()) == []
    assert await store.places_hashed("other", wanted) == await store.places_hashed("nobody", wanted) == []
    await erase(store, await lineage_of(store, logged[0].seq), logged[0].seq)
    assert await store.places_hashed("main", wanted) == [places[0], places[2]]


async def test_a_lesson_that_others_say_is_kept_as_given(store: Store) -> None:
    await everything(store)
    (lesson,) = await store.lessons("main")
    first, second = await store.places(CHAT, [1, 2])
    await store.judge_lesson("main", msgspec.structs.replace(lesson, status="accepted"), [first], None)
    assert await store.lesson_places("main", lesson.id) == [first, second]
    assert await store.lesson_places("main", "lesson-0009") == await store.lesson_places("other", lesson.id) == []
    left = msgspec.structs.replace(lesson, status="accepted", text="remember", key="r", sources=[])
    lineage = await lineage_of(store, 2)
    await store.erase("main", lineage, {}, receipt(2), forgetting(2), [left])
    (kept,) = await store.lessons("main")
    assert (kept.id, kept.status, kept.text, kept.key) == (lesson.id, "accepted", "remember", "r")
    assert [source.seq for source in kept.sources] == [1]


async def test_nothing_has_no_lineage_and_nobody_has_none_of_anothers(store: Store) -> None:
    await everything(store)
    await talk(store, 2, THEIRS)
    assert (await store.lineage("main", [])).reached == Reached()
    for agent_id in ("other", "nobody"):
        found = await store.lineage(agent_id, await store.places(CHAT, [2]))
        assert (found.places, found.summaries, found.reached.messages) == ([], [], 0)
    assert await store.agents() == ["main", "other"]


async def test_summaries_named_bring_those_that_merge_them(store: Store) -> None:
    await talk(store, 6)
    first = await store.add_summary("main", draft(span(1, 2)), MADE)
    second = await store.add_summary("main", draft(span(3, 4)), MADE)
    await store.add_summary("main", draft(span(1, 4), level=2, sources=[first.id, second.id]), MADE)
    places = await store.places(CHAT, [6])
    assert (await store.lineage("main", places)).summaries == []
    assert (await store.lineage("main", places, summaries=["L1-0002"])).summaries == ["L1-0002", "L2-0001"]
    assert (await lineage_of(store, 1)).summaries == ["L1-0001", "L2-0001"]


def large(digest: str) -> BlobRef:
    return BlobRef(path=[0, "text"], sha256=digest * 64, chars=9, bytes=9)


async def test_a_large_part_that_another_message_has_is_not_of_the_lineage(store: Store) -> None:
    await add(store, entry("one", blobs=[large("a"), large("b")]), entry("two", blobs=[large("b")]))
    assert (await lineage_of(store, 1)).parts == ["a" * 64]
    assert (await lineage_of(store, 1, 2)).parts == ["a" * 64, "b" * 64]


async def test_a_large_part_is_in_use_while_a_message_of_the_agent_refers_to_it(store: Store) -> None:
    a, b, c = ("a" * 64, "b" * 64, "c" * 64)
    assert await store.parts_in_use("main", [a]) == set()
    await add(store, entry("one", blobs=[large("a"), large("b")]), entry("two", blobs=[large("b")]), entry("three"))
    assert await store.parts_in_use("main", [a, b, c]) == {a, b}
    assert await store.parts_in_use("main", [c]) == await store.parts_in_use("other", [a]) == set()
    await erase(store, await lineage_of(store, 1), 1)
    assert await store.parts_in_use("main", [a, b]) == {b}
    await add(store, entry("said again", blobs=[large("a")]))
    assert await store.parts_in_use("main", [a, b]) == {a, b}


# ── erasing ──


async def test_what_is_erased_is_nowhere_and_the_rest_is_as_it_was(store: Store) -> None:
    await everything(store)
    before = await store.messages(CHAT)
    new = draft(span(1, 4), text="they spoke", brief="they spoke")
    upper = draft(span(1, 4), level=2, text="they spoke twice", brief="spoke", sources=["L1-0001"])
    await erase(store, await lineage_of(store, 2, 3), 2, 3, rewritten={"L1-0001": new, "L2-0001": upper})
    after = await store.messages(CHAT)
    assert [one.message.content for one in after] == ["before", FORGOTTEN_TEXT, FORGOTTEN_TEXT, "after"]
    assert [one.entry.noise for one in after] == [None, FORGOTTEN, FORGOTTEN, None]
    for old, now_ in zip(before, after, strict=True):
        assert (old.seq, old.received_at, old.message.id, old.message.ts) == (
            now_.seq, now_.received_at, now_.message.id, now_.message.ts,
        )  # fmt: skip
    assert (after[0], after[3]) == (before[0], before[3])
    one, two, three, four = await store.places(CHAT, [1, 2, 3, 4])
    assert {vector.place for vector in await store.vectors("main", "m")} == {one, four}
    assert await store.vector_models("main") == {"m": 2}
    assert (await store.holds("main", [one, two, three, four])).keys() == {one, four}
    counts = await store.hold_counts("main")
    assert (counts.pinned, counts.retrievals) == (1, 1)
    assert await store.supersessions("main", [two, three]) == []
    assert (await store.summary("main", "L1-0001")).draft.text == "they spoke"  # type: ignore[union-attr]
    left = await kept(store)
    assert not any(
        SECRET in text for table, texts_ in left.items() if table not in ("marks", "sessions") for text in texts_
    )
    assert await no_faults(store)
    assert (await verbs(store)).count("forget") == 1


async def test_what_was_erased_is_not_taken_again(store: Store) -> None:
    await everything(store)
    await erase(store, await lineage_of(store, 2, 3), 2, 3)
    receipt_ = await add(store, entry(f"it is {SECRET}", id="two"))
    assert (receipt_.accepted, receipt_.duplicates) == (0, 1)
    assert await texts(store) == ["before", FORGOTTEN_TEXT, FORGOTTEN_TEXT, "after"]
    again = await lineage_of(store, 2, 3)
    assert (again.places, again.reached.messages) == ([], 0)


async def test_nothing_new_is_kept_of_what_was_erased(store: Store) -> None:
    await everything(store)
    (two,) = await store.places(CHAT, [2])
    await erase(store, await lineage_of(store, 2), 2)
    await store.add_vectors("main", "m", [vector(two)])
    assert two not in {vector.place for vector in await store.vectors("main", "m")}
    assert await store.pin("main", [two], pinned=True, event=NOTHING) == []


async def test_others_keep_what_they_have(store: Store) -> None:
    for scope in (CHAT, THEIRS):
        await everything(store, scope)
    await talk(store, 2, WORK)
    await store.set_session_note(WORK, "topics", "work")
    theirs, log = await kept(store, "other"), await store.messages(THEIRS)
    await erase(store, await lineage_of(store, 2, 3), 2, 3)
    assert await kept(store, "other") == theirs
    assert await store.messages(THEIRS) == log
    assert (await store.hold_counts("other")).pinned == 2
    assert await store.session_note(WORK, "topics") == "work"
    assert await no_faults(store, "other")


async def test_an_erasing_that_breaks_off_has_erased_nothing(store: Store) -> None:
    await everything(store)
    before, texts_ = await kept(store), await texts(store)
    broken = msgspec.structs.replace(EVENT, details={"unwritable": object()})
    with pytest.raises(StoreError):
        await store.erase("main", await lineage_of(store, 2, 3), {}, receipt(2, 3), broken)
    assert (await kept(store), await texts(store)) == (before, texts_)
    assert await store.receipts("main") == []


# ── every text beside the log ──


async def test_every_text_beside_the_log_is_told_page_by_page(store: Store) -> None:
    await everything(store)
    found = await kept(store)
    assert found.keys() == TABLES
    assert all(SECRET in text for texts_ in found.values() for text in texts_)
    for number in range(120):
        await store.set_session_note(Scope(agent_id="main", session_id=f"s{number}"), "topics", f"note {number}")
        await talk(store, 1, Scope(agent_id="main", session_id=f"s{number}"))
        await store.set_session_note(Scope(agent_id="main", session_id=f"s{number}"), "topics", f"note {number}")
    assert len((await kept(store))["session_notes"]) == 121
    assert await kept(store, "nobody") == {}


async def test_rows_that_were_named_are_removed(store: Store) -> None:
    await everything(store)
    rows = [(one.table, one.row) async for one in store.kept_texts("main") if one.table != "summary_texts"]
    await store.erase_stray("main", rows)
    left = await kept(store)
    assert not any(SECRET in text for table, texts_ in left.items() if table != "summary_texts" for text in texts_)
    assert await no_faults(store)


# ── receipts ──


async def test_receipts_are_kept_in_order_and_can_be_finished(open_store: OpenStore) -> None:
    store = open_store()
    await everything(store)
    first = await erase(store, await lineage_of(store, 2), 2)
    second = await erase(store, await lineage_of(store, 3), 3)
    signed = receipt(2, signature="s", residue=[])
    await store.set_receipt("main", first, signed)
    await store.set_receipt("other", second, signed)
    await store.set_receipt("nobody", second, signed)
    await store.close()
    store = open_store()
    assert await store.receipts("main") == [(first, signed), (second, receipt(3))]
    assert await store.receipts("other") == []
    await store.close()


# ── no byte left ──


async def test_a_purge_leaves_no_byte_of_what_was_erased(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    filler = [entry(f"filler {number} " + "x" * 300) for number in range(400)]
    await add(store, *filler[:200], entry(f"it is {SECRET}" + " y" * 3_000), *filler[200:])
    await store.erase("main", await lineage_of(store, 201), {}, receipt(201), forgetting(201))
    await store.purge()
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert len(await store.messages(CHAT, limit=1_000)) == 401
    await add(store, entry("it goes on"))
    assert await no_faults(store)
    await store.close()
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


# ── large parts ──


async def nobody() -> set[str]:
    """Refers to it."""
    return set()


async def test_a_large_part_that_was_dropped_is_gone_and_its_neighbours_are_not(tmp_path: Path) -> None:
    blobs: Blobs = BlobFiles(tmp_path)
    gone, stays = await blobs.put("main", SECRET.encode()), await blobs.put("main", b"stays")
    theirs = await blobs.put("other", SECRET.encode())
    assert await blobs.drop("main", [gone], nobody) == []
    with pytest.raises(StoreCorrupt):
        await blobs.get("main", gone)
    assert await blobs.get("main", stays) == b"stays"
    assert await blobs.get("other", theirs) == SECRET.encode()
    assert await blobs.drop("main", [gone], nobody) == []
    assert await blobs.drop("nobody", [gone], nobody) == []
    assert await blobs.put("main", SECRET.encode()) == gone
    assert await blobs.get("main", gone) == SECRET.encode()


async def test_a_large_part_that_is_in_use_stays(tmp_path: Path) -> None:
    blobs: Blobs = BlobFiles(tmp_path)
    used, gone = await blobs.put("main", b"used"), await blobs.put("main", b"gone")

    async def in_use() -> list[str]:
        return [used]

    assert await blobs.drop("main", [used, gone], in_use) == []
    assert await blobs.get("main", used) == b"used"
    with pytest.raises(StoreCorrupt):
        await blobs.get("main", gone)


@pytest.mark.parametrize("holders", [1, 2])
async def test_a_large_part_that_is_held_stays_and_is_named_until_it_is_let_go(tmp_path: Path, holders: int) -> None:
    blobs: Blobs = BlobFiles(tmp_path)
    held, gone = await blobs.put("main", b"held"), await blobs.put("main", b"gone")
    with ExitStack() as others:
        with blobs.holding("main", [held, held]):
            for _ in range(holders - 1):
                others.enter_context(blobs.holding("main", [held]))
            assert await blobs.drop("main", [held, gone], nobody) == [held]
        assert await blobs.drop("main", [held], nobody) == [held] * (holders - 1)
    assert await blobs.drop("main", [held], nobody) == []
    with pytest.raises(StoreCorrupt):
        await blobs.get("main", held)


async def test_a_large_part_stays_that_was_held_since_it_was_asked_who_refers_to_it(tmp_path: Path) -> None:
    """Whoever held it may have come into the log since, and have let go."""
    blobs: Blobs = BlobFiles(tmp_path)
    digest = await blobs.put("main", b"large")

    async def then_somebody_came() -> set[str]:
        with blobs.holding("main", [digest]):
            await blobs.put("main", b"large")
        return set()

    assert await blobs.drop("main", [digest], then_somebody_came) == [digest]
    assert await blobs.get("main", digest) == b"large"


# ── what was made before, and comes after ──


async def test_what_was_made_before_an_erasure_is_not_kept_after_it(store: Store) -> None:
    await everything(store)
    (lesson,) = await store.lessons("main")
    before = store.versions.of("main", "erased")
    left = msgspec.structs.replace(lesson, text="remember", key="r", sources=[])
    await store.erase("main", await lineage_of(store, 2, 3), {}, receipt(2, 3), forgetting(2, 3), [left])
    section = TurnMemory(epoch="1", at=NOON, text=SECRET, tokens=1, parts=[])
    with pytest.raises(StoreBusy, match="forgotten meanwhile"):
        await store.hand_over(CHAT, context(2, memory=SECRET), SWAP, made_of=before)
    with pytest.raises(StoreBusy, match="forgotten meanwhile"):
        await store.keep_turn_memory(CHAT, section, made_of=before)
    with pytest.raises(StoreBusy, match="forgotten meanwhile"):
        await store.judge_lesson("main", lesson, [], None, made_of=before)
    found = await kept(store)
    assert not found.get("contexts")
    assert not found.get("turn_memories")
    assert not any(SECRET in text for text in found["lessons"])
    after = store.versions.of("main", "erased")
    await store.hand_over(CHAT, context(2), SWAP, made_of=after)
    await store.keep_turn_memory(CHAT, msgspec.structs.replace(section, text="x"), made_of=after)
    await store.judge_lesson("main", left, [], None, made_of=after)


async def test_what_is_made_while_something_is_erased_is_not_kept_either(store: Store) -> None:
    await everything(store)
    lineage = await lineage_of(store, 2, 3)
    erasing = asyncio.create_task(store.erase("main", lineage, {}, receipt(2, 3), forgetting(2, 3)))
    await asyncio.sleep(0)  # it is queued, and whoever reads now may still see what goes
    meanwhile = store.versions.of("main", "erased")
    assert store.versions.is_erased_since("main", meanwhile)
    await erasing
    assert store.versions.is_erased_since("main", meanwhile)
    assert not store.versions.is_erased_since("main", store.versions.of("main", "erased"))
    assert not store.versions.is_erased_since("other", store.versions.of("other", "erased"))
