"""A model server of ours, OpenAI-compatible, that says what the test decides and keeps every request it was sent."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.host import model_rules

MODEL = "scripted-1"
# Four characters of JSON a token, tools and messages alike: rough, and the same for every request, so that the host's
# thresholds are crossed when and because the context grows.
CHARACTERS_PER_TOKEN = 4
FIRST_CHINESE, TOKENS_PER_CHINESE = "\u2e80", 0.8
# The host ends every request with a user message of its own, and begins every user's text with a stamp.
INTERNAL_CONTEXT = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
SUMMARY_SECTIONS = ("Decisions", "Open TODOs", "Constraints/Rules", "Pending user asks", "Exact identifiers")
# In words that the host knows.
TOO_LONG = "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
STAMP = re.compile(r"^\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d [^\]]+\] ")


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: Mapping[str, Any]
    # The host keeps letters and digits only; an id with others would come back changed.
    id: str | None = None


@dataclass(frozen=True)
class ToolCalls:
    calls: Sequence[ToolCall]
    text: str = ""


@dataclass(frozen=True)
class Failure:
    status: int = 500
    message: str = "scripted failure"


Reply = Text | ToolCalls | Failure


@dataclass
class Request:
    """What the host sent, and when. Times are of `time.monotonic()`."""

    body: dict[str, Any]
    arrived_at: float
    finished_at: float | None = None
    reply: Reply | None = None
    faults: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    characters_per_token: float = CHARACTERS_PER_TOKEN

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages") or []

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]

    @property
    def is_turn(self) -> bool:
        """Of a conversation; what the host asks for itself (a summary, a title) offers no tools."""
        return bool(self.tool_names)

    @property
    def prompt_tokens(self) -> int:
        sent = json.dumps([self.messages, self.body.get("tools") or []], ensure_ascii=False)
        return tokens_of(sent, self.characters_per_token)

    @property
    def answer_room_tokens(self) -> int:
        """The most that the host lets the model answer."""
        return int(self.body.get("max_completion_tokens") or self.body["max_tokens"])


def tokens_of(text: str, characters_per_token: float) -> int:
    """Chinese characters count one by one, whatever the rest is."""
    chinese = sum(character >= FIRST_CHINESE for character in text)
    return int((len(text) - chinese) / characters_per_token + chinese * TOKENS_PER_CHINESE)


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)


def is_internal(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "user" and text_of(message).startswith(INTERNAL_CONTEXT)


def conversation(request: Request) -> list[dict[str, Any]]:
    """The messages without the system's and without the host's own last one."""
    return [m for m in request.messages if m["role"] not in model_rules.SYSTEM_ROLES and not is_internal(m)]


def user_texts(request: Request) -> list[str]:
    """What users said (with whatever a plugin put around it), without the host's stamp."""
    return [STAMP.sub("", text_of(m)) for m in conversation(request) if m["role"] == "user"]


def last_user_text(request: Request) -> str:
    return (user_texts(request) or [""])[-1]


def system_text(request: Request) -> str:
    return "\n".join(text_of(m) for m in request.messages if m["role"] in model_rules.SYSTEM_ROLES)


def whole_text(request: Request) -> str:
    """All that this request says to the model, to look for what must or must not be there."""
    return json.dumps(request.body, ensure_ascii=False)


def tool_results(request: Request) -> list[str]:
    """The results since the user last spoke: empty at the start of a turn."""
    found: list[str] = []
    for message in reversed(conversation(request)):
        if message["role"] == "user":
            break
        if message["role"] == "tool":
            found.insert(0, text_of(message))
    return found


def echo(request: Request) -> Reply:
    return Text(f"I heard: {last_user_text(request)[:200]}")


def summary(request: Request) -> Reply:
    """For what the host asks by itself: the summary of a conversation. It takes none without these sections."""
    told = f"Scripted summary of {len(last_user_text(request))} characters."
    return Text("\n\n".join(f"## {section}\n{told}" for section in SUMMARY_SECTIONS))


