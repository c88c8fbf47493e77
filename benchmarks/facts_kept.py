"""How much of what is asked about later is still in a conversation's summary, made without a model."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from itertools import islice
from pathlib import Path
from statistics import fmean

import msgspec

from benchmarks.quality.data import SETS, Session
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run, Skipped
from offbook.context.digest import Analysis, Digest, SpokenMessage, analyse, cut, digest, fit, merged, written
from offbook.context.time_text import heading
from offbook.search.words import STOP_WORDS

TITLE = "What survives compression without a model: words of the gold answers still in the summary of a conversation"

SHARES = (20, 10, 5)
"""Percent of the characters that were said."""
LEAST = {20: 0.80, 10: 0.70, 5: 0.55}
APART = "adversarial"
CHUNK_CHARS = 24_000
"""What one digest is made of."""
STORED_SHARE = 0.25
"""How long a summary of one chunk is kept: the source of those that are merged."""
SPEAKERS = {"user": "They", "assistant": "I"}
PRODUCT = "Offbook: a digest of each 24,000 characters, sharing the room"
TIMED_ROUNDS = 5

_WORD = re.compile(r"[^\W_]+")

Row = dict[str, Cell]


class Answered(msgspec.Struct, frozen=True):
    category: str
    answer: str | int | float | None = None


class PlantedFact(msgspec.Struct, frozen=True):
    id: str
    sessions: list[Session]
    questions: list[Answered]


class Material:
    """A conversation, as each way of shortening it needs it."""

    def __init__(self, told: PlantedFact) -> None:
        self.said: list[list[SpokenMessage]] = []
        seq = 0
        for session in told.sessions:
            at = session.date.replace(tzinfo=UTC)
            numbered = list(enumerate(session.turns, seq + 1))
            self.said.append(
                [SpokenMessage(n, SPEAKERS.get(turn.speaker, turn.speaker), turn.text, at) for n, turn in numbered]
            )
            seq += len(session.turns)
        self.chars = sum(len(one.text) for session in self.said for one in session)
        analyses = [analyse(one) for session in self.said for one in session]
        self.whole = digest(analyses)
        self.chunks = [digest(chunk) for chunk in chunked(analyses, [one for day in self.said for one in day])]
        self.stored = [written(one, round(CHUNK_CHARS * STORED_SHARE)).text for one in self.chunks]


def chunked(analyses: Sequence[Analysis], said: Sequence[SpokenMessage]) -> list[list[Analysis]]:
    chunks: list[list[Analysis]] = []
    room = 0
    for analysis, one in zip(analyses, said, strict=True):
        if not chunks or len(one.text) > room:
            chunks.append([])
            room = CHUNK_CHARS
        chunks[-1].append(analysis)
        room -= len(one.text)
    return chunks


# ── ways of shortening ────────────────────────────────────────────────────────────────────────


def transcript(session: Sequence[SpokenMessage]) -> str:
    head = [heading(session[0].at.date(), None)] if session and session[0].at else []
    return "\n".join(head + [f"{one.speaker}: {one.text}" for one in session])


def newest(material: Material, max_chars: int) -> str:
    return "\n".join(transcript(session) for session in material.said)[-max_chars:]


def lead(material: Material, max_chars: int) -> str:
    """The beginning of every session, each by its share."""
    texts = [transcript(session) for session in material.said]
    share = max_chars / sum(map(len, texts))
    return "\n".join(text[: int(len(text) * share)] for text in texts)[:max_chars]


def joint(material: Material, max_chars: int) -> str:
    return fit([material.whole], max_chars)[0]


def shared(material: Material, max_chars: int) -> str:
    return "\n\n".join(text for text in fit(material.chunks, max_chars) if text)


def stored_and_merged(material: Material, max_chars: int) -> str:
    return merged(material.stored, max_chars).text


WAYS: dict[str, Callable[[Material, int], str]] = {
    "truncation: the newest only": newest,
    "lead: the beginning of every session": lead,
    "Offbook: one digest of it all": joint,
    PRODUCT: shared,
    "Offbook: stored summaries of each 24,000 characters, merged": stored_and_merged,
}


# ── measuring ─────────────────────────────────────────────────────────────────────────────────


def measure(run: Run) -> Findings:
    figures: dict[str, dict[str, dict[int, float]]] = {}
    asked: dict[str, int] = {}
    timed: list[Row] = []
    for name in SETS:
        told = load(run.data, name)[: run.choose(1, 100)]
        asked[name] = sum(len(wanted_words(one)) for one in told)
        scores: dict[tuple[str, int], list[float]] = {}
        for done, one in enumerate(told, 1):
            material = Material(one)
            wanted = wanted_words(one)
            for way, shorten in WAYS.items():
                for percent in SHARES:
                    max_chars = material.chars * percent // 100
                    text = shorten(material, max_chars)
                    assert len(text) <= max_chars, f"{way} is too long"
                    scores.setdefault((way, percent), []).append(kept_share(wanted, text))
            if done == 1:
                timed += timings(name, material)
            run.progress(f"{name}, conversations", done, len(told))
        figures[name] = {way: {percent: fmean(scores[way, percent]) for percent in SHARES} for way in WAYS}
    return _findings(run, figures, asked, timed)


def load(folder: Path, name: str) -> list[PlantedFact]:
    path = folder / SETS[name]
    if not path.exists():
        raise Skipped(f"the development data is not here: no {path} (say where it is with --data)")
    with gzip.open(path) as file:
        return msgspec.json.decode(file.read(), type=list[PlantedFact])


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def wanted_words(told: PlantedFact) -> list[set[str]]:
    """The content words of each answer; questions whose answer has none are left out."""
    answers = [str(one.answer) for one in told.questions if one.category != APART and one.answer is not None]
    return [wanted for wanted in (words(answer) - STOP_WORDS for answer in answers) if wanted]


def kept_share(wanted: Sequence[set[str]], text: str) -> float:
    there = words(text)
    return fmean(len(one & there) / len(one) for one in wanted)


def timings(name: str, material: Material) -> list[Row]:
    said = list(islice((one for session in material.said for one in session), 400))
    thousands = sum(len(one.text) for one in said) / 1_000
    analyses = [analyse(one) for one in said]
    chunk = chunked(analyses, said)[0]
    summary = written(material.chunks[0], CHUNK_CHARS // 5)
    six: list[Digest] = material.chunks[:6]
    steps: dict[str, tuple[float, Callable[[], object]]] = {
        "analyse, a thousand characters": (thousands, lambda: [analyse(one) for one in said]),
        "digest of 24,000 characters": (1.0, lambda: digest(chunk)),
        f"fit, {len(six)} digests in 8,000 characters": (1.0, lambda: fit(six, 8_000)),
        "written, 4,800 characters": (1.0, lambda: written(material.chunks[0], CHUNK_CHARS // 5)),
        "cut of that to 2,400": (1.0, lambda: cut(summary, CHUNK_CHARS // 10)),
    }
    return [{"set": name, "step": step, "ms": _best_ms(work) / units} for step, (units, work) in steps.items()]


def _best_ms(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(TIMED_ROUNDS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken) * 1_000


def _findings(
    run: Run, figures: dict[str, dict[str, dict[int, float]]], asked: dict[str, int], timed: list[Row]
) -> Findings:
    product = figures["LoCoMo"][PRODUCT]
    return Findings(
        bars=[
            Bar(
                f"LoCoMo, in {percent} % of the characters",
                f"≥ {least:.2f}",
                f"{product[percent]:.3f}",
                None if run.is_quick else product[percent] >= least,
            )
            for percent, least in LEAST.items()
        ],
        rows=[
            {
                "way": way,
                **{f"{name} {percent} %": by[way][percent] for name, by in figures.items() for percent in SHARES},
            }
            for way in WAYS
        ],
        sections=[Section("Time, the best of five", timed)],
        notes=[
            "Of each answer, its words (letters and digits, lower-case) without stop words; the share of them that are "
            f"words of the summary of the whole conversation; the mean over the questions of a conversation, then over "
            f"conversations. {', '.join(f'{count:,} questions to {name}' for name, count in asked.items())}, LoCoMo "
            f"without the adversarial ones. Not every answer is in the words of the conversation: all of LoCoMo's text "
            f"and its dates hold 0.90.",
            "The room is a share of the characters of the turns' texts; names, headings and separators count against "
            "it. Truncation and lead have the same headings (`[8 May 2023]`) and names.",
            "Answers of RealMem are an assistant's whole replies, so most of their words are common ones.",
        ],
    )
