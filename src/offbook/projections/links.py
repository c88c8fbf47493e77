"""What was said later about the same thing takes the place of what was said earlier, with both ends linked (D5).

Each message that states something is compared with what may be about the same: the last turns of its session, and what
shares most of its rare words in any other. Their vectors rule out nearly all pairs (`models.relation_gate`); a model
reads the rest (`models.relation`), by meaning, not by phrases. Only what a person said replaces: the agent's words, the
results of tools and the texts of others do not. What arrives late is older than what it is compared with, and is what
gives way.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import numpy as np

from offbook.log.store import Store
from offbook.model.content import own_text
from offbook.model.errors import ModelUnavailable
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.types import AuditDraft, Caller, Scope
from offbook.models import relation_gate
from offbook.models.worker import IN_PROCESS, Worker
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.lesson_corrections import retire_corrected
from offbook.projections.link_pairs import (
    SURELY_RESTATED,
    Pair,
    Spoken,
    pairs_worth_judging,
    probability,
    restated_in,
    spoken_in,
)
from offbook.projections.log_pages import PAGE, arrivals_of, living_messages, next_arrivals
from offbook.search.index.rows import USER
from offbook.search.resolve import PARTLY, SINCE
from offbook.search.whole_messages import readable
from offbook.search.words import query_terms, terms
from offbook.statements.clauses import UNCLEAR, Clause, noted, spans_of
from offbook.statements.common_words import is_common
from offbook.statements.lesson_links import lesson_links

if TYPE_CHECKING:
    from offbook.projections.embedders import Embedders
    from offbook.projections.indexes import Indexes
    from offbook.search.index.agent_index import AgentIndex

THROUGH = "links-through"
"""The agent's note of the last audit event whose messages were compared."""
MESSAGES_AT_A_TIME = 5
"""In one piece of work: others of the agent's wait for it."""
TURNS_BACK = 4
"""Of the session: "make that eu-west-1 instead" shares no word with what it corrects."""
REPLACES = 0.88
"""How likely it must be by the model. Chosen by `benchmarks/memory/fit/relation_thresholds.py`."""
MOST_ALIKE = 10
"""Of what people said before, by meaning and by words in turns."""
NEAR = 0.12
"""The least likeness of two that share no word."""
POSSIBLE = 0.88
"""From here on each of several statements of one message is judged by itself: of many, one is always likely."""
MOST_STATEMENTS, MOST_SAID_SINCE = 24, 3
"""Of the earlier and of the later message that are judged one by one; a later one that says more is read as a whole."""
CLEARLY = 1.0
"""How much likelier the replaced one must be than the next of the message, in log odds."""
CORRECTION = "correction"
LINKER = "offbook"
"""The actor of the audit event: nobody asked for it."""
VECTORS_SECONDS = 5.0
"""Until those that are waited for are asked for again."""
BEHIND_SECONDS = 0.5
"""Until it is tried again, where the index has not come as far as the log."""


class Judge(Protocol):
    """Tells how likely the later of two texts takes the place of the earlier."""

    def replaces(self, pairs: Sequence[tuple[str, str]]) -> list[float]: ...


class Vectors(NamedTuple):
    """What makes those of the messages that are compared."""

    has_all: Callable[[AgentIndex, int], bool]
    """Whether the first so many messages of an index have theirs."""
    wake: Callable[[str], None]
    """Sees to it that an agent's are made."""


