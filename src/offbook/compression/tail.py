"""The verbatim tail that fits, with a stand-in for what comes before it. Pure; no model, no store.

The parts partition the session: the stand-in covers 1 … k, the tail k + 1 … newest. Everything is a
function of the log and the budget, so the same log gives the same bytes (`builtAt` is the time the
newest message arrived).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from offbook.compression.pairs import QUOTED_RESULT, leading_orphans, with_orphans_quoted
from offbook.content import render, tool_results
from offbook.types import CompressedContext, LoggedMessage, Message, Part, Role, Scope, Span, Value

SEPARATOR = "\n\n"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Piece(Value, frozen=True):
    """A message of the log as it would be shown. `is_whole` is false where a large part is only referred to."""

    seq: int
    message: Message
    received_at: datetime
    is_whole: bool = True


def piece_of(logged: LoggedMessage, message: Message | None = None) -> Piece:
    """`message` is given where its large parts were put back in."""
    return Piece(
        seq=logged.seq,
        message=message or logged.message,
        received_at=logged.received_at,
        is_whole=message is not None or not logged.entry.blobs,
    )


def shown(message: Message) -> str:
    speaker = f"{message.role} ({message.name})" if message.name else message.role
    return f"{speaker}: {render(message)}"


def cost(piece: Piece) -> int:
    """The most characters the piece can take, however its neighbours are cut."""
    extra = len(QUOTED_RESULT) if piece.message.role == "tool" or tool_results(piece.message) else 0
    return len(shown(piece.message)) + len(SEPARATOR) + extra


def fit_tail(
    scope: Scope, newest_first: Sequence[Piece], *, last_seq: int, generation: int, max_chars: int
) -> CompressedContext:
    """The newest pieces that fit in `max_chars`, cut where no tool result loses its call."""
    tail = _newest_that_fit(newest_first, max_chars)
    if len(tail) < last_seq:
        reserved = len(_stand_in(last_seq, last_seq, max_chars)) + len(SEPARATOR)
        tail = _newest_that_fit(newest_first, max_chars - reserved)
        tail = tail[leading_orphans([piece.message for piece in tail]) :]
    excerpt = _excerpt_of_newest(newest_first, tail, max_chars)
    hidden = last_seq - len(tail) - (1 if excerpt else 0)
    return _context(scope, generation, max_chars, last_seq, hidden, excerpt, tail, newest_first)


def _newest_that_fit(newest_first: Sequence[Piece], budget: int) -> list[Piece]:
    taken: list[Piece] = []
    for piece in newest_first:
        budget -= cost(piece)
        if budget < -len(SEPARATOR):  # the first piece needs no separator before it
            break
        taken.append(piece)
    return taken[::-1]


def _stand_in(hidden: int, last_seq: int, max_chars: int) -> str:
    """Says that something is missing, as fully as there is room for. The form depends on the session only,
    so that what was reserved for it is enough whatever is hidden in the end."""
    forms = (
        "({} earlier messages of this conversation are kept in memory and not shown here.)",
        "({} earlier messages not shown)",
        "…",
        "",
    )
    form = next(form for form in forms if len(form.format(last_seq)) * 3 <= max_chars or not form)
    return form.format(hidden)


def _excerpt_of_newest(newest_first: Sequence[Piece], tail: Sequence[Piece], max_chars: int) -> Message | None:
    """Where not even the newest message fits, its beginning and its end."""
    if tail or not newest_first:
        return None
    newest, seq = newest_first[0].message, newest_first[0].seq
    role: Role = "assistant" if newest.role == "assistant" else "user"
    whole = render(newest)
    room = max_chars - len(_stand_in(seq, seq, max_chars)) - len(SEPARATOR) - len(f"{role}: ")
    if len(whole) <= room:
        return Message(role=role, content=whole)
    note = f" … [{len(whole):,} characters in all] … "
    if room < 4 * len(note):
        return None
    head = (room - len(note)) * 2 // 3
    end = room - len(note) - head
    return Message(role=role, content=whole[:head] + note + whole[-end:])


def _context(
    scope: Scope,
    generation: int,
    max_chars: int,
    last_seq: int,
    hidden: int,
    excerpt: Message | None,
    tail: Sequence[Piece],
    newest_first: Sequence[Piece],
) -> CompressedContext:
    texts: list[str] = []
    messages: list[Message] = []
    parts: list[Part] = []
    if hidden > 0:
        note = _stand_in(hidden, last_seq, max_chars)
        parts.append(Part(kind="summary", level=0, first_seq=1, last_seq=hidden, chars=len(note)))
        if note:
            texts.append(note)
            messages.append(Message(role="assistant", content=note))
    if excerpt:
        text = shown(excerpt)
        texts.append(text)
        messages.append(excerpt)
        parts.append(Part(kind="summary", level=0, first_seq=last_seq, last_seq=last_seq, chars=len(text)))
    paired = with_orphans_quoted([piece.message for piece in tail])
    for piece, message in zip(tail, paired, strict=True):
        text = shown(message)
        texts.append(text)
        messages.append(message)
        _add_piece(parts, piece, is_verbatim=piece.is_whole and message is piece.message, chars=len(text))
    text = SEPARATOR.join(texts)
    return CompressedContext(
        session_id=scope.session_id,
        agent_id=scope.agent_id,
        generation=generation,
        text=text,
        messages=messages,
        chars=len(text),
        max_chars=max_chars,
        covers=Span(first_seq=1, last_seq=last_seq),
        parts=parts,
        built_at=newest_first[0].received_at if newest_first else _NEVER,
    )


def _add_piece(parts: list[Part], piece: Piece, *, is_verbatim: bool, chars: int) -> None:
    """Neighbours that are both verbatim are one part."""
    if not is_verbatim:
        parts.append(Part(kind="summary", level=0, first_seq=piece.seq, last_seq=piece.seq, chars=chars))
    elif parts and parts[-1].kind == "verbatim":
        grown = parts[-1].chars + len(SEPARATOR) + chars
        parts[-1] = Part(kind="verbatim", first_seq=parts[-1].first_seq, last_seq=piece.seq, chars=grown)
    else:
        parts.append(Part(kind="verbatim", first_seq=piece.seq, last_seq=piece.seq, chars=chars))
