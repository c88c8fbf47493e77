"""Fits the weights of ranking, and judges them on what they were not fitted on.

    python -m benchmarks.quality.features --work FOLDER
    python -m benchmarks.quality.fit_ranking --work FOLDER [--write [TABLE ...]]

Fitted on our own conversations and RealMem (Apache 2.0); LoCoMo may not be shipped, so it is judged only. The
weights are held to those that were set by hand before (`START`) by a ridge, so that what the data says little about
stays as it was. Each conversation or persona is judged by weights fitted without it, and again by weights fitted
without its whole kind. `--write` writes `search/ranking_weights.py`, fitted on all of them.
The probability is fitted to the scores that these give: `benchmarks.memory.fit_score` comes after it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.listwise import Floats, Lists, fitted
from benchmarks.quality.metric import recall_at
from offbook.models.glossary import in_english
from offbook.models.minilm import reads
from offbook.search import ranking_weights, weights
from offbook.search.evidence import FEATURES
from offbook.search.words import is_latin

KINDS = (weights.CHAT, weights.ASSISTANT, weights.ASSISTANT_QUESTION)
MEANING = ("meaning", "window_meaning", "episode_best", "episode_meaning", "previous_meaning", "next_meaning")
WORDS = tuple(name for name in FEATURES if name not in MEANING)
TARGET = Path(weights.__file__).with_name("ranking_weights.py")
START: dict[str, dict[str, dict[str, float]]] = json.loads(Path(__file__).with_name("ranking_start.json").read_text())
"""The weights set by hand, with vectors and by words."""
RIDGE = 3.0
TABLES = ("WITH_VECTORS", "BY_WORDS")
MOST = 200
"""Candidates of a question that are fitted on: the best, by the weights there were."""
LIMIT, SHOWN = 42, 30

Weights = dict[str, dict[str, float]]
"""By recipe and feature."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, and what ranking had of each candidate."""

    group: str
    conversation: str
    about: Mapping[str, Any]
    rows: Mapping[str, NDArray[Any]]
    """Of the whole conversation, by field."""
    turns: NDArray[Any]
    candidates: NDArray[np.int64]
    features: NDArray[np.float32]
    is_relevant: NDArray[np.bool_]
    added: Floats
    scores: Floats
    has_vector: bool

    @cached_property
    def evidence(self) -> set[str]:
        return set(self.about["evidence"])

    @cached_property
    def is_evidence(self) -> NDArray[np.bool_]:
        return np.isin(self.turns[self.candidates], list(self.evidence))

    @cached_property
    def table_name(self) -> str:
        """Of the weights for it."""
        if not self.has_vector:
            return "BY_WORDS"
        is_read = is_latin(in_english(self.about["question"])) and reads(self.about["question"])
        return "WITH_VECTORS" if is_read else "BY_WORDS"

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """Of each of `KINDS` in the recipe for this question."""
        share = weights.assistant_share(*self.about["chars"])
        is_direct = self.about["is_question"] or self.about["wants_memory"]
        is_direct = (
            is_direct and self.about["terms"] <= weights.LONGEST_DIRECT_QUESTION and self.about["sentences"] <= 1
        )
        return 1 - share, 0.0 if is_direct else share, share if is_direct else 0.0

    def table(self, names: Sequence[str]) -> Floats:
        """A column for each of the features in each of the recipes."""
        own = self.features[:, [FEATURES.index(name) for name in names]].astype(np.float64)
        if self.about["asks_assistant"] and self.shares[2]:
            own[:, names.index("user")] *= -1
        table = np.concatenate([own * share for share in self.shares], axis=1)
        table[:, names.index("user")] = 0.0  # in a chat (the first recipe) both sides are people
        return table

    def weighed(self, fit: Mapping[str, Weights]) -> Floats:
        names = WORDS if self.table_name == "BY_WORDS" else FEATURES
        score: Floats = self.table(names) @ flat(fit[self.table_name], names) + self.added
        return score

    def shown(self, scores: Floats) -> list[str]:
        """The turns that recall would show: the newer of equals first, and each once."""
        order = np.argsort(-np.where(self.is_relevant, scores, -np.inf), kind="stable")[: 2 * LIMIT]
        order = order[self.is_relevant[order]]
        chosen = self.candidates[order]
        mean = self.rows["mean"][chosen].astype(np.float32)
        likeness = mean @ mean.T
        adjusted = weights.newer_first(scores[order], self.rows["ts"][chosen], likeness)
        apart = weights.without_near_duplicates_of_other_numbers(likeness, self.rows["numbers"][chosen])
        view = np.zeros(len(chosen), [("role", "u1"), ("ts", "<i8")])
        view["role"], view["ts"] = self.rows["role"][chosen], self.rows["ts"][chosen]
        kept, _ = weights.once_each(np.argsort(-adjusted, kind="stable"), apart, view)
        found: list[str] = self.turns[chosen[kept[:SHOWN]]].tolist()
        return found