class Links:
    """Which message gives way to which."""

    name = "links"

    def __init__(
        self,
        store: Store,
        indexes: Indexes,
        embedders: Embedders,
        judge: Judge,
        worker: Worker = IN_PROCESS,
        vectors: Vectors | None = None,
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._embedders = embedders
        self._judge = judge
        self._worker = worker
        self._vectors = vectors
        self._wanted_at: dict[str, float] = {}

    async def advance(self, batch: Batch) -> Progress:
        agent_id = batch.agent_id
        after = _event(await self._store.agent_note(agent_id, THROUGH))
        arrivals = await next_arrivals(self._store, agent_id, after_event=after, limit=MESSAGES_AT_A_TIME, by=self.name)
        linked = await self._link(agent_id, arrivals.messages)
        if linked is None:
            return Progress(is_done=False, again_seconds=BEHIND_SECONDS)
        if arrivals.through_event > after:
            await self._store.set_agent_note(agent_id, THROUGH, str(arrivals.through_event), None)
        return Progress(did={"linked": linked} if linked else {}, is_done=arrivals.is_end)

    async def forget(self, erased: Erased) -> Removal:
        """They went with their messages; what may replace others now is compared again."""
        if not erased.is_dry_run and erased.relinked:
            relinked = await self._store.messages_at(erased.agent_id, list(erased.relinked))
            await self._link(erased.agent_id, relinked, waits=False)  # the index was made anew: it has no vectors yet
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        """Every message is compared again; a link that is noted already is not noted twice."""
        await self._store.set_agent_note(agent_id, THROUGH, None, None)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Links from or to what is not there, and a cursor beyond the log's end."""
        self._store.let_go(agent_id)  # what lies there is looked at
        if erased is not None:
            places = list(erased.places)
            return [
                Finding("a link", "it leads from or to it")
                for start in range(0, len(places), PAGE)
                for _ in await self._store.supersessions(agent_id, places[start : start + PAGE])
            ]
        head = await self._store.audit_head(agent_id)
        note = await self._store.agent_note(agent_id, THROUGH)
        found = [] if note is None or 0 < _event(note) <= head.seq else [Finding("links", "the cursor is damaged")]
        known = {one.place async for one in living_messages(self._store, agent_id)}
        links: list[Supersession] = []
        async for arrivals in arrivals_of(self._store, agent_id):
            links += await self._store.supersessions(agent_id, [one.place for one in arrivals.messages])
        stray = {(one.old_place, one.new_place) for one in links if not {one.old_place, one.new_place} <= known}
        gone = [Finding("a link", f"message {old} gives way to {new}, and one is gone") for old, new in sorted(stray)]
        return found + gone

    async def _link(self, agent_id: str, messages: Sequence[PlacedMessage], *, waits: bool = True) -> int | None:
        """How many links there are more; None where index or vectors have not come that far."""
        spoken = {one.place: one for one in await self._worker.run(spoken_in, messages)}
        stating = [one for one in spoken.values() if one.role == "user" and one.read.statements]
        if not stating:
            return 0
        async with self._indexes.following(agent_id, seconds=1.0, is_patient=True) as (index, has_all):
            rows = index.rows.find([one.place for one in stating])
            if not has_all and (rows < 0).any():
                return None
            # The newest have their vectors first: what came before them would be passed over.
            if waits and not self._has_vectors(agent_id, index, int(rows.max()) + 1):
                return None
            near = await asyncio.to_thread(_near, index, self._embedders.fingerprint, stating)
        unknown = sorted({place for places in near.values() for place in places if place not in spoken})
        others = await readable(self._store, agent_id, unknown)
        known = spoken | {one.place: one for one in await self._worker.run(spoken_in, others)}
        by_place = {one.place: one for one in messages}
        count = 0
        for one in stating:
            place = one.place
            candidates = [(known[other], gate) for other, gate in near[place].items() if other in known]
            links = await self._worker.run(_replaced, self._judge, one, candidates) if candidates else []
            if links:
                links += await self._answers(agent_id, links)
                placed = by_place[place]
                details = {"seq": placed.logged.seq, "replaced": len(links), "kind": links[0].kind}
                event = AuditDraft(verb="supersede", actor=LINKER, session_id=placed.session_id, details=details)
                count += await self._store.supersede(agent_id, links, event)
                await retire_corrected(self._store, agent_id, [link.new_place for link in links])
        return count

    def _has_vectors(self, agent_id: str, index: AgentIndex, count: int) -> bool:
        if self._vectors is None or self._vectors.has_all(index, count):
            return True
        at = time.monotonic()  # now and then: the index may be another than they were made for
        if at - self._wanted_at.get(agent_id, -math.inf) > VECTORS_SECONDS:
            self._wanted_at[agent_id] = at
            self._vectors.wake(agent_id)
        return False

    async def _answers(self, agent_id: str, links: Sequence[Supersession]) -> list[Supersession]:
        """What the agent answered to what no longer holds, where it says again what the later one does not."""
        places = [place for link in links for place in (link.old_place, link.old_place + 1, link.new_place)]
        placed = {one.place: one for one in await readable(self._store, agent_id, places)}
        found: list[Supersession] = []
        for link in links:
            old, answer, new = (placed.get(at) for at in (link.old_place, link.old_place + 1, link.new_place))
            if old is None or answer is None or new is None or answer.place == new.place or link.note == UNCLEAR:
                continue
            if answer.session_id == old.session_id and answer.logged.message.role == "assistant":
                was, answered, now = (own_text(one.logged.message.content) for one in (old, answer, new))
                gone = " ".join(was[start:end] for start, end in spans_of(link.note)) or was
                said, again, since = (set(terms(text)) for text in (gone, answered, now))
                if (said - since) & again and all(map(is_common, (since - said) & again)):
                    found.append(msgspec.structs.replace(link, old_place=answer.place, note=""))
        return found


def _replaced(judge: Judge, one: Spoken, others: Sequence[tuple[Spoken, float | None]]) -> list[Supersession]:
    """The links of one message with what is near it: the later replaces the earlier."""
    pairs = pairs_worth_judging(one, others)
    try:
        scores = judge.replaces([(pair.first, pair.second) for pair in pairs]) if pairs else []
    except ModelUnavailable:
        scores = [0.0] * len(pairs)  # what is said again with another value is told by its form
    found: list[Supersession] = []
    for pair, whole in zip(pairs, scores, strict=True):
        score = whole
        old, new = pair.earlier, pair.later
        is_of_several = len(old.read.stated) > 1
        gone: list[Clause] = []
        if is_of_several and score >= POSSIBLE:
            likeliest, gone = _outdated(judge, pair)
            score = max(score, likeliest)
        how_likely = probability(pair, score)
        if is_of_several and how_likely >= SURELY_RESTATED and len(again := restated_in(pair)) == 1:
            gone = again
        if how_likely >= REPLACES:
            is_by_form = score < REPLACES and how_likely < SURELY_RESTATED
            kind = SINCE if is_by_form or (is_of_several and not gone) else PARTLY if is_of_several else CORRECTION
            note = noted([(one.cut_from, one.cut_to) for one in gone]) if gone else UNCLEAR if is_of_several else ""
            link = Supersession(old_place=old.place, new_place=new.place, kind=kind, at=new.said_at, note=note)
            found.append(link)
    return found


def _outdated(judge: Judge, pair: Pair) -> tuple[float, list[Clause]]:
    """How likely the likeliest statement of the earlier is replaced, and which one it is: none, where the later as a
    whole and each of its statements do not agree on one, clearly before the next. A wrong one may be an allergy that
    is told to be over."""
    old, new = pair.earlier.read.stated[:MOST_STATEMENTS], pair.later.read.stated
    said = dict.fromkeys([pair.second, *([one.text for one in new] if len(new) <= MOST_SAID_SINCE else [])])
    try:
        scores = judge.replaces([(one.text, since) for since in said for one in old])
    except ModelUnavailable:
        return 0.0, []
    rows = [
        sorted(zip(scores[at : at + len(old)], old, strict=True), reverse=True)
        for at in range(0, len(scores), len(old))
    ]
    replacing = [row for row in rows if row[0][0] >= REPLACES]
    is_clear = all(_logit(first) - _logit(next_) >= CLEARLY for (first, _), (next_, _), *_ in replacing)
    named = {row[0][1] for row in replacing}
    return max(scores), list(named) if is_clear and len(named) == 1 else []


def _logit(probability: float) -> float:
    bounded = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))


