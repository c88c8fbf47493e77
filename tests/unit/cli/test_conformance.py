"""What `offbook conformance` says in the end, and how checks are chosen. `tests/contract` asks real providers."""

from __future__ import annotations

import pytest

from offbook.cli import conformance
from offbook.cli.conformance import format_verdict
from offbook.contrib.conformance import CHECKS, Report, Result
from offbook.contrib.conformance.check import Outcome
from tests.unit.cli.conftest import Run


def result(check: str, promise: int, outcome: Outcome, detail: str = "") -> Result:
    return Result(check=check, promise=promise, holds="It holds.", outcome=outcome, detail=detail, seconds=0.1)


def told(*results: Result) -> list[str]:
    return format_verdict(Report(endpoint="http://x:1", agent_id="conformance-1", results=list(results), seconds=1.25))[
        1:
    ]


def test_all_is_well_in_one_line() -> None:
    assert told(result("a", 0, "passed")) == ["http://x:1: 1 check passed, 0 failed, 0 not offered, in 1.2 s"]


def test_what_failed_is_named_by_promise_and_what_was_not_checked_with_its_reason() -> None:
    assert told(
        result("a", 0, "passed"),
        result("b", 1, "failed", "expected 1"),
        result("c", 1, "failed"),
        result("d", 6, "failed"),
        result("e", 4, "not offered", "recall is not offered"),
        result("f", 5, "not offered", "recall is not offered"),
        result("g", 7, "not offered", "over a socket\x1b there is no Host"),
    )[1:] == [
        "Promise 1 is not kept, in 2 checks: b, c",
        "Promise 6 is not kept, in 1 check: d",
        "Not checked: recall is not offered (2 checks)",
        "Not checked: over a socket\\u001b there is no Host (1 check)",
    ]


def test_where_nothing_passes_it_is_asked_whether_that_is_a_provider() -> None:
    failed = [result(name, 0, "failed") for name in "abcdefghij"]
    assert "is http://x:1 a memory provider?" in told(*failed)[-1]
    assert "provider?" not in told(*failed, result("k", 0, "passed"))[-1]
    assert "provider?" not in told(failed[0])[-1]  # it alone was asked for
    assert told(*failed)[1].endswith(": a, b, c, d, e, f, g, h, and 2 more")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--check", "receipts-cuont"), "Did you mean 'receipts-count'?"),
        (("--check", "../x"), "there is no check '../x'"),
        (("--only", "8"), "8 is not in the range"),
    ],
)
def test_a_check_that_there_is_not(run: Run, arguments: tuple[str, ...], said: str) -> None:
    answer = run("conformance", "http://127.0.0.1:1", *arguments)
    assert answer.exit_code == 2
    assert said in answer.output


def test_the_example_of_the_help_is_a_check() -> None:
    assert "receipts-count" in {check.id for check in CHECKS}


@pytest.mark.parametrize("more", [(), ("--json",), ("--only", "1")])
def test_the_provider_in_use_is_not_written_to_unasked(run: Run, more: tuple[str, ...]) -> None:
    answer = run("conformance", *more)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "the provider in use" in answer.stderr
    assert "--yes" in answer.stderr
    for named in (("--yes",), ("--home", "nowhere"), ("http://127.0.0.1:1",)):
        assert run("conformance", *more, *named).exit_code == 3  # nobody there, which is as far as it goes here


@pytest.mark.parametrize(("said", "status"), [("y\n", 3), ("n\n", 1), ("\n", 1)])
def test_at_a_terminal_it_is_asked(run: Run, monkeypatch: pytest.MonkeyPatch, said: str, status: int) -> None:
    stdin = type("", (), {"isatty": staticmethod(lambda: True)})
    monkeypatch.setattr(conformance, "sys", type("", (), {"stdin": stdin}))
    answer = run("conformance", input=said)
    assert answer.exit_code == status
    assert "Go on? [y/N]" in answer.stderr


def test_an_empty_token_is_not_the_owners(run: Run) -> None:
    answer = run("conformance", "http://127.0.0.1:1", "--token", "")
    assert (answer.exit_code, answer.stdout) == (2, "")


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://", "http://x:port", ""])
def test_what_is_no_url_is_a_slip_of_the_keyboard(run: Run, url: str) -> None:
    answer = run("conformance", url)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "Invalid value for '[URL]'" in answer.stderr


def test_nobody_answers(run: Run) -> None:
    answer = run("conformance", "http://127.0.0.1:1")
    assert (answer.exit_code, answer.stdout) == (3, "")
    assert answer.stderr.startswith("offbook: nobody answers at http://127.0.0.1:1")
