"""A host's transcripts into a real provider: also killed in the middle, nothing is lost, doubled or out of order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from offbook.client.blocking import Client
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.processes import Offbook
from tests.unit.contrib.importers.openclaw_state import AT_MS, State, said

MESSAGES = 4_000
KEY = "agent:main:main"


@pytest.fixture
def provider() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL | {"OFFBOOK_PORT": "0"}) as daemon:
        yield daemon


def imported(provider: Daemon, state: State, *arguments: str) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "OFFBOOK_HOME": str(provider.home), "OPENCLAW_STATE_DIR": str(state.folder)}
    return Offbook("import", "openclaw", "--json", *arguments, env=environ, stdout=subprocess.PIPE)


def report_of(process: subprocess.Popen[bytes]) -> dict[str, object]:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    (agent,) = json.loads(output)["agents"]
    assert isinstance(agent, dict)
    return agent


def log_ids(provider: Daemon) -> list[str]:
    ids: list[str] = []
    with Client(provider.socket_endpoint, token=provider.token, home=provider.home) as client:
        while page := client.log(KEY, after_seq=len(ids), limit=1_000, agent_id="main")["messages"]:
            ids += [line["message"]["id"] for line in page]
    return ids


@pytest.mark.slow
def test_killed_in_the_middle_it_is_completed_by_the_next(provider: Daemon, tmp_path: Path) -> None:
    state = State(tmp_path / "openclaw")
    ids = [f"m{number}" for number in range(MESSAGES)]
    large = "words and words " * 320_000  # 5 MB
    texts = [large if number == 100 else f"text {number} " * 20 for number in range(MESSAGES)]
    state.store("s", KEY, *(said(each, texts[at], at_ms=AT_MS + at) for at, each in enumerate(ids)))
    first = imported(provider, state)
    while not log_ids(provider) and first.poll() is None:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    stored = len(log_ids(provider))
    assert 0 < stored < MESSAGES
    again = report_of(imported(provider, state))
    assert log_ids(provider) == ids
    assert again["new"] == MESSAGES - int(str(again["alreadyThere"]))
    once_more = report_of(imported(provider, state))
    assert (once_more["new"], once_more["alreadyThere"]) == (0, MESSAGES)
    assert log_ids(provider) == ids
