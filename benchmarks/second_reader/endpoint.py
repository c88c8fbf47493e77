"""An endpoint on this machine that answers as it is told, and the settings of a product that asks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from offbook.model.settings import Settings
from offbook.model.settings.sections import Rerank, Search, Summarizer, Wiki

MOST = 50
Answer = Callable[[bytes], tuple[int, bytes]]
"""From a body to a status and a body."""


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[bytes]]]:
    """An endpoint on this machine, and what it was sent."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status, content = answer(bodies[-1])
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
    finally:
        server.shutdown()
        server.server_close()


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return msgspec.json.encode({"object": "chat.completion", "model": "recorded", "choices": [choice]})


def settings_for(url: str) -> Settings:
    """Without what recall has no use for: summaries and the wiki."""
    return msgspec.structs.replace(
        Settings(),
        chunk_tokens=1 << 40,
        wiki=Wiki(enabled=False),
        search=Search(deadline=timedelta(minutes=5)),
        rerank=Rerank(reader="openai:recorded", deadline=timedelta(minutes=5), candidates=MOST),
        summarizer=Summarizer(endpoint=url, max_tokens_per_day=1 << 40),
    )
