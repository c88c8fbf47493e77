"""What was learnt as the agent says it: the user's own clause with "they" for "I", or their words in quotation marks.

"I", "you" and "they" take the same verbs but for "am" and "was", so English clauses can be turned without a parser.
What speaks to the agent, what is in another language and what somebody with a name said is quoted: a quotation is never
wrong.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from offbook.model.lesson import LessonKind
from offbook.rules.supersession.facts import NO_LONGER, contradicts, is_single_valued, is_within
from offbook.search.words import terms

MAX_CHARS = 300
"""Of a lesson's text."""
_ENDS = (".", "!", "?", "…", "。", "！", "？", "”", '"')
_TO_THE_AGENT = re.compile(r"\b(?:you|your|yours|you're|yourself|me\s+know)\b", re.IGNORECASE)
_BEGINS_THERE = (
    r"(?:i|i'm|i've|i'll|i'd|im|my|we|we're|we've|we'll|our|it|it's|its|he|she|they|you|your|his|her|their|the|this|"
    r"these|those|there|that|that's|let's|please|always|never|no|not|nope|sorry|wait|oops|actually|well|so|ok|okay|"
    r"yes|remember)"
)
_LEAD = re.compile(
    r"\A(?:(?:oh|ah|and|but|ok|okay|yes|yeah|nope|sorry|oops|also|fyi|btw|by the way|just so you know|actually|"
    r"please remember|remember that|remember|please note|note that|for the record|hmm|anyway|alright|because|"
    rf"(?:hey|hi|hello|well|so|no|wait|note|right)(?=\s*[,.!–—-]|\s+{_BEGINS_THERE}\b)|"
    rf"that(?=\s+{_BEGINS_THERE}\b))\b(?![:'])[\s,.!–—-]*){{1,4}}(?=\w)",
    re.IGNORECASE,
)
"""What says how the rest is meant. "Wait times", "no meat" and "that is wrong" are of the rest: a word that can begin
it, too, goes only where something else begins behind it."""
_ENGLISH = re.compile(
    r"\b(?:i|my|we|our|the|is|are|to|of|a|an|in|on|for|with|and|it|have|am|use|run|not|decision)\b|\bi'm\b", re.I
)
_OTHER = re.compile(
    r"\b(?:ich|wir|und|der|die|das|nicht|mein|meine|bitte|ist|je|nous|el|la|los|yo|que)\b", re.IGNORECASE
)
_TURNED = (
    (r"\bI\s+am\b|\bI'm\b|\bi'm\b|\bim\b|\bi am\b", "they are"),
    (r"\bI\s+was\b|\bi was\b", "they were"),
    (r"\bI've\b|\bi've\b", "they have"),
    (r"\bI'll\b|\bi'll\b", "they will"),
    (r"\bI'd\b|\bi'd\b", "they'd"),
    (r"\bI\b(?!/|\.[A-Z])|\bi\b(?=\s)", "they"),
    (r"\b[Mm]y\b", "their"),
    (r"\b[Mm]yself\b", "themselves"),
    (r"\bmine\b", "theirs"),
    (r"\bme\b", "them"),
)
_THEY = [(re.compile(pattern), word) for pattern, word in _TURNED]


def format_lesson(clause: str, *, speaker: str = "", is_order: bool = False, is_correction: bool = False) -> str:
    """A sentence of the agent's that holds what the clause says. "" where it does not fit into a lesson."""
    said = _sentence(clause)
    is_turned = not (speaker or is_order or is_correction or _TO_THE_AGENT.search(said)) and _is_english(said)
    if is_turned:
        text = _turned(said)
    else:
        verb = "asked me" if is_order else "corrected me" if is_correction else "said"
        text = f"{speaker or 'They'} {verb}: “{_sentence(said, is_quoted=True)}”"
    return text if len(text) <= MAX_CHARS else ""


def _turned(said: str) -> str:
    for pattern, word in _THEY:
        said = pattern.sub(word, said)
    return _capital(said)


