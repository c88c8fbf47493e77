"""A turn made ready: the stable section and what comes to mind, within budgets and before a deadline.

    prompt ─▶ intent ─▶ facts (session, how it goes on) ─┬▶ stable section (kept, or made once)
                                                         └▶ recall ─▶ exchanges ─▶ told ─▶ framed, within the budget

Whatever is missing, late or broken is left out and named in `degraded`: the turn itself goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from offbook.api.background import Background
from offbook.api.memory_section_cache import Epoch, MemorySectionCache
from offbook.api.recall_service import RecallService
from offbook.api.session_state import Follows, SessionStateService
from offbook.api.surroundings import NOTHING_FOUND, Surroundings, TurnSearch, in_order_of_time
from offbook.context.handover import LastTime, handover, handover_reason, session_line, subject_of, topics_line
from offbook.context.intent import RetrievalBudget, intent_of, retrieval_budget_for
from offbook.context.recall_section import ContinuityLine, Ranked, RecallSection, recall_section
from offbook.context.session_notes import SwapSize, Thread
from offbook.ingest.fair_threads import LARGE_BYTES
from offbook.ingest.scope import checked_text
from offbook.log.store import Blobs, Store
from offbook.model.deadline import Deadline
from offbook.model.errors import WrongShape
from offbook.model.memory_entry import MemoryEntry
from offbook.model.settings import Settings
from offbook.model.turn import Enrichment, Handed, Intent, PreparedTurn, Sparseness, TurnMemory, TurnTokens
from offbook.model.types import EMBEDDED, Caller, Scope, Session, now
from offbook.search.injection import FALLBACK_SCORE, budget_tokens, recall_limit
from offbook.search.query import Query, read_query
from offbook.search.substance import is_boilerplate
from offbook.search.words import query_terms

SPARSE = Sparseness(results=2, chars=400)
"""Of the host's own search: what is no more than this is enriched (D11)."""
ENRICHED_TOKENS = 2_000
NOTHING = RecallSection("", 0, [], [])


class SessionFacts(NamedTuple):
    """What is known of a session before anything is looked for."""

    session: Session | None
    thread: Thread
    follows: Follows
    epoch: Epoch
    memory: TurnMemory | None
    """The stable section; None where this is the first turn since the last swap."""
    handed: Handed | None
    """What the agent has word for word, where it runs on a context of ours."""

    @property
    def is_after_compaction(self) -> bool:
        """The first turn since the agent lost most of what it had before its eyes."""
        return self.epoch.is_new or (self.memory is None and self.epoch.generation > 0)


class TurnRequest(NamedTuple):
    """A prompt, and what may be made of it."""

    scope: Scope
    prompt: str
    query: str
    """What of it is searched for."""
    intent: Intent
    window: int
    current_tokens: int
    budget: int
    preview: bool
    by: Caller


