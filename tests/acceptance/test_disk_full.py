"""A full disk refuses, loses nothing and is over once there is room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from benchmarks.provider import spawn, working_folder
from benchmarks.trials.full_disk import DISK_BYTES, FullDiskTrial
from benchmarks.trials.small_disk import MountRefused, SmallDisk, small_disk

from tests.acceptance.daemon import WITHOUT_MODEL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with ExitStack() as stack:
        folder = stack.enter_context(working_folder())
        try:
            mounted = stack.enter_context(small_disk(folder / "home", DISK_BYTES))
        except MountRefused as refused:
            pytest.skip(str(refused))
        yield mounted


async def test_a_full_disk_refuses_loses_nothing_and_recording_resumes(disk: SmallDisk) -> None:
    report = await FullDiskTrial(disk, seed=1, spawn=partial(spawn, is_forked=True, **WITHOUT_MODEL)).run()
    assert report.faults == []
    assert report.reckoning.faults == []
    assert list(report.problems) == ["urn:offbook:problem:store-full 507 retryable=True"]
    assert report.reads_while_full["ping 200"]
    assert report.start_while_full == "it starts"
    assert report.reckoning.stored_unacknowledged == 0
    assert report.exit_code == 0
