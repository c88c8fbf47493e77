"""`offbook recall` as it prints. What is found is tested beside the parts of recall, and with a provider in
`acceptance`."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from offbook.cli.options import moment_or_end_of_day
from offbook.cli.output import ago, bar, wrapped
from offbook.client.blocking import Client
from offbook.context.time_text import ago as ago_in_a_turn
from offbook.model.memory_entry import Explained, LeftOut, MemoryEntry, Recollection, Replaced, Why
from offbook.model.types import Span, now
from tests.unit.cli.conftest import Run

AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def in_lisbon(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "Europe/Lisbon")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def entry(number: int, text: str, *, days_ago: float = 0, **fields: Any) -> MemoryEntry:
    given = {
        "id": f"m{number}",
        "agent_id": "main",
        "session_id": "chat",
        "text": text,
        "ts": now() - timedelta(days=days_ago),
        "score": 0.5,
        "found_by": ["text", "meaning"],
        "span": Span(first_seq=number, last_seq=number),
        "tier": "hot",
        "pinned": False,
        "origin": "user",
    }
    return MemoryEntry(**(given | fields))


def found(*entries: MemoryEntry, degraded: tuple[str, ...] = (), **explained: Any) -> Recollection:
    plain = {"query": "q", "looked_for": [], "times": [], "recipes": {}, "looked_at": 0, "left_out": []}
    return Recollection(
        entries=list(entries), took_ms=1.5, degraded=list(degraded), explained=Explained(**(plain | explained))
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was asked of the provider; its key `answer` is what it answers."""
    asked: dict[str, Any] = {"answer": found()}

    def recall(self: Client, session_id: str, query: str, **how: Any) -> Recollection:
        asked.update(session_id=session_id, query=query, **how)
        answer = asked["answer"]
        assert isinstance(answer, Recollection)
        return answer

    monkeypatch.setattr(Client, "recall", recall)
    return asked


# ── what is asked ──


def test_the_words_are_one_query_and_the_session_is_the_shell(run: Run, asked: dict[str, Any]) -> None:
    assert run("recall", "what", "is", "my cat called?").exit_code == 0
    assert (asked["session_id"], asked["query"]) == ("cli", "what is my cat called?")
    assert (asked["limit"], asked["scope"], asked["at"], asked["include_superseded"]) == (5, "agent", None, False)


def test_every_option_is_sent(run: Run, asked: dict[str, Any]) -> None:
    how = ["--session", "chat", "--limit", "9", "--scope", "session", "--include-superseded", "--explain", "--json"]
    assert run("recall", "cat", *how, "--at", "2026-10-03T12:00Z").exit_code == 0
    assert (asked["session_id"], asked["limit"], asked["scope"]) == ("chat", 9, "session")
    assert (asked["include_superseded"], asked["explain"]) == (True, True)
    assert asked["at"] == datetime(2026, 10, 3, 12, tzinfo=UTC)


def test_a_session_is_named_where_one_is_searched(run: Run, asked: dict[str, Any]) -> None:
    result = run("recall", "cat", "--scope", "session")
    assert result.exit_code == 2
    assert "--scope session needs --session" in result.stderr
    assert "query" not in asked


@pytest.mark.parametrize("words", [[], [""], [" ", " "]])
def test_something_is_asked(words: list[str], run: Run, asked: dict[str, Any]) -> None:
    assert run("recall", *words).exit_code == 2
    assert "query" not in asked


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2026-10-03", datetime(2026, 10, 3, 22, 59, 59, 999_999, tzinfo=UTC)),  # Lisbon has summer time
        ("2026-12-03", datetime(2026, 12, 3, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("2026-10-03T10:00", datetime(2026, 10, 3, 9, tzinfo=UTC)),
        ("2026-10-03T10:00+05:00", datetime(2026, 10, 3, 5, tzinfo=UTC)),
    ],
)
def test_a_day_is_all_of_it_where_the_user_is(given: str, meant: datetime) -> None:
    assert moment_or_end_of_day(given) == meant


@pytest.mark.parametrize("given", ["yesterday", "soon", "2026-13-01", "9999-12-31T23:59:59-14:00"])
def test_what_is_no_time_is_refused(given: str, run: Run, asked: dict[str, Any]) -> None:
    result = run("recall", "cat", "--at", given)
    assert result.exit_code == 2
    assert "is not a time such as 2026-01-31T12:00" in result.stderr
    assert "nor a day such as 2026-01-31\n" in result.stderr


# ── what is shown ──


def test_it_is_shown_in_the_order_it_was_said_and_the_best_is_marked(run: Run, asked: dict[str, Any]) -> None:
    newer, older = entry(2, "She is four.", score=0.9), entry(1, "My cat is Ada.", days_ago=22, pinned=True, tier="hot")
    asked["answer"] = found(newer, older)
    first, text, _, second, *_ = run("recall", "cat").stdout.splitlines()
    assert first.endswith("(3 weeks ago)  user  session chat · hot · pinned · score 0.50 · m1")
    assert text == "  My cat is Ada."
    assert second.endswith("(just now)  user  session chat · hot · score 0.90 (best) · m2")


