"""The example agent: trouble with a model or a keyboard is one line."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import msgspec
import pytest

from tests.places import REPOSITORY
from tests.unit.client.fake_memory import FakeMemory
from tests.unit.client.test_hot_swap import session_of

EXAMPLE = REPOSITORY / "examples" / "hot_swap_agent.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = spec_from_file_location("hot_swap_agent", EXAMPLE)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


async def test_a_model_that_says_nothing_and_a_server_that_does_not_count(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = FakeMemory()
    with answering(200, msgspec.json.encode({"choices": [{"message": {"content": None}}]})) as url:
        await example.talk(
            example.ModelServer(url, "m", "k"), session_of(memory, context_window=50_000), example.scripted()
        )
    assert {message.role for message in memory.recorded} == {"user"}
    assert "not counted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, b"no such\nkey", "answers 401 Unauthorized: no such key"),
        (200, b"<html>", "gives no answer"),
        (200, b"{}", "not as OpenAI"),
        (200, b"[]", "not as OpenAI"),
    ],
)
def test_what_is_wrong_with_a_server_is_said_in_one_line(example: Any, status: int, body: bytes, told: str) -> None:
    with answering(status, body) as url, pytest.raises(example.ModelTrouble, match=told) as raised:
        example.ModelServer(url, "m", "k").answer([])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "no address"])
def test_nobody_there_is_said_in_one_line(example: Any, url: str) -> None:
    with pytest.raises(example.ModelTrouble, match="gives no answer"):
        example.ModelServer(url, "m", "k").answer([])


@pytest.mark.parametrize("keys", ["hi\nyou\n", "hi\nyou\n\nno more\n"])
async def test_what_is_typed_ends_with_an_empty_line_or_with_its_end(
    example: Any, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(keys))
    assert [text async for text in example.typed()] == ["hi", "you"]
