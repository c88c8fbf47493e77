"""Which earlier messages a new one replaces (D5).

Decided when a message is written, from three signs: it states another value of the same fact, it corrects what was
said just before, or it names what it corrects or takes back. A wrongly hidden memory is worse than a missed link: where
the earlier message says much else, asks, or says the same, it stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import lru_cache

from offbook.model.types import Value
from offbook.rules.supersession.corrections import (
    Correction,
    FoundCorrection,
    attribute_of,
    correction_found,
    correction_in,
)
from offbook.rules.supersession.facts import (
    CHANGE,
    UNREAL,
    Fact,
    Stated,
    contradicts,
    facts_in,
    is_single_valued,
    is_within,
    owner_of,
    stated_in,
)
from offbook.search.substance import is_boilerplate, is_question, straight
from offbook.search.words import terms

__all__ = ["Correction", "Earlier", "Fact", "correction_in", "facts_in", "may_restate", "restated_by", "superseded_by"]

LONGEST_REPLACED_CHARS = 300
"""A longer message says more than the one thing that is replaced."""
NEAREST_TURNS = 4
PLAIN_TURNS = 2
LONGEST_PLAIN_CHARS = 160
"""Where only the kind of value is shared ("actually, it's 8081"), the statement is the last one and says "
    "little else."""
OLD_VALUE_TURNS = 10
"""An old value named without its thing ("not Friday") is looked for in this neighbourhood only."""
LONGEST_ASSENT_CHARS = 120
"""What an assistant may say between a statement and "forget that"."""
MOST_BESIDES = 4
"""Words that a statement may have beside those by which it is taken back."""
TEXTS_KEPT = 2048
"""The same messages are compared with each that follows them."""
MAX_NAMED = 3
SHARE_OF_TARGET = 0.6
TELLING_TERM_CHARS = 5
READ_CHARS = 1000

LONGEST_RESTATING_CHARS = 200
LEAST_SHARED = 3
MOST_DIFFERENT = 2
"""Words in which two statements of the same thing may differ: a value, and little else."""

_DATE = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:january|february|march|april|june|july|august|"
    r"september|october|november|"
    r"december)\b|\b(?:tomorrow|tonight|noon|midnight)\b|\b\d{1,2}(?::\d\d)?\s?[ap]m\b|\b\d{1,2}:\d\d\b|"
    r"\b\d{4}-\d\d-\d\d\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\?|？|\b(?:would you|do you|shall i|should i|want me|let me know|i can|i could|i'?ll|i will|i'?d|happy to|"
    r"feel free|if you|how about|we could|you (?:can|could|may|might|should))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_CHANGE_WORDS = (
    "now nowadays anymore change changed moved switched updated rescheduled postponed new longer since instead"
)
_CHANGE_TERMS = frozenset(terms(_CHANGE_WORDS))
_SMALL = frozenset(terms("actually correction meant mean sorry scratch forget ignore wrong instead mind oops wait"))


class Earlier(Value, frozen=True):
    """A message that may be replaced. `turns_ago` is None where it is far or in another session."""

    text: str
    role: str
    speaker: str
    is_same_session: bool
    turns_ago: int | None
    facts: tuple[Fact, ...]


def superseded_by(text: str, role: str, speaker: str, earlier: Sequence[Earlier]) -> list[int]:
    """Indexes of the earlier messages that a new message replaces, in their order."""
    replaced = set(restated_by(text, role, speaker, earlier))
    found = correction_found(text, role)
    if found:
        own = [
            index
            for index, one in enumerate(earlier)
            if one.role == role and one.speaker == speaker and _is_replaceable(one) and one.text.strip() != text.strip()
        ]
        replaced.update(_by_correction(found, owner_of(speaker), earlier, own))
    return sorted(replaced)


def restated_by(text: str, role: str, speaker: str, earlier: Sequence[Earlier]) -> list[int]:
    """Those of them that a message replaces by what it states, whatever was said between them."""
    return sorted({*_by_fact(text, role, speaker, earlier), *_by_restating(text, role, speaker, earlier)})


def _is_replaceable(one: Earlier) -> bool:
    return len(one.text) <= LONGEST_REPLACED_CHARS and _is_statement(one.text)


@lru_cache(TEXTS_KEPT)
def _is_statement(text: str) -> bool:
    return not is_question(text) and not is_boilerplate(text)


# ── another value of the same fact ────────────────────────────────────────────────────────────


