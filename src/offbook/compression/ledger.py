"""What a context keeps and what it leaves out, with the way back to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offbook.compression.particulars import Particular, missing
from offbook.summaries import Dropped, Ledger, Loss, StateRecord, SummaryText
from offbook.types import CompressedContext

SPELLED = frozenset({"identifier", "number", "date", "name"})
MOST_DROPPED = 200
"""Named in a ledger, the newest; all of them are counted as far as they are known."""


def ledger_of(
    context: CompressedContext,
    texts: Mapping[str, SummaryText],
    digest_losses: Sequence[Loss],
    state: Sequence[StateRecord],
) -> Ledger:
    """`texts`: the summaries that are shown, with what each had lost when it was written. `digest_losses`: what was
    said in stretches that no summary stands for yet; what of it is still in the text is left out here."""
    summaries = [part for part in context.parts if part.kind == "summary"]
    lost: list[Dropped] = []
    unnamed = 0
    for part in summaries:
        text = texts.get(part.id) if part.id else None
        if text is not None and part.id is not None:
            lost += [_dropped(loss, part.id) for loss in text.losses]
            unnamed += text.lost - len(text.losses)
    lost += [_dropped(loss, None) for loss in digest_losses]
    gone = _no_longer_there(lost, context.text)
    return Ledger(
        verbatim=[part for part in context.parts if part.kind == "verbatim"],
        summaries=summaries,
        dropped=gone[-MOST_DROPPED:],
        dropped_count=len(gone) + unnamed,
        state=list(state),
    )


def _dropped(loss: Loss, summary_id: str | None) -> Dropped:
    return Dropped(kind=loss.kind, text=loss.text, session_id=loss.session_id, seq=loss.seq, expand=summary_id)


def _no_longer_there(lost: Sequence[Dropped], text: str) -> list[Dropped]:
    """A name or number that one summary lost may be said in another, or in the tail. A sentence is not looked for
    there: in a long text one finds the words of any."""
    spelled = [Particular(one.kind, one.text) for one in lost if one.kind in SPELLED]
    wanted = set(missing(spelled, text)) | {Particular(one.kind, one.text) for one in lost if one.kind not in SPELLED}
    seen: set[Particular] = set()
    gone: list[Dropped] = []
    for one in reversed(lost):  # of what is lost twice, where it was said last
        particular = Particular(one.kind, one.text)
        if particular in wanted and particular not in seen:
            seen.add(particular)
            gone.append(one)
    return gone[::-1]