async def relinked(store: Store, lesson: Lesson, by: Caller, written: Sequence[int] = ()) -> None:
    """Keep the links in step with what a person wrote in the place of a lesson: those that the lesson's messages
    make, and no others of its. `written` are places that it does not know
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


# ── in threads ──


def _near(index: AgentIndex, model: str | None, spoken: Sequence[Spoken]) -> dict[int, dict[int, float | None]]:
    """For each, the places of what may be about the same, and what the gate says of each: what means or says nearly the
    same, in turns, and the last turns before it."""
    found: dict[int, dict[int, float | None]] = {one.place: {} for one in spoken}
    for one in spoken:
        row = int(index.rows.find([one.place])[0])
        if row < 0:
            continue
        by_meaning, by_words = _alike(index, model, row), _in_other_turns(index, row, " ".join(one.read.sentences))
        mixed = dict.fromkeys(row for both in zip_longest(by_meaning, by_words) for row in both if row is not None)
        last_turns = _last_turns(index, row)
        rows = list(dict.fromkeys([*last_turns, *list(mixed)[:MOST_ALIKE]]))
        gates = _gates(index, model, row, rows)
        for other, gate in zip(rows, gates, strict=True):
            # Without vectors: "no, it's 9111" shares no word with the turn before.
            passes = relation_gate.LEAST if gate is None and other in last_turns else gate
            found[one.place][int(index.rows.view()["place"][other])] = passes
    return found


def _gates(index: AgentIndex, model: str | None, row: int, others: Sequence[int]) -> list[float | None]:
    """What the gate says of a message and each of the others, whichever came first; None where a vector is missing."""
    vectors = index.vectors(model) if model else None
    if vectors is None or vectors.dimensions != relation_gate.DIMENSIONS or not others:
        return [None] * len(others)
    means = vectors.means(np.array([row, *others]))
    later = np.repeat(means[:1], len(others), axis=0)
    scores = relation_gate.scores(means[1:], later)
    is_there = means[1:].any(axis=1) & means[0].any()
    return [float(score) if there else None for score, there in zip(scores, is_there, strict=True)]


def _alike(index: AgentIndex, model: str | None, row: int) -> list[int]:
    """What came before it and means nearly the same; nothing where it has no vector yet."""
    vectors = index.vectors(model) if model else None
    if vectors is None or not vectors.has(row + 1)[row]:
        return []
    view = index.rows.view()[: index.rows.count]
    is_open = (np.arange(len(view)) < row) & (view["role"] == USER)
    rows, likeness = vectors.nearest(vectors.means(np.array([row]))[0], 2 * MOST_ALIKE, is_open)
    return [int(other) for other, value in zip(rows, likeness, strict=True) if value >= NEAR]


def _last_turns(index: AgentIndex, row: int) -> list[int]:
    """Of the session, the agent's among them: a person may correct it."""
    previous = index.rows.view()["previous"]
    rows: list[int] = []
    while (row := int(previous[row])) >= 0 and len(rows) < TURNS_BACK:
        rows.append(row)
    return rows


def _in_other_turns(index: AgentIndex, row: int, text: str) -> list[int]:
    """What people said before it that shares most words with it."""
    from offbook.search.candidates import by_text, known_words

    words = known_words(index, query_terms(text), row)
    rows = by_text(index, words, row, session=None, is_open=None)
    return [int(other) for other in rows[index.rows.view()["role"][rows] == USER]]


def _event(note: str | None) -> int:
    """A note that nobody can read begins anew: what is known already is not noted twice."""
    return int(note) if note and note.isascii() and note.isdigit() and len(note) < 19 else 0