def _by_fact(text: str, role: str, speaker: str, earlier: Sequence[Earlier]) -> list[int]:
    stated = {one.fact.about: one for one in stated_in(text, role, speaker)}
    if not stated:
        return []
    replaced = []
    for index, one in enumerate(earlier):
        if (one.role, one.speaker) != (role, speaker):
            continue
        same = [(stated[fact.about], fact) for fact in one.facts if _is_same(fact, one, stated.get(fact.about))]
        is_contradicted = any(
            (new.is_change or is_single_valued(old.about)) and contradicts(old.about, new.fact.value, old.value)
            for new, old in same
        )
        is_repeated = any(new.fact.value == old.value for new, old in same)
        if is_contradicted and not is_repeated and _is_replaceable(one):
            replaced.append(index)
    return replaced


def _is_same(fact: Fact, one: Earlier, new: Stated | None) -> bool:
    """ "The deadline" of another session is another deadline; "the tax deadline" and mine are the same ones, and so is
    that of which the old value is named."""
    if new is None or new.old:
        return new is not None and is_within(new.old, fact.value)
    return one.is_same_session or "|" in fact.about or len(fact.about.split()) > 1


# ── the same statement with another value ─────────────────────────────────────────────────────


def may_restate(text: str, role: str) -> bool:
    """Whether a message says that something is otherwise now, briefly enough to be that and nothing else."""
    return (
        role == "user"
        and len(text) <= LONGEST_RESTATING_CHARS
        and bool(CHANGE.search(text))
        and not UNREAL.search(text)
        and (not is_question(text))
    )


def _by_restating(text: str, role: str, speaker: str, earlier: Sequence[Earlier]) -> list[int]:
    """ "The server now runs on port 9090" replaces "The server runs on port 8080": the same words but for a value."""
    if not may_restate(text, role):
        return []
    said = set(terms(text)) - _SMALL - _CHANGE_TERMS
    replaced = []
    for index, one in enumerate(earlier):
        if (one.role, one.speaker) != (role, speaker) or not _is_replaceable(one):
            continue
        before = _terms(one) - _SMALL - _CHANGE_TERMS
        old, new = before - said, said - before
        is_same = (
            len(before & said) >= LEAST_SHARED and 0 < len(old) <= MOST_DIFFERENT and 0 < len(new) <= MOST_DIFFERENT
        )
        if is_same and _value_kinds(old, one.text) & _value_kinds(new, text):
            replaced.append(index)
    return replaced


def _value_kinds(words: Set[str], text: str) -> set[str]:
    """What kinds of values are among the words: numbers, days, names."""
    kinds = {"number" for word in words if _NUMBER.search(word)}
    said = straight(text[:READ_CHARS])
    if any(words & set(terms(found)) for found in _DATE.findall(said)):
        kinds.add("date")
    if any(words & set(terms(found)) for found in _NAME.findall(said)):
        kinds.add("name")
    return kinds


# ── a correction or retraction ────────────────────────────────────────────────────────────────


def _by_correction(found: FoundCorrection, owner: str, earlier: Sequence[Earlier], own: list[int]) -> list[int]:
    correction = found.correction
    if found.names == "attribute":
        return _of_attribute(correction.target, owner, earlier, own)
    if found.names == "statement":
        return _stating(correction.target, owner, earlier, own)
    near = sorted(
        (index for index in own if _is_within(earlier[index], OLD_VALUE_TURNS)), key=lambda index: _ago(earlier[index])
    )
    if correction.target and (correction.old or correction.kind == "retract"):
        named = _named(found, earlier, own, near)
        is_taken_back = correction.kind == "retract" and not named
        return _of_attribute(correction.target, owner, earlier, own) if is_taken_back else named
    if correction.old:
        old = set(terms(correction.old))
        return [index for index in near if old and old <= _terms(earlier[index])][:1]
    if correction.kind == "retract":
        return _just_said(earlier, near)
    nearest = [index for index in near if _is_within(earlier[index], NEAREST_TURNS)]
    return [index for index in nearest if _is_corrected(found, earlier[index])][:1]


def _just_said(earlier: Sequence[Earlier], near: list[int]) -> list[int]:
    """The message before, or the one before a word of assent: what asks or offers is itself what is refused."""
    last = near[:1]
    if not last or earlier[last[0]].turns_ago == 1:
        return last
    between = [one for one in earlier if _is_within(one, 1)]
    is_assent = (
        earlier[last[0]].turns_ago == 2
        and len(between) == 1
        and between[0].role == "assistant"
        and len(between[0].text) <= LONGEST_ASSENT_CHARS
        and not is_question(between[0].text)
        and not _OFFER.search(straight(between[0].text))
    )
    return last if is_assent else []


