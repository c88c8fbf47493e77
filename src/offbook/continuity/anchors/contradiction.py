"""Which sentences set something against what was said before. "But" alone does not: it mostly joins two things that
both hold."""

from __future__ import annotations

import re

from offbook.continuity.anchors.tension import SIDES
from offbook.continuity.keeping import shared, words_of
from offbook.continuity.replacing.corrections import correction_in
from offbook.continuity.state.rules import is_request
from offbook.retrieval.phrases import is_asking

_SAY = (
    r"(?:said|say|says|saying|told|tell|claimed?|promised?|mentioned|wrote|suggested|recommend(?:ed)?|agreed|insisted|"
    r"assured|confirmed|stated|answered|replied|showed)"
)
_WHO = r"(?:you|i|we|he|she|they|it|(?:the|your|my|our) [\w'-]{2,20})"
_SAID = (
    rf"{_WHO}(?:'ve|'d| have| had| has)?(?: just| already| also| clearly| keep| kept| once| always| only| first|"
    rf" never)?(?: \w+ly)? {_SAY}\b"
)
_TURN = r"\b(?:but|yet|however|though|whereas)\b|(?:, |\band )(?:now|today|then)\b"
_OPPOSED = re.compile(
    "|".join(
        (
            r"\A(?:[\w' ]{0,20}[,.!:]? ?)?\b(?:but|yet|however|wait|hold on|hang on|"
            rf"no)\b[ ,]{{1,2}}(?:[\w']+ ){{0,3}}?{_SAID}",
            r"\b(?:but|yet|however)\b[ ,]{1,2}(?:earlier|before|last time|yesterday|previously|originally|"
            r"in your)\b",
            rf"(?<!as )(?<!like )\b{_SAID}[^\n]{{1,160}}?(?:{_TURN}|, not\b|, you\b|\band (?:now|today|then)\b)",
            r"\A[^\n]{0,12}?\b(?:earlier|before,|yesterday|last (?:time|week|month)|previously|first|"
            r"originally|initially|at first|in your first)(?!\w)[^\n]{1,120}?\b(?:now|today|but|however|"
            r"suddenly) (?:it|you|we|i|they|he|she|the|that|this)\b[^\n]{0,40}?(?:'s|'re| is| are| was|"
            rf" {_SAY}| costs?| wants?| has| have| do| does| shows?)\b",
            rf"\bi thought (?:you|we|i) (?:\w+ ){{0,2}}?(?:{_SAY}|were|wanted|was)\b",
            rf"(?:not|isn't|wasn't|never) what (?:you|i|we|he|she|they|the)\b[^\n]{{0,30}}?(?:{_SAY}|agreed|"
            r"asked|wanted|ordered|meant|discussed)",
            rf"\b(?:i|we) (?:never|didn't|did not) (?:{_SAY}|ask for|agree|mean|order)\b(?! me| him| her| us|"
            r" anyone)",
            r"\bi (?:asked (?:for|you)|ordered|wanted|told you|meant)\b[^\n]{1,100}?(?:, not\b|, but\b|"
            r" but (?:i |you |this |it |that |the )| and (?:you|i) (?:got|get|gave|sent))",
            r"\A(?:no|sorry|oops|wait|correction|my (?:mistake|bad))\b[^\n]{1,120}?, (?:and )?not\b",
            r"\d[^,\n]{0,20}, not \d",
        )
    ),
    re.IGNORECASE,
)
_UNFIT = re.compile(
    "|".join(
        (
            r"\bcontradict(?:s|ed|ing|ory|ions?)?\b",
            r"(?:\bis|\bare|\bwas|\bwere|'s|'re|\bseems?|\blooks?) \W?(?:\w+ly )?(?:inconsistent|incompatible)\b",
            r"\binconsistent with\b|\bconflicts with\b",
            r"\b(?:that|they|these|those|may|might|would|both|\w{2,}s) conflict with\b",
            r"(?:\b(?:gets?|getting|got|see|seeing|gave|give|giving|have|hear|two|are|is)|"
            r"'re) (?:\w+ )?conflicting\b",
            r"\bin conflict with\b|\bclash(?:es)? with\b",
            r"\b(?:doesn't|does not|don't|do not|didn't|did not) (?:add up|match|fit together|agree with|"
            r"line up|square with|tally)\b",
            r"\bmismatch between\b|\bthe (?:exact |very |complete )?opposite\b",
            r"\bcontrary to (?:what|your|my|the)\b|\bchanged (?:my|your|our|his|her|their) minds?\b",
            r"\b(?:that|this)(?:'s| is| was)(?: also| still| just)? (?:wrong|incorrect|not (?:right|true|"
            r"correct|what))\b",
            r"\bthat can't be (?:right|true|correct)\b|\A(?:so |but |well )?which (?:one )?is it\b",
            r"\btake that back\b",
        )
    ),
    re.IGNORECASE,
)
_FITS = re.compile(
    "|".join(
        (
            r"\b(?:no|not|n't|never|without(?: a)?|avoid|any) (?:\w+ ){0,3}?(?:contradict|conflict|clash|"
            r"inconsisten)",
            r"n't (?:\w+ ){0,3}?(?:contradict|conflict|clash)|\bmerge conflict",
            r"\bconflict (?:of interest|resolution|zone)|\bopposite (?:side|of the (?:road|street))",
        )
    ),
    re.IGNORECASE,
)
_UNFIT_ELSEWHERE = re.compile(
    "|".join(
        (
            r"矛盾|(?:但|可)(?:是)?(?:你|您|我)(?:之前|刚才|刚刚|昨天|上次)?(?:不是)?(?:说|告诉|答应)",
            r"(?:之前|刚才|昨天)(?:你|您|我)?说[^。]{1,30}(?:现在|但|可是|怎么)",
            r"(?:さっき|前は|昨日)[^。]{1,30}(?:言った|言っていた|言いました)(?:のに|けど|が)",
            r"\bpero (?:t[úu] |usted )?(?:me )?(?:dijiste|dijo|hab[íi]as dicho)",
            r"\baber (?:du|sie|ihr) (?:hast|haben|habt|hattest|sagtest)\b[^\n]{0,40}?(?:gesagt|behauptet|"
            r"versprochen|geschrieben)",
            r"\bmais (?:tu|vous) (?:m')?(?:as|avez|avais) dit|\bcontradi(?:ce|ctorio|cción)|\bwiderspr[iu]ch",
            r"\bcontredit",
        )
    ),
    re.IGNORECASE,
)
_SAYS = re.compile(r"\b(?:says?|said|states?|shows?|lists?|claims?)\b", re.IGNORECASE)
NEGATION = re.compile(r"\b(?:not|no|never|closed|without)\b|n't\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d[\d.,:]*\d|\d")
_LOOKS_BACK = re.compile(
    "|".join(
        (
            r"(?<!like )(?<!as )\b(?:you|i|we)(?:'ve|'d| have| had)?(?: just| even| also| initially| originally|"
            r" explicitly)? (?:said|told|mentioned|promised|wrote)\b",
            r"\A(?:but |no,? |well,? |oh,? )?actually\b|\bnot (?!only|just)[^,.;]{1,40}? but\b",
            r"\b(?:earlier|previous) \w+ (?:is|was|were|are)\b|\bi actually\b",
        )
    ),
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
    first, *others = SIDES.split(sentence, maxsplit=1)
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
    return None if bool(NEGATION.search(first)) != bool(NEGATION.search(second)) else False
