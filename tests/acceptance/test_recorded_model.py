"""What a large model answered about our own conversations, replayed through the real endpoint code: one call for each
stretch gives its summary, its lessons and what takes the place of what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.memory.recorded import (
    CONVERSATIONS,
    Recording,
    Replay,
    conversations,
    made_of,
    recordings,
    serving,
)

from offbook.context.span_answer import grounded, read_answer
from offbook.context.summary_checks import faults

RECORDED = recordings()
REPLAYED = "m1-2", "w1-1"
"""Chinese, and agent work with tools."""
FEWEST = 40
_LINE = re.compile(r"^\[(\d+)\] (.*?)(?=^\[\d+\] |\Z)", re.MULTILINE | re.DOTALL)
_KNOWN = re.compile(r"^(lesson-\d+): ", re.MULTILINE)


def asked(one: Recording) -> tuple[dict[int, str], set[str], bool]:
    """The lines that the model was shown, the names of what it knew, and whether statements were asked for."""
    text = "\n".join(message["content"] for message in one.request["messages"])
    lines = {int(number): said for number, said in _LINE.findall(text)}  # with the speaker's name
    return lines, set(_KNOWN.findall(text)), '"statements"' in text


def test_there_are_enough_and_they_are_answers_of_an_endpoint() -> None:
    assert len(RECORDED) >= FEWEST
    assert {one.conversation for one in RECORDED.values()} == set(CONVERSATIONS)
    for one in RECORDED.values():
        assert one.response["object"] == "chat.completion"
        assert one.response["choices"][0]["message"]["content"]


def test_nearly_all_that_it_said_is_borne_out_by_its_lines() -> None:
    said = kept = 0
    for key, one in RECORDED.items():
        lines, known, is_asked = asked(one)
        if not is_asked:
            continue
        answer = read_answer(one.response["choices"][0]["message"]["content"])
        chars = sum(map(len, lines.values()))
        assert faults(answer.summary, source_chars=chars, identifiers=[], max_tokens=2_000) == [], key
        said += len(answer.statements)
        kept += len(grounded(answer.statements, lines, known))
    assert said > 2 * FEWEST
    assert kept >= 0.85 * said, f"{kept} of {said}"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", REPLAYED)
async def test_replayed_it_makes_summaries_lessons_and_a_page(name: str, tmp_path: Path) -> None:
    with serving(replay := Replay(name, RECORDED)) as endpoint:
        made = await made_of(conversations()[name], tmp_path, endpoint)
    assert replay.asked == sum(one.conversation == name for one in RECORDED.values())
    assert {one.draft.summarizer for one in made.summaries} == {"openai:recorded"}
    by_model = [one for one in made.lessons if one.learnt_by == "openai:recorded"]
    assert len(by_model) >= 5
    holding = {one.text for one in by_model if one.replaced_by is None}
    assert sum(text in made.page for text in holding) >= 5