class TurnBuilder:
    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        settings: Settings,
        background: Background,
        recall_service: RecallService,
        session_state: SessionStateService,
        frame_key: bytes,
    ) -> None:
        self._store = store
        self._settings = settings
        self._background = background
        self._recall_service = recall_service
        self._session_state = session_state
        self._memory_section_cache = MemorySectionCache(store, settings, session_state, background, frame_key)
        self._surroundings = Surroundings(store, blobs)
        self._key = frame_key

    # ── before a turn ──

    async def prepare(
        self,
        scope: Scope,
        prompt: str,
        *,
        current_tokens: int | None = None,
        context_window: int | None = None,
        swap_size: SwapSize | None = None,
        seconds: float | None = None,
        explain: bool = False,
        preview: bool = False,
        by: Caller = EMBEDDED,
    ) -> PreparedTurn:
        """What the agent should have in mind for this prompt: `memory`, the same until the next swap, and `recall`.
        `seconds`: where the host has fewer than the setting. With `preview` nothing is changed by it."""
        checked_text(prompt, "prompt")
        settings = self._settings.for_agent(scope.agent_id)
        most = settings.turn.deadline.total_seconds()
        deadline = Deadline(most if seconds is None else min(most, seconds))
        prompt, query = await self._read(scope, prompt)
        intent = intent_of(query)
        window = context_window or settings.token_budget.context_window
        used = current_tokens or 0
        budget = budget_tokens(settings.token_budget, current_tokens=used, context_window=window)
        turn_request = TurnRequest(scope, prompt, query.text, intent, window, used, budget, preview, by)
        memory, recall = None, NOTHING
        entries: list[MemoryEntry] = []
        if not self._is_silent(settings, deadline):
            self._note_window(turn_request, context_window)
            with self._background.runner.answering():
                if intent in ("plain", "recall"):
                    self._recall_service.anticipate(scope.agent_id, query.text)
                facts = await deadline.get("session", self._facts(turn_request))
                if facts is not None:
                    memory, (recall, entries) = await asyncio.gather(
                        self._memory(turn_request, facts, deadline), self._recall(turn_request, facts, deadline)
                    )
        turn = PreparedTurn(
            memory=memory.text if memory else "",
            recall=recall.text,
            tokens=TurnTokens(memory=memory.tokens if memory else 0, recall=recall.tokens, budget=budget),
            entries=entries,
            intent=intent,
            degraded=deadline.degraded,
            parts=[*(memory.parts if memory else []), *recall.parts] if explain else [],
            forgets=self._background.forgetting.count(scope.agent_id),
        )
        await deadline.finish("audit", self._record(turn_request, turn, memory))
        if swap_size is not None and not preview:
            await deadline.get("swap size", self._background.slots.note_size(scope, swap_size))
        return turn

    async def _read(self, scope: Scope, prompt: str) -> tuple[str, Query]:
        def read() -> tuple[str, Query]:  # without its secrets
            said = self._recall_service.redacted(scope.agent_id, prompt)
            return said, read_query(said)

        return await asyncio.to_thread(read) if len(prompt) > LARGE_BYTES else read()

    def _note_window(self, turn_request: TurnRequest, context_window: int | None) -> None:
        """A host that says how full its window is has slot B made ready in time (D17)."""
        if context_window is not None:
            self._background.slots.note_window(turn_request.scope, context_window)
            threshold = self._settings.for_agent(turn_request.scope.agent_id).compaction.threshold
            if turn_request.current_tokens >= int(context_window * threshold):
                self._background.runner.wake("contexts", turn_request.scope.agent_id, turn_request.scope.session_id)

    async def _facts(self, turn_request: TurnRequest) -> SessionFacts:
        session, thread, follows = await self._session_state.facts(turn_request.scope, turn_request.prompt)
        epoch = await self._memory_section_cache.epoch(turn_request.scope, session)
        memory = await self._memory_section_cache.known(turn_request.scope, epoch)
        return SessionFacts(
            session, thread, follows, epoch, memory, await self._memory_section_cache.handed(turn_request.scope, epoch)
        )

    async def _memory(self, turn_request: TurnRequest, facts: SessionFacts, deadline: Deadline) -> TurnMemory | None:
        most = self._memory_section_cache.most_tokens(turn_request.scope.agent_id, turn_request.window)
        if facts.memory is not None and facts.memory.tokens <= most:
            return facts.memory
        making = self._memory_section_cache.made(
            turn_request.scope,
            facts.epoch,
            facts.handed,
            window=turn_request.window,
            current_tokens=turn_request.current_tokens,
            recall_budget=turn_request.budget,
            keeps=not turn_request.preview,
        )
        return await deadline.get("memory", making)

    async def _recall(
        self, turn_request: TurnRequest, facts: SessionFacts, deadline: Deadline
    ) -> tuple[RecallSection, list[MemoryEntry]]:
        scope, settings = turn_request.scope, self._settings.for_agent(turn_request.scope.agent_id)
        retrieval = retrieval_budget_for(
            turn_request.intent,
            settings.search,
            settings.context_budget,
            settings.min_score,
            is_after_compaction=facts.is_after_compaction,
        )
        # What the conversation before was on says something only where it is looked for, or beside what comes to mind.
        last, search_for_turn = await asyncio.gather(
            deadline.get("continuity", self._last_time(turn_request, facts)),
            self._search_for_turn(turn_request, facts, retrieval, deadline),
        )
        deadline.degraded += search_for_turn.degraded
        entries = search_for_turn.entries
        lines = self._lines(turn_request, facts, last, entries)
        found = await self._surroundings.with_surroundings(scope.agent_id, search_for_turn, deadline)
        why = _why(turn_request.intent, entries, facts)
        most = recall_limit(turn_request.budget, turn_request.window)
        section = await self._section(
            scope, lines, found, turn_request.intent, most, retrieval, why, turn_request.query
        )
        shown = [entry for _, entry in in_order_of_time(entries) if entry.id in section.shown]
        return section, shown

    async def _search_for_turn(
        self, turn_request: TurnRequest, facts: SessionFacts, retrieval: RetrievalBudget, deadline: Deadline
    ) -> TurnSearch:
        if turn_request.intent == "brief":
            return NOTHING_FOUND
        query = turn_request.query
        if turn_request.intent == "resume":  # "where were we?" says nothing of where that was
            before = self._session_state.last_time(turn_request.scope, facts.session, facts.thread, facts.follows)
            last = await deadline.get("continuity", before)
            query = f"{query}\n{subject_of(last)}" if last else query
        work = self._recall_service.search_for_turn(
            turn_request.scope,
            query,
            retrieval,
            budget=recall_limit(turn_request.budget, turn_request.window),
            is_visible=self._visible(turn_request.scope, facts),
            prompt_seq=facts.follows.prompt_seq,
            seconds=deadline.left,
            falls_back=self._falls_back(turn_request, facts),
            by=turn_request.by,
        )
        return await deadline.get("recall", work) or NOTHING_FOUND

    def _visible(self, scope: Scope, facts: SessionFacts) -> Callable[[int], bool]:
        """Which messages of the session the agent surely has before its eyes: what it was handed word for word and
        what came since, or the last turns of what its host has kept. Of a conversation that is over, nothing."""
        if facts.session is not None and facts.session.ended_at is not None:
            return lambda seq: False
        if facts.handed is not None:
            return facts.handed.shows
        turns = self._settings.for_agent(scope.agent_id).context_budget.recent_turns_always_full
        last_seq = facts.session.last_seq if facts.session else 0
        return lambda seq: seq > last_seq - 2 * turns

    def _falls_back(self, turn_request: TurnRequest, facts: SessionFacts) -> bool:
        """Whether the newest is told where nothing else comes to mind (A3): where a conversation is picked up."""
        if self._settings.for_agent(turn_request.scope.agent_id).search.fallback == "always":
            return True
        info = facts.follows.info
        is_interrupted = info is not None and info.gap == "interrupted"
        return turn_request.intent == "resume" or is_interrupted or facts.is_after_compaction

    async def _last_time(self, turn_request: TurnRequest, facts: SessionFacts) -> LastTime | None:
        """The conversation before, where this one does not simply go on."""
        info = facts.follows.info
        if info is not None and info.gap == "continuous" and turn_request.intent != "resume":
            return None
        last = await self._session_state.last_time(turn_request.scope, facts.session, facts.thread, facts.follows)
        if last is None:
            return None
        outdated = await self._background.reader.corrections.outdated(turn_request.scope.agent_id)
        last_said = "" if last.last_said in outdated else last.last_said
        return last._replace(records=[one for one in last.records if one.text not in outdated], last_said=last_said)

    def _lines(
        self, turn_request: TurnRequest, facts: SessionFacts, last: LastTime | None, entries: Sequence[MemoryEntry]
    ) -> list[ContinuityLine]:
        """The continuity block (D10): the session, how it goes on from the one before, what it is about."""
        info, at = facts.follows.info, now()
        is_new = info is None or info.gap == "new"
        reason = handover_reason(
            last,
            intent=turn_request.intent,
            gap=info.gap if info else None,
            is_greeting=is_boilerplate(turn_request.query),
            found_in={entry.session_id for entry in entries if entry.score != FALLBACK_SCORE},
        )
        opening = handover(last, at, with_last_words=reason == "picked up") if reason else ""
        topics = [] if is_new else self._session_state.topics_in(turn_request.scope.agent_id, facts.thread)
        return [
            ContinuityLine("session", session_line(None if is_new else info, at), "the conversation so far"),
            ContinuityLine("handover", opening, "they pick up what was spoken of then"),
            ContinuityLine("topics", topics_line(topics), "what they speak of and keep returning to"),
        ]

    async def _record(self, turn_request: TurnRequest, turn: PreparedTurn, memory: TurnMemory | None) -> None:
        details: dict[str, Any] = {
            "prompt": _digest(turn_request.prompt),
            "intent": turn_request.intent,
            "entries": [entry.id for entry in turn.entries],
            "memory": _digest(turn.memory),
            "recall": _digest(turn.recall),
            "tokens": turn.tokens.memory + turn.tokens.recall,
            "epoch": memory.epoch if memory else None,
        }
        details |= {"preview": True} if turn_request.preview else {}
        details |= {"degraded": turn.degraded} if turn.degraded else {}
        await self._recall_service.record_retrieval(
            turn_request.scope, "prepareTurn", turn.entries, details, turn_request.by, counts=not turn_request.preview
        )

    # ── beside the host's own search ──

    async def enrich(self, scope: Scope, query: str, *, by: Caller = EMBEDDED) -> Enrichment:
        """What a sparse result of the host's own memory search is enriched with."""
        if not query.strip():
            raise WrongShape("`query` is empty: say what is searched for")
        checked_text(query, "query")
        settings = self._settings.for_agent(scope.agent_id)
        deadline = Deadline(settings.turn.deadline.total_seconds())
        said, turn_request = await self._read(scope, query)
        retrieval = retrieval_budget_for(
            "recall", settings.search, settings.context_budget, settings.min_score, is_after_compaction=False
        )
        found = NOTHING_FOUND
        if not self._is_silent(settings, deadline):
            with self._background.runner.answering():
                work = self._recall_service.search_for_turn(
                    scope,
                    turn_request.text,
                    retrieval,
                    budget=ENRICHED_TOKENS,
                    seconds=deadline.left,
                    stands_alone=True,
                    by=by,
                )
                found = await deadline.get("recall", work) or NOTHING_FOUND
            deadline.degraded += found.degraded
        surrounded = await self._surroundings.with_surroundings(scope.agent_id, found, deadline)
        why = "the host's own search may find little"
        section = await self._section(
            scope, [], surrounded, "recall", ENRICHED_TOKENS, retrieval, why, turn_request.text
        )
        shown = [entry for entry in found.entries if entry.id in section.shown]
        details = {"query": _digest(said), "entries": [entry.id for entry in shown]}
        recording = self._recall_service.record_retrieval(scope, "enrich", shown, details, by, counts=True)
        await deadline.finish("audit", recording)
        return Enrichment(
            text=section.text, entries=shown, tokens=section.tokens, sparse=SPARSE, degraded=deadline.degraded
        )

    async def _section(
        self,
        scope: Scope,
        lines: Sequence[ContinuityLine],
        found: Sequence[Ranked],
        intent: Intent,
        budget: int,
        retrieval: RetrievalBudget,
        why: str,
        query: str,
    ) -> RecallSection:
        return await asyncio.to_thread(
            recall_section,
            lines,
            found,
            intent=intent,
            budget=budget,
            at=now(),
            own_agent=scope.agent_id,
            said_chars=retrieval.said_chars,
            beside_chars=retrieval.beside_chars,
            asked=frozenset(query_terms(query)),
            why=why,
            key=self._key,
        )

    def _is_silent(self, settings: Settings, deadline: Deadline) -> bool:
        """Whether by the settings nothing is injected; said, then."""
        if settings.enabled and not settings.store_only:
            return False
        switch = "storeOnly" if settings.store_only else "enabled"
        deadline.degraded.append(f"{switch}: by the settings nothing is injected")
        return True


def _why(intent: Intent, entries: Sequence[MemoryEntry], facts: SessionFacts) -> str:
    if entries and all(entry.score == FALLBACK_SCORE for entry in entries):
        return "nothing qualified: only the newest there is"
    why = {"recall": "it was asked for", "resume": "the thread is picked up"}.get(intent, "it is like the prompt")
    return f"{why}; more, as the context has just changed hands" if facts.is_after_compaction else why


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
