"""What is told of a session's notes leaves out what was replaced or taken back since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from offbook.context.session_notes import STATE_NOTE, THREAD_NOTE, Thread, thread_of, told_records, told_thread
from offbook.log.store import Store
from offbook.model.memory_entry import Supersession
from offbook.model.types import Scope
from offbook.search.resolve import PARTLY, RETRACTED, SINCE, TAKEN_BACK
from offbook.statements.anchors import AnchorState, KeptAnchor
from offbook.statements.state import WorkingState, advanced
from tests.unit.statements.told import AT, turns

SCOPE = Scope(agent_id="main", session_id="chat")
STATE = advanced(
    WorkingState(),
    turns(
        ("user", "Please write a letter to the landlord about the broken heating."),
        ("assistant", "I'll check it with Ravindra tomorrow."),
        ("user", "Forget the letter."),
    ),
)
THREAD = Thread(
    anchors=AnchorState(
        kept=[
            KeptAnchor(kind="identity", text="I live in Berlin.", seq=1, at=AT),
            KeptAnchor(kind="identity", text="I bake.", seq=5, at=AT),
        ]
    )
)


class Links:
    """Where messages lie at ten times their number, and some take the place of others."""

    def __init__(self, *links: tuple[int, int, str], missing: int = 0) -> None:
        self._links = [
            Supersession(old_place=10 * old, new_place=10 * new, kind=kind, at=AT) for old, new, kind in links
        ]
        self._missing = missing

    async def session_note(self, scope: Scope, name: str) -> str | None:
        notes: dict[str, Any] = {STATE_NOTE: STATE, THREAD_NOTE: THREAD}
        return msgspec.json.encode(notes[name]).decode()

    async def places(self, scope: Scope, seqs: Sequence[int]) -> list[int]:
        return [10 * seq for seq in seqs if seq != self._missing]

    async def supersessions(self, agent_id: str, places: Sequence[int]) -> list[Supersession]:
        return [link for link in self._links if link.old_place in places or link.new_place in places]


async def told(*links: tuple[int, int, str], missing: int = 0) -> tuple[list[str], list[str]]:
    store = cast("Store", Links(*links, missing=missing))
    records, thread = await told_records(store, SCOPE), await told_thread(store, SCOPE)
    return [one.kind for one in records], [one.text for one in thread.anchors.kept]


async def test_what_was_taken_back_is_told_no_more_nor_is_what_was_said_to_it() -> None:
    assert await told() == (["goal", "open loop"], ["I live in Berlin.", "I bake."])
    assert await told((1, 3, RETRACTED)) == ([], ["I bake."])
    assert await told((1, 3, RETRACTED), missing=2) == ([], ["I bake."])


async def test_what_holds_in_part_is_told_and_a_note_of_another_shape_is_made_anew() -> None:
    assert await told((1, 3, PARTLY)) == await told((1, 3, TAKEN_BACK)) == await told()
    assert await told((1, 9, SINCE)) == (["goal", "open loop"], ["I bake."])

    class Old(Links):
        async def session_note(self, scope: Scope, name: str) -> str | None:
            return '{"topics":{"throughSeq":9},"anchors":{"throughSeq":9,"kept":[]}}'

    assert await thread_of(cast("Store", Old()), SCOPE) == Thread()
