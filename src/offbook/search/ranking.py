"""From a query to hits in order, over one agent's index. Each step is a function over arrays; the pure ones are in
`weighing`.

found (text ∥ meaning ∥ time) ─▶ pool ─▶ evidence ─▶ recipe ─▶ time, substance ─▶ equals: newer first ─▶ once each
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.search.candidates import RetrieverHits, Words, by_meaning, by_text, known_words, ordinary, pool
from offbook.search.evidence import FEATURES, Evidence, QueryFeatures, SaidWords, gather, rarity
from offbook.search.index.agent_index import AgentIndex
from offbook.search.index.rows import ASSISTANT, NO_SPEAKER, SYSTEM, TOOL, USER, Rows
from offbook.search.index.vectors import VectorIndex
from offbook.search.probability import QueryWords, standing, word_signals
from offbook.search.query import Query
from offbook.search.weights import (
    IN_TIME,
    NEAR_TIME,
    Floats,
    Ints,
    Recipe,
    Span,
    chosen_recipe,
    echoing,
    is_prose,
    newer_first,
    once_each,
    substantial,
    timely,
    weighed,
    without_near_duplicates_of_other_numbers,
)
from offbook.search.words import entry_id

Flags = NDArray[np.bool_]
ONLY_TIME = 4.0
"""Times as much where a time is all that is asked for: then it narrows."""
ROWS_BY_TIME = 150
COMPARED = 40
NEWEST = 64
"""Messages among which the newest is: they come nearly in the order in which they were said."""
LEAST_SIMILAR = 0.2
"""Of the nearest: below that, and without a shared word, nothing is a memory of it."""
UNRELATED = 0.1
"""Cosine below which a message that shares no word is not shown, however few there are."""
SIGNALLED = ("meaning", "words", "window_meaning", "episode_words", "speaker", "opening", "user")
"""Of the evidence, what the probability is made of beside the score itself."""
WORTH_A_THREAD = 50_000
"""Passages from which on searching them takes longer than handing the other search to a thread."""
_beside = ThreadPoolExecutor(2, thread_name_prefix="offbook-search")


@dataclass(frozen=True)
class Look:
    """What is looked for, and where."""

    query: Query
    terms: Sequence[str]
    vector: NDArray[np.float32] | None
    asked_at: int
    is_read: bool = True
    """The model that made the vector reads the query's language."""
    times: Sequence[tuple[Span, bool]] = ()
    """When it was said, and whether that was said exactly."""
    event_terms: Sequence[tuple[str, Sequence[str]]] = ()
    """`before` or `after` something that is itself in memory, by its words."""
    session: int | None = None
    known_at: int | None = None
    """Only what was said by then."""
    only_said: bool = False
    """Without what the host told the agent."""
    limit: int = 5


@dataclass(frozen=True)
class Hit:
    row: int
    place: int
    ts: int
    arrived: int
    score: float
    similarity: float | None
    found_by: list[str]
    ranks: dict[str, int]
    """Its place in what each retriever found."""
    evidence: dict[str, float]
    """What each feature added to the score."""
    part: int | None = None
    coverage: float = 0.0
    """The share of the query's words it holds."""
    signals: dict[str, float] = field(default_factory=dict)
    """What its probability is made of, and whether vectors had a say."""
    by_words: bool = False


@dataclass(frozen=True)
class Filtered:
    place: int
    why: str


@dataclass(frozen=True)
class Ranking:
    hits: list[Hit]
    words: list[str]
    recipe: str
    looked_at: int
    filtered: list[Filtered] = field(default_factory=list)


NOTHING = Ranking(hits=[], words=[], recipe="", looked_at=0)


@dataclass(frozen=True)
class _Scored:
    """The candidates, and what speaks for each."""

    evidence: Evidence
    recipe: Recipe
    added: dict[str, Floats]
    """To the recipe's sum, by name."""
    scores: Floats
    order: Ints
    """Of those that may be a memory of it, best first."""

    def parts(self, chosen: Ints) -> list[dict[str, float]]:
        """What the score of each of these candidates is made of."""
        weights = {name: weight for name in FEATURES if (weight := self.recipe.weight(name))}
        by_recipe = {name: (weight * self.evidence.features[name][chosen]).tolist() for name, weight in weights.items()}
        added = {name: values[chosen].tolist() for name, values in self.added.items()}
        return [
            {name: values[at] for name, values in by_recipe.items()}
            | {name: values[at] for name, values in added.items() if values[at]}
            for at in range(len(chosen))
        ]


