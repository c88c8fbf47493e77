"""The requests of the verbs about a session, one struct per verb."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from offbook.api.fields import (
    LONGEST_QUERY,
    MOST_ENTRIES,
    MOST_MESSAGES,
    MOST_MESSAGES_OF_A_CONTEXT,
    Count,
    Limit,
    MaxChars,
    Messages,
    OfSession,
    Positive,
    Query,
    Reason,
    Request,
    WaitMs,
    described,
)
from offbook.context.session_notes import SwapSize
from offbook.model.errors import WrongShape
from offbook.model.memory_entry import Depth, Reach
from offbook.model.types import Message, MessageId, Moment, SessionId
from offbook.models.calibration import LEAST_RATIO, MOST_RATIO


class Ping(Request, frozen=True):
    """Check whether the provider answers."""


# ── the record ──


class OnMessage(OfSession, frozen=True):
    """Record one `message`, or several `messages` in order. The answer comes after the write is durable."""

    message: Message | None = None
    messages: Messages | None = None

    def arguments(self) -> dict[str, Any]:
        if (self.message is None) == (self.messages is None):
            raise WrongShape("give either `message` or `messages`, not both and not neither")
        return {"messages": [self.message] if self.message is not None else list(self.messages or ())}


class GetLog(OfSession, frozen=True):
    """The session's whole messages after `afterSeq`; where there is none yet, waits up to `waitMs` for one.

    The first `limit` of them, or the `newest`.
    """

    after_seq: Count = 0
    limit: Limit = 100
    newest: bool = False
    wait_ms: WaitMs = 0

    def arguments(self) -> dict[str, Any]:
        given = super().arguments()
        seconds = given.pop("wait_ms") / 1_000
        return {**given, "wait_seconds": seconds}


class GetMissing(OfSession, frozen=True, kw_only=True):
    """Which of these message ids the session does not hold: for a host that compares its transcript with the log."""

    ids: Annotated[list[MessageId], Meta(min_length=1, max_length=MOST_MESSAGES)]


# ── its context ──


class GetCompressedContext(OfSession, frozen=True, kw_only=True):
    """The session in at most `maxChars` characters, newest verbatim."""

    max_chars: MaxChars


TokenRatio = Annotated[
    float,
    Meta(ge=LEAST_RATIO, le=MOST_RATIO, description="Tokens of the model's provider for each that we estimate."),
]


class TakeSwap(OfSession, frozen=True, kw_only=True):
    """Replace the context in use by the compressed one that is kept ready, once `usedTokens` of `contextWindow` reach
    the threshold, or as soon as the host asks with `targetTokens`, which says what the new one may take. A swap frees
    at least a quarter of `contextWindow`, or it does not happen and `reason` says why; with `force` it happens wherever
    the new context is the smaller one. Without new messages, asking again gives the same answer.

    Tokens are those that the model's provider counts; `tokenRatio` says how many of them are one of our estimate. What
    instructions and tools take is left out of `usedTokens` and `contextWindow` by a host that knows it.
    """

    used_tokens: Annotated[Count, described("Tokens in use in the agent's context now.")]
    context_window: Annotated[Positive, described("Tokens the agent's model takes.")]
    force: Annotated[bool, described("Swap even if it is not due yet, or frees less than a quarter.")] = False
    target_tokens: Annotated[Positive | None, described("Tokens the new context may take.")] = None
    token_ratio: TokenRatio | None = None
    generation: Annotated[
        Count | None, described("Of the context in use. One that was handed over since, and not taken, is given again.")
    ] = None


class GetReplay(OfSession, frozen=True, kw_only=True):
    """What the agent's context held at a given time, and why."""

    at: Moment
    newest: Annotated[Limit | None, described("Of the messages that came since the last swap, only the newest.")] = None


# ── recall and turns ──


