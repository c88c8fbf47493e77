"""Preferences: what they like, and what they ask of the agent for good ("always", "never", "from now on")."""

from __future__ import annotations

import re

from offbook.rules.lessons.changes import parted_from_old, without_now
from offbook.rules.lessons.voice import HURRY, POINTING, Taught, by_words, keyed, without_reason
from offbook.rules.state.records import words_of
from offbook.rules.supersession.facts import CHANGE, NO_LONGER, NO_VALUE, STATE
from offbook.search.words import terms

FOR_GOOD = 0.8
PREFERRED = 0.75
LIKED = 0.55
ASKED = 0.5
"""Both are below what comes into a turn: people love many things in passing, and "please don't use X" may be meant for
this once. Said twice, it counts."""
LONGEST_ORDER_CHARS = 200
_LEAD = (
    r"(?:(?:ok|okay|so|well|and|but|also|yes|yeah|no|fyi|btw|by the way|note|remember|please remember|remember "
    r"that|just so "
    r"you know|actually|honestly|personally|in general|generally|oh|hey|hi|one (?:more )?thing|in my (?:code|"
    r"emails?))\b"
    r"[\s,:;.!–—-]*){0,3}"
)
_OF_AN_AGENT = (
    r"(?:answer|reply|respond|write|use|send|ask|include|add|show|give me|keep|run|check|commit|test|format|speak|"
    r"cite|mention|"
    r"remind|book|confirm|put|start|end|begin|make|provide|explain|assume|delete|push|share|suggest|recommend|"
    r"address|sign|"
    r"round|convert|translate|name|store|save|log|notify|tell|list|avoid|call|say(?! never)|double-?check|link|quote|"
    r"apologi[sz]e|touch|edit|change|deploy|merge|publish|post|reveal|repeat|wait|stick to|schedule|read|do|cc|bcc|"
    r"copy|attach|invite|tag|"
    r"pay|order|buy|leave|close|lock|skip|ignore|treat|refer to|spell|type|indent|wrap|document|comment|review|"
    r"squash|be "
    r"(?:brief|concise|honest|direct|formal|polite|blunt|casual|critical))"
)
"""What is asked of an agent. "Never give up" and "always here to help" are no orders."""
_VERBS = {
    "prefer": True, "like": True, "love": True, "enjoy": True, "adore": True, "hate": False, "dislike": False,
    "detest": False, "despise": False, "loathe": False, "can't "
    "stand": False, "cannot stand": False, "don't like": False,
    "do not like": False, "am not a fan of": False, "'m not a fan of": False, "am a fan of": True, "'m a fan of": True,
    "am a big fan of": True, "'m a big fan of": True, "don't enjoy": False, "do not enjoy": False,
}  # fmt: skip
_LIKES = re.compile(
    rf"{_LEAD}(?P<who>i|we)(?P<no> no longer)?"
    r"(?: (?:really|strongly|much|usually|generally|absolutely|always|still|now|just|also|simply|"
    r"truly|totally|definitely))?\s?(?P<verb>"
    + "|".join(sorted(map(re.escape, _VERBS), key=len, reverse=True))
    + r") (?P<what>[^\n]{2,200})",
    re.IGNORECASE,
)
_NO_OBJECT = re.compile(
    r"(?:it|that|this|these|those|you|your|him|her|his|their|them|us|how|what|where|why|who|to (?:bother|say|admit|"
    r"ask|tell|"
    r"see you|hear|be|think|interrupt|know|break)|(?:the|an?) (?:idea|way|sound|look|looks|fact|feel|thought|"
    r"concept|plan|"
    r"detail|structure|direction|approach|new|first|second|third|last|latter|former|one|version|option|other|more|"
    r"updated?|revised|current|\w+ one|\w+ (?:version|option|idea|approach|part|paragraph|sentence|draft|title|name))|"
    r"(?:the|all|not|just|option|version|plan|number|idea|both|all of|some of|everything|seeing you|hearing|"
    r"talking|chatting|reading your|"
    r"working with you|where|being here|the vibe|the energy|my life|life)|(?:the|an?) [\w-]+ (?:you|we|here)|"
    r"more(?: than)?(?: anything)?|\w+ (?:idea|version|option)s?[.!]|(?:and|but)\b)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(r"(?:it )?when (?:you|people|someone|code|an?|the)\b", re.IGNORECASE)
_OVER = re.compile(
    r"(?P<new>[^\n]{2,60}?) (?:over|to|more than|rather than|instead of|better than) (?P<old>[^\n,.;]{2,60})",
    re.IGNORECASE,
)
_MORE = re.compile(r"\b(?:over|more than|better than)\b", re.IGNORECASE)
_FAVOURITE = re.compile(
    rf"{_LEAD}(?:my|our) (?:new )?(?:favou?rite|preferred|go-to) (?P<what>[\w' -]{{2,40}}?) (?:is|are)"
    r"(?P<no>n't| not| no longer)?(?: now)? (?P<value>[^\n]{2,80})",
    re.I,
)
_RATHER = re.compile(rf"{_LEAD}i(?:'d| would) (?:much )?(?:rather|sooner|prefer) [^\n]{{3,160}} (?:than|over) ", re.I)
_WANTS = re.compile(
    rf"{_LEAD}i (?:always|never|only|don't ever|do not ever) (?:want|need|expect|eat|drink|wear|fly|take|buy) "
    r"(?!to\b|too\b|it\b|that\b|you\b|the worst|a (?:break|moment|walk))[^\n]{3,200}",
    re.I,
)
_NOT_WANTED = re.compile(
    rf"{_LEAD}i (?:don't|do not|never) (?:ever )?want (?!to\b|you to|it\b|that\b|this\b|any "
    rf"more)[^\n]{{3,120}}",
    re.I,
)
_FINDS = re.compile(
    rf"{_LEAD}i find (?!it\b|that\b|this\b|myself|the (?:idea|way)|my)[\w' -]{{2,60}}? (?:unbearable|annoying|"
    rf"distracting|ugly|boring|"
    r"stressful|exhausting|relaxing|useful|helpful|confusing|unreadable|hard to \w+|easier to \w+)\b[^\n]{0,60}",
    re.I,
)
_PERSON = re.compile(rf"{_LEAD}i(?:'m| am) (?:more of |really |not )?an? [\w-]+ person\b[^\n]{{0,60}}", re.I)
_CANNOT = re.compile(
    rf"{_LEAD}i (?:can't|cannot|can not|mustn't|am not allowed to) (?:eat|drink|have|tolerate|"
    rf"digest|wear) (?!it|that|this)[^\n]{{2,80}}",
    re.I,
)
_ABSTAINS = re.compile(
    rf"{_LEAD}i (?:don't|do not) (?:eat|drink|smoke|fly|drive) (?!that|this|it|much|enough)[^\n]{{0,80}}", re.I
)
_FROM_NOW = re.compile(
    rf"{_LEAD}(?:please[,]? )?(?:from (?:now|here|today) on(?:wards?)?|going forward|moving forward|in (?:the )?future|"
    r"henceforth|by default|as a rule|every time you [^\n,]{2,60}|whenever you [^\n,]{2,60}|when(?:ever)? you (?:"
    r"code|summari[sz]e|draft|plan|create|open|cite|generate|refactor|search|shop|"
    rf"{_OF_AN_AGENT[3:-1]})\b[^\n,]{{0,60}})[,:]? "
    r"(?P<what>(?:i want you to |i'd like you to |you should |please |just |only |always |never |do not |don't )*+"
    r"(?!i\b|we\b|it\b|the\b|he\b|she\b|they\b|there\b|my\b|our\b|all\b|let me know|shoot|reach|feel|text|come)[\w'-]+ "
    r"[^\n]{2,240})",
    re.I,
)
_AT_THE_END = re.compile(
    rf"{_LEAD}(?:please )?(?P<what>(?:(?:only |never |always |don't |do not )?{_OF_AN_AGENT}\b [^\n]{{2,160}}?|"
    rf"[\w' -]{{3,60}}? only))"
    r",? (?:from now on(?:wards)?|going forward|in (?:the )?future|by default|at all times|every time|"
    r"when(?:ever)? you "
    r"(?:book|write|answer|reply|send|order|buy|draft|code|call|cook|plan)\b[^\n]{0,60})[.!]?\s*\Z",
    re.I,
)
_KEEP = re.compile(
    rf"{_LEAD}(?:please )?keep (?:your |the |all |my )?(?P<what>(?:replies|answers|responses|messages|e-?mails|"
    rf"summaries|"
    r"explanations|commits|comments|functions|reports)\b [^\n]{3,120})",
    re.I,
)
_NOW_ON = re.compile(r"\bfrom now on(?:wards?)?\b", re.IGNORECASE)
_ALWAYS = re.compile(
    rf"{_LEAD}(?:please[,]? |you (?:should|must) )?(?P<how>always|never|no longer|don't ever|do not ever|make sure "
    rf"(?:to |you |that you )always|"
    rf"remember to always) (?P<what>{_OF_AN_AGENT}\b [^\n]{{2,240}})",
    re.I,
)
_DO_NOT = re.compile(
    rf"{_LEAD}(?:please )?(?:stop (?P<ing>(?:suggesting|asking|using|adding|sending|calling|saying|apologi[sz]ing|"
    r"repeating|recommending|including|writing|putting|ending|starting)\b[^\n]{2,160})|(?:don't|do not) "
    r"(?P<what>(?:use|call me|send|say|suggest|add|include|apologi[sz]e|write|recommend|assume|address me|commit|push|"
    r"share|book|schedule|plan|call|email|mail|text|invite|buy|order|touch|delete|deploy|merge) [^\n]{2,160}))",
    re.I,
)
_ANY = re.compile(r"\b(?:any|anything|anyone|anybody|ever|without asking)\b", re.I)
_HOW = re.compile(
    r"\A(?:i want you to |i'd like you to |you should |please |just |only |always |never |no longer |do not |"
    r"don't )+",
    re.I,
)
_NEVER = re.compile(r"(?:please |i want you to |you should |just )*(?:never|not|no longer|do not|don't)\b", re.I)
_ELSEWHERE: tuple[tuple[re.Pattern[str], float, bool], ...] = (
    (
        re.compile(
            r"(?:请)?(?:以后|今后|从现在起|从现在开始|从今以后)[，,]?(?:都)?(?:请|不要|别|只|要|用|每次|"
            r"[^\n，。]{1,12}(?:请|都要|不要))[^\n]{2,80}"
        ),
        FOR_GOOD,
        True,
    ),
    (re.compile(r"请(?:总是|一直|始终|永远|不要再|别再|每次都?)[^\n]{2,80}"), FOR_GOOD, True),
    (
        re.compile(
            r"我(?:更|比较|最|非常|很|一直)?(?:喜欢|不喜欢|讨厌|偏好|偏爱|爱吃|不吃)(?!你|这|那|它|他|她)[^\n]{1,60}"
        ),
        LIKED,
        False,
    ),
    (re.compile(r"(?:ab (?:jetzt|sofort|heute)|von nun an|künftig|in zukunft)\b[^\n]{3,160}", re.I), FOR_GOOD, True),
    (
        re.compile(r"bitte (?:[^\n]{0,60} )?(?:immer|nie|niemals|nie wieder|nicht mehr)\b(?! noch)[^\n]{2,120}", re.I),
        FOR_GOOD,
        True,
    ),
    (
        re.compile(
            r"ich (?:mag|liebe|hasse|bevorzuge) (?:am liebsten |wirklich |sehr |eher |lieber )?(?!es\b|das\b|dies|"
            r"die idee|"
            r"den vorschlag|dich|deine|die (?:erste|zweite|neue)|ihn\b|sie\b)[^\n]{2,120}",
            re.I,
        ),
        LIKED,
        False,
    ),
    (re.compile(r"ich (?:esse|trinke) (?:kein|keine|keinen|nie|niemals|nur)\b[^\n]{2,80}", re.I), PREFERRED, False),
)


def preference_in(clause: str, owner: str) -> Taught | None:
    return _liked(clause, owner) or _stated(clause, owner) or _asked(clause) or _elsewhere(clause)


def _liked(clause: str, owner: str) -> Taught | None:
    found = _LIKES.match(clause)
    if found is None or (found["who"].lower() == "we" and found["verb"].lower() != "prefer"):
        return None
    clause = without_reason(clause)
    said, verb = clause[found.start("what") :], found["verb"].lower()
    what, old = parted_from_old(said) if verb != "prefer" or not _OVER.match(said) else (said, "")
    what = without_now(what)
    is_liked = _VERBS[verb] and not found["no"]
    over = _OVER.match(what) if verb == "prefer" or _MORE.search(what) else None
    is_when = bool(_WHEN.match(what))
    if (
        POINTING.search(what)
        or (is_when and is_liked)
        or (_NO_OBJECT.match(what) and not is_when)
        or not words_of(what)
    ):
        return None
    strength = PREFERRED if verb == "prefer" or not is_liked else LIKED
    pair = [" ".join(terms(each)) for each in (over["new"], over["old"])] if over else []
    if verb == "prefer" and old:
        pair = [" ".join(terms(what)), " ".join(terms(old))]
    if is_liked and pair and all(pair) and pair[0] != pair[1]:
        key = keyed(f"{owner}|prefer {' '.join(sorted(pair))}", pair[0])
        return Taught("preference", clause, key, PREFERRED)
    key = keyed(f"{owner}|like {by_words('', what).removeprefix(': ')}", "yes" if is_liked else "no")
    return Taught("preference", clause, key, strength)


def _stated(clause: str, owner: str) -> Taught | None:
    if favourite := _FAVOURITE.match(clause):
        what, value = " ".join(terms(favourite["what"])), _value(favourite)
        if what and value:
            key = keyed(f"{owner}|favorit {what}", value)
            return Taught("preference", clause, key, PREFERRED, favourite["what"])
    if _CANNOT.match(clause) and not POINTING.search(clause):
        return Taught("preference", clause, by_words(f"{owner}|want", clause), PREFERRED)
    mild = _NOT_WANTED.match(clause) or _FINDS.match(clause) or _PERSON.match(clause)
    if mild and not POINTING.search(clause):
        return Taught("preference", clause, by_words(f"{owner}|want", clause), LIKED)
    if (found := _RATHER.match(clause) or _WANTS.match(clause) or _ABSTAINS.match(clause)) and terms(found[0]):
        is_wish = found.re is _RATHER
        return Taught("preference", clause, by_words(f"{owner}|want", clause), PREFERRED, is_wish=is_wish)
    return None


def _value(favourite: re.Match[str]) -> str:
    """ "green now, not blue" is green; "not blue any more" is no longer blue; "isn't working" is nothing."""
    said = favourite["value"]
    value = " ".join(terms(without_now(parted_from_old(said)[0]))[:7])
    if not favourite["no"]:
        return value
    is_over = CHANGE.search(favourite[0]) and not STATE.match(said) and not NO_VALUE.match(said)
    return NO_LONGER + value if is_over and value else ""


def _asked(clause: str) -> Taught | None:
    if HURRY.search(_NOW_ON.sub("", clause)):
        return None
    plain, old = parted_from_old(clause)
    found = _FROM_NOW.match(plain) or _ALWAYS.match(plain) or _AT_THE_END.match(plain) or _KEEP.match(plain)
    if found and terms(found["what"]):
        return _rule(clause, found["what"], found.groupdict().get("how") or found["what"], FOR_GOOD, old)
    found = None if POINTING.search(clause) else _DO_NOT.match(clause)
    if found and " and " not in clause and len(clause) <= LONGEST_ORDER_CHARS and len(terms(clause)) > 1:
        return _rule(
            clause, found["ing"] or found["what"], "not", PREFERRED if found["ing"] or _ANY.search(clause) else ASKED
        )
    return None


def _rule(clause: str, what: str, how: str, strength: float, old: str = "") -> Taught:
    """What is to be done and what must not be done is one subject, and so are this and not that: the later word
    holds."""
    words = by_words("", f"{_HOW.sub('', what)} {old}").removeprefix(": ")
    dropped = " ".join(terms(old))
    key = keyed(f"rule {words}", "no" if _NEVER.match(how) else f"not {dropped}" if dropped else "yes")
    return Taught("preference", clause, key, strength, is_order=True)


def _elsewhere(clause: str) -> Taught | None:
    for pattern, strength, is_order in _ELSEWHERE:
        if pattern.match(clause):
            return Taught(
                "preference", clause, by_words("order" if is_order else "want", clause), strength, is_order=is_order
            )
    return None
