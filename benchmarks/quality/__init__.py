"""Does recall find what was said? The product and, over the same turns with the same model, what others do."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

import uvloop
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.quality.data import Conversation, load, some_of
from benchmarks.quality.metric import Mean, Score, mean, milliseconds, scored
from benchmarks.quality.product import Feeding, scores_of
from benchmarks.quality.rules import RULES, Corpus
from benchmarks.quality.vectors import CachingEmbedder, remembered_vectors
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run

TITLE = "Turn-level recall of real conversations, beside the rules of others over the same turns with the same model"

LEAST = {"LoCoMo": 0.79, "RealMem": 0.42}
"""Recall@10, with one default configuration for both."""
APART = "adversarial"
"""Questions of LoCoMo that have no answer, only turns they play on: reported apart, as its authors do."""
OFFBOOK = "Offbook"
QUICK_QUESTIONS = 40
FIGURES = ("R@5", "R@10", "R@30", "4k", "MRR")
"""What `Mean` has, as the tables say it."""

PLAIN = Feeding()
AT_THE_TIME = Feeding(at_the_time=True)
WAYS: dict[str, dict[str, Feeding]] = {
    "LoCoMo": {
        "user and assistant, with names": Feeding(as_roles=True),
        "user and assistant, no names": Feeding(as_roles=True, has_names=False),
        "all in one session": Feeding(in_one_session=True),
        "no times": Feeding(has_ts=False),
    },
    "RealMem": {"all in one session": Feeding(in_one_session=True), "no times": Feeding(has_ts=False)},
}

Row = dict[str, Cell]


class Fed:
    """Runs conversations through the product, each in a folder of its own."""

    def __init__(self, run: Run, progress: Progress) -> None:
        self._folder = run.folder
        self._numbers = count()
        self._progress = progress

    def scores(self, what: str, conversations: list[Conversation], feedings: list[Feeding]) -> list[list[Score]]:
        questions = sum(len(conversation.questions) for conversation in conversations)
        task = self._progress.add_task(what, total=questions)
        scores: list[list[Score]] = [[] for _ in feedings]
        for conversation in conversations:
            made = uvloop.run(
                scores_of(
                    conversation,
                    self._home(),
                    feedings,
                    lambda questions: self._progress.advance(task, questions),
                )
            )
            for before, more in zip(scores, made, strict=True):
                before.extend(more)
        return scores

    def _home(self) -> Path:
        return self._folder / f"quality-{next(self._numbers)}"


def measure(run: Run) -> Findings:
    sets = {name: load(run.data, name) for name in LEAST}
    if run.is_quick:
        sets = {name: some_of(conversations, questions=QUICK_QUESTIONS) for name, conversations in sets.items()}
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        remembered_vectors(run.cache) as embedder,
        Progress(*columns, console=run.console, disable=not run.console.is_terminal) as progress,
    ):
        fed = Fed(run, progress)
        scores: dict[str, dict[str, list[Score]]] = {OFFBOOK: {}}
        ways: list[Row] = []
        for name, conversations in sets.items():
            run.say(f"{name}: fed and asked")
            default, at_the_time = fed.scores(name, conversations, [PLAIN, AT_THE_TIME])
            scores[OFFBOOK][name] = default
            ways.append(_way(name, "as it is", default))
            ways.append(_way(name, "asked with `at`, the time of the last visible turn", at_the_time))
            for way, feeding in WAYS[name].items():
                run.say(f"{name}: {way}")
                ways.append(_way(name, way, fed.scores(f"{name}, {way}", conversations, [feeding])[0]))
            run.say(f"{name}: the rules of others")
            for rule, found in _by_rules(conversations, embedder).items():
                scores.setdefault(rule, {})[name] = found
        new = embedder.embedded
    return _findings(run, sets, scores, ways, new)


def _by_rules(conversations: list[Conversation], embedder: CachingEmbedder) -> dict[str, list[Score]]:
    scores: dict[str, list[Score]] = {name: [] for name in RULES}
    for conversation in conversations:
        corpus = Corpus(conversation, embedder)
        _ = corpus.passages, corpus.exchanges  # made beforehand, as an index would be
        for question in conversation.questions:
            seen = conversation.turns_through(question.visible_sessions)
            for name, rule in RULES.items():
                started = time.perf_counter()
                answer = rule(corpus, question.question, seen)
                taken = (time.perf_counter() - started) * 1_000
                scores[name].append(scored(answer, question.evidence, question.category, taken))
    return scores


# ── told ──────────────────────────────────────────────────────────────────────────────────────


def _findings(
    run: Run,
    sets: dict[str, list[Conversation]],
    scores: dict[str, dict[str, list[Score]]],
    ways: list[Row],
    new_vectors: int,
) -> Findings:
    main = {name: mean(_main(scores[OFFBOOK][name])) for name in sets}
    turns = {
        name: sum(len(session.turns) for one in conversations for session in one.sessions)
        for name, conversations in sets.items()
    }
    return Findings(
        bars=[
            Bar(
                f"{name}, Recall@10",
                f"≥ {least:g}",
                f"{main[name].at_10:.3f}",
                None if run.is_quick else main[name].at_10 >= least,
            )
            for name, least in LEAST.items()
        ],
        rows=[_bar_row(), *(_row(who, by_set) for who, by_set in scores.items())],
        sections=[
            Section("Offbook by category", _categories(scores[OFFBOOK])),
            Section("Offbook, fed in other ways with the same configuration", ways),
        ],
        notes=[
            f"Recall@k is the share of a question's evidence turns among the first k returned, on average over "
            f"{', '.join(f'{main[name].questions:,} questions to {turns[name]:,} turns of {name}' for name in sets)}; "
            f"4k: within 4,000 characters returned; LoCoMo without the adversarial questions. At most 30 entries.",
            "Offbook is the product: `open_memory` in an empty folder, an agent for each conversation, sessions in "
            "order, each question asked as `recall(limit=30)` once what it may see is in and embedded. Its text is an "
            "excerpt; that of the others the whole turn.",
            "ms is one question, the model's vector of it included (for Offbook in process, with the durable audit "
            f"event). Vectors of turns are kept between runs ({new_vectors:,} were made in this one).",
            "The others: BM25 (k1 1.2, b 0.75) and cosine of the nearest passage, question as asked; 0.7 cosine + 0.3 "
            "BM25 as z-scores; swap: cosine ≥ 0.4, query and its words of content, ≥ 2, else the newest 2; "
            "continuity: 30 nearest exchanges by distance − exp(−days/14)·0.15, noise out, ranked on beyond 5.",
        ],
    )


def _main(scores: list[Score]) -> list[Score]:
    return [score for score in scores if score.category != APART]


def _row(who: str, by_set: dict[str, list[Score]]) -> Row:
    row: Row = {"recall by": who}
    for name, scores in by_set.items():
        row |= {f"{name} {column}": value for column, value in _figures(mean(_main(scores))).items()}
    both = [score for scores in by_set.values() for score in scores]
    return row | {"p50 ms": milliseconds(both, 50), "p95 ms": milliseconds(both, 95)}


def _bar_row() -> Row:
    row: Row = {"recall by": "the bar"}
    for name, least in LEAST.items():
        row |= {f"{name} {column}": least if column == "R@10" else None for column in FIGURES}
    return row | {"p50 ms": None, "p95 ms": None}


def _figures(of: Mean) -> dict[str, Cell]:
    return dict(zip(FIGURES, of[1:], strict=True))


def _categories(by_set: dict[str, list[Score]]) -> list[Row]:
    rows: list[Row] = []
    for name, scores in by_set.items():
        groups = {category: [score for score in scores if score.category == category] for category in _named(scores)}
        if APART in groups:
            groups = {"all but adversarial": _main(scores), "all": scores} | groups
        else:
            groups = {"all": scores} | groups
        for category, some in groups.items():
            of = mean(some)
            rows.append({"set": name, "category": category, "questions": of.questions, **_figures(of)})
    return rows


def _named(scores: list[Score]) -> list[str]:
    return sorted({score.category for score in scores})


def _way(name: str, way: str, scores: list[Score]) -> Row:
    return {"set": name, "way": way, **_figures(mean(_main(scores)))}
