"""The sentences of a message as a summary may quote them, each whole, with how much it counts.

Who speaks decides first: people before the agent, the agent before tools. Then what the sentence is: a decision, a
constraint, an order or a fact counts more than what states nothing. Very short ones stand with their neighbour, as
they say nothing alone; tables, code and lines that only announce a list are not quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from offbook.context.prompt_text import OWN, SYSTEM, is_person
from offbook.context.term_weights import Term, terms_of, word_count
from offbook.model.sentences import sentences
from offbook.model.statement import ReadSentence, StatementKind
from offbook.models.sentence_kinds import read_sentences
from offbook.statements.reading import KEPT

FIRST_CHARS, LAST_CHARS = 20_000, 10_000
"""What is looked at of one message: its beginning and its end. A longer one is a file or a listing."""
SHORTEST_WORDS = 5
"""A shorter sentence stands with its neighbour, if it states anything."""
LEAST_STATED = 0.35
"""How likely it must state something for that: `Thanks, Mel!` does not."""
LONGEST_JOINED_CHARS = 300
MOST_READ = 400
"""Sentences of one message. What has more is a listing, of which no line is anybody's statement."""
ORDINARY_CHARS = 2_000
"""Longer messages say more in all, but less with each of their words: paste, listings, essays."""

KIND_WEIGHTS: dict[StatementKind, float] = {
    "constraint": 1.6,
    "order": 1.4,
    "decision": 1.5,
    "preference": 1.4,
    "fact": 1.2,
    "outcome": 1.2,
    "task": 1.0,
    "feeling": 0.8,
    "other": 1.0,
}
LEAST_FACTOR = 0.2
"""Of a person's sentence that states nothing: what it is about is still told by its words."""
KEEP_SHARE = 0.5
"""How much more a sentence counts that will surely matter weeks later."""
LASTING_WORTH = 20.0
"""Of what is surely to be kept. Else a thousand lines that differ in a number say more than one that matters."""
QUESTION_FACTOR = 0.4
"""It is told where little else was said."""
OWN_FACTOR = 0.06
"""Of what the agent said itself, where it is neither an outcome nor a decision."""
OWN_RESULT_FACTOR = 0.45
OWN_RESULTS: tuple[StatementKind, ...] = ("outcome", "decision")
TOOL_FACTOR = 0.1
"""What a tool printed counts less than what somebody said: it can be asked again."""
TROUBLE_FACTOR = 4.0
"""But for what went wrong."""
SYSTEM_FACTOR = 0.3
SHORT_FACTOR = 0.3
"""Of a message that has nothing longer."""
LISTING_FACTOR = 0.2

_TROUBLE = ("error", "exception", "fail", "refused", "denied", "fatal", "panic", "not found", "warning")
_SIGNS = "{}[]<>=|\\/;()_"
_SIGN_CHARS = 12
"""Prose has a sign in more characters than this."""
_QUESTION_MARKS = ("?", "？")
_ANNOUNCING_MARKS = (":", "：", ":**", ":*")


class WeighedSentence(NamedTuple):
    text: str
    """As it was said."""
    terms: tuple[Term, ...]
    """Each form once."""
    factor: float
    """What its words are multiplied by."""
    lasting: float = 0.0
    """What it is worth whatever its words: a person's own word that will matter weeks later."""


def weighed_sentences(text: str, speaker: str, *, is_lasting: bool = False) -> list[WeighedSentence]:
    """In their order. Of a very long text its beginning and its end. With `is_lasting`, what was pasted, quoted or
    played counts less: it was for its moment."""
    share = min(1.0, (ORDINARY_CHARS / max(1, len(text))) ** 0.5)
    if len(text) > FIRST_CHARS + LAST_CHARS:
        text = f"{text[:FIRST_CHARS]}\n{text[-LAST_CHARS:]}"
    found = _joined(_quotable(text, speaker, is_lasting=is_lasting))
    return [
        WeighedSentence(_one_line(one.text), terms_of(one.text), one.factor * share, one.lasting * share)
        for one in found
    ]


