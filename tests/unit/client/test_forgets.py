from __future__ import annotations

import pytest

from offbook.client.messages import counted


@pytest.mark.parametrize(
    ("told", "times"),
    [
        ([None, None, 0], 0),  # not counted yet, and then nothing was forgotten
        ([None, 1], 1),  # an agent is counted from its first time on
        ([3, 3, None, 3], 0),  # a provider that does not say is no news
        ([3, None, 4, 4], 1),
        ([3, 0, 0], 1),  # counted anew: who knows what was forgotten meanwhile
    ],
)
def test_how_often_something_was_forgotten(told: list[int | None], times: int) -> None:
    known: int | None = None
    found = 0
    for each in told:
        known, is_more = counted(known, each)
        found += is_more
    assert found == times
