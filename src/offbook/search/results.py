"""What is shown of what was found: entries, and how they came about."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from offbook.log.audit_chain import micros
from offbook.log.store import Blobs, Store
from offbook.log.tiers import tier_of
from offbook.model.content import is_result, own_text, render, text_of
from offbook.model.memory_entry import Explained, Hold, MemoryEntry, PlacedMessage, Replaced, Why
from offbook.model.sentences import parts
from offbook.model.settings.sections import Ttl
from offbook.model.types import Message, Span
from offbook.search.ask import Ask, Found
from offbook.search.probability import AT_BEST, probability, spoken
from offbook.search.query import read_query
from offbook.search.resolve import ResolvedHit
from offbook.search.spotting import Spotter
from offbook.search.whole_messages import is_large, large_chars, readable, whole_text
from offbook.search.words import entry_id, indexed_terms, pieces_of

if TYPE_CHECKING:
    from offbook.search.ranking import Hit


# ── A message as the passages that are embedded: whole sentences, about a paragraph each ──

PASSAGE_CHARS = 600
LONGEST_WHOLE_CHARS = 750
"""A message a little longer than a passage stays whole rather than leave a scrap."""
MOST_PASSAGES = 48
"""Of one message. What a pasted file means is told by its beginning; the text index has the words of all of it."""
_CJK_CHARS_FOR_LATIN = 2.5
"""A Chinese character is about as many tokens as this many Latin letters."""


def has_more(text: str, found: Sequence[str]) -> bool:
    """Whether the text goes on after the passages that were found in it."""
    return len(found) == MOST_PASSAGES or len(text.strip()) > _limits(text.strip())[0] * (MOST_PASSAGES + 1)


def passages(text: str) -> list[str]:
    """At least one, however short the text."""
    text = text.strip()
    limit, whole = _limits(text)
    if len(text) <= whole:
        return [text]
    found: list[str] = []
    current = ""
    for sentence in _sentences(text[: limit * (MOST_PASSAGES + 1)], limit):
        if current and len(current) + len(sentence) + 1 > limit:
            found.append(current)
            current = ""
        current = f"{current} {sentence}" if current else sentence
    if current:
        found.append(current)
    return found[:MOST_PASSAGES] or [text[:limit]]


def _limits(text: str) -> tuple[int, int]:
    sample = text[: 4 * PASSAGE_CHARS]
    is_wide = sum("\u3040" <= letter <= "\ud7a3" for letter in sample) * 3 > len(sample)
    share = _CJK_CHARS_FOR_LATIN if is_wide else 1.0
    return int(PASSAGE_CHARS / share), int(LONGEST_WHOLE_CHARS / share)


def _sentences(text: str, limit: int) -> list[str]:
    found: list[str] = []
    for part in parts(text):
        found += _pieces(part, limit)
    return found


def _pieces(sentence: str, limit: int) -> Iterator[str]:
    """Of a sentence that is longer than a passage: cut between words, where there are any."""
    while len(sentence) > limit:
        at = sentence.rfind(" ", limit // 2, limit + 1)
        piece = sentence[: at if at > 0 else limit]
        yield piece.rstrip()
        sentence = sentence[len(piece) :].lstrip()
    if sentence:
        yield sentence


# ── What is shown of a message: all of it, or the part that was asked for, in whole sentences ──

WHOLE_CHARS = LONGEST_WHOLE_CHARS
"""A message up to this long is shown whole."""
EXCERPT_CHARS = PASSAGE_CHARS
SEARCHED_CHARS = 6_000
"""Of a long text: pieces that are searched for the words, and of which the best are read."""
PIECES_READ = 8
BESIDE_CHARS = 300
"""Read before and after a piece: the sentence may have begun there."""
CUT = "…"


class _Shown(NamedTuple):
    score: float
    passage: str
    is_first: bool
    is_last: bool


def excerpt(text: str, asked: Collection[str], part: int | None = None) -> str:
    """At most about EXCERPT_CHARS around what was asked for. `part`: the passage that means most like it."""
    text = text.strip()
    if len(text) <= WHOLE_CHARS:
        return text
    found = passages(text)
    goes_on = has_more(text, found)
    shown = _in_long(text, asked, found, part) if goes_on and asked else None
    if shown is None:
        best = max(range(len(found)), key=lambda at: (_shared(found[at], asked) + 0.5 * (at == part), -at))
        shown = _Shown(0.0, found[best], best == 0, best == len(found) - 1 and not goes_on)
    return f"{'' if shown.is_first else f'{CUT} '}{shown.passage}{'' if shown.is_last else f' {CUT}'}"


def _shared(passage: str, asked: Collection[str]) -> int:
    return len(set(indexed_terms(passage)) & set(asked)) if asked else 0


def _in_long(text: str, asked: Collection[str], beginning: list[str], part: int | None) -> _Shown | None:
    """Of a text that is too long to be read: the passage with the words that are rarest in it. None where it has none
    of them."""
    spotter = Spotter(asked)
    pieces = [(start, end, spotter.held_in_piece(text[start:end])) for start, end in pieces_of(text, SEARCHED_CHARS)]
    times = {term: sum(term in held for _, _, held in pieces) for term in spotter.terms}
    weights = {term: math.log1p(len(pieces) / count) for term, count in times.items() if count}
    if not weights:
        return None
    best = sorted(pieces, key=lambda piece: -sum(weights[term] for term in piece[2]))[:PIECES_READ]
    shown = [_shown_in(text, start, end, weights) for start, end, held in sorted(best) if held]
    if part is not None and part < len(beginning):
        nearest = beginning[part]
        score = _weight(nearest, weights) + min(weights.values()) / 2
        shown.insert(0, _Shown(score, nearest, part == 0, is_last=False))
    return max(shown, key=lambda one: one.score)  # the first of equals


def _shown_in(text: str, start: int, end: int, weights: Mapping[str, float]) -> _Shown:
    first, last = max(0, start - BESIDE_CHARS), min(len(text), end + BESIDE_CHARS)
    found = passages(text[first:last])
    scores = [_weight(passage, weights) for passage in found]
    at = max(range(len(found)), key=lambda one: (scores[one], -one))
    return _Shown(scores[at], found[at], not first and not at, last == len(text) and at == len(found) - 1)


def _weight(passage: str, weights: Mapping[str, float]) -> float:
    return sum(weights[term] for term in set(indexed_terms(passage)) & weights.keys())


CHARS_AT_ONCE = 20_000
"""Of messages: reading more than this would hold up whoever else is being served."""
LARGEST_CUT_CHARS, LARGEST_CUT_IN_A_TURN_CHARS = 32_000_000, 1_000_000
"""Of all that one answer shows something of, read one after the other: of more than that the beginning is shown. A turn
has a deadline, and without its recall nothing comes to mind."""
MIDDLING, SPREAD = 4.0, 2.5
"""The score shown as 0.5, and how fast it goes to 0 and 1 from there. Only the order means anything."""


@dataclass(frozen=True, eq=False)
class Lead:
    """Something that stands, and may be shown. What is told of it is made when it is asked for: of a long message that
    takes a while, and most leads come to nothing."""

    found: Found
    resolved: ResolvedHit
    messages: Mapping[int, PlacedMessage]
    """Its own, and those that it replaces."""
    whole: Message | None
    """Its own with its large texts, where it has any that are not too large to be kept until somebody asks."""
    cut: str | None = None
    """What is shown of one that is too large, once it is chosen."""

    @property
    def placed(self) -> PlacedMessage:
        return self.messages[self.resolved.place]

    @property
    def hit(self) -> Hit | None:
        """None where it was not found itself but replaced what was."""
        return self.found.hits.get(self.resolved.place)

    @cached_property
    def text(self) -> str:
        return self.cut if self.cut is not None else self.shown_of(self.whole or self.placed.logged.message)

    def shown_of(self, message: Message) -> str:
        return excerpt(render(message), self.found.ranking.words, self.hit.part if self.hit else None)

    @property
    def is_uncut(self) -> bool:
        """Too large to be looked into for anybody who may not show it."""
        return self.cut is None and is_large(self.placed)

    @property
    def chars(self) -> int:
        return EXCERPT_CHARS if self.is_uncut else len(self.text)

    @property
    def similarity(self) -> float | None:
        """As it is told; None where there is none, and where it stands in for what was found: it answers as well."""
        return None if self._stands_in or self.hit is None else _rounded(self.hit.similarity)

    @property
    def is_by_text(self) -> bool:
        return self._stands_in or (self.hit is not None and "text" in self.hit.found_by)

    @cached_property
    def probability(self) -> float:
        """That it is a memory that matters for what was asked. What stands in for others answers as well as they do."""
        message = self.placed.logged.message
        return self._probability(spoken(own_text(message.content), is_user=message.role == "user"))

    @cached_property
    def most_probability(self) -> float:
        """What it cannot exceed, whatever its message states: that takes a while to read."""
        return self._probability(AT_BEST)

    def _probability(self, of_message: Mapping[str, float]) -> float:
        hits = [self.found.hits.get(place) for place in (self.resolved.place, *self.resolved.replaces)]
        return max(
            (probability({**hit.signals, **of_message}, by_words=hit.by_words) for hit in hits if hit is not None),
            default=0.0,
        )

    @property
    def origin(self) -> str:
        return origin_of(self.placed.logged.message)

    @property
    def _stands_in(self) -> bool:
        return self.hit is None or any(place in self.messages for place in self.resolved.replaces)


Choose = Callable[[Sequence[Lead]], Sequence[Lead]]
"""Of these, best first, the ones to show."""


async def leads_of(store: Store, blobs: Blobs, found: Found, chosen: Sequence[ResolvedHit]) -> list[Lead]:
    """Of what stands. What cannot be read is left out."""
    if not chosen:
        return []
    agent_id = found.agent_id
    places = [place for one in chosen for place in (one.place, *one.replaces)]
    messages = {one.place: one for one in await readable(store, agent_id, places)}
    wholes = {one.place: whole for one in messages.values() if (whole := await whole_text(blobs, agent_id, one))}
    return [Lead(found, one, messages, wholes.get(one.place)) for one in chosen if one.place in messages]


async def entries_of(
    blobs: Blobs, leads: Sequence[Lead], choose: Choose, ask: Ask, ttl_of: Callable[[str], Ttl], at: datetime
) -> list[MemoryEntry]:
    """Those that are chosen, with their text, their tier and why they were found."""
    chars = sum(lead.placed.logged.entry.chars for lead in leads)
    is_heavy = chars > CHARS_AT_ONCE or any(lead.whole is not None for lead in leads)
    chosen = await asyncio.to_thread(choose, leads) if is_heavy else choose(leads)
    shown: list[Lead] = []
    left = LARGEST_CUT_CHARS if ask.seconds is None else LARGEST_CUT_IN_A_TURN_CHARS
    for lead in chosen:
        large = large_chars(lead.placed) if lead.is_uncut else 0
        shown.append(await _cut(blobs, lead, large) if 0 < large <= left else lead)
        left -= large if large <= left else 0

    def tell() -> list[MemoryEntry]:
        return [_entry(ask, lead, ttl_of(lead.found.agent_id), at) for lead in shown]

    return await asyncio.to_thread(tell) if is_heavy else tell()


async def _cut(blobs: Blobs, lead: Lead, chars: int) -> Lead:
    whole = await whole_text(blobs, lead.found.agent_id, lead.placed, most_chars=chars)
    return replace(lead, cut=await asyncio.to_thread(lead.shown_of, whole)) if whole else lead


def _entry(ask: Ask, lead: Lead, ttl: Ttl, at: datetime) -> MemoryEntry:
    found, one, placed, hit = lead.found, lead.resolved, lead.placed, lead.hit
    message, arrived = placed.logged.message, placed.logged.received_at
    hold, offloaded = found.holds.get(one.place, Hold()), found.offloaded
    return MemoryEntry(
        id=entry_id(one.place),
        agent_id=found.agent_id,
        session_id=placed.session_id,
        text=lead.text,
        ts=message.ts or arrived,
        score=squashed(one.score),
        found_by=[*(hit.found_by if hit else ["correction"]), *(["pin"] if hold.pinned else [])],
        span=Span(first_seq=placed.logged.seq, last_seq=placed.logged.seq),
        tier=tier_of(
            arrived,
            hold,
            is_offloaded=offloaded is not None and offloaded.covers(micros(arrived), one.place),
            ttl=ttl,
            at=at,
        ),
        pinned=hold.pinned,
        origin=lead.origin,
        superseded_by=None if one.superseded_by is None else entry_id(one.superseded_by),
        followed_by=None if one.followed_by is None else entry_id(one.followed_by),
        why=_why(ask, lead),
    )


def origin_of(message: Message) -> str:
    """Where it came from, as the host said, or as its blocks show: what a tool printed is a tool's, whoever sent it."""
    if message.origin:
        return message.origin
    blocks = [] if isinstance(message.content, str) else message.content
    has_result = any(is_result(block) for block in blocks)
    if not has_result or message.role == "tool":
        return message.role
    return f"{message.role}+tool" if text_of(message.content).strip() else "tool"


