"""The newest messages as they are shown: word for word, the longest by their ends. Pure; no model, no store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple

import msgspec

from offbook.context.replayable import QUOTED_CHARS, has_own_words, leading_orphans
from offbook.context.validity import placed
from offbook.ingest.frames import frame
from offbook.model.content import is_result, render, text_of, tool_results
from offbook.model.settings.sections import ContextBudget
from offbook.model.types import LoggedMessage, Message, Value

SEPARATOR = "\n\n"
_BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_LABEL = re.compile(
    rf"((?:^|[{_BREAKS}])[ \t]*)(user|assistant|system|tool)(?=[ \t]*+(?:\([^{_BREAKS})]{{0,200}}+\))?[ \t]*+:)",
    re.IGNORECASE,
)
"""How a message begins in a context's text: words that begin a line of another message so are no message."""
NAME_CHARS = 100
REFERENCE_CHARS = 320
"""Of a result that only shows what was done: with its frame, its beginning and its end."""


class Piece(Value, frozen=True):
    """A message of the log as it would be shown. `is_whole` is false where not all of it is."""

    seq: int
    message: Message
    text: str
    """As it stands in a context's text."""
    received_at: datetime
    is_whole: bool = True
    is_noise: bool = False

    @property
    def is_turn(self) -> bool:
        """Somebody says something: no noise, no bare call, no result."""
        message = self.message
        return (
            message.role in ("user", "assistant")
            and not self.is_noise
            and (isinstance(message.content, str) or bool(text_of(message.content)))
        )

    @property
    def cost(self) -> int:
        """About as many characters as it takes, however its neighbours are cut."""
        return len(self.text) + len(SEPARATOR) + QUOTED_CHARS * results_in(self.message)


class Tail(NamedTuple):
    """The newest messages, oldest first; `messages` is what a model can be given, `chars` what that takes.

    A result that came late stands behind its call there: `order` says which of the pieces each message is.
    """

    pieces: list[Piece]
    messages: list[Message]
    texts: list[str]
    order: list[int]
    chars: int


NO_TAIL = Tail([], [], [], [], 0)


def results_in(message: Message) -> int:
    """How many of a tool's results it has: each may have to be quoted."""
    blocks = message.content if isinstance(message.content, list) else []
    return max(sum(map(is_result, blocks)), message.role == "tool")


def piece_of(logged: LoggedMessage, message: Message | None = None) -> Piece:
    """`message` is given where its large parts were put back in."""
    message_shown = message or logged.message
    return Piece(
        seq=logged.seq,
        message=message_shown,
        text=shown(message_shown),
        received_at=logged.received_at,
        is_whole=message is not None or not logged.entry.blobs,
        is_noise=logged.entry.noise is not None,
    )


def shown(message: Message) -> str:
    name = " ".join((message.name or "").replace("(", "").replace(")", "").split())[:NAME_CHARS]
    speaker = f"{message.role} ({name})" if name else message.role
    said = _LABEL.sub(r"\1[\2]", render(message))
    return f"{speaker}: {said}"


def verbatim_room(max_chars: int, session_chars: int) -> int:
    """How many characters the newest messages may take, where not all of them fit: the less, the tighter it is."""
    tightness = min(1.0, max_chars / max(session_chars, 1))
    return int(max_chars * min(0.5, max(0.08, 2 * tightness * tightness)))


