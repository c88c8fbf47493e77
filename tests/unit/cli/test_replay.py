from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from offbook.cli.contexts import HANDED
from offbook.model.summary import Replay, ReplayEvent
from offbook.model.types import Message
from tests.unit.cli.answering import Answering
from tests.unit.cli.conftest import Run

AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def replay(**fields: Any) -> Replay:
    given = {
        "session_id": "chat",
        "agent_id": "main",
        "at": AT,
        "generation": 2,
        "kind": "swap",
        "handed_at": AT,
        "memory": "They met in Lisbon.",
        "messages": [
            Message(role="assistant", content="They met in Lisbon.\nAda is the cat."),
            Message(role="user", content="And then?", name="Bob", ts=AT),
        ],
        "last_seq": 30,
        "is_exact": True,
        "why": [ReplayEvent(at=AT, verb="swap", actor="cli", details={"generation": 2, "sha256": "abc"})],
    }
    return Replay(**(given | fields))


def test_the_context_is_shown_as_it_was_and_then_why(run: Run, provider: Answering) -> None:
    provider.with_answers("replay", replay())
    result = run("replay", "chat", "--at", "2026-01-31T12:00Z", "--agent", "main")
    assert result.stdout.startswith("chat of agent main at 2026-01-31")
    assert "up to message #30; handed over by a swap at 2026-01-31" in result.stdout
    assert "── assistant ──\nThey met in Lisbon.\nAda is the cat.\n\n── user Bob · 2026-01-31" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("swap  cli  generation=2")
    assert result.stderr == ""
    assert provider.bodies("replay") == [{"agentId": "main", "sessionId": "chat", "at": AT}]


def test_summaries_made_in_a_row_are_one_line_and_a_reason_comes_first(run: Run, provider: Answering) -> None:
    made = [ReplayEvent(at=AT, verb="compress", actor="offbook", details={"level": n}) for n in (1, 1, 2)]
    asked = ReplayEvent(at=AT, verb="compress", actor="local", details={"dryRun": True})
    swap = ReplayEvent(at=AT, verb="swap", actor="local", details={"chars": 9, "reason": "forced", "generation": 1})
    provider.with_answers("replay", replay(why=[*made, asked, made[0], swap]))
    *_, first, second, third, last = run("replay", "chat", "--at", "2026-01-31").stdout.splitlines()
    assert first.endswith("compress  offbook  3 summaries made: 1 L2, 2 L1")
    assert second.endswith("compress  local    dryRun=True")
    assert third.endswith("compress  offbook  1 summary made: 1 L1")
    assert last.endswith("swap      local    reason=forced generation=1 chars=9")


def test_a_day_is_its_end(run: Run, provider: Answering) -> None:
    provider.with_answers("replay", replay())
    run("replay", "chat", "--at", "2026-01-31")
    (body,) = provider.bodies("replay")
    assert (body["at"].hour, body["at"].minute) == (23, 59)


def test_how_the_context_came_about_is_told(run: Run, provider: Answering) -> None:
    assert set(HANDED) == {"swap", "start", "log"}
    provider.with_answers("replay", replay(kind="log", handed_at=None, generation=0))
    assert "nothing was handed over before" in run("replay", "chat", "--at", "2026-01-31").stdout
    provider.with_answers("replay", replay(kind="start"))
    assert "given at a start at 2026-01-31" in run("replay", "chat", "--at", "2026-01-31").stdout


def test_what_is_not_exact_is_a_warning(run: Run, provider: Answering) -> None:
    provider.with_answers("replay", replay(is_exact=False))
    assert "! this is not exactly what the agent had" in run("replay", "chat", "--at", "2026-01-31").stderr


def test_nothing_then_says_where_to_look(run: Run, provider: Answering) -> None:
    provider.with_answers("replay", replay(messages=[], why=[], kind="log", last_seq=0, handed_at=None))
    result = run("replay", "chat", "--at", "2020-01-01")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "a later --at may show more" in result.stderr


def test_json_is_the_answer(run: Run, provider: Answering) -> None:
    provider.with_answers("replay", replay(is_exact=False))
    result = run("replay", "chat", "--at", "2026-01-31", "--json")
    assert (json.loads(result.stdout)["lastSeq"], result.stderr) == (30, "")


@pytest.mark.parametrize("arguments", [["chat"], ["chat", "--at", "yesterday"], ["--at", "2026-01-31"]])
def test_session_and_time_are_asked_for(arguments: list[str], run: Run, provider: Answering) -> None:
    assert run("replay", *arguments).exit_code == 2
    assert provider.asked == []


def test_what_was_said_does_not_steer_the_terminal(run: Run, provider: Answering) -> None:
    messages = [Message(role="user", content="\x1b]0;owned\x07", name="\x1b[2J")]
    why = [ReplayEvent(at=AT, verb="swap", actor="\x1b[1m", details={"reason": "\x1b"})]
    provider.with_answers("replay", replay(messages=messages, why=why, session_id="\x1b[31m"))
    assert "\x1b" not in run("replay", "chat", "--at", "2026-01-31").stdout
