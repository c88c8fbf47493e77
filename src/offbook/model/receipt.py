"""The nouns of forgetting: what is meant, what it reaches, and the receipt that says it is gone."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from offbook.model.types import SessionId, Sparse, Value

FORGOTTEN = "forgotten"
"""The noise kind of a message that was forgotten, so that whatever leaves noise out leaves it out."""
FORGOTTEN_TEXT = "[forgotten]"
"""What stands in the place of what was said."""


class ForgottenSpan(Value, frozen=True):
    """Messages of one session that were forgotten."""

    session_id: SessionId
    first_seq: Annotated[int, Meta(ge=1)]
    last_seq: Annotated[int, Meta(ge=1)]


class Selection(NamedTuple):
    """How it was named: one of these. In another copy by `hashes` or `matching`: either."""

    entry_places: frozenset[int] | None = None
    session_id: str | None = None
    matching: tuple[str, ...] | None = None
    """Whoever says any of these."""
    hashes: frozenset[bytes] | None = None
    """Of the rows, as the log of another copy has them."""
    before: datetime | None = None
    """Whatever was said before then, and is not pinned: retention by rule."""
    at: datetime | None = None
    """What the clock said when the rule was asked: who came later came by a wrong one."""
    with_secrets: bool = False
    """Whatever holds a secret by the rules of today."""
    with_personal_numbers: bool = False
    """They count as secrets."""
    everything: bool = False
    """All that the agent was ever told."""

    @property
    def how(self) -> str:
        if self.matching is not None:
            return "matching"
        if self.entry_places is not None:
            return "entryIds"
        if self.with_secrets:
            return "secrets"
        if self.everything:
            return "everything"
        return "sessionId" if self.session_id is not None else "retention"


class Reached(Value, frozen=True):
    """How much of each kind is touched, or would be."""

    messages: int = 0
    vectors: int = 0
    index_entries: int = 0
    """Of the text index."""
    large_parts: int = 0
    summaries: int = 0
    """Written again from what is left."""
    lessons: int = 0
    """Forgotten, or told as those messages say it that stay."""
    contexts: int = 0
    """Handed out to agents; what was in them can no longer be replayed."""
    turn_memories: int = 0
    notes: int = 0
    """Working state, topics and anchors of sessions, made again from what is left."""
    completions: int = 0
    """Answers of models that were kept so as not to pay twice."""
    supersessions: int = 0
    pages: int = 0
    """Of the wiki."""
    summary_files: int = 0
    backups: int = 0
    outbox_records: int = 0
    """Records in outboxes of the data folder: refused by a provider, or delivered and not cleared away yet."""


class Probe(Value, frozen=True):
    """A stretch of words that was forgotten, known by a keyed digest only: enough to find it again wherever it is left,
    and nothing to read."""

    words: int
    digest: str


class Residue(Value, frozen=True):
    """Something that should be gone and is not."""

    where: str
    what: str


class Unfinished(Value, frozen=True):
    """What is still to be done of a forgetting that broke off: the log is done, the files are not."""

    summaries: list[str]
    lessons: list[str]
    parts: list[str]


class ForgetReceipt(Sparse, frozen=True):
    """What was forgotten (or, with `dry_run`, would be), in numbers and places, never in words."""

    id: str
    agent_id: str
    at: datetime
    by: str
    reason: str = msgspec.field()
    dry_run: bool = msgspec.field()
    how: str = msgspec.field()
    """How it was named: `entryIds`, `sessionId`, `matching`, `secrets`, `everything` or `retention`."""
    reached: Reached = msgspec.field()
    spans: list[ForgottenSpan] = msgspec.field()
    probes: list[Probe] = msgspec.field()
    outside: list[str] = msgspec.field()
    """Where it may still lie and Offbook cannot reach: said, so that somebody can."""
    residue: list[Residue] = msgspec.field()
    """What was still found when it was done; empty where everything is gone."""
    wordless: int = 0
    """How many of the messages no probe knows again: they said one word, or nothing that others do not say, too."""
    secrets: dict[str, int] = {}
    """How many secrets of each kind the messages hold, where they were named by `secrets`."""
    audit_seq: int = 0
    signature: str = ""
    unfinished: Unfinished | None = None


class Lineage(Value, frozen=True):
    """Everything in the store that came of some messages of an agent."""

    places: list[int]
    sessions: list[str]
    summaries: list[str]
    """Ids of those that stand for any of them, each level, lowest first."""
    lessons: list[str]
    parts: list[str]
    """Digests of large parts that no other message of the agent refers to."""
    reached: Reached


class KeptText(Value, frozen=True):
    """Words that the store keeps of an agent beside the log, and the row they are in."""

    table: str
    row: int
    name: str
    text: str


class Forgot(Value, frozen=True):
    receipt: ForgetReceipt


class KeptReceipt(Value, frozen=True):
    """A receipt that the store keeps, in a line."""

    id: str
    at: datetime
    by: str
    reason: str
    how: str
    messages: int
    residue: int
    """How much was still found when it was done."""
    is_finished: bool
    """Else it broke off, and is finished at the next start or by maintenance."""


class ForgetCheck(Sparse, frozen=True):
    """What `forget --verify` found; or, where no receipt was named, which there are."""

    is_genuine: bool
    """The signature is this installation's, and nothing in the receipt was changed."""
    searched: dict[str, int] = msgspec.field()
    """How many of each kind were looked through."""
    residue: list[Residue] = msgspec.field()
    wordless: int = 0
    """Messages that have no words of their own, and were looked for by their places only."""
    receipt: ForgetReceipt | None = None
    """The one that was named by its id."""
    receipts: list[KeptReceipt] = msgspec.field(default_factory=list)
    """Those that the store keeps of the agent, the newest first, where none was named."""
