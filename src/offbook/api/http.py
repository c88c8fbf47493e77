"""The contract over HTTP: a whole request in, a whole answer out.

request ─▶ guard (host, origin, token) ─▶ verb ─▶ decoded ─▶ right to the agent ─▶ its handler ─▶ answer
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
import structlog

from offbook.api import guard, wire
from offbook.api.mcp import asking as mcp
from offbook.api.memory import Memory
from offbook.api.messages import Answer, Request, problem_answer
from offbook.api.metrics import CONTENT_TYPE, Metrics
from offbook.api.node_routing import NodeRouter
from offbook.api.openapi import openapi_document
from offbook.api.refusals import RefusalLog
from offbook.api.verbs import VERBS, Verb
from offbook.api.web.sign_in import SignIn
from offbook.api.web.surface import WebSurface
from offbook.ingest.fair_threads import LARGE_BYTES, FairThreads
from offbook.model import origins
from offbook.model.errors import Forbidden, OffbookError, UnknownVerb, WrongMethod
from offbook.model.types import Caller, Receipt

log = structlog.get_logger("offbook.http")


class Call(NamedTuple):
    """One request on its way: who asks, and what it came with."""

    caller: Caller
    request: Request


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
        refusals: RefusalLog | None = None,
        web: WebSurface | None = None,
        router: NodeRouter | None = None,
    ) -> None:
        """`router`: where several nodes share the database."""
        self._memory = memory
        self._metrics = metrics
        self._callers = callers
        self._is_socket = is_socket
        self._allowed_hosts = allowed_hosts
        self._refusals = refusals or RefusalLog()
        self._web = web or WebSurface(memory, callers, SignIn(b""))
        self._router = router
        self._threads = FairThreads("offbook-decode")

    async def __call__(self, request: Request) -> Answer:
        started = time.perf_counter()
        path = request.path
        verb = path[4:] if path.startswith("/v1/") else ""
        try:
            answer = await self._answer(request, verb)
        except OffbookError as error:
            answer = problem_answer(error, _allowed(error, verb))
            self._refusals.refused(error, verb or path)
        except Exception:
            # The one broad handler of this surface: a defect of ours must not take the connection with it.
            answer = problem_answer(OffbookError("an unexpected error; the daemon's log has the details"))
            log.exception("failed", action="request.fail", verb=verb or path)
        label = verb if verb in VERBS else "other"
        self._metrics.answered(label, answer.status, time.perf_counter() - started)
        return answer

    def refused(self, error: OffbookError) -> None:
        """One that was refused by its head, or while it came."""
        self._refusals.refused(error, "")
        self._metrics.refused(error.status)

    async def _answer(self, request: Request, verb: str) -> Answer:
        if self._web.is_meant(request):
            self._check_origin(request)
            return await self._web.answer(request, self.admit)
        call = Call(self.admit(request), request)
        method, path = request.method, request.path
        if path == "/metrics" and method == "GET":
            if call.caller.agents is not None:
                raise Forbidden("the metrics count all agents: ask with the owner's token")
            return Answer(200, self._metrics.render(), CONTENT_TYPE.encode())
        if path == "/v1/openapi.json" and method == "GET":
            return Answer(200, wire.encode_answer(openapi_document()))
        if path == "/mcp":
            return await self._over_mcp(call)
        asked = VERBS.get(verb)
        if asked is None:
            raise UnknownVerb(f"{path} is not a verb of this provider: see GET /v1/openapi.json")
        if method != "POST" and not (verb == "ping" and method == "GET"):
            raise WrongMethod(f"{method} {path}: use POST with a JSON body")
        body = b"" if method == "GET" else request.body
        answer = await self._perform(asked, await self._decoded(verb, body), call)
        return Answer(200, wire.encode_answer(answer))

    async def _decoded(self, verb: str, body: bytes) -> Any:
        decode = partial(wire.decode_request, verb, body)
        return decode() if len(body) < LARGE_BYTES else await self._threads.run(wire.owner_hint(body), decode)

    async def _over_mcp(self, call: Call) -> Answer:
        """The Model Context Protocol: whatever a tool asks comes through the same verbs, for the same caller."""
        # Not in the loop: the first time it takes a second or two, and others want their answers meanwhile.
        await asyncio.to_thread(mcp.load, "streamable")
        from offbook.api.mcp.streamable import answered

        async def ask(verb: str, body: dict[str, Any]) -> Any:
            request = wire.decode_request(verb, wire.encode_answer(body))
            answer = await self._perform(VERBS[verb], request, call)
            return msgspec.json.decode(answer) if isinstance(answer, msgspec.Raw) else msgspec.to_builtins(answer)

        agents = call.caller.agents
        return await answered(call.request, ask, agent_id=next(iter(agents)) if agents and len(agents) == 1 else None)

    def admit(self, request: Request) -> Caller:
        """Who asks, from the head alone."""
        self._check_origin(request)
        if self._router is not None and (passed := self._router.caller(request)) is not None:
            return passed
        return guard.identify(
            request.header(b"authorization"),
            self._callers,
            is_socket=self._is_socket,
            session_of=self._web.sign_in.session_of,
        )

    def _check_origin(self, request: Request) -> None:
        host = request.header(b"host")
        if not self._is_socket:
            origins.check_host(host, self._allowed_hosts)
        origins.check_origin(request.header(b"origin"), self._allowed_hosts, host)

    # ── the verbs ──

    async def _perform(self, verb: Verb, request: Any, call: Call) -> Any:
        """What the verb's handler answers, where the caller may act for the agent that is meant."""
        arguments = request.arguments()
        if verb.name == "onMessage" and (header := call.request.header(b"offbook-capture")) is not None:
            arguments["claim"] = wire.capture_claim(header, len(arguments["messages"]))
        handler = getattr(self._memory, verb.handler)
        owner = request.owner(self._memory.default_agent)
        if owner is None:
            return await handler(**arguments, by=call.caller)
        agent_id = owner if isinstance(owner, str) else owner.agent_id
        guard.check_agent(call.caller, agent_id)
        epoch = 0 if self._router is None else self._router.epoch(agent_id)
        if self._router is not None and epoch is None:
            body = call.request.body if call.request.path == f"/v1/{verb.name}" else wire.encode_answer(request)
            return await self._router.passed_on(agent_id, verb.name, body, call.caller, call.request)
        answer = verb.answered(await handler(owner, **arguments, by=call.caller))
        if isinstance(answer, Receipt):
            self._count(answer)
        elif self._router is not None and epoch is not None:  # what was stored is, whoever has the agent by now
            self._router.check(agent_id, epoch)
        return answer

    def _count(self, receipt: Receipt) -> None:
        self._metrics.accepted.inc(receipt.accepted)
        if receipt.duplicates:
            self._metrics.duplicates.inc(receipt.duplicates)
        if receipt.conflicts:
            self._metrics.conflicts.inc(len(receipt.conflicts))
            log.warning("same id, other content", action="message.conflict", conflicts=len(receipt.conflicts))


def _allowed(error: OffbookError, verb: str) -> bytes:
    """RFC 9110 asks for the methods that would do."""
    if isinstance(error, WrongMethod):
        return b"allow: GET, POST\r\n" if verb == "ping" else b"allow: POST\r\n"
    return b""
