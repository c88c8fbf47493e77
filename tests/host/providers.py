"""A real `offbook serve` that a test may kill and start again in the same folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import UNHURRIED, Daemon

LOG_PAGE = 500
SEARCH = {"OFFBOOK_SEARCH_DEADLINE": "5s"}
"""Below the 8 s that the plugin waits for an answer: a provider that was just started may load its model for longer."""


class OffbookProvider:
    """Over its Unix socket only. `home` is what the plugin's configuration names."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        # Short: the path of a Unix socket may have 107 bytes only.
        self.folder = Path(tempfile.mkdtemp(prefix="ob"))
        self.home = self.folder / "home"
        self._environ = dict(environ or {})
        self._daemon: Daemon | None = None

    def start(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        given = {"OFFBOOK_HOME": str(self.home), "OFFBOOK_PORT": "0"}
        log = self.folder / "log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [Path(sys.executable).with_name("offbook"), "serve"],
                env=inherited | UNHURRIED | SEARCH | given | self._environ,
                stdout=output,
                stderr=output,
            )
        self._daemon = Daemon(self.home, 0, process, log)
        self._daemon.wait_until_ready()

    def kill(self) -> None:
        """kill -9: what was not acknowledged is gone."""
        if self._daemon is not None:
            self._daemon.process.kill()
            self._daemon.process.wait()
            self._daemon = None

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
            self._daemon = None

    def pause(self) -> None:
        """It is there, and answers nobody."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._daemon is not None, "the provider is not running"
        self._daemon.process.send_signal(number)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def daemon(self) -> Daemon:
        assert self._daemon is not None, "the provider is not running"
        return self._daemon

    def ask(self, verb: str, **fields: Any) -> Any:
        """A verb's answer; anything but 200 is a failure of the test."""
        reply = self.daemon().ask(verb, over_socket=True, **fields)
        assert reply.status == 200, f"{verb} was answered with {reply.status}: {reply.body!r}"
        return reply.json()

    def status(self, agent: str = "main") -> dict[str, Any]:
        answer: dict[str, Any] = self.ask("status", agentId=agent)
        return answer

    def log(self, session_key: str, agent: str = "main") -> list[dict[str, Any]]:
        """Every line of the session (`{seq, message, …}`), in the log's order."""
        lines: list[dict[str, Any]] = []
        while True:
            after = lines[-1]["seq"] if lines else 0
            page = self.ask("log", agentId=agent, sessionId=session_key, afterSeq=after, limit=LOG_PAGE)["messages"]
            if not page:
                return lines
            lines += page


class StartedByOthers(OffbookProvider):
    """One that the plugin starts, in a folder that is there."""

    def __init__(self) -> None:
        super().__init__()
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text('server.port = 0\nembedding.model = "none"\n')

    def daemon(self) -> Daemon:
        return Daemon(self.home, 0, None, self.home / "serve.log")

    def is_there(self) -> bool:
        try:
            return self.daemon().send("GET", "/v1/ping", over_socket=True).status == 200
        except OSError:
            return False

    def kill(self) -> None:
        os.kill(int((self.home / "offbook.lock").read_text()), signal.SIGKILL)

    def close(self) -> None:
        if self.is_there():
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
