"""A proxy before an API of ours, with a real provider and the real `openai` client."""

from __future__ import annotations

import http.client
import itertools
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import openai

from tests.acceptance.daemon import Daemon
from tests.acceptance.scripted_api import MODEL, Api, Received, Says
from tests.processes import Offbook

WINDOW = 4_000
PATIENCE_SECONDS = 200.0
UNHURRIED = ("--deadline", "10000")
"""On a busy machine, too, memory comes in time."""
KEY = "sk-never-to-be-stored"
numbers = itertools.count(1)


def distinct(_received: Received) -> Says:
    """No two conversations get the same answer, as with a real model."""
    return Says(f"Answer {next(numbers)}: noted.")


@dataclass
class Setup:
    daemon: Daemon
    api: Api
    url: str

    @property
    def port(self) -> int:
        return int(self.url.split(":")[2].split("/")[0])

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key=KEY, max_retries=0, timeout=60)

    @cached_property
    def kept(self) -> openai.OpenAI:
        """One for many requests: making one takes longer than a request."""
        return self.client()

    def ask(self, messages: list[Any]) -> Any:
        return self.kept.chat.completions.create(model=MODEL, messages=messages)

    def stream(self, messages: list[Any]) -> str:
        pieces = self.kept.chat.completions.create(model=MODEL, messages=messages, stream=True)
        return "".join(piece.choices[0].delta.content or "" for piece in pieces)

    def send(
        self, body: bytes, headers: dict[str, str] | None = None, path: str = "/v1/chat/completions"
    ) -> tuple[int, bytes]:
        """Bytes as they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {"content-type": "application/json", "authorization": f"Bearer {KEY}", **(headers or {})}
            connection.request("POST", path, body, given)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def log_of(self, text: str) -> list[dict[str, Any]]:
        """The messages of the one session in which this was said."""
        sessions = self.daemon.ask("status").json()["sessions"]
        found = []
        for session in sessions:
            page = self.daemon.ask("log", sessionId=session["sessionId"], limit=1000).json()
            messages = [line["message"] for line in page["messages"]]
            if any(text in str(message["content"]) for message in messages):
                found.append(messages)
        assert len(found) <= 1, found
        return found[0] if found else []


@contextmanager
def proxied(daemon: Daemon, api: Api, *options: str) -> Iterator[Setup]:
    places = ["--upstream", api.url, "--listen", "127.0.0.1:0", "--home", str(daemon.home)]
    arguments = ["proxy", *places, *UNHURRIED, *options]
    process = Offbook(*arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield Setup(daemon, api, next(word for word in line.split() if word.startswith("http")))
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.02)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}
