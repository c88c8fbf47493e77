"""What the user keeps returning to: names and rare words, counted by turns (D4)."""

from __future__ import annotations

import msgspec
import pytest

from offbook.model.settings.sections import TopicTracking
from offbook.model.turn import Topic
from offbook.statements.common_words import is_common
from offbook.statements.topics import MAX_TOPICS, TopicState, advanced, merged, topics_of
from tests.unit.statements.told import AT, turns

SETTINGS = TopicTracking()


def told(*said: tuple[str, str]) -> dict[str, Topic]:
    state = advanced(TopicState(), turns(*said), SETTINGS)
    return {one.label: one for one in topics_of(state, SETTINGS)}


@pytest.mark.parametrize(
    ("said", "label"),
    [
        (("The vineyard needs pruning.", "How is the vineyard doing?", "Our vineyard got hail."), "vineyard"),
        (("I met Ophelia Quint today.", "What did Ophelia say?", "Tell Ophelia Quint about it."), "Ophelia Quint"),
        (("Unser Akkordeon ist kaputt.", "Wer repariert ein Akkordeon?", "Das Akkordeon klingt."), "Akkordeon"),
        (("我想学手风琴。", "手风琴的老师在哪里？", "手风琴很难。"), "手风琴"),
    ],
)
def test_what_three_of_six_turns_speak_of_is_a_fixation(said: tuple[str, ...], label: str) -> None:
    topic = told(*(("user", one) for one in said))[label]
    assert topic.is_fixated
    assert (topic.total, topic.freshness) == (3, 1.0)


def test_what_they_left_is_stale_and_fades_by_half_a_turn() -> None:
    others = [("user", f"The {word} is on the table now.") for word in ("kettle", "ladle", "whisk", "sieve", "tongs")]
    said = [("user", "The vineyard needs pruning."), ("user", "Our vineyard got hail.")]
    spoken = told(*said, ("assistant", "The vineyard will recover."), *others)["vineyard"]
    assert (spoken.is_stale, spoken.freshness) == (False, 0.5**5)
    assert told(*said, ("assistant", "The vineyard will recover."), *others, *others)["vineyard"].is_stale


def test_what_is_said_in_passing_and_what_everybody_says_is_no_topic() -> None:
    assert told(("user", "Could you please think about it again tomorrow?")) == {}
    assert told(("user", "The kettle is on the table."), ("user", "Please think about it tomorrow.")) == {}
    assert is_common("please")
    assert is_common("nicht")
    assert not is_common("vineyard")


def test_neither_tools_nor_the_agent_speak_of_a_topic() -> None:
    state = advanced(TopicState(), turns(*[("assistant", "The vineyard needs pruning.")] * 3), SETTINGS)
    assert (state.turns, state.topics) == (0, [])


def test_over_sessions_what_two_speak_of_is_one_topic() -> None:
    sessions = [
        advanced(TopicState(), turns(("user", f"My sister's {word} is on the 12th of June.")), SETTINGS)
        for word in ("vineyard", "vineyard party", "vineyard again")
    ]
    assert "vineyard" not in {one.label for one in topics_of(sessions[0], SETTINGS)}
    topic = next(one for one in merged(sessions, SETTINGS, AT) if one.label == "vineyard")
    assert (topic.sessions, topic.total, topic.is_fixated) == (3, 3, True)


def test_it_goes_on_where_it_was_and_stays_small() -> None:
    said = turns(*(("user", f"The {word}fish of Ophelia{number} swam.") for number, word in enumerate(_words())))
    state = TopicState()
    for turn in [said[0], *said]:
        state = advanced(msgspec.json.decode(msgspec.json.encode(state), type=TopicState), [turn], SETTINGS)
    assert state == advanced(TopicState(), said, SETTINGS)
    assert len(state.topics) <= MAX_TOPICS
    assert len(msgspec.json.encode(state)) < 20_000


def _words() -> list[str]:
    return [f"{first}{second}zor" for first in "bcdfghklm" for second in "aeiouy"] * 2
