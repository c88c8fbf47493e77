"""`kill -9` with every verb under way: nothing acknowledged is lost, what is forgotten is gone, backups restore.

`python -m benchmarks.prove --only kills` makes it a campaign."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from benchmarks.prove.every_verb_kills import AIMED, left_in, tried
from benchmarks.provider import spawn, working_folder

from offbook.api.verbs import VERBS

KILLS = 3
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_every_verb_is_aimed_at() -> None:
    assert set(AIMED) == VERBS.keys()


def test_what_is_left_is_found(tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"so qk0001 it")
    assert list(left_in(tmp_path, ["qk0001", "qk0002"])) == [("qk0001", "page")]


def test_nothing_is_lost_and_nothing_forgotten_comes_back_whichever_verb_is_killed() -> None:
    with working_folder() as folder:
        found = tried(folder, KILLS, spawn=partial(spawn, is_forked=True))
    assert found.wrong == []
    assert int(str(found.figures["answers that a kill took away"])) >= KILLS
    assert found.figures["forgets acknowledged, looked for in every file"]
    assert found.figures["messages that writers had acknowledged"]
