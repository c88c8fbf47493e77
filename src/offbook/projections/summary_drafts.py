"""Making one summary: what a model writes of it, or the extractive summarizer, and how it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import structlog

from offbook.context.pending_messages import PendingMessages, ReadSpan
from offbook.context.span_answer import grounded, read_answer
from offbook.context.summary_drafts import Authored, Source, chunk_draft, identifiers_of, merge_draft
from offbook.context.summary_prompts import (
    PROMPT_VERSION,
    Remembered,
    chunk_prompt,
    memory_room,
    merge_prompt,
    remembered,
    visible,
)
from offbook.log.store import Store
from offbook.model.content import render
from offbook.model.settings import Settings
from offbook.model.summary import Summary, SummaryDraft
from offbook.model.types import AuditDraft, Scope
from offbook.models.protocols import Prompt
from offbook.models.tokens import estimate_tokens
from offbook.models.worker import IN_PROCESS, Worker
from offbook.projections.model_statements import ModelStatements
from offbook.projections.summary_files import SummaryFiles
from offbook.projections.summary_writer import Writer
from offbook.statements.reading import is_spoken

SUMMARIES_SHOWN = 100
"""Of each level, to the model that writes the next: more than it can be shown (see `compression.remembered`)."""
LEAST_TARGET_TOKENS = 80
COMPRESSOR = "offbook"
"""The actor of the audit event: nobody asked for it."""

log = structlog.get_logger("offbook.projections")


class DraftOptions(NamedTuple):
    """Who may write, and what of the past is shown."""

    first: int | None = None
    """Of those in line, only so many; None is all."""
    before: str | None = None
    """The id of the summary that is written again: its author knows what came before it, and nothing later."""


class SummaryDrafter:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        pending_messages: PendingMessages,
        writer: Writer,
        files: SummaryFiles,
        worker: Worker = IN_PROCESS,
    ) -> None:
        self._worker = worker
        self._statements = ModelStatements(store, settings)
        self._store = store
        self._settings = settings
        self._pending_messages = pending_messages
        self._writer = writer
        self._files = files

    async def chunk(self, scope: Scope, message_span: ReadSpan) -> SummaryDraft:
        """By whoever can."""
        source = await asyncio.to_thread(message_span.source, scope)
        return await self._chunk_draft(source, await self._authored_chunk(source, message_span, DraftOptions()))

    async def chunk_again(self, scope: Scope, message_span: ReadSpan, asked: DraftOptions) -> SummaryDraft | None:
        """By one of these models; None where none of them can."""
        source = await asyncio.to_thread(message_span.source, scope)
        authored = await self._authored_chunk(source, message_span, asked)
        return None if authored is None else await self._chunk_draft(source, authored)

    async def merge(self, agent_id: str, sources: Sequence[Summary]) -> SummaryDraft:
        return await self._merge_draft(agent_id, sources, await self._authored_merge(agent_id, sources, DraftOptions()))

    async def merge_again(self, agent_id: str, sources: Sequence[Summary], asked: DraftOptions) -> SummaryDraft | None:
        authored = await self._authored_merge(agent_id, sources, asked)
        return None if authored is None else await self._merge_draft(agent_id, sources, authored)

    async def keep(
        self, agent_id: str, session_id: str | None, draft: SummaryDraft, *, replaced: str | None = None
    ) -> Summary:
        """In the store, then as a file. `replaced` is the id of the summary that is written again."""
        details: dict[str, Any] = {
            "level": draft.level,
            "spans": msgspec.to_builtins(draft.spans),
            "summarizer": draft.summarizer,
            "sourceTokens": draft.source_tokens,
            "tokens": draft.tokens,
            "lost": draft.lost,
            "dollars": draft.usage.dollars,
        }
        if replaced is not None:
            details["again"] = True
            await self._files.outdated(agent_id, replaced)
        event = AuditDraft(verb="compress", actor=COMPRESSOR, session_id=session_id, details=details)
        summary = await self._store.add_summary(agent_id, draft, event)
        await self._files.kept(summary)
        log.debug("summarised", action="memory.compress", agent=agent_id, summary=summary.id, by=draft.summarizer)
        return summary

    # ── drafts ──

    async def _chunk_draft(self, source: Source, authored: Authored | None) -> SummaryDraft:
        target_tokens = self._settings.for_agent(source.scope.agent_id).summary_target_tokens
        return await self._worker.run(chunk_draft, source, target_tokens, authored)

    async def _merge_draft(self, agent_id: str, sources: Sequence[Summary], authored: Authored | None) -> SummaryDraft:
        target_tokens = self._settings.for_agent(agent_id).summary_target_tokens
        return await self._worker.run(merge_draft, sources, target_tokens, authored)

    # ── what a model writes ──

    async def _authored_chunk(self, source: Source, message_span: ReadSpan, asked: DraftOptions) -> Authored | None:
        agent_id = source.scope.agent_id
        if not self._writer.has_models(agent_id):
            return None
        settings = self._settings.for_agent(agent_id)
        turns = await self._pending_messages.turns(source.scope, message_span)
        known = await self._statements.known(source.scope, {seq for seq, _ in turns})
        # Of a short stretch a short memory: one of the full length would be longer than what it stands for.
        source_tokens = sum(estimate_tokens(one.text) for one in source.said)
        target_tokens = min(settings.summary_target_tokens, max(LEAST_TARGET_TOKENS, source_tokens * 3 // 5))
        identifiers = await self._worker.run(identifiers_of, [one.text for one in source.said])
        memories = await self._memories(agent_id, asked.before)

        def prompt(max_tokens: int) -> Prompt:
            room = memory_room(max_tokens, chunk_tokens=settings.chunk_tokens)
            shown = visible(memories, room, target_tokens=settings.summary_target_tokens)
            return chunk_prompt(
                agent_id,
                shown,
                turns,
                target_tokens=target_tokens,
                identifiers=identifiers,
                known=known,
            )

        chars = sum(len(one.text) for one in source.said)
        authored = await self._written(agent_id, prompt, chars, identifiers, asked.first)
        if authored is None:
            return None
        answer = await self._worker.run(read_answer, authored.text)
        lines = {seq: f"{message.name or ''} {render(message)}" for seq, message in turns if is_spoken(message)}
        statements = await self._worker.run(grounded, answer.statements, lines, known)
        await self._statements.keep(source.scope, statements, authored.summarizer)
        return authored._replace(text=answer.summary)

    async def _authored_merge(self, agent_id: str, sources: Sequence[Summary], asked: DraftOptions) -> Authored | None:
        if not self._writer.has_models(agent_id):
            return None
        settings = self._settings.for_agent(agent_id)
        texts = [source.draft.text for source in sources]
        identifiers = await self._worker.run(identifiers_of, texts)
        memories = await self._memories(agent_id, asked.before)
        merging = [remembered(source) for source in sources]

        def prompt(max_tokens: int) -> Prompt:
            room = memory_room(max_tokens, chunk_tokens=settings.chunk_tokens)
            ids = [one.id for one in merging]
            shown = visible(memories, room, target_tokens=settings.summary_target_tokens, merging=ids)
            return merge_prompt(
                agent_id, shown, merging, target_tokens=settings.summary_target_tokens, identifiers=identifiers
            )

        return await self._written(agent_id, prompt, sum(map(len, texts)), identifiers, asked.first)

    async def _written(
        self,
        agent_id: str,
        prompt: Callable[[int], Prompt],
        source_chars: int,
        identifiers: Sequence[str],
        first: int | None,
    ) -> Authored | None:
        answer = await self._writer.write(
            agent_id, prompt, source_chars=source_chars, identifiers=identifiers, first=first
        )
        if answer is None:
            return None
        written, summarizer, fingerprint = answer
        return Authored(written.text, summarizer, PROMPT_VERSION, fingerprint, written.usage)

    async def _memories(self, agent_id: str, before: str | None) -> list[Remembered]:
        most = self._settings.for_agent(agent_id).max_levels
        found: list[Remembered] = []
        for level in range(1, most + 1):
            newest = await self._store.summaries(agent_id, level=level, before=before, limit=SUMMARIES_SHOWN)
            found += [remembered(summary) for summary in newest]
        return found
