"""The contract over HTTP: a whole request in, a whole answer out.

request ─▶ guard (host, origin, token) ─▶ verb ─▶ decoded ─▶ right to the agent ─▶ Memory verb ─▶ answer
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import structlog

from offbook.api import guard, requests
from offbook.api.mcp import asking as mcp
from offbook.api.memory import Memory
from offbook.api.messages import Answer, Request, problem_answer
from offbook.api.metrics import CONTENT_TYPE, Metrics
from offbook.api.openapi import openapi_document
from offbook.model.errors import Forbidden, OffbookError, UnknownVerb, WrongMethod, WrongShape
from offbook.model.receipt import ForgetCheck, Forgot
from offbook.model.types import Caller, Receipt, Scope

log = structlog.get_logger("offbook.http")


class Call:
    """One request on its way: who asks, and what it came with."""

    __slots__ = ("caller", "request")

    def __init__(self, caller: Caller, request: Request) -> None:
        self.caller = caller
        self.request = request


Verb = Callable[[Any, Call], Awaitable[Any]]


class HttpSurface:
    """Serves one listener. `is_socket` is what the guard trusts, so the two listeners are two surfaces."""

    def __init__(
        self,
        memory: Memory,
        metrics: Metrics,
        callers: Callable[[], Mapping[str, Caller]],
        *,
        is_socket: bool,
        allowed_hosts: frozenset[str] | None,
    ) -> None:
        self._memory = memory
        self._metrics = metrics
        self._callers = callers
        self._is_socket = is_socket
        self._allowed_hosts = allowed_hosts
        self._verbs: dict[str, Verb] = {
            "ping": self._ping,
            "onMessage": self._on_message,
            "getCompressedContext": self._get_compressed_context,
            "swap": self._swap,
            "expand": self._expand,
            "summaries": self._summaries,
            "compress": self._compress,
            "replay": self._replay,
            "jobs/claim": self._claim_job,
            "jobs/complete": self._complete_job,
            "jobs/fail": self._fail_job,
            "recall": self._recall,
            "prepareTurn": self._prepare_turn,
            "enrich": self._enrich,
            "topics": self._topics,
            "anchors": self._anchors,
            "state": self._state,
            "config": self._config,
            "lessons": self._lessons,
            "lessons/judge": self._judge_lesson,
            "pin": self._pin,
            "unpin": self._unpin,
            "forget": self._forget,
            "forget/verify": self._verify_forgotten,
            "cross": self._cross,
            "reindex": self._reindex,
            "maintain": self._maintain,
            "export": self._export,
            "import": self._import,
            "hooks/pre-compaction": self._pre_compaction,
            "hooks/post-compaction": self._post_compaction,
            "hooks/session-start": self._session_start,
            "hooks/session-end": self._session_end,
            "log": self._log,
            "missing": self._missing,
            "status": self._status,
            "audit": self._audit,
        }

    async def __call__(self, request: Request) -> Answer:
        started = time.perf_counter()
        path = request.path
        verb = path[4:] if path.startswith("/v1/") else ""
        try:
            answer = await self._answer(request, verb)
        except OffbookError as error:
            answer = problem_answer(error, _allowed(error, verb))
            log.info("refused", action="request.refuse", verb=verb or path, status=error.status, detail=error.detail)
        except Exception:
            # The one broad handler of this surface: a defect of ours must not take the connection with it.
            answer = problem_answer(OffbookError("an unexpected error; the daemon's log has the details"))
            log.exception("failed", action="request.fail", verb=verb or path)
        label = verb if verb in self._verbs else "other"
        self._metrics.answered(label, answer.status, time.perf_counter() - started)
        return answer

    async def _answer(self, request: Request, verb: str) -> Answer:
        call = Call(self.admit(request), request)
        method, path = request.method, request.path
        if path == "/metrics" and method == "GET":
            if call.caller.agents is not None:
                raise Forbidden("the metrics count all agents: ask with the owner's token")
            return Answer(200, self._metrics.render(), CONTENT_TYPE.encode())
        if path == "/v1/openapi.json" and method == "GET":
            return Answer(200, requests.encode_answer(openapi_document()))
        if path == "/mcp":
            return await self._over_mcp(call)
        handler = self._verbs.get(verb)
        if handler is None:
            raise UnknownVerb(f"{path} is not a verb of this provider: see GET /v1/openapi.json")
        if method != "POST" and not (verb == "ping" and method == "GET"):
            raise WrongMethod(f"{method} {path}: use POST with a JSON body")
        body = b"" if method == "GET" else request.body
        answer = await handler(requests.decode_request(verb, body), call)
        return Answer(200, requests.encode_answer(answer))

    async def _over_mcp(self, call: Call) -> Answer:
        """The Model Context Protocol: whatever a tool asks comes through the same verbs, for the same caller."""
        # Not in the loop: the first time it takes a second or two, and others want their answers meanwhile.
        await asyncio.to_thread(mcp.load, "streamable")
        from offbook.api.mcp.streamable import answered

        async def ask(verb: str, body: dict[str, Any]) -> Any:
            request = requests.decode_request(verb, requests.encode_answer(body))
            return msgspec.to_builtins(await self._verbs[verb](request, call))

        agents = call.caller.agents
        return await answered(call.request, ask, agent_id=next(iter(agents)) if agents and len(agents) == 1 else None)

    def admit(self, request: Request) -> Caller:
        """Who asks, from the head alone."""
        if not self._is_socket:
            guard.check_host(request.header(b"host"), self._allowed_hosts)
        guard.check_origin(request.header(b"origin"), self._allowed_hosts)
        return guard.identify(request.header(b"authorization"), self._callers, is_socket=self._is_socket)

    # ── the verbs ──

    async def _ping(self, _request: requests.Ping, _call: Call) -> Any:
        return await self._memory.ping()

    async def _on_message(self, request: requests.OnMessage, call: Call) -> Receipt:
        messages = request.given()
        header = call.request.header(b"offbook-capture")
        receipt = await self._memory.on_message(
            self._scope(request, call),
            messages,
            by=call.caller,
            claim=None if header is None else requests.capture_claim(header, len(messages)),
        )
        self._metrics.accepted.inc(receipt.accepted)
        if receipt.duplicates:
            self._metrics.duplicates.inc(receipt.duplicates)
        if receipt.conflicts:
            self._metrics.conflicts.inc(len(receipt.conflicts))
            log.warning("same id, other content", action="message.conflict", conflicts=len(receipt.conflicts))
        return receipt

    async def _get_compressed_context(self, request: requests.GetCompressedContext, call: Call) -> Any:
        scope = self._scope(request, call)
        return await self._memory.get_compressed_context(scope, request.max_chars, by=call.caller)

    async def _swap(self, request: requests.TakeSwap, call: Call) -> Any:
        return await self._memory.swap(
            self._scope(request, call),
            used_tokens=request.used_tokens,
            context_window=request.context_window,
            force=request.force,
            by=call.caller,
        )

    async def _expand(self, request: requests.Expand, call: Call) -> Any:
        span = request.source()
        return await self._memory.expand(
            self._agent(request.agent_id, call, span.session_id if span else request.session_id),
            summary_id=request.summary_id,
            span=span,
            after=request.after,
            limit=request.limit,
            by=call.caller,
        )

    async def _summaries(self, request: requests.Summaries, call: Call) -> Any:
        return await self._memory.summaries(
            self._agent(request.agent_id, call, request.session_id),
            level=request.level,
            session_id=request.session_id,
            before=request.before,
            limit=request.limit,
            by=call.caller,
        )

    async def _compress(self, request: requests.Compress, call: Call) -> Any:
        return await self._memory.compress(
            self._agent(request.agent_id, call, request.session_id),
            session_id=request.session_id,
            dry_run=request.dry_run,
            again=request.again,
            by=call.caller,
        )

    async def _replay(self, request: requests.GetReplay, call: Call) -> Any:
        return await self._memory.replay(self._scope(request, call), request.at, by=call.caller)

    async def _claim_job(self, request: requests.ClaimJob, call: Call) -> Any:
        agent_id = self._agent(request.agent_id, call)
        return await self._memory.claim_job(agent_id, wait_seconds=request.wait_ms / 1_000, by=call.caller)

    async def _complete_job(self, request: requests.CompleteJob, call: Call) -> requests.Done:
        agent_id = self._agent(request.agent_id, call)
        usage = request.usage.as_usage() if request.usage else None
        await self._memory.complete_job(agent_id, request.job_id, request.text, usage=usage, by=call.caller)
        return requests.Done()

    async def _fail_job(self, request: requests.FailJob, call: Call) -> requests.Done:
        agent_id = self._agent(request.agent_id, call)
        await self._memory.fail_job(agent_id, request.job_id, reason=request.reason, by=call.caller)
        return requests.Done()

    async def _recall(self, request: requests.Recall, call: Call) -> Any:
        return await self._memory.recall(
            self._scope(request, call),
            request.query,
            limit=request.limit,
            reach=request.scope,
            at=request.at,
            include_superseded=request.include_superseded,
            explain=request.explain,
            by=call.caller,
        )

    async def _prepare_turn(self, request: requests.PrepareTurn, call: Call) -> Any:
        return await self._memory.prepare_turn(
            self._scope(request, call),
            request.prompt,
            current_tokens=request.current_tokens,
            context_window=request.context_window,
            seconds=None if request.deadline_ms is None else request.deadline_ms / 1_000,
            explain=request.explain,
            preview=request.preview,
            by=call.caller,
        )

    async def _enrich(self, request: requests.Enrich, call: Call) -> Any:
        return await self._memory.enrich(self._scope(request, call), request.query, by=call.caller)

    async def _topics(self, request: requests.GetTopics, call: Call) -> Any:
        agent_id = self._agent(request.agent_id, call, request.session_id)
        return await self._memory.topics(agent_id, session_id=request.session_id, by=call.caller)

    async def _anchors(self, request: requests.GetAnchors, call: Call) -> Any:
        agent_id = self._agent(request.agent_id, call, request.session_id)
        return await self._memory.anchors(agent_id, session_id=request.session_id, by=call.caller)

    async def _state(self, request: requests.GetState, call: Call) -> Any:
        agent_id = self._agent(request.agent_id, call, request.session_id)
        return await self._memory.state(agent_id, session_id=request.session_id, by=call.caller)

    async def _config(self, request: requests.GetConfig, call: Call) -> Any:
        return await self._memory.config(self._agent(request.agent_id, call), by=call.caller)

    async def _lessons(self, request: requests.GetLessons, call: Call) -> Any:
        return await self._memory.lessons(
            self._agent(request.agent_id, call),
            kind=request.kind,
            statuses=request.statuses(),
            before=request.before,
            limit=request.limit,
            by=call.caller,
        )

    async def _judge_lesson(self, request: requests.JudgeLesson, call: Call) -> Any:
        return await self._memory.judge_lesson(
            self._agent(request.agent_id, call), request.lesson_id, request.verdict, request.text, by=call.caller
        )

    async def _pin(self, request: requests.Pin, call: Call, *, pinned: bool = True) -> Any:
        return await self._memory.pin(
            self._agent(request.agent_id, call, request.session_id),
            keyword=request.keyword,
            session_id=request.session_id,
            entry_ids=request.entry_ids,
            pinned=pinned,
            by=call.caller,
        )

    async def _unpin(self, request: requests.Unpin, call: Call) -> Any:
        return await self._pin(request, call, pinned=False)

    async def _forget(self, request: requests.Forget, call: Call) -> Forgot:
        receipt = await self._memory.forget(
            self._agent(request.agent_id, call, request.session_id),
            entry_ids=request.entry_ids,
            session_id=request.session_id,
            matching=request.matching,
            reason=request.reason,
            dry_run=request.dry_run,
            by=call.caller,
        )
        return Forgot(receipt=receipt)

    async def _verify_forgotten(self, request: requests.VerifyForgotten, call: Call) -> Any:
        if request.receipt is not None and request.receipt_id is not None:
            raise WrongShape("give `receipt` or `receiptId`, not both")
        if request.receipt is not None:
            guard.check_agent(call.caller, request.receipt.agent_id)
            return await self._memory.verify_forgotten(request.receipt, matching=request.matching, by=call.caller)
        agent_id = self._agent(request.agent_id, call)
        if request.receipt_id is None:
            kept = await self._memory.forget_receipts(agent_id, by=call.caller)
            return ForgetCheck(is_genuine=True, searched={}, residue=[], receipts=kept)
        receipt = await self._memory.forget_receipt(agent_id, request.receipt_id)
        check = await self._memory.verify_forgotten(receipt, matching=request.matching, by=call.caller)
        return msgspec.structs.replace(check, receipt=receipt)

    async def _cross(self, request: requests.Cross, call: Call) -> Any:
        return await self._memory.cross(self._agent(request.agent_id, call), enabled=request.enabled, by=call.caller)

    async def _reindex(self, request: requests.Reindex, call: Call) -> Any:
        return await self._memory.reindex(
            self._agent(request.agent_id, call), embeddings=request.embeddings, by=call.caller
        )

    async def _maintain(self, request: requests.Maintain, call: Call) -> Any:
        return await self._memory.maintain(self._agent(request.agent_id, call), tasks=request.tasks, by=call.caller)

    async def _export(self, request: requests.Export, call: Call) -> Any:
        return await self._memory.export(
            self._agent(request.agent_id, call), after=request.after, limit=request.limit, by=call.caller
        )

    async def _import(self, request: requests.Import, call: Call) -> Any:
        return await self._memory.import_records(
            self._agent(request.agent_id, call),
            request.records,
            follows=request.follows,
            done=request.done,
            by=call.caller,
        )

    async def _pre_compaction(self, request: requests.PreCompaction, call: Call) -> requests.Saved:
        saved = await self._memory.pre_compaction(self._scope(request, call), request.messages or (), by=call.caller)
        return requests.Saved(saved=saved)

    async def _post_compaction(self, request: requests.PostCompaction, call: Call) -> requests.Done:
        await self._memory.post_compaction(self._scope(request, call), request.new_context, by=call.caller)
        return requests.Done()

    async def _session_start(self, request: requests.SessionStart, call: Call) -> Any:
        scope = self._scope(request, call)
        return await self._memory.session_start(
            scope, max_chars=request.max_chars, parent_session_id=request.parent_session_id, by=call.caller
        )

    async def _session_end(self, request: requests.SessionEnd, call: Call) -> requests.Done:
        await self._memory.session_end(self._scope(request, call), reason=request.reason, by=call.caller)
        return requests.Done()

    async def _log(self, request: requests.GetLog, call: Call) -> Any:
        return await self._memory.log(
            self._scope(request, call),
            after_seq=request.after_seq,
            limit=request.limit,
            newest=request.newest,
            wait_seconds=request.wait_ms / 1_000,
            by=call.caller,
        )

    async def _missing(self, request: requests.GetMissing, call: Call) -> requests.Missing:
        missing = await self._memory.missing(self._scope(request, call), request.ids, by=call.caller)
        return requests.Missing(missing=missing)

    async def _status(self, request: requests.GetStatus, call: Call) -> Any:
        return await self._memory.status(self._agent(request.agent_id, call), by=call.caller)

    async def _audit(self, request: requests.GetAudit, call: Call) -> Any:
        return await self._memory.audit(
            self._agent(request.agent_id, call, request.session_id),
            session_id=request.session_id,
            since=request.since,
            limit=request.limit,
            by=call.caller,
        )

    def _agent(self, agent_id: str | None, call: Call, session_id: str | None = None) -> str:
        meant = self._memory.agent(agent_id, session_id)
        guard.check_agent(call.caller, meant)
        return meant

    def _scope(self, request: Any, call: Call) -> Scope:
        scope = self._memory.scope(request.session_id, request.agent_id)
        guard.check_agent(call.caller, scope.agent_id)
        return scope


def _allowed(error: OffbookError, verb: str) -> bytes:
    """RFC 9110 asks for the methods that would do."""
    if isinstance(error, WrongMethod):
        return b"allow: GET, POST\r\n" if verb == "ping" else b"allow: POST\r\n"
    return b""
