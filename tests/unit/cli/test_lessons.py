from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from offbook.model.errors import NotFound, ProviderRefused
from offbook.model.lesson import Lesson, LessonPage, LessonSource, lesson_id
from tests.unit.cli.answering import Answering
from tests.unit.cli.conftest import Run

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NAME = "O'Neill 海"


def lesson(number: int, **fields: Any) -> Lesson:
    given = {
        "kind": "preference",
        "text": "They prefer tea.",
        "status": "learnt",
        "confidence": 0.756,
        "first_seen": datetime.now(UTC) - timedelta(days=3),
        "last_seen": datetime.now(UTC) - timedelta(hours=2),
        "times": 1_234,
        "sources": [LessonSource(session_id="chat", seq=12, at=NOON)],
        "learnt_by": "rules",
    } | fields
    return Lesson(id=lesson_id(number), agent_id="main", **given)


def page(*lessons: Lesson, **fields: Any) -> LessonPage:
    return LessonPage(**{"agent_id": "main", "lessons": list(lessons), "counts": {"learnt": len(lessons)}, **fields})


@pytest.fixture(autouse=True)
def one(provider: Answering) -> None:
    provider.with_answers("lessons", page(lesson(3)))
    provider.with_answers("lessons/judge", lesson(3, status="accepted"))


# ── the list ──


def test_a_lesson_is_shown_with_how_sure_it_is_and_when_it_was_said(run: Run, provider: Answering) -> None:
    provider.with_answers(
        "lessons",
        page(lesson(3), lesson(2, replaced_by="lesson-0003"), counts={"learnt": 2, "rejected": 1, "accepted": 1_000}),
    )
    output = run("lessons").stdout
    head, first, second, total = output.splitlines()
    assert head.split() == ["id", "kind", "status", "confidence", "first", "last", "times", "what", "was", "learnt"]
    assert first.split("  ")[0] == "lesson-0003"
    for told in ("preference", "learnt", "76 %", "3 days ago", "2 hours ago", "1,234", "They prefer tea."):
        assert told in first, told
    assert "learnt, now lesson-0003" in second
    assert total == "1,003 lessons in all: 2 learnt, 1,000 accepted, 1 rejected"
    assert provider.bodies("lessons") == [{"limit": 50}]


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["ada"], {"agentId": "ada"}),
        (["--agent", "ada"], {"agentId": "ada"}),
        (["--agent", "accept"], {"agentId": "accept"}),
        (["--agent=accept"], {"agentId": "accept"}),
        (["list", "accept"], {"agentId": "accept"}),
        (["--", "accept"], {"agentId": "accept"}),
        (["--kind", "fact", "ada"], {"agentId": "ada", "kind": "fact"}),
        (["ada", "--kind", "fact", "-n", "7"], {"agentId": "ada", "kind": "fact", "limit": 7}),
        (["--status", "learnt", "--status", "edited"], {"status": ["learnt", "edited"]}),
        (["--json", "ada"], {"agentId": "ada"}),
        (["你好 👋"], {"agentId": "你好 👋"}),
    ],
)
def test_who_and_which_are_meant(run: Run, provider: Answering, arguments: list[str], body: dict[str, Any]) -> None:
    assert run("lessons", *arguments).exit_code == 0
    assert provider.asked == [("lessons", {"limit": 50} | body)]


@pytest.mark.parametrize(
    "arguments",
    [["accept", "3"], ["--agent", "ada", "accept", "3"], ["--json", "--agent=ada", "accept", "3"]],
)
def test_a_command_is_a_command_wherever_options_stand(run: Run, provider: Answering, arguments: list[str]) -> None:
    assert run("lessons", *arguments).exit_code == 0
    ((verb, body),) = provider.asked
    assert (verb, body["lessonId"], body["verdict"]) == ("lessons/judge", "lesson-0003", "accept")
    assert body.get("agentId") == ("ada" if len(arguments) > 2 else None)


def test_every_page_is_fetched_until_there_are_enough(run: Run, provider: Answering) -> None:
    pages = [
        page(*[lesson(number) for number in range(150, 50, -1)], next="lesson-0051", counts={"learnt": 150}),
        page(*[lesson(number) for number in range(50, 30, -1)], next="lesson-0031", counts={"learnt": 150}),
    ]
    provider.with_answers("lessons", *pages)
    answer = run("lessons", "-n", "120")
    assert len(answer.stdout.splitlines()) == 122
    assert "120 shown: --limit N shows more" in answer.stderr
    assert provider.bodies("lessons") == [{"limit": 100}, {"before": "lesson-0051", "limit": 20}]


