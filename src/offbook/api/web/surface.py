"""What the daemon answers under /ui: the page's files, its sign-in, and events as they happen.

Whatever the page shows or changes of a memory goes through the verbs, as anybody's requests do.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from offbook.api import guard, wire
from offbook.api.fields import Count
from offbook.api.memory import Memory
from offbook.api.messages import Answer, Request
from offbook.api.node_routing import NodeRouter
from offbook.api.web.files import GUARDED, file_answer
from offbook.api.web.sign_in import SignIn
from offbook.model.errors import InvalidInput, OffbookError, StoreBusy, Unauthorized, UnknownVerb, WrongMethod
from offbook.model.types import AgentId, Caller, Value

MOST_STREAMS = 64
LONGEST_STREAM_SECONDS = 3600.0
"""The page asks again; what it asks for by then is what it still wants."""
BEAT_SECONDS = 15.0
"""Between two signs of life, which find connections that are dead and tokens that were revoked."""
NOT_KEPT = b"cache-control: no-store\r\n"

T = TypeVar("T")
Admit = Callable[[Request], Caller]


class OneCode(Value, frozen=True):
    """For the link that `offbook ui` opens. `url`: where the daemon serves the page; None where on its socket only."""

    code: str
    url: str | None


class Redeem(Value, frozen=True):
    code: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class WebSession(Value, frozen=True):
    token: str
    seconds: int
    agents: list[str] | None
    """The agents it is for; None: all."""
    default_agent: str


class Watch(Value, frozen=True):
    agent_id: AgentId
    after: Count | None = None


class WebSurface:
    """One for all listeners: a code is asked for on the socket and redeemed over TCP."""

    def __init__(
        self,
        memory: Memory,
        callers: Callable[[], Mapping[str, Caller]],
        sign_in: SignIn,
        router: NodeRouter | None = None,
    ) -> None:
        self.url: str | None = None
        self._router = router
        self.sign_in = sign_in
        self._memory = memory
        self._callers = callers
        self._streams: Counter[str] = Counter()
        """Of each caller."""

    def is_meant(self, request: Request) -> bool:
        path = request.path
        return path == "/ui" or path.startswith("/ui/") or (path == "/" and _is_browser(request))

    async def answer(self, request: Request, admit: Admit) -> Answer:
        path = request.path.removeprefix("/ui/") if request.path.startswith("/ui/") else None
        if request.method in ("GET", "HEAD"):
            if path is None:
                return Answer(307, b"", b"text/plain", b"location: /ui/\r\n" + GUARDED)
            return file_answer(path or "index.html", request)
        if request.method != "POST":
            raise WrongMethod(f"{request.method} {request.path}: use GET or POST")
        if path == "code":
            code = self.sign_in.new_code(admit(request), self._callers())
            return self._told(OneCode(code=code, url=self.url))
        if path == "session":
            return self._told(self._opened(request))
        if path == "events":
            return self._watched(request, admit)
        raise UnknownVerb(f"{request.path} is not part of the page: see /ui/")

    def _told(self, answer: Value) -> Answer:
        return Answer(200, wire.encode_answer(answer), extra_headers=NOT_KEPT)

    def _opened(self, request: Request) -> WebSession:
        """For a code, or in the place of a session that still holds."""
        given = _decoded(request, Redeem)
        if given.code is not None:
            token, digest = self.sign_in.redeem(given.code)
        else:
            held = (request.header(b"authorization") or "").partition(" ")[2].strip()
            digest = self.sign_in.session_of(held) or ""
            token = held
        caller = self._callers().get(digest)
        if caller is None:
            raise Unauthorized("this session is over: run `offbook ui` again")
        agents = None if caller.agents is None else sorted(caller.agents)
        default = self._memory.default_agent
        if agents is not None and default not in agents:
            default = agents[0]
        return WebSession(token=token, seconds=self.sign_in.seconds_left(token), agents=agents, default_agent=default)

    def _watched(self, request: Request, admit: Admit) -> Answer:
        asked = _decoded(request, Watch)
        caller = admit(request)
        guard.check_agent(caller, asked.agent_id)
        if self._streams[caller.name] >= MOST_STREAMS:
            raise StoreBusy(f"{MOST_STREAMS} pages are watching already: close some")
        if self._router is not None:
            self._router.refuse_elsewhere(asked.agent_id)

        def still_holds() -> bool:
            is_here = self._router is None or self._router.epoch(asked.agent_id) is not None
            return is_here and admit(request) == caller

        events = self._events(asked, caller, still_holds)
        return Answer(200, b"", b"text/event-stream", NOT_KEPT + b"x-accel-buffering: no\r\n", events)

    async def _events(
        self, asked: Watch, caller: Caller, still_holds: Callable[[], bool]
    ) -> AsyncGenerator[bytes, None]:
        self._streams[caller.name] += 1
        started = beaten = time.monotonic()
        try:
            backlog = -1
            async with aclosing(self._memory.follow(asked.agent_id, after=asked.after, by=caller)) as looks:
                async for happened in looks:
                    now = time.monotonic()
                    if now - started > LONGEST_STREAM_SECONDS or not _holds(still_holds):
                        return
                    if happened.events or happened.backlog != backlog:
                        yield b"id: %d\ndata: %b\n\n" % (happened.seq, wire.encode_answer(happened))
                    elif now - beaten > BEAT_SECONDS:
                        yield b": \n\n"
                    else:
                        continue
                    beaten, backlog = now, happened.backlog
        finally:
            self._streams[caller.name] -= 1


def _holds(still_holds: Callable[[], bool]) -> bool:
    try:
        return still_holds()
    except OffbookError:  # revoked meanwhile, or its time is over
        return False


def _is_browser(request: Request) -> bool:
    return request.method == "GET" and "text/html" in (request.header(b"accept") or "")


def _decoded(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(request.body or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the body does not fit: {error}") from None