def _of_attribute(target: str, owner: str, earlier: Sequence[Earlier], own: list[int]) -> list[int]:
    """What states the speaker's own "phone number", wherever."""
    about = f"{owner}|{attribute_of(target)}"
    return [index for index in own if any(fact.about == about for fact in earlier[index].facts)]


def _stating(target: str, owner: str, earlier: Sequence[Earlier], own: list[int]) -> list[int]:
    """What states just this: the same value of the same fact, or all of its words and few others."""
    facts = set(facts_in(target, "user", owner))
    words = set(terms(target))
    taken_back = []
    for index in own:
        before = _terms(earlier[index])
        is_said = len(words) > 1 and words <= before and len(before - words) <= MOST_BESIDES
        if is_said or not facts.isdisjoint(earlier[index].facts):
            taken_back.append(index)
    return taken_back


def _named(found: FoundCorrection, earlier: Sequence[Earlier], own: list[int], near: list[int]) -> list[int]:
    """Messages that hold the old value and most words of the target. One common word finds only what is near."""
    target, old = set(terms(found.correction.target)), set(terms(found.correction.old))
    is_telling = any(len(term) >= TELLING_TERM_CHARS or _NUMBER.search(term) or not term.isascii() for term in target)
    if not target or not (is_telling or old):
        return []
    is_enough = is_telling and (len(target) > 1 or found.is_explicit or bool(old))
    matching = []
    for index in own if is_enough else near:
        words = _terms(earlier[index])
        if len(target & words) >= SHARE_OF_TARGET * len(target) and old <= words:
            matching.append(index)
    newest_first = sorted(matching, key=lambda index: (_ago(earlier[index]), -index))
    return newest_first[:MAX_NAMED]


def _is_corrected(found: FoundCorrection, one: Earlier) -> bool:
    """Whether the new value could stand in the earlier message: it speaks of the same, or gives a value of "
    "that kind."""
    said = set(terms(found.said)) - _SMALL
    words = _terms(one)
    if said and said <= words:
        return False
    target = set(terms(found.correction.target))
    if target:
        return len(target & words) >= SHARE_OF_TARGET * len(target)
    if any(len(term) >= TELLING_TERM_CHARS for term in said & words):
        return True
    is_plain = len(one.text) <= LONGEST_PLAIN_CHARS and (one.turns_ago or 0) <= PLAIN_TURNS
    return is_plain and bool(_kinds(found.said) & _kinds(one.text))


def _kinds(text: str) -> set[str]:
    said = straight(text[:READ_CHARS])
    if _DATE.search(said):
        return {"date"}
    kinds = {"number"} if _NUMBER.search(said) else set()
    return kinds | ({"name"} if _NAME.search(said) else set())


def _terms(one: Earlier) -> frozenset[str]:
    return _terms_of(one.text[:READ_CHARS])


@lru_cache(TEXTS_KEPT)
def _terms_of(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _is_within(one: Earlier, turns: int) -> bool:
    return one.is_same_session and one.turns_ago is not None and one.turns_ago <= turns


def _ago(one: Earlier) -> int:
    return one.turns_ago if one.turns_ago is not None else 1 << 30


# ── Whether a message says more than the one thing of it that was corrected ──

LEAST_TERMS = 2
LEAST_TERMS_AFTER_COMMA = 3
"""Between commas there is often no more than a date or a name."""
_PARTS = re.compile(r"(?<=[.!?;。！？；])\s*|\s+(?:and|but|while|whereas)\s+|\n+")
_COMMA = re.compile(r"[,，、]\s*")


def says_more(old: str, new: str) -> bool:
    """Whether something of `old` stands beside what `new` is about: then `new` replaces it only in part."""
    about = set(terms(new[:READ_CHARS]))
    clauses = [(set(terms(clause)), least) for clause, least in _clauses(old[:READ_CHARS])]
    clauses = [(words, least) for words, least in clauses if words]
    if len(clauses) < 2:
        return False
    corrected = max(range(len(clauses)), key=lambda at: (len(clauses[at][0] & about), -at))
    return any(len(words - about) >= least for at, (words, least) in enumerate(clauses) if at != corrected)


def _clauses(text: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for part in _PARTS.split(text):
        pieces = _COMMA.split(part)
        least = LEAST_TERMS if len(pieces) == 1 else LEAST_TERMS_AFTER_COMMA
        found += [(piece, least) for piece in pieces]
    return found
