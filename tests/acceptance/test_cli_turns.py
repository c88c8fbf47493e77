"""Continuity from the command line and over a kill: real processes, a real provider, the real model."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from offbook.client.blocking import Client
from tests.acceptance.daemon import running
from tests.acceptance.test_cli import output_of
from tests.processes import OFFBOOK

SOCKET_ONLY = {"OFFBOOK_PORT": "0"}
"""A busy machine is slow: what is left out where it is late is tested elsewhere."""
PROMPT = "What shall I give my sister for her wedding?"


def _line(role: str, text: str, days: float) -> str:
    at = datetime.now(UTC) - timedelta(days=days)
    return json.dumps({"role": role, "content": text, "ts": at.isoformat()})


def _tell(home: Path) -> None:
    spring = [
        _line("user", "My name is Nina and I am a nurse in Graz.", 21.5),
        _line("assistant", "Nice to meet you, Nina!", 21.5),
        _line("user", "My sister's wedding is on the 12th of June.", 21.5),
        _line("assistant", "I will keep the 12th of June in mind.", 21.5),
    ]
    since = [
        _line("user", "Correction: my sister's wedding is on the 19th of June.", 3.5),
        _line("assistant", "Noted: the 19th of June.", 3.5),
    ]
    output_of(home, "record", "spring", "--jsonl", "-", stdin="\n".join(spring))
    output_of(home, "record", "since", "--jsonl", "-", stdin="\n".join(since))
    _catch_up(home)


def _catch_up(home: Path) -> None:
    deadline = time.monotonic() + 60
    while json.loads(output_of(home, "ping", "--json"))["backlog"] and time.monotonic() < deadline:
        time.sleep(0.1)
    output_of(home, "maintain", "--task", "lessons")  # else learnt at its next turn, minutes later


def test_a_turn_is_looked_at_and_what_the_agent_is_on_about() -> None:
    with running(SOCKET_ONLY) as daemon:
        home = daemon.home
        _tell(home)
        shown = output_of(home, "turn", "now", PROMPT)
        assert "They corrected that" in shown
        assert "19th of June" in shown
        assert "tokens" in shown
        exact = output_of(home, "turn", "now", PROMPT, "--text")
        turn = json.loads(output_of(home, "turn", "now", PROMPT, "--json"))
        assert turn["memory"] in exact
        assert turn["recall"] in exact
        assert turn["intent"] == "plain"
        assert {part["kind"] for part in turn["parts"]} >= {"lessons", "recalled"}
        assert json.loads(output_of(home, "status", "--json"))["retrievals"] == 0, "looking changes nothing"
        assert "My name is Nina" in output_of(home, "anchors")
        assert "wedding" in output_of(home, "topics")
        assert "Nina" in output_of(home, "state", "main")
        assert "### Recalled Memories" in output_of(home, "agents-md", str(home.parent))


def test_the_stable_section_outlives_a_kill() -> None:
    """Whatever was said and noted since: the same bytes, for the provider's prompt cache. A new interpreter hashes
    strings differently."""
    with running(SOCKET_ONLY) as daemon:
        _tell(daemon.home)
        with Client(daemon.socket_endpoint, home=daemon.home, timeout_seconds=30) as client:
            first = client.prepare_turn("now", PROMPT)
            client.on_message("now", ("user", PROMPT), ("assistant", "A kettle, perhaps?"))
            client.on_message("later", ("user", "We deploy only on Tuesdays, never on a Friday."))
        assert "Nina" in first.memory
        daemon.process.kill()
        daemon.process.wait()
        with (
            running(SOCKET_ONLY, home=daemon.home, program=OFFBOOK) as risen,
            Client(risen.socket_endpoint, home=risen.home, timeout_seconds=30) as client,
        ):
            _catch_up(risen.home)
            again = client.prepare_turn("now", "A kettle? They have one already, I think")
            other = client.prepare_turn("quite new", PROMPT)
    assert again.memory == first.memory
    assert "Tuesdays" in other.memory
