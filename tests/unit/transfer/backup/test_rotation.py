"""Backups that come and go by themselves."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.errors import InvalidInput, OffbookError, StoreFull
from offbook.model.home import Home
from offbook.projections.base import Progress
from offbook.transfer.backup import check_archive, keep_backing_up, listed, making, rotate, rotation
from offbook.transfer.backup.rotation import is_due, name_at, time_of, to_remove

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

moments = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(8999, 1, 1), timezones=st.just(UTC)).map(
    lambda at: at.replace(microsecond=0)
)
strangers = st.sampled_from(
    [
        *("known.json", "before-upgrade.tar.gz", "CON", "", "../offbook-20261115-120000.tar.gz", "offbook-2026.tar.gz"),
        *("offbook-20261399-120000.tar.gz", ".offbook-20261115-120000.tar.gz", "offbook-20261115-120000.tar.gz.bak"),
        *("offbook-20261115-120000.tar.gz\n", "offbook-२०२६१११५-120000.tar.gz"),
    ]
)
names = st.lists(st.one_of(moments.map(name_at), strangers), max_size=12, unique=True)


# ── what is decided ──


@given(moments)
def test_a_name_says_when(at: datetime) -> None:
    assert time_of(name_at(at)) == at


@given(strangers)
def test_other_names_are_none_of_ours(name: str) -> None:
    assert time_of(name) is None


@given(names, moments, st.integers(min_value=0, max_value=8))
def test_only_ours_are_removed_and_as_many_are_left_as_are_kept(names: list[str], at: datetime, keep: int) -> None:
    ours = [name for name in names if time_of(name)]
    going = to_remove(names, at, keep)
    assert set(going) <= set(ours)
    assert len(ours) - len(going) == min(len(ours), max(1, keep))
    staying = [name for name in ours if name not in going]
    for gone in going:
        was = time_of(gone)
        assert was is not None
        assert was > at or all(was <= (time_of(name) or at) for name in staying)
    assert to_remove(staying, at, keep) == []


@given(names, moments)
def test_the_one_just_made_stays_whatever_the_clock_was(names: list[str], at: datetime) -> None:
    assert name_at(at) not in to_remove({*names, name_at(at)}, at, 1)


@given(names, moments, st.integers(min_value=1, max_value=10_000))
def test_one_is_due_unless_there_is_one_of_late(names: list[str], at: datetime, hours: int) -> None:
    every = timedelta(hours=hours)
    lately = [when for name in names if (when := time_of(name)) and at - every < when <= at]
    assert is_due(names, at, every) == (not lately)
    assert not is_due([*names, name_at(at)], at, every), "one is made, then none for a while"


def test_a_backup_of_the_future_does_not_keep_others_from_being_made() -> None:
    assert is_due([name_at(NOON + 400 * 24 * HOUR)], NOON, HOUR)
    assert not is_due([name_at(NOON + HOUR), name_at(NOON)], NOON, HOUR)


# ── what is done ──


async def test_one_is_made_where_it_is_time_and_the_newest_stay(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    at = NOON
    monkeypatch.setattr(rotation, "now", lambda: at)
    assert await keep_backing_up(home, None, 2) == Progress()
    assert not home.backups.exists(), "off is off"
    for number in range(4):
        at = NOON + number * HOUR
        done = await keep_backing_up(home, HOUR, 2)
        assert done == Progress(did={"backups": 1} if number < 2 else {"backups": 1, "removed": 1})
        assert await keep_backing_up(home, HOUR, 2) == Progress()
    assert [Path(one.file).name for one in listed(home)] == [name_at(NOON + 2 * HOUR), name_at(NOON + 3 * HOUR)]
    assert all(check_archive(Path(one.file)).messages == 4 for one in listed(home))
    assert (home.backups.stat().st_mode & 0o077, Path(listed(home)[0].file).stat().st_mode & 0o077) == (0, 0)


async def test_two_in_one_second_are_two(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "now", lambda: NOON)
    first, second = await rotate(home, 1), await rotate(home, 7)
    assert first.file != second.file
    assert [one.file for one in listed(home)] == [first.file, second.file]


async def test_whatever_else_lies_there_is_left_alone(home: Home, tmp_path: Path) -> None:
    home.backups.mkdir()
    elsewhere = tmp_path / "elsewhere.tar.gz"
    elsewhere.write_text("mine")
    (home.backups / "offbook-20200101-000000.tar.gz").symlink_to(elsewhere)
    (home.backups / "offbook-20200102-000000.tar.gz").mkdir()
    (home.backups / "holiday.tar.gz").write_text("mine")
    (home.backups / "offbook-20200103-000000.tar.gz").write_text("ours, and old")
    await rotate(home, 1)
    rotated = await rotate(home, 1)
    assert len(rotated.removed) == 1
    left = {path.name for path in home.backups.iterdir()}
    assert left == {
        "offbook-20200101-000000.tar.gz",
        "offbook-20200102-000000.tar.gz",
        "holiday.tar.gz",
        Path(rotated.file).name,
    }
    assert elsewhere.read_text() == "mine"


async def test_one_that_fails_removes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    await rotate(home, 1)
    before = sorted(path.name for path in home.backups.iterdir())

    def no_room(*_: object, **__: object) -> None:
        raise StoreFull("there is no room")

    monkeypatch.setattr(making, "check_archive", no_room)
    with pytest.raises(StoreFull):
        await rotate(home, 1)
    assert sorted(path.name for path in home.backups.iterdir()) == before


async def test_what_a_kill_left_behind_goes_after_an_hour_where_nobody_can_tell(home: Home) -> None:
    home.backups.mkdir()
    for name, age_hours in ((".offbook-backup-old", 1.1), (".offbook-backup-new", 0.9)):
        (home.backups / name).mkdir()
        (home.backups / name / "offbook.db").write_text("half a copy")
        then = time.time() - age_hours * 3600
        os.utime(home.backups / name, (then, then))
    await rotate(home, 3)
    assert {path.name for path in home.backups.glob(".*")} == {".offbook-backup-new"}


async def test_a_damaged_one_is_listed_with_its_trouble(home: Home) -> None:
    home.backups.mkdir()
    (home.backups / "offbook-20200101-000000.tar.gz").write_bytes(b"not a backup")
    (one,) = listed(home)
    assert one.trouble is not None
    assert one.made_at == datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("gone_before", ["stat", "reading"])
async def test_one_that_goes_while_it_is_listed_is_none(
    home: Home, monkeypatch: pytest.MonkeyPatch, gone_before: str
) -> None:
    stays = Path((await rotate(home, 3)).file).name
    going = home.backups / "offbook-20200101-000000.tar.gz"
    going.write_bytes(b"not a backup")
    names, read = rotation._names, rotation.read_manifest

    def named(home: Home) -> list[str]:
        found = names(home)
        going.unlink() if gone_before == "stat" else None
        return found

    def manifest(path: Path) -> rotation.Manifest:
        going.unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(rotation, "_names", named)
    monkeypatch.setattr(rotation, "read_manifest", manifest)
    assert [Path(one.file).name for one in listed(home)] == [stays]


async def test_where_there_is_nothing_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing to back up"):
        await rotate(Home(tmp_path / "nothing"), 1)
    assert await keep_backing_up(Home(tmp_path / "nothing"), HOUR, 1) == Progress()
    assert not (tmp_path / "nothing").exists()


async def test_a_folder_that_cannot_be_written_is_told(home: Home) -> None:
    home.backups.write_text("a file in its place")
    with pytest.raises(OffbookError, match="backups"):
        await rotate(home, 1)
