"""What is to be forgotten: the messages, their words, and by which words they are known again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from offbook.forget.probes import MOST_PROBES, candidates_of, chosen, is_id, phrases
from offbook.forget.retention_rule import kept_from
from offbook.ingest.secret_scan import redact_message
from offbook.log.erasure import Phrases, Window, WordRuns, texts_of, windows_of, without_common
from offbook.log.reading import with_parts
from offbook.log.store import Blobs, Store
from offbook.model.content import said_in
from offbook.model.memory_entry import PlacedMessage
from offbook.model.receipt import FORGOTTEN, ForgottenSpan, Selection
from offbook.model.types import Message, Scope
from offbook.projections.log_pages import arrivals_of

PAGE = 500
MOST_PHRASES = 200
"""Looked for byte by byte, in every file."""


class Selected(NamedTuple):
    """The messages that were selection, and how their words are known again."""

    places: list[int]
    seqs: list[tuple[str, int]]
    """Session and number of each."""
    windows: set[Window]
    """Stretches of words that nobody else says."""
    probed: set[Window]
    """Those of them that become probes."""
    wordless: int
    """How many messages no probe knows again: one word, or what others say, too."""
    phrases: list[str]
    """As they were written, for those who look through bytes."""
    secrets: dict[str, int]
    """How many of each kind they hold, where they were selected by that."""

    @property
    def known(self) -> Known:
        return Known(self.phrases, self.probed)


class Known(NamedTuple):
    """Its words, until all is done; afterwards, and where it broke off, there are the probes only."""

    phrases: Sequence[str] = ()
    probed: Collection[Window] = ()


Said = tuple[PlacedMessage, Message]
"""A message in its place, and whole."""


async def pages_of(store: Store, blobs: Blobs, agent_id: str, *, after_event: int = 0) -> AsyncIterator[list[Said]]:
    """Every message of the agent that was not forgotten, in pages; or those that came after an event. Grows with
    history."""
    async for arrivals in arrivals_of(store, agent_id, after_event=after_event):
        yield await _living(blobs, agent_id, arrivals.messages)


async def said_since(
    store: Store, blobs: Blobs, agent_id: str, selection: Selection, event: int
) -> list[tuple[str, int]]:
    """Session and number of what came after the event and says what is meant, too."""
    if selection.everything:
        return []  # what comes after it was asked for is a new beginning
    is_wanted = _saying(selection)
    late: list[tuple[str, int]] = []
    async for page in pages_of(store, blobs, agent_id, after_event=event):
        wanted = await asyncio.to_thread(_those, page, is_wanted)
        late += [(placed.session_id, placed.logged.seq) for placed, _ in wanted]
    return late


async def places_in(store: Store, agent_id: str, spans: Sequence[ForgottenSpan]) -> list[int]:
    """Where the messages of these stretches lie, also forgotten ones. Grows with them, not with history."""
    places: list[int] = []
    for span in spans:
        scope = Scope(agent_id=agent_id, session_id=span.session_id)
        for first in range(span.first_seq, span.last_seq + 1, PAGE):
            places += await store.places(scope, range(first, min(first + PAGE, span.last_seq + 1)))
    return places


async def select(store: Store, blobs: Blobs, agent_id: str, selection: Selection, also: Sequence[str] = ()) -> Selected:
    """What is meant, and then, in a walk through the agent's log, which of its words are its own. `also`: texts that
    others are told in, beside the log."""
    wanted: list[Said] = []
    async for page in _those_selected(store, blobs, agent_id, selection):
        wanted += page
    said = [_spoken(placed, message) for placed, message in wanted]
    by_message = await asyncio.to_thread(candidates_of, said)
    windows = {window for each in by_message for window in each}
    places = {placed.place for placed, _ in wanted}
    sought = WordRuns(windows)
    async for page in pages_of(store, blobs, agent_id) if windows else _nothing():
        others = [message for placed, message in page if placed.place not in places]
        windows -= await asyncio.to_thread(_in_any, sought, others)
    without_common(windows, also)
    phrased = Phrases(selection.matching or ())
    named = set(phrased.named)
    written = await asyncio.to_thread(lambda: {each for _, message in wanted for each in phrased.as_written(message)})
    own = [[window for window in each if window in windows] for each in by_message]
    probed = named | chosen(own, MOST_PROBES - len(named))
    texts = [text for each in said for text in each]
    return Selected(
        places=[placed.place for placed, _ in wanted],
        seqs=[(placed.session_id, placed.logged.seq) for placed, _ in wanted],
        windows=windows | named,
        probed=probed,
        wordless=await asyncio.to_thread(_wordless, said, own, probed, named),
        phrases=sorted(written)[:MOST_PHRASES] or await asyncio.to_thread(phrases, texts, windows, MOST_PHRASES),
        secrets=await asyncio.to_thread(_secrets, wanted, selection) if selection.with_secrets else {},
    )


async def _those_selected(store: Store, blobs: Blobs, agent_id: str, selection: Selection) -> AsyncIterator[list[Said]]:
    """Where it is said which they are, only those are read; else all of the agent's log."""
    if selection.matching is None and selection.entry_places is not None:
        async for page in _pages_at(store, blobs, agent_id, sorted(selection.entry_places)):
            yield page
    elif selection.matching is None and selection.hashes is not None:
        async for page in _pages_at(store, blobs, agent_id, await store.places_hashed(agent_id, selection.hashes)):
            yield page
    elif selection.matching is None and selection.session_id is not None:
        scope, after = Scope(agent_id=agent_id, session_id=selection.session_id), 0
        while logged := await store.messages(scope, after_seq=after, limit=PAGE):
            after = logged[-1].seq
            places = await store.places(scope, [one.seq for one in logged])
            yield await _living(blobs, agent_id, await store.messages_at(agent_id, places))
    elif selection.matching is None and selection.before is not None:
        async for page in _old(store, blobs, agent_id, selection.before, selection.at):
            yield page
    else:
        is_wanted = _saying(selection)
        async for page in pages_of(store, blobs, agent_id):
            yield await asyncio.to_thread(_those, page, is_wanted)


