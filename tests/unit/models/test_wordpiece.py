"""The pieces recorded here are those of the tokenizer.json that all-MiniLM-L6-v2 comes with."""

from __future__ import annotations

import pytest

from offbook.models.minilm import WordPiece, vocabulary_digest


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    return WordPiece(256)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("My cat is called Ada.", "2026 4937 2003 2170 15262 1012"),
        ("naïve café ÅÄÖ İstanbul ß", "15743 7668 9779 2080 9960 1096"),
        (
            "def f(x: int) -> str:\n    return f'{x!r}'",
            "13366 1042 1006 1060 1024 20014 1007 1011 1028 2358 2099 1024 2709 1042 1005 1063 1060 999 1054 1065 1005",
        ),
        ("我的猫叫艾达。", "1855 1916 100 100 100 100 1636"),
        (
            "猫がいる カタカナ 한국어",
            "100 1651 30173 30213 1700 30235 30226 30241 1469 30006 30021 29991 30014 30020 29999 30008",
        ),
        ("👩‍👩‍👧 🇩🇪 ☕️ 😀", "100 100 100 100"),
        (
            "مرحبا بالعالم كيف حالك؟",
            "1295 17149 29820 29816 25573 1271 25573 23673 29830 25573 23673 22192 1293 14498 29833 1276 25573 23673 29835 100",
        ),
        ("[CLS] quoted [SEP]", "101 9339 102"),
        ("a\u200bb\ufeffc\u00adz\x00", "5925 2480"),
        ("x" * 101, "100"),
        ("", ""),
        (" \n\t\x00", ""),
    ],
)
def test_the_pieces_are_those_the_model_was_trained_with(text: str, pieces: str, wordpiece: WordPiece) -> None:
    assert wordpiece.pieces(text) == [101, *map(int, pieces.split()), 102]


def test_a_long_text_is_cut_to_what_the_model_takes(wordpiece: WordPiece) -> None:
    assert wordpiece.pieces("cat " * 100_000) == [101, *[4937] * 254, 102]


@pytest.mark.parametrize("blanks", [2_045, 2_047, 8_190, 40_000])
def test_where_the_first_look_is_cut_changes_nothing(blanks: int, wordpiece: WordPiece) -> None:
    assert wordpiece.pieces(" " * blanks + "called cat") == [101, 2170, 4937, 102]


def test_half_characters_are_joined_or_left_out(wordpiece: WordPiece) -> None:
    assert wordpiece.pieces("\ud83d\ude00") == wordpiece.pieces("😀")
    assert wordpiece.pieces("ca\ud800t \udfff") == wordpiece.pieces("cat")


def test_the_vocabulary_is_the_one_that_was_recorded() -> None:
    assert vocabulary_digest() == "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
