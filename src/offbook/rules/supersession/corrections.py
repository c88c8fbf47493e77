"""Corrections and retractions as people write them: "no, it's Monday, not Friday", "forget the Lisbon trip".

Only what a person says about their own words counts. Many sentences begin with "Actually"; one is a correction when it
gives another value, and the patterns ask for one.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from offbook.model.types import Value
from offbook.rules.supersession.facts import OF_A_PERSON
from offbook.search.substance import is_asking, sentences_of, straight
from offbook.search.words import terms

READ_CHARS = 1000
"""A correction comes first: what follows it elaborates."""
SENTENCES_READ = 3
LONGEST_SENTENCE_CHARS = 240
MAX_TARGET_WORDS = 8


class Correction(Value, frozen=True):
    """What a message takes back, in its words. `target` empty: what was said just before."""

    kind: Literal["correct", "retract"]
    target: str
    old: str


Names = Literal["words", "statement", "attribute"]


class FoundCorrection(NamedTuple):
    correction: Correction
    said: str
    """The sentence that corrects, for the value it gives."""
    is_explicit: bool
    """It names what was said or remembered, so that one telling word is enough to find it, however long ago."""
    names: Names = "words"
    """What the target is: words of what was said, all that it said, or the attribute of a fact."""


_SORRY = (
    r"(?:(?:oh|ah|oops|ops|whoops|sorry|my bad|my mistake|wait|hmm|hm|well|no|nope|and|but|ok|okay|hey|"
    r"please|um|uh|i was wrong)\b[\s,.!:;…-]*){0,4}"
)
_END = r"[\s.!…)\"]*\Z"
_X = r"(?P<new>[^,;!?\n]{1,80}?)"
_Y = r"(?P<old>[^,;!?\n]{1,60}?)"
_IT = r"(?:it|that|this|they|he|she|there|(?:the|my|our|his|her|their) (?:[\w'-]+ ){0,3}[\w'-]+)"
_BE = r"(?:'s|'re| is| are| was| were| should be| should have been| must be)"
_VALUED = r"(?=[^\n]*(?:\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day|[^\W\d_a-z][\w]+|[\"“'`]))"

_X_NOT_Y = re.compile(
    rf"{_SORRY}(?:actually|correction|to be clear)?[\s,:]*(?P<target>{_IT}){_BE} {_X},? (?:and )?not "
    rf"{_Y}(?:[,;]|{_END})",
    re.I,
)
_NOT_Y_BUT_X = re.compile(
    rf"{_SORRY}(?:actually)?[\s,:]*(?P<target>{_IT}){_BE}(?: not|n't) {_Y}[,;]? (?:it'?s|it is|rather|but) "
    rf"{_X}{_END}",
    re.I,
)
_MEANT_NOT = re.compile(
    rf"{_SORRY}(?:actually[\s,]*)?i meant(?: to (?:say|write|type))? {_X},? (?:not|instead of) {_Y}{_END}", re.I
)
_MEANT = re.compile(
    rf"{_SORRY}(?:actually[\s,]*)?i meant(?: to (?:say|write|type))?:? (?!to\b|it\b|that i\b|every\b|what\b|"
    rf"well\b|no\b|for\b){_X}{_END}",
    re.I,
)
_CORRECTION = re.compile(rf"{_SORRY}(?:correction|small correction|edit|erratum)\s?[:,–—-]\s*(?P<rest>\S.*)", re.I)
_SCRATCH = re.compile(rf"{_SORRY}(?:scratch|strike) that\b[\s,.:;!–—-]*(?P<rest>.*)", re.I)
_ACTUALLY = re.compile(
    rf"{_SORRY}actually[\s,]+(?:(?P<target>{_IT}){_BE}|make (?:it|that)|let's (?:make|say|do)(?: it| that)?|i "
    rf"(?:was|'m) wrong)(?! (?:been|only|still|just|not|a|an|so|very|really|"
    rf"pretty|quite|my|one|like|why|how|what|because|about|going|the)\b)[ ,]{_VALUED}{_X}(?: instead)?{_END}",
    re.I,
)
_NO_ITS = re.compile(
    rf"(?:no|nope|wait|sorry|oops)\b[\s,.!…-]+(?:no[\s,]+)?(?:actually[\s,]+)?(?:(?P<target>it|that){_BE}|make "
    rf"(?:it|that)) (?!been|only|still|just|not|a\b|an\b|so\b|very\b|the\b|my\b|ok|fine|all\b){_VALUED}{_X}{_END}",
    re.I,
)
_FROM_TO = re.compile(
    rf"{_SORRY}(?:actually[\s,]*)?(?P<target>(?:the|my|our|his|her|their|[A-Z][\w-]{{1,20}}'s) (?:[\w'-]+ "
    rf"){{0,3}}?[\w'-]+)(?: has| was| is| got| have| were)?(?: been| now)? "
    rf"(?:changed|moved|switched|updated|rescheduled|postponed|renamed|pushed|shifted|brought forward)(?: "
    rf"back)? from {_Y} to {_X}{_END}",
    re.I,
)
_INSTEAD = re.compile(
    rf"{_SORRY}(?:actually[\s,]*)?(?:let's |we'll |please |i'll )?(?:use|make it|set it to|call it|go with|take|"
    rf"book|put) {_X} instead of {_Y}{_END}",
    re.I,
)

_FORGET_SAID = re.compile(
    rf"{_SORRY}(?:you can )?(?:forget|ignore|disregard|delete|erase|drop|remove|discard) (?:everything |"
    rf"anything |all |the things? )?(?:(?:what|that|which) )?(?:i|we)(?:'ve| have|'d| had)? "
    r"(?:just )?(?:said|told you|mentioned|wrote|asked|talked|discussed|shared)(?: to you)?(?: earlier| "
    r"before)?(?: (?:about|regarding|on|concerning) (?P<target>[^,;!?.\n]{1,80}))?",
    re.I,
)
_FORGET_STATED = re.compile(
    rf"{_SORRY}(?:please |just |you can |we can )?(?:forget|delete|erase|remove|ignore|disregard)(?: the (?:fact|note|"
    rf"memory))? that (?P<target>(?:my|our|the|i|i'm|we|we're) [^,;!?\n]{{2,80}}?){_END}",
    re.I,
)
_FORGET_MEMORY = re.compile(
    rf"{_SORRY}(?:forget|delete|erase|remove|drop) (?:(?:the |your |that |any )?(?:memory|memories|note|notes|"
    rf"fact|record|entry|info|information) (?:of|about|on|that) (?P<target>[^,;!?.\n]{{1,80}})"
    r"|(?P<named>[^,;!?.\n]{1,60}?) from (?:your |the )?(?:memory|notes|records))",
    re.I,
)
_FORGET = re.compile(
    rf"{_SORRY}(?:let's |please |just |you can |we can )?(?:(?:forget|ignore|disregard)(?: about)?|never "
    rf"?mind(?: about)?) (?P<target>(?:the|my|our) [^,;!?.:\n]{{2,60}}){_END}",
    re.I,
)
_DELETE = re.compile(
    rf"{_SORRY}(?:please |just |you can )?(?:delete|erase|remove) (?P<target>(?:the|my|our) (?:[\w'-]+ ){{0,3}}"
    rf"[\w'-]+){_END}",
    re.I,
)
# Not "never mind" nor "forget it": they answer what the other one said.
_FORGET_THAT = re.compile(
    rf"{_SORRY}(?:please |just |let's |you can )?(?:forget|ignore|disregard|delete)(?: about)? (?:that|this|my "
    rf"(?:last|previous) (?:message|comment|statement)|the last (?:message|one|part)){_END}",
    re.I,
)
_CHINESE_RETRACT = re.compile(
    r"(?:请)?(?:忘[掉了记]|忽略|不用管)(?:我(?:刚才|之前|刚刚)?说的?(?:关于)?)?(?P<target>[^，。！？\s]{0,12}?)(?:的话|吧|了)?[。！]?\Z"
)
_RETRACTIONS = (
    (_FORGET_SAID, True),
    (_FORGET_STATED, True),
    (_FORGET_MEMORY, True),
    (_FORGET, False),
    (_DELETE, True),
    (_FORGET_THAT, False),
)
_NAMES: dict[re.Pattern[str], Names] = {
    _FORGET_STATED: "statement",
    _DELETE: "attribute",
}
_DETERMINER = re.compile(r"(?:the|my|our) ", re.I)
_CHINESE_CORRECT = re.compile(
    r"(?:不对|错了|更正|纠正)[，,:：。 ]*(?:(?:应该)?是)?(?P<new>[^，。！？]{1,20})"
    r"(?:[，,]?不是(?P<old>[^，。！？]{1,20}))?"
)
_APOLOGY = re.compile(r"(?:no|nope|sorry|oops|whoops|wait|actually|correction|my mistake)\b", re.IGNORECASE)
_VALUE = re.compile(r"\d|[A-Z]")
_JUDGED = re.compile(
    r"(?:just|only|so|too|about|because|easy|hard|good|bad|great|happy|sad|bad|fun|fair|true|real|mine|yours|me|"
    r"you|him|"
    r"her|us|them|working|here|there|really|very|always|all|everything|everyone|necessarily|sure|enough|much|many)\b",
    re.IGNORECASE,
)
_VAGUE = frozenset(
    (
        "it",
        "that",
        "this",
        "they",
        "he",
        "she",
        "there",
        "everything",
        "all",
        "all that",
        "all of that",
        "all of it",
        "the rest",
    )
)


def correction_in(text: str, role: str) -> Correction | None:
    """What a message of a user corrects or takes back, if anything."""
    found = correction_found(text, role)
    return found.correction if found else None


def correction_found(text: str, role: str) -> FoundCorrection | None:
    if role != "user":
        return None
    for sentence in _opening(straight(text[:READ_CHARS])):
        if len(sentence) <= LONGEST_SENTENCE_CHARS and not is_asking(sentence):
            found = _retraction(sentence) or _correction(sentence)
            if found:
                return found
    return None


def _opening(said: str) -> list[str]:
    """The first sentences; "Sorry." and "Scratch that." go with the one after them."""
    sentences = sentences_of(said)
    joined: list[str] = []
    for sentence in sentences[: SENTENCES_READ + 2]:
        if joined and (len(joined[-1]) <= 8 or re.fullmatch(r"(?:scratch|strike) that[.!]", joined[-1], re.I)):
            joined[-1] = f"{joined[-1]} {sentence}"
        else:
            joined.append(sentence)
    return joined[:SENTENCES_READ]


def _retraction(sentence: str) -> FoundCorrection | None:
    for pattern, is_explicit in _RETRACTIONS:
        if match := pattern.match(sentence):
            groups = match.groupdict()
            raw = groups.get("target") or groups.get("named") or ""
            target = _target(raw)
            if (not target and _is_long(raw)) or (pattern is _DELETE and not _is_of_a_person(target)):
                return None
            correction = Correction(kind="retract", target=target, old="")
            return FoundCorrection(correction, sentence, is_explicit and bool(target), _NAMES.get(pattern, "words"))
    if match := _CHINESE_RETRACT.match(sentence):
        return FoundCorrection(
            Correction(kind="retract", target=match["target"], old=""), sentence, bool(match["target"])
        )
    return None


def _correction(sentence: str) -> FoundCorrection | None:
    if match := _SCRATCH.match(sentence):
        return FoundCorrection(
            Correction(kind="correct" if match["rest"] else "retract", target="", old=""), sentence, False
        )
    if match := _CORRECTION.match(sentence):
        inner = _valued(match["rest"])
        return FoundCorrection(inner or Correction(kind="correct", target="", old=""), sentence, False)
    correction = _valued(sentence)
    return FoundCorrection(correction, sentence, False) if correction else None


def _valued(sentence: str) -> Correction | None:
    """A correction that gives the new value, and perhaps the old one."""
    for pattern in (_FROM_TO, _MEANT_NOT, _NOT_Y_BUT_X, _INSTEAD, _X_NOT_Y):
        match = pattern.match(sentence)
        if match and (pattern not in (_X_NOT_Y, _NOT_Y_BUT_X) or _is_value(match["old"], sentence)):
            old = match["old"].strip()
            return Correction(kind="correct", target=_target(match.groupdict().get("target") or ""), old=old)
    for pattern in (_MEANT, _ACTUALLY, _NO_ITS):
        if match := pattern.match(sentence):
            return Correction(kind="correct", target=_target(match.groupdict().get("target") or ""), old="")
    if match := _CHINESE_CORRECT.match(sentence):
        return Correction(kind="correct", target="", old=(match["old"] or "").strip())
    return None


def _is_value(raw: str, sentence: str) -> bool:
    """ "It's X, not Y" corrects where Y is a number or a name, or one word after an apology. Else it contrasts."""
    words = raw.split()
    if len(words) > 3 or _JUDGED.match(raw):
        return False
    return bool(_VALUE.search(raw)) or (len(words) == 1 and bool(_APOLOGY.match(sentence)))


def _target(raw: str) -> str:
    target = raw.strip(" .!\"'")
    return "" if target.lower() in _VAGUE or _is_long(target) else target


def _is_long(raw: str) -> bool:
    return len(raw.split()) > MAX_TARGET_WORDS


def attribute_of(target: str) -> str:
    """ "my phone number" as facts spell it."""
    return " ".join(terms(_DETERMINER.sub("", target).replace("'s", "")))


def _is_of_a_person(target: str) -> bool:
    words = attribute_of(target).split()
    return bool(words) and (words[0] == "favorit" or not OF_A_PERSON.isdisjoint(words[-2:]))