def test_a_provider_that_goes_round_in_circles_is_left(run: Run, provider: Answering) -> None:
    provider.with_answers("lessons", page(lesson(3), next="lesson-0003"))
    answer = run("lessons")
    assert answer.exit_code == 1
    assert "before lesson-0003 again" in answer.stderr


def test_as_json(run: Run, provider: Answering) -> None:
    provider.with_answers("lessons", page(lesson(3), next="lesson-0003"))
    document = json.loads(run("lessons", "--json", "-n", "1").stdout)
    assert (document["agentId"], document["counts"], document["next"]) == ("main", {"learnt": 1}, "lesson-0003")
    assert [each["id"] for each in document["lessons"]] == ["lesson-0003"]


def test_where_there_is_none_it_says_what_to_do(run: Run, provider: Answering) -> None:
    provider.with_answers("lessons", page())
    answer = run("lessons")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert "`offbook maintain --agent main`" in answer.stderr
    provider.with_answers("lessons", page(counts={"learnt": 2}))
    assert "leave out --kind or --status" in run("lessons", "--kind", "fact").stderr


def test_what_was_learnt_does_not_steer_the_terminal(run: Run, provider: Answering) -> None:
    steering = lesson(3, text="\x1b[2J\u202e[bold]x\nsecond", about="\x1b[1m")
    provider.with_answers("lessons", page(steering))
    provider.with_answers("lessons/judge", steering)
    for arguments in (["lessons"], ["lessons", "show", "3"], ["lessons", "accept", "3"]):
        output = run(*arguments).stdout
        assert "\\u001b[2J\\u202e[bold]x" in output
        assert "\x1b" not in output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kind", "rumour"],
        ["--status", "forgotten"],
        ["-n", "0"],
        ["ada", "bea"],
        ["--agent", "ada", "bea"],
        ["accept"],
        ["reject", "L1-0003"],
        ["accept", "0"],
        ["accept", "lesson-٣"],
        ["accept", "lesson-0003", "../x"],
        ["edit"],
        ["edit", "3", "a", "b"],
        ["edit", "3", " "],
        ["edit", "3"],
        ["show"],
        ["show", "3", "4"],
    ],
)
def test_what_cannot_be_meant_asks_nobody(run: Run, provider: Answering, arguments: list[str]) -> None:
    answer = run("lessons", *arguments)
    assert answer.exit_code == 2, answer.output
    assert provider.asked == []


# ── one of them ──


def test_one_is_shown_with_where_it_was_said(run: Run, provider: Answering) -> None:
    sources = [
        LessonSource(session_id="chat", seq=12, at=NOON),
        LessonSource(session_id="it's; rm -rf", seq=3, at=NOON),
    ]
    shown = lesson(
        3, status="edited", times=4, sources=sources, about="Ada", learnt_text="They like tea.", first_seen=NOON
    )
    provider.with_answers("lessons", page(shown))
    output = run("lessons", "show", "LESSON-3", "--agent", "a b").stdout
    assert output.startswith("lesson-0003  preference, edited, about Ada\n  They prefer tea.\n")
    assert "  76 % sure · said 4 times, first 2026-01-31 " in output
    assert " · by rules\n  before it was edited: They like tea.\n" in output
    assert "  offbook expand --session chat --from 12 --agent 'a b'\n" in output
    assert """  offbook expand --session 'it'"'"'s; rm -rf' --from 3 --agent 'a b'\n""" in output
    assert output.endswith("  and 2 more times\n")
    assert provider.bodies("lessons") == [{"agentId": "a b", "before": "lesson-0004", "limit": 1}]


def test_one_is_shown_as_json(run: Run) -> None:
    document = json.loads(run("lessons", "show", "3", "--json").stdout)
    assert (document["id"], document["sources"][0]["seq"]) == ("lesson-0003", 12)


@pytest.mark.parametrize("found", [[], [lesson(2)]])
def test_one_that_is_not_there_is_named(run: Run, provider: Answering, found: list[Lesson]) -> None:
    provider.with_answers("lessons", page(*found))
    answer = run("lessons", "show", "3")
    assert answer.exit_code == 1
    assert "there is no lesson 'lesson-0003'" in answer.stderr
    assert "`offbook lessons` lists them" in answer.stderr


