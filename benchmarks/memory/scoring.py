"""Whether what a turn tells is what it should tell: each item held against the rules of its set. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.memory.items import Item
from benchmarks.memory.reading import asserted, is_told, marked, quotations, stand_together, stands
from benchmarks.memory.turns import Seen
from offbook.model.lesson import Lesson


class Measure(NamedTuple):
    """What is counted: what is as it should be, or (`is_fault`) what is not. `bar`: a share."""

    name: str
    bar: float | None = None
    is_fault: bool = False

    def is_met(self, share: float) -> bool | None:
        if self.bar is None:
            return None
        return share <= self.bar if self.is_fault else share >= self.bar


class Check(NamedTuple):
    """One thing looked at."""

    measure: Measure
    item: Item
    counts: bool
    why: str = ""

    @property
    def is_bad(self) -> bool:
        return self.counts is self.measure.is_fault


CORRECTED = Measure("corrections: the new told, the old nowhere asserted in the turn", 0.80)
CORRECTED_EVERYWHERE = Measure("… nor in the verbs lessons, recall and state")
NEW_TOLD = Measure("… the new told")
OLD_MARKED = Measure("… the old told as what held before")
OLD_IN = {
    "recall": Measure("… old asserted: recall text", is_fault=True),
    "page": Measure("… old asserted: memory page", is_fault=True),
    "opening": Measure("… old asserted: handover", is_fault=True),
    "goals": Measure("… old asserted: goals", is_fault=True),
    "lessons": Measure("… old asserted: verb lessons", is_fault=True),
    "hits": Measure("… old asserted: verb recall", is_fault=True),
    "state": Measure("… old asserted: verb state", is_fault=True),
}
OF_SEVERAL = Measure("several facts in one message, one corrected: the new told, its old nowhere asserted in the turn")
REST_HOLDS = Measure("… what else was said told, and not as over")
NEAR = Measure("near: what still holds marked as over", 0.03, is_fault=True)
MIND = Measure("mind: what must come to mind told", 0.80)
MIND_RECALL = Measure("… in the recall text")
MIND_VERB = Measure("… among the hits of the verb recall")
SILENT = Measure("mind: silent where nothing was said", 0.85)
UNRELATED = Measure("… something unrelated recalled", is_fault=True)
NEWEST = Measure("… only the newest told (fallback)", is_fault=True)
OPENED = Measure("… opened with a handover", is_fault=True)
KEPT = Measure("lessons: what is to be kept on the page", 0.75)
KEPT_LESSON = Measure("… in a lesson of the verb")
TRAPPED = Measure("lessons: traps on the page or in a lesson", 0.05, is_fault=True)
TRAPPED_PAGE = Measure("… on the page", is_fault=True)
TRAPPED_LESSON = Measure("… in a lesson of the verb", is_fault=True)


def corrections(item: Item, seen: Seen) -> Iterator[Check]:
    said = [turn.text for turn in item.turns]
    text = "\n".join(text for place, text in seen.places.items() if place != "opening")
    tells = is_told(f"{text}\n{quotations(seen.places['opening'])}", item.new, said)
    lessons = "\n".join(one.text for one in _held(seen.lessons))
    hits = [entry for entry in seen.hits if entry.superseded_by is None]
    found = {place: asserted(text, item.old, item.new, said) for place, text in seen.places.items()}
    elsewhere = {
        "lessons": asserted(lessons, item.old, item.new, said),
        "hits": [entry.text for entry in hits if _has(item.old, entry.text) and not _has(item.new, entry.text)],
        "state": asserted(seen.state_text(), item.old, item.new, said),
    }
    why = [] if tells else [f"{item.new} not told"]
    why += [f"{item.old} asserted in {place}: {texts[0]}" for place, texts in found.items() if texts]
    yield Check(CORRECTED, item, not why, "; ".join(why))
    yield Check(CORRECTED_EVERYWHERE, item, not why and not any(elsewhere.values()))
    yield Check(NEW_TOLD, item, tells)
    yield Check(OLD_MARKED, item, bool(marked(seen.text, item.old, said)))
    for place, texts in (found | elsewhere).items():
        yield Check(OLD_IN[place], item, bool(texts), "; ".join(texts))


def several(item: Item, seen: Seen) -> Iterator[Check]:
    """One message said several things, of which one holds no longer."""
    (corrected, *_) = corrections(item, seen)
    yield Check(OF_SEVERAL, item, corrected.counts, corrected.why)
    said = [turn.text for turn in item.turns]
    over = marked(seen.text, item.holds, said)
    lessons = "\n".join(one.text for one in _held(seen.lessons))
    is_kept = is_told(f"{seen.text}\n{lessons}", item.holds, said)
    yield Check(REST_HOLDS, item, is_kept and not over, "; ".join(over) or f"{item.holds} not told")


def near(item: Item, seen: Seen) -> Iterator[Check]:
    said = [turn.text for turn in item.turns]
    entries = [*seen.turn.entries, *seen.hits, *seen.with_superseded]
    why = [f"told as over: {text}" for text in marked(seen.text, item.holds, said)]
    why += [f"superseded: {entry.text}" for entry in entries if entry.superseded_by and _has(item.holds, entry.text)]
    why += [
        f"replaced by {entry.text!r}: {old.text}"
        for entry in entries
        for old in (entry.why.replaces if entry.why else [])
        if _has(item.holds, old.text)
    ]
    held = "\n".join(one.text for one in _held(seen.lessons))
    why += [
        f"lesson replaced: {one.text}"
        for one in seen.lessons
        if one.replaced_by and _has(item.holds, one.text) and not _has(item.holds, held)
    ]
    yield Check(NEAR, item, bool(why), "; ".join(dict.fromkeys(why)))


def mind(item: Item, seen: Seen) -> Iterator[Check]:
    if item.must:
        yield Check(MIND, item, stand_together(item.must, seen.text), f"{item.must} not told")
        yield Check(MIND_RECALL, item, stand_together(item.must, seen.turn.recall))
        yield Check(MIND_VERB, item, any(stand_together(item.must, entry.text) for entry in seen.hits))
        return
    kinds = {part.kind for part in seen.turn.parts if part.section == "recall"}
    is_newest = "newest" in kinds
    yield Check(SILENT, item, not seen.turn.entries, "the newest told" if is_newest else "something unrelated recalled")
    yield Check(UNRELATED, item, bool(seen.turn.entries) and not is_newest)
    yield Check(NEWEST, item, is_newest)
    yield Check(OPENED, item, "handover" in kinds)


def lessons(item: Item, seen: Seen) -> Iterator[Check]:
    page = seen.turn.memory.splitlines()
    held = [" ".join(one.text.split()) for one in _held(seen.lessons)]
    for words in item.keep:
        yield Check(KEPT, item, _in_one(words, page), f"{words} not on the page")
        yield Check(KEPT_LESSON, item, _in_one(words, held))
    for words in item.traps:
        on_page, learnt = _in_one(words, page), _in_one(words, held)
        where = " and ".join(["the page"] * on_page + ["a lesson"] * learnt)
        yield Check(TRAPPED, item, on_page or learnt, f"{words} in {where}")
        yield Check(TRAPPED_PAGE, item, on_page)
        yield Check(TRAPPED_LESSON, item, learnt)


SCORERS: dict[str, Callable[[Item, Seen], Iterator[Check]]] = {
    "corrections": corrections,
    "several": several,
    "near": near,
    "mind": mind,
    "lessons": lessons,
}


def _held(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Those that hold."""
    return [one for one in lessons if one.replaced_by is None and one.status != "rejected"]


def _has(values: Sequence[str], text: str) -> bool:
    return any(stands(value, text) for value in values)


def _in_one(words: Sequence[str], lines: Sequence[str]) -> bool:
    return any(stand_together(words, line) for line in lines)
