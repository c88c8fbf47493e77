"""Decisions: "we decided to …", "let's go with X for …", "we'll use X instead of Y"."""

from __future__ import annotations

import re

from offbook.rules.lessons.changes import CHANGED_MIND, parted_from_old, without_now
from offbook.rules.lessons.voice import POINTING, Taught, by_words, keyed
from offbook.rules.supersession.corrections import correction_found
from offbook.search.words import terms

SAID_OUTRIGHT = 0.75
CHANGED = 0.7
CHOSEN = 0.6
FEWEST_TERMS = 2
_LEAD = (
    r"(?:(?:ok|okay|so|well|and|but|yes|yeah|alright|right|then|also|update|fyi|btw|good news|great|perfect|in the end|"
    r"finally|after (?:the|some|our|a) [\w ]{1,30}?)\b[\s,:;.!–—-]*){0,3}"
)
_DECIDED = re.compile(
    rf"{_LEAD}(?:(?P<we>we)|i)(?:'ve| have| had)? (?:just |finally |now |all |both |already )?(?P<verb>decided|agreed|"
    r"resolved|settled|opted|chose|chosen|picked|committed) (?P<what>(?:(?:on|to|that|for|against|upon) "
    r")?[^\n]{3,300})",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"(?:final |our |my |team )?(?:decision|decided|agreed|entscheidung|决定)\s?[:：–—-]\s?(?P<what>[^\n]{3,300})",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    rf"{_LEAD}(?:let's (?:all )?(?:go with|use|stick (?:with|to)|settle on|switch to|move to|stay (?:with|on)|keep "
    rf"using|"
    r"stop using|drop)|(?:going|sticking|staying) with|(?P<all>let's (?:adopt|standardi[sz]e on))|"
    r"we(?:'ll| will|'re going to| are going to) (?:be )?(?:use|using|go with|stick with|switch (?:to|from)|move to|"
    r"migrate (?:to|from)|adopt|drop|stay (?:with|on)|keep using|stop using|no longer (?:use|support))|"
    r"(?P<sure>we(?:'re| are) (?:now )?(?:going with|switching (?:to|from)|moving (?:away )?(?:to|from)|"
    r"migrating (?:to|from)|sticking with|dropping|adopting|standardi[sz]ing on))) "
    r"(?P<what>[^\n]{2,300})",
    re.IGNORECASE,
)
_SWITCHED = re.compile(
    rf"{_LEAD}(?:we|i)(?:'ve| have)? (?:just |now |finally |recently )?(?:switched|migrated|converted)(?: over)? "
    rf"(?P<what>"
    r"from (?P<old>(?-i:[A-Z0-9])[\w.+#-]*(?: [\w.+#-]+){0,2}?) to (?P<new>(?-i:[A-Z0-9])[\w.+#-]*(?: [\w.+#-]+){0,2}?)"
    r"(?P<purpose> for [^\n,;.]{2,40})?)[.!]?\Z",
    re.IGNORECASE,
)
_BY_OTHERS = re.compile(
    rf"{_LEAD}(?:the|our|my) (?:team|board|boss|manager|client|customer|company|family|landlord|ceo|cto|"
    rf"management) (?:has |have )?"
    r"(?:approved|decided|agreed|signed off|rejected|chose|picked) (?P<what>[^\n]{4,240})",
    re.IGNORECASE,
)
_MIND = re.compile(
    rf"{_LEAD}(?:i've|i have|we've|we have) made up (?:my|our) minds?[,:.]? (?:and "
    rf")?(?P<what>[^\n]{{6,240}})",
    re.I,
)
_NO_MORE = re.compile(
    rf"{_LEAD}we(?:'re| are|'ll| will)? (?:not going to|won't|no longer|don't|not) (?P<what>(?:use|using|support|"
    rf"supporting|sell|"
    r"selling|ship|shipping|accept|accepting|offer|offering|deploy|deploying|work with)\b [^\n]{2,160}?)(?: any "
    r"?more)?[.!]?\Z",
    re.IGNORECASE,
)
_NO_LONGER = re.compile(r"\b(?:no longer|any ?more)\b", re.IGNORECASE)
_CHANGED = re.compile(
    rf"(?:actually[\s,:]+)?{_LEAD}(?:actually[\s,:]+)?{CHANGED_MIND}[\s,:;.–—-]+(?:and |so )?(?:please |let's |we'll |"
    r"we will |we should |i'll |i want to |i want you to |i'd like to )?"
    r"(?P<what>(?:use|go with|switch to|stick with|stay with|move to|migrate to|adopt) [^\n]{2,240})",
    re.IGNORECASE,
)
_OF_A_DAY = re.compile(r"(?:go|stick|stay) with\b", re.IGNORECASE)
"""What is eaten or watched is chosen so, too."""
_PURPOSE = re.compile(r"\b(?:for|as|in) (?:the |our |my |all )?(?!it\b|that\b|this\b|now\b)\w{3,}", re.IGNORECASE)
_HERE = re.compile(r"\b(?:here|an? (?:for|while) loop|and (?:see|wait|then))\b", re.IGNORECASE)
_INSTEAD = re.compile(
    r"(?:use|using|with|to(?! (?:use|adopt|go with|move|switch)\b)|on|adopt|nehmen|nutzen|verwenden|用)\s+"
    r"(?P<new>[\w.+#-]+(?: [\w.+#-]+){0,2}?)(?P<purpose> (?:for|in|as|für|bei) [^\n,;.]{2,60}?)?(?: now)?,? "
    r"(?:instead of|"
    r"rather than|over|not|statt|anstatt|anstelle von) (?P<old>[\w.+#-]+(?: [\w.+#-]+){0,2}?)"
    r"(?= (?:for|in|on|as|from|für|bei)\b|[\s.!,;]*\Z|[.!,;])",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:(?:the )?(?:first|second|third|last|other|next|same|blue|red|green|one|ones)\b[\s\w]{0,12}|that|this|it|"
    r"these|those|"
    r"them|him|her|you|your|what|whatever|option|plan|number|version \w\b|choice|idea|disagree|meet|it's|an? )\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"to (?:not )?(?:try|check|take|go (?!with)|grab|watch|visit|give|get|ask|come|have|read|look|see|call|write|"
    r"make|do|"
    r"share|post|reach|head|walk|eat|cook|play|listen|join|sign up|celebrate|surprise|let|put|bring|wait|think|focus|"
    r"open up|treat|disagree|meet|talk|spend|pay|start|tell|wear|throw|host|hit|stop by|organi[sz]e|adopt|"
    r"paint|draw|sing|dance|bake|help|volunteer|plan|take part)\b",
    re.IGNORECASE,
)
"""What people decide of an evening. It happened; it does not hold."""
_NAMED = re.compile(r"(?<!\A)[A-Z][\w+#.-]*|\d|[\"“'][^\"”']{2,}[\"”']|\binstead of\b|\brather than\b")
_NOT_YET = re.compile(
    r"\b(?:not|haven't|hasn't|didn't|yet|when we|once we|until we|maybe|perhaps|might|could|tentativ\w*|guess|probably|"
    r"would|should|in (?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_ELSEWHERE = (
    re.compile(
        r"(?:ok(?:ay)?|gut|also|ja)?[\s,]*(?:wir haben|ich habe) (?:uns |mich )?(?:jetzt |nun |gemeinsam "
        r")?(?:[^\n]{0,120} )?"
        r"(?:entschieden|beschlossen|geeinigt)\b[^\n]*",
        re.IGNORECASE,
    ),
    re.compile(
        r"wir (?:nehmen|nutzen|verwenden|wechseln) (?:ab \w+ |künftig )?[^\n]{2,80} (?:statt|anstatt|anstelle)\b[^\n]*",
        re.IGNORECASE,
    ),
    re.compile(r"(?:我们?|团队)(?:最后|最终|已经|都|刚刚)?(?:决定|商定|选定|说好)(?!不了|权)[了要用]?[^\n]{2,80}"),
)


def decision_in(clause: str) -> Taught | None:
    if found := _LABELLED.match(clause):
        return _taught(clause, found["what"], SAID_OUTRIGHT)
    if any(pattern.match(clause) for pattern in _ELSEWHERE):
        return _taught(clause, clause, SAID_OUTRIGHT)
    if (found := _NO_MORE.match(clause)) and _NAMED.search(f" {found['what']}"):
        is_over = _NO_LONGER.search(clause)
        return Taught("decision", clause, by_words("decision against", found["what"]), CHANGED if is_over else CHOSEN)
    if found := _CHANGED.match(clause):
        return _changed(clause, found["what"])
    plain, _ = parted_from_old(clause)  # "…, not MySQL" says what is not, and no doubt
    if _NOT_YET.search(plain):
        return None
    if (found := _MIND.match(clause) or _BY_OTHERS.match(clause)) and not POINTING.search(found["what"]):
        return _taught(clause, found["what"], CHOSEN)
    if found := _DECIDED.match(clause):
        what = found["what"]
        if not found["we"] and found["verb"].lower().startswith(("cho", "pick")):
            return None  # "I chose a blue one": it happened
        if (
            _PASSING.match(what)
            or POINTING.search(what)
            or _VAGUE.match(re.sub(r"\A(?:on|to|that|for|upon) ", "", what))
        ):
            return None
        return _taught(clause, what, SAID_OUTRIGHT if found["we"] else CHOSEN)
    if found := _SWITCHED.match(clause):
        return _chosen(clause, found["new"], found["old"], found["purpose"] or "", SAID_OUTRIGHT)
    if found := _CHOICE.match(clause):
        what = found["what"]
        if (
            _VAGUE.match(what)
            or POINTING.search(what)
            or _HERE.search(what)
            or not (found["sure"] or found["all"] or _NAMED.search(f" {what}"))
            or (_NOT_YET.search(clause) and not _PURPOSE.search(what))  # "let's use the car, not the bus"
        ):
            return None
        return _taught(clause, what, SAID_OUTRIGHT if found["sure"] else CHOSEN)
    return None


def _changed(clause: str, what: str) -> Taught | None:
    """Who changed their mind has decided, where it is said about what: it names what it drops, or what it is for."""
    plain, old = parted_from_old(what)
    is_vague = _VAGUE.match(plain.partition(" ")[2]) or POINTING.search(what) or _HERE.search(what)
    if is_vague or _NOT_YET.search(plain) or not (old or (_PURPOSE.search(plain) and _NAMED.search(plain))):
        return None
    is_lasting = _PURPOSE.search(plain) and not _OF_A_DAY.match(what)
    return _taught(clause, what, CHANGED if is_lasting else CHOSEN)


def _taught(clause: str, what: str, strength: float) -> Taught | None:
    if len(terms(what)) < FEWEST_TERMS:
        return None
    pair = _INSTEAD.search(clause)
    if pair:
        purpose = without_now(f"{pair['purpose'] or ''} {clause[pair.end() :]}")
        chosen = _chosen(clause, pair["new"], pair["old"], purpose, strength)
    else:
        chosen = None
    return chosen or Taught("decision", clause, by_words("decision", without_now(what)), strength)


def _chosen(clause: str, new: str, old: str, purpose: str, strength: float) -> Taught | None:
    """Between two things, for some purpose: the later choice holds."""
    pair = [" ".join(terms(new)), " ".join(terms(old))]
    if not all(pair) or pair[0] == pair[1]:
        return None
    subject = f"choose {' / '.join(sorted(pair))} {' '.join(terms(purpose))[:80]}".rstrip()
    return Taught("decision", clause, keyed(subject, pair[0]), strength)


# ── Corrections that say by themselves what is right: "no, it is the staging server that runs  ──

CORRECTED = 0.7
CORRECTIONS_FEWEST_TERMS = 3
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
        return _corrections_taught(clause)
    found = _WRONG.match(clause)
    if found:
        what = found["what"]
        if found["about"] and _VALUE.search(what):
            return _corrections_taught(clause)
        is_contrast = bool(_NOT.search(what))
        is_statement = (
            bool(_STATES.match(what)) and bool(_VALUE.search(what)) and not found["how"].lower().startswith("no")
        )
        if (is_contrast or is_statement) and not _OPINION.search(what):
            return _corrections_taught(clause)
        return None
    known = correction_found(clause, "user")
    if known is None or known.correction.kind != "correct" or not known.correction.old or _OPINION.search(clause):
        return None
    return _corrections_taught(clause)


def _corrections_taught(clause: str) -> Taught | None:
    if len(set(terms(clause))) < CORRECTIONS_FEWEST_TERMS:
        return None
    return Taught("correction", clause, by_words("correction", clause), CORRECTED)