# ── judging ──


@pytest.mark.parametrize(("verdict", "done"), [("accept", "accepted"), ("reject", "rejected")])
def test_several_are_judged_each_once(run: Run, provider: Answering, verdict: str, done: str) -> None:
    answer = run("lessons", verdict, "lesson-0003", "7", "0003")
    assert answer.stdout.splitlines() == [f"{done} lesson-000{number}: They prefer tea." for number in (3, 7)]
    assert provider.bodies("lessons/judge") == [
        {"lessonId": f"lesson-000{number}", "verdict": verdict} for number in (3, 7)
    ]
    document = json.loads(run("lessons", verdict, "3", "7", "--json").stdout)
    assert [each["id"] for each in document["lessons"]] == ["lesson-0003", "lesson-0003"]


def test_those_before_the_one_that_is_not_there_are_judged_and_told(run: Run, provider: Answering) -> None:
    missing = ProviderRefused(NotFound("there is no lesson 'lesson-0007'").problem())
    provider.with_answers("lessons/judge", lesson(3), missing)
    answer = run("lessons", "accept", "3", "7", "9")
    assert answer.exit_code == 1
    assert answer.stdout == "accepted lesson-0003: They prefer tea.\n"
    assert "lesson-0007" in answer.stderr


def test_an_edit_says_what_it_should_say(run: Run, provider: Answering) -> None:
    provider.with_answers("lessons/judge", lesson(3, text="Green tea. 你好 👋"))
    answer = run("lessons", "edit", "3", " Green tea. 你好 👋\n")
    assert answer.stdout == "edited lesson-0003: Green tea. 你好 👋\n"
    assert provider.bodies("lessons/judge") == [
        {"lessonId": "lesson-0003", "verdict": "edit", "text": "Green tea. 你好 👋"}
    ]


@pytest.mark.parametrize(
    ("written", "sent"),
    [("Green tea.\n", "Green tea."), (None, None), ("They prefer tea.\n\n", None)],
)
def test_without_a_text_the_editor_is_opened(
    run: Run, provider: Answering, monkeypatch: pytest.MonkeyPatch, written: str | None, sent: str | None
) -> None:
    opened: list[str] = []

    def edit(text: str, **_: object) -> str | None:
        opened.append(text)
        return written

    monkeypatch.setattr(click, "edit", edit)
    monkeypatch.setattr("offbook.cli.lessons.has_terminal", lambda: True)
    answer = run("lessons", "edit", "3")
    assert answer.exit_code == 0, answer.output
    assert opened == ["They prefer tea.\n"]
    assert [body["text"] for body in provider.bodies("lessons/judge")] == ([] if sent is None else [sent])
    assert ("nothing was changed" in answer.stderr) == (sent is None)


def test_an_editor_that_leaves_nothing_takes_nothing_away(
    run: Run, provider: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click, "edit", lambda *_, **__: "\n")
    monkeypatch.setattr("offbook.cli.lessons.has_terminal", lambda: True)
    answer = run("lessons", "edit", "3")
    assert answer.exit_code == 2
    assert "`offbook lessons reject lesson-0003`" in answer.stderr
    assert provider.bodies("lessons/judge") == []


# ── help ──


def test_help_shows_the_commands_and_examples(run: Run, provider: Answering) -> None:
    output = run("lessons", "--help").stdout
    assert "lessons [OPTIONS] [AGENT] | COMMAND" in output
    for told in ("Examples:", "  accept ", "  edit ", "  list ", "  reject ", "  show "):
        assert told in output
    for name in ("list", "show", "accept", "reject", "edit"):
        assert "Example" in run("lessons", name, "--help").stdout
    assert "--kind" in run("lessons", "ada", "--help").stdout
    assert provider.asked == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["edit", "1"], '`offbook lessons edit lesson-0001 "TEXT"'),
        (["edit", "1", " "], "`offbook lessons reject lesson-0001"),
        (["show", "1"], "`offbook lessons"),
    ],
)
def test_a_command_that_is_told_for_copying_names_the_agent(
    run: Run, provider: Answering, arguments: list[str], told: str
) -> None:
    """Without it, it would edit another agent's lesson."""
    provider.with_answers("lessons", page())
    answer = run("lessons", *arguments, "--agent", NAME)
    assert answer.exit_code != 0
    assert f"{told} --agent {shlex.quote(NAME)}`" in answer.stderr.replace("\n", " ")
