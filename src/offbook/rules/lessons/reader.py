"""One message, and what it teaches: each clause once, under the first kind that knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import msgspec

from offbook.model.content import own_text
from offbook.model.lesson import LessonKind
from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Message, Value
from offbook.rules.lessons.decisions import correction_in, decision_in
from offbook.rules.lessons.facts import fact_in
from offbook.rules.lessons.own_words import LONGEST_READ_CHARS, is_made_up, is_note, is_read, is_unreal, own_sentences
from offbook.rules.lessons.preferences import ASKED, preference_in
from offbook.rules.lessons.procedures import procedure_in, steps_in
from offbook.rules.lessons.voice import POINTING, Taught, by_words, format_lesson
from offbook.rules.state.records import words_of
from offbook.rules.supersession.facts import NOBODY, owner_of
from offbook.rules.supersession.statements import CLAUSE, LEAD_ONLY
from offbook.search.substance import straight

MOST_OF_ONE_MESSAGE = 8
"""Who teaches more at once has pasted something; a note of another memory may hold more."""
MOST_OF_ONE_NOTE = 100
CONFIRMED = 0.6
"""What the agent wrote down while it spoke with them: its own words, which they may not have read."""
REMEMBERED = 0.8
"""What they ask to be remembered, whatever it is."""
FEWEST_REMEMBERED_WORDS = 2
_REMEMBER = re.compile(
    r"\A\W*(?:(?:ok|okay|so|and|also|btw|by the way|hey)\b[\s,]*){0,2}(?:(?:please |always )?(?:remember|don't "
    r"forget|do not "
    r"forget|keep in mind|note|make a note)(?: that\b|\s?[:,–—-])|for (?:future reference|the record)[:,]|"
    r"(?:bitte )?merk(?:e)? dir[:,]?(?: dass\b)?|(?:请|你要)?记住[:：，,]?)\s*(?P<what>[^\n]{4,300})",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"\A(?!(?i:we|i) (?:\w+ )?(?i:talked|spoke|said|told|discussed|mentioned|agreed)\b)(?!.*\b(?i:you|your|"
    r"yourself)\b)(?:(?i:my|our|the|we|i|he|she|der|die|das|mein\w*|unser\w*)\b|[A-Z][\w-]+'s\b|"
    r".*?(?:\d|(?<=\s)[A-Z]|[\u3400-\u9fff]))",
    re.DOTALL,
)
"""It is about something, and no advice to whoever listens ("remember, staying positive helps")."""
LONGEST_ASIDE_CHARS = 300
_CONFIRMED = re.compile(
    r"\A\W*(?P<how>decided|decision|noted|remembered|understood|got it|i(?:'ll| will) remember(?: that)?)\s?[:,–—-]\s?"
    r"(?:that )?(?P<what>[^\n]{6,300})",
    re.IGNORECASE,
)
_OF_THEM = tuple(
    (re.compile(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (r"\byou are\b|\byou're\b", "I am"),
        (r"\byou've\b", "I have"),
        (r"\byou\b", "I"),
        (r"\byours\b", "mine"),
        (r"\byour\b", "my"),
    )
)
_OF_US = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"\bThey are\b|\bthey are\b|\bThey're\b|\bthey're\b", "I am"),
        (r"\b[Tt]hey\b", "I"),
        (r"\bTheir\b", "My"),
        (r"\btheir\b", "my"),
        (r"\btheirs\b", "mine"),
    )
)


class LessonMention(Value, frozen=True):
    """Something that was taught, once, at one place."""

    kind: LessonKind
    text: str
    key: str
    strength: float
    at: datetime
    place: int
    session_id: str
    seq: int
    about: str | None = None


def said_in(placed: PlacedMessage) -> list[LessonMention]:
    """What a message teaches. Nothing where it is noise, or nobody's own words."""
    logged = placed.logged
    message = logged.message
    if logged.entry.noise is not None or not is_read(message):
        return []
    speaker = message.name or "" if message.role == "user" and owner_of(message.name or "") != NOBODY else ""
    # A clock that is ahead of ours does not make it later than its arrival.
    at = min(message.ts or logged.received_at, logged.received_at)
    found: dict[str, LessonMention] = {}
    for taught in taught_by(message):
        text = format_lesson(
            taught.clause, speaker=speaker, is_order=taught.is_order, is_correction=taught.kind == "correction"
        )
        if text:
            found.setdefault(
                taught.key,
                LessonMention(
                    kind=taught.kind,
                    text=text,
                    key=taught.key,
                    strength=taught.strength,
                    at=at,
                    place=placed.place,
                    session_id=placed.session_id,
                    seq=logged.seq,
                    about=taught.about,
                ),
            )
    return list(found.values())[: MOST_OF_ONE_NOTE if is_note(message) else MOST_OF_ONE_MESSAGE]


