"""Corrections that say by themselves what is right: "no, it is the staging server that runs Debian, not production"."""

from __future__ import annotations

import re

from offbook.continuity.learning.taught import Taught, by_words
from offbook.continuity.replacing.corrections import correction_found
from offbook.retrieval.words import terms

CORRECTED = 0.7
FEWEST_TERMS = 3
"""Of what is right and what was wrong together: "I meant Monday" says nothing to who reads it next month."""
_WRONG = re.compile(
    r"(?:(?:no|nope|nein|sorry|wait|oops|correction|actually|well|hm+|but)\b[\s,.!:;–—-]*){0,3}"
    r"(?P<how>no\b|nope\b|that's (?:wrong|not (?:right|correct|true))|that is (?:wrong|not (?:right|correct|true))|"
    r"you(?:'ve)? got "
    r"(?:that|it) wrong|you(?:'re| are) (?:wrong|mistaken)(?P<about> about [^\n,:.]{2,60})?|i was wrong|my mistake|"
    r"(?:small |quick |one |minor |another )?correction|nein|(?:das )?stimmt "
    r"nicht|"
    r"das (?:ist falsch|stimmt nicht)|falsch|不对|错了|更正)[\s,.!:;：，。–—-]+(?P<what>[^\n]{6,300})",
    re.I,
)
_SPELT = re.compile(
    r"(?:it's|it is|my name is|that's) (?:spelled|spelt|pronounced|called|written) [^\n]{2,80}, not [^\n]{2,60}", re.I
)
_NOT = re.compile(r"[,;，–—-]\s?(?:and |und )?(?:not|nicht|不是)\s?(?P<old>[^\n,.;!，。]{1,60})|\binstead of\b", re.I)
_STATES = re.compile(
    r"(?:actually |eigentlich )?(?:the|my|our|his|her|their|der|die|das|mein\w*|it(?:'s| is) the|es ist (?:der|die|"
    r"das)|"
    r"(?-i:[A-Z])[\w'-]+)\b",
    re.I,
)
_VALUE = re.compile(r"\d|(?<=\s)[A-Z]|[^\x00-\x7f]|[\"“]")
_APOLOGY = re.compile(r"\W*(?:no|nope|sorry|wait|oops|correction|actually|i meant|that's wrong)\b", re.I)
_OPINION = re.compile(
    r"\b(?:think|feel|fine|good|great|bad|nice|worries|thanks|thank|problem|way|need|idea|point|please|just|really|"
    r"better|"
    r"want|should|could|mind|make it|try|shorter|longer)\b",
    re.I,
)


def correction_in(clause: str) -> Taught | None:
    if re.search(r"\binstead of\b", clause, re.I) and not _APOLOGY.match(clause):
        return None  # a choice
    if _SPELT.match(clause):
        return _taught(clause)
    found = _WRONG.match(clause)
    if found:
        what = found["what"]
        if found["about"] and _VALUE.search(what):
            return _taught(clause)
        is_contrast = bool(_NOT.search(what))
        is_statement = (
            bool(_STATES.match(what)) and bool(_VALUE.search(what)) and not found["how"].lower().startswith("no")
        )
        if (is_contrast or is_statement) and not _OPINION.search(what):
            return _taught(clause)
        return None
    known = correction_found(clause, "user")
    if known is None or known.correction.kind != "correct" or not known.correction.old or _OPINION.search(clause):
        return None
    return _taught(clause)


def _taught(clause: str) -> Taught | None:
    if len(set(terms(clause))) < FEWEST_TERMS:
        return None
    return Taught("correction", clause, by_words("correction", clause), CORRECTED)
