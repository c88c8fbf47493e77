"""What is forgotten while a backup is made is not in it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from offbook.model.errors import OffbookError, StoreBusy
from offbook.model.home import Home
from offbook.transfer.backup import making, write_backup
from tests.unit.transfer.backup.conftest import LARGE, erase_derived


def forget(home: Home) -> None:
    """As another process does: what was said goes, the large part too, and a receipt comes."""
    connection = apsw.Connection(str(home.database))
    connection.execute("UPDATE messages SET content = '\"gone\"' WHERE content LIKE '%大象%'")
    connection.execute("UPDATE messages SET content = '\"gone\"', blobs = NULL WHERE blobs IS NOT NULL")
    erase_derived(connection)
    connection.execute("INSERT INTO erasures (agent, at, receipt) VALUES (1, 1, '{}')")
    connection.execute("VACUUM")
    connection.close()
    for path in home.blobs.rglob("*"):
        if path.is_file():
            path.unlink()


def before(monkeypatch: pytest.MonkeyPatch, name: str, do: Callable[[int], None]) -> list[int]:
    """Do something before each call of a function; returns the list of calls."""
    real: Any = getattr(making, name)
    calls: list[int] = []

    def also(*arguments: Any, **named: Any) -> Any:
        calls.append(len(calls))
        do(len(calls))
        return real(*arguments, **named)

    monkeypatch.setattr(making, name, also)
    return calls


@pytest.mark.parametrize("step", ["pack", "check_archive", "publish"])
async def test_what_is_forgotten_meanwhile_is_not_in_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    calls = before(monkeypatch, step, lambda times: forget(home) if times == 1 else None)
    manifest = await write_backup(home, tmp_path / "made.tar.gz")
    assert len(calls) == 2
    held = zlib.decompress((tmp_path / "made.tar.gz").read_bytes(), wbits=31)
    assert "大象".encode() not in held
    assert LARGE[:100].encode() not in held
    assert b"hello" in held
    assert (manifest.messages, manifest.missing) == (4, [])
    assert [path.name for path in tmp_path.glob(".offbook*")] == []


async def test_a_forget_that_ends_meanwhile_counts_too(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it takes out last, and the free space, were still in the copy."""
    connection = apsw.Connection(str(home.database))
    connection.execute("INSERT INTO erasures (agent, at, receipt) VALUES (1, 1, '{\"unfinished\": {}}')")

    def finish(times: int) -> None:
        other = apsw.Connection(str(home.database))
        other.execute("UPDATE erasures SET receipt = '{}'")
        other.close()

    calls = before(monkeypatch, "pack", finish)
    await write_backup(home, tmp_path / "made.tar.gz")
    connection.close()
    assert len(calls) == 2


async def test_who_never_stops_forgetting_is_told(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = before(monkeypatch, "publish", lambda times: forget(home))
    with pytest.raises(StoreBusy, match="Make it again"):
        await write_backup(home, tmp_path / "made.tar.gz")
    assert len(calls) == making.ATTEMPTS
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


async def test_another_error_is_no_reason_to_try_again(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(times: int) -> None:
        raise OSError("no")

    calls = before(monkeypatch, "pack", fails)
    with pytest.raises(OffbookError, match="no"):
        await write_backup(home, tmp_path / "made.tar.gz")
    assert len(calls) == 1