def load(folder: Path) -> list[Asked]:
    found: list[Asked] = []
    for path in sorted(folder.glob("*/*.npz")):
        file = np.load(path)
        whole = json.loads(file["about"].tobytes())
        rows = {name.removeprefix("row/"): file[name] for name in file.files if name.startswith("row/")}
        kind = f"{whole['kind']} {whole['language']}" if whole["kind"] else path.parent.name
        for number, about in enumerate(whole["questions"]):
            if f"{number}/rows" not in file.files or about["category"] == "adversarial":
                continue
            of = {name: file[f"{number}/{name}"] for name in ("rows", "features", "relevant", "added", "scores")}
            found.append(
                Asked(
                    group=kind,
                    conversation=f"{path.parent.name} {whole['conversation']}",
                    about=about,
                    rows=rows,
                    turns=np.array(whole["turns"]),
                    candidates=of["rows"],
                    features=of["features"],
                    is_relevant=of["relevant"],
                    added=of["added"].sum(axis=1).astype(np.float64),
                    scores=of["scores"].astype(np.float64),
                    has_vector=bool(file[f"{number}/has_vector"].any()),
                )
            )
    return found


# ── the fit ──


def flat(given: Weights, names: Sequence[str]) -> Floats:
    return np.array([given[kind].get(name, 0.0) for kind in KINDS for name in names])


def fit(asked: Sequence[Asked], ridge: float) -> dict[str, Weights]:
    """With vectors, where the model reads the question; by words, on all."""
    read = [one for one in asked if one.table_name == "WITH_VECTORS"]
    return {
        "WITH_VECTORS": _fit(read, FEATURES, START["WITH_VECTORS"], ridge),
        "BY_WORDS": _fit(asked, WORDS, START["BY_WORDS"], ridge),
    }


def _fit(asked: Sequence[Asked], names: Sequence[str], start: Weights, ridge: float) -> Weights:
    """A kind of conversation counts by the root of its questions: neither the largest nor the smallest decides."""
    known = [one for one in asked if (one.is_evidence & one.is_relevant).any()]
    counts = Counter(one.group for one in known)
    kept = [_fitted_on(one) for one in known]
    lists = Lists(
        tables=[one.table(names)[rows] for one, rows in zip(known, kept, strict=True)],
        offsets=[one.added[rows] for one, rows in zip(known, kept, strict=True)],
        is_evidence=[one.is_evidence[rows] for one, rows in zip(known, kept, strict=True)],
        weights=[counts[one.group] ** -0.5 for one in known],
    )
    found = fitted(lists, flat(start, names), ridge).reshape(len(KINDS), len(names))
    return {kind: dict(zip(names, row.tolist(), strict=True)) for kind, row in zip(KINDS, found, strict=True)}


def _fitted_on(one: Asked) -> NDArray[np.int64]:
    order = np.argsort(-one.scores, kind="stable")
    order = order[one.is_relevant[order]]
    return np.concatenate([order[:MOST], order[MOST:][one.is_evidence[order[MOST:]]]])


# ── judged ──

Judged = NDArray[np.float64]
"""A row a question: Recall@5, @10, @30, and whether all of the evidence is among the first 30."""

GROUPS: dict[str, Callable[[Asked], bool]] = {
    "own": lambda one: one.conversation.startswith("own"),
    "own, agent work": lambda one: one.group.startswith("agent-work"),
    "own, friends": lambda one: one.group.startswith("friends"),
    "own, assistant": lambda one: one.group.startswith("assistant"),
    "own, other languages": lambda one: one.conversation.startswith("own") and not one.group.endswith(" en"),
    "own, agent work in English": lambda one: one.group == "agent-work en",
    **{
        f"own, {language}": lambda one, language=language: (  # type: ignore[misc]
            one.conversation.startswith("own") and one.group.endswith(f" {language}")
        )
        for language in ("de", "zh", "es", "fr", "it")
    },
    "own, written later": lambda one: one.conversation.startswith("own x"),
    **{
        f"own, {category}": lambda one, category=category: (  # type: ignore[misc]
            one.conversation.startswith("own") and one.about["category"] == category
        )
        for category in ("single", "list", "update", "project", "dated", "temporal", "multi", "inference")
    },
    "names a date, all sets": lambda one: bool(one.about["times"]),
    "RealMem": lambda one: one.group == "RealMem",
    "LoCoMo": lambda one: one.group == "LoCoMo",
    "several pieces of evidence": lambda one: len(one.evidence) > 1,
}


