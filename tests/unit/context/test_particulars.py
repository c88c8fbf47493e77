from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from offbook.context.particulars import LONGEST_SENTENCE_CHARS, Particular, missing, particulars


def found(text: str, kind: str) -> list[str]:
    return [one.text for one in particulars(text) if one.kind == kind]


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        ("see https://example.com/a?b=1, please", "https://example.com/a?b=1"),
        ("mail ada@example.com today", "ada@example.com"),
        ("run 7c9e6679-7425-40de-944b-e07fc1f90ae7 failed", "7c9e6679-7425-40de-944b-e07fc1f90ae7"),
        ("at commit 3f2a9c1 of main", "3f2a9c1"),
        ("edit src/app/main.py now", "src/app/main.py"),
        ("look in /etc/hosts first", "/etc/hosts"),
        ("in C:\\Users\\ada\\notes.txt it says", "C:\\Users\\ada\\notes.txt"),
        ("call getUserName there", "getUserName"),
        ("the field user_name is empty", "user_name"),
        ("set OFFBOOK_HOME first", "OFFBOOK_HOME"),
        ("fixed in ABC-123 already", "ABC-123"),
        ("it needs v2.1.0 at least", "v2.1.0"),
        ("it needs 15.2.1 at least", "15.2.1"),
        ("stop pid 4242 now", "pid 4242"),
        ("listens on port 8080 there", "port 8080"),
        ("at 10.0.0.1:53 there", "10.0.0.1:53"),
        ("with --dry-run it works", "--dry-run"),
        ("ask @ada about it", "@ada"),
    ],
)
def test_identifiers(text: str, identifier: str) -> None:
    assert identifier in found(text, "identifier")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("it costs $1,200.50 a month", "$1,200.50"),
        ("it has 12 GB of memory", "12 GB"),
        ("up by 45% since", "45%"),
        ("we need 3 people", "3 people"),
    ],
)
def test_numbers_come_with_their_units(text: str, number: str) -> None:
    assert number in found(text, "number")


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("due 2023-05-08 at the latest", "2023-05-08"),
        ("due on 8 May 2023 at the latest", "8 May 2023"),
        ("due on May 8th, 2023 at the latest", "May 8th, 2023"),
        ("call at 10:30am then", "10:30am"),
        ("see you on Friday then", "Friday"),
        ("会议在2023年5月8日举行", "2023年5月8日"),
    ],
)
def test_dates_and_times(text: str, date: str) -> None:
    assert date in found(text, "date")


def test_names_are_told_from_beginnings_of_sentences() -> None:
    text = "Painting is fun. We met Anna Maria von Braun in Berlin. Thanks, Bob!"
    assert found(text, "name") == ["Anna Maria von Braun", "Berlin", "Bob"]
    assert "東京" in found("新しい「東京」計画", "name")
    assert "München" in found("wir ziehen nach München um", "name")


def test_what_is_asked_decided_and_corrected_is_kept_as_a_sentence() -> None:
    text = "We decided to use Postgres. Actually, it is port 5433. Can you call Bob? 我们决定使用方案二。"
    assert found(text, "decision") == ["We decided to use Postgres.", "我们决定使用方案二。"]
    assert found(text, "correction") == ["Actually, it is port 5433."]
    assert found(text, "question") == ["Can you call Bob?"]


def test_a_long_question_is_bounded() -> None:
    (question,) = found("is it " + "so " * 200 + "late?", "question")
    assert len(question) == LONGEST_SENTENCE_CHARS


def test_each_is_found_once_and_in_order() -> None:
    assert particulars("use user_name, then 12 GB, then user_name") == [
        Particular("identifier", "user_name"),
        Particular("number", "12 GB"),
    ]


def test_what_a_shorter_text_no_longer_holds_is_missing() -> None:
    said = particulars("We decided to move to Berlin. On 2023-05-08 it has 12 GB in /srv/data, or 5 people. Is Bob in?")
    kept = "[8 May 2023] They: decided move Berlin; 12GB; 15 people"
    assert [one.text for one in missing(said, kept)] == ["/srv/data", "5 people", "Is Bob in?", "Bob"]


@given(st.text())
def test_nothing_is_missing_from_the_text_itself(text: str) -> None:
    assert missing(particulars(text), text) == []


@given(st.text(alphabet="Aa1.,:/-_@?! \n「」é", max_size=300))
@example("A1.1")
@example("a12.3.4 é1.22")
def test_nothing_is_missing_from_junk_itself(text: str) -> None:
    assert missing(particulars(text), text) == []


@pytest.mark.parametrize("junk", ["a", "1,", "/a", "A ", "a@", "-", "_", "a.", "「", "0"])
def test_long_junk_is_no_trouble(junk: str) -> None:
    assert len(particulars(junk * 500_000)) < 10
