from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.client.history.conversations import Damage
from offbook.client.history.files import TranscriptLine
from offbook.contrib.coding import capture
from offbook.contrib.coding.capture import Place, lines_behind


def read(path: Path, place: Place, limit_bytes: int = 1_000_000) -> tuple[list[object], Place]:
    found: list[object] = []
    for line, behind in lines_behind(path, place, limit_bytes):
        place = behind
        found.append(line.fields if isinstance(line, TranscriptLine) else line)
    return found, place


def test_a_line_that_is_not_finished_waits(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":')
    found, place = read(path, Place())
    assert found == [{"a": 1}]
    assert (place.offset, place.number) == (8, 1)
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


def write(path: Path, *texts: str) -> None:
    path.write_text("".join(json.dumps({"t": text}) + "\n" for text in texts))


def told(found: list[object]) -> list[str]:
    return [each["t"] for each in found if isinstance(each, dict)]


def test_what_took_the_place_of_a_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, "one")
    _, place = read(path, Place())
    write(path, "one", "two", "taken back")
    _, place = read(path, place)
    write(path, "one", "two", "what took its place, and is longer", "three")
    found, place = read(path, place)
    assert found == [{"t": "two"}, {"t": "what took its place, and is longer"}, {"t": "three"}]
    assert place.number == 4
    write(path, "one", "two")
    assert told(read(path, place)[0]) == ["two"]
    write(path, "another file altogether", "of several lines", "that are not the same", "and longer")
    assert len(read(path, place)[0]) == 4


def test_a_place_that_an_older_version_kept_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":2}\n{"c":3}\n')
    kept = json.loads('{"offset":8,"number":1}')
    assert read(path, Place(**kept))[0] == [{"b": 2}, {"c": 3}]
    assert read(path, Place(offset=10, number=1))[0] == [{"a": 1}, {"b": 2}, {"c": 3}]  # no line ends there any more


def test_of_a_long_file_only_the_end_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    place, texts = Place(), [f"message {number} {'x' * 200}" for number in range(500)]
    with path.open("w") as file:
        for text in texts:
            file.write(json.dumps({"t": text}) + "\n")
            file.flush()
            found, place = read(path, place)
            assert len(found) == 1
    assert len(place.earlier) < 25
    write(path, *texts[:-1], "instead " * 100)
    assert len(read(path, place)[0]) <= 3
    write(path, *texts[:-60], "instead " * 5_000)
    assert len(read(path, place)[0]) <= 241  # four times as far back as was rewritten, at most


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_however_the_end_is_rewritten_every_line_is_read(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        lines: list[str] = []
        seen: set[str] = set()
        place = Place()
        for step in range(data.draw(st.integers(1, 8))):
            del lines[data.draw(st.integers(0, len(lines))) :]
            sizes = data.draw(st.lists(st.integers(0, 90), max_size=4))
            lines += [f"{step} {at} {'x' * size}" for at, size in enumerate(sizes)]
            write(path, *lines)
            found, place = read(path, place)
            assert not any(isinstance(each, Damage) for each in found)
            seen.update(told(found))
            assert seen.issuperset(lines)
            assert place.number <= len(lines) or not found


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "LONGEST_EVENT_BYTES", 10)
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
