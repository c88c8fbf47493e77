"""How sure the model of corrections must be: `REPLACES` (`offbook.projections.links`).

    OFFBOOK_HOME=… python -m benchmarks.memory.fit.relation_thresholds        some minutes on one core

Judged on what the weights were not fitted to: `judging.jsonl.gz`, 298 statements with what corrects them, openly or by
a consequence, and what only looks like it; in six languages, written by several, labelled once. The rule: the lowest
threshold that marks at most `MOST_FALSE` of what replaces nothing. Scripts without spaces are shown apart: the model's
vocabulary has few of their letters.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from benchmarks.memory.fit.relation_data import Pair, case_pairs, rows_of
from offbook.model.home import home_folder
from offbook.models.relation import RelationModel
from offbook.statements.common_words import is_unspaced

MOST_FALSE = 0.025
THRESHOLDS = (0.7, 0.8, 0.85, 0.88, 0.9, 0.92, 0.935, 0.945, 0.955)


def main() -> None:
    pairs = case_pairs(rows_of("judging"))
    for name, some in (
        ("with spaces", [one for one in pairs if not is_without_spaces(one.earlier + one.later)]),
        ("without spaces", [one for one in pairs if is_without_spaces(one.earlier + one.later)]),
    ):
        show(name, some)


def show(name: str, pairs: Sequence[Pair]) -> None:
    model = RelationModel(home_folder(os.environ) / "models")
    scores = np.array(model.replaces([(one.earlier, one.later) for one in pairs]))
    is_so = np.array([one.relation == "replaces" for one in pairs])
    print(f"{name}: {is_so.sum()} replace, {(~is_so).sum()} do not (at most {MOST_FALSE:.1%} of them are to be marked)")
    for least in THRESHOLDS:
        marked = scores >= least
        false = int(marked[~is_so].sum())
        print(f"  {least}: {marked[is_so].mean():.1%} found, {false} marked falsely ({marked[~is_so].mean():.2%})")


def is_without_spaces(text: str) -> bool:
    """Whether most of its letters are of such a script."""
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(map(is_unspaced, letters)) > len(letters)


if __name__ == "__main__":
    main()
