"""A summary's text and everything that is kept with it. Pure.

The extractive summarizer is here whole; what a model wrote comes in as `Authored` and is treated the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from offbook.context.cover import MessageSpan
from offbook.context.digest import Digest, SpokenMessage, SummaryLines, brief, merged, ranked, written
from offbook.context.particulars import Particular, missing, particulars
from offbook.context.prompt_text import is_person
from offbook.model.summary import Loss, SourceSpan, Summary, SummaryDraft, Usage
from offbook.model.types import Scope
from offbook.models.tokens import CHARS_PER_TOKEN, estimate_tokens

EXTRACTIVE = "extractive"
EXTRACTIVE_VERSION = "extractive-2"
MOST_LOSSES = 100
"""Named with a summary, the newest; all of them are counted."""
MOST_KEPT = 150
MOST_READ_CHARS = 30_000
"""Of one message, for its particulars."""
PEOPLE_SHARE, OTHERS_SHARE = 0.6, 0.25
"""Of what people said a summary holds at most three fifths, of what the agent and its tools did a quarter; and never
more than its target, so that of 6,000 tokens it is a third (the documents' 2,000)."""
SHORTEST_CHARS = 200
"""A summary may be that long, however short its source is."""
HEADING_CHARS = 24
"""About what the day takes, of a summary that is one sentence."""


class Authored(NamedTuple):
    """What a model wrote, who it was, and what it cost."""

    text: str
    summarizer: str
    prompt_version: str
    fingerprint: str
    usage: Usage


class Source(NamedTuple):
    """A stretch of a session, read: what was said in it, in order, without noise."""

    scope: Scope
    message_span: MessageSpan
    said: Sequence[SpokenMessage]
    digest: Digest
    first_at: datetime
    last_at: datetime


def chunk_draft(source: Source, target_tokens: int, authored: Authored | None = None) -> SummaryDraft:
    """A summary of level 1."""
    room = min(_chars_of(target_tokens, [one.text for one in source.said]), room_chars(source.said))
    if source.digest.lines:
        best = source.digest.lines[0]
        room = max(room, HEADING_CHARS + len(best.speaker) + len(best.text))  # one sentence is shown in any case
    lines = written(source.digest, room) if authored is None else ranked(authored.text)
    account = account_of(source.said, source.scope.session_id, lines.text)
    return _draft(
        lines,
        authored or _by_ourselves([f"{one.speaker}: {one.text}" for one in source.said]),
        level=1,
        spans=[
            SourceSpan(
                session_id=source.scope.session_id,
                first_seq=source.message_span.first_seq,
                last_seq=source.message_span.last_seq,
            )
        ],
        source_messages=source.message_span.last_seq - source.message_span.first_seq + 1,
        source_tokens=source.message_span.tokens,
        times=(source.first_at, source.last_at),
        account=account,
    )


def _chars_of(tokens: int, texts: Sequence[str]) -> int:
    """How many characters so many tokens of such texts have; as many as they usually have where there is no text."""
    chars = sum(map(len, texts))
    return int(tokens * chars / max(1, sum(map(estimate_tokens, texts)))) if chars else tokens * CHARS_PER_TOKEN


def room_chars(said: Sequence[SpokenMessage]) -> int:
    """What a summary of these messages may take."""
    people = sum(len(one.text) for one in said if is_person(one.speaker))
    others = sum(len(one.text) for one in said) - people
    return max(int(people * PEOPLE_SHARE + others * OTHERS_SHARE), SHORTEST_CHARS)


def merge_draft(sources: Sequence[Summary], target_tokens: int, authored: Authored | None = None) -> SummaryDraft:
    """A summary of the next level, of several of one level in order of time."""
    drafts = [source.draft for source in sources]
    texts = [draft.text for draft in drafts]
    lines = merged(texts, _chars_of(target_tokens, texts)) if authored is None else ranked(authored.text)
    return _draft(
        lines,
        authored or _by_ourselves(texts),
        level=drafts[0].level + 1,
        spans=_joined([span for draft in drafts for span in draft.spans]),
        source_messages=sum(draft.source_messages for draft in drafts),
        source_tokens=sum(draft.tokens for draft in drafts),
        times=(min(draft.first_at for draft in drafts), max(draft.last_at for draft in drafts)),
        account=merged_account(drafts, lines.text),
        sources=[source.id for source in sources],
    )


class Account(NamedTuple):
    """Of the particulars that a source has: those its summary keeps, those it loses (the newest), and how many."""

    kept: list[Loss]
    losses: list[Loss]
    lost: int


def account_of(said: Sequence[SpokenMessage], session_id: str, text: str) -> Account:
    found: dict[Particular, int] = {}
    for one in said:
        for particular in particulars(one.text[:MOST_READ_CHARS]):
            found.pop(particular, None)
            found[particular] = one.seq  # where it was said last
    gone = set(missing(list(found), text))
    everything = [
        (particular in gone, Loss(kind=particular.kind, text=particular.text, session_id=session_id, seq=seq))
        for particular, seq in found.items()
    ]
    kept = [loss for is_gone, loss in everything if not is_gone]
    losses = [loss for is_gone, loss in everything if is_gone]
    return Account(kept[-MOST_KEPT:], losses[-MOST_LOSSES:], len(losses))


def merged_account(drafts: Sequence[SummaryDraft], text: str) -> Account:
    """What the sources had lost stays lost; what they kept may be lost now."""
    had = {Particular(loss.kind, loss.text): loss for draft in drafts for loss in draft.kept}
    gone = set(missing(list(had), text))
    kept = [loss for particular, loss in had.items() if particular not in gone]
    losses = [loss for draft in drafts for loss in draft.losses]
    losses += [loss for particular, loss in had.items() if particular in gone]
    return Account(kept[-MOST_KEPT:], losses[-MOST_LOSSES:], sum(draft.lost for draft in drafts) + len(gone))


def identifiers_of(texts: Sequence[str], most: int = 40) -> list[str]:
    """What a summary must not lose: the names of things that are looked up by them, the most often said first."""
    counts: dict[str, int] = {}
    for text in texts:
        for particular in particulars(text[:MOST_READ_CHARS]):
            if particular.kind == "identifier":
                counts[particular.text] = counts.get(particular.text, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))[:most]