def _sentence(clause: str, *, is_quoted: bool = False) -> str:
    said = " ".join(clause.split()).strip(" -–—•*_`")
    if not is_quoted:
        said = _LEAD.sub("", said, count=1)
    said = said.rstrip(" ,;:")
    if said and not said.endswith(_ENDS):
        said += "." if said.isascii() or not _is_wide(said[-1]) else "。"
    return _capital(said)


def _is_wide(letter: str) -> bool:
    return "\u3000" <= letter <= "\u9fff"


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _is_english(said: str) -> bool:
    if _OTHER.search(said) or any(_is_wide(letter) for letter in said):
        return False
    return len(_ENGLISH.findall(said)) * 8 >= len(said.split())


# ── What a sentence teaches, and the key under which the same is found again ──

SEPARATOR = " = "
"""Between the subject and the value of a key. No term holds a blank."""
MAX_KEY_TERMS = 24
FEWEST_WORDS_LEFT = 3
_CHOSEN = frozenset(("like", "choose", "rule"))
"""First words of subjects that have one value at a time: liked or not, this one or that."""

_REASON = re.compile(
    r"(?:\s[-–—]{1,2}\s|\s*;\s|, (?=(?:so|but|because|'cause|cause|since|though|as|it|it's|they|they're|that's|"
    r"which|check|"
    r"just|and (?:it|it's|they|they're|i|that|this))\b)|\s(?:because|'cause|since it|as it|so i)\b).*\Z",
    re.IGNORECASE | re.DOTALL,
)
POINTING = re.compile(
    r"\b(?:this|these|those|them|they|him|her|he|she|such|there|each other|that (?:one|world|place|kind|sort)|like "
    r"that|"
    r"so much|the same)\b",
    re.IGNORECASE,
)
"""Who reads it next month does not know what is meant."""
HURRY = re.compile(
    r"\b(?:immediately|right away|asap|now|at once|instead of asking|already|sharp sharp|mate)\b", re.IGNORECASE
)
"""What is to be done at once is not a rule for later."""


class Taught(NamedTuple):
    """What one clause of one sentence teaches."""

    kind: LessonKind
    clause: str
    """As it was said."""
    key: str
    strength: float
    """How sure the rule is that this is meant to last: see `confidence`."""
    about: str | None = None
    is_order: bool = False
    """It tells the agent what to do."""
    is_wish: bool = False
    """It is put as a wish ("I'd rather …"), which is as real as an order."""


def keyed(subject: str, value: str) -> str:
    return f"{subject}{SEPARATOR}{value}"


def by_words(prefix: str, text: str) -> str:
    """The key of what has no subject of its own: its telling words, in any order."""
    return f"{prefix}: {' '.join(sorted(dict.fromkeys(terms(text)))[:MAX_KEY_TERMS])}"


def without_reason(clause: str) -> str:
    """What is said, without why, where enough is left: "I love tea, it keeps me calm" is about tea."""
    said = _REASON.sub("", clause)
    return said if len(said.split()) >= FEWEST_WORDS_LEFT else clause


def parted(key: str) -> tuple[str, str]:
    """Subject and value. What has no value is a subject by itself, which nothing contradicts."""
    subject, found, value = key.rpartition(SEPARATOR)
    return (subject, value) if found else (key, "")


def cannot_both_hold(new: str, old: str, *, is_change: bool) -> bool:
    """Whether the newer of two keys takes the place of the older. `is_change`: it was said with a word of change."""
    subject, value = parted(new)
    other, old_value = parted(old)
    if not value or not old_value or subject != other or value == old_value:
        return False
    attribute = subject.rpartition("|")[2]
    if attribute.split(" ", 1)[0] in _CHOSEN:
        return True
    if old_value.startswith(NO_LONGER) and not value.startswith(NO_LONGER):
        # What is no longer so is so again, or what is so instead is known.
        return is_single_valued(subject) or is_within(value, old_value.removeprefix(NO_LONGER))
    return (is_change or is_single_valued(subject)) and contradicts(subject, value, old_value)
