"""Export, import into an empty provider, export: the same bytes. Also where either side was killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, message, running
from tests.processes import Offbook, run_offbook

SMALL = WITHOUT_MODEL | {
    "OFFBOOK_CHUNK_TOKENS": "200",
    "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "100",
    "OFFBOOK_SUMMARY_TARGET_TOKENS": "80",
    "OFFBOOK_MERGE_THRESHOLD": "3",
}
WORDS = f"Wörter, 漢字 und 🦉. {'=' * 4_000} "
LARGE = {"main": WORDS * 1_200, "../CON 🦉": WORDS * 25}
"""Each lies outside the log. The larger has 5 MB: more than a request of the import may take with another such. Few of them
are words, which would all be read."""
MESSAGES = 400
"""In the longer session of each agent."""


def offbook(daemon: Daemon, *arguments: str) -> dict[str, Any]:
    done = run_offbook(*arguments, "--json", env=environ(daemon), check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def environ(daemon: Daemon) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
    return {**plain, "OFFBOOK_HOME": str(daemon.home)}


def caught_up(daemon: Daemon) -> None:
    deadline = time.monotonic() + 120
    while daemon.ask("ping").json()["backlog"]:
        assert time.monotonic() < deadline, daemon.log.read_text()[-2_000:]
        time.sleep(0.1)
    for agent_id in daemon.ask("status").json()["agents"]:
        assert daemon.ask("maintain", agentId=agent_id, tasks=["lessons"]).status == 200


def live(daemon: Daemon) -> None:
    """Two agents, and everything that can happen to one."""
    for agent_id, large in LARGE.items():
        place = {"agentId": agent_id, "sessionId": f"agent:{agent_id}:main"}
        for first in range(0, MESSAGES, 20):
            talk = [
                message(f"Look at src/module_{number}.py, it says E{number}, 记住 the café. " * 3, id=f"m{number}")
                for number in range(first, first + 20)
            ]
            assert daemon.ask("onMessage", **place, messages=talk).status == 200
        child = {"agentId": agent_id, "sessionId": "子 session"}
        daemon.ask("hooks/session-start", **child, parentSessionId=place["sessionId"])
        call = {"type": "tool-call", "id": "c", "name": "look", "arguments": {"$part": "x", "at": [1, 2.5]}}
        told = [
            {"role": "assistant", "content": [call], "model": "some-model"},
            {"role": "tool", "toolCallId": "c", "name": "look", "content": [{"type": "text", "text": large}]},
            message("[OpenClaw heartbeat poll]"),
            message(large, meta={"$part": {"$$part": 1}}),
            message("ok"),
            message("\x00 nothing \u2028 special"),
            message(
                "My dog Bruno is afraid of thunder, so we always keep the Bruno blanket in the hall. We decided to use SQLite for the store."
            ),
        ]
        for each in told:
            assert daemon.ask("onMessage", **child, message=each).status == 200
        daemon.ask("hooks/pre-compaction", **child, messages=[message("Something nobody had saved before.")])
        daemon.ask("hooks/session-end", **child, reason="idle")
        daemon.ask("onMessage", **child, message=message("/new"))
        daemon.ask("pin", agentId=agent_id, keyword="module_7")
        daemon.ask("pin", agentId=agent_id, keyword="module_3")
        daemon.ask("cross", agentId=agent_id, enabled=True)
    caught_up(daemon)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "one"
    with running(SMALL) as daemon:
        live(daemon)
        report = offbook(daemon, "export", str(folder))
        assert {agent["agentId"] for agent in report["agents"]} == {"main", "../CON 🦉"}
    return folder


def test_export_import_export_is_the_same_bytes(export: Path, tmp_path: Path) -> None:
    kinds = {json.loads(line)["type"] for line in (export / "agents" / "main" / "memory.jsonl").open("rb")}
    assert kinds == {"agent", "session", "message", "mark", "summary", "lesson"}
    assert len(list((export / "agents" / "main" / "parts").iterdir())) == 1
    with running(SMALL) as daemon:
        report = offbook(daemon, "import", "offbook", str(export))
        assert sum(agent["refused"] for agent in report["agents"]) == 0
        caught_up(daemon)
        offbook(daemon, "export", str(tmp_path / "two"))
        assert contents(tmp_path / "two") == contents(export)
        again = offbook(daemon, "import", "offbook", str(export))
        assert sum(agent["taken"] for agent in again["agents"]) == 0
        caught_up(daemon)
        offbook(daemon, "export", str(tmp_path / "three"))
        assert contents(tmp_path / "three") == contents(export)
        found = daemon.ask("recall", sessionId="new", query="module_7").json()["entries"]
        assert any("module_7" in entry["text"] for entry in found)
        home = daemon.home
        daemon.stop()
        run_offbook("--home", home, "audit", "--verify", check=True)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["the import", "the provider"])
def test_killed_in_the_middle_and_run_again_it_is_the_same(export: Path, tmp_path: Path, who: str) -> None:
    home = Path(tempfile.mkdtemp(prefix="ob"))  # as in `running`: a socket's path is short
    with running(SMALL, home=home) as daemon:
        silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        importing = Offbook("import", "offbook", export, env=environ(daemon), **silent)
        while not _stored(daemon):
            assert importing.poll() is None, "it was too quick to be killed"
            time.sleep(0.01)
        (importing if who == "the import" else daemon.process).send_signal(signal.SIGKILL)
        importing.wait(60)
        if who == "the import":
            assert 0 < _stored(daemon) < 2 * MESSAGES
    with running(SMALL, home=home) as daemon:
        report = offbook(daemon, "import", "offbook", str(export))
        assert sum(agent["refused"] for agent in report["agents"]) == 0
        assert sum(agent["alreadyThere"] for agent in report["agents"]) > 0
        caught_up(daemon)
        offbook(daemon, "export", str(tmp_path / "two"))
        assert contents(tmp_path / "two") == contents(export)


def _stored(daemon: Daemon) -> int:
    agents = daemon.ask("status").json()["agents"]
    return sum(daemon.ask("status", agentId=agent).json()["counts"]["messages"] for agent in agents)