def rank(index: AgentIndex, vectors: VectorIndex | None, look: Look) -> Ranking:
    count = index.rows.count
    if not count:
        return NOTHING
    view = index.rows.view()[:count]
    is_open = _open_rows(view, look, leaves_out_system=look.only_said and index.rows.has_said(SYSTEM))
    words = known_words(index, look.terms, count)
    found = _retrieved(index, vectors, look, words, count, is_open)
    spans = [*look.times, *_event_spans(index, look, count, is_open)]
    told = _time_asked_about(index, spans, count, is_open)
    tellers = np.lexsort((-np.arange(len(told)), -told))[: min(ROWS_BY_TIME, np.count_nonzero(told))]
    in_time = np.concatenate([_rows_in(view, spans, is_open), tellers])
    pooled = pool(index, RetrieverHits(found.by_text, np.concatenate([found.by_meaning, in_time])), count, is_open)
    speakers, roles = _asked_for(index, look.query.names)
    asked = QueryFeatures(
        words=words.numbers,
        idf=words.idf,
        vector=look.vector,
        speakers=speakers,
        roles=roles,
        # What is recent is so beside the newest there is: an agent may be asked after months of silence.
        at_micros=min(look.asked_at, int(view["ts"][-NEWEST:].max())),
    )
    usual = ordinary(index, vectors, count)
    evidence = gather(index.rows, vectors, asked, pooled.candidates, pooled.members, usual)
    lengths = index.rows.mean_chars(USER), index.rows.mean_chars(ASSISTANT)
    by_words = not (look.is_read and evidence.has_vector.any())
    recipe = chosen_recipe(look.query, len(look.terms), *lengths, by_words=by_words)
    chosen = view[pooled.candidates]
    by_time = np.maximum(timely(chosen["ts"], spans), told[pooled.candidates] if len(told) else 0.0)
    by_substance = substantial(chosen) + echoing(chosen, evidence)
    if not look.terms and look.times:
        by_time *= ONLY_TIME  # nothing else is asked for
    scores = weighed(evidence, recipe) + by_time + by_substance
    relevant = _is_relevant(index.rows, count, evidence, found, in_time)
    order = np.argsort(-np.where(relevant, scores, -np.inf), kind="stable")[: max(COMPARED, 2 * look.limit)]
    order = order[relevant[order]]
    scored = _Scored(evidence, recipe, {"time": by_time, "substance": by_substance}, scores, order)
    retrieved = {"text": found.by_text, "meaning": found.by_meaning, "time": in_time}
    return _best_once_each(index, vectors, look, words, retrieved, scored)


def _retrieved(
    index: AgentIndex,
    vectors: VectorIndex | None,
    look: Look,
    words: Words,
    count: int,
    is_open: Flags | None,
) -> RetrieverHits:
    """Text and meaning side by side: both leave Python's lock while they search."""
    by_words = partial(by_text, index, words, count, session=look.session, is_open=is_open)
    if vectors is None or look.vector is None or vectors.count < WORTH_A_THREAD:
        return RetrieverHits(by_text=by_words(), by_meaning=by_meaning(vectors, look.vector, count, is_open))
    other = _beside.submit(by_words)
    near = by_meaning(vectors, look.vector, count, is_open)
    return RetrieverHits(by_text=other.result(), by_meaning=near)


# ── how ──


def _asked_for(index: AgentIndex, names: Sequence[str]) -> tuple[frozenset[int], frozenset[int]]:
    """Whose words are asked for, as speakers and as sides. A question that names both is about neither's only."""
    speakers = {number for name in names if (number := index.rows.speaker_number(name)) != NO_SPEAKER}
    roles = {role for name in names if (role := index.rows.role_called(name)) is not None} if not speakers else set()
    if len(speakers) + len(roles) != 1:
        return frozenset(), frozenset()
    return frozenset(speakers), frozenset(roles)


