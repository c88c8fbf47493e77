"""Which sentences of a user are anchors, by their words.

The words of the settings only nominate: a sentence that has one, and that the rules know nothing about, is uncertain
(`None`), and without a model it is left out. A word that the user added to a list decides by itself, one they took out
of it does not count any more, and a kind without words is not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from offbook.continuity.anchor_identity import identity_in
from offbook.continuity.anchor_tension import tension_in
from offbook.continuity.corrections import correction_in
from offbook.continuity.keeping import shared, words_of
from offbook.continuity.state_rules import is_request
from offbook.retrieval.phrases import is_asking
from offbook.settings import CONTRADICTION_WORDS, IDENTITY_WORDS, TENSION_WORDS, AnchorKeywords
from offbook.turns import AnchorKind

LONGEST_READ_SENTENCE_CHARS = 400
"""Whoever writes longer sentences than that has pasted something."""

LONGEST_UNCERTAIN_CHARS = 160
"""A longer sentence says several things, and a model is near to none of them."""


class Nominee(NamedTuple):
    kind: AnchorKind
    is_certain: bool


# ── what does not fit together ────────────────────────────────────────────────────────────────

_SAY = (
    r"(?:said|say|says|saying|told|tell|claimed?|promised?|mentioned|wrote|suggested|recommend(?:ed)?|agreed|insisted|"
    r"assured|confirmed|stated|answered|replied|showed)"
)
_WHO = r"(?:you|i|we|he|she|they|it|(?:the|your|my|our) [\w'-]{2,20})"
_SAID = (
    rf"{_WHO}(?:'ve|'d| have| had| has)?(?: just| already| also| clearly| keep| kept| once| always| only| first|"
    rf" never)?"
    rf"(?: \w+ly)? {_SAY}\b"
)
_TURN = r"\b(?:but|yet|however|though|whereas)\b|(?:, |\band )(?:now|today|then)\b"
_OPPOSED = re.compile(
    rf"\A(?:[\w' ]{{0,20}}[,.!:]? ?)?\b(?:but|yet|however|wait|hold on|hang on|"
    rf"no)\b[ ,]{{1,2}}(?:[\w']+ ){{0,3}}?{_SAID}"
    rf"|\b(?:but|yet|however)\b[ ,]{{1,2}}(?:earlier|before|last time|yesterday|previously|originally|in your)\b"
    rf"|(?<!as )(?<!like )\b{_SAID}[^\n]{{1,160}}?(?:{_TURN}|, not\b|, you\b|\band (?:now|today|then)\b)"
    rf"|\A[^\n]{{0,12}}?\b(?:earlier|before,|yesterday|last (?:time|week|month)|previously|first|originally|"
    rf"initially|at first|"
    rf"in your first)(?!\w)"
    rf"[^\n]{{1,120}}?\b(?:now|today|but|however|suddenly) (?:it|you|we|i|they|he|she|the|that|this)\b[^\n]{{0,40}}?"
    rf"(?:'s|'re| is| are| was| {_SAY}| costs?| wants?| has| have| do| does| shows?)\b"
    rf"|\bi thought (?:you|we|i) (?:\w+ ){{0,2}}?(?:{_SAY}|were|wanted|was)\b"
    rf"|(?:not|isn't|wasn't|never) what (?:you|i|we|he|she|they|the)\b[^\n]{{0,30}}?(?:{_SAY}|agreed|asked|wanted|"
    rf"ordered|meant|discussed)"
    rf"|\b(?:i|we) (?:never|didn't|did not) (?:{_SAY}|ask for|agree|mean|order)\b(?! me| him| her| us| anyone)"
    rf"|\bi (?:asked (?:for|you)|ordered|wanted|told you|meant)\b[^\n]{{1,100}}?(?:, not\b|, but\b| but (?:i |you |"
    rf"this |it |that |the )|"
    rf" and (?:you|i) (?:got|get|gave|sent))"
    rf"|\A(?:no|sorry|oops|wait|correction|my (?:mistake|bad))\b[^\n]{{1,120}}?, (?:and )?not\b|"
    rf"\d[^,\n]{{0,20}}, not \d",
    re.IGNORECASE,
)
_UNFIT = re.compile(
    r"\bcontradict(?:s|ed|ing|ory|ions?)?\b|(?:\bis|\bare|\bwas|\bwere|'s|'re|\bseems?|"
    r"\blooks?) \W?(?:\w+ly )?(?:inconsistent|incompatible)\b|\binconsistent with\b"
    r"|\bconflicts with\b|\b(?:that|they|these|those|may|might|would|both|\w{2,}s) conflict with\b|(?:\b(?:gets?|"
    r"getting|got|see|seeing|gave|give|giving|have|hear|two|are|is)|'re) (?:\w+ )?conflicting\b|"
    r"\bin conflict with\b|\bclash(?:es)? with\b"
    r"|\b(?:doesn't|does not|don't|do not|didn't|did not) (?:add up|match|fit together|agree with|line up|"
    r"square with|tally)\b"
    r"|\bmismatch between\b|\bthe (?:exact |very |complete )?opposite\b|\bcontrary to (?:what|your|my|the)\b"
    r"|\bchanged (?:my|your|our|his|her|their) minds?\b|\b(?:that|this)(?:'s| is| was)(?: also| still|"
    r" just)? (?:wrong|incorrect|not (?:right|true|"
    r"correct|what))\b"
    r"|\bthat can't be (?:right|true|correct)\b|\A(?:so |but |well )?which (?:one )?is it\b|\btake that back\b",
    re.IGNORECASE,
)
_FITS = re.compile(
    r"\b(?:no|not|n't|never|without(?: a)?|avoid|any) (?:\w+ ){0,3}?(?:contradict|conflict|clash|inconsisten)|"
    r"n't (?:\w+ ){0,3}?"
    r"(?:contradict|conflict|clash)|\bmerge conflict|\bconflict (?:of interest|resolution|zone)|\bopposite (?:side|"
    r"of the (?:road|street))",
    re.IGNORECASE,
)
_UNFIT_ELSEWHERE = re.compile(
    r"矛盾|(?:但|可)(?:是)?(?:你|您|我)(?:之前|刚才|刚刚|昨天|上次)?(?:不是)?(?:说|告诉|答应)|(?:之前|刚才|"
    r"昨天)(?:你|您|我)?说[^。]{1,30}(?:现在|但|可是|怎么)"
    r"|(?:さっき|前は|昨日)[^。]{1,30}(?:言った|言っていた|言いました)(?:のに|けど|が)"
    r"|\bpero (?:t[úu] |usted )?(?:me )?(?:dijiste|dijo|hab[íi]as dicho)|\baber (?:du|sie|ihr) (?:hast|haben|habt|"
    r"hattest|sagtest)\b"
    r"[^\n]{0,40}?(?:gesagt|behauptet|versprochen|geschrieben)?|\bmais (?:tu|vous) (?:m')?(?:as|avez|avais) dit|"
    r"\bcontradi(?:ce|ctorio|cción)"
    r"|\bwiderspr[iu]ch|\bcontredit",
    re.IGNORECASE,
)
_SIDES = re.compile(r"[,;.]? ?\b(?:however|but|yet|whereas|while)\b,? ?", re.IGNORECASE)
_SAYS = re.compile(r"\b(?:says?|said|states?|shows?|lists?|claims?)\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|no|never|closed|without)\b|n't\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d[\d.,:]*\d|\d")
_LOOKS_BACK = re.compile(
    r"(?<!like )(?<!as )\b(?:you|i|we)(?:'ve|'d| have| had)?(?: just| even| also| initially| originally| explicitly)? "
    r"(?:said|told|mentioned|promised|wrote)\b|\A(?:but |no,? |well,? |oh,? )?actually\b|\bnot (?!only|"
    r"just)[^,.;]{1,40}? but\b|"
    r"\b(?:earlier|previous) \w+ (?:is|was|were|are)\b|\bi actually\b",
    re.IGNORECASE,
)


def contradiction_in(sentence: str) -> bool | None:
    """Whether a sentence sets something against what was said before. "But" alone does not."""
    if _FITS.search(sentence):
        return False
    correction = correction_in(sentence, "user")
    # What was taken back is not to be kept in sight.
    if correction is not None:
        return correction.kind == "correct"
    if _UNFIT.search(sentence) or _UNFIT_ELSEWHERE.search(sentence):
        return True
    if _OPPOSED.search(sentence):
        return True
    first, *others = _SIDES.split(sentence, maxsplit=1)
    if others and first and (verdict := _sides_oppose(first, others[0])) is not False:
        return verdict
    looks_back = _LOOKS_BACK.search(sentence) and not is_asking(sentence) and not is_request(sentence)
    return None if looks_back else False


def _sides_oppose(first: str, second: str) -> bool | None:
    """ "The docs say 8080, however the config says 9090": two sources, or two statements about the same thing."""
    if _SAYS.search(first) and _SAYS.search(second):
        return True
    if not shared(words_of(first), words_of(second)):
        return False
    figures = _FIGURE.findall(first), _FIGURE.findall(second)
    if all(figures) and figures[0] != figures[1]:
        return True
    return None if bool(_NEGATION.search(first)) != bool(_NEGATION.search(second)) else False


# ── the words of the settings ─────────────────────────────────────────────────────────────────

KINDS: tuple[AnchorKind, ...] = ("identity", "contradiction", "tension")
_DEFAULTS = {"identity": IDENTITY_WORDS, "contradiction": CONTRADICTION_WORDS, "tension": TENSION_WORDS}
_RULES = {"identity": identity_in, "contradiction": contradiction_in, "tension": tension_in}
_I_AM = re.compile(r"\bi'm\b")
_QUOTED = re.compile(r"[\"“][^\"“”\n]{12,}[\"”]")
"""The words of others, unless they are a name."""
_ENDS = " \t.!?…。！？\"'"


def nominees(sentence: str, keywords: AnchorKeywords) -> Iterator[Nominee]:
    """The kinds a sentence may be of. Identity comes first: one that corrects another one is an identity still."""
    said = _QUOTED.sub("", sentence[:LONGEST_READ_SENTENCE_CHARS])
    lower = _I_AM.sub("i am", said.lower())
    for kind in KINDS:
        words: tuple[str, ...] = tuple(getattr(keywords, kind))
        if words:
            verdict = _verdict(kind, said, lower, words)
            if verdict or (verdict is None and len(said) <= LONGEST_UNCERTAIN_CHARS and not said.endswith(":")):
                yield Nominee(kind, bool(verdict))


def _verdict(kind: AnchorKind, said: str, lower: str, words: tuple[str, ...]) -> bool | None:
    defaults = _DEFAULTS[kind]
    found = {word for word in words if _holds(lower, word)}
    if found.difference(defaults):
        return True
    if kind == "identity" and lower.strip(_ENDS) in found:
        return True
    if not found and any(_holds(lower, word) for word in defaults if word not in words):
        return False
    verdict = _RULES[kind](said)
    # Uncertain about identity or a contradiction, the rules have seen "I am" or a look back; about a tension, nothing.
    return False if verdict is None and kind == "tension" and not found else verdict


@lru_cache(256)
def _pattern(word: str) -> re.Pattern[str]:
    """A word begins where a word does, and may go on ("problems"); scripts without blanks have no such places."""
    spelled = re.escape(word.strip().lower().replace("’", "'"))
    return re.compile(rf"(?<!\w){spelled}(?:s|es|ed|ing|ory|ion|ions)?(?!\w)" if word.isascii() else spelled)


def _holds(lower: str, word: str) -> bool:
    return bool(word.strip()) and bool(_pattern(word).search(lower))


# ── what tells two anchors apart ──────────────────────────────────────────────────────────────

_NAME_OR_NUMBER = re.compile(r"(?<=[\w,;:'\"] )[^\W\d_a-z][\w'-]+|\d[\w.,:]*")


def denies(sentence: str) -> bool:
    return bool(_NEGATION.search(sentence))


def names_in(sentence: str) -> frozenset[str]:
    """The names and numbers of a sentence, as far as their writing shows them."""
    return frozenset(found[0].lower().rstrip(".,:'") for found in _NAME_OR_NUMBER.finditer(sentence))
