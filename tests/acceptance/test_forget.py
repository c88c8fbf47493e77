"""`offbook forget` with a real provider: what waited in an outbox goes with the rest, and stays away after `kill -9`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from offbook import Client
from offbook.client.outbox import Outbox
from offbook.client.outboxes import folders_that_wait
from tests.acceptance.daemon import WITHOUT_MODEL, running
from tests.processes import run_offbook

FACT = "the vault code is zanzibar 7741"


def offbook(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
    environ["OFFBOOK_HOME"] = str(home)
    return run_offbook(*arguments, env=environ, text=True)


def left(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if b"zanzibar" in path.read_bytes()]


@pytest.fixture
def home() -> Iterator[Path]:
    # Not pytest's folder: the path of a Unix socket may have 107 bytes only.
    folder = Path(tempfile.mkdtemp(prefix="ob"))
    yield folder / "home"
    shutil.rmtree(folder, ignore_errors=True)


def refuse(home: Path, text: str) -> None:
    """As after a provider that would not take it."""
    outbox = Outbox(home / "outbox" / "refused", max_bytes=1_000_000)
    message = {"role": "user", "content": text}
    outbox.append(json.dumps({"sessionId": "chat", "message": message}).encode())
    (queued,) = outbox.peek(1, 1_000_000)
    outbox.reject(queued, "of the wrong shape")
    outbox.advance(queued.ordinal, rejected=1)
    outbox.close()


def test_what_was_recorded_while_nobody_answered_is_forgotten_too(home: Path) -> None:
    with running(WITHOUT_MODEL, home=home) as daemon:
        daemon.ask("onMessage", sessionId="chat", messages=[{"role": "user", "content": f"Remember that {FACT}."}])
        daemon.ask("onMessage", sessionId="chat", messages=[{"role": "user", "content": "The ferry leaves at nine."}])
        daemon.process.kill()
        daemon.process.wait()
        with Client(daemon.socket_endpoint, home=home, client="away") as away:
            away.record("chat", ("user", f"Once more: {FACT}."))
            away.close(timeout_seconds=0.2)
        assert folders_that_wait(home)
    refuse(home, f"Refused: {FACT}.")
    with running(WITHOUT_MODEL, home=home) as daemon:
        with Client(daemon.socket_endpoint, home=home, client="here") as here:  # runs on, with its outbox open
            here.record("chat", ("user", f"Here, too: {FACT}."))
            assert here.flush()
            done = offbook(home, "forget", "--matching", "zanzibar", "--yes", "--reason", "moved", "--json")
            assert left(home) == []
            here.record("chat", ("user", "And the train at ten."))
            assert here.flush()
        assert done.returncode == 0, done.stdout + done.stderr
        document = json.loads(done.stdout)
        assert document["receipt"]["reached"]["messages"] == 3
        assert document["receipt"]["reached"]["outboxRecords"] == 2
        assert document["undelivered"] == {"delivered": 1, "waiting": 0}
        daemon.process.kill()
        daemon.process.wait()
    with running(WITHOUT_MODEL, home=home) as daemon:
        verified = offbook(home, "forget", "--verify", document["savedTo"], "--matching", "zanzibar")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert "nothing of it was found" in verified.stdout
        lines = daemon.ask("log", sessionId="chat").json()["messages"]
        said = [line["message"]["content"] for line in lines]
        gone = "[forgotten]"
        assert said == [gone, "The ferry leaves at nine.", gone, gone, "And the train at ten."]
    assert left(home) == []
