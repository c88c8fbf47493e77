"""Which two messages may be about the same thing, so that the later takes the earlier's place: what was said in person,
what of it is compared, and how likely it is. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, NamedTuple

from offbook.model.content import own_text
from offbook.model.lesson import LESSONS_SESSION
from offbook.model.memory_entry import PlacedMessage
from offbook.model.statement import ReadSentence, StatementKind
from offbook.models import relation_gate
from offbook.models.sentence_kinds import read_sentences
from offbook.search.words import STOP_WORDS, terms
from offbook.statements.clauses import Clause, clauses
from offbook.statements.reading import is_question, is_spoken

LONGEST_CHARS = 280
"""A message up to this long is compared whole, of a longer one its statements."""
MOST_PAIRS = 3
MOST_SENTENCES = 40
"""Of one message: what says more is pasted."""
STATED = 0.4
"""How likely a sentence must be a statement to be compared."""
PART_KEEP = 0.3
"""How likely a part of a sentence must be to be kept: "My flatmate Hannah" of "My flatmate Hannah and I share the
cooking" is none (0.16, of eight such at most 0.22; of nine real parts at least 0.5)."""
REPLACING: tuple[StatementKind, ...] = ("fact", "decision", "outcome", "order", "constraint", "preference")
OF_AGENT = 1.0
"""Off the gate's log odds where the earlier is the agent's: mostly it says again what the user said, who is compared,
too."""
LEAST_KEEP = 0.05
"""How likely the earlier is to be kept: what nobody would remember need not be replaced, unless both share a telling
word. A question tells something too ("how do I clean my …")."""
RESTATED, SURELY_RESTATED, AGREED = 0.94, 0.96, 0.5
"""The least probability where a sentence is said again with another value: by itself, and where the model agrees."""
LEAST_FRAME, LONGEST_FRAME = 3, 24
SAME_SHARE = 0.6
LONGEST_VALUE = 3
SENTENCES_KEPT = 4_096
MESSAGES_KEPT, KEPT_CHARS = 1_024, 2_000
"""As read: what was said lately is compared with all that follows."""
_NO_DIGITS = str.maketrans("", "", "0123456789")
_TOKEN = re.compile(r"[\u3005-\u9fff]|(?:[^\W_\u3005-\u9fff]|[-.:@/])+")


class Read(NamedTuple):
    """What a message was read as."""

    sentences: tuple[str, ...]
    """What may be replaced: all of them, joined where they are short. A question tells, too ("how do I clean my …")."""
    statements: tuple[str, ...]
    """What may replace, where any states something: all but questions, joined where they are short. What follows may
    take it back ("Kidding.")."""
    stated: tuple[Clause, ...]
    """Its statements one by one; of a sentence that says two things, both."""
    keep: float
    """How likely what it states matters in another conversation."""
    is_replacing: bool
    """It states something that can take the place of something."""


class Spoken(NamedTuple):
    """What somebody said in person, and when."""

    place: int
    said_at: datetime
    role: str
    speaker: str | None
    """Their name, where the host gave one."""
    read: Read


class Pair(NamedTuple):
    earlier: Spoken
    later: Spoken
    first: str
    second: str
    """What is compared of each."""


def spoken_in(messages: Iterable[PlacedMessage]) -> list[Spoken]:
    """What was said in person."""
    found: list[Spoken] = []
    for placed in messages:
        logged = placed.logged
        message = logged.message
        if placed.session_id == LESSONS_SESSION or logged.entry.noise is not None or not is_spoken(message):
            continue  # what a person wrote in the place of a lesson has links of its own
        read = read_as(own_text(message.content), is_user=message.role == "user")
        if read.sentences:
            found.append(Spoken(placed.place, logged.said_at, message.role, message.name, read))
    return found


def read_as(text: str, *, is_user: bool = True) -> Read:
    return _read(text, is_user) if len(text) <= KEPT_CHARS else _read.__wrapped__(text, is_user)


@lru_cache(MESSAGES_KEPT)
def _read(text: str, is_user: bool) -> Read:
    read = read_sentences(text, is_user=is_user)
    own = [one for one in read if one.states >= STATED and one.own >= STATED]
    kept = [one for one in own if not is_question(one.text)]
    said = [one for one in read if one.own >= STATED and not is_question(one.text)]
    return Read(
        _joined([one.text for one in read]),
        _joined([one.text for one in said]) if kept else (),
        stated=tuple(part for one in kept for part in _parts(text, one, is_user=is_user)),
        keep=max((one.keep for one in own), default=0.0),
        is_replacing=any(one.kind in REPLACING for one in kept),
    )


def _parts(text: str, one: ReadSentence, *, is_user: bool) -> list[Clause]:
    parts = clauses(text, one.start, one.end)
    if len(parts) > 1 and all(_states(part.text, is_user=is_user) for part in parts):
        return parts
    return [Clause(one.text, one.start, one.end, one.start, one.end)]


def restated_in(pair: Pair) -> list[Clause]:
    """The statements of the earlier that the later says again with another value."""
    return [
        one for one in pair.earlier.read.stated if any(restated(one.text, new.text) for new in pair.later.read.stated)
    ]


def _states(text: str, *, is_user: bool) -> bool:
    return any(one.states >= STATED and one.keep >= PART_KEEP for one in read_sentences(text, is_user=is_user))


