"""The verbs of continuity, for asyncio."""

from __future__ import annotations

from offbook.client.asking import Asking
from offbook.model.turn import AnchorList, ContinuityState, Enrichment, PreparedTurn, SettingsView, TopicList


class AsyncTurns(Asking):
    async def prepare_turn(
        self,
        session_id: str,
        prompt: str,
        *,
        current_tokens: int | None = None,
        context_window: int | None = None,
        deadline_ms: int | None = None,
        explain: bool = False,
        preview: bool = False,
        agent_id: str | None = None,
    ) -> PreparedTurn:
        """What the agent should have in mind for this prompt. `memory` goes to the start of the context, `recall` to
        the end of the user's turn; `offbook.placed` puts both in their places."""
        body = self._of(
            session_id,
            agent_id,
            prompt=prompt,
            currentTokens=current_tokens,
            contextWindow=context_window,
            deadlineMs=deadline_ms,
            explain=explain or None,
            preview=preview or None,
        )
        return await self._ask("prepareTurn", body, PreparedTurn)

    async def enrich(self, session_id: str, query: str, *, agent_id: str | None = None) -> Enrichment:
        """What a sparse result of the host's own memory search is enriched with."""
        return await self._ask("enrich", self._of(session_id, agent_id, query=query), Enrichment)

    async def topics(self, session_id: str | None = None, *, agent_id: str | None = None) -> TopicList:
        """What they keep returning to, what is fresh, what has gone stale."""
        return await self._ask("topics", self._of(session_id, agent_id), TopicList)

    async def anchors(self, session_id: str | None = None, *, agent_id: str | None = None) -> AnchorList:
        """What must not be lost from sight."""
        return await self._ask("anchors", self._of(session_id, agent_id), AnchorList)

    async def state(self, session_id: str | None = None, *, agent_id: str | None = None) -> ContinuityState:
        """Topics, anchors and what each session was doing."""
        return await self._ask("state", self._of(session_id, agent_id), ContinuityState)

    async def config(self, *, agent_id: str | None = None) -> SettingsView:
        """The settings that hold for an agent."""
        return await self._ask("config", self._of(None, agent_id), SettingsView)
