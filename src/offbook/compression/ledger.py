"""What a context keeps and what it leaves out, with the way back to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offbook.compression.particulars import Particular, missing
from offbook.summaries import Dropped, Ledger, Loss, StateRecord, SummaryText
from offbook.types import CompressedContext

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