class Recall(OfSession, frozen=True, kw_only=True):
    """What was said that answers `query`, best first.

    `scope`: this `session`, all sessions of this `agent`, or `all` agents that share their memory with each other.
    `at`: as it was known then. What was corrected since is left out unless `includeSuperseded`. With `depth` `deep` the
    first of them are read once more by the model that the setting `rerank.reader` names, which takes seconds.
    """

    query: Annotated[
        Query, described("A question, some words or a whole message. Times are understood (“last Tuesday”).")
    ]
    limit: Annotated[int, Meta(ge=1, le=MOST_ENTRIES, description="Most entries.")] = 5
    reach: Annotated[
        Reach, described("One session, all of the agent's, or also those of agents that opened theirs.")
    ] = msgspec.field(default="agent", name="scope")
    at: Annotated[Moment | None, described("Answer as it was known then: an ISO 8601 time with its zone.")] = None
    include_superseded: Annotated[bool, described("Also what was corrected since.")] = False
    explain: Annotated[bool, described("Say why each was found, and what was left out.")] = False
    preview: Annotated[bool, described("Only look: no retrieval is counted.")] = False
    depth: Annotated[
        Depth | None,
        described("`deep`: a model reads the first ones again, for a better order. Slower; use it if needed."),
    ] = None


class PrepareTurn(OfSession, frozen=True, kw_only=True):
    """What the agent should have in mind before a model call: `memory` for the start of the context, the same bytes
    until the next swap, and `recall` for the end of the user's turn.

    `currentTokens` of `contextWindow` are in use. A host that swaps by its own count says when and to how much
    (`swapAtTokens`, `swapToTokens`, `tokenRatio`, as with `swap`), so that the context stands by in time. `deadlineMs`
    limits how long it may take, if the host has less time than the setting `turn.deadline`. `explain` shows the parts,
    their size and why each is there; `preview` changes nothing: no retrieval is counted and no section is kept.
    """

    prompt: Annotated[str, Meta(max_length=LONGEST_QUERY)]
    current_tokens: Annotated[Count | None, described("Tokens in use in the context now.")] = None
    context_window: Annotated[Positive | None, described("Tokens the agent's model takes.")] = None
    swap_at_tokens: Annotated[Positive | None, described("Tokens of the conversation at which it swaps.")] = None
    swap_to_tokens: Annotated[Positive | None, described("Tokens of the conversation that a swap may leave.")] = None
    token_ratio: TokenRatio | None = None
    deadline_ms: Annotated[int, Meta(ge=1, le=60_000)] | None = None
    explain: bool = False
    preview: bool = False

    def arguments(self) -> dict[str, Any]:
        given = super().arguments()
        milliseconds = given.pop("deadline_ms")
        at, to, ratio = (given.pop(name) for name in ("swap_at_tokens", "swap_to_tokens", "token_ratio"))
        return {
            **given,
            "swap_size": SwapSize(at, to, ratio or 1.0) if at and to else None,
            "seconds": None if milliseconds is None else milliseconds / 1_000,
        }


class Enrich(OfSession, frozen=True, kw_only=True):
    """Memories to add to the result of the host's own memory search if that is sparse. Ask before the search runs."""

    query: Query


# ── its life, as the host tells it ──


class SessionStart(OfSession, frozen=True):
    """A session starts or continues; the answer is the context it needs, or null.

    `parentSessionId`: the session that started it, if it belongs to a subagent. Only the name is kept, and `status`
    shows it; it gives no access to another agent's memory.
    """

    max_chars: MaxChars | None = None
    parent_session_id: SessionId | None = None


class SessionEnd(OfSession, frozen=True):
    """A session has ended, for a `reason` (new, reset, idle, daily, shutdown, …)."""

    reason: Annotated[Reason | None, described("Why, such as new, reset, idle, daily, shutdown.")] = None


class PreCompaction(OfSession, frozen=True):
    """The host is about to compact: save what is not saved yet."""

    messages: Annotated[list[Message], Meta(max_length=MOST_MESSAGES_OF_A_CONTEXT)] | None = None


class PostCompaction(OfSession, frozen=True):
    """The host has compacted by itself. `newContext` is what it continues with: a text, messages, or an object."""

    new_context: str | list[Any] | dict[str, Any] | None = None
