"""The hot swap sessions of a host that has many conversations, and a history that the host made anew laid beside what
one of them recorded lately."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from itertools import pairwise, takewhile
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.model.content import render
from offbook.model.errors import OffbookError
from offbook.model.types import Message

MOST_SESSIONS = 1_000
"""Held at a time. One that was let go begins again with what the provider has of it."""


class Sessions:
    """For any thread; `options` are those of `HotSwapSession`."""

    def __init__(self, memory: Client, options: dict[str, Any], most: int = MOST_SESSIONS) -> None:
        self._memory = memory
        self._options = options
        self._most = most
        self._held: OrderedDict[str, _Begun] = OrderedDict()
        self._changing = threading.Lock()

    def of(self, session_id: str) -> BlockingHotSwapSession:
        let_go = None
        with self._changing:
            begun = self._held.get(session_id)
            if begun is None:
                begun = _Begun(BlockingHotSwapSession(self._memory, session_id, **self._options))
                self._held[session_id] = begun
                let_go = self._held.popitem(last=False)[1] if len(self._held) > self._most else None
            self._held.move_to_end(session_id)
        if let_go is not None:
            let_go.session.close()
        return begun.get()


class _Begun:
    """A session that has begun when it is got: what is added before that would be taken for new."""

    def __init__(self, session: BlockingHotSwapSession) -> None:
        self.session = session
        self._has_begun = False
        self._beginning = threading.Lock()  # its own: a provider that is slow holds up no other conversation

    def get(self) -> BlockingHotSwapSession:
        with self._beginning:
            if not self._has_begun:
                self.session.start()
                self._has_begun = True
        return self.session


# ── What a module of this package says where its framework is not installed ──


class MissingExtra(OffbookError, ImportError):
    """A framework is not installed."""


def missing(framework: str, extra: str, error: ImportError) -> MissingExtra:
    return MissingExtra(f"{framework} is not installed ({error}): run `pip install 'offbook[{extra}]'`")


# ── What a session recorded lately, and a history that the host made anew laid beside it ──
# A message is known by its id. A host that keeps only words makes its messages anew for each turn, and its
# framework gives them new ids: recorded by those, all of the conversation would be said again with every turn. So
# where an id is unknown, the message is looked for among those that were recorded last, by who said what, in their
# order.


COMPARED_MESSAGES = 256
"""How many messages are compared, of those that were recorded, here and by all, and of those that are given, the newest
of each: what a turn costs does not grow with its session."""
LEAST_ALIKE = 2
"""Messages that must be the same before others count as older than all that is compared: one alone ("OK") says
nothing."""


class KnownMessage(NamedTuple):
    """A message that was recorded, or one that is given. `fingerprint` is None where it is known without."""

    id: str
    fingerprint: bytes | None = None
    role: str = ""


class Alignment(NamedTuple):
    names: dict[int, str]
    """Of what is given under an id of its own: the id that it was recorded under."""
    older: int = 0
    """How many of the first ones are older than what was recorded lately."""


class Taken(NamedTuple):
    names: dict[str, str]
    """From the host's ids to those that the messages are recorded under, where these differ."""
    older: frozenset[str]
    """Ids of the host's of what was recorded too long ago to be looked for."""


