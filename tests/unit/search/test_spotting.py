from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.spotting import Spotter
from offbook.search.words import PIECE_CHARS, indexed_terms, own_terms, query_terms

FILLER = "It rained in the valley and nobody was about. "


def spotted(text: str, asked: str) -> set[str]:
    return Spotter(query_terms(asked)).held(text)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("The password is xylograph quokka40000.", "quokka40000"),
        ("The password is xylograph quokka40000.", "quokka"),
        ("We were baking.", "bake"),
        ("She carries it.", "carry"),
        ("They went home.", "go"),
        ("My favourite colours", "favorite color"),
        ("We organised it.", "organize"),
        ("call getUserName() now", "user"),
        ("It cost 12,000 euros.", "12000"),
        ("It cost 1,234.5 euros.", "1234.5"),
        ("Send an e-mail to the sub-agent.", "email"),
        ("Send an e-mail to the sub-agent.", "subagent"),
        ("Made in the U.S.A. in 1970.", "USA"),
        ("Das Café heißt Größe.", "cafe größe"),
        ("ÉLAN VITAL", "élan"),
        ("昨天我们去了里斯本看海。", "海"),
        ("昨天我们去了里斯本看海。", "里斯本"),
        ("제 고양이 이름은 나비입니다.", "고양이"),
        ("اسم قطتي لولو وهي تحب السَّمك.", "السمك"),
        ("Мою собаку зовут Белка.", "собаку"),
        ("Das Boot 🚤", "🚤"),
        ('{"key":"' + "x" * 500 + '","quokka":"yes"}', "quokka"),
    ],
)
def test_a_word_is_found_wherever_it_stands(said: str, asked: str) -> None:
    wanted = set(query_terms(asked))
    assert wanted
    assert spotted(said, asked) == wanted
    long = FILLER * (2 * PIECE_CHARS // len(FILLER))
    assert spotted(f"{long}{said} {long}", asked) >= wanted.intersection(own_terms(asked))


def test_a_word_is_found_in_another_language() -> None:
    assert spotted("Der Hund lief gestern im Garten umher.", "garden dog cat") == {"garden", "dog"}


def test_a_part_of_another_word_is_not_the_word() -> None:
    assert spotted("They make maps of the category.", "ma cat ap") == set()
    assert spotted(f"{FILLER * 3_000}{'category ' * 30_000} cat", "cat") == {"cat"}


def test_a_word_across_two_pieces_is_found() -> None:
    for before in range(PIECE_CHARS - 10, PIECE_CHARS + 3):
        assert spotted("é" * before + "-里斯本" + "é" * 99, "里斯本") >= {"里斯", "斯本"}


@given(st.text(max_size=300) | st.text("abeiy sing.,-'", max_size=300), st.data())
def test_what_is_spotted_is_said(text: str, data: st.DataObject) -> None:
    # A stop word is a term where nothing else is said.
    held = {term for part in (text, *text.split()) for term in indexed_terms(part)}
    wanted = data.draw(
        st.lists(st.sampled_from(sorted(held) or ["nothing"]) | st.text("abeiy", min_size=1), max_size=4)
    )
    found = Spotter(wanted).held(text)
    if text.isascii():
        assert found <= held


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12), min_size=1, max_size=8))
def test_every_plain_word_is_spotted(words: list[str]) -> None:
    said = " ".join(words)
    terms = set(indexed_terms(said))
    assert Spotter(terms).held(said) == terms


def test_a_letter_is_a_word_too() -> None:
    assert spotted("Take the plan e, not the other.", "e") == {"e"}
