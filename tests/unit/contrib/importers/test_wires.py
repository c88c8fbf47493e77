from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.client.history.conversations import is_unknown_time
from offbook.client.history.files import bounded, digest_of, ready, time_of
from offbook.client.history.formats import FORMATS
from offbook.ingest.scope import checked_key


@given(st.text(alphabet=st.characters(), min_size=1, max_size=400), st.integers(1, 4))
def test_a_key_is_one_that_a_provider_takes(text: str, times: int) -> None:
    key = bounded("x" + text * times)
    assert checked_key(key, "sessionId", 512) == key
    assert bounded(key) == key


@given(st.text(max_size=600), st.text(max_size=600))
def test_two_keys_stay_two(one: str, other: str) -> None:
    assert (bounded(one) == bounded(other)) == (one == other)


def test_a_digest_knows_where_a_part_ends() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of("\ud83d") == digest_of("\ud83d")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-07-01T12:00:00Z", datetime(2024, 7, 1, 12, tzinfo=UTC)),
        ("2024-07-01 12:00:00", datetime(2024, 7, 1, 12, tzinfo=UTC)),
        (1_719_835_200, datetime(2024, 7, 1, 12, tzinfo=UTC)),
        (1_719_835_200_000, datetime(2024, 7, 1, 12, tzinfo=UTC)),
        (1_719_835_200_000_123, datetime(2024, 7, 1, 12, microsecond=123, tzinfo=UTC)),
        ("1719835200000", datetime(2024, 7, 1, 12, tzinfo=UTC)),
        (-1_000_000_000, datetime(1938, 4, 24, 22, 13, 20, tzinfo=UTC)),
        ("20240701", datetime(2024, 7, 1, tzinfo=UTC)),
        ("20240701120000", None),
        (10**400, None),
        (-(10**400), None),
        (None, None),
        (True, None),
        ("soon", None),
        (1e300, None),
        (float("nan"), None),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_times(value: Any, expected: datetime | None) -> None:
    assert time_of(value) == expected


def test_a_time_that_is_missing_is_not_one_that_is_lost() -> None:
    assert [value for value in (None, "", "soon", 0, 10**400, []) if is_unknown_time(value, time_of(value))] == [
        "soon",
        10**400,
        [],
    ]


def test_labels_that_a_provider_refuses_are_left_out() -> None:
    labels = {"name": "a\0b", "model": "", "origin": 7, "toolCallId": "x" * 600}
    wire = ready("1", "user", "x", at=None, where="w", labels=labels, meta={"a": None, "b": []}).wire
    assert wire == {"id": "1", "role": "user", "content": "x"}


@pytest.mark.parametrize("name", FORMATS)
def test_every_reader_can_be_loaded_and_its_help_fits(name: str) -> None:
    assert callable(FORMATS[name].load())
    assert FORMATS[name].examples
    assert all(len(line) <= 84 for line in FORMATS[name].note.splitlines())
