from __future__ import annotations

import json
from typing import Any

import click
import pytest

from offbook.cli import summaries
from offbook.model.errors import WrongShape
from tests.unit.cli.answering import Answering, estimate, status
from tests.unit.cli.conftest import Run

PAID = {"input_tokens": 40_000, "output_tokens": 2_000, "dollars": 0.128, "summarizer": "openai gpt"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, provider: Answering) -> None:
    monkeypatch.setattr(summaries, "FIRST_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(summaries, "LONGEST_LOOK_SECONDS", 0.001)
    provider.with_answers("compress", estimate())
    begun = [status({"L1": 1}), status({"L1": 1}, waiting=2), status({"L1": 3}, waiting=1)]
    provider.with_answers("status", *begun, status({"L1": 4, "L2": 1}))


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "sys", type("", (), {"stdin": type("", (), {"isatty": staticmethod(lambda: True)})}))


def started(provider: Answering) -> list[dict[str, Any]]:
    return [body for body in provider.bodies("compress") if "dryRun" not in body]


# ── what it takes ──


def test_what_it_takes_is_told_first_and_only_that_with_dry_run(run: Run, provider: Answering) -> None:
    assert run("compress", "--dry-run").stdout.splitlines() == [
        "Agent main",
        "to summarise  about 12,000 tokens of 2 sessions",
        "summaries     about 4 to be made; there are 1 L1",
        "written by    extractive",
        "cost          nothing: no model is asked",
    ]
    assert json.loads(run("compress", "--dry-run", "--json").stdout)["sourceTokens"] == 12_000
    assert started(provider) == []


def test_a_model_costs_tokens_and_money(run: Run, provider: Answering) -> None:
    provider.with_answers("compress", estimate(**PAID))
    output = run("compress", "--dry-run", "--session", "chat").stdout
    assert "about 12,000 tokens of session chat\n" in output
    assert "written by    openai gpt\ncost          about 40,000 tokens in, 2,000 out: $0.13\n" in output
    provider.with_answers("compress", estimate(**PAID | {"dollars": 0.0}))
    assert "2,000 out: nothing to pay that is known of\n" in run("compress", "--dry-run").stdout


# ── who agrees ──


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_without_a_terminal_money_needs_a_yes(arguments: list[str], run: Run, provider: Answering) -> None:
    provider.with_answers("compress", estimate(**PAID))
    result = run("compress", *arguments)
    assert (result.exit_code, started(provider)) == (2, [])
    assert "this costs about $0.13: --yes agrees to it" in " ".join(result.stderr.split())
    assert run("compress", "--yes", *arguments).exit_code == 0
    assert started(provider) == [{}]


