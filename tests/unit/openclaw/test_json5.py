"""The host's configuration is read as the host reads it."""

from __future__ import annotations

import json
import time

import pytest

from offbook.client.config_files.editing import parse
from offbook.model.errors import InvalidInput


def test_what_json5_has_over_json() -> None:
    text = """\ufeff// first
    {
      name: 'it\\'s', $x: "a\\
b", /* between */ "quoted": [1, +2, -0x1F, .5, 5., 1e3,],
      yes: true, no: false, nothing: null, // last
    }
    """
    assert parse(text).value == {
        "name": "it's",
        "$x": "ab",
        "quoted": [1, 2, -31, 0.5, 5.0, 1000.0],
        "yes": True,
        "no": False,
        "nothing": None,
    }
    assert parse("[Infinity, -Infinity]").value == [float("inf"), float("-inf")]


def test_json_means_what_it_means_to_json() -> None:
    text = r'{"a": "\u00e9\ud83d\ude00\n\\\/", "b": [[], {}, 1.5, -2, 1e-3], "": " // no comment "}'
    assert parse(text).value == json.loads(text)


def test_the_last_of_two_names_counts() -> None:
    assert parse('{"a": 1, "b": 2, "a": 3}').value == {"b": 2, "a": 3}


def test_many_items_take_as_much_time_as_they_are_many() -> None:
    def seconds(items: int) -> float:
        text = "[" + "1," * items + "]"
        started = time.process_time()
        parse(text)
        return time.process_time() - started

    few = min(seconds(2_000) for _ in range(3))
    assert min(seconds(20_000) for _ in range(2)) < 40 * few  # ten times as many; a hundred times where it is squared


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1, column 1: a value"),
        ('{\n  "a" 1}', "line 2, column 7: a colon"),
        ('{"a": 1 "b": 2}', "column 9: a comma or }"),
        ("[1 2]", "column 4: a comma or ]"),
        ('{"a": "open\n"}', "not closed"),
        ("{} x", "nothing more"),
        ("{1: 2}", "a name"),
        ('"\\u12"', "hexadecimal"),
        ("[" * 300, "too deep"),
        ("{,}", "a name"),
        ("undefined", "a value"),
    ],
)
def test_what_is_wrong_and_where(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=r"line \d+, column \d+") as caught:
        parse(text)
    assert told in str(caught.value)
