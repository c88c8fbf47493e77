from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from offbook.model.content import text_of
from offbook.model.types import LoggedMessage
from offbook.models.tokens import estimate_tokens
from offbook.projections.lesson_prompt import grounded_in, lessons_prompt
from tests.unit.rules.lessons.lessons import placed, said

MESSAGES = [
    placed("I prefer tabs over spaces in the parser.", 1).logged,
    placed("Fine, tabs it is.", 2, role="assistant").logged,
    placed("Anna leads the Kestrel project from Graz.", 3).logged,
    placed("ls -la\nreport-2026.pdf", 4, role="tool").logged,
    placed("HEARTBEAT_OK", 5, noise="heartbeat").logged,
]


def line(text: str, seqs: list[int], **fields: Any) -> str:
    return json.dumps({"kind": "fact", "text": text, "seqs": seqs, **fields}, ensure_ascii=False)


def texts(answer: str, messages: list[LoggedMessage] = MESSAGES) -> list[str]:
    return [one.proposed.text for one in grounded_in(answer, messages)]


def test_what_names_its_messages_and_is_in_their_words_is_taken() -> None:
    answer = "\n".join(
        [line("They prefer tabs over spaces.", [1], kind="preference"), line("Anna leads the Kestrel project.", [3])]
    )
    first, second = grounded_in(answer, MESSAGES)
    assert first.key == said("I prefer tabs over spaces.")[0].key, "what the rules read is the same lesson"
    assert (second.proposed.text, second.seqs) == ("Anna leads the Kestrel project.", [3])


def test_what_is_not_there_is_dropped() -> None:
    assert texts(line("They prefer tabs over spaces.", [99])) == [], "no such message"
    assert texts(line("They prefer tabs over spaces.", [4])) == [], "what a tool gave"
    assert texts(line("They prefer tabs over spaces.", [5])) == [], "noise"
    assert texts(line("They prefer tabs over spaces.", [])) == []
    assert texts(line("They own a yacht in Monaco.", [1])) == [], "invented"
    assert texts(line("Berta leads the Kestrel project.", [3])) == [], "another name"
    assert texts(line("Anna leads 12 Kestrel projects from Graz.", [3])) == [], "a number that nobody said"
    assert texts(line("They don't prefer tabs over spaces.", [1])) == [], "the opposite"
    assert texts(line("Anna leads the Kestrel project.", [3], kind="rumour")) == []
    assert texts("There is nothing here that lasts.") == []
    assert texts("[1, 2, {") == []


def test_the_prompt_shows_what_was_said_in_person_by_number() -> None:
    (message,) = lessons_prompt("main", MESSAGES, 100_000).messages
    shown = text_of(message.content)
    assert "[1] they: I prefer tabs over spaces in the parser." in shown
    assert "[2] I: Fine, tabs it is." in shown
    assert "report-2026" not in shown
    assert "HEARTBEAT" not in shown


def test_a_stretch_that_is_too_long_is_shown_in_part_and_paid_for_once() -> None:
    long = [placed(f"word {seq} " * 400, seq).logged for seq in range(1, 30)]
    whole, part = lessons_prompt("main", long, 10**9), lessons_prompt("main", long, 8_000)
    assert estimate_tokens(text_of(part.messages[0].content)) <= 8_000
    assert whole.source == part.source
    assert whole.source != lessons_prompt("main", long[1:], 10**9).source


@given(st.text(max_size=400), st.lists(st.integers(), max_size=4))
def test_whatever_is_answered_nothing_breaks(text: str, seqs: list[int]) -> None:
    texts(text)
    for one in grounded_in(line(text, seqs), MESSAGES):
        assert set(one.seqs) <= {1, 2, 3}
