"""One message, and what of it is to be kept beyond its conversation: the sentences that were read so, word for word."""

from __future__ import annotations

from datetime import datetime

import msgspec

from offbook.model.content import own_text
from offbook.model.lesson import LessonKind
from offbook.model.memory_entry import PlacedMessage
from offbook.model.sentences import is_question as is_question  # noqa: PLC0414 - `links` takes it from here
from offbook.model.statement import ReadSentence, StatementKind
from offbook.model.types import Message, Value
from offbook.models.sentence_kinds import read_sentences
from offbook.search.words import own_terms, terms

NOTES_FROM = "memory:"
"""How the origin of a note begins that was taken over from another memory: a person or an agent chose to keep it."""
KEPT = 0.65
"""How likely a sentence must matter in another conversation to be learnt at all; `lessons.minConfidence` says from
where on it is told."""
OWN = 0.76
FEWEST_TERMS = 2
LONGEST_CHARS = 400
SHORT_TERMS = 4
"""A sentence with fewer telling words is quoted with the one before it: by itself it says too little."""
MOST_OF_ONE_MESSAGE = 6
"""Who teaches more at once has pasted something; a note of another memory may hold more."""
MOST_OF_ONE_NOTE = 100
NOTED = 0.8
"""What was kept in another memory."""
LESSON_KINDS: dict[StatementKind, LessonKind] = {
    "fact": "fact",
    "preference": "preference",
    "constraint": "preference",
    "order": "procedure",
    "decision": "decision",
    "outcome": "fact",
}


class LessonMention(Value, frozen=True):
    """Something that is to be kept, said once, at one place."""

    kind: LessonKind
    text: str
    key: str
    strength: float
    at: datetime
    place: int
    session_id: str
    seq: int
    about: str | None = None


def kept_in(placed: PlacedMessage) -> list[LessonMention]:
    """What a message says that is to be kept. Nothing where it is noise, or nobody's own words."""
    logged = placed.logged
    message = logged.message
    if logged.entry.noise is not None or not is_read(message):
        return []
    found: dict[str, LessonMention] = {}
    for kind, text, strength in _kept_by(message):
        key = key_of(text)
        found.setdefault(
            key,
            LessonMention(
                kind=kind,
                text=text,
                key=key,
                strength=strength,
                at=logged.said_at,
                place=placed.place,
                session_id=placed.session_id,
                seq=logged.seq,
            ),
        )
    return list(found.values())


def key_of(text: str) -> str:
    """What two sentences have in common that say the same in the same words."""
    return " ".join(sorted(set(own_terms(text)))) or text.strip().lower()


def is_read(message: Message) -> bool:
    """Whether a person said it, or it is a note that was kept elsewhere."""
    if is_note(message):
        return True
    return message.role == "user" and message.tool_call_id is None and message.origin in (None, "", message.role)


def is_spoken(message: Message) -> bool:
    """Whether its sender, a person or the agent, said it in person: no tool gave it, and it came from nowhere else."""
    is_somebody = message.role in ("user", "assistant") and message.tool_call_id is None
    return (is_somebody and message.origin in (None, "", message.role)) or is_note(message)


def is_note(message: Message) -> bool:
    return (message.origin or "").startswith(NOTES_FROM)


def _kept_by(message: Message) -> list[tuple[LessonKind, str, float]]:
    read = read_sentences(own_text(message.content), is_user=True)
    is_kept_elsewhere = is_note(message)
    found: list[tuple[LessonKind, str, float]] = []
    for at, one in enumerate(read):
        kind = LESSON_KINDS.get(one.kind)
        if is_kept_elsewhere:
            if len(set(terms(one.text))) >= FEWEST_TERMS:
                found.append((kind or "fact", one.text, NOTED))
        elif kind is not None and _is_kept(one):
            found.append((kind, _with_lead(read, at), round(one.keep, 4)))
    found.sort(key=lambda each: -each[2])
    return found[: MOST_OF_ONE_NOTE if is_kept_elsewhere else MOST_OF_ONE_MESSAGE]


def _is_kept(one: ReadSentence) -> bool:
    return (
        one.keep >= KEPT
        and one.own >= OWN
        and len(one.text) <= LONGEST_CHARS
        and len(set(terms(one.text))) >= FEWEST_TERMS
        and not is_question(one.text)
    )


def _with_lead(read: list[ReadSentence], at: int) -> str:
    one = read[at]
    before = read[at - 1] if at else None
    is_short = len(set(terms(one.text))) < SHORT_TERMS
    if before is None or not is_short or is_question(before.text) or len(before.text) + len(one.text) > LONGEST_CHARS:
        return one.text
    return f"{before.text} {one.text}"


def with_key(said: LessonMention, key: str) -> LessonMention:
    """The same thing under the key it is known by."""
    return msgspec.structs.replace(said, key=key)