def squashed(score: float) -> float:
    """A score between 0 and 1 that keeps the order."""
    return round(1 / (1 + math.exp(-max(-40.0, min(40.0, (score - MIDDLING) / SPREAD)))), 6)


def _is_answer(place: int, replaces: Collection[int], messages: Mapping[int, PlacedMessage]) -> bool:
    """What the agent answered to what was replaced goes with it, but is nothing that was corrected."""
    return place - 1 in replaces and messages[place].logged.message.role == "assistant"


def _why(ask: Ask, lead: Lead) -> Why | None:
    one, hit, messages = lead.resolved, lead.hit, lead.messages
    replaces = [
        Replaced(
            id=entry_id(place),
            text=excerpt(render(messages[place].logged.message), ()),
            ts=messages[place].logged.message.ts or messages[place].logged.received_at,
        )
        for place in one.replaces
        if place in messages and not _is_answer(place, one.replaces, messages)
    ]
    if not ask.explain:
        return Why(replaces=replaces) if replaces else None
    return Why(
        replaces=replaces,
        speaker=messages[one.place].logged.message.name,
        probability=round(lead.probability, 4),
        similarity=_rounded(hit.similarity) if hit else None,
        ranks=hit.ranks if hit else {},
        evidence={name: round(value, 3) for name, value in hit.evidence.items()} if hit else {},
    )


def _rounded(similarity: float | None) -> float | None:
    return None if similarity is None else round(similarity, 4)


def explained_by(ask: Ask, found: Sequence[Found]) -> Explained:
    phrases = [one.phrase for each in found for one in each.times.ranges]
    phrases += [one.phrase for each in found for one in each.times.bounds]
    return Explained(
        query=read_query(ask.query).text,
        looked_for=list(dict.fromkeys(word for one in found for word in one.ranking.words)),
        times=list(dict.fromkeys(phrases)),
        recipes={one.agent_id: one.ranking.recipe for one in found},
        looked_at=sum(one.ranking.looked_at for one in found),
        left_out=[left for one in found for left in one.left_out],
    )
