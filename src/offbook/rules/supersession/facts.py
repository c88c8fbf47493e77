"""Lasting facts as people state them: "my birthday is on 5 May", "we use Postgres for the archive".

A fact is a key (whose, which attribute) and a value, both as stems. Two facts of one key and different values
contradict each other; `supersede` decides what that means. Reading too little is cheap here, reading too much is not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from offbook.model.types import Value
from offbook.rules.supersession.statements import (
    ANOTHER,
    ARTICLE,
    CALLED,
    CHINESE,
    CHINESE_KEYS,
    CLAUSE,
    CONFIG,
    CONFIG_KEY,
    IDENTITY,
    KINDS,
    LEAD_ONLY,
    ONE_EACH,
    OWNED,
    PLAIN,
    PREFER_FOR,
    PREFER_OVER,
    SET_TO,
    SPECIFIC,
    STOPPED,
    SWITCHED,
    SWITCHES,
    USE_FOR,
    VALUE_END,
)
from offbook.search.stems import stem
from offbook.search.substance import is_asking, sentences_of, straight
from offbook.search.words import terms

# ── The words by which lasting facts are told from passing remarks. Data for `facts` ──


def _stems(listed: str) -> frozenset[str]:
    return frozenset(stem(word) for word in listed.split())


ONE_AT_A_TIME = _stems(
    "birthday birthdate age address phone email timezone salary deadline port hostname username nickname surname "
    "hometown nationality height weight version editor ide browser os anniversary postcode zipcode passport pronouns "
    "gate seat room manager boss landlord employer database branch region currency locale shift"
)
"""Last word of an attribute. `name` counts only for the speaker's own (see `facts`)."""

OF_A_PERSON = _stems(
    "birthday birthdate age address phone email salary name nickname surname hometown nationality height weight "
    "anniversary postcode zipcode passport pronouns employer boss manager landlord"
)
"""What "delete my …" asks to forget. Who deletes a branch, a file or a database wants that done."""

OF_THE_MOMENT = _stems(
    "day morning evening night week weekend month year opinion thought question problem issue thing point idea "
    "feeling "
    "mood concern worry guess answer hope dream advice reason experience life family time part memory moment "
    "side way "
    "hand head heart mind back eye eyes body understanding impression sense fear suggestion preference challenge "
    "struggle focus priority approach goal aim intention purpose motivation take choice rule fault fact truth "
    "good bad "
    "best worst biggest main first second third next last other another most one two rest key trick secret catch "
    "difference result outcome conclusion story response reaction message text kid kids work job schedule situation "
    "people place stuff step list topic word sentence paragraph line thank view vibe pick favorite"
)
"""Attributes of which people speak in passing, or several of which can be true."""

_COUNTRIES_TEXT = (
    "portugal spain franc germany itali austria switzerland belgium netherland holland denmark sweden norwai "
    "norway finland iceland ireland england scotland wale britain uk poland czechia hungari romania bulgaria "
    "greec turkei turkey russia ukrain croatia serbia slovenia slovakia estonia latvia lithuania usa us america "
    "canada mexico brazil argentina chile peru colombia china japan korea taiwan india pakistan bangladesh "
    "thailand vietnam malaysia singapor indonesia philippin australia zealand egypt morocco tunisia nigeria kenya "
    "ghana ethiopia africa europ asia israel jordan lebanon iran iraq texa california florida oregon washington "
    "nevada arizona colorado bavaria catalonia ontario "
)
COUNTRIES = frozenset(_COUNTRIES_TEXT.split())
"""Stems. Who lives in one of them may live in a town as well: neither replaces the other."""

