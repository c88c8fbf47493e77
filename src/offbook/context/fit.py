"""A session in as many characters as there are: old as summaries, newer as a digest, the newest word for word. Pure.

    memory (one message, framed)                                          then, as they came
    [L3 …] [L2 …] [L1 …]  digest of what is not summarised yet  anchors  pins  state  last turns, whole

The parts partition the session. How much is verbatim depends on how tight it is (`tail.verbatim_room`): where the
context holds half of the session, half of it is; where it holds a fifth, little more than the last turns, since a
digest keeps far more of what was said in the same room (`benchmarks/facts_kept.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import NamedTuple

from offbook.context.cover import cover, level_budgets
from offbook.context.digest import Digest, Order, SummaryLines, cut
from offbook.context.digest import fit as fit_digests
from offbook.context.particulars import Particular, missing
from offbook.context.tail import SEPARATOR, Piece, Tail, fitting
from offbook.context.time_text import day_of_heading
from offbook.ingest.frames import frame
from offbook.model.large_parts import beginning
from offbook.model.summary import Dropped, Ledger, Loss, Node, StateRecord, SummaryText
from offbook.model.types import CompressedContext, Message, Part, Scope, Span

NOTHING: Mapping[str, str] = MappingProxyType({})
FRAME_CHARS = len(frame("", kind="memory", key=b""))
LEAST_CHARS = 60
"""Of a summary: less says nothing. The oldest that would get less are only counted."""
LEAST_FOR_MEMORY_CHARS = 200
"""Smaller memory would be more frame than memory."""
INTRODUCTION = (
    "What I remember of this conversation before what follows, oldest first. "
    "A name such as [L1-0003] can be expanded to the exact messages."
)
LEAST_FOR_INTRODUCTION_CHARS = 4_000
DIGEST_SHARE = 0.6
"""Of the room before the tail, for what is not summarised yet, where the summaries need theirs too."""


class Section(NamedTuple):
    """A part of the memory section."""

    first_seq: int
    last_seq: int
    level: int
    id: str | None
    text: str


class Digested(NamedTuple):
    """A stretch that no summary stands for yet, read for what it says."""

    first_seq: int
    last_seq: int
    digest: Digest
    chars: int
    """What all its lines would take."""


class Kept(NamedTuple):
    """What must not be lost in prose, ready to be shown: anchors, pinned messages, the working state."""

    anchors: str = ""
    pinned: str = ""
    state: str = ""

    @property
    def chars(self) -> int:
        return sum(len(text) + len(SEPARATOR) for text in self if text)


class Plan(NamedTuple):
    """Which summaries are shown, in how many characters each (0: only counted), and the room for the digests."""

    nodes: list[Node]
    sizes: list[int]
    digest_chars: int
    left_over: int
    """Of the room, what even the whole of it does not fill."""


class Composed(NamedTuple):
    """A context, its memory section, and what they were made of."""

    context: CompressedContext
    memory: str
    sections: Sequence[Section]
    tail: Tail

    @property
    def tail_from(self) -> int:
        """The first message that is shown word for word."""
        return self.tail.pieces[0].seq if self.tail.pieces else self.context.covers.last_seq + 1


def planned(
    levels: Mapping[int, Sequence[Node]],
    digested: Sequence[Digested],
    *,
    summarised_through: int,
    room: int,
    caps: Mapping[int, int],
) -> Plan:
    """How the room before the tail is shared out. `levels`: the session's summaries, newest first."""
    wanted = sum(one.chars for one in digested)
    coarse = cover(levels, summarised_through, {})
    coarse_chars = sum(node.chars + len(SEPARATOR) for node in coarse)
    for_digest = min(wanted, max(int(room * DIGEST_SHARE), room - coarse_chars)) if coarse else room
    for_nodes = max(0, room - for_digest)
    totals = {level: sum(node.chars + len(SEPARATOR) for node in nodes) for level, nodes in levels.items() if nodes}
    nodes = cover(levels, summarised_through, level_budgets(totals, for_nodes, caps))
    sizes = allotted([node.chars + len(node.id) + 3 for node in nodes], for_nodes)
    spent = sum(size + len(SEPARATOR) for size in sizes if size)
    return Plan(nodes, sizes, max(0, room - spent), max(0, room - spent - wanted))


