"""Rough English of other languages, word for word."""

from __future__ import annotations

import gzip
import time
import unicodedata
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.models.glossary import CHINESE, SPACED, gloss, glossary, in_english, language_of


@pytest.mark.parametrize(
    ("text", "language", "english"),
    [
        ("Meine Tochter ist gegen Erdnüsse allergisch.", "de", "my daughter is against peanuts allergic."),
        ("Où est la clé de la cave ?", "fr", "where is the key of the cellar ?"),
        ("Mia sorella abita in città.", "it", "my sister lives in city."),
        ("Mi hermana vive en Sevilla.", "es", "my sister lives in seville."),
        ("A minha irmã mora em Lisboa.", "pt", "the my sister lives in lisbon."),
        ("Mijn zus woont in Utrecht.", "nl", "my sister lives in utrecht."),
        ("Dia kerja di mana?", "id", "he work in where?"),
        ("Моя сестра живёт в Казани.", "ru", "my sister lives in kazan."),
        ("Min bror arbetar i Malmö.", "sv", "my brother works in malmo."),
        ("Vivo a Torino da marzo.", "it", "i live to turin from march."),
        ("Eu não moro mais em Lisboa.", "pt", "i not live more in lisbon."),
        ("J'habite à Nantes.", "fr", "i live to nantes."),
        ("Brat mieszka w Gdańsku i pracuje.", "pl", "brother lives in gdansk and works."),
        ("Я живу в Москве с мамой.", "ru", "i live in moscow with mom."),
        ("Mieszkam w Gdańsku od roku.", "pl", "i live in gdansk from year."),
    ],
)
def test_another_language_is_read_in_english(text: str, language: str, english: str) -> None:
    assert language_of(text) == language
    assert in_english(text).lower() == english


def test_chinese_is_read_by_its_longest_words() -> None:
    assert in_english("我们去上海。").split() == ["we", "go", "shanghai", "。"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "My daughter is allergic to peanuts.",
        "nginx -t && systemctl reload nginx",
        "Die Hard is a film",
        "Angela Merkel, Emmanuel Macron, Giorgia Meloni",
        "for (const die of games) { if (die.man) return war; }",
        "Min søster bor i Aarhus og arbejder på et hospital.",
        "Sora mea locuiește în Cluj și lucrează la spital.",
        "私の犬の名前はハチです。",
        "제 고양이 이름은 나비입니다.",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert language_of(text) is None
    assert in_english(text) == text


@pytest.mark.parametrize(
    ("word", "language", "english"),
    [
        ("Hauptbuchdatenbank", "de", "main book database"),
        ("Größe", "de", "size"),
        ("Groesse", "de", "size"),
        ("GRÖSSE", "de", "size"),
        ("réservées", "fr", "reserved"),
        ("reservees", "fr", "reserved"),
        ("l'amico", "it", "friend"),
        ("rendez-vous", "fr", "appointment"),
        ("avons-nous", "fr", "have we"),
        ("Jean-Pierre", "fr", None),
        ("Qzxwv", "de", None),
        ("necesitábamosla", "es", "needed"),
    ],
)
def test_a_word_that_is_not_in_it_is_read_by_what_is(word: str, language: str, english: str | None) -> None:
    assert gloss(word, language) == english


def test_each_stretch_is_read_in_its_own_language() -> None:
    german, english = "Meine Tochter ist gegen Erdnüsse allergisch. ", "Do not deploy the gift shop on a Friday. "
    read = in_english(german * 15 + english * 15 + german * 15)
    assert read.startswith("my daughter")
    assert read.endswith("allergic. ")
    assert english in read


@pytest.mark.parametrize("text", ["明天去上海开会 ¯\\_(ツ)_/¯", "我跟김민준明天在上海开会讨论"])
def test_a_letter_of_another_script_makes_it_no_other_language(text: str) -> None:
    assert "shanghai" in in_english(text)


@pytest.mark.parametrize(
    "word", ["hausarbeit" * 30 + "xqxqxq", "hausarbeit" * 3 + "xqxqxq", "x" * 100_000, "海" * 100_000]
)
def test_no_word_takes_forever(word: str) -> None:
    begun = time.process_time()
    in_english(f"Meine Tochter ist gegen Erdnüsse allergisch und sagt {word} dazu.")
    assert time.process_time() - begun < 2


def test_what_was_made_up_is_not_read() -> None:
    text = "Bitte setz max_haus auf 3 und schreib an haus@garten.example über den Garten."
    assert "max_haus" in in_english(text)
    assert "haus@garten.example" in in_english(text)
    assert in_english(text).endswith("the garden.")


@given(st.text() | st.lists(st.sampled_from(["der Hund", "la casa", "我们", "cats", "l'", "-", "é"])).map(" ".join))
def test_any_text_is_read_and_accents_may_stand_apart(text: str) -> None:
    read = in_english(text)
    if text.isascii():
        assert language_of(text) or read == text
    composed, apart = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert language_of(apart) == language_of(composed)


@pytest.mark.parametrize("language", [*SPACED, CHINESE])
def test_each_glossary_is_in_order_and_whole(language: str) -> None:
    packed = files("offbook.models").joinpath("data", f"glossary-{language}.tsv.gz").read_bytes()
    rows = [line.split("\t") for line in gzip.decompress(packed).decode().splitlines()]
    words = [word for word, _ in rows]
    assert words == sorted(set(words))
    assert all(word == word.lower() and english.strip() == english != "" for word, english in rows)
    assert len(glossary(language).english) == len(rows) >= 9_000
