"""Looking for what was forgotten where it was, not by its words: what said one word has no others to be known by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from offbook.log.store import Store
from offbook.model.receipt import ForgetReceipt, ForgottenSpan, Residue
from offbook.model.summary import SourceSpan

PAGE = 200


class Places:
    """Stretches of sessions, asked often."""

    def __init__(self, spans: Iterable[ForgottenSpan]) -> None:
        self._of_session: dict[str, list[ForgottenSpan]] = {}
        for span in spans:
            self._of_session.setdefault(span.session_id, []).append(span)

    def has(self, session_id: str, first_seq: int, last_seq: int) -> bool:
        """Whether any message from the first to the last is one of them."""
        return any(
            span.first_seq <= last_seq and first_seq <= span.last_seq for span in self._of_session.get(session_id, ())
        )

    def has_any(self, spans: Sequence[SourceSpan]) -> bool:
        return any(self.has(span.session_id, span.first_seq, span.last_seq) for span in spans)


async def left_by_place(store: Store, receipt: ForgetReceipt) -> list[Residue]:
    """Summaries that stand for it and were written before it was forgotten, and lessons that came of it. Grows with
    the number of both."""
    places = Places(receipt.spans)
    return [*await _summaries(store, receipt, places), *await _lessons(store, receipt.agent_id, places)]


async def _summaries(store: Store, receipt: ForgetReceipt, places: Places) -> list[Residue]:
    left: list[Residue] = []
    after: str | None = None
    while page := await store.summaries_after(receipt.agent_id, after=after, limit=PAGE):
        after = page[-1].id
        left += [
            Residue(where=f"summary {one.id}", what="it stands for it, and was written before it was forgotten")
            for one in page
            if one.made_at < receipt.at and places.has_any(one.draft.spans)
        ]
    return left


async def _lessons(store: Store, agent_id: str, places: Places) -> list[Residue]:
    left: list[Residue] = []
    before: str | None = None
    while page := await store.lessons(agent_id, before=before, limit=PAGE):
        before = page[-1].id
        left += [
            Residue(where=one.id, what="it came of it")
            for one in page
            if any(places.has(source.session_id, source.seq, source.seq) for source in one.sources)
        ]
    return left
