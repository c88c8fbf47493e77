"""Lasting facts about people and projects: who they are, who is who, what runs where and until when."""

from __future__ import annotations

import re

from offbook.continuity.anchors.identity import identity_in
from offbook.continuity.learning.changing import parted_from_old
from offbook.continuity.learning.fact_patterns import (
    BEGINS,
    BUILT_ON,
    DATE,
    DEADLINE,
    DUE,
    ELSEWHERE,
    EVERY,
    FEELS,
    KIN_HAS,
    KIN_OF,
    LIFE,
    MOVED,
    NAMED_VALUE,
    OF_A_PROJECT,
    PASSING,
    PASSING_STATE,
    PLACE_OF,
    ROLE_OF,
    RUNS,
    TO_THE_AGENT,
    UNTIL,
    WE_HAVE,
    WHO_IS,
)
from offbook.continuity.learning.taught import POINTING, Taught, by_words, keyed, without_reason
from offbook.continuity.replacing.facts import stated_in
from offbook.continuity.replacing.lasting import ONE_AT_A_TIME
from offbook.continuity.replacing.statements import OWNED
from offbook.retrieval.words import terms

STATED = 0.75
WHO = 0.7
_HEAD = re.compile(
    r"\A\W*(?:my|our|the|[^\W\d_][\w-]*'s) (?P<thing>[^,.;:!?]{1,60}?) (?:with|of|about)\b", re.IGNORECASE
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\s]+")
"""Of a word of theirs it is not known whether it passes."""


def fact_in(clause: str, owner: str, role: str, speaker: str) -> Taught | None:
    if "%" in clause or TO_THE_AGENT.search(clause):
        return None
    clause = without_reason(clause)
    # "We use MySQL for the archive now, not Postgres" states what it states without its end.
    for stated in stated_in(clause, role, speaker) or stated_in(parted_from_old(clause)[0], role, speaker):
        subject, value = stated.fact.about, stated.fact.value
        if _is_lasting(subject, clause) and (not DUE.search(clause) or DATE.search(clause)):
            return Taught("fact", clause, keyed(subject, value), STATED, _named(clause))
    for pattern in (ROLE_OF, WHO_IS, DEADLINE, UNTIL, BUILT_ON, PLACE_OF, RUNS, EVERY):
        found = pattern.match(clause)
        taught = _of_a_thing(clause, found) if found else None
        if taught is not None:
            return taught
    if POINTING.search(clause) or PASSING_STATE.search(clause) or FEELS.search(clause):
        return None
    if any(one.match(clause) for one in (KIN_OF, KIN_HAS, WE_HAVE, MOVED, LIFE, *ELSEWHERE)):
        return Taught("fact", clause, by_words(f"{owner}|", clause), WHO)
    if BEGINS.match(clause) and identity_in(clause) and terms(clause):
        return Taught("fact", clause, by_words(f"{owner}|", clause), WHO)
    return None


def _of_a_thing(clause: str, found: re.Match[str]) -> Taught | None:
    groups = found.groupdict()
    if "role" in groups:
        who, role = " ".join(terms(groups["who"])), " ".join(terms(groups["role"]))
        return Taught("fact", clause, keyed(f"role {role}", who), STATED, groups["who"]) if who else None
    raw = groups["what"] or ""
    what, value = " ".join(terms(raw)), " ".join(terms(groups["value"])[:7])
    if not value or "%" in groups["value"] or POINTING.search(raw):
        return None
    if found.re in (DEADLINE, UNTIL):
        return Taught("fact", clause, keyed(f"{what} deadline".strip(), value), STATED, raw or None)
    if not what or what.split()[-1] in PASSING:
        return None
    if found.re in (BUILT_ON, PLACE_OF):
        return Taught("fact", clause, keyed(f"use {what}", value), STATED, raw)
    if found.re is RUNS and what.split()[-1] not in OF_A_PROJECT:
        return None
    return Taught("fact", clause, by_words(what, clause), WHO, raw)


def _is_lasting(subject: str, clause: str) -> bool:
    holder, _, attribute = subject.rpartition("|")
    words = attribute.split()
    if (head := _HEAD.match(clause)) and set(terms(head["thing"])[-1:]) & PASSING:
        return False  # "the meeting with Priya": what it is stands before whom it is with
    if len(words) > 1 and words[-1] in ("number", "date"):
        words.pop()
    if not words or words[-1] in PASSING:
        return False
    is_cjk = bool(_CJK.fullmatch(attribute))
    if holder or is_cjk:
        is_known = words[-1] in ONE_AT_A_TIME or words[-1] in OF_A_PROJECT
        is_plain = attribute in ("live", "work", "age", "drive", "diet", "status", "occupation")
        return is_known or is_cjk or is_plain or _has_a_name(clause)
    return words[0] in ("favorit", "use") or words[-1] in ONE_AT_A_TIME or words[-1] in OF_A_PROJECT


def _has_a_name(clause: str) -> bool:
    """ "My plumber is Herr Wagner": what it is called tells that it is one of its kind, and not of a day."""
    found = OWNED.match(clause)
    return found is not None and bool(NAMED_VALUE.match(found["value"])) and len(found["attribute"].split()) <= 2


def _named(clause: str) -> str | None:
    """The thing whose attribute is stated, as they call it."""
    found = OWNED.match(clause)
    if found is None:
        return None
    whose = found["owner"]
    return found["attribute"] if whose.lower() in ("my", "our", "the") else f"{whose} {found['attribute']}"