def pairs_worth_judging(one: Spoken, others: Iterable[tuple[Spoken, float | None]]) -> list[Pair]:
    """Of one message with what is near it, and what the gate says of each: the few that are worth the model, the
    likeliest first. Where a vector is missing it says None, and they must share a telling word; or the least that
    passes, of the turns just before."""
    others = list(others)
    shapes = Counter(shape for other, _ in others for shape in set(map(_shape, other.read.sentences)))
    if any(shapes[shape] > 1 for shape in map(_shape, one.read.statements)):
        return []  # one more entry of a log
    found: list[tuple[float, Pair]] = []
    for other, gate in others:
        earlier, later = sorted((one, other), key=lambda each: (each.said_at, each.place))
        if not later.read.statements or not _may_replace(earlier, later):
            continue
        first, second = compared(earlier.read.sentences, later.read.statements)
        if first.lower().split() == second.lower().split():  # said once more, it holds as before
            continue
        shared = len(_telling(first) & _telling(second))
        if gate is None or gate == relation_gate.LEAST:
            worth = relation_gate.LEAST + max(shared - 1, -1 if gate is None else 0)
        else:
            worth = gate - OF_AGENT * (earlier.role != "user")
        is_kept = earlier.role != "user" or earlier.read.keep >= LEAST_KEEP or shared > 0
        if (worth >= relation_gate.LEAST and is_kept) or restated(first, second) == "value":
            found.append((worth, Pair(earlier, later, first, second)))
    found.sort(key=lambda each: -each[0])
    return [pair for _, pair in found[:MOST_PAIRS]]


# What is near one message is near the next as well: each sentence is compared many times.


@lru_cache(SENTENCES_KEPT)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


@lru_cache(SENTENCES_KEPT)
def _telling(text: str) -> frozenset[str]:
    return _terms(text) - STOP_WORDS


@lru_cache(SENTENCES_KEPT)
def _shape(text: str) -> str:
    """What entries of a log have in common."""
    return text.lower().translate(_NO_DIGITS)


def probability(pair: Pair, score: float) -> float:
    """That the later takes the earlier's place, by what the model says and by its form."""
    is_said_again = pair.later.read.is_replacing and pair.earlier.role == "user"
    value = restated(pair.first, pair.second) if is_said_again else ""
    if value and (score >= AGREED or set(_tokens(pair.first)) <= set(_tokens(pair.second))):  # "… SQLite, not …"
        return max(score, SURELY_RESTATED)
    return max(score, RESTATED) if value == "value" else score


def restated(first: str, second: str) -> Literal["", "value", "number"]:
    """Whether the later says the same sentence with another value near its end, in any language: "our dog is called
    Bruno", "actually, our dog is called Brutus"; "on Tuesday", "on Thursday, not on Tuesday". A `number` may as well be
    the next entry of a list: only the model can tell."""
    old, new = _tokens(first), _tokens(second)
    if not LEAST_FRAME < len(old) <= LONGEST_FRAME or len(new) > 2 * len(old) + LONGEST_FRAME // 2:
        return ""
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    same = sum(end - start for kind, start, end, *_ in blocks if kind == "equal")
    changed = [block for block in blocks if block[0] in ("replace", "delete")]
    if not changed:  # the old value stands behind the new one
        is_behind = any(
            kind == "insert" and at == len(old) - 1 and last - start > 1 for kind, at, _, start, last in blocks
        )
        return "value" if is_behind else ""
    kind, start, end, first_new, last_new = changed[0]
    is_one_value = len(changed) == 1 and kind == "replace" and max(end - start, last_new - first_new) <= LONGEST_VALUE
    if not is_one_value or 2 * start <= len(old) or same < SAME_SHARE * len(old):
        return ""
    values = old[start:end], new[first_new:last_new]
    return "number" if all(any(map(str.isdigit, "".join(value))) for value in values) else "value"


@lru_cache(SENTENCES_KEPT)
def _tokens(text: str) -> tuple[str, ...]:
    """Words; of a script that is written together, its letters."""
    return tuple(bare for word in _TOKEN.findall(text.lower()) if (bare := word.strip("-.:@/")))


def compared(said: Sequence[str], since: Sequence[str]) -> tuple[str, str]:
    """Of the sentences of two messages, those that share most words."""
    if len(said) == len(since) == 1:
        return said[0], since[0]
    first, second = ([(one, _terms(one)) for one in each] for each in (said, since))
    best = max(((one, other) for one in first for other in second), key=lambda each: len(each[0][1] & each[1][1]))
    return best[0][0], best[1][0]


def _may_replace(earlier: Spoken, later: Spoken) -> bool:
    """Who said it may say it anew, and a person may correct the agent: nobody speaks for another person, and what the
    agent says replaces nothing."""
    return later.role == "user" and (earlier.role != "user" or later.speaker == earlier.speaker)


def _joined(sentences: Sequence[str]) -> tuple[str, ...]:
    # Said twice it says no more, and takes the model twice as long.
    distinct = tuple(dict.fromkeys(sentences))[:MOST_SENTENCES]
    joined = " ".join(distinct)
    return (joined,) if joined and len(joined) <= LONGEST_CHARS else distinct