async def _old(
    store: Store, blobs: Blobs, agent_id: str, before: datetime, at: datetime | None
) -> AsyncIterator[list[Said]]:
    """What the clock said is followed through all that came, also what was forgotten since."""
    pinned = set(await store.pinned(agent_id, limit=1_000_000))
    latest: datetime | None = None
    async for arrivals in arrivals_of(store, agent_id):
        old: list[PlacedMessage] = []
        for placed in arrivals.messages:
            received_at = placed.logged.received_at
            if kept_from(placed.logged.message.ts, received_at, latest) < before and placed.place not in pinned:
                old.append(placed)
            if at is None or received_at <= at:
                latest = received_at if latest is None else max(latest, received_at)
        yield await _living(blobs, agent_id, old)


async def _pages_at(store: Store, blobs: Blobs, agent_id: str, places: Sequence[int]) -> AsyncIterator[list[Said]]:
    for first in range(0, len(places), PAGE):
        yield await _living(blobs, agent_id, await store.messages_at(agent_id, places[first : first + PAGE]))


async def _living(blobs: Blobs, agent_id: str, messages: Sequence[PlacedMessage]) -> list[Said]:
    """Those that were not forgotten, whole."""
    living = [placed for placed in messages if placed.logged.entry.noise != FORGOTTEN]
    return [(placed, await _whole(blobs, agent_id, placed)) for placed in living]


def _wordless(
    said: Sequence[Sequence[str]], own: Sequence[Sequence[Window]], probed: set[Window], named: set[Window]
) -> int:
    def is_known(texts: Sequence[str], windows: Sequence[Window]) -> bool:
        if not probed.isdisjoint(windows):
            return True
        return any(each in windows_of(text, len(each)) for each in named for text in texts)

    return sum(not is_known(texts, windows) for texts, windows in zip(said, own, strict=True))


def _those(page: Sequence[Said], is_wanted: Callable[[PlacedMessage, Message], bool]) -> list[Said]:
    return [said for said in page if is_wanted(*said)]


def _spoken(placed: PlacedMessage, message: Message) -> list[str]:
    """Texts that it may be known by: not what stays of it, nor what a host wrote beside it to find it again."""
    said = list(said_in(message.content))
    # That it was written in the place of a lesson is no word of it: the lesson has its number all the same.
    beside = [text for text in texts_of(msgspec.structs.replace(message, content="")) if text and not is_id(text)]
    return [text for text in said + beside if text not in (placed.session_id, message.id)]


def _in_any(sought: WordRuns, messages: Sequence[Message]) -> set[Window]:
    return {window for message in messages for text in texts_of(message) for window in sought.found_in(text)}


async def _nothing() -> AsyncIterator[list[Said]]:
    return
    yield


def _secrets(said: Sequence[Said], selection: Selection) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for _, message in said:
        counts.update(redact_message(message, with_personal_numbers=selection.with_personal_numbers)[1])
    return dict(sorted(counts.items()))


def _saying(selection: Selection) -> Callable[[PlacedMessage, Message], bool]:
    if selection.everything:
        return lambda placed, message: True
    if selection.with_secrets:
        return lambda placed, message: bool(_secrets([(placed, message)], selection))
    phrased, also = Phrases(selection.matching or ()), selection.hashes or frozenset()
    return lambda placed, message: placed.logged.hash in also or phrased.are_said(message)


async def _whole(blobs: Blobs, agent_id: str, placed: PlacedMessage) -> Message:
    references = [one for one in placed.logged.entry.blobs if not one.is_binary]
    return (await with_parts(blobs, agent_id, placed.logged, references))[0]


def sequences(found: Sequence[tuple[str, int]]) -> dict[str, set[int]]:
    """The numbers of each session."""
    by_session: dict[str, set[int]] = {}
    for session_id, seq in found:
        by_session.setdefault(session_id, set()).add(seq)
    return by_session