class HistoryMatcher:
    """Of one session, for any thread. It does not hold the session: it is let go with it."""

    def __init__(self) -> None:
        self._known: deque[KnownMessage] = deque(maxlen=COMPARED_MESSAGES)
        self._has_asked = False
        self._names: dict[str, str] = {}
        self._older: frozenset[str] = frozenset()
        self._changing = threading.Lock()

    def add(self, session: BlockingHotSwapSession, message: Message) -> None:
        """Record what has just been said."""
        with self._changing:
            self._record(session, message)

    def take(self, session: BlockingHotSwapSession, ids: Sequence[str], message_at: Callable[[int], Message]) -> Taken:
        """Record what is new of a conversation, given with all that went before."""
        with self._changing:
            known = [self._names.get(one) or (one if session.knows(one) else None) for one in ids]
            unknown = [at for at, name in enumerate(known) if name is None and ids[at] not in self._older]
            laid = self._laid(session, known, unknown, message_at)
            for at in unknown:
                name = laid.names.get(at)
                if name is None:
                    if at >= laid.older:
                        self._record(session, message_at(at))
                # Another process recorded it: the log has it and stores an id once, what this session gives the model
                # has it not.
                elif not session.knows(name):
                    session.add(msgspec.structs.replace(message_at(at), id=name))
            names = {one: name for one, name in zip(ids, known, strict=True) if name is not None and name != one}
            # Only of what is given now: such a host has other ids the next time.
            self._names = names | {ids[at]: name for at, name in laid.names.items()}
            self._older = self._older.intersection(ids) | {ids[at] for at in unknown if at < laid.older}
            return Taken(self._names, self._older)

    def ids(self) -> frozenset[str]:
        return frozenset(one.id for one in self._known)

    def _laid(
        self,
        session: BlockingHotSwapSession,
        known: Sequence[str | None],
        unknown: Sequence[int],
        message_at: Callable[[int], Message],
    ) -> Alignment:
        """Nothing where all that is unknown is new. What is asked last always is: who says the same again, says it
        twice."""
        end = len(known)
        if unknown and unknown[-1] == end - 1 and message_at(end - 1).role != "assistant":
            end -= 1
        unknown = [at for at in unknown if at < end]
        if not unknown:
            return Alignment({})
        newest = known[unknown[0] - 1] if unknown[0] and not any(known[unknown[0] :]) else None
        if self._ends_with(newest):
            return Alignment({})
        is_first = not self._has_asked
        if is_first:
            self._look_back(session)
            if not self._known or self._ends_with(newest):
                return Alignment({})
        first = end - COMPARED_MESSAGES  # what comes before is not looked at, but counted
        compared = {at for at in unknown if at >= first}
        given = [
            _known_message(message_at(at)) if at in compared else KnownMessage(name or "")
            for at, name in enumerate(known[:end])
        ]
        laid = aligned(given, list(self._known))
        if not is_first and any(at >= laid.older and at not in laid.names for at in unknown):
            self._look_back(session)  # before it is taken for new: another process may have answered the last turn
            laid = aligned(given, list(self._known))
        return laid

    def _ends_with(self, message_id: str | None) -> bool:
        return message_id is not None and bool(self._known) and self._known[-1].id == message_id

    def _look_back(self, session: BlockingHotSwapSession) -> None:
        """What the provider has: of a host that was started again, or of another process."""
        self._has_asked = True
        log = [_known_message(one) for one in session.recorded(COMPARED_MESSAGES) if one.id is not None]
        together = merged_history(log, list(self._known)[-COMPARED_MESSAGES:])
        # Room for all of both: they may have nothing in common, and nobody can tell which of them are newer.
        self._known = deque(together, maxlen=max(COMPARED_MESSAGES, len(together)))

    def _record(self, session: BlockingHotSwapSession, message: Message) -> None:
        is_new = message.id is None or not session.knows(message.id)
        said = session.add(message)
        if is_new and said.id is not None:
            self._known.append(_known_message(said))


