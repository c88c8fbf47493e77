"""What is told of a message that is longer than there is room for: whole sentences, in their order, with every gap
marked. Those that hold what was asked for come first, with what stands beside them; then those that state something:
an answer's substance before its pleasantries. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from offbook.model.statement import ReadSentence
from offbook.models.sentence_kinds import read_sentences
from offbook.search.words import indexed_terms

GAP = " … "
SHARED = 2.0
"""What a sentence counts for that holds all the words asked for; one that surely states something counts 1."""
BESIDE = 0.5
"""Of what a sentence counts, for those before and after it."""
GOES_ON = 0.4
"""Added where the sentence before or after it is told."""
LEAST_TERMS = 2


def told_within(text: str, max_chars: int, *, asked: Collection[str] = (), is_user: bool) -> str:
    """The text, or as many of its sentences as fit. Where not even one does, the text: whoever quotes it cuts it."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    read = read_sentences(text, is_user=is_user)
    terms = [indexed_terms(one.text) for one in read]
    worth = _worth(read, terms, frozenset(asked))
    costs = [len(one.text) + len(GAP) for one in read]
    telling = [at for at, one in enumerate(read) if not _is_scrap(one.text, terms[at])]
    room = max_chars - len(GAP)
    kept = _chosen(telling, worth, costs, room) or _chosen(range(len(read)), worth, costs, room)
    return _joined(text, read, sorted(kept)) if kept else text


def _chosen(places: Iterable[int], worth: Sequence[float], costs: Sequence[int], left: int) -> set[int]:
    """The best that fit. What goes on from something told reads better than a sentence from here and one from there."""
    kept: set[int] = set()
    waiting = set(places)
    while waiting:
        best = max(waiting, key=lambda at: (worth[at] + GOES_ON * (at - 1 in kept or at + 1 in kept), -at))
        waiting.remove(best)
        if costs[best] <= left:
            kept.add(best)
            left -= costs[best]
    return kept


def _is_scrap(text: str, terms: Sequence[str]) -> bool:
    """A heading's number, a rule, the end of a sentence that was taken for one: it says nothing without the rest."""
    return len(terms) < LEAST_TERMS or text[:1].islower()


def _worth(read: Sequence[ReadSentence], terms: Sequence[Sequence[str]], asked: frozenset[str]) -> list[float]:
    """The rarer a word is in the message, the more it says about where the match is."""
    held = [asked.intersection(some) for some in terms]
    times = {term: sum(term in some for some in held) for term in asked}
    total = sum(1 / count for count in times.values() if count) or 1.0
    shared = [SHARED * sum(1 / times[term] for term in some) / total for some in held]
    beside = [max(shared[max(0, at - 1) : at + 2]) * BESIDE for at in range(len(read))]
    return [max(shared[at], beside[at]) + one.states * one.own for at, one in enumerate(read)]


def _joined(text: str, read: Sequence[ReadSentence], kept: Sequence[int]) -> str:
    parts: list[str] = []
    for place, at in enumerate(kept):
        if place:
            is_next = at == kept[place - 1] + 1
            parts.append(text[read[at - 1].end : read[at].start] if is_next else GAP)
        parts.append(text[read[at].start : read[at].end])
    before = "" if kept[0] == 0 and not text[: read[0].start].strip(" -*•#>\n") else GAP.lstrip()
    return before + "".join(parts) + ("" if kept[-1] == len(read) - 1 else GAP.rstrip())