def _draft(
    lines: SummaryLines,
    author: Authored,
    *,
    level: int,
    spans: list[SourceSpan],
    source_messages: int,
    source_tokens: int,
    times: tuple[datetime, datetime],
    account: Account,
    sources: list[str] | None = None,
) -> SummaryDraft:
    return SummaryDraft(
        level=level,
        spans=spans,
        text=lines.text,
        rank=lines.rank,
        brief=brief(lines),
        source_messages=source_messages,
        source_tokens=source_tokens,
        tokens=estimate_tokens(lines.text),
        first_at=times[0],
        last_at=times[1],
        summarizer=author.summarizer,
        prompt_version=author.prompt_version,
        fingerprint=author.fingerprint,
        usage=author.usage,
        sources=sources or [],
        kept=account.kept,
        losses=account.losses,
        lost=account.lost,
    )


def _by_ourselves(texts: Sequence[str]) -> Authored:
    digest = sha256(EXTRACTIVE_VERSION.encode())
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return Authored("", EXTRACTIVE, EXTRACTIVE_VERSION, digest.hexdigest(), Usage())


def _joined(spans: Sequence[SourceSpan]) -> list[SourceSpan]:
    """Neighbours of one session are one span."""
    joined: list[SourceSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and last.session_id == span.session_id and last.last_seq + 1 == span.first_seq:
            joined[-1] = SourceSpan(session_id=span.session_id, first_seq=last.first_seq, last_seq=span.last_seq)
        else:
            joined.append(span)
    return joined
