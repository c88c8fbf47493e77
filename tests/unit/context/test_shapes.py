from __future__ import annotations

import pytest

from offbook.context.telegraph_words import (
    HARD_END,
    KEPT,
    LEFT_OUT,
    LITTLE,
    NO_END,
    OPENING,
    QUESTION_END,
    SILENT,
    SOFT_END,
    shape_of,
    stem,
)


@pytest.mark.parametrize(
    ("word", "role"),
    [
        ("The", LEFT_OUT),
        ("to", LITTLE),
        ("because", OPENING),
        ("but", SILENT),
        ("IT", KEPT),
        ("Berlin", KEPT),
        ("not", KEPT),
    ],
)
def test_what_becomes_of_a_word(word: str, role: int) -> None:
    assert shape_of(word).role == role


@pytest.mark.parametrize(
    ("word", "text", "end"),
    [
        ("Berlin,", "Berlin", SOFT_END),
        ("Berlin.", "Berlin", HARD_END),
        ("Berlin?)", "Berlin", QUESTION_END),
        ("Dr.", "Dr.", NO_END),
        ("J.", "J.", NO_END),
        ("1.5", "1.5", NO_END),
        ("(Berlin", "Berlin", NO_END),
        ("f(x)", "f(x)", NO_END),
        ("**bold**", "bold", NO_END),
        ("–", "", SOFT_END),
        ("好的。", "好的", HARD_END),
    ],
)
def test_what_ends_with_a_word_is_not_printed(word: str, text: str, end: int) -> None:
    shape = shape_of(word)
    assert (shape.text, shape.end) == (text, end)


def test_names_and_numbers_count_more_than_plain_words_and_these_more_than_generic_ones() -> None:
    name, number, plain, generic = (shape_of(word).terms[0][2] for word in ("Berlin", "5433", "violin", "thing"))
    assert min(name, number) > plain > generic > 0
    assert shape_of("Berlin").opening_terms[0][2] < name


def test_parts_of_an_identifier_count_each() -> None:
    assert [term[0] for term in shape_of("src/user_name.py").terms] == ["src", "user", "name", "py"]


@pytest.mark.parametrize(
    "forms",
    [
        ("paint", "paints", "painted", "painting"),
        ("city", "cities"),
        ("make", "makes", "making"),
        ("stop", "stopped"),
        ("box", "boxes"),
    ],
)
def test_forms_of_a_word_share_their_stem(forms: tuple[str, ...]) -> None:
    assert len(set(map(stem, forms))) == 1
