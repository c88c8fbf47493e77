"""Fit the one score of `search/probability.py`: how likely a message is a memory that matters for what was said now.

    python -m benchmarks.memory.fit_score --work build/fit-score     # prints what it finds, writes the two files

Writes `models/data/word-rarity.npz` (how rare a word is in general) and `search/probability_weights.py`. What is fitted
on: the questions of our own development conversations and their evidence; every second item of `sets/mind.jsonl`; a
sample of the public development questions, for the weights only: nothing of their text is kept. The other candidates of
the same questions are negatives, and so is all that is found for questions asked of somebody else's memory and for
prompts about nothing in particular. What is held out is judged on: five of our own conversations, the other half of
`mind.jsonl`, a third of the public questions.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory.word_rarity import word_rarity, write_rarity
from benchmarks.quality.vectors import remembered_vectors
from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.content import own_text
from offbook.model.settings import Settings
from offbook.model.types import Message
from offbook.search.ask import Ask
from offbook.search.probability import crossed, spoken
from offbook.search.results import Lead

Floats = NDArray[np.float64]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "offbook"
DATA = ROOT.parent / "shared" / "data"
MIND = Path(__file__).parent / "sets" / "mind.jsonl"
GENERAL = Path(__file__).parent / "sets" / "general-prompts.txt"
"""Prompts about nothing that was said, in six languages."""
PUBLIC = {"realmem": "realmem-dev.json.gz", "locomo": "locomo-dev.json.gz"}
"""The first conversation of each; of its questions a third is held out."""
PUBLIC_QUESTIONS = 140
HELD_OUT = ("own-f1-3", "own-f2-3", "own-a1-3", "own-w1-3", "own-m1-3")
LIMIT = 30
RIDGE = 5.0
NEARLY_ALL = 0.999
"""Of the candidates: what none of them exceeds in a signal is the most that counts of it."""
MIND_WEIGHT = 3.0
"""The items of `mind.jsonl` are few, and what a turn is for: each counts as three."""
REALMEM_OTHERS_WEIGHT = 0.3
"""Of what is found for its own questions in RealMem and is not marked as evidence: it marks some messages of a project,
and the others often matter as well."""
ONLY_VECTORS = frozenset(("cosine", "above", "best_above", "meaning", "window_meaning", "above_share", "prose_above"))


# ── what is asked, of whose memory ──


@dataclass(frozen=True)
class Asked:
    kind: str
    """asked (of the conversation itself), mind, other (somebody else's question), general."""
    query: str
    evidence: frozenset[str] = frozenset()
    at: datetime | None = None


@dataclass(frozen=True)
class Case:
    name: str
    sessions: list[dict[str, Any]]
    asked: list[Asked] = field(default_factory=list)

    def began(self) -> list[datetime]:
        moments: list[datetime] = []
        for session in self.sessions:
            day = datetime.fromisoformat(session["date"]).replace(tzinfo=UTC)
            moments.append(max(day, moments[-1] + timedelta(hours=3)) if moments else day)
        return moments


def cases(data: Path) -> list[Case]:
    rnd = random.Random(5)
    items = [json.loads(line) for line in MIND.read_text().splitlines()]
    own = {f"own-{one['id']}": one for one in _read(data / "own-dev.json.gz")}
    public = {f"{name}-0": _read(data / file)[0] for name, file in PUBLIC.items()}
    questions = [(name, one["question"]) for name, talk in {**own, **public}.items() for one in talk["questions"]]
    reminders = [one["prompt"] for one in items if one["must"]]
    general = GENERAL.read_text().splitlines()
    found: list[Case] = []
    for name, talk in {**own, **public}.items():
        case = Case(name, talk["sessions"])
        some = talk["questions"] if name in own else _some(rnd, talk["questions"])
        case.asked.extend(_own_questions(case, some))
        end = case.began()[-1] + timedelta(hours=2)
        elsewhere = [question for of, question in questions if of != name]
        others = [*rnd.sample(elsewhere, 40), *rnd.sample(reminders, 8)]
        case.asked.extend(Asked("other", query, at=end) for query in others)
        case.asked.extend(Asked("general", query, at=end) for query in rnd.sample(general, 20))
        found.append(case)
    for item in items:
        case = Case(item["id"], [_as_session(at, one) for at, one in enumerate(item["sessions"])])
        turns = [
            (f"{session['id']}/{turn['id']}", turn["text"]) for session in case.sessions for turn in session["turns"]
        ]
        must = [word.casefold() for word in item["must"]]
        evidence = frozenset(name for name, text in turns if any(word in text.casefold() for word in must))
        case.asked.append(Asked("mind", item["prompt"], evidence))
        others = [prompt for prompt in reminders if prompt != item["prompt"]]
        case.asked.extend(Asked("other", query) for query in rnd.sample(others, 4))
        case.asked.extend(Asked("general", query) for query in rnd.sample(general, 6))
        found.append(case)
    return found


def _some(rnd: random.Random, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return rnd.sample(questions, min(PUBLIC_QUESTIONS, len(questions)))


def _own_questions(case: Case, questions: Sequence[dict[str, Any]]) -> Iterator[Asked]:
    names = {turn["id"]: f"{one['id']}/{turn['id']}" for one in case.sessions for turn in one["turns"]}
    began = case.began()
    for one in questions:
        if one["category"] != "adversarial":
            last = one["visible_sessions"] - 1
            at = began[last] + timedelta(minutes=len(case.sessions[last]["turns"]))
            evidence = frozenset(names[turn] for turn in one["evidence"] if turn in names)
            yield Asked("asked", one["question"], evidence, at)


def _as_session(at: int, session: dict[str, Any]) -> dict[str, Any]:
    turns = [
        {"id": f"{at}:{number}", "speaker": who, "text": text} for number, (who, text) in enumerate(session["turns"])
    ]
    return {"id": f"s{at}", "date": session["date"], "turns": turns}


def _read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        found: list[dict[str, Any]] = json.load(file)
    return found


# ── what the ranker has of each candidate ──


@dataclass(frozen=True)
class Answer:
    case: str
    kind: str
    query: str
    has_evidence: bool
    by_words: bool
    signals: list[dict[str, float]]
    is_evidence: list[bool]


async def answers_of(case: Case, home: Path) -> list[Answer]:
    async with open_memory(home, settings=Settings(), environ={}) as memory:
        await _feed(memory, case)
        answers = [await _asked(memory, case, one, by_words=False) for one in case.asked]
        if not case.name.startswith(tuple(PUBLIC)):

            async def nothing(*_: object) -> tuple[None, None]:
                return None, None

            memory._background.recall._vector = nothing  # type: ignore[assignment,method-assign]
            answers += [await _asked(memory, case, one, by_words=True) for one in case.asked]
    return answers


async def _feed(memory: Memory, case: Case) -> None:
    for session, began in zip(case.sessions, case.began(), strict=True):
        messages = [
            Message(
                id=f"{session['id']}/{turn['id']}",
                role=_role(turn["speaker"]),
                content=turn["text"],
                name=turn["speaker"] if case.name.startswith(("own-f", "locomo")) else None,
                ts=began + timedelta(minutes=number),
            )
            for number, turn in enumerate(session["turns"])
        ]
        if messages:
            await memory.on_message(memory.scope(str(session["id"]), case.name), messages)
    while True:
        index = (await memory.status(case.name)).index
        if index.entries and index.model and not index.waiting:
            return
        await asyncio.sleep(0.05)


def _role(speaker: str) -> Literal["user", "assistant", "tool"]:
    if speaker.startswith("tool"):
        return "tool"
    return "assistant" if speaker.casefold() == "assistant" else "user"


async def _asked(memory: Memory, case: Case, one: Asked, *, by_words: bool) -> Answer:
    leads: list[Lead] = []

    def keep(found: Sequence[Lead]) -> list[Lead]:
        leads[:] = found
        return []

    scope = memory.scope("asking", case.name)
    ask = Ask(scope=scope, query=one.query, limit=LIMIT, prefers_hot=True, only_said=True, at=one.at)
    while True:
        found, _ = await memory._background.recall(ask, keep)
        if by_words or not found.degraded:
            break
        await asyncio.sleep(0.1)
    hits = [(lead.hit, lead.placed.logged.message) for lead in leads if lead.hit is not None]
    return Answer(
        case=case.name,
        kind=one.kind,
        query=one.query,
        has_evidence=bool(one.evidence),
        by_words=by_words or any(hit.by_words for hit, _ in hits),
        signals=[{**hit.signals, **spoken(own_text(said.content), is_user=said.role == "user")} for hit, said in hits],
        is_evidence=[said.id in one.evidence for _, said in hits],
    )


# ── the fit ──


def is_held_out(one: Answer) -> bool:
    if one.case.startswith("mind"):
        return int(one.case[-3:]) % 2 == 1
    return one.case in HELD_OUT or (one.case.startswith(tuple(PUBLIC)) and crc32(one.query.encode()) % 3 == 0)


def weight_of(one: Answer, at: int) -> float:
    if one.kind == "mind":
        return MIND_WEIGHT
    is_other = one.kind == "asked" and one.case.startswith("realmem") and not one.is_evidence[at]
    return REALMEM_OTHERS_WEIGHT if is_other else 1.0


def fitted(table: Floats, is_evidence: Floats, weights: Floats) -> Floats:
    """Logistic regression by Newton's method, with a ridge on standardised columns. The bias comes first."""
    mean, deviation = np.average(table, axis=0, weights=weights), table.std(axis=0) + 1e-9
    rows = np.c_[np.ones(len(table)), (table - mean) / deviation]
    ridge = np.eye(rows.shape[1]) * RIDGE
    ridge[0, 0] = 0.0
    found = np.zeros(rows.shape[1])
    for _ in range(30):
        likely = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (is_evidence - likely)) - ridge @ found
        step = np.linalg.solve((rows * (weights * likely * (1 - likely))[:, None]).T @ rows + ridge, slope)
        found += step
        if np.abs(step).max() < 1e-6:
            break
    own = found[1:] / deviation
    weights_and_bias: Floats = np.r_[found[0] - (own * mean).sum(), own]
    return weights_and_bias


def largest(answers: Sequence[Answer]) -> dict[str, float]:
    """Of each signal, what hardly any candidate exceeds: beyond it, nothing was fitted."""
    signals = [signals for one in answers for signals in one.signals]
    return {name: float(np.quantile([one[name] for one in signals], NEARLY_ALL)) for name in sorted(signals[0])}


def fit(answers: Sequence[Answer], most: dict[str, float]) -> dict[str, float]:
    """The weights, and on the way what they do to the conversations that were held out."""
    answers = [replace(one, signals=[crossed(signals, most) for signals in one.signals]) for one in answers]
    names = sorted({name for one in answers for signals in one.signals for name in signals})
    names = [name for name in names if not (answers[0].by_words and name in ONLY_VECTORS)]
    rows = [(one, at) for one in answers for at in range(len(one.signals))]
    table = np.array([[one.signals[at][name] for name in names] for one, at in rows])
    truth = np.array([one.is_evidence[at] for one, at in rows], np.float64)
    held = np.array([is_held_out(one) for one, _ in rows])
    weights = np.array([weight_of(one, at) for one, at in rows])
    found = fitted(table[~held], truth[~held], weights[~held])
    likely = 1 / (1 + np.exp(-(found[0] + table @ found[1:])))
    print(reliability(likely[held], truth[held]))
    _judge(answers, np.split(likely, np.cumsum([len(one.signals) for one in answers])[:-1]))
    return {"bias": float(found[0])} | {name: float(value) for name, value in zip(names, found[1:], strict=True)}


def reliability(likely: Floats, truth: Floats) -> str:
    """Predicted against observed, in ten bins."""
    lines = ["| predicted | messages | mean predicted | observed |", "|---|---|---|---|"]
    bounds = [0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0]
    for low, high in pairwise(bounds):
        inside = (likely >= low) & ((likely < high) | (high == bounds[-1]))
        if inside.any():
            means = f"{likely[inside].mean():.3f} | {truth[inside].mean():.3f}"
            lines.append(f"| {low:g} to {high:g} | {inside.sum():,} | {means} |")
    return "\n".join(lines)


def _judge(answers: Sequence[Answer], likely: Sequence[Floats]) -> None:
    """For each threshold: how often the evidence comes to mind and with how many, or how often nothing does."""
    kinds: dict[str, list[tuple[Answer, Floats]]] = defaultdict(list)
    for one, values in zip(answers, likely, strict=True):
        if is_held_out(one):
            of = one.case.split("-")[0] if one.kind == "asked" else ""
            kinds[f"{one.kind} {of}" if one.has_evidence else f"{one.kind}, silent"].append((one, values))
    thresholds = (0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3)
    print("at least ".ljust(20), *(f"{one:11.2f}" for one in thresholds))
    for kind, some in sorted(kinds.items()):
        cells = []
        for least in thresholds:
            shown = [values >= least for _, values in some]
            if "silent" in kind:
                cells.append(f"{np.mean([not one.any() for one in shown]):11.2f}")
            else:
                hit = np.mean(
                    [
                        (np.array(one.is_evidence, bool) & is_shown).any()
                        for (one, _), is_shown in zip(some, shown, strict=True)
                    ]
                )
                cells.append(f"{hit:5.2f} of {np.mean([one.sum() for one in shown]):.1f}")
        print(kind.ljust(20), *cells)


def write_weights(tables: dict[str, dict[str, float]]) -> None:
    lines = [
        '"""Weights of the logistic regression in `probability`, and the most that counts of each signal.',
        "",
        "Written by `benchmarks/memory/fit_score.py`.",
        '"""',
        "",
        "from __future__ import annotations",
    ]
    for name, weights in tables.items():
        lines += [
            "",
            f"{name}: dict[str, float] = {{",
            *(f'    "{key}": {value:.4f},' for key, value in weights.items()),
            "}",
        ]
    (PACKAGE / "search" / "probability_weights.py").write_text("\n".join([*lines, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, required=True, help="folder for memories and vectors")
    parser.add_argument("--cache", type=Path, help="vectors and the model, where they are kept (default: in --work)")
    given = parser.parse_args()
    write_rarity(word_rarity(given.data / "own-dev.json.gz"))
    answers: list[Answer] = []
    with remembered_vectors(given.cache or given.work / "cache"):
        for case in cases(given.data):
            answers += asyncio.run(answers_of(case, given.work / "memories" / case.name))
            print(case.name, len(case.asked), flush=True)
    most = largest(answers)
    found = []
    for by_words in (False, True):
        print("\nby words alone" if by_words else "\nwith vectors")
        found.append(fit([one for one in answers if one.by_words == by_words and one.signals], most))
    write_weights({"WITH_VECTORS": found[0], "BY_WORDS": found[1], "LARGEST": most})


if __name__ == "__main__":
    main()
