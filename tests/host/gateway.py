"""A real OpenClaw gateway in a folder of its own, spoken to as its users do.

A start and its first turn take 36 s of processor time, another configuration one or two. So one gateway serves the files
of a test process one after the other: `use` gives it the configuration of the next."""

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
from tests.host.installing import Host
from tests.host.scripted_model import ScriptedModel
from tests.ports import free_port

# All are generous: on two busy cores a start took 77 s, a first turn 38 s, a stop 9 s.
READY_SECONDS = 400.0
STOP_SECONDS = 60.0
WAIT_SECONDS = 240.0
TURN_SECONDS = 300.0
CLI_SECONDS = 300.0
LINE_CHARACTERS = 300  # the host logs whole answers of the model
# What the host logs when a new configuration holds. A change that it restarts for is refused here: no test wants it.
RELOADED = re.compile(r"config hot reload applied|config change applied \(dynamic reads")
RESTARTS = re.compile(r"config change requires gateway restart[^\n]*")
# What it logs when a plugin was still at work. It keeps the old configuration until the file is written again.
NOT_RELOADED = re.compile(r"config reload failed: [^\n]*retry after the work finishes")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class HostFailed(RuntimeError):
    """The gateway did not do what it was asked; the message ends with its log."""


@dataclass(frozen=True)
class Answer:
    text: str
    seconds: float
    raw: dict[str, Any]


class Gateway:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.plugin_id = ""
        # Short, and not pytest's folder: paths of Unix sockets may have 107 bytes only.
        self.folder = Path(tempfile.mkdtemp(prefix="oc"))
        self.port = free_port()
        self.config: Config = {}
        self.process: subprocess.Popen[bytes] | None = None
        self._spoken_in: set[str] = set()
        self._of_earlier_files: set[str] = set()
        for name in ("home", "state", "tmp", "workspace"):
            (self.folder / name).mkdir()

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
            "OPENCLAW_TRAJECTORY": "0",  # the host's own record of each run, which nobody reads here
        }

    @property
    def plugin_state(self) -> Path:
        """What our plugin keeps: its outbox, cursors, windows and report."""
        return self.state / "offbook"

    def use(self, model: ScriptedModel, setup: Setup) -> None:
        """Runs with this model and setup; started, where it does not run."""
        self.plugin_id = setup.plugin_id
        self._change(host_config(setup, self.folder, self.port, model.base_url))
        if not self._running():
            self.kill()  # what is left of one that ended by itself
            self.start()

    def retire(self) -> None:
        """What was used is over: the plugin lets go, and the sessions spoken in are taken."""
        if self._running():
            self.set_level("off")
        self._of_earlier_files |= self._spoken_in
        self._spoken_in = set()

    def clear(self) -> None:
        """The plugin kept nothing. Not when it is retired: it still writes where it was, until it gives up its lock."""
        deadline = time.monotonic() + STOP_SECONDS
        while self._running() and (self.plugin_state / "lock").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        shutil.rmtree(self.plugin_state, ignore_errors=True)

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
        self.wait_until(self._ready, "ready", READY_SECONDS)
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
        key = f"agent:{agent}:{session}"
        assert key not in self._of_earlier_files, (
            f"another file has spoken in {key}: the host still knows what was said"
        )
        self._spoken_in.add(key)
        body = {"model": f"openclaw/{agent}", "messages": [{"role": "user", "content": text}]}
        headers = {
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "x-openclaw-session-key": key,
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

    def configure(self, patch: Mapping[str, Any]) -> None:
        """Changes the configuration of the running host (None takes a key out) and waits until it holds."""
        self._change(merged(self.config, patch))

    def set_level(self, level: str) -> None:
        self.configure(level_patch(level, self.plugin_id))

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

    def wait_until(self, holds: Callable[[], bool], what: str, timeout: float = WAIT_SECONDS) -> None:
        """For whatever the host does in its own time; ends at once when the gateway does."""
        deadline = time.monotonic() + timeout
        while not holds():
            if not self._running():
                raise HostFailed(f"the gateway ended before it was {what}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise HostFailed(f"the gateway was not {what} in {timeout:g} s\n{self.log_tail()}")
            time.sleep(0.1)

    def _change(self, config: Config) -> None:
        if config == self.config:
            return
        self.config = config
        seen = len(self.log_text())
        self._write_config()
        if not self._running():
            return

        def holds() -> bool:
            nonlocal seen
            log = self.log_text()
            if refused := RESTARTS.search(log, seen):
                raise HostFailed(refused[0])
            if RELOADED.search(log, seen):
                return True
            if failed := NOT_RELOADED.search(log, seen):
                seen = failed.end()
                time.sleep(1)
                self._write_config()
            return False

        self.wait_until(holds, "running with the changed configuration")

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _running(self) -> bool:
        return self.process is not None and self.process.poll() is None

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
