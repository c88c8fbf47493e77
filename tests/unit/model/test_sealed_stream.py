"""A sealed file gives back what was written, or says that it was altered."""

from __future__ import annotations

from pathlib import Path

import pytest

from offbook.model.errors import InvalidInput, KeyNeeded
from offbook.model.keys import Keys
from offbook.model.sealed_stream import (
    CHUNK_BYTES,
    MAGIC,
    SALT_BYTES,
    TAG_BYTES,
    SealedWriter,
    is_sealed,
    open_maybe_sealed,
    sealed_keys,
)
from tests.unit.encrypted_home import encrypted, forget_keys


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return encrypted(tmp_path / "home")


def sealed(path: Path, keys: Keys, data: bytes) -> Path:
    with path.open("wb") as file:
        writer = SealedWriter(file, keys)
        for first in range(0, len(data), 300_001):
            writer.write(data[first : first + 300_001])
        writer.finish()
    return path


def read(path: Path) -> bytes:
    with open_maybe_sealed(path) as file:
        return file.read()


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
def test_what_was_sealed_is_read_again(tmp_path: Path, keys: Keys, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    path = sealed(tmp_path / "file", keys, data[:size])
    assert is_sealed(path)
    assert read(path) == data[:size]
    assert size < 32 or data[:32] not in path.read_bytes()


def test_what_is_not_sealed_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"plain")
    assert read(tmp_path / "file") == b"plain"
    assert sealed_keys(tmp_path / "file") is None


def test_the_same_twice_is_not_the_same_bytes(tmp_path: Path, keys: Keys) -> None:
    one, other = (sealed(tmp_path / name, keys, b"the same") for name in ("one", "other"))
    assert one.read_bytes() != other.read_bytes()


@pytest.mark.parametrize("how", ["cut", "shorter", "swapped", "doubled", "flipped"])
def test_what_was_altered_is_refused(tmp_path: Path, keys: Keys, how: str) -> None:
    path = sealed(tmp_path / "file", keys, b"x" * (3 * CHUNK_BYTES))
    data = path.read_bytes()
    begin = data.index(b"\n", len(MAGIC)) + 1 + SALT_BYTES
    size = CHUNK_BYTES + TAG_BYTES
    first, second, third = (data[begin + at * size : begin + (at + 1) * size] for at in range(3))
    chunks = {
        "cut": first + second,  # at the end of a chunk: what is there is whole
        "shorter": first + second + third[:-1],
        "swapped": second + first + third,
        "doubled": first + first + second + third,
        "flipped": first + second[:-1] + bytes([second[-1] ^ 1]) + third,
    }[how]
    path.write_bytes(data[:begin] + chunks)
    with pytest.raises(InvalidInput, match="altered"):
        read(path)


def test_without_the_key_it_stays_closed(tmp_path: Path, keys: Keys) -> None:
    path = sealed(tmp_path / "file", keys, b"secret")
    (tmp_path / "home.key").unlink()
    forget_keys()
    with pytest.raises(KeyNeeded):
        read(path)
