"""What counts as told, as told no longer, and as asserted."""

from __future__ import annotations

import pytest
from benchmarks.memory.items import NAMES, SETS, load
from benchmarks.memory.reading import asserted, is_told, marked, stand_together, stands

OLD, NEW = ["Lisbon"], ["Tallinn"]
OLD_SAID = "My sister lives in Lisbon. What could I send her?"
NEW_SAID = "My sister's balcony in Tallinn is under snow."
SAID = [OLD_SAID, NEW_SAID]


@pytest.mark.parametrize(
    ("value", "text", "is_there"),
    [
        ("Wednesday", "on Wednesdays", True),
        ("bus", "a busload", False),
        ("v2", "v20", False),
        ("3307", "端口是3307了", True),
        ("杭州", "我住在杭州市", True),
        ("#ops-alerts", "to #ops-alerts, please", True),
        ("eu-west-1", "eu-west-12", False),
    ],
)
def test_a_value_stands_as_a_word(value: str, text: str, is_there: bool) -> None:
    assert stands(value, text) is is_there


def test_stems_may_go_on() -> None:
    assert stand_together(["siez", "Kunden"], "Unsere Kunden siezen wir.")
    assert not stand_together(["siez", "Kunden"], "Unsere Kunden duzen wir.")


@pytest.mark.parametrize(
    "told",
    [
        f"- They told you (a year ago): “{OLD_SAID}” – no longer so.\n- They corrected that: “{NEW_SAID}”",
        f"- They told you: “{OLD_SAID}” – corrected since, at least in part. You said: “Tiles.”",
        f"- “{NEW_SAID}” (since 3 May; before: “{OLD_SAID}”)",
        "Their sister lives in Tallinn (before: Lisbon).",
        "Their sister lived in Lisbon until May.",
        f"- They told you: “{NEW_SAID}”",
    ],
)
def test_the_old_may_be_told_as_what_held_before(told: str) -> None:
    assert not asserted(told, OLD, NEW, SAID)


@pytest.mark.parametrize(
    "told",
    [
        f"- They told you: “{OLD_SAID}” You said: “Nice.”\n- They told you: “{NEW_SAID}”",
        f"- They told you: “{OLD_SAID}” – no longer so. You said: “Lisbon is far.”",
        f"[L1-0001] They: {NEW_SAID} They: {OLD_SAID}",
    ],
)
def test_the_old_is_asserted_where_nothing_marks_it(told: str) -> None:
    assert asserted(told, OLD, NEW, SAID)


def test_only_the_memorys_own_words_mark() -> None:
    said = ["We never deploy until Friday."]
    assert asserted(f"[L1-0001] They: {said[0]}", ["Friday"], ["Monday"], said)
    assert not marked(f"- They told you: “{said[0]}”", ["Friday"], said)
    assert marked(f"- They told you: “{said[0]}” – no longer so.", ["Friday"], said)


def test_what_the_correction_itself_says_of_the_old_is_no_assertion() -> None:
    said = ["Ann has taken billing over. Bob went to the data team."]
    assert not asserted(f"- They told you: “{said[0]}”", ["Bob"], ["Ann"], said)


def test_the_new_is_told_only_where_it_is_told_as_what_holds() -> None:
    assert is_told("Their sister lives in Tallinn (before: Lisbon).", NEW, SAID)
    assert not is_told(f"- They told you: “{NEW_SAID}” – no longer so.", NEW, SAID)


def test_a_value_with_a_full_stop_in_it_is_found() -> None:
    assert asserted("- They told you: “I go to Dr. Feldman on Mondays.”", ["Dr. Feldman"], ["Dr. Amari"], [])


@pytest.mark.parametrize("name", NAMES)
def test_the_sets_ask_for_what_was_said(name: str) -> None:
    for item in load(SETS, name):
        said = "\n".join(turn.text for turn in item.turns)
        for value in (*item.old, *item.new, *item.holds):
            assert stands(value, said), (item.id, value)
        for words in (*item.keep, *item.traps, item.must):
            assert stand_together(words, said), (item.id, words)
