from __future__ import annotations

import json

import pytest

from offbook.model.summary import Loss, SourceSpan, SummaryPage, Usage
from tests.unit.cli.answering import Answering, status, summary
from tests.unit.cli.conftest import Run


@pytest.fixture(autouse=True)
def one_of_each(provider: Answering) -> None:
    provider.with_answers("summaries", SummaryPage(summaries=[summary(3)]))
    provider.with_answers("status", status({"L1": 3, "L2": 1}))


def test_a_summary_is_shown_with_what_it_stands_for_and_what_it_took(run: Run, provider: Answering) -> None:
    losses = [
        Loss(kind="number", text="4,217 kWh", session_id="chat", seq=5),
        Loss(kind="name", text="Ada", session_id="chat", seq=5),
    ]
    written = summary(3, usage=Usage(dollars=0.0123), summarizer="openai gpt", parent="L2-0001", lost=4, losses=losses)
    provider.with_answers("summaries", SummaryPage(summaries=[written]))
    output = run("inspect").stdout
    assert output.startswith("L1-0003  session chat #3 to #12  20")
    assert "\n  10 messages · 2,000 → 500 tokens (25 %) · 4 particulars left out\n" in output
    assert "\n  by openai gpt on 20" in output
    assert " · $0.0123 · merged into L2-0001\n" in output
    assert "\n  They met in Lisbon.\n  Ada is the cat.\n" in output
    assert "4,217 kWh" not in output
    full = run("inspect", "--full").stdout
    assert (
        "\n  left out of chat #5: number 4,217 kWh, name Ada\n  and 2 more particulars: `offbook expand L1-0003`\n"
        in full
    )


def test_the_counts_by_level_come_last(run: Run) -> None:
    assert run("inspect").stdout.endswith("\n4 summaries in all: 1 L2, 3 L1\n")


def test_a_long_text_is_cut_unless_all_of_it_is_asked_for(run: Run, provider: Answering) -> None:
    text = "\n".join(f"line {number}" for number in range(9))
    provider.with_answers("summaries", SummaryPage(summaries=[summary(1, text=text)]))
    output = run("inspect").stdout
    assert "  line 2\n  … 6 more lines: --full\n" in output
    assert "line 8\n" in run("inspect", "--full").stdout


def test_one_that_merges_several_sessions_names_them(run: Run, provider: Answering) -> None:
    spans = [SourceSpan(session_id=name, first_seq=1, last_seq=last) for name, last in (("one", 1), ("two", 9))]
    merged = summary(1, id="L2-0001", level=2, spans=spans, sources=["L1-0001", "L1-0002", "L1-0003"])
    provider.with_answers("summaries", SummaryPage(summaries=[merged]))
    output = run("inspect", "--level", "l2").stdout
    assert "L2-0001  session one #1; session two #1 to #9" in output
    assert "merges L1-0001 to L1-0003" in output
    assert provider.bodies("summaries") == [{"level": 2, "limit": 10}]


def test_every_page_is_fetched_where_all_are_wanted(run: Run, provider: Answering) -> None:
    pages = [SummaryPage(summaries=[summary(3)], next="L1-0003"), SummaryPage(summaries=[summary(2), summary(1)])]
    provider.with_answers("summaries", *pages)
    found = json.loads(run("inspect", "--all", "--session", "chat", "--agent", "x", "--json").stdout)
    assert [each["id"] for each in found["summaries"]] == ["L1-0003", "L1-0002", "L1-0001"]
    assert (found["counts"], "next" in found) == ({"L1": 3, "L2": 1}, False)
    asked = {"agentId": "x", "sessionId": "chat", "limit": 100}
    assert provider.bodies("summaries") == [asked, {**asked, "before": "L1-0003"}]


def test_where_there_are_more_it_says_so(run: Run, provider: Answering) -> None:
    provider.with_answers("summaries", SummaryPage(summaries=[summary(3)], next="L1-0003"))
    result = run("inspect", "--limit", "1")
    assert result.stderr == "1 shown: --limit N or --all shows more\n"
    assert json.loads(run("inspect", "--limit", "1", "--json").stdout)["next"] == "L1-0003"


def test_a_provider_that_goes_round_in_circles_is_left(run: Run, provider: Answering) -> None:
    provider.with_answers("summaries", SummaryPage(summaries=[summary(3)], next="L1-0003"))
    result = run("inspect", "--all")
    assert result.exit_code == 1
    assert "before L1-0003 again" in result.stderr


def test_whose_counts_are_shown_is_said_by_the_key_of_the_session(run: Run, provider: Answering) -> None:
    run("inspect", "--session", "agent:researcher:main")
    assert provider.bodies("status") == [{"agentId": "researcher"}]


def test_none_yet_and_none_of_that_kind_are_no_failure(run: Run, provider: Answering) -> None:
    provider.with_answers("summaries", SummaryPage(summaries=[]))
    result = run("inspect", "--level", "3")
    assert (result.exit_code, "none of that kind" in result.stderr) == (0, True)
    provider.with_answers("status", status())
    result = run("inspect")
    assert (result.exit_code, result.stdout, "`offbook compress`" in result.stderr) == (0, "", True)


@pytest.mark.parametrize("level", ["L0", "L10", "high", "²", ""])
def test_what_is_no_level_is_refused(level: str, run: Run, provider: Answering) -> None:
    result = run("inspect", "--level", level)
    assert (result.exit_code, "such as L1 or L2" in result.stderr, provider.asked) == (2, True, [])


def test_what_a_summary_says_does_not_steer_the_terminal(run: Run, provider: Answering) -> None:
    spans = [SourceSpan(session_id="\x1b[2J", first_seq=1, last_seq=1)]
    loss = Loss(kind="name", text="\x1b[1m", session_id="\x1b", seq=1)
    hostile = summary(1, text="\x1b]0;owned\x07", spans=spans, summarizer="\x1b[31m", losses=[loss], lost=1)
    provider.with_answers("summaries", SummaryPage(summaries=[hostile]))
    assert "\x1b" not in run("inspect", "--full").stdout
