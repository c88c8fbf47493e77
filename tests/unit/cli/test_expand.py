from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from offbook.model.errors import ProviderRefused
from offbook.model.summary import Expansion, SourceLine, SourceSpan
from offbook.model.types import Message
from tests.unit.cli.answering import Answering
from tests.unit.cli.conftest import Run

AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def lines(*seqs: int, session: str = "chat") -> list[SourceLine]:
    return [
        SourceLine(
            session_id=session, seq=seq, received_at=AT, message=Message(role="user", content=f"words {seq}", ts=AT)
        )
        for seq in seqs
    ]


def expansion(messages: list[SourceLine], **fields: Any) -> Expansion:
    spans = [SourceSpan(session_id=name, first_seq=1, last_seq=9) for name in {one.session_id: 0 for one in messages}]
    return Expansion(spans=fields.pop("spans", spans), messages=messages, **fields)


def test_the_messages_are_shown_as_the_log_shows_them(run: Run, provider: Answering) -> None:
    provider.with_answers("expand", expansion(lines(12, 13), summary_id="L1-0003"))
    day, first, second = run("expand", "l1-0003").stdout.splitlines()
    assert day == "── Saturday, 31 January 2026 ──"
    assert first.endswith("#12    user       words 12")
    assert second.endswith("#13    user       words 13")
    assert provider.bodies("expand") == [{"summaryId": "L1-0003", "limit": 200}]


def test_a_lesson_is_expanded_to_what_says_it(run: Run, provider: Answering) -> None:
    provider.with_answers("expand", expansion(lines(4), summary_id="lesson-0007"))
    assert run("expand", "Lesson-0007").stdout.endswith("words 4\n")
    assert provider.bodies("expand") == [{"summaryId": "lesson-0007", "limit": 200}]


def test_every_page_is_shown(run: Run, provider: Answering) -> None:
    pages = [expansion(lines(1, 2), next="0:2"), expansion([], next="0:5"), expansion(lines(6))]
    provider.with_answers("expand", *pages)
    result = run("expand", "L1-0003", "--json", "--agent", "x")
    assert [json.loads(line)["seq"] for line in result.stdout.splitlines()] == [1, 2, 6]
    assert [body.get("after") for body in provider.bodies("expand")] == [None, "0:2", "0:5"]
    assert all(body["agentId"] == "x" for body in provider.bodies("expand"))


def test_no_more_is_shown_than_asked_for_and_it_says_so(run: Run, provider: Answering) -> None:
    provider.with_answers("expand", expansion(lines(1, 2), next="0:2"), expansion(lines(3), next="0:3"))
    result = run("expand", "L1-0003", "--limit", "3")
    assert [body["limit"] for body in provider.bodies("expand")] == [3, 1]
    assert result.stderr == "3 messages shown, and there are more: raise --limit\n"


def test_a_stretch_is_expanded_by_its_numbers(run: Run, provider: Answering) -> None:
    provider.with_answers("expand", expansion(lines(12)))
    run("expand", "--session", "chat", "--from", "12", "--to", "30")
    run("expand", "--session", "chat", "--from", "12")
    spans = [body["span"] for body in provider.bodies("expand")]
    assert spans[0] == {"sessionId": "chat", "firstSeq": 12, "lastSeq": 30}
    assert spans[1] == {"sessionId": "chat", "firstSeq": 12, "lastSeq": 12}


def test_where_there_are_several_sessions_each_is_named(run: Run, provider: Answering) -> None:
    both = [*lines(1, 2, session="one"), *lines(1, session="two")]
    provider.with_answers("expand", expansion(both))
    output = run("expand", "L2-0001").stdout
    assert output.count("── session one ──") == output.count("── session two ──") == 1
    assert "session" not in run("expand", "L2-0001", "--json").stdout.replace('"sessionId"', "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "`offbook inspect` lists them"),
        (["--session", "chat"], "--from SEQ"),
        (["--from", "1", "--to", "2"], "--session S"),
        (["--session", "chat", "--from", "9", "--to", "2"], "--to 2 is before --from 9"),
        (["L1-0001", "--session", "chat"], "leave out --session"),
        (["chat"], "is no id such as L1-0003"),
        (["L1-1"], "is no id such as L1-0003"),
    ],
)
def test_what_is_meant_is_said_and_said_once(arguments: list[str], told: str, run: Run, provider: Answering) -> None:
    result = run("expand", *arguments)
    assert (result.exit_code, provider.asked) == (2, [])
    assert told in " ".join(result.stderr.split())


def test_nothing_there_says_where_to_look(run: Run, provider: Answering) -> None:
    provider.with_answers("expand", expansion([], spans=[SourceSpan(session_id="chat", first_seq=99, last_seq=99)]))
    result = run("expand", "--session", "chat", "--from", "99")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "`offbook log` lists the sessions" in result.stderr


def test_a_summary_that_is_not_there_is_one_line(run: Run, provider: Answering) -> None:
    refusal = {
        "type": "urn:offbook:problem:not-found",
        "title": "Not there.",
        "status": 404,
        "detail": "there is no summary",
    }
    provider.with_answers("expand", ProviderRefused(refusal))
    result = run("expand", "L1-9999")
    assert (result.exit_code, result.stderr) == (1, "offbook: Not there. there is no summary\n")


def test_a_provider_that_goes_round_in_circles_is_left(run: Run, provider: Answering) -> None:
    provider.with_answers("expand", expansion(lines(1), next="0:1"))
    result = run("expand", "L1-0003")
    assert (result.exit_code, "again" in result.stderr) == (1, True)
