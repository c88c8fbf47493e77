"""A log never holds up or fails what is logged."""

from __future__ import annotations

import http.client
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from offbook.model import logs
from offbook.model.logs import Outlet, configure_logs
from tests.ports import free_port


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    handlers = list(logging.getLogger().handlers)
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers


class Stuck(io.StringIO):
    """Nobody reads until told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()

    def fileno(self) -> int:
        raise io.UnsupportedOperation

    def write(self, text: str) -> int:
        self.reads.wait(60)
        return super().write(text)


class Broken(Stuck):
    def write(self, text: str) -> int:
        raise OSError(28, "no space left on device")


def stuck(monkeypatch: pytest.MonkeyPatch, log_format: logs.LogFormat = "json") -> Stuck:
    stream = Stuck()
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logs("info", log_format)
    return stream


def wait_for_text(stream: Stuck, text: str) -> list[str]:
    deadline = time.monotonic() + 120
    while text not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    return stream.getvalue().splitlines()


def test_what_is_lost_is_counted_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_LINES", 10)
    stream = stuck(monkeypatch)
    started = time.monotonic()
    for number in range(100):
        structlog.get_logger().info("refused", action="request.refuse", number=number)
    assert time.monotonic() - started < 20
    stream.reads.set()
    lines = [json.loads(line) for line in wait_for_text(stream, "log.drop")]
    assert lines[-1]["action"] == "log.drop"
    assert lines[-1]["lines"] == 100 - (len(lines) - 1)
    kept = [line["number"] for line in lines[:-1]]
    # The writer takes the first line in hand whenever it gets its turn, which makes room for one more.
    assert kept[:10] == list(range(10))
    assert kept == sorted(set(kept))


def test_the_text_that_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_CHARACTERS", 1_000)
    stream = stuck(monkeypatch)
    outlet = Outlet(stream)
    for _ in range(10):
        outlet.write("x" * 600)
    assert outlet._characters <= 1_000
    stream.reads.set()
    assert wait_for_text(stream, "log.drop")


def test_a_stuck_stream_is_waited_for_but_not_long() -> None:
    stream = Stuck()
    outlet = Outlet(stream)
    outlet.write("a\n")
    started = time.monotonic()
    outlet.drain(0.1)
    assert 0.05 < time.monotonic() - started < 20
    stream.reads.set()
    outlet.drain(30)
    assert stream.getvalue() == "a\n"


@pytest.mark.parametrize("stream", [Broken(), None], ids=["full", "none"])
def test_a_stream_that_fails_fails_nobody(monkeypatch: pytest.MonkeyPatch, stream: Broken | None) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logs("info", "auto")
    for _ in range(3):
        structlog.get_logger().info("a", action="b")
    outlet = Outlet(stream)  # type: ignore[arg-type]
    outlet.write("a\n")
    outlet.flush()
    outlet.drain(30)
    assert outlet._dropped == 1


def test_what_libraries_log_goes_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stuck(monkeypatch)
    started = time.monotonic()
    logging.getLogger("asyncio").warning("socket.send() raised %s", "exception")
    assert time.monotonic() - started < 20
    stream.reads.set()
    line = json.loads(wait_for_text(stream, "library.log")[0])
    assert (line["library"], line["event"], line["level"]) == ("asyncio", "socket.send() raised exception", "warning")


def test_everything_is_written_before_the_process_ends() -> None:
    program = (
        "import structlog; from offbook.model.logs import configure_logs; configure_logs('info', 'json')\n"
        "for number in range(2000): structlog.get_logger().info('a', action='b', number=number)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert [json.loads(line)["number"] for line in done.stderr.splitlines()] == list(range(2_000))


def test_a_daemon_whose_log_nobody_reads_answers_and_stops() -> None:
    # Not pytest's folder: the path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="ob") as folder:
        port = free_port()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        process = subprocess.Popen(
            [Path(sys.executable).with_name("offbook"), "serve", "--port", str(port)],
            env=inherited | {"OFFBOOK_HOME": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            connection = ready(port, process)
            for _ in range(2_000):
                assert asked(connection, {}) == 401
            token = (Path(folder) / "token").read_text().strip()
            assert asked(connection, {"authorization": f"Bearer {token}"}) == 200
            connection.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
        finally:
            process.kill()
            process.communicate()


def ready(port: int, process: subprocess.Popen[bytes]) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            connection.connect()
        except OSError:
            time.sleep(0.05)
        else:
            return connection
    raise TimeoutError("the daemon was not ready in time")


def asked(connection: http.client.HTTPConnection, headers: dict[str, str]) -> int:
    connection.request("GET", "/v1/ping", headers=headers)
    response = connection.getresponse()
    response.read()
    return response.status
