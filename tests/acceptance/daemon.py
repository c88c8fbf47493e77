"""A real `offbook serve` in a folder of its own, for tests that need the process and not only the code."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from offbook.client.endpoint import Endpoint
from tests.ports import free_port
from tests.processes import Offbook

READY_SECONDS = 90.0
STOP_SECONDS = 20.0
UNHURRIED = {"OFFBOOK_TURN_DEADLINE": "20s", "OFFBOOK_SEARCH_DEADLINE": "20s"}
"""On a busy machine, too, what is asked for is there. A test of what is left out says so."""

WITHOUT_MODEL = {"OFFBOOK_EMBEDDING_MODEL": "none", "OFFBOOK_MAINTENANCE_OWN_PROCESS": "false"}
"""Loading it and embedding every message takes longer than most tests; so does a second interpreter for each."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(str(self._path))


class Daemon:
    def __init__(self, home: Path, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.home = home
        self.port = port
        self.process = process
        self.log = log

    @property
    def socket(self) -> Path:
        return self.home / "offbook.sock"

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    @property
    def socket_endpoint(self) -> Endpoint:
        return Endpoint(scheme="unix", path=str(self.socket))

    @property
    def tcp_endpoint(self) -> Endpoint:
        return Endpoint(scheme="http", host="127.0.0.1", port=self.port)

    def connection(self, *, over_socket: bool) -> http.client.HTTPConnection:
        if over_socket:
            return _SocketConnection(self.socket)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        over_socket: bool = False,
    ) -> Reply:
        """One request as it is given: no token is added."""
        connection = self.connection(over_socket=over_socket)
        try:
            sent = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
            connection.request(method, path, sent, dict(headers or {}))
            response = connection.getresponse()
            content = response.read()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, content)
        finally:
            connection.close()

    def ask(self, verb: str, token: str | None = None, over_socket: bool = False, **fields: Any) -> Reply:
        """A verb, with the owner's token where none is given."""
        headers = {"authorization": f"Bearer {token or self.token}"}
        return self.send("POST", f"/v1/{verb}", fields, headers, over_socket=over_socket)

    def stop(self) -> int:
        """Ends it as a service manager would; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"offbook serve ended with {self.process.returncode}: {self.log.read_text()}")
            try:
                if self.send("GET", "/v1/ping", over_socket=True).status == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise TimeoutError(f"offbook serve was not ready in {READY_SECONDS:g} s: {self.log.read_text()}")


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def assert_problem(reply: Reply, status: int) -> dict[str, Any]:
    assert reply.status == status, reply.body
    assert reply.content_type == "application/problem+json"
    problem: dict[str, Any] = reply.json()
    assert problem["status"] == status
    assert set(problem) == {"type", "title", "status", "detail", "retryable"}
    return problem


def message(text: str = "Hello.", **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


@contextmanager
def running(
    environ: Mapping[str, str] | None = None, *, home: Path | None = None, program: Path | None = None
) -> Iterator[Daemon]:
    """Starts it, in a folder of its own or in one that was used before, waits until it answers, and stops it however
    the block ends. `program`: another `offbook` than the one of this environment."""
    # Not pytest's folder: the path of a Unix socket may have 107 bytes only.
    folder = Path(tempfile.mkdtemp(prefix="ob"))
    home, log = home or folder / "home", folder / "log"
    port = free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
    given = {"OFFBOOK_HOME": str(home), "OFFBOOK_PORT": str(port), **UNHURRIED, **(environ or {})}
    with log.open("wb") as output:
        options: dict[str, Any] = {"env": inherited | given, "stdout": output, "stderr": output}
        process = Offbook("serve", **options) if program is None else subprocess.Popen([program, "serve"], **options)
    daemon = Daemon(home, port, process, log)
    try:
        daemon.wait_until_ready()
        yield daemon
    finally:
        try:
            daemon.stop()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
