from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.hosts.coding import tail
from offbook.hosts.coding.places import Place
from offbook.hosts.coding.tail import lines_behind
from offbook.portability.conversations import Damage
from offbook.portability.json_lines import Line


def read(path: Path, place: Place, limit_bytes: int = 1_000_000) -> tuple[list[object], Place]:
    found: list[object] = []
    for line, behind in lines_behind(path, place, limit_bytes):
        place = behind
        found.append(line.fields if isinstance(line, Line) else line)
    return found, place


def test_a_line_that_is_not_finished_waits(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":')
    found, place = read(path, Place())
    assert found == [{"a": 1}]
    assert place == Place(offset=8, number=1)
    with path.open("ab") as file:
        file.write('"你"}\n\n[]\n'.encode())
    found, place = read(path, place)
    assert found[:2] == [{"b": "你"}, None]
    assert isinstance(found[2], Damage)
    assert place.number == 4
    assert read(path, place) == ([], place)


def test_a_shorter_file_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1}\n')
    assert read(path, Place(offset=500, number=9))[0] == [{"a": 1}]


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "LONGEST_EVENT_BYTES", 10)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'"' + b"x" * 100)
    assert read(path, Place()) == ([], Place())
    path.write_bytes(b'"' + b"x" * 100 + b'"\n{"a":1}\n')
    found, place = read(path, Place())
    assert isinstance(found[0], Damage)
    assert found[1:] == [{"a": 1}]
    assert place.number == 2


@settings(deadline=None)
@given(st.lists(st.text(max_size=20), max_size=12), st.integers(1, 60))
def test_in_pieces_it_is_the_same(texts: list[str], limit_bytes: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_text("".join(json.dumps({"t": text}) + "\n" for text in texts))
        found: list[object] = []
        place = Place()
        while True:
            part, behind = read(path, place, limit_bytes)
            if behind == place:
                break
            found, place = found + part, behind
        assert found == [{"t": text} for text in texts]