def digest_chars(digest: Digest) -> int:
    return sum(len(line.text) + len(SEPARATOR) for line in digest.lines)


def allotted(chars: Sequence[int], room: int) -> list[int]:
    """How many characters each gets: equal shares, none more than it needs; the oldest nothing where too many share."""
    kept = min(len(chars), max(0, room) // (LEAST_CHARS + len(SEPARATOR)))
    needs = [one + len(SEPARATOR) for one in chars[len(chars) - kept :]]
    share, left = 0, room
    for position, need in enumerate(sorted(needs)):
        share = left // (kept - position)
        if need > share:
            break
        left -= need
    else:
        share = max(needs, default=0)
    return [0] * (len(chars) - kept) + [min(need, share) - len(SEPARATOR) for need in needs]


def summary_text(node: Node, text: SummaryText | None, chars: int, outdated: Mapping[str, str] = NOTHING) -> str:
    """A summary in at most `chars` characters, under its name, without the `outdated` sentences."""
    head = f"[{node.id}] "
    room = chars - len(head)
    if room < 1:
        return ""
    body = cut(SummaryLines(text.text, text.rank), room) if text is not None else ""
    body = body or beginning(node.brief, room)
    body = without(body, outdated) if outdated else body
    return head + body if body else ""


def without(text: str, sentences: Mapping[str, str]) -> str:
    """A text of lines with what is left of these sentences; a line that has nothing else goes with its heading."""
    kept: list[str] = []
    heading: str | None = None
    for line in text.split("\n"):
        if day_of_heading(line.strip(), date.min) is not None:
            heading = line
            continue
        left = line
        for sentence, rest in sentences.items():
            if sentence in left:
                left = left.replace(sentence, rest).strip()
        if left != line and (not left or left.endswith(":")):
            continue
        kept += [heading] if heading is not None else []
        heading = None
        kept.append(left)
    return "\n".join(kept)


def overhead(last_seq: int, max_chars: int, kept: Kept) -> int:
    """What the memory section takes besides summaries and digests."""
    introduction = len(INTRODUCTION) + len(SEPARATOR) if max_chars >= LEAST_FOR_INTRODUCTION_CHARS else 0
    notes = 2 * (len(counted(last_seq, max_chars)) + len(SEPARATOR))
    return FRAME_CHARS + introduction + notes + kept.chars + 2 * len(SEPARATOR)


def composed(
    scope: Scope,
    tail: Tail,
    plan: Plan,
    texts: Mapping[str, SummaryText],
    digested: Sequence[Digested],
    kept: Kept,
    *,
    last_seq: int,
    generation: int,
    max_chars: int,
    built_at: datetime,
    key: bytes,
    order: Order | None = None,
    outdated: Mapping[str, str] = NOTHING,
) -> Composed:
    """`order`: that of the lines of the first digests, where it was kept."""
    before = tail.pieces[0].seq if tail.pieces else last_seq + 1
    found = [
        Section(
            node.first_seq, node.last_seq, node.level, node.id, summary_text(node, texts.get(node.id), size, outdated)
        )
        for node, size in zip(plan.nodes, plan.sizes, strict=True)
    ]
    digests = fit_digests([one.digest for one in digested], plan.digest_chars, before_seq=before, order=order)
    found += [
        Section(one.first_seq, min(one.last_seq, before - 1), 0, None, without(text, outdated) if outdated else text)
        for one, text in zip(digested, digests, strict=True)
        if one.first_seq < before
    ]
    room = max_chars - tail.chars - (len(SEPARATOR) if tail.pieces else 0)
    message_spans = _complete(found, before - 1, max_chars)
    memory = _memory(message_spans, kept, room, max_chars, key)
    if len(memory) > room:  # next to no room: what is hidden is counted, as far as even that fits
        message_spans = _complete([], before - 1, max_chars)
        memory = _memory(message_spans, Kept(), room, max_chars, key)
        memory = memory if len(memory) <= room else ""
    context = _context(
        scope, tail, message_spans, memory, generation=generation, max_chars=max_chars, built_at=built_at
    )
    return Composed(context, memory, message_spans, tail)


def extended(before: Composed, pieces: Sequence[Piece], max_chars: int, key: bytes) -> Composed | None:
    """The same with the messages that came since, as they came; None where not all of them fit."""
    room = max_chars - (len(before.memory) + len(SEPARATOR) if before.memory else 0)
    tail = fitting([*before.tail.pieces, *pieces], room, key)
    if len(tail.pieces) < len(before.tail.pieces) + len(pieces):
        return None
    context = _context(
        Scope(agent_id=before.context.agent_id, session_id=before.context.session_id),
        tail,
        before.sections,
        before.memory,
        generation=before.context.generation,
        max_chars=max_chars,
        built_at=pieces[-1].received_at,
    )
    return before._replace(context=context, tail=tail)


def counted(messages: int, max_chars: int) -> str:
    """Says that something is not shown, as fully as there is room for."""
    some = "1 message" if messages == 1 else f"{messages:,} messages"
    forms = (
        f"({some} of this conversation kept in memory and not shown here.)",
        f"({some} not shown)",
        "…",
    )
    return next((form for form in forms if len(form) * 3 <= max_chars), "")


def _complete(found: Sequence[Section], through_seq: int, max_chars: int) -> list[Section]:
    """The same, with what nothing stands for counted; so they partition 1 … `through_seq`."""
    complete: list[Section] = []
    at = 1
    for message_span in found:
        if not message_span.text and not complete:
            continue  # counted with whatever else is hidden at the beginning
        if message_span.first_seq > at:
            complete.append(_hidden(at, message_span.first_seq - 1, max_chars))
        complete.append(message_span)
        at = message_span.last_seq + 1
    if at <= through_seq:
        complete.append(_hidden(at, through_seq, max_chars))
    return complete


def _hidden(first_seq: int, last_seq: int, max_chars: int) -> Section:
    return Section(first_seq, last_seq, 0, None, counted(last_seq - first_seq + 1, max_chars))


def _memory(message_spans: Sequence[Section], kept: Kept, room: int, max_chars: int, key: bytes) -> str:
    texts = [message_span.text for message_span in message_spans if message_span.text]
    if not texts:
        return ""
    if max_chars >= LEAST_FOR_INTRODUCTION_CHARS:
        texts.insert(0, INTRODUCTION)
    text = SEPARATOR.join([*texts, *(one for one in kept if one)])
    return frame(text, kind="memory", key=key) if room >= LEAST_FOR_MEMORY_CHARS else text


def _context(
    scope: Scope,
    tail: Tail,
    message_spans: Sequence[Section],
    memory: str,
    *,
    generation: int,
    max_chars: int,
    built_at: datetime,
) -> CompressedContext:
    parts = [
        Part(
            kind="summary",
            id=one.id,
            level=one.level,
            first_seq=one.first_seq,
            last_seq=one.last_seq,
            chars=len(one.text) if memory else 0,
        )
        for one in message_spans
    ]
    texts = [memory] if memory else []
    messages = [Message(role="assistant", content=memory)] if memory else []
    for place in sorted(range(len(tail.order)), key=tail.order.__getitem__):
        piece = tail.pieces[tail.order[place]]
        is_verbatim = piece.is_whole and tail.messages[place] is piece.message
        _add_piece(parts, piece.seq, is_verbatim=is_verbatim, chars=len(tail.texts[place]))
    messages += tail.messages
    text = SEPARATOR.join(texts + tail.texts)
    return CompressedContext(
        session_id=scope.session_id,
        agent_id=scope.agent_id,
        generation=generation,
        text=text,
        messages=messages,
        chars=len(text),
        max_chars=max_chars,
        covers=Span(first_seq=1, last_seq=parts[-1].last_seq if parts else 0),
        parts=parts,
        built_at=built_at,
    )


def _add_piece(parts: list[Part], seq: int, *, is_verbatim: bool, chars: int) -> None:
    """Neighbours that are both verbatim are one part."""
    if not is_verbatim:
        parts.append(Part(kind="summary", level=0, first_seq=seq, last_seq=seq, chars=chars))
    elif parts and parts[-1].kind == "verbatim":
        grown = parts[-1].chars + len(SEPARATOR) + chars
        parts[-1] = Part(kind="verbatim", first_seq=parts[-1].first_seq, last_seq=seq, chars=grown)
    else:
        parts.append(Part(kind="verbatim", first_seq=seq, last_seq=seq, chars=chars))


# ── What a context keeps and what it leaves out, with the way back to it. Pure ──

SPELLED = frozenset({"identifier", "number", "date", "name"})
"""What one summary lost of these may be said in another, or in the tail, so it is looked for in the whole text."""
MOST_CHECKED = 1_000
"""Looked for, the newest; what is older is counted as if it were gone."""
MOST_DROPPED = 200
"""Named in a ledger, the newest; all of them are counted as far as they are known."""


def ledger_of(
    context: CompressedContext,
    memory: str,
    texts: Mapping[str, SummaryText],
    digested: Sequence[Loss],
    state: Sequence[StateRecord],
) -> Ledger:
    """`texts`: the summaries that stand for the older part, whether they are shown or only counted, oldest first.
    `digested`: every particular said in what no summary stands for yet. What of all this is still said is left out."""
    shown_chars = {part.id: part.chars for part in context.parts if part.id is not None}
    lost: list[Dropped] = []
    doubtful: list[Dropped] = []
    unnamed = 0
    for summary_id, text in texts.items():
        unnamed += text.lost - len(text.losses)
        lost += [_dropped(loss, summary_id) for loss in text.losses if loss.kind not in SPELLED]
        doubtful += [_dropped(loss, summary_id) for loss in text.losses if loss.kind in SPELLED]
        if shown_chars.get(summary_id, 0) < len(text.text):
            doubtful += [_dropped(loss, summary_id) for loss in text.kept]
    doubtful += [_dropped(loss, None) for loss in digested]
    unchecked = max(0, len(doubtful) - MOST_CHECKED)
    doubtful = doubtful[unchecked:]
    spelled = [Particular(one.kind, one.text) for one in doubtful if one.kind in SPELLED]
    sentences = [Particular(one.kind, one.text) for one in doubtful if one.kind not in SPELLED]
    gone = {*missing(spelled, context.text), *missing(sentences, memory)}
    lost = _once_each([*lost, *(one for one in doubtful if Particular(one.kind, one.text) in gone)])
    return Ledger(
        verbatim=[part for part in context.parts if part.kind == "verbatim"],
        summaries=[part for part in context.parts if part.kind == "summary"],
        dropped=lost[-MOST_DROPPED:],
        dropped_count=len(lost) + unnamed + unchecked,
        state=list(state),
    )


def _dropped(loss: Loss, summary_id: str | None) -> Dropped:
    return Dropped(kind=loss.kind, text=loss.text, session_id=loss.session_id, seq=loss.seq, expand=summary_id)


def _once_each(lost: Sequence[Dropped]) -> list[Dropped]:
    """Of what is lost twice, where it was said last; in the order it was said."""
    newest: dict[Particular, Dropped] = {}
    for one in sorted(lost, key=lambda one: one.seq):
        newest[Particular(one.kind, one.text)] = one
    return sorted(newest.values(), key=lambda one: one.seq)