CHANGE = re.compile(
    r"\b(?:now|nowadays|no\s+longer|anymore|any\s+more|actually|changed?|moved|switched|updated?|renamed|rescheduled|"
    r"postponed|instead|new|from\s+now\s+on|correction|as\s+of|since\s+yesterday)\b|现在|改成|改为|已经",
    re.IGNORECASE,
)
UNREAL = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|pretend|assuming|assume|let's\s+say|say\s+that|hypothetically|"
    r"maybe|perhaps|might|would|could|wish|hope|hoping|guess|think|thought|probably|possibly|used\s+to|"
    r"when\s+i\s+was|as\s+if|wonder|"
    r"whether|should|example|e\.g|dreamt|dreamed|joking|kidding)\b|如果|假如|要是|可能|也许|想",
    re.IGNORECASE,
)
NO_VALUE = re.compile(
    r"(?:not?|never|n't|so|very|really|pretty|too|quite|super|kind|sort|going|getting|doing|being|having|still|"
    r"always|also|already|finally|almost|just|only|about|like|that|what|how|when|where|why|who|which|whether|if|"
    r"because|to|the\s+same|this|these|those|it|its|he|she|they|we|i|you|my|your|all|both|everything|nothing|"
    r"something|anything|one\s+of|"
    r"part|more|less|better|worse|best|great|good|nice|fine|ok|okay|bad|awesome|amazing|fun|happy|sad|hard|easy|"
    r"well|sick|tired|busy|ready|done|here|there|up|down|out|off|over|under|due\s+to|such|as|then|than|by|for|"
    r"with|from|of|"
    r"important|unknown|key|clear|far|near|often|whenever|another|half|mostly|unique|incomplete|quiet|missing|"
    r"broken|wrong|right|correct|unclear|tbd|open|closed|full|empty|coming|soon)(?![\w'])",
    re.IGNORECASE,
)
"""What a value cannot begin with: judgements, states, beginnings of a clause."""
STATE = re.compile(r"[a-z]{3,}(?:ing|ed|ly|ful|ous|ive|able|ible|less)(?![\w'-])")
"""What a thing does or is like: no value except of a favourite ("my favourite hobby is running")."""


LONGEST_READ_CHARS = 2000
"""Longer messages are mostly pasted: what they state is not what their sender is telling."""
LONGEST_CONFIG_CHARS = 300
"""Likewise for lines of configuration, which are code in anything longer."""
LONGEST_SENTENCE_CHARS = 400
MAX_FACTS = 20
MAX_VALUE_WORDS = 7

TEXTS_KEPT = 2048
"""What was just said is compared with every message that follows it."""

NO_LONGER = "no longer "
NOBODY = "user"
"""Who speaks without a name."""
_ROLES = frozenset(("user", "assistant", "system", "tool", "human", "ai", "bot", "agent"))


class Fact(Value, frozen=True):
    """One value of one attribute, normalised."""

    about: str
    value: str


class Stated(NamedTuple):
    fact: Fact
    is_change: bool
    """It was said with a word of change, so it replaces even what may have several values."""
    old: str = ""
    """The value it names as the one before: it replaces only that."""


def facts_in(text: str, role: str, speaker: str = "") -> list[Fact]:
    """The lasting facts a message states. An assistant without a name states none of its own."""
    return [stated.fact for stated in stated_in(text, role, speaker)]


def stated_in(text: str, role: str, speaker: str = "") -> tuple[Stated, ...]:
    owner = owner_of(speaker)
    if role != "user" and not (role == "assistant" and owner != NOBODY):
        return ()
    return _stated(text, owner) if len(text) <= LONGEST_READ_CHARS else ()


def owner_of(speaker: str) -> str:
    """Whose "my" is: the first part of what a fact is about."""
    named = speaker.strip().lower()
    return NOBODY if named in _ROLES else named or NOBODY


@lru_cache(TEXTS_KEPT)
def _stated(text: str, owner: str) -> tuple[Stated, ...]:
    said = straight(text)
    is_lower = said == said.lower()
    found: dict[str, Stated] = {}
    for sentence in sentences_of(said):
        if len(sentence) > LONGEST_SENTENCE_CHARS or is_asking(sentence) or sentence.startswith((">", "`")):
            continue
        for clause in _clauses(sentence):
            if clause and not UNREAL.search(clause):
                for stated in _read(clause, owner, is_lower, is_short=len(said) <= LONGEST_CONFIG_CHARS):
                    found.setdefault(stated.fact.about, stated)
    return tuple(found.values())[:MAX_FACTS]


def _clauses(sentence: str) -> list[str]:
    """ "Actually, my dog is called Max" is one clause."""
    clauses: list[str] = []
    for clause in CLAUSE.split(sentence):
        if clauses and LEAD_ONLY.match(clauses[-1]):
            clauses[-1] = f"{clauses[-1]}, {clause}"
        else:
            clauses.append(clause)
    return clauses