def test_who_spoke_and_whose_memory_it_is(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = found(entry(1, "Hi.", agent_id="researcher", why=Why(speaker="Bob")))
    assert "user Bob  session chat of agent researcher · hot" in run("recall", "hi", "--scope", "all").stdout
    assert asked["explain"] is True


def test_what_it_replaces_and_what_replaced_it_stand_below(run: Run, asked: dict[str, Any]) -> None:
    old = entry(1, "We use PostgreSQL.", days_ago=1, superseded_by="m2")
    new = entry(2, "We use SQLite.", why=Why(replaces=[Replaced(id="m1", text=old.text, ts=AT)]))
    asked["answer"] = found(new, old)
    output = run("recall", "database", "--include-superseded").stdout
    assert "  replaced by m2: We use SQLite.\n" in output
    assert "  replaces: We use PostgreSQL. (2026-01-31 12:00, m1)\n" in output
    asked["answer"] = found(old)
    assert "  replaced by m2\n" in run("recall", "database").stdout


def test_an_explanation_says_why_and_what_was_left_out(run: Run, asked: dict[str, Any]) -> None:
    evidence = {"meaning": 0.9, "window_words": -0.31, "length": 0.01, "words": 0.2, "user": 1.2, "opening": 0.1}
    why = Why(similarity=0.612, ranks={"text": 2, "meaning": 11}, evidence=evidence)
    left_out = [LeftOut(id=f"m{n}", why="says the same") for n in range(12)]
    asked["answer"] = found(
        entry(1, "My cat is Ada.", why=why, found_by=["text", "meaning", "pin"]),
        looked_for=["cat"],
        times=["last week"],
        recipes={"main": "chat"},
        looked_at=1_200,
        left_out=left_out,
    )
    output = run("recall", "cat", "--explain").stdout
    assert "  found by text (2nd), meaning (11th), pin · similarity 0.61\n" in output
    assert "  evidence user +1.20, meaning +0.90, window words -0.31, words +0.20, opening +0.10 = 2.10\n" in output
    assert "looked for  cat\ntimes       last week\nrecipe      chat\n" in output
    assert "looked at   1,200 messages in 1.5 ms\nleft out\n  m0  says the same\n" in output
    assert output.endswith("  and 2 more: --json has all of them\n")
    assert "found by" not in run("recall", "cat").stdout


def test_what_was_unavailable_is_a_warning(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = found(entry(1, "Hi."), degraded=("embeddings: 7 messages are still to be embedded",))
    result = run("recall", "hi")
    assert result.stderr == "! embeddings: 7 messages are still to be embedded\n"
    assert (result.exit_code, "Hi." in result.stdout) == (0, True)


def test_nothing_found_is_no_failure_and_says_what_to_try(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = found(times=["last week"])
    result = run("recall", "zebra", "--at", "2020-01-01")
    assert (result.exit_code, result.stdout) == (0, "")
    assert all(told in result.stderr for told in ("nothing found. Try", "other words", "the time", "--at", "--agent"))


def test_json_is_the_answer_best_first_with_nothing_else(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = found(entry(2, "new", score=0.9), entry(1, "old", days_ago=3), degraded=("x",))
    result = run("recall", "cat", "--json")
    assert [each["id"] for each in json.loads(result.stdout)["entries"]] == ["m2", "m1"]
    assert (result.stderr, asked["explain"]) == ("", False)


def test_what_a_memory_says_does_not_steer_the_terminal(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = found(entry(1, "\x1b]0;owned\x07", session_id="\x1b[2J", why=Why(speaker="\x1b[31m")))
    assert "\x1b" not in run("recall", "cat", "--explain").stdout


def test_the_newest_that_did_not_qualify_has_no_score(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = found(entry(1, "Hi.", score=-1.0))
    assert "hot · the newest there is · m1" in run("recall", "cat").stdout


# ── how it is told ──


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (3, "just now"),
        (-3, "just now"),
        (7_300, "2 hours ago"),
        (86_400, "yesterday"),
        (22 * 86_400, "3 weeks ago"),
        (36 * 86_400, "a month ago"),
        (70 * 86_400, "2 months ago"),
    ],
)
def test_ages_are_spoken_as_a_turn_tells_them(seconds: int, told: str) -> None:
    moment = AT - timedelta(seconds=seconds)
    assert ago(moment, AT) == ago_in_a_turn(moment, AT) == told


def test_a_bar_is_full_only_where_nothing_is_missing() -> None:
    assert [bar(done, 1_000, 4) for done in (0, 1, 500, 999, 1_000)] == ["░░░░", "░░░░", "██░░", "███░", "████"]
    assert bar(0, 0, 2) == "██"


def test_lines_are_as_wide_as_the_terminal_also_in_wide_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrapped("one two\nthree\n", "  ") == ["  one two", "  three"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert wrapped("the quick brown fox jumps over", "  ") == ["  the quick brown fox", "  jumps over"]
    from rich.cells import cell_len

    assert all(cell_len(line) <= 24 for line in wrapped("我的猫叫艾达今年四岁" * 5, "  "))


def test_styles_do_not_change_what_is_said() -> None:
    from offbook.cli.recall import _head

    assert "user" in click.unstyle(_head(entry(1, "x"), names_agents=False, is_best=False))