def judged(asked: Iterable[Asked], score: Callable[[Asked], Floats]) -> Judged:
    rows = []
    for one in asked:
        shown = one.shown(score(one))
        rows.append([*(recall_at(shown, one.evidence, k) for k in (5, 10, 30)), float(one.evidence <= set(shown))])
    return np.array(rows)


def left_out(asked: Sequence[Asked], of: Callable[[Asked], str], ridge: float) -> Judged:
    """Each judged by weights that were fitted without its like; LoCoMo by weights fitted on all others."""
    fitted_on = [one for one in asked if one.group != "LoCoMo"]
    found = np.zeros((len(asked), 4))
    for name in [*sorted({of(one) for one in fitted_on}), "LoCoMo"]:
        chosen = [at for at, one in enumerate(asked) if (of(one) if one.group != "LoCoMo" else "LoCoMo") == name]
        if not chosen:  # LoCoMo was left aside
            continue
        made = fit([one for one in fitted_on if of(one) != name], ridge)
        found[chosen] = judged([asked[at] for at in chosen], lambda one, made=made: one.weighed(made))  # type: ignore[misc]
    return found


def show(asked: Sequence[Asked], results: Mapping[str, Judged]) -> None:
    print("R@5 R@10 R@30 all-in-30".ljust(32), *(name.rjust(24) for name in results))
    for group, belongs in GROUPS.items():
        chosen = np.array([belongs(one) for one in asked])
        if chosen.any():
            cells = ["  ".join(f"{value:.3f}" for value in found[chosen].mean(axis=0)) for found in results.values()]
            print(group.ljust(26), f"{chosen.sum():5}", *(cell.rjust(24) for cell in cells))


def spread(asked: Sequence[Asked], ridge: float) -> None:
    """Recall@10 of each kind under weights fitted without each kind in turn: how much the choice matters."""
    fitted_on = [one for one in asked if one.group != "LoCoMo"]
    kinds = sorted({one.group for one in fitted_on})
    made = {kind: fit([one for one in fitted_on if one.group != kind], ridge) for kind in kinds}
    print("fitted without".ljust(16), *(kind.rjust(16) for kind in kinds))
    for judged_kind in sorted({one.group for one in asked}):
        some = [one for one in asked if one.group == judged_kind]
        cells = [judged(some, lambda one, kind=kind: one.weighed(made[kind]))[:, 1].mean() for kind in kinds]  # type: ignore[misc]
        print(judged_kind.ljust(16), *(f"{cell:16.3f}" for cell in cells), f"  spread {max(cells) - min(cells):.3f}")


def write(made: Mapping[str, Weights]) -> None:
    lines = [
        '"""Weights of ranking, by recipe and feature. `python -m benchmarks.quality.fit_ranking --write` makes it."""',
        "",
        "from __future__ import annotations",
    ]
    for name, recipes in made.items():
        lines += ["", f"{name}: dict[str, dict[str, float]] = {{"]
        for recipe, given in recipes.items():
            lines += [
                f'    "{recipe}": {{',
                *(f'        "{key}": {value:.3f},' for key, value in given.items()),
                "    },",
            ]
        lines += ["}"]
    TARGET.write_text("\n".join([*lines, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="the folder that `features` was given")
    parser.add_argument("--name", default="features", help="of the folder with what was found")
    parser.add_argument("--ridge", type=float, default=RIDGE)
    parser.add_argument(
        "--write",
        nargs="*",
        choices=TABLES,
        metavar="TABLE",
        help=f"write what was fitted on all that may be fitted on: these tables ({', '.join(TABLES)}), else all",
    )
    given = parser.parse_args()
    asked = load(given.work / given.name)
    results = {
        "as it is": judged(asked, lambda one: one.scores),
        "set by hand": judged(asked, lambda one: one.weighed(START)),
        "left out, one by one": left_out(asked, lambda one: one.conversation, given.ridge),
        "its kind left out": left_out(asked, lambda one: one.group, given.ridge),
    }
    show(asked, results)
    spread(asked, given.ridge)
    if given.write is not None:
        made = fit([one for one in asked if one.group != "LoCoMo"], given.ridge)
        kept = {name: getattr(ranking_weights, name) for name in TABLES}
        write(kept | {name: made[name] for name in given.write or TABLES})


if __name__ == "__main__":
    main()