def taught_by(message: Message) -> list[Taught]:
    """By the message alone, before it has a place."""
    if message.role == "assistant" and not is_note(message):
        return list(_confirmed(message))
    owner = owner_of(message.name or "")
    text = own_text(message.content)
    found: list[Taught] = []
    if len(text) <= LONGEST_READ_CHARS and not is_made_up(text) and (steps := steps_in(straight(text))):
        found.append(steps)
        return found
    for sentence in own_sentences(message):
        found += _in_sentence(sentence, owner, message.name or "")
    # In a long message, what is asked for without a word of "always" is part of its task.
    return [one for one in found if len(text) <= LONGEST_ASIDE_CHARS or one.strength > ASKED]


def _in_sentence(sentence: str, owner: str, speaker: str) -> list[Taught]:
    asked = _REMEMBER.match(sentence)
    if asked is None or is_unreal(sentence):
        return _told(sentence, owner, speaker)
    what = asked["what"]
    if found := _told(what, owner, speaker):
        return [one._replace(strength=max(one.strength, REMEMBERED)) for one in found]
    if not _STATES.search(what) or POINTING.search(what) or len(words_of(what)) < FEWEST_REMEMBERED_WORDS:
        return []
    return [Taught("fact", what, by_words(f"{owner}|", what), REMEMBERED)]


def _told(sentence: str, owner: str, speaker: str) -> list[Taught]:
    preference = preference_in(sentence, owner)
    if not (preference and preference.is_order) and (procedure := procedure_in(sentence)):
        return [procedure]
    if is_unreal(sentence):
        return [preference] if preference and preference.is_wish else []
    if correction := correction_in(sentence):
        # Of a fact, so that it takes the place of what was wrong.
        fact = next((one for one in _facts(sentence, owner, speaker) if " = " in one.key), None)
        return [correction._replace(key=fact.key, about=fact.about) if fact else correction]
    if found := decision_in(sentence) or preference:
        return [found]
    return _facts(sentence, owner, speaker)


def _facts(sentence: str, owner: str, speaker: str) -> list[Taught]:
    found = (fact_in(clause, owner, "user", speaker) for clause in _clauses(sentence))
    return [one for one in found if one is not None]


def _clauses(sentence: str) -> list[str]:
    """ "My name is Jonas and I work in Leipzig" tells two things. "Actually, my …" is one."""
    clauses: list[str] = []
    for clause in CLAUSE.split(sentence):
        if clauses and LEAD_ONLY.match(clauses[-1]):
            clauses[-1] = f"{clauses[-1]}, {clause}"
        else:
            clauses.append(clause)
    return [clause for clause in clauses if clause.strip()]


def _confirmed(message: Message) -> Iterator[Taught]:
    """ "Decided: …", "Noted: you prefer …": nothing else an assistant says is taken for true."""
    for line in straight(own_text(message.content)[:LONGEST_READ_CHARS]).splitlines():
        found = _CONFIRMED.match(line)
        if found is None or "?" in line:
            continue
        what = found["what"]
        if found["how"].lower().startswith("deci"):
            decided = decision_in(f"Decided: {what}")
            if decided and not is_unreal(what):
                yield decided._replace(strength=CONFIRMED)
            continue
        for pattern, word in _OF_THEM:
            what = pattern.sub(word, what)
        for taught in _in_sentence(what, NOBODY, ""):
            yield taught._replace(strength=CONFIRMED)


def key_of(kind: LessonKind, text: str) -> str:
    """Of a lesson in the agent's words, so that what the rules have read is the same lesson."""
    said = straight(text)
    for pattern, word in _OF_US:
        said = pattern.sub(word, said)
    taught = _told(said, NOBODY, "")
    return taught[0].key if len(taught) == 1 else by_words(kind, text)


def changed(said: LessonMention, key: str) -> LessonMention:
    """The same thing under the key it is known by."""
    return msgspec.structs.replace(said, key=key)
