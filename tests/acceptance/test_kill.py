"""`kill -9` under load: what was acknowledged is there, once, in order, and everything verifies."""

from __future__ import annotations

import os
from functools import partial

import pytest
from benchmarks.provider import spawn, working_folder
from benchmarks.trials.kills import KillTrial

from tests.acceptance.daemon import WITHOUT_MODEL

IS_CAMPAIGN = "PROVE_KILLS" in os.environ
KILLS = int(os.environ.get("PROVE_KILLS", "4"))
"""One for each kind of request. `make prove` has a thousand, of providers that are started anew and have a model."""
SPAWN = spawn if IS_CAMPAIGN else partial(spawn, is_forked=True, **WITHOUT_MODEL)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60 + 30 * KILLS)]


async def test_nothing_acknowledged_is_lost_doubled_or_altered_by_kills() -> None:
    with working_folder() as folder:
        report = await KillTrial(folder / "home", kills=KILLS, writers=6, seed=1, spawn=SPAWN).run()
    assert report.reckoning.faults == []
    assert report.exit_code == 0
    assert report.reckoning.stored_unacknowledged == 0, "every message was sent again until it was acknowledged"
    assert report.lost_answers >= KILLS, "the kills hit no request"
    assert report.hit["batch"]
    assert report.hit["large"]
