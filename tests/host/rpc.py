"""The gateway's WebSocket: what its chat windows and its command line speak.

Node has a WebSocket client built in and is there anyway: a script of a few lines carries lines to and fro, and the
protocol is spoken here. A connection from this machine that calls itself the host's own helper (`gateway-client`,
`backend`) needs the token and no device key."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from tests.host.gateway import Gateway
from tests.host.host_config import TOKEN

PROTOCOL_VERSION = 4
CALL_SECONDS = 240.0
SCOPES = ("operator.read", "operator.write", "operator.admin", "operator.approvals", "operator.pairing")
CARRIER = """
const socket = new WebSocket(process.argv[1]);
socket.onmessage = (event) => process.stdout.write(event.data + "\\n");
socket.onclose = (event) => { process.stderr.write(`closed: ${event.code} ${event.reason}\\n`); process.exit(0); };
require("node:readline").createInterface({ input: process.stdin })
  .on("line", (line) => socket.send(line)).on("close", () => socket.close());
"""

Frame = dict[str, Any]


class CallRefused(RuntimeError):
    """The gateway answered a call with an error."""

    def __init__(self, method: str, error: Mapping[str, Any]) -> None:
        super().__init__(f"{method}: {error.get('code')}: {error.get('message')}")
        self.error = dict(error)


@dataclass
class Said:
    """What was answered, and every event that came meanwhile."""

    text: str
    events: list[Frame] = field(default_factory=list)


class Rpc:
    """`with Rpc(gateway) as rpc: rpc.call("sessions.list", {})`."""

    def __init__(self, gateway: Gateway) -> None:
        self.events: list[Frame] = []
        self._answers: queue.Queue[Frame] = queue.Queue()
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            [str(gateway.host.node), "-e", CARRIER, f"ws://127.0.0.1:{gateway.port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True, name="gateway events").start()
        try:
            self.wait_for(lambda event: event.get("event") == "connect.challenge")
            self.hello: Frame = self.call("connect", _introduction())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Rpc:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def call(self, method: str, params: Mapping[str, Any] | None = None, timeout: float = CALL_SECONDS) -> Any:
        number = uuid.uuid4().hex
        frame = {"type": "req", "id": number, "method": method, "params": dict(params or {})}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frame) + "\n")
        self._process.stdin.flush()
        deadline = time.monotonic() + timeout
        while True:
            try:
                answer = self._answers.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"{method} was not answered in {timeout:g} s") from None
            if answer.get("id") != number:
                continue  # of a call that was given up
            if not answer.get("ok"):
                raise CallRefused(method, answer.get("error") or {})
            return answer.get("payload")

    def wait_for(self, wanted: Callable[[Frame], bool], timeout: float = CALL_SECONDS, since: int = 0) -> Frame:
        """The first event from position `since` of `events` on that is wanted."""
        deadline = time.monotonic() + timeout
        with self._news:
            while True:
                for event in self.events[since:]:
                    if wanted(event):
                        return event
                left = deadline - time.monotonic()
                if left <= 0 or self._process.poll() is not None:
                    raise TimeoutError(f"no such event in {timeout:g} s; the last ones: {self.events[-3:]}")
                self._news.wait(min(left, 0.5))

    def say(self, session_key: str, text: str, timeout: float = CALL_SECONDS) -> Said:
        """What a person types in the host's chat window: slash commands are commands here. Waits for the answer."""
        since = len(self.events)
        run = uuid.uuid4().hex
        self.call("chat.send", {"sessionKey": session_key, "message": text, "idempotencyKey": run}, timeout)

        def ended(event: Frame) -> bool:
            payload = event.get("payload") or {}
            ours = event.get("event") == "chat" and payload.get("runId") == run
            return ours and payload.get("state") in ("final", "error", "aborted")

        last = self.wait_for(ended, timeout, since)["payload"]
        if last["state"] != "final":
            raise CallRefused("chat.send", {"code": last["state"], "message": last.get("errorMessage")})
        return Said(_text(last.get("message")), self.events[since:])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            frame: Frame = json.loads(line)
            if frame.get("type") == "res":
                self._answers.put(frame)
                continue
            with self._news:
                self.events.append(frame)
                self._news.notify_all()


def _introduction() -> Frame:
    return {
        "minProtocol": PROTOCOL_VERSION,
        "maxProtocol": PROTOCOL_VERSION,
        "client": {"id": "gateway-client", "version": "1", "platform": "linux", "mode": "backend"},
        "role": "operator",
        "scopes": list(SCOPES),
        "caps": [],
        "auth": {"token": TOKEN},
    }


def _text(message: Mapping[str, Any] | None) -> str:
    content = (message or {}).get("content") or ""
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
