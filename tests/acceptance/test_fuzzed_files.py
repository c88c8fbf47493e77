"""Damaged files are read after all, or refused with what to do.

`python -m benchmarks.prove --only files` makes it a campaign."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from benchmarks.prove.fuzzed_files import FuzzedFiles, Kind
from benchmarks.prove.mutations import MUTATIONS, Mutation
from benchmarks.provider import working_folder

FILES = 290
"""Of each kind a few; two or three of those that take long."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_mutation_is_told_by_its_seed(mutation: Mutation) -> None:
    for data in (b"", b"{}", b'{"number": 12, "text": "said"}' * 40):
        once, again = (mutation(data, random.Random(3)) for _ in range(2))
        assert once == again
    assert any(mutation(data, random.Random(seed)) != data for seed in range(5))


def test_what_goes_wrong_is_told() -> None:
    def fails(path: Path) -> None:
        raise KeyError(path.name)

    with working_folder() as folder:
        trial = FuzzedFiles(folder)
        name, kind = next(iter(trial._kinds.items()))
        trial._kinds[name] = Kind(kind.sample, fails)
        trial.one(0)
    assert [told.split(" in ")[0] for told in trial.wrong.values()] == [f"{name}: KeyError"]


def test_every_damaged_file_is_read_or_refused_with_what_to_do() -> None:
    with working_folder() as folder:
        trial = FuzzedFiles(folder)
        trial.run(FILES)
    assert trial.wrong == {}
    assert trial.read.total() + trial.refused.total() == FILES
    assert set(trial.read | trial.refused) == set(trial._kinds)
