from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.cli.output import counted, printable, progress, spoken_duration, spoken_size, table


@given(st.text())
def test_nothing_printed_can_steer_a_terminal(text: str) -> None:
    shown = printable(text)
    assert all(char in "\n\t" or (ord(char) >= 32 and not 0x7F <= ord(char) < 0xA0) for char in shown)
    assert "\u202e" not in shown


def test_what_would_steer_is_shown() -> None:
    assert printable("\x1b[31mred\x1b[0m") == "\\u001b[31mred\\u001b[0m"
    assert printable("two\r\nlines") == "two\nlines"
    assert printable("日本語 ✓") == "日本語 ✓"


@pytest.mark.parametrize(
    ("seconds", "spoken"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (7_260, "2 h 1 min"),
        (90_000, "1 d 1 h"),
        (-5, "0 s"),
    ],
)
def test_durations_are_spoken(seconds: int, spoken: str) -> None:
    assert spoken_duration(timedelta(seconds=seconds)) == spoken


def test_sizes_and_counts_are_spoken() -> None:
    assert spoken_size(12) == "12 bytes"
    assert spoken_size(1_500_000) == "1.5 MB"
    assert spoken_size(2e15) == "2000.0 TB"
    assert (counted(1, "message"), counted(1_000, "message")) == ("1 message", "1,000 messages")


def test_a_table_without_a_terminal_is_aligned_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    table(["name", "number"], [["a" * 200, "1"], ["b\nc", "1,000"]], right=["number"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "a" * 200 + "       1"
    assert lines[2].split() == ["b", "c", "1,000"]
    assert len({len(line) for line in lines}) == 1


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 10) as advance:
        advance(5)
    assert capsys.readouterr() == ("", "")