def _open_rows(view: NDArray[Any], look: Look, *, leaves_out_system: bool) -> Flags | None:
    if look.session is None and look.known_at is None and not leaves_out_system:
        return None
    is_open = np.ones(len(view), bool)
    if look.session is not None:
        is_open &= view["session"] == look.session
    if look.known_at is not None:
        is_open &= view["ts"] <= look.known_at
    if leaves_out_system:
        is_open &= view["role"] != SYSTEM
    return is_open


def _event_spans(index: AgentIndex, look: Look, count: int, is_open: Flags | None) -> list[tuple[Span, bool]]:
    """When the thing was that something is said to be before or after: when it was spoken of first."""
    spans: list[tuple[Span, bool]] = []
    for relation, terms in look.event_terms:
        words = known_words(index, terms, count)
        rows = by_text(index, words, count, session=look.session, is_open=is_open)[:3]
        if len(rows):
            moment = float(index.rows.view()["ts"][rows].min())
            spans.append(((-np.inf, moment) if relation == "before" else (moment, np.inf), False))
    return spans


def _rows_in(view: NDArray[Any], spans: Sequence[tuple[Span, bool]], is_open: Flags | None) -> Ints:
    """The newest rows of a stretch of time that has both ends: "what did we talk about last Tuesday?"."""
    rows = [
        np.flatnonzero((view["ts"] >= start) & (view["ts"] < end))[-ROWS_BY_TIME:]
        for (start, end), _ in spans
        if np.isfinite(start) and np.isfinite(end)
    ]
    found = np.concatenate(rows) if rows else np.empty(0, np.int64)
    return found if is_open is None else found[is_open[found]]


def _time_asked_about(
    index: AgentIndex, spans: Sequence[tuple[Span, bool]], count: int, is_open: Flags | None
) -> Floats:
    """How much each row tells of the time that is asked about: yesterday's dinner, of yesterday. Empty, where no time
    with both ends is asked about."""
    closed = [(span, is_exact) for span, is_exact in spans if np.isfinite(span).all()]
    told = np.zeros(count if closed else 0)
    for (start, end), is_exact in closed:
        rows, shares = index.rows.events.within(start, end, count)
        np.maximum.at(told, rows, shares * (IN_TIME if is_exact else NEAR_TIME))
    return told if is_open is None else np.where(is_open[: len(told)], told, 0.0)


def _is_relevant(rows: Rows, count: int, evidence: Evidence, found: RetrieverHits, in_time: Ints) -> Flags:
    """Which may be a memory of it: those that share a word, are of the time asked for, are at all near, or stand beside
    the other side's that is near or shares a word ("Which jumper shall I take?" "The blue one.").

    None, where nothing shares a word, is of that time, or is really near.
    """
    is_close: Flags = (evidence.similarity >= LEAST_SIMILAR) & evidence.has_vector
    if not len(found.by_text) and not len(in_time) and not is_close.any():
        return np.zeros(len(evidence.rows), bool)
    is_near: Flags = (evidence.similarity >= UNRELATED) & evidence.has_vector
    close = np.concatenate([evidence.rows[is_close], found.by_text])
    view = rows.view()[:count]
    is_beside = np.zeros(len(evidence.rows), bool)
    for beside in (view["previous"][evidence.rows], rows.next_of(evidence.rows, count)):
        one, other = view[evidence.rows], view[beside]
        is_other_side = (one["role"] != other["role"]) | (one["speaker"] != other["speaker"])
        is_beside |= np.isin(beside, close) & is_other_side  # no row is -1, which is never close
    return is_near | np.isin(evidence.rows, found.by_text) | np.isin(evidence.rows, in_time) | is_beside


