"""The verbs of continuity, for callers that block."""

from __future__ import annotations

from offbook.client.blocking_contexts import BlockingContexts
from offbook.model.turn import AnchorList, ContinuityState, Enrichment, PreparedTurn, SettingsView, TopicList


class BlockingTurns(BlockingContexts):
    def prepare_turn(
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
        return self._run(
            self._client.prepare_turn(
                session_id,
                prompt,
                current_tokens=current_tokens,
                context_window=context_window,
                deadline_ms=deadline_ms,
                explain=explain,
                preview=preview,
                agent_id=agent_id,
            )
        )

    def enrich(self, session_id: str, query: str, *, agent_id: str | None = None) -> Enrichment:
        return self._run(self._client.enrich(session_id, query, agent_id=agent_id))

    def topics(self, session_id: str | None = None, *, agent_id: str | None = None) -> TopicList:
        return self._run(self._client.topics(session_id, agent_id=agent_id))

    def anchors(self, session_id: str | None = None, *, agent_id: str | None = None) -> AnchorList:
        return self._run(self._client.anchors(session_id, agent_id=agent_id))

    def state(self, session_id: str | None = None, *, agent_id: str | None = None) -> ContinuityState:
        return self._run(self._client.state(session_id, agent_id=agent_id))

    def config(self, *, agent_id: str | None = None) -> SettingsView:
        return self._run(self._client.config(agent_id=agent_id))
