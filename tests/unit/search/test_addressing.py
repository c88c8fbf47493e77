from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.types import Role
from offbook.search.addressing import labelled_speaker, names_called
from offbook.search.index.rows import ASSISTANT, USER, IndexedMessage, Rows

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def said(
    place: int, role: Role, *, calls: list[str] | None = None, label: str = "", speaker: str = ""
) -> IndexedMessage:
    return IndexedMessage(
        place=place,
        session=1,
        ts=NOON,
        arrived=NOON,
        role=role,
        speaker=speaker,
        text="text",
        terms=["text"],
        flags=0,
        calls=calls or [],
        label=label,
    )


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows(tmp_path, rows=0, words=0, speakers=[], silence=timedelta(hours=2))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Hey Mel! Good to see you!", ["Mel"]),
        ("Thanks, Caroline! That means a lot.", ["Caroline"]),
        ("I did it. Wow, Ada, that is great.", ["Ada"]),
        ("I live in Lyon, France.", []),
        ("Hi there!", []),
        ("Sure, I can do that.", []),
        ("Great Britain is an island.", []),
        ("", []),
    ],
)
def test_who_is_addressed(text: str, names: list[str]) -> None:
    assert names_called(text) == names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ada: I moved to Lisbon.", "Ada"),
        ("Ada Lovelace: I moved.", "Ada Lovelace"),
        ("Note: buy milk", ""),
        ("Step One: mix", ""),
        ("user: hello there", ""),
        ("See https://example.org", ""),
        ("12:30 is fine", ""),
    ],
)
def test_what_a_text_says_it_is_by(text: str, name: str) -> None:
    found, rest = labelled_speaker(text)
    assert found == name
    assert rest == (text.split(": ", 1)[1] if name else text)


@given(st.text())
def test_any_text(text: str) -> None:
    assert isinstance(names_called(text), list)
    name, rest = labelled_speaker(text)
    assert text.endswith(rest)
    assert name in text


def test_a_name_one_side_uses_is_the_others(rows: Rows) -> None:
    rows.append([said(place, "assistant", calls=["Ada"]) for place in range(1, 4)])
    assert rows.role_called("Ada") is None  # three times may be chance
    rows.append([said(4, "assistant", calls=["Ada"]), *(said(place, "user", calls=["Max"]) for place in range(5, 9))])
    assert (rows.role_called("Ada"), rows.role_called("Max")) == (USER, ASSISTANT)
    assert rows.names() == ["Ada", "Max"]


def test_a_name_both_use_is_neithers(rows: Rows) -> None:
    rows.append([said(place, "user" if place % 2 else "assistant", calls=["Paris"]) for place in range(1, 20)])
    assert rows.role_called("Paris") is None


def test_a_label_is_a_speaker_from_the_fourth_time_on(rows: Rows) -> None:
    rows.append([said(place, "user", label="Ada") for place in range(1, 6)])
    assert rows.names() == ["Ada"]
    assert rows.view()["speaker"].tolist() == [0, 0, 0, 1, 1]