def _read(clause: str, owner: str, is_lower: bool, *, is_short: bool) -> list[Stated]:
    if switched := _switched(clause, owner):
        return switched
    found = (
        _owned(clause, owner, is_lower)
        or _plain(clause, owner, is_lower)
        or _habit(clause, owner)
        or (_setting(clause) if is_short else [])
        or _chinese(clause, owner)
    )
    return [Stated(fact, is_change or bool(CHANGE.search(clause))) for fact, is_change in found]


_Found = list[tuple[Fact, bool]]


def _owned(clause: str, owner: str, is_lower: bool) -> _Found:
    match = OWNED.match(clause)
    if match is None:
        return []
    attribute = terms(match["attribute"].replace("'s", ""))
    raw = _value(match["value"])
    value = _normal(raw)
    whose = match["owner"].lower()
    is_called = bool(CALLED.match(match["value"]))
    if not attribute or not value or NO_VALUE.match(raw) or ANOTHER.search(match["value"]):
        return []
    if STATE.match(raw) and (attribute[0] != "favorit" or len(value.split()) > 1):
        return []
    if (whose, attribute) == ("my", ["name"]) or not _is_lasting(attribute, raw) or set(attribute) & set(value.split()):
        return []
    is_listed = attribute[0] == "favorit" or _head(attribute) in ONE_AT_A_TIME
    is_specific = SPECIFIC.match(raw) or (SPECIFIC.search(raw) and (is_lower or len(raw.split()) == 1))
    if not is_listed and not is_specific:
        return []
    if is_called:
        attribute = [*attribute, "name"]  # "my dog is called Rex" is what "my dog's name is Rex" is
    if whose in ("our", "the"):
        return [(Fact(about=" ".join(attribute), value=value), bool(match["new"]))]
    holder = owner if whose == "my" else _normal(whose.removesuffix("'s")) or owner
    return [(Fact(about=f"{holder}|{' '.join(attribute)}", value=value), bool(match["new"]))]


def _is_lasting(attribute: list[str], raw: str) -> bool:
    if attribute[0] == "favorit":
        return len(attribute) > 1 and attribute[-1] not in OF_THE_MOMENT
    if len(attribute) > 2 and raw[:1].isdigit():
        return True  # "my personal best 5K time is 25:50": a figure of something named this closely
    return attribute[-1] not in OF_THE_MOMENT and not OF_THE_MOMENT.issuperset(attribute[:1])


def _plain(clause: str, owner: str, is_lower: bool) -> _Found:
    for key, pattern in PLAIN:
        match = pattern.match(clause)
        if match is None:
            continue
        raw = _value(match["value"])
        value = _normal(raw)
        is_named = bool(SPECIFIC.match(raw)) or (is_lower and len(value.split()) <= 2)
        if not value or NO_VALUE.match(raw) or STATE.match(raw) or not is_named:
            return []
        is_change = bool("change" in match.groupdict() and match["change"])
        return [(Fact(about=f"{owner}|{key}", value=value), is_change)]
    return []


def _habit(clause: str, owner: str) -> _Found:
    if match := STOPPED.match(clause):
        verb = (match["verb"] or match["verb2"] or "").lower()
        value = _normal(_value(match["value"] or match["value2"] or ""))
        return [(Fact(about=f"{owner}|{stem(verb)}", value=NO_LONGER + value), True)] if value else []
    if match := IDENTITY.match(clause):
        value = match["value"].lower()
        is_not = bool(match["no"])
        return [(Fact(about=f"{owner}|{KINDS[value]}", value=(NO_LONGER if is_not else "") + stem(value)), is_not)]
    if match := PREFER_OVER.match(clause):
        value, other = _normal(match["value"]), _normal(match["other"])
        if value and other and value != other:
            return [(Fact(about=f"{owner}|prefer {' '.join(sorted((value, other)))}", value=value), False)]
        return []
    if match := PREFER_FOR.match(clause):
        return _keyed(f"{owner}|prefer ", match["what"], match["value"])
    if match := USE_FOR.match(clause):
        found = _keyed("use ", match["what"], match["value"])
        return [(fact, bool(match["change"])) for fact, _ in found] if SPECIFIC.search(match["value"]) else []
    return []


