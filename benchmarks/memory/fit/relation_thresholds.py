"""How sure the model of corrections must be: `REPLACES` (`offbook.projections.links`).

    OFFBOOK_HOME=… python -m benchmarks.memory.fit.relation_thresholds        some minutes on one core

Judged on what the weights were not fitted to. `judging.jsonl.gz`: 298 statements with what corrects them, openly or by
a consequence, and what only looks like it; in six languages, written by several, labelled once. Crossed: what replaces
one of these beside what is only near it. `judging-changes.jsonl.gz`: 120 changes with what they end and what holds
beside them, of others or of the same; and 60 that end nothing, each with one beside it that does. The rule: the lowest
threshold that marks at most `MOST_FALSE` of what replaces nothing; and one higher where that finds as many corrections
through the verb and marks fewer near misses (`benchmarks.memory`). Scripts without spaces are shown apart: the model's
vocabulary has few of their letters.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import numpy as np

from benchmarks.memory.fit.relation_data import Pair, case_pairs, change_pairs, crossed_pairs, rows_of
from offbook.model.home import home_folder
from offbook.models.relation import RelationModel
from offbook.statements.common_words import is_unspaced

MOST_FALSE = 0.025
THRESHOLDS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def main() -> None:
    cases = rows_of("judging")
    written, changes = case_pairs(cases), change_pairs(rows_of("judging-changes"))
    crossed = crossed_pairs(cases, random.Random(9))
    for name, some in (
        ("all", written + changes + crossed),
        ("cases", written),
        ("changes", changes),
        ("crossed", crossed),
    ):
        show(name, [one for one in some if not is_without_spaces(one.earlier + one.later)])
    show(
        "all without spaces", [one for one in written + changes + crossed if is_without_spaces(one.earlier + one.later)]
    )


def show(name: str, pairs: Sequence[Pair]) -> None:
    model = RelationModel(home_folder(os.environ) / "models")
    scores = np.array(model.replaces([(one.earlier, one.later) for one in pairs]))
    is_so = np.array([one.relation == "replaces" for one in pairs])
    print(f"{name}: {is_so.sum()} replace, {(~is_so).sum()} do not (at most {MOST_FALSE:.1%} of them are to be marked)")
    for least in THRESHOLDS:
        marked = scores >= least
        false = int(marked[~is_so].sum())
        found = f"{marked[is_so].mean():.1%} found, " if is_so.any() else ""
        print(f"  {least}: {found}{false} marked falsely ({marked[~is_so].mean():.2%})")


def is_without_spaces(text: str) -> bool:
    """Whether most of its letters are of such a script."""
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(map(is_unspaced, letters)) > len(letters)


if __name__ == "__main__":
    main()
