"""A few seconds of the mixed load: the good client is served, and growth is seen.

`python -m benchmarks.prove --only endurance` makes it hours."""

from __future__ import annotations

from statistics import median

import pytest
from benchmarks.prove.endurance import Quarters, quarters, tried
from benchmarks.provider import working_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
MINUTES = 0.08


def test_growth_is_seen() -> None:
    growing = quarters([(float(at), 100.0 + at) for at in range(100)], 100, median)
    assert growing == (137.0, 187.0)
    assert not growing.is_flat()
    assert growing.is_flat(pace=1.5), "the machine itself was that much slower"
    assert Quarters(100, 109).is_flat()
    assert not Quarters(100, 111).is_flat()


def test_a_good_client_is_served_beside_a_hostile_one() -> None:
    with working_folder() as folder:
        found = tried(folder, MINUTES)
    # So short a time says nothing about growth.
    assert [fault for fault in found.wrong if " grew: " not in fault] == []
    assert all(found.figures[name] for name in ("wrong tokens", "large bodies", "slow connections", "other requests"))
    assert found.figures["requests of the good client, all answered"]
