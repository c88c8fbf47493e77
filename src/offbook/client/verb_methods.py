"""The verbs about a session as methods, for asyncio, beside those about an agent.

Made by `make docs`. Change what it is made from, not this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from offbook.client.agent_verb_methods import AgentVerbMethods
from offbook.model.answers import Missing
from offbook.model.memory_entry import Depth, Reach, Recollection
from offbook.model.summary import Replay, Swap
from offbook.model.turn import Enrichment, PreparedTurn
from offbook.model.types import CompressedContext


class VerbMethods(AgentVerbMethods):
    async def get_compressed_context(
        self, session_id: str, max_chars: int, *, agent_id: str | None = None
    ) -> CompressedContext:
        """The session in at most `max_chars` characters, newest verbatim."""
        body = self._of(session_id, agent_id, maxChars=max_chars)
        return await self._ask("getCompressedContext", body, CompressedContext)

    async def swap(
        self,
        session_id: str,
        used_tokens: int,
        context_window: int,
        *,
        force: bool = False,
        target_tokens: int | None = None,
        token_ratio: float | None = None,
        generation: int | None = None,
        agent_id: str | None = None,
    ) -> Swap:
        """Replace the context in use by the compressed one that is kept ready, once `used_tokens` of
        `context_window` reach the threshold, or as soon as the host asks with `target_tokens`, which says what
        the new one may take. A swap frees at least a quarter of `context_window`, or it does not happen and
        `reason` says why; with `force` it happens wherever the new context is the smaller one. Without new
        messages, asking again gives the same answer.

        Tokens are those that the model's provider counts; `token_ratio` says how many of them are one of our
        estimate. What instructions and tools take is left out of `used_tokens` and `context_window` by a host
        that knows it.
        """
        body = self._of(
            session_id,
            agent_id,
            usedTokens=used_tokens,
            contextWindow=context_window,
            force=force or None,
            targetTokens=target_tokens,
            tokenRatio=token_ratio,
            generation=generation,
        )
        return await self._ask("swap", body, Swap)

    async def replay(
        self, session_id: str, at: datetime | str, *, newest: int | None = None, agent_id: str | None = None
    ) -> Replay:
        """What the agent's context held at a given time, and why."""
        body = self._of(session_id, agent_id, at=at, newest=newest)
        return await self._ask("replay", body, Replay)

    async def recall(
        self,
        session_id: str,
        query: str,
        *,
        limit: int = 5,
        scope: Reach = "agent",
        at: datetime | str | None = None,
        include_superseded: bool = False,
        explain: bool = False,
        preview: bool = False,
        depth: Depth | None = None,
        agent_id: str | None = None,
    ) -> Recollection:
        """What was said that answers `query`, best first.

        `scope`: this `session`, all sessions of this `agent`, or `all` agents that share their memory with each
        other. `at`: as it was known then. What was corrected since is left out unless `include_superseded`. With
        `depth` `deep` the first of them are read once more by the model that the setting `rerank.reader` names,
        which takes seconds.
        """
        body = self._of(
            session_id,
            agent_id,
            query=query,
            limit=limit,
            scope=scope,
            at=at,
            includeSuperseded=include_superseded or None,
            explain=explain or None,
            preview=preview or None,
            depth=depth,
        )
        return await self._ask("recall", body, Recollection)

    async def prepare_turn(
        self,
        session_id: str,
        prompt: str,
        *,
        current_tokens: int | None = None,
        context_window: int | None = None,
        swap_at_tokens: int | None = None,
        swap_to_tokens: int | None = None,
        token_ratio: float | None = None,
        deadline_ms: int | None = None,
        explain: bool = False,
        preview: bool = False,
        agent_id: str | None = None,
    ) -> PreparedTurn:
        """What the agent should have in mind before a model call: `memory` for the start of the context, the same
        bytes until the next swap, and `recall` for the end of the user's turn.

        `current_tokens` of `context_window` are in use. A host that swaps by its own count says when and to how
        much (`swap_at_tokens`, `swap_to_tokens`, `token_ratio`, as with `swap`), so that the context stands by in
        time. `deadline_ms` limits how long it may take, if the host has less time than the setting
        `turn.deadline`. `explain` shows the parts, their size and why each is there; `preview` changes nothing:
        no retrieval is counted and no section is kept.
        """
        body = self._of(
            session_id,
            agent_id,
            prompt=prompt,
            currentTokens=current_tokens,
            contextWindow=context_window,
            swapAtTokens=swap_at_tokens,
            swapToTokens=swap_to_tokens,
            tokenRatio=token_ratio,
            deadlineMs=deadline_ms,
            explain=explain or None,
            preview=preview or None,
        )
        return await self._ask("prepareTurn", body, PreparedTurn)

    async def enrich(self, session_id: str, query: str, *, agent_id: str | None = None) -> Enrichment:
        """Memories to add to the result of the host's own memory search if that is sparse. Ask before the search
        runs."""
        body = self._of(session_id, agent_id, query=query)
        return await self._ask("enrich", body, Enrichment)

    async def post_compaction(
        self,
        session_id: str,
        new_context: str | Sequence[Any] | dict[str, Any] | None = None,
        *,
        agent_id: str | None = None,
    ) -> None:
        """The host has compacted by itself. `new_context` is what it continues with: a text, messages, or an object."""
        body = self._of(session_id, agent_id, newContext=new_context)
        await self.call("hooks/post-compaction", body)

    async def session_start(
        self,
        session_id: str,
        max_chars: int | None = None,
        *,
        parent_session_id: str | None = None,
        agent_id: str | None = None,
    ) -> CompressedContext | None:
        """A session starts or continues; the answer is the context it needs, or null.

        `parent_session_id`: the session that started it, if it belongs to a subagent. Only the name is kept, and
        `status` shows it; it gives no access to another agent's memory.
        """
        body = self._of(session_id, agent_id, maxChars=max_chars, parentSessionId=parent_session_id)
        return await self._ask_maybe("hooks/session-start", body, CompressedContext)

    async def session_end(self, session_id: str, reason: str | None = None, *, agent_id: str | None = None) -> None:
        """A session has ended, for a `reason` (new, reset, idle, daily, shutdown, …)."""
        body = self._of(session_id, agent_id, reason=reason)
        await self.call("hooks/session-end", body)

    async def log(
        self,
        session_id: str,
        after_seq: int = 0,
        limit: int = 100,
        wait_ms: int = 0,
        *,
        newest: bool = False,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        """The session's whole messages after `after_seq`; where there is none yet, waits up to `wait_ms` for one.

        The first `limit` of them, or the `newest`.
        """
        body = self._of(session_id, agent_id, afterSeq=after_seq, limit=limit, newest=newest or None, waitMs=wait_ms)
        return await self._ask("log", body, dict[str, Any], extra_seconds=wait_ms / 1000)

    async def missing(self, session_id: str, ids: Sequence[str], *, agent_id: str | None = None) -> list[str]:
        """Which of these message ids the session does not hold: for a host that compares its transcript with the
        log."""
        body = self._of(session_id, agent_id, ids=ids)
        return (await self._ask("missing", body, Missing)).missing