def tail_of(newest_first: Sequence[Piece], room: int, max_chars: int, budget: ContextBudget, key: bytes) -> Tail:
    """The newest messages that fit in `room`; the last turns (D2) while three fifths of `max_chars` hold them; the very
    newest wherever `max_chars` does. It begins where no result loses its call."""
    taken: list[Piece] = []
    chars = turns = 0
    recent_room, running_room = max_chars * 3 // 5, max_chars * 4 // 5
    turn = _running_turn(newest_first)
    running = _limits_of_results(turn, running_room, budget.recent_turn_char_limit)
    for number, piece in enumerate(newest_first):
        is_recent = turns < budget.recent_turns_always_full
        limit = budget.recent_turn_char_limit if is_recent else budget.mid_turn_char_limit
        allowed = max(room, recent_room) if is_recent else room
        if number < len(turn):  # what is no result there is a call, or what was said with it
            limit, allowed = running.get(number, limit), running_room
        elif not taken:
            allowed = max_chars
            limit = max_chars if piece.cost <= max_chars + len(SEPARATOR) else recent_room
        else:
            limit = max(limit, room // 10)
        one = piece if piece.cost <= limit else excerpt(piece, limit, key)
        if one is None or chars + one.cost > allowed + (0 if taken else len(SEPARATOR)):
            break
        taken.append(one)
        chars += one.cost
        turns += piece.is_turn
    taken.reverse()
    return fitting(taken[leading_orphans([piece.message for piece in taken]) :], max_chars, key)


def _running_turn(newest_first: Sequence[Piece]) -> list[Piece]:
    """What came after the user's last words, where the newest are results: the turn still runs."""
    if not newest_first or not tool_results(newest_first[0].message):
        return []
    return list(takewhile(lambda one: one.message.role != "user" or tool_results(one.message), newest_first))


def _limits_of_results(turn: Sequence[Piece], room: int, most: int) -> dict[int, int]:
    """The characters of each result of a turn that runs, by its position. The newest whole, where their call fits
    beside them; of the older ones what shows what was done."""
    results = [number for number, piece in enumerate(turn) if tool_results(piece.message)]
    newest = [number for at, number in enumerate(results) if at == number]
    older = results[len(newest) :]
    calls = [min(piece.cost, most) for number, piece in enumerate(turn) if number not in results]
    left = max(0, room - sum(calls[:1]))
    if older and sum(turn[number].cost for number in newest) > left:
        left = left * 3 // 4
    limits: dict[int, int] = {}
    for at, number in enumerate(sorted(newest, key=lambda one: turn[one].cost)):  # what the short ones leave
        limits[number] = min(turn[number].cost, left // (len(newest) - at))
        left -= limits[number]
    left = room - sum(limits.values()) - sum(calls)
    return limits | {number: min(most, max(REFERENCE_CHARS, left // len(older))) for number in older}


def fitting(pieces: Sequence[Piece], max_chars: int, key: bytes) -> Tail:
    """The pieces made valid for a model; without the oldest, where that made them too long."""
    pieces = list(pieces)
    while pieces:
        valid = placed([piece.message for piece in pieces], key)
        texts = [pieces[index].text if message is pieces[index].message else shown(message) for index, message in valid]
        chars = sum(map(len, texts)) + len(SEPARATOR) * (len(pieces) - 1)
        if chars <= max_chars:
            return Tail(pieces, [message for _, message in valid], texts, [index for index, _ in valid], chars)
        excess, dropped = chars - max_chars, 0
        while dropped < len(pieces) and excess > 0:
            excess -= len(texts[dropped]) + len(SEPARATOR)
            dropped += 1
        pieces = pieces[dropped:]
        pieces = pieces[leading_orphans([piece.message for piece in pieces]) :]
    return NO_TAIL


def _speaking(message: Message) -> Message:
    """Whose turn an excerpt is: a result stays that of its call; what else a tool gave is nobody's, and stands with our
    memory."""
    answered = tool_results(message)
    if message.role == "tool" and len(answered) == 1:
        return msgspec.structs.replace(message, tool_call_id=answered[0])
    is_own = message.role == "user" and (not answered or has_own_words(message))
    return msgspec.structs.replace(message, role="user" if is_own else "assistant", tool_call_id=None)


def excerpt(piece: Piece, max_chars: int, key: bytes) -> Piece | None:
    """A long message by its beginning and its end; None where there is no room for even that.

    It is framed as ours, since it is not what was said: whoever captures it back must not store it as that.
    """
    message = piece.message
    text = message.content if isinstance(message.content, str) else render(message)
    note = f"\n… [{len(text):,} characters in all] …\n"
    bare = msgspec.structs.replace(_speaking(message), content="", meta=None)
    around = len(shown(msgspec.structs.replace(bare, content=frame(note, kind="memory", key=key)))) + len(SEPARATOR)
    room = max_chars - around - QUOTED_CHARS * results_in(bare)
    if room < 2 * len(note):
        return None
    head = room * 2 // 3
    content = frame(text[:head] + note + text[len(text) - (room - head) :], kind="memory", key=key)
    shortened = msgspec.structs.replace(bare, content=content)
    return Piece(
        seq=piece.seq,
        message=shortened,
        text=shown(shortened),
        received_at=piece.received_at,
        is_whole=False,
    )
