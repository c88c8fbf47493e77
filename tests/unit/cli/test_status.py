from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.answering import Answering, status
from tests.unit.cli.conftest import Run


def test_it_tells_how_far_the_summaries_are_and_who_writes_them(run: Run, provider: Answering) -> None:
    provider.with_answers("status", status({"L1": 12, "L2": 2}, waiting=3, summarizers=["openai gpt", "extractive"]))
    told = "\nsummaries:\nby level      2 L2, 12 L1\nwaiting       3 sessions to look at\n"
    assert told + "written by    openai gpt, else extractive\n" in run("status").stdout


def test_it_tells_what_the_writer_has_used_today_and_may_use(run: Run, provider: Answering) -> None:
    spending = {"tokens": 12_000, "dollars": 0.25, "maxTokens": 5_000_000, "maxDollars": 1.0}
    provider.with_answers("status", status(summarizers=["host", "extractive"], spending=spending))
    told = "written by    host, else extractive\ntoday         12,000 of 5,000,000 tokens, $0.25 of $1.00\n"
    assert told in run("status").stdout


def test_it_tells_why_somebody_does_not_write(run: Run, provider: Answering) -> None:
    provider.with_answers("status", status(troubles={"openai gpt": "the key is refused"}))
    result = run("status")
    assert "\nsummaries:\nby level      none yet\nwaiting       nothing\nwritten by    extractive\n" in result.stdout
    assert result.stderr == "! openai gpt is not used now: the key is refused\n"


def test_what_models_have_cost_is_told(run: Run, provider: Answering) -> None:
    provider.with_answers("status", status(dollars=1.5))
    assert "models        0 tokens, $1.50\n" in run("status").stdout


def session(name: str, **fields: Any) -> dict[str, Any]:
    at = "2026-01-31T12:00:00Z"
    known = {"sessionId": name, "agentId": "main", "lastSeq": 1, "chars": 2, "generation": 0}
    return {**known, "startedAt": at, "lastAt": at, **fields}


@pytest.mark.parametrize("command", ["status", "log"])
def test_a_session_that_another_one_started_names_it(command: str, run: Run, provider: Answering) -> None:
    child = session("child", parentSessionId="agent:main:chat")
    provider.with_answers("status", {**status(), "sessions": [child, session("alone")]})
    lines = run(command).stdout.splitlines()
    head, started, alone = (
        next(line for line in lines if line.startswith(name)) for name in ("session ", "child ", "alone ")
    )
    assert head.endswith("started by")
    assert started.endswith("open   agent:main:chat")
    assert alone.endswith("open")


def test_where_no_session_was_started_by_another_there_is_no_column_for_it(run: Run, provider: Answering) -> None:
    provider.with_answers("status", {**status(), "sessions": [session("alone")]})
    assert "started by" not in run("log").stdout


def test_of_many_agents_a_few_are_named_those_of_the_suite_last(run: Run, provider: Answering) -> None:
    suite = [f"conformance-{number:04}" for number in range(68)]
    provider.with_answers("status", {**status(), "agents": [*suite, "main", "researcher", "数据"]})
    named = ", ".join(["researcher", "数据", *suite[:18]])
    assert run("status").stdout.endswith(f"\nOther agents: {named} and 50 more (--json names all)\n")
    provider.with_answers("status", {**status(), "agents": ["main", "researcher"]})
    assert run("status").stdout.endswith("\nOther agents: researcher\n")


def test_what_was_forgotten_is_not_missing(run: Run, provider: Answering) -> None:
    known = status()
    known["counts"]["messages"], known["index"]["entries"] = 9, 8
    provider.with_answers("status", {**known, "forgets": 1})
    assert "by text       8  (1 more: forgotten, or still to be taken in)\n" in run("status").stdout
    provider.with_answers("status", known)
    assert "by text       8 of 9\n" in run("status").stdout