def _switched(clause: str, owner: str) -> list[Stated]:
    """What is used for something, however that was said: "our database is …", "we use … for the database"."""
    match = SWITCHED[0].match(clause) or SWITCHED[1].match(clause)
    if match is None:
        return []
    attribute, raw = terms(match["attribute"].replace("'s", "")), _value(match["value"])
    value, old = _normal(raw), _normal(_value(match["old"] or ""))
    if not attribute or not value or value == old or NO_VALUE.match(raw) or not _is_lasting(attribute, raw):
        return []
    if not (SPECIFIC.match(raw) or old):
        return []
    key = " ".join(attribute)
    found = [Stated(Fact(about=f"use {key}", value=value), is_change=True, old=old)]
    if old or _head(attribute) in ONE_AT_A_TIME:
        about = f"{owner}|{key}" if match["owner"].lower() == "my" else key
        found.append(Stated(Fact(about=about, value=value), is_change=True, old=old))
    return found


def _setting(clause: str) -> _Found:
    if match := SET_TO.match(clause):
        return _keyed("", match["attribute"], match["value"]) if _is_setting(match["value"]) else []
    match = CONFIG.match(clause.strip())
    if match and CONFIG_KEY.fullmatch(match["attribute"]):
        return _keyed("", match["attribute"], match["value"])
    return []


def _keyed(prefix: str, what: str, raw: str) -> _Found:
    key, value = " ".join(terms(what)), _normal(_value(raw))
    if not key or not value or NO_VALUE.match(raw) or OF_THE_MOMENT.issuperset(key.split()):
        return []
    return [(Fact(about=prefix + key, value=value), False)]


def _is_setting(raw: str) -> bool:
    return any(letter.isdigit() for letter in raw) or raw.strip(".!").lower() in SWITCHES


def _chinese(clause: str, owner: str) -> _Found:
    if match := CHINESE[0].search(clause):
        return [(Fact(about=f"{owner}|{match['attribute']}", value=match["value"]), False)]
    match = CHINESE[1].match(clause)
    if match is None or (match["attribute"] == "在") != bool(match["works"]):
        return []
    key = CHINESE_KEYS[match["attribute"]]
    return [(Fact(about=f"{owner}|{key}", value=match["value"]), match["attribute"].startswith("搬"))]


def _value(raw: str) -> str:
    """Cut where the value ends and the sentence goes on."""
    for _ in range(3):
        shorter = VALUE_END.sub("", raw.strip())
        if shorter == raw:
            break
        raw = shorter
    return ARTICLE.sub("", raw, count=1) if ARTICLE.match(raw) else raw


def _normal(raw: str) -> str:
    found = terms(raw)
    return " ".join(found) if len(found) <= MAX_VALUE_WORDS else ""


def is_single_valued(about: str) -> bool:
    """Whether a new value alone, without a word of change, replaces the old one."""
    owner, _, attribute = about.rpartition("|")
    words = attribute.split()
    if not words or not attribute.isascii():
        return bool(words)
    if words[0] in ("favorit", "prefer", "use") or (owner and attribute in ONE_EACH):
        return True
    if not owner and ("_" in attribute or "." in attribute):
        return True
    return _head(words) in ONE_AT_A_TIME and (bool(owner) or len(words) > 1)


def _head(attribute: list[str]) -> str:
    """What an attribute is one of: a `phone number` is a phone."""
    return attribute[-2] if attribute[-1] in ("number", "date") and len(attribute) > 1 else attribute[-1]


def contradicts(about: str, new: str, old: str) -> bool:
    """Whether two values cannot both hold. One that contains the other only says more."""
    if new.startswith(NO_LONGER):
        return not old.startswith(NO_LONGER) and is_within(new.removeprefix(NO_LONGER), old)
    if old.startswith(NO_LONGER) or is_within(new, old):
        return False
    if about.endswith("|live"):
        return _names_a_country(new) == _names_a_country(old)
    return True


def is_within(one: str, other: str) -> bool:
    """Whether one of two values only says more than the other."""
    words, others = set(one.split()), set(other.split())
    return words <= others or others <= words or one in other or other in one


def _names_a_country(value: str) -> bool:
    return not COUNTRIES.isdisjoint(value.split())
