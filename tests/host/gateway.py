"""A real OpenClaw gateway in a folder of its own: started once a test file, spoken to as its users do."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.host.host_config import TOKEN, Config, Setup, host_config, level_patch, merged
from tests.host.installing import Host, installed
from tests.host.scripted_model import ScriptedModel
from tests.ports import free_port

READY_SECONDS = 150.0  # 14 to 57 s were seen on two busy cores
STOP_SECONDS = 10.0
RELOAD_SECONDS = 30.0
TURN_SECONDS = 90.0
CLI_SECONDS = 120.0
LINE_CHARACTERS = 300  # the host logs whole answers of the model
# What the host logs when a new configuration holds. A change that it restarts for is refused here: no test wants it.
RELOADED = re.compile(r"config hot reload applied|config change applied \(dynamic reads")
RESTARTS = re.compile(r"config change requires gateway restart[^\n]*")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class HostFailed(RuntimeError):
    """The gateway did not do what it was asked; the message ends with its log."""


@dataclass(frozen=True)
class Answer:
    text: str
    seconds: float
    raw: dict[str, Any]


class Gateway:
    def __init__(self, model: ScriptedModel, setup: Setup | None = None, *, host: Host | None = None) -> None:
        self.model = model
        self.setup = setup or Setup()
        self.host = host or installed()
        # Short, and not pytest's folder: paths of Unix sockets may have 107 bytes only.
        self.folder = Path(tempfile.mkdtemp(prefix="oc"))
        self.port = free_port()
        self.config: Config = host_config(self.setup, self.folder, self.port, model.base_url)
        self.process: subprocess.Popen[bytes] | None = None
        for name in ("home", "state", "tmp", "workspace"):
            (self.folder / name).mkdir()
        self._write_config()

    @property
    def state(self) -> Path:
        """`OPENCLAW_STATE_DIR`."""
        return self.folder / "state"

    @property
    def config_path(self) -> Path:
        return self.folder / "openclaw.json"

    @property
    def environment(self) -> dict[str, str]:
        """All that the host's processes get: nothing of the machine's but where programs are."""
        path = os.pathsep.join((self.host.search_path, str(Path(sys.executable).parent)))
        return {
            "PATH": path,
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "OPENCLAW_STATE_DIR": str(self.state),
            "OPENCLAW_CONFIG_PATH": str(self.config_path),
            "NODE_COMPILE_CACHE": str(self.host.compile_cache),
        }

    def start(self) -> float:
        """Starts it and waits until it is ready: how many seconds that took."""
        started = time.monotonic()
        with (self.folder / "gateway.log").open("ab") as output:
            # A session of its own: the gateway proper is a child of this process, and is ended with it.
            self.process = subprocess.Popen(
                self.host.command("gateway", "run", "--port", str(self.port), "--bind", "loopback"),
                env=self.environment,
                cwd=self.folder,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.wait_until(self._ready, READY_SECONDS, "ready")
        return time.monotonic() - started

    def stop(self) -> None:
        if self.process is None:
            return
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and self._alive():
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        """kill -9, all of it."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def turn(self, session: str, text: str, agent: str = "main", timeout: float = TURN_SECONDS) -> Answer:
        """One turn over HTTP in the session `agent:<agent>:<session>`; slash commands are not known on this way."""
        body = {"model": f"openclaw/{agent}", "messages": [{"role": "user", "content": text}]}
        headers = {
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "x-openclaw-session-key": f"agent:{agent}:{session}",
        }
        started = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        seconds = time.monotonic() - started
        if response.status != 200:
            raise HostFailed(f"the turn was answered with {response.status}: {content[:2000]!r}\n{self.log_tail()}")
        raw = json.loads(content)
        return Answer(raw["choices"][0]["message"]["content"] or "", seconds, raw)

    def configure(self, patch: Mapping[str, Any], timeout: float = RELOAD_SECONDS) -> None:
        """Changes the configuration of the running host (None takes a key out) and waits until it holds."""
        changed = merged(self.config, patch)
        if changed == self.config:
            return
        seen = len(self.log_text())
        self.config = changed
        self._write_config()

        def holds() -> bool:
            news = self.log_text()[seen:]
            if refused := RESTARTS.search(news):
                raise HostFailed(refused[0])
            return bool(RELOADED.search(news))

        self.wait_until(holds, timeout, "running with the changed configuration")

    def set_level(self, level: str) -> None:
        self.configure(level_patch(level, self.setup.plugin_id))

    def cli(
        self, *arguments: str, timeout: float = CLI_SECONDS, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`openclaw …` beside the running gateway: seconds a call."""
        return subprocess.run(
            self.host.command(*arguments),
            env=self.environment | dict(environ or {}),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def log_text(self) -> str:
        """What the gateway printed so far, without colours."""
        path = self.folder / "gateway.log"
        return COLOURS.sub("", path.read_text(errors="replace")) if path.exists() else ""

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(line[:LINE_CHARACTERS] for line in self.log_text().splitlines()[-lines:])

    def wait_until(self, holds: Callable[[], bool], timeout: float, what: str) -> None:
        """For whatever the host does in its own time; ends at once when the gateway does."""
        deadline = time.monotonic() + timeout
        while not holds():
            if self.process is None or self.process.poll() is not None:
                raise HostFailed(f"the gateway ended before it was {what}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise HostFailed(f"the gateway was not {what} in {timeout:g} s\n{self.log_tail()}")
            time.sleep(0.1)

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _alive(self) -> bool:
        """Whether any process of the group is left."""
        if self.process is None:
            return False
        self.process.poll()
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                return

    def _write_config(self) -> None:
        fresh = self.config_path.with_suffix(".fresh")
        fresh.write_text(json.dumps(self.config, indent=1))
        fresh.replace(self.config_path)