def weighed(text: str) -> WeighedSentence:
    """A line that a model wrote: it counts by its words."""
    return WeighedSentence(text, terms_of(text), 1.0)


class _Quotable(NamedTuple):
    text: str
    factor: float
    lasting: float = 0.0


def _quotable(text: str, speaker: str, *, is_lasting: bool) -> list[_Quotable]:
    """Each sentence with what it counts; those that are not to be quoted are left out."""
    if not (is_person(speaker) or speaker == OWN):
        factor = SYSTEM_FACTOR if speaker == SYSTEM else TOOL_FACTOR
        said = [one.text for one in sentences(text)]
        return [_Quotable(one, factor * (TROUBLE_FACTOR if _is_trouble(one) else 1.0)) for one in said]
    if len(text) > MOST_READ and len(split := sentences(text)) > MOST_READ:
        return [_Quotable(one.text, LISTING_FACTOR) for one in split]
    read = read_sentences(text, is_user=speaker != OWN)
    if speaker == OWN:
        found = [(one, _own(one), 0.0) for one in read if word_count(one.text) >= SHORTEST_WORDS]
    else:
        worth = [one for one in read if one.states >= LEAST_STATED or word_count(one.text) >= SHORTEST_WORDS]
        found = [(one, _person(one), _lasting(one)) for one in worth or read]
    return [
        _Quotable(one.text, factor * ((0.2 + one.own) if is_lasting else 1), lasting)
        for one, factor, lasting in found
        if factor
    ]


def _is_trouble(said: str) -> bool:
    lower = said.lower()
    return any(word in lower for word in _TROUBLE)


def _one_line(said: str) -> str:
    """As it was said; a mark that would end the line is a space."""
    return said if len(said.splitlines()) == 1 else " ".join(said.split())


def _person(one: ReadSentence) -> float:
    factor = (LEAST_FACTOR + one.states * KIND_WEIGHTS[one.kind]) * (1 + KEEP_SHARE * one.keep) * (0.6 + 0.4 * one.own)
    if one.text.endswith(_QUESTION_MARKS):
        factor *= QUESTION_FACTOR
    elif one.text.endswith(_ANNOUNCING_MARKS):
        factor *= SHORT_FACTOR
    return factor * LISTING_FACTOR if _is_listing(one.text) else factor


def _own(one: ReadSentence) -> float:
    is_heading = one.text.startswith("**") and one.text.endswith("**")
    if is_heading or one.text.endswith((*_ANNOUNCING_MARKS, *_QUESTION_MARKS)) or _is_listing(one.text):
        return 0.0
    is_result = one.kind in OWN_RESULTS
    return (
        (OWN_FACTOR + (OWN_RESULT_FACTOR * one.sure if is_result else 0.0))
        * (0.5 + one.states)
        * (1 + KEEP_SHARE * one.keep)
    )


def _lasting(one: ReadSentence) -> float:
    is_kept = one.keep >= KEPT and not one.text.endswith(_QUESTION_MARKS)
    return LASTING_WORTH * one.keep * one.own if is_kept else 0.0


def _is_listing(said: str) -> bool:
    """Code, a row of a table, a path: signs in place of words."""
    return said.startswith("|") or sum(map(said.count, _SIGNS)) * _SIGN_CHARS > len(said)


def _joined(found: Sequence[_Quotable]) -> list[_Quotable]:
    """Short sentences with the one before them, else with the one after."""
    joined: list[_Quotable] = []
    is_short = False
    for one in found:
        is_now_short = word_count(one.text) < SHORTEST_WORDS
        last = joined[-1] if joined else None
        if last is not None and (is_short or is_now_short) and len(last.text) + len(one.text) < LONGEST_JOINED_CHARS:
            text = f"{last.text} {one.text}"
            joined[-1] = _Quotable(text, max(last.factor, one.factor), max(last.lasting, one.lasting))
            is_short = is_short and word_count(text) < SHORTEST_WORDS
        else:
            joined.append(one)
            is_short = is_now_short
    return [
        one if word_count(one.text) >= SHORTEST_WORDS else one._replace(factor=one.factor * SHORT_FACTOR)
        for one in joined
    ]
