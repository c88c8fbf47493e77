"""What a message teaches, by the cases that were written before the rules and by what real chats are full of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.types import Message
from offbook.rules.lessons.reader import key_of, said_in, taught_by
from offbook.rules.lessons.voice import MAX_CHARS
from tests.places import DATA
from tests.unit.rules.lessons.lessons import DAY, NOON, placed, said

CASES = json.loads((DATA / "lessons_cases.json").read_text("utf-8"))
LEAST_FOUND, LEAST_OF_KIND, MOST_FALSE = 92, 92, 3
"""Measured: 96 of 97 found, all of the right kind, none of the 175 others taken for a lesson. The margin is for changes
of the rules that are better elsewhere."""


@pytest.mark.parametrize(
    ("text", "is_learnt"),
    [
        ("The meeting with 李雷 moved to Friday at 10:00.", False),
        ("The meeting with Priya moved to Friday at 10:00.", False),
        ("My appointment with Jürgen Grün is on 5 May.", False),
        ("The call about 手机 is at 10:00.", False),
        ("我的生日是5月5日。", True),
        ("My birthday is 5 May.", True),
    ],
)
def test_an_appointment_is_no_fact_whoever_it_is_with(text: str, is_learnt: bool) -> None:
    assert bool(said(text)) == is_learnt


def test_the_cases_that_were_written_before_the_rules() -> None:
    found = [[one.kind for one in said(case["text"])] for case in CASES["lessons"]]
    wrong = [text for text in CASES["others"] if said(text)]
    assert len(CASES["lessons"]) >= 60
    assert len(CASES["others"]) >= 120
    assert sum(map(bool, found)) >= LEAST_FOUND
    assert sum(case["kind"] in kinds for case, kinds in zip(CASES["lessons"], found, strict=True)) >= LEAST_OF_KIND
    assert len(wrong) <= MOST_FALSE, wrong


@pytest.mark.parametrize(
    ("name", "least_found", "most_false"),
    [("second", 42, 2), ("third", 41, 1)],  # measured: 44 of 50 and 1 of 76; 43 of 50 and none of 72
)
def test_the_cases_that_were_written_after_them(name: str, least_found: int, most_false: int) -> None:
    assert sum(bool(said(text)) for text in CASES[name]["lessons"]) >= least_found
    wrong = [text for text in CASES[name]["others"] if said(text)]
    assert len(wrong) <= most_false, wrong


@pytest.mark.parametrize(
    ("text", "kind", "learnt"),
    [
        ("I prefer tabs over spaces.", "preference", "They prefer tabs over spaces."),
        ("My sister Anna lives in Graz.", "fact", "Their sister Anna lives in Graz."),
        ("I'm allergic to peanuts.", "fact", "They are allergic to peanuts."),
        ("Please always answer in German.", "preference", "They asked me: “Please always answer in German.”"),
        ("btw, our database is Postgres 16", "fact", "Our database is Postgres 16."),
        ("我住在上海。", "fact", "They said: “我住在上海。”"),
        (
            "Bitte antworte mir immer auf Deutsch.",
            "preference",
            "They asked me: “Bitte antworte mir immer auf Deutsch.”",
        ),
        (
            "No, my daughter's name is Lena, not Lea.",
            "correction",
            "They corrected me: “My daughter's name is Lena, not Lea.”",
        ),
        ("I love tea, it keeps me calm.", "preference", "They love tea."),
    ],
)
def test_a_lesson_is_a_sentence_of_the_agents(text: str, kind: str, learnt: str) -> None:
    (one,) = said(text)
    assert (one.kind, one.text) == (kind, learnt)


def test_two_clauses_teach_two_things() -> None:
    assert [one.text for one in said("My name is Jonas and I work at Siemens in Leipzig.")] == [
        "Their name is Jonas.",
        "They work at Siemens in Leipzig.",
    ]


def test_steps_with_numbers_are_one_procedure() -> None:
    (one,) = said("Here is how we deploy:\n1. run make build\n2. copy the file to the server\n3. restart the worker")
    assert one.kind == "procedure"
    assert one.text == (
        "Here is how we deploy: 1. run make build; 2. copy the file to the server; 3. restart the worker."
    )


def test_a_list_of_names_is_no_procedure() -> None:
    assert said("Here are the steps we talked about:\n1. Mama Put's Eatery\n2. Buka de Luxe\n3. Jollof Palace") == []


@pytest.mark.parametrize(
    "text",
    [
        "Never give up!",
        "Always here to help!",
        "Stop asking and show me the outline.",
        "I love all those.",
        "I love seeing them play.",
        "I love to.",
        "The way to move forward is for you to find those three names and give them to me.",
        "When you have those times confirmed, update the database and show me the new list.",
        "We agreed to keep this momentum.",
        "I chose furniture that looks great and is comfy too.",
        "After we check that one, let's go with the setup.",
        "I know that you are an expert of summarization.",
        "Whenever you need help, just let me know.",
    ],
)
def test_what_real_chats_are_full_of_teaches_nothing(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    ("text", "learnt"),
    [
        ("Please remember: the gate code is 4711.", "The gate code is 4711."),
        ("remember that my wife is vegetarian", "Their wife is vegetarian."),
        ("记住：我女儿对花生过敏。", "They said: “我女儿对花生过敏。”"),
        ("Merk dir, dass der Müll dienstags abgeholt wird.", "They said: “Der Müll dienstags abgeholt wird.”"),
    ],
)
def test_what_they_ask_to_be_remembered_is_sure(text: str, learnt: str) -> None:
    (one,) = said(text)
    assert (one.text, one.strength) == (learnt, 0.8)
    assert said("Just remember, believe in yourself.") == said("Remember, staying positive helps.") == []
    assert said("Remember to buy milk.") == said("Remember that time we went fishing?") == []


def test_an_order_in_the_form_of_a_question_is_an_order() -> None:
    (one,) = said("Could you please always answer in German?")
    assert one.key == said("Please always answer in German.")[0].key
    assert said("Can you use metric units from now on?")[0].text == "They asked me: “From now on, use metric units.”"
    assert said("Can you always sort a list in place?") == []


def test_what_must_be_done_and_what_must_not_is_one_subject() -> None:
    keys = [said(text)[0].key for text in ("Always answer in German.", "Never answer in German.")]
    assert keys == ["rule answer german = yes", "rule answer german = no"]


@pytest.mark.parametrize(
    "text", ["The wifi password is hunter22.", "Remember that my PIN is 4711.", "我的密码是四七一一。"]
)
def test_a_secret_is_not_told_in_every_turn(text: str) -> None:
    assert said(text) == []


def test_what_is_to_be_written_is_not_so() -> None:
    assert said("Write a short bio. My name is Tom and I live in Graz.") == []
    assert said("Please translate this text: I live in Graz.") == []
    assert said("Fix this bug. From now on always run the tests first.") != []


def test_noise_and_what_was_forgotten_teach_nothing() -> None:
    assert said("I prefer tabs over spaces.", noise="heartbeat") == []
    assert said("I prefer tabs over spaces.", noise="forgotten") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "tool"},
        {"role": "system"},
        {"role": "assistant"},
        {"tool_call_id": "call-1"},
        {"origin": "web"},
    ],
)
def test_only_what_somebody_said_in_person_teaches(fields: dict[str, Any]) -> None:
    assert said("I prefer tabs over spaces.", **fields) == []


def test_what_another_memory_kept_is_read_in_its_own_words() -> None:
    (one,) = said("User prefers tabs over spaces", origin="memory:mem0")
    assert one.text == "They prefer tabs over spaces."
    assert one.key == said("I prefer tabs over spaces.")[0].key
    assert [one.text for one in said("User has two kids.\nUser is allergic to nuts.", origin="memory:mem0")] == [
        "They have two kids.",
        "They are allergic to nuts.",
    ]


@pytest.mark.parametrize(
    ("note", "text"),
    [
        ("User is vegetarian and likes pasta", "They are vegetarian and like pasta."),
        ("User works at Acme and never works on Fridays", "They work at Acme and never work on Fridays."),
        ("User likes tea and cookies", "They like tea and cookies."),
        ("User prefers snacks and drinks without sugar", "They prefer snacks and drinks without sugar."),
        ("User has a brother who cooks and likes pasta", "They have a brother who cooks and likes pasta."),
        ("User's cat is called Ada and likes fish", "Their cat is called Ada and likes fish."),
    ],
)
def test_every_verb_of_the_user_is_turned_and_no_other(note: str, text: str) -> None:
    (one,) = said(note, origin="memory:mem0")
    assert one.text == text


def test_what_the_agent_wrote_down_counts_a_little() -> None:
    (noted,) = said("Noted: you prefer tabs over spaces.", role="assistant")
    (told,) = said("I prefer tabs over spaces.")
    assert (noted.text, noted.key) == (told.text, told.key)
    assert noted.strength < told.strength
    (decided,) = said("Decided: we use Postgres for the archive.", role="assistant")
    assert (decided.kind, decided.text) == ("decision", "Decided: we use Postgres for the archive.")
    assert said("You prefer tabs over spaces, I think.", role="assistant") == []


def test_a_speaker_with_a_name_is_quoted_by_it() -> None:
    (one,) = said("I moved to Oslo last month.", name="Caroline")
    assert one.text == "Caroline said: “I moved to Oslo last month.”"
    assert one.key != said("I moved to Oslo last month.")[0].key


def test_the_same_in_the_same_words_has_the_same_key() -> None:
    assert said("I prefer tabs over spaces")[0].key == said("I prefer tabs to spaces!")[0].key
    assert said("We decided to use Rust for the parser.")[0].key == said("we decided to use Rust for the parser")[0].key


def test_a_lesson_in_the_agents_words_has_the_key_of_what_was_said() -> None:
    for text in ("I prefer tabs over spaces.", "My birthday is on 5 May.", "I love hiking in the Dolomites."):
        (one,) = said(text)
        assert key_of(one.kind, one.text) == one.key


def test_a_clock_that_is_ahead_does_not_make_it_later() -> None:
    message = placed("I prefer tabs over spaces.")
    logged = message.logged
    ahead = placed("I prefer tabs over spaces.", at=NOON + 9 * DAY).logged.entry
    (one,) = said_in(
        type(message)(place=1, session=1, session_id="chat", logged=type(logged)(seq=1, received_at=NOON, entry=ahead))
    )
    assert one.at == NOON


@given(st.text(max_size=2_500))
def test_whatever_is_said_a_lesson_is_short_and_ends(text: str) -> None:
    for one in said(text):
        assert 0 < len(one.text) <= MAX_CHARS
        assert "\n" not in one.text
        assert one.key


def test_a_message_of_any_length_is_read() -> None:
    assert taught_by(Message(role="user", content="I prefer tabs over spaces. " * 200_000)) == []
    assert said("I prefer tabs over \x00spaces. 😀") is not None
