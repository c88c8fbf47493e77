"""Which messages give way to what a person wrote in the place of a lesson: the links in the store, kept in step."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.log.store import Store
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.types import AuditDraft, Caller, Scope
from offbook.rules.supersession.lesson_links import lesson_links


async def relinked(store: Store, lesson: Lesson, by: Caller, written: Sequence[int] = ()) -> None:
    """The links that the lesson's messages make, and no others of its. `written` are places that it does not know
    yet. Done again, it changes nothing."""
    seqs: dict[str, list[int]] = {}
    for source in lesson.sources:
        seqs.setdefault(source.session_id, []).append(source.seq)
    places = list(written)
    for session_id, numbers in seqs.items():
        places += await store.places(Scope(agent_id=lesson.agent_id, session_id=session_id), numbers)
    placed = await store.messages_at(lesson.agent_id, list(dict.fromkeys(places)))
    links = lesson_links(lesson, placed)
    wanted = {(link.old_place, link.new_place) for link in links}
    known = [link for link in await store.supersessions(lesson.agent_id, places) if link.note == lesson.id]
    event = AuditDraft(verb="supersede", actor=by.name, session_id=LESSONS_SESSION, details={"lesson": lesson.id})
    if any((link.old_place, link.new_place) not in wanted for link in known):
        await store.withdraw_supersessions(lesson.agent_id, lesson.id, event)
    if links:
        newest = max(placed, key=lambda one: (one.session_id == LESSONS_SESSION, one.logged.seq))
        replaced = [link for link in links if link.new_place == newest.place] or links
        details = {"seq": newest.logged.seq, "replaced": len(replaced), "kind": replaced[0].kind}
        event = msgspec.structs.replace(event, details=details | event.details)
        await store.supersede(lesson.agent_id, links, event)