def _best_once_each(
    index: AgentIndex,
    vectors: VectorIndex | None,
    look: Look,
    words: Words,
    retrieved: Mapping[str, Ints],
    scored: _Scored,
) -> Ranking:
    """The best, equals by age, each once. `retrieved`: what each retriever found, best first."""
    view, evidence, order = index.rows.view(), scored.evidence, scored.order
    rows = evidence.rows[order]
    ts, places = view["ts"][rows], view["place"][rows].tolist()
    likeness = _likeness(index, vectors, rows, look.vector)
    adjusted = newer_first(scored.scores[order], ts, likeness)
    apart = without_near_duplicates_of_other_numbers(likeness, view["numbers"][rows])
    kept, stands_for = once_each(np.argsort(-adjusted, kind="stable"), apart, view[rows])
    ranks = {
        name: {row: place for place, row in reversed(list(enumerate(some.tolist(), 1)))}
        for name, some in retrieved.items()
    }
    holds = SaidWords(index.rows, rows).counts(words.numbers) > 0
    held = holds.sum(axis=1) / max(len(look.terms), 1)
    best = kept[: look.limit]
    by_words = scored.recipe.name.endswith(" by words")
    signals = _signals(index, look, words, scored, best, adjusted, holds)

    def hit(at: int, parts: dict[str, float], of_it: dict[str, float]) -> Hit:
        row, candidate = int(rows[at]), int(order[at])
        own_ranks = {name: some[row] for name, some in ranks.items() if row in some}
        moved = float(adjusted[at] - scored.scores[candidate])
        return Hit(
            row=row,
            place=places[at],
            ts=int(ts[at]),
            arrived=int(view["arrived"][row]),
            score=float(adjusted[at]),
            similarity=float(evidence.similarity[candidate]) if evidence.has_vector[candidate] else None,
            found_by=list(own_ranks) or ["setting"],
            ranks=own_ranks,
            evidence=parts | ({"newer": moved} if moved else {}),
            part=vectors.best_part(row, look.vector) if vectors and look.vector is not None else None,
            coverage=float(held[at]),
            signals=of_it,
            by_words=by_words or not evidence.has_vector[candidate],
        )

    return Ranking(
        hits=[
            hit(at, parts, of_it)
            for at, parts, of_it in zip(best.tolist(), scored.parts(order[best]), signals, strict=True)
        ],
        words=words.terms,
        recipe=scored.recipe.name,
        looked_at=len(evidence.rows),
        filtered=[
            Filtered(place=places[at], why=f"says the same as {entry_id(places[twin])}")
            for at, twin in stands_for.items()
        ],
    )


def _signals(
    index: AgentIndex,
    look: Look,
    words: Words,
    scored: _Scored,
    best: Ints,
    adjusted: Floats,
    holds: Flags,
) -> list[dict[str, float]]:
    """What the probability of each of the best is made of."""
    evidence, candidates = scored.evidence, scored.order[best]
    asked = QueryWords.of(look.query.text, look.terms)
    known = [look.terms.index(term) for term in words.terms]
    held = np.zeros((len(best), len(look.terms)), bool)
    held[:, known] = holds[best]
    here = np.ones(len(look.terms))
    here[known] = words.idf / rarity(np.ones(1, np.int64), index.rows.count)
    chosen = index.rows.view()[evidence.rows[candidates]]
    measured = {name: evidence.features[name][candidates] for name in SIGNALLED}
    of_query = {
        "terms": math.log1p(len(look.terms)),
        "memory": math.log1p(index.rows.count),
        "prose": float(is_prose(scored.recipe)),
    }
    cosine = np.where(evidence.has_vector[candidates], evidence.similarity[candidates], 0.0).astype(np.float64)
    table = {
        **standing(adjusted[best]),
        **word_signals(asked, held, np.clip(here, 0.0, 1.0)),
        **measured,
        "cosine": cosine,
        "above": cosine - evidence.usual_similarity,
        "chars": np.log1p(chosen["chars"].astype(np.float64)),
        "tool": np.isin(chosen["role"], (TOOL, SYSTEM)).astype(np.float64),
    }
    of_query["best_above"] = float(table["above"].max(initial=0.0))
    of_query["best_share"] = float(table["share"].max(initial=0.0))
    return [of_query | {name: float(values[at]) for name, values in table.items()} for at in range(len(best))]


def _likeness(
    index: AgentIndex, vectors: VectorIndex | None, rows: Ints, query: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """How alike any two of the rows are. Without vectors: whether they say the same words."""
    if vectors is None or query is None or not len(rows):
        view, words = index.rows.view(), index.rows.words()
        said = [words[row["words_at"] : row["words_at"] + row["words"]].tobytes() for row in view[rows]]
        return np.array([[float(one == other) for other in said] for one in said], np.float32).reshape(
            len(said), len(said)
        )
    mean = vectors.means(rows)
    likeness: NDArray[np.float32] = np.vecdot(mean[:, None, :], mean[None, :, :])
    return likeness
