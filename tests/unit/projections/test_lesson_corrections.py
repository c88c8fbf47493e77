"""What a link replaced is no lesson any more; what else was said with it still is."""

from __future__ import annotations

from offbook.log.sqlite.store import SqliteStore
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import Supersession
from offbook.model.types import now
from offbook.projections.lesson_corrections import retire_corrected
from offbook.search.resolve import PARTLY, SINCE, TAKEN_BACK
from tests.unit.projections.conftest import EVENT, add, places_of
from tests.unit.projections.test_lessons import judged, on, run, there
from tests.unit.statements.said import BUDGET, DATABASE, MOVED, SHORT


async def replaced(store: SqliteStore, old: int, new: int, kind: str = "correction", note: str = "") -> int:
    """The message at one place gives way to the one at another, counted from the first."""
    places = await places_of(store)
    link = Supersession(old_place=places[old], new_place=places[new], kind=kind, at=now(), note=note)
    await store.supersede("main", [link], EVENT)
    return await retire_corrected(store, "main", [places[new]])


async def of(store: SqliteStore, text: str) -> Lesson:
    (found,) = [one for one in await there(store) if one.text == text]
    return found


async def test_what_was_corrected_gives_way_to_what_is_said_since(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE), on(2, f"Good morning! {MOVED}"))
    await run(store)
    assert await replaced(store, 0, 1) == 1
    old, new = await of(store, DATABASE), await of(store, MOVED)
    assert (old.replaced_by, new.replaced_by) == (new.id, None)
    assert [(one.session_id, one.seq) for one in new.sources] == [("chat", 2)]
    head = await store.audit_head("main")
    assert await retire_corrected(store, "main", await places_of(store)) == 0, "done again, it changes nothing"
    assert await store.audit_head("main") == head


async def test_in_whichever_order_links_and_lessons_come(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE), on(2, MOVED))
    assert await replaced(store, 0, 1) == 0, "nothing was learnt yet"
    assert (await run(store))["replaced"] == 1
    old, new = await of(store, DATABASE), await of(store, MOVED)
    assert (old.replaced_by, new.replaced_by) == (new.id, None)


async def test_of_a_message_that_said_more_the_rest_is_still_learnt(store: SqliteStore) -> None:
    await add(store, on(1, f"{BUDGET} {DATABASE}"), on(2, MOVED))
    await run(store)
    assert await replaced(store, 0, 1, PARTLY) == 1
    assert (await of(store, BUDGET)).replaced_by is None
    assert (await of(store, DATABASE)).replaced_by == (await of(store, MOVED)).id


async def test_what_else_a_sentence_said_is_a_lesson_of_its_own(store: SqliteStore) -> None:
    both = "We deploy on Fridays and Tom reviews every pull request."
    await add(store, on(1, f"Hello. {both}"), on(2, "From now on we deploy on Tuesdays."))
    await run(store)
    gone = both.index(" and") + 7
    assert await replaced(store, 0, 1, PARTLY, f"7-{gone}") == 1
    old, since = await of(store, both), await of(store, "From now on we deploy on Tuesdays.")
    assert old.replaced_by == since.id
    left = await of(store, "Tom reviews every pull request.")
    assert (left.replaced_by, left.kind, left.sources) == (None, old.kind, old.sources)
    assert await retire_corrected(store, "main", await places_of(store)) == 0, "done again, it changes nothing"


async def test_a_correction_of_what_was_not_learnt_retires_nothing(store: SqliteStore) -> None:
    await add(store, on(1, f"{BUDGET} The meeting is today at noon."), on(2, "The meeting is tomorrow now."))
    await run(store)
    assert await replaced(store, 0, 1, PARTLY) == 0
    assert (await of(store, BUDGET)).replaced_by is None


async def test_what_somebody_else_still_says_holds(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE), on(2, DATABASE), on(3, MOVED))
    await run(store)
    assert await replaced(store, 0, 2) == 0, "it was said once more"
    assert await replaced(store, 1, 2) == 1


async def test_what_is_only_said_since_or_was_unlinked_retires_nothing(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE), on(2, MOVED), on(3, SHORT))
    await run(store)
    assert await replaced(store, 0, 1, SINCE) == 0
    assert await replaced(store, 0, 2, TAKEN_BACK) == 0
    assert (await of(store, DATABASE)).replaced_by is None


async def test_the_same_words_do_not_take_their_own_place(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE))
    await run(store)
    await add(store, on(2, DATABASE.replace(".", "!")))
    assert await replaced(store, 0, 1) == 0
    assert (await of(store, DATABASE)).replaced_by is None


async def test_what_a_person_judged_stays(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE), on(2, MOVED))
    await run(store)
    await judged(store, await of(store, DATABASE), status="accepted")
    assert await replaced(store, 0, 1) == 0


async def test_the_audit_names_what_was_corrected(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE), on(2, MOVED))
    await run(store)
    await replaced(store, 0, 1)
    events = [one for one in await store.audit_events("main", limit=100) if "corrected" in one.details]
    assert [one.details["corrected"] for one in events] == [(await of(store, DATABASE)).id]
    assert [(one.verb, one.actor) for one in events] == [("learn", "offbook")]
