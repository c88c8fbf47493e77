"""Coding agents with a real daemon: hooks as the hosts call them, as processes, with the documents they send."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.processes import Offbook, run_offbook

UNHURRIED = ("--deadline", "10000")
ROLLOUT_ID = "0199f0c2-1c1e-7a31-9d7e-2f1f5f6a7b8c"


@dataclass
class Told:
    status: int
    output: bytes
    error: bytes

    @property
    def added(self) -> str:
        text = json.loads(self.output)["hookSpecificOutput"]["additionalContext"]
        assert isinstance(text, str)
        return text


@dataclass
class Host:
    """A coding agent with its sessions, and the data folder of its memory."""

    home: Path
    sessions: Path

    @property
    def environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        return inherited | {"OFFBOOK_HOME": str(self.home), "CODEX_HOME": str(self.sessions.parent)}

    def transcript(self, name: str) -> Path:
        return self.sessions / f"{name}.jsonl"

    def say(self, name: str, first: int, last: int, text: str = "数据库 number {} 🐈") -> Path:
        path = self.transcript(name)
        with path.open("a", encoding="utf-8") as file:
            for number in range(first, last):
                role, content = ("user", text.format(number)) if number % 2 == 0 else ("assistant", f"Noted, {number}.")
                line = {
                    "parentUuid": None,
                    "isSidechain": False,
                    "type": role,
                    "uuid": f"{name}-{number}",
                    "sessionId": name,
                    "timestamp": "2026-05-01T10:00:00.000Z",
                    "cwd": "/src/app",
                    "version": "2.1.0",
                    "message": {"role": role, "content": content},
                }
                file.write(json.dumps(line) + "\n")
        return path

    def document(self, event: str, name: str, **fields: Any) -> bytes:
        path = str(self.transcript(name))
        given = {"session_id": name, "transcript_path": path, "cwd": "/src/app", "hook_event_name": event}
        return json.dumps(given | fields).encode()

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        options: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "start_new_session": True}
        return Offbook("hook", *args, *UNHURRIED, env=self.environ, **options)

    def hook(self, document: bytes, *args: str) -> Told:
        process = self.start(*(args or ("claude-code",)))
        output, error = process.communicate(document, timeout=60)
        return Told(process.returncode, output, error)

    def offbook(self, *args: str) -> Any:
        run = run_offbook(*args, "--json", env=self.environ)
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(run.stdout)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    # Not pytest's folder: the path of a Unix socket may have 107 bytes only.
    folder = Path(tempfile.mkdtemp(prefix="obh"))
    (folder / "sessions").mkdir()
    yield Host(folder / "home", folder / "sessions")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def told_before(host: Host) -> list[Told]:
    """What hooks answer while no provider runs."""
    host.say("before", 0, 4)
    documents = [
        host.document("SessionStart", "before", source="startup"),
        host.document("UserPromptSubmit", "before", prompt="what is the database?"),
        host.document("Stop", "before", stop_hook_active=False),
        host.document("SessionEnd", "before", reason="other"),
    ]
    return [host.hook(document) for document in documents]


@pytest.fixture(scope="module")
def daemon(host: Host, told_before: list[Told]) -> Iterator[Daemon]:
    with running(WITHOUT_MODEL, home=host.home) as started:
        yield started


def stored(daemon: Daemon, key: str) -> list[dict[str, Any]]:
    reply = daemon.ask("log", sessionId=key, limit=1_000)
    return [] if reply.status != 200 else list(reply.json()["messages"])


def wait_for(daemon: Daemon, key: str, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 120
    while len(found := stored(daemon, key)) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) == count
    return found


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [(each.get("message") or each)["id"] for each in entries]


def test_without_a_provider_nothing_is_said_and_nothing_lost(
    host: Host, told_before: list[Told], daemon: Daemon
) -> None:
    assert [(told.status, told.output) for told in told_before] == [(0, b"")] * 4
    # Any hook delivers what waits, also one that records nothing.
    assert host.hook(host.document("UserPromptSubmit", "later", prompt="what is the database?")).status == 0
    assert ids(wait_for(daemon, "claude-code:before", 4)) == [f"before-{number}" for number in range(4)]
    host.offbook("flush")  # a slow machine's hook may have had no time left for the end
    sessions = daemon.ask("status", agentId="main").json()["sessions"]
    [before] = [each for each in sessions if each["sessionId"] == "claude-code:before"]
    assert before["endReason"] == "other"


def test_a_session_is_captured_once_and_remembered_in_the_next(host: Host, daemon: Daemon) -> None:
    text = "Remember: the staging database is called heron-{} 数据库 🐈"
    host.say("one", 0, 6, text)
    for event in ("Stop", "SubagentStop", "Stop", "PreCompact"):
        told = host.hook(host.document(event, "one"))
        assert (told.status, told.output, told.error) == (0, b"", b"")
    host.say("one", 6, 8, text)
    assert host.hook(host.document("SessionEnd", "one", reason="logout")).error == b""
    assert ids(wait_for(daemon, "claude-code:one", 8)) == [f"one-{number}" for number in range(8)]
    prompt = "what was the staging database heron-4 called?"
    recalled = host.hook(host.document("UserPromptSubmit", "two", prompt=prompt)).added
    assert recalled.startswith("<offbook-recall")
    assert "heron-4" in recalled
    assert "数据库 🐈" in recalled
    handed = host.hook(host.document("SessionStart", "one", source="compact")).added
    # Answers: of what the user said, a slow machine's provider may have learned something by now.
    assert "Noted, 7." in handed
    assert "Noted, 7." not in host.hook(host.document("SessionStart", "one", source="resume")).output.decode()
    report = host.offbook("import", "claude-code", str(host.transcript("one")))
    assert [(agent["new"], agent["alreadyThere"], agent["conflicts"]) for agent in report["agents"]] == [(0, 8, 0)]


def test_killed_again_and_again_every_message_is_there_once(host: Host, daemon: Daemon) -> None:
    count = 600
    host.say("killed", 0, count, "A sentence that is number {}. " + "x" * 2_000)
    document = host.document("Stop", "killed")
    for seconds in (0.01, 0.03, 0.06, 0.1, 0.2):
        process = host.start("claude-code")
        assert process.stdin is not None
        process.stdin.write(document)
        process.stdin.close()
        time.sleep(seconds)
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
    for _ in range(30):  # each delivers for as long as a hook may take, which is little on a busy machine
        assert host.hook(host.document("SessionEnd", "killed")).status == 0
        if len(stored(daemon, "claude-code:killed")) >= count:
            break
    found = wait_for(daemon, "claude-code:killed", count)
    assert sorted(ids(found)) == sorted(f"killed-{number}" for number in range(count))


def test_codex_by_hook_by_notify_and_by_import(host: Host, daemon: Daemon) -> None:
    day = host.sessions / "2026" / "05" / "01"
    day.mkdir(parents=True)
    path = day / f"rollout-2026-05-01T10-00-00-{ROLLOUT_ID}.jsonl"

    def write(*payloads: dict[str, Any], kind: str = "response_item") -> None:
        with path.open("a", encoding="utf-8") as file:
            for payload in payloads:
                line = {"timestamp": "2026-05-01T10:00:00.000Z", "type": kind, "payload": payload}
                file.write(json.dumps(line) + "\n")

    def message(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    write({"id": ROLLOUT_ID, "cwd": "/src/app", "source": "cli"}, kind="session_meta")
    write(message("developer", "<offbook-recall>…"), message("user", "<environment_context>\n</environment_context>"))
    write(message("user", "The queue is called 队列-9 🦉"), message("assistant", "Noted: 队列-9."))
    stop = {
        "session_id": ROLLOUT_ID,
        "turn_id": "1",
        "transcript_path": str(path),
        "cwd": "/src/app",
        "hook_event_name": "Stop",
        "model": "gpt-5-codex",
        "permission_mode": "default",
        "stop_hook_active": False,
        "last_assistant_message": "Noted: 队列-9.",
    }
    assert host.hook(json.dumps(stop).encode(), "codex", "--agent", "coder").error == b""
    write({"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"})
    write({"type": "function_call_output", "call_id": "c1", "output": "README.md"})
    notify = {"type": "agent-turn-complete", "thread-id": ROLLOUT_ID, "turn-id": "2", "input-messages": []}
    assert host.hook(b"", "codex", "--agent", "coder", json.dumps(notify)).error == b""
    reply = daemon.ask("log", sessionId=f"codex:{ROLLOUT_ID}", agentId="coder", limit=100)
    assert len(reply.json()["messages"]) == 4
    asked = {"session_id": "new", "transcript_path": None, "hook_event_name": "UserPromptSubmit"}
    told = host.hook(
        json.dumps(asked | {"prompt": "how is the queue 队列-9 called?"}).encode(), "codex", "--agent", "coder"
    )
    assert "队列-9" in told.added
    report = host.offbook("import", "codex", str(host.sessions / "2026"), "--agent", "coder")
    assert [(agent["new"], agent["alreadyThere"], agent["conflicts"]) for agent in report["agents"]] == [(0, 4, 0)]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\xff\xfe\x00{",
        b'{"session_id":"x","hook_event_name":"NoSuchEvent"}',
        b'{"session_id":"x","hook_event_name":"Stop","transcript_path":"/dev/zero"}',
        b'{"session_id":"x","hook_event_name":"Stop","transcript_path":"../../etc"}',
        b'{"session_id":"\\u0000\\ud800","hook_event_name":"Stop","transcript_path":"\\ud800"}',
    ],
)
def test_nothing_stops_the_agent(host: Host, daemon: Daemon, document: bytes) -> None:
    told = host.hook(document, "claude-code")
    assert (told.status, told.output) == (0, b"")
    assert len(told.error.splitlines()) <= 1


@pytest.mark.parametrize("options", [("--url", "nonsense"), ("--deadline", "0"), ("--deadline", "999999")])
def test_no_option_of_a_hooks_stops_the_agent(host: Host, daemon: Daemon, options: tuple[str, ...]) -> None:
    """A hook that ends with 2 takes the prompt away from the agent."""
    prompt = host.document("UserPromptSubmit", "options", prompt="what is the database?")
    process = run_offbook("hook", "claude-code", *options, env=host.environ, stdin=prompt)
    assert process.returncode == 0, process.stderr


def test_an_option_of_a_later_version_is_passed_over(host: Host, daemon: Daemon) -> None:
    host.say("future", 0, 2)
    told = host.hook(host.document("Stop", "future"), "claude-code", "--an-option-of-the-future", "x")
    assert (told.status, told.output, told.error) == (0, b"", b"")
    wait_for(daemon, "claude-code:future", 2)