@pytest.mark.parametrize(("answer", "is_started"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_at_a_terminal_it_is_asked(
    answer: str, is_started: bool, run: Run, provider: Answering, at_a_terminal: None
) -> None:
    provider.with_answers("compress", estimate(**PAID | {"dollars": 0.001}))
    result = run("compress", input=answer)
    assert "Pay less than $0.01? [y/N]" in result.stderr
    assert (result.exit_code == 0, len(started(provider))) == (is_started, is_started)


def test_what_is_free_is_not_asked_about(
    run: Run, provider: Answering, at_a_terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click, "confirm", lambda *_, **__: pytest.fail("asked"))
    assert run("compress").exit_code == 0


# ── what is done ──


def test_it_is_waited_for_until_no_session_waits(run: Run, provider: Answering) -> None:
    result = run("compress", "--session", "chat", "--agent", "x")
    assert result.stdout.endswith("\n4 summaries made: 1 L2, 3 L1; `offbook inspect` shows them\n")
    assert started(provider) == [{"agentId": "x", "sessionId": "chat"}]
    # The agent is the one that the provider named: a session's key may say whose it is.
    assert provider.bodies("status") == [{"agentId": "main"}] * 4


def test_json_is_the_estimate_with_what_came_of_it(run: Run) -> None:
    document = json.loads(run("compress", "--all", "--json").stdout)
    assert (document["sourceTokens"], document["waiting"]) == (12_000, 0)
    assert (document["made"], document["counts"]) == ({"L1": 3, "L2": 1}, {"L1": 4, "L2": 1})


def test_it_need_not_be_waited_for(run: Run, provider: Answering) -> None:
    assert run("compress", "--no-wait").stdout.endswith(
        "begun, 2 sessions to look at: `offbook status` shows how far it is\n"
    )
    assert len(provider.bodies("status")) == 2


def test_nothing_to_do_is_no_failure(run: Run, provider: Answering) -> None:
    provider.with_answers("compress", estimate(source_tokens=0, summaries=0))
    provider.with_answers("status", status({"L1": 1}))
    output = run("compress").stdout
    assert "nothing that is long enough" in output
    assert output.endswith("no new summaries; there are 1 L1: all that is old enough is summarised\n")


def test_what_was_made_since_the_estimate_is_told(run: Run, provider: Answering) -> None:
    provider.with_answers("compress", estimate(summaries=1, counts={}))
    provider.with_answers("status", status({"L1": 2}))
    assert run("compress").stdout.endswith("\n2 summaries made: 2 L1; `offbook inspect` shows them\n")
    assert json.loads(run("compress", "--json").stdout)["made"] == {"L1": 2}


def test_what_was_paid_is_told(run: Run, provider: Answering) -> None:
    provider.with_answers("status", status(dollars=1.0), status({"L1": 2}, dollars=1.25))
    assert "1 summary made for $0.25: 1 L1" in run("compress", "--yes").stdout


def test_whoever_stops_waiting_is_told_that_it_goes_on(run: Run, provider: Answering) -> None:
    provider.with_answers("status", status(), status(waiting=1), KeyboardInterrupt())
    result = run("compress")
    assert result.exit_code == 130
    assert "it goes on in the background" in result.stderr
    assert "`offbook compress` again waits for it" in result.stderr


def test_what_does_not_move_is_not_waited_for(run: Run, provider: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "STALLED_SECONDS", 0.01)
    provider.with_answers("status", status(waiting=2, troubles={"openai gpt": "the key is refused"}))
    result = run("compress")
    assert "! openai gpt is not used now: the key is refused\n" in result.stderr
    assert "2 sessions still to look at, and nothing moves" in result.stderr


# ── again ──


def test_what_a_better_one_can_write_now_is_told_first(run: Run, provider: Answering) -> None:
    provider.with_answers("compress", estimate(**PAID, again=3))
    output = run("compress", "--again", "--dry-run").stdout
    assert "again         3 summaries by a lesser summarizer, to be written again\nwritten by    openai gpt\n" in output
    assert provider.bodies("compress") == [{"again": True, "dryRun": True}]
    provider.with_answers("compress", estimate(**PAID))
    assert "again         none is by a lesser one\n" in run("compress", "--again", "--dry-run").stdout
    assert "again" not in run("compress", "--dry-run").stdout


def test_what_was_written_again_is_told_and_what_was_not(run: Run, provider: Answering) -> None:
    provider.with_answers("compress", estimate(again=3), estimate(again=3), estimate(again=1))
    provider.with_answers("status", status({"L1": 3}, waiting=1), status({"L1": 3}))
    result = run("compress", "--again", "--session", "chat")
    assert result.stdout.endswith("\n2 summaries written again\n")
    assert "1 summary could be written again and was not: `offbook compress --again` goes on" in result.stderr
    assert started(provider) == [{"sessionId": "chat", "again": True}]
    provider.with_answers("compress", estimate(again=3), estimate(again=3), estimate(again=0))
    assert json.loads(run("compress", "--again", "--json").stdout)["writtenAgain"] == 3


def test_it_costs_a_yes_and_need_not_be_waited_for(run: Run, provider: Answering) -> None:
    provider.with_answers("compress", estimate(**PAID, again=3))
    assert run("compress", "--again").exit_code == 2
    assert run("compress", "--again", "--no-wait", "--yes").stdout.endswith("`offbook status` shows how far it is\n")
    assert started(provider) == [{"again": True}]


def test_without_a_model_it_is_said_what_to_set(run: Run, provider: Answering) -> None:
    provider.with_answers("compress", WrongShape("`again` needs a model: name one in the setting summarizer.order"))
    result = run("compress", "--again")
    assert result.exit_code != 0
    assert "name one in the setting summarizer.order" in " ".join(result.stderr.split())


def test_one_session_or_all(run: Run, provider: Answering) -> None:
    result = run("compress", "--all", "--session", "chat")
    assert (result.exit_code, provider.asked) == (2, [])