class HistoryMatchers:
    """Of all sessions that are in use. For any thread."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[BlockingHotSwapSession, HistoryMatcher] = WeakKeyDictionary()
        self._changing = threading.Lock()

    def of(self, session: BlockingHotSwapSession) -> HistoryMatcher:
        with self._changing:
            return self._held.setdefault(session, HistoryMatcher())


def _known_message(message: Message) -> KnownMessage:
    """Who said what, in whatever blocks."""
    said = f"{message.role}\n{render(message)}".encode("utf-8", "surrogatepass")
    return KnownMessage(message.id or "", blake2b(said, digest_size=16).digest(), message.role)


def merged_history(log: Sequence[KnownMessage], own: Sequence[KnownMessage]) -> list[KnownMessage]:
    """The log's messages in its order, which is that of all processes, and those of ours that it has not: behind what
    they stood behind, and the newest, which are still on their way, at the end.

    Ours are as they were said: of what was redacted the log has other words.
    """
    there, said = {one.id for one in log}, {one.id: one for one in own}
    behind: defaultdict[str, list[KnownMessage]] = defaultdict(list)
    last = ""
    for one in own:
        if one.id in there:
            last = one.id
        else:
            behind[last].append(one)
    newest = behind.pop(last, [])
    together = behind.pop("", [])
    for one in log:
        together += [said.get(one.id, one), *behind.get(one.id, ())]
    return together + newest


def aligned(given: Sequence[KnownMessage], recorded: Sequence[KnownMessage]) -> Alignment:
    """Which of the messages given, of those that are not known, were recorded under which id.

    In their order, as many as can be; what stands behind the last of them is new. What stands before it may have been
    recorded late, and is looked for wherever it is.
    """
    first = max(0, len(given) - COMPARED_MESSAGES)
    claimed = {one.id for one in given[first:] if one.fingerprint is None}
    theirs = [one.id if one.id in claimed else one.fingerprint for one in recorded]
    ours = [one.fingerprint or one.id for one in given[first:]]
    pairs = [(at + first, there) for at, there in in_order(ours, theirs)]
    if not pairs:
        return Alignment({})
    names = {at: recorded[there].id for at, there in pairs if given[at].fingerprint is not None}
    begins, ends = pairs[0][0], pairs[-1][0]
    is_made_anew = begins in names
    is_cut = is_made_anew and len(names) >= LEAST_ALIKE and len(recorded) >= COMPARED_MESSAGES
    if is_made_anew:
        names |= _changed(given, recorded, pairs)
    taken = claimed.union(names.values())
    left: dict[bytes | None, list[str]] = {}
    for one in recorded:
        if one.id not in taken:
            left.setdefault(one.fingerprint, []).append(one.id)
    for at in range(begins if is_cut else first, ends):
        alike = left.get(given[at].fingerprint) if given[at].fingerprint is not None and at not in names else None
        if alike:
            names[at] = alike.pop(0)
    return Alignment(names, begins if is_cut else 0)


def _changed(
    given: Sequence[KnownMessage], recorded: Sequence[KnownMessage], pairs: Sequence[tuple[int, int]]
) -> dict[int, str]:
    """What stands between the same messages in both and reads otherwise: of what was redacted, or kept outside the
    log, the provider has other words."""
    names: dict[int, str] = {}
    for (at, there), (next_at, next_there) in pairwise(pairs):
        between, theirs = given[at + 1 : next_at], recorded[there + 1 : next_there]
        if between and theirs:
            alike = in_order([one.role for one in between], [one.role for one in theirs])
            unknown = (pair for pair in alike if between[pair[0]].fingerprint is not None)
            names |= {at + 1 + here: theirs[other].id for here, other in unknown}
    return names


def in_order(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest sequence that both have: the places of each of its members. Of several, the one that stands first in
    ours."""
    # What only one of them has is in no such sequence: mostly the rest is the same in both.
    left, right = set(ours), set(theirs)
    first = [at for at, one in enumerate(ours) if one in right]
    second = [at for at, one in enumerate(theirs) if one in left]
    pairs = _longest([ours[at] for at in first], [theirs[at] for at in second])
    return [(first[at], second[there]) for at, there in pairs]


def _longest(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> list[tuple[int, int]]:
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    pairs = [(at, at) for at in range(alike)]
    ours, theirs = ours[alike:], theirs[alike:]
    longest = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for at in range(len(ours) - 1, -1, -1):
        row, below, one = longest[at], longest[at + 1], ours[at]
        for there in range(len(theirs) - 1, -1, -1):
            row[there] = below[there + 1] + 1 if one == theirs[there] else max(below[there], row[there + 1])
    at = there = 0
    while longest[at][there]:
        if longest[at][there + 1] == longest[at][there]:
            there += 1
        elif ours[at] == theirs[there]:
            pairs.append((at + alike, there + alike))
            at, there = at + 1, there + 1
        else:
            at += 1
    return pairs
