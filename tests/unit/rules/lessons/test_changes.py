"""What takes the place of what, by its own words; and what stays beside it, because it is not surely about the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.lessons.changes import frame_of, parted_from_old, takes_place_of, without_now
from offbook.rules.lessons.fold import holding
from tests.unit.rules.lessons.lessons import said
from tests.unit.rules.lessons.test_fold import learnt

REPLACED = (
    ("My favourite colour is blue.", "My favourite colour is green now, not blue."),
    ("My favourite colour is blue.", "My favourite colour is no longer blue."),
    ("My favourite colour is no longer blue.", "My favourite colour is blue."),
    ("My favourite colour is blue.", "My new favourite colour is green."),
    ("I prefer tea.", "I prefer coffee now."),
    ("I prefer tea.", "I now prefer coffee."),
    ("I prefer tea.", "I prefer coffee instead of tea."),
    ("I prefer tea.", "I prefer coffee these days, not tea."),
    ("I prefer tea over coffee.", "I prefer coffee now."),
    ("I prefer tea over coffee.", "I prefer coffee over tea."),
    ("I prefer dark mode.", "I prefer light mode now."),
    ("I prefer window seats.", "I prefer aisle seats now."),
    ("I prefer Foo.", "I prefer Bar now, not Foo."),
    ("I prefer tea.", "I no longer prefer tea."),
    ("I hate cilantro.", "I no longer hate cilantro."),
    ("We decided to use MySQL for reporting.", "We decided to use MariaDB for reporting instead of MySQL."),
    ("We decided to use MySQL for reporting.", "We decided to use MariaDB instead of MySQL for reporting."),
    ("We decided to use MySQL for reporting.", "We decided to use MariaDB for reporting, not MySQL."),
    (
        "We decided to use MySQL for reporting.",
        "Actually, I changed my mind: use MariaDB for the reporting service, not MySQL.",
    ),
    ("We decided to use MySQL for reporting.", "I changed my mind, let's use MariaDB for reporting."),
    ("We decided to use MySQL for reporting.", "We've changed our minds: we'll use Foo for reporting."),
    ("We decided to use MySQL for reporting.", "We switched from MySQL to MariaDB for reporting."),
    ("We decided to use MySQL for reporting.", "We're no longer using MySQL for reporting."),
    ("We decided to use MySQL for reporting.", "We decided to no longer use MySQL for reporting."),
    ("We're no longer using MySQL for reporting.", "We decided to use MySQL for reporting."),
    ("We decided to use MySQL for reporting.", "We decided to use MariaDB for reporting now."),
    ("We decided to use MySQL.", "We decided to use MariaDB instead of MySQL."),
    ("We'll use MySQL for the archive.", "Let's go with MariaDB for the archive instead of MySQL."),
    ("We use Postgres for the archive.", "We use MySQL for the archive now, not Postgres."),
    ("We use Postgres for the archive.", "We decided to use MySQL for the archive instead of Postgres."),
    ("We'll use uv instead of poetry.", "We'll use poetry instead of uv."),
    ("Always use tabs for indentation.", "Use spaces for indentation from now on, not tabs."),
    ("Always use tabs for indentation.", "From now on, use spaces for indentation."),
    ("Always use tabs for indentation.", "Use spaces instead of tabs for indentation from now on."),
    ("Always use tabs for indentation.", "No longer use tabs for indentation."),
    ("Always use tabs for indentation.", "I changed my mind: use spaces for indentation, not tabs."),
    ("Always use tabs.", "Use spaces from now on, not tabs."),
    ("Use spaces for indentation from now on, not tabs.", "Use tabs for indentation from now on, not spaces."),
    ("Use spaces for indentation from now on, not tabs.", "Always use tabs for indentation."),
    ("Always answer in German.", "Please answer in English from now on."),
    ("Always answer in German.", "From now on, answer in English, not German."),
    ("Always call me Jo.", "From now on, call me Joanna, not Jo."),
    ("Always send reports on Fridays.", "From now on, send reports on Mondays instead of Fridays."),
    ("I live in Vienna.", "I live in Graz now, not Vienna."),
    ("We'll use Jenkins for builds.", "We're switching from Jenkins to Drone for builds."),
    ("We decided to deploy on Fridays.", "We decided to deploy on Mondays instead of Fridays."),
    ("We chose Stripe for payments.", "We chose Adyen for payments instead of Stripe."),
    ("We agreed to use Slack for support.", "We agreed to use Zulip for support instead."),
    ("I prefer meetings in the morning.", "I prefer meetings in the afternoon now."),
    ("We decided to use MySQL for reporting.", "No, use MariaDB for reporting, not MySQL."),
)
BESIDE = (
    ("We decided to use Postgres for billing.", "We decided to switch to Postgres for reporting."),
    ("We decided to use Redis for the queue.", "We decided to use Redis for the cache instead."),
    ("We decided to use AWS in Asia.", "We decided to switch to AWS in Europe."),
    ("Always send the invoices to Anna.", "From now on, send the reports to Anna instead."),
    ("I prefer tea.", "I prefer working from home now."),
    ("I prefer tea.", "I prefer aisle seats now."),
    ("I prefer tea.", "I prefer coffee."),
    ("I like tea.", "I prefer coffee now."),
    ("I prefer short answers.", "I prefer friendly answers now."),
    ("I prefer green tea.", "I prefer tea now."),
    ("I prefer coffee at work.", "I prefer tea now."),
    ("I prefer tea.", "I prefer coffee in the morning now."),
    ("We decided to use MySQL for reporting.", "We decided to use MariaDB instead of MySQL."),
    ("We decided to use MySQL.", "We decided to use MariaDB for reporting instead of MySQL."),
    ("We decided to use MySQL for billing.", "We decided to use MariaDB for reporting instead of MySQL."),
    ("We decided to use MySQL for reporting.", "We decided to use Grafana for reporting."),
    ("We decided to use MySQL for reporting.", "We're now using Metabase for reporting."),
    ("We decided to use MySQL for reporting.", "We decided to use MariaDB for reporting instead of Oracle."),
    ("We decided to use OpenAPI for the API.", "We decided to use Markdown for the API docs instead of OpenAPI."),
    ("Always use tabs for indentation.", "From now on, use spaces for alignment."),
    ("Always use tabs in Makefiles.", "Use spaces from now on, not tabs."),
    ("Always use tabs.", "Use spaces in Python from now on, not tabs."),
    ("Always use headings for summaries.", "From now on, use bullet points for summaries."),
    ("Always use first names in emails.", "From now on, use British spelling in emails."),
    ("Always answer in German.", "From now on, write commit messages in English."),
    ("Always answer in German.", "From now on, answer in short sentences."),
    ("Always send reports on Fridays.", "From now on, send invoices on Mondays instead of Fridays."),
    ("We decided to use MySQL and Redis for caching.", "We decided to use Postgres for caching instead of MySQL."),
    ("We decided to use Rust for the parser.", "We decided to use Go for the server instead of Rust."),
    ("My favourite colour is blue.", "My favourite food is pizza now."),
    ("We're no longer using MySQL for reporting.", "We're no longer using Redis for reporting."),
    ("Never use tabs for indentation.", "Use spaces for indentation from now on, not tabs."),
    ("I live in Lisbon.", "I live in Chiado."),
    ("We'll use Jenkins for builds.", "We're switching from Jenkins to Drone for releases."),
    ("We decided to deploy on Fridays.", "We decided to release on Mondays instead of Fridays."),
    ("We chose Stripe for payments.", "We chose Adyen for refunds instead of Stripe."),
    ("We agreed to use Slack for support.", "We agreed to use Zulip for sales instead."),
    ("I prefer meetings in the morning.", "I prefer calls in the afternoon now."),
)


def told(old: str, new: str) -> list[set[str]]:
    """What holds of two that were said days apart: learnt one by one, at once, and the older one later."""
    first, second = said(old, 1), said(new, 4)
    assert first
    assert second
    ways = (learnt(learnt([], first), second), learnt([], first + second), learnt(learnt([], second), first))
    return [{one.text for one in holding(there)} for there in ways]


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_a_word_of_change_takes_the_place_of_what_was(old: str, new: str) -> None:
    (latest,) = said(new, 4)
    assert told(old, new) == [{latest.text}] * 3


@pytest.mark.parametrize(("old", "new"), BESIDE)
def test_what_is_not_surely_the_same_subject_stays_beside(old: str, new: str) -> None:
    both = {one.text for one in said(old, 1) + said(new, 4)}
    assert told(old, new) == [both] * 3


def test_a_wish_of_somebody_else_replaces_nothing() -> None:
    there = learnt(learnt([], said("I prefer tea.", 1, name="Ada")), said("I prefer coffee now.", 4, name="Bo"))
    assert len(holding(there)) == 2
    own = learnt(learnt([], said("I prefer tea.", 1, name="Ada")), said("I prefer coffee now.", 4, name="Ada"))
    (one,) = holding(own)
    assert one.text == "Ada said: “I prefer coffee now.”"


def test_the_word_of_change_counts_although_it_was_said_again_without() -> None:
    sayings = said("I prefer tea.", 1) + said("I prefer coffee now.", 3) + said("I prefer coffee.", 5)
    assert [one.text for one in holding(learnt([], sayings))] == ["They prefer coffee."]


def test_who_returns_to_the_old_one_after_that_is_believed() -> None:
    sayings = said("I prefer tea.", 1) + said("I prefer coffee now.", 3) + said("I prefer tea.", 5)
    assert {one.text for one in holding(learnt([], sayings))} >= {"They prefer tea."}


@pytest.mark.parametrize(
    ("text", "learnt_as"),
    [
        (
            "Actually, I changed my mind: use MariaDB for the reporting service, not MySQL.",
            ("decision", "They changed their mind: use MariaDB for the reporting service, not MySQL.", 0.7),
        ),
        ("We decided to use MariaDB for reporting, not MySQL.", ("decision", None, 0.75)),
        ("Use spaces for indentation from now on, not tabs.", ("preference", None, 0.8)),
        ("No longer use tabs for indentation.", ("preference", None, 0.8)),
        ("I no longer like tea.", ("preference", "They no longer like tea.", 0.75)),
        ("My favourite colour isn't blue any more.", ("preference", None, 0.75)),
        ("We use MySQL for the archive now, not Postgres.", ("fact", None, 0.75)),
        ("I changed my mind, let's go with pizza instead of sushi.", ("decision", None, 0.6)),
    ],
)
def test_what_is_said_with_a_word_of_change_is_learnt(text: str, learnt_as: tuple[str, str | None, float]) -> None:
    (one,) = said(text)
    kind, told_as, strength = learnt_as
    assert (one.kind, one.strength) == (kind, strength)
    assert told_as is None or one.text == told_as


@pytest.mark.parametrize(
    "text",
    [
        "I changed my mind, use the first option.",
        "I changed my mind about the title, use the second one.",
        "I've changed my mind, I want to use this one instead.",
        "I changed my mind, use it for the report.",
        "I changed my mind, use a for loop instead of a while loop.",
        "I changed my mind, maybe use MariaDB for reporting, not MySQL.",
        "If I changed my mind, use MariaDB for reporting, not MySQL.",
        "Let's use Sarah's car, not the bus.",
        "My preferred way isn't working.",
        "My go-to recipe is no longer working.",
        "My favourite bars aren't open any more.",
        "I no longer like it.",
        "Rename the file now, not later.",
        "We're no longer friends.",
    ],
)
def test_a_word_of_change_alone_makes_no_lesson(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("My favourite colour is green now, not blue.", "My favourite colour is green."),
        ("My favourite colour is now green.", "My favourite colour is green."),
        ("I prefer coffee now.", "I prefer coffee."),
        ("I prefer coffee, not tea.", "I prefer coffee over tea."),
        ("We decided to use Rust for the parser now.", "We decided to use Rust for the parser."),
        (
            "We decided to use MariaDB for reporting instead of MySQL.",
            "We decided to use MariaDB instead of MySQL for reporting.",
        ),
        ("From now on, use spaces, not tabs.", "Use spaces instead of tabs from now on."),
    ],
)
def test_it_is_the_same_lesson_with_and_without_the_word(one: str, same: str) -> None:
    assert said(one)[0].key == said(same)[0].key


def test_doing_it_no_longer_is_not_the_same_as_doing_it() -> None:
    assert said("We're no longer using MySQL for reporting.")[0].key != said("We'll use MySQL for reporting.")[0].key
    assert said("From now on, no longer use tabs.")[0].key == "rule tab us = no"


def test_what_is_dropped_is_parted_from_the_rest() -> None:
    assert parted_from_old("use spaces, not tabs") == ("use spaces", "tabs")
    assert parted_from_old("use X instead of Y for the tests.") == ("use X for the tests.", "Y")
    assert parted_from_old("it is fine, not only for now") == ("it is fine, not only for now", "")
    assert parted_from_old("From now on, no longer use tabs.") == ("From now on, no longer use tabs.", "")
    assert without_now("coffee from now on.") == "coffee."


@given(st.text(max_size=320), st.text(max_size=320))
def test_whatever_two_lessons_say_they_can_be_compared(one: str, other: str) -> None:
    frames = [frame_of("decision", f"We decided to use {text}") for text in (one, other)]
    if frames[0] is not None and frames[1] is not None:
        assert takes_place_of(frames[0], frames[1]) in (True, False)
        assert not takes_place_of(frames[0], frames[0])