class ScriptedModel:
    """`reply` decides what a conversation is answered, `reply_to_host` what the host asks by itself; both run in a
    thread of the request and may wait. `delay_seconds` comes before every answer. All may be changed while it runs.
    With `strict` a request with faults is refused as a provider would; they are kept either way (`faults()`). So is one
    that is longer than `window_tokens`, by `characters_per_token` (`refused()`)."""

    def __init__(
        self, reply: Callable[[Request], Reply] = echo, *, delay_seconds: float = 0.0, strict: bool = True
    ) -> None:
        self.reply = reply
        self.reply_to_host: Callable[[Request], Reply] = summary
        self.delay_seconds = delay_seconds
        self.strict = strict
        self.window_tokens: int | None = None
        self.characters_per_token: float = CHARACTERS_PER_TOKEN
        self.requests: list[Request] = []
        self.errors: list[BaseException] = []
        self._numbers = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True, name="scripted model").start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def turns(self, since: int = 0) -> list[Request]:
        """The conversation's requests from position `since` of `requests` on (`since=len(model.requests)` before)."""
        return [request for request in self.requests[since:] if request.is_turn]

    def faults(self) -> list[str]:
        """Every fault of every request. The host alone makes none, not after a failed turn, a compaction, or a tool
        call that was cut off by kill -9: so every one of them is a plugin's."""
        return [
            f"request {number}, message {fault}" for number, made in enumerate(self.requests) for fault in made.faults
        ]

    def repairs(self) -> list[str]:
        """What the host had to make up in any request; see `model_rules.repairs`."""
        return [
            f"request {number}, message {line}" for number, made in enumerate(self.requests) for line in made.repairs
        ]

    def refused(self, since: int = 0) -> list[str]:
        """Why, of every request that was answered with an error."""
        return [made.reply.message for made in self.requests[since:] if isinstance(made.reply, Failure)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: dict[str, Any]) -> Request:
        request = Request(body, arrived_at=time.monotonic(), characters_per_token=self.characters_per_token)
        request.faults, request.repairs = model_rules.faults(body), model_rules.repairs(body)
        self.requests.append(request)
        if self.delay_seconds:
            time.sleep(self.delay_seconds)
        if self.strict and request.faults:
            request.reply = Failure(400, "; ".join(request.faults))
            return request
        if self.window_tokens is not None and request.prompt_tokens > self.window_tokens:
            request.reply = Failure(400, TOO_LONG.format(window=self.window_tokens, tokens=request.prompt_tokens))
            return request
        try:
            request.reply = self.reply(request) if request.is_turn else self.reply_to_host(request)
        except Exception as error:  # noqa: BLE001 - a test's own function: told to the test, not swallowed by a thread
            self.errors.append(error)
            request.reply = Failure(500, f"the script failed: {error!r}")
        return request

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *arguments: Any) -> None:
                """Not to the terminal: `requests` is the log."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
                request = model.answer(body)
                status, kind, payload = _rendered(request, next(model._numbers))
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)
                request.finished_at = time.monotonic()

        return Handler


def _rendered(request: Request, number: int) -> tuple[int, str, bytes]:
    reply = request.reply
    assert reply is not None
    if isinstance(reply, Failure):
        error = {"error": {"message": reply.message, "type": "scripted", "code": reply.status}}
        return reply.status, "application/json", json.dumps(error).encode()
    calls = [
        {
            "index": at,
            "id": call.id or f"call{number}x{at}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for at, call in enumerate(reply.calls if isinstance(reply, ToolCalls) else ())
    ]
    said = {"role": "assistant", "content": reply.text or None} | ({"tool_calls": calls} if calls else {})
    completion_tokens = len(json.dumps(said)) // CHARACTERS_PER_TOKEN
    usage = {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": request.prompt_tokens + completion_tokens,
    }
    ended = "tool_calls" if calls else "stop"
    base: dict[str, Any] = {"id": f"scripted-{number}", "created": int(time.time()), "model": MODEL}
    if not request.body.get("stream"):
        choice = {"index": 0, "message": said, "finish_reason": ended}
        whole = base | {"object": "chat.completion", "choices": [choice], "usage": usage}
        return 200, "application/json", json.dumps(whole).encode()
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": ended}]},
        {"choices": [], "usage": usage},
    ]
    lines = [json.dumps(base | {"object": "chat.completion.chunk"} | chunk) for chunk in chunks]
    return 200, "text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
