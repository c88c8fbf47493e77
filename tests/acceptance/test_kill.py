"""`kill -9` under load: what was acknowledged is there, once, in order, and everything verifies."""

from __future__ import annotations

import pytest
from benchmarks.provider import working_folder
from benchmarks.trials.kills import KillTrial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

KILLS = 6


async def test_nothing_acknowledged_is_lost_doubled_or_altered_by_kills() -> None:
    with working_folder() as folder:
        report = await KillTrial(folder / "home", kills=KILLS, writers=6, seed=1).run()
    assert report.reckoning.faults == []
    assert report.exit_code == 0
    assert report.reckoning.stored_unacknowledged == 0, "every message was sent again until it was acknowledged"
    assert report.lost_answers >= KILLS, "the kills hit no request"
    assert report.hit["batch"]
    assert report.hit["large"]
