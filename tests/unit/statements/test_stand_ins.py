"""Where a large part of a message is kept outside the log, what stands in its place says nothing of what it is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.digest import SpokenMessage, analyse, digest, written
from offbook.context.pending_messages import said_text
from offbook.model.content import own_text, without_stand_ins
from offbook.model.large_parts import beginning, externalise
from offbook.model.settings.sections import Anchors, TopicTracking
from offbook.model.types import Block, Content, Message
from offbook.statements.anchors import AnchorState
from offbook.statements.anchors import advanced as with_anchors
from offbook.statements.exchanges import calls_of, results_of, strings_in
from offbook.statements.state import WorkingState
from offbook.statements.state import advanced as with_state
from offbook.statements.topics import TopicState, topics_of
from offbook.statements.topics import advanced as with_topics
from offbook.statements.turns import Turn, read_turn
from offbook.statements.words import words_of
from tests.unit.statements.said import DATABASE, said
from tests.unit.statements.told import AT

OUR_WORDS = {"characters", "character", "sha256", "outside", "log", "beginning", "kept"}


def outside(content: Content, over_chars: int = 1_000) -> Content:
    left, moved = externalise(content, over_chars)
    assert moved
    return left


def turn(content: Content, seq: int = 1) -> Turn:
    return read_turn(seq, AT, Message(role="user", content=outside(content)), is_noise=False)


STUCK = "The problem with the oven in the bakery is still there."
LONG = "Please review the vineyard contract with Ophelia Quint. " + "grapes " * 500


def test_it_is_no_topic() -> None:
    settings = TopicTracking()
    blocks: list[Block] = [{"type": "text", "text": f"{LONG} {number}"} for number in range(40)]
    for content in (LONG, blocks):
        turns = [turn(content, seq) for seq in (1, 2, 3)]
        labels = {one.label for one in topics_of(with_topics(TopicState(), turns, settings), settings)}
        assert "Ophelia Quint" in labels
        assert not OUR_WORDS & {word for label in labels for word in label.split()}


def test_it_is_in_no_anchor_and_no_goal() -> None:
    anchored = with_anchors(AnchorState(), [turn(f"{STUCK} " + "grapes " * 500)], Anchors())
    assert [one.text for one in anchored.kept] == [STUCK]
    state = with_state(WorkingState(), [turn(LONG)])
    (goal,) = [one.text for one in state.records if one.kind == "goal"]
    assert goal.startswith("Please review the vineyard contract with Ophelia Quint.")


def test_no_lesson_is_read_in_it() -> None:
    left = outside(f"{DATABASE} " + "Word soup and noise. " * 200)
    assert [one.text for one in said("", content=left)] == [DATABASE]


def test_it_is_neither_in_what_a_tool_gave_nor_in_what_it_was_given() -> None:
    gave = Message(role="tool", tool_call_id="c1", content=outside("Server running with pid 4242. " + "x " * 900))
    assert results_of(gave)[0].text.lstrip().startswith("Server running with pid 4242.")
    block: Block = {"type": "tool-result", "toolCallId": "c1", "content": outside("Server running. " + "x " * 900)}
    assert results_of(Message(role="user", content=[block]))[0].text.lstrip().startswith("Server running.")
    asked: Block = {"type": "tool-call", "id": "c1", "name": "exec", "arguments": {"command": "make deploy; " * 200}}
    (call,) = calls_of(Message(role="assistant", content=outside([asked])))
    assert [text.lstrip()[:12] for _, text in strings_in(call.arguments)] == ["make deploy;"]


def test_it_is_in_no_digest() -> None:
    message = Message(role="user", content=outside(LONG))
    told = written(digest([analyse(SpokenMessage(1, "They", said_text(message), AT))]), 400).text
    assert "Ophelia Quint" in told
    assert not OUR_WORDS & set(words_of(told))


@pytest.mark.parametrize(
    "text",
    [
        "We kept 3,000 bytes outside.",
        "[1,000 characters kept outside the log, sha256 unknown]",
        "[a log] sha256 is slow",
    ],
)
def test_what_somebody_said_is_no_stand_in(text: str) -> None:
    assert without_stand_ins(text) == text


@given(st.text(min_size=60, max_size=900), st.text(max_size=40))
def test_of_a_large_part_the_beginning_is_left(large: str, small: str) -> None:
    left, moved = externalise([{"type": "text", "text": large}, {"type": "text", "text": small}], 50)
    assert moved
    # What somebody said may itself look like one; what is left never does.
    assert own_text(left).split() == f"{beginning(large, 400)}\n{small}".split()


def test_the_stand_in_of_a_binary_goes_as_a_whole() -> None:
    picture: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 900}}
    left, _ = externalise([picture], 100_000)
    assert isinstance(left, list)
    assert "kept outside the log" in left[0]["source"]["data"]
    assert without_stand_ins(left[0]["source"]["data"]) == ""
