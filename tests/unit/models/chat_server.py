"""A server that answers over real sockets with what it is told, well or badly, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from offbook.model.types import Message
from offbook.models.protocols import Prompt

KEY = "sk-secret-0123456789"
Answer = tuple[int, dict[str, str], bytes]
TEXT = "I moved the release to 14 March with Dana, and the build on host-7 is still open."


def prompt(*texts: str, agent_id: str = "main", stable: int = 0, max_output_tokens: int = 300) -> Prompt:
    said = texts or ("[Context Manager] What happened?",)
    roles = ("user", "assistant")
    return Prompt(
        agent_id=agent_id,
        version="1",
        messages=[Message(role=roles[at % 2], content=text) for at, text in enumerate(said)],  # type: ignore[arg-type]
        stable=stable,
        max_output_tokens=max_output_tokens,
    )


def reply(document: object, status: int = 200, **headers: str) -> Answer:
    return status, headers, json.dumps(document).encode()


def completion(text: str | None = TEXT, finish: str = "stop", usage: object = None) -> Answer:
    document: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
    }
    return reply(document if usage is None else {**document, "usage": usage})


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, usual: Callable[[dict[str, Any]], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.usual = usual
        self.script: list[Callable[[dict[str, Any]], Answer]] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what some tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.path, headers, body))
        script = self.server.script
        status, sent, content = (script.pop(0) if script else self.server.usual)(body)
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in sent.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def serving(usual: Callable[[dict[str, Any]], Answer]) -> Iterator[Server]:
    made = Server(usual)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()
