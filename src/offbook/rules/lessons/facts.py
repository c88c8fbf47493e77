"""Lasting facts about people and projects: who they are, who is who, what runs where and until when."""

from __future__ import annotations

import re

from offbook.rules.anchors.identity import identity_in
from offbook.rules.lessons.changes import parted_from_old
from offbook.rules.lessons.voice import POINTING, Taught, by_words, keyed, without_reason
from offbook.rules.supersession.facts import ONE_AT_A_TIME, stated_in
from offbook.rules.supersession.statements import OWNED
from offbook.search.stems import stem
from offbook.search.words import terms

# ── How people state lasting facts about people and projects: the patterns of `facts`, each an ──

PASSING = frozenset(
    map(
        stem,
        (
            "gate",
            "seat",
            "room",
            "shift",
            "weight",
            "meeting",
            "appointment",
            "flight",
            "train",
            "bus",
            "call",
            "interview",
            "session",
            "trip",
            "party",
            "dinner",
            "lunch",
            "delivery",
            "order",
            "package",
            "exam",
            "test",
            "score",
            "result",
            "turn",
        ),
    )
)
OF_A_PROJECT_TEXT = (
    "database server host hostname api backend frontend framework language stack hosting provider cloud bucket "
    "domain url "
    "endpoint repository repo cluster queue cache proxy website app application product project company team client "
    "customer budget licence license cto ceo cfo coo lead designer developer accountant lawyer dentist doctor vet "
    "landlord "
    "teacher coach therapist bank insurance school university car bike phone laptop printer router wifi password "
    "dog cat "
    "horse wife husband partner son daughter mother father mom mum dad brother sister kid kids child children "
    "boyfriend "
    "girlfriend fiancee fiance uncle aunt niece nephew cousin friend roommate flatmate grandmother grandfather "
    "name call "
    "codename slogan office headquarters studio shop warehouse clinic standup retro branch port version os editor "
    "ide shell keyboard operating system"
)
OF_A_PROJECT = frozenset(stem(word) for word in OF_A_PROJECT_TEXT.split())
TO_THE_AGENT = re.compile(
    r"\b(?:you are|you're|your (?:name|role))\b|\A\W*(?:as(?! of)|since|because|from|while|when|though|so that)\b|"
    r"\b(?:du "
    r"bist|你是|你的名字)",
    re.I,
)
NAME = r"(?-i:[A-ZÀ-ÖØ-Þ][\w'’-]+(?: [A-ZÀ-ÖØ-Þ][\w'’-]+){0,2})"
SPECIFIC = r"(?=[^\n]*(?-i:[A-Z0-9]))"
ROLE_OF = re.compile(
    rf"(?P<who>{NAME}) (?:is|will be) (?:now )?(?:our|my|the team's|the company's) (?P<role>(?:[\w-]+ ){{0,2}}?"
    r"(?:lead|manager|designer|developer|engineer|architect|cto|ceo|cfo|coo|boss|accountant|lawyer|doctor|dentist|"
    r"vet|teacher|"
    r"coach|therapist|landlord|contact|client|customer|investor|founder|owner|assistant|secretary|wife|husband|"
    r"partner|son|"
    r"daughter|mother|father|mom|mum|dad|brother|sister|cousin|uncle|aunt|niece|nephew|roommate|flatmate|neighbou?r|"
    r"dog|cat|fianc[eé]e?|girlfriend|boyfriend|mentor|supervisor|advisor|adviser))\b(?! (?:today|for now))",
    re.I,
)
RUNS = re.compile(
    r"(?:our|my|the) (?P<what>(?:[\w-]+ ){0,3}?[\w-]+) (?:runs on|is running on|runs at|listens on|is hosted (?:on|"
    r"at|in|by)|is "
    r"deployed (?:on|to|at)|is written in|is built (?:with|on|in)|is based on|lives (?:at|in|on)|is (?:reachable "
    r")?at|uses) "
    rf"{SPECIFIC}(?P<value>[^\n,;]{{1,100}})",
    re.I,
)
DEADLINE = re.compile(
    r"(?:the|our|my) (?:deadline|due date|launch date|release date|wedding|exam|due) (?:for "
    r"(?P<what>[^\n,]{2,60}?) )?(?:is|falls)"
    r"(?: on| by)? (?P<value>(?=[^\n]*\d)[^\n,;]{3,60})",
    re.I,
)
DUE = re.compile(r"\b(?:deadline|due date)\b", re.I)
DATE = re.compile(
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\b|"
    r"\bend of\b",
    re.I,
)
KIN_OF = re.compile(
    r"(?:my|our) (?P<who>(?:[\w-]+ )?(?:wife|husband|partner|son|daughter|mother|father|mom|mum|dad|brother|sister|"
    r"cousin|uncle|"
    rf"aunt|niece|nephew|boss|manager|dog|cat|doctor|dentist|therapist|lawyer|accountant)(?:,? {NAME})?),? "
    rf"(?:lives? (?:in|at|"
    r"near)|works? (?:at|for|as|in)|was born|studies|is (?:called|named|allergic|married|from|an?\b)) [^\n]{2,120}",
    re.I,
)
WE_HAVE = re.compile(
    r"(?:we|i) have (?:an?|one|two|three|four|five|six|\d{1,2}) (?:[\w-]+ ){0,2}?(?:kids?|children|sons?|"
    r"daughters?|dogs?|cats?|"
    r"brothers?|sisters?|siblings|twins|employees|horses?|grandchildren)\b[^\n]{0,120}",
    re.I,
)
MOVED = re.compile(r"(?:i|we)(?:'ve| have)? (?:just |recently )?moved to (?=(?-i:[A-Z]))[^\n]{2,60}", re.I)
PASSING_STATE = re.compile(
    r"\b(?:(?:i|we)(?:'m| am|'re| are) (?:an? )?(?:bit|little|mess|fan|huge|big|sucker|believer|firm|total|day|"
    r"night|week|"
    r"step|ready|loss|beginner|newbie|pro at|sure|all|still)|so (?:proud|happy|glad)|wreck|in a (?:rush|hurry|mood)|"
    r"(?:i|we)(?:'m| am|'re| are) (?:the (?:one|only)|a (?:lot|huge|great|bit|big|good|real|sucker|fan|total)))\b",
    re.I,
)
BEGINS = re.compile(
    r"\W*(?:(?:hi|hello|hey|ok|okay|so|well|and|but|yes|yeah|also|fyi|btw|by the way|actually|just so you know|"
    r"remember|note|for "
    r"the record|for context|context)\b[\s,:;.!–—-]*){0,3}(?:that )?(?:i|i'm|im|i've|my|we|we're|our|people call "
    r"me|call me|ich|"
    r"mein\w*|wir|je|j'|mon|ma|me|mi|soy|yo)\b|\W*(?:我|私|僕|俺)|[^\x00-\x7f]",
    re.I,
)
"""Who says who they are begins with that. Further on in a sentence it is part of a tale."""
FEELS = re.compile(r"\b(?:nervous|excited|amazing|awesome|grateful|blessed|lucky|passionate|determined|proud)\b", re.I)
BUILT_ON = re.compile(
    r"(?:our|my|the) (?P<what>(?:[\w-]+ ){0,3}?[\w-]+) (?:runs on|is running on|is hosted (?:on|at|in|by)|is "
    r"deployed (?:on|to|at)|"
    r"is written in|is built (?:with|on|in)|is based on|is powered by) (?:the "
    r")?(?P<value>(?=(?-i:[A-Z0-9]))[^\n,;]{1,100})",
    re.I,
)
"""Of whatever: what it runs on is named."""
PLACE_OF = re.compile(
    rf"(?P<what>production|prod|staging|{NAME}) (?:is|runs|lives) (?:hosted |deployed )?(?:on|at) "
    rf"(?P<value>(?=(?-i:[A-Z0-9]))[^\n,;]{{2,80}})",
    re.I,
)
EVERY = re.compile(
    r"(?:our|my|the) (?P<what>(?:[\w-]+ ){0,3}?[\w-]+) (?:runs?|happens?|is|takes? place|goes out|comes?) "
    r"(?P<value>(?:every|each|daily|"
    r"nightly|weekly|monthly|hourly|on (?:mon|tues|wednes|thurs|fri|satur|sun)days)\b[^\n]{0,80})",
    re.I,
)
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:\w{1,6})?"
UNTIL = re.compile(
    r"(?:our|my|the) (?P<what>(?:[\w-]+ ){0,5}?[\w-]+) (?:ends?|expires?|is due|starts?|begins?|renews?|closes?|"
    r"opens?|runs out) "
    rf"(?:on|in|by|at the end of) (?P<value>(?=[^\n]*(?:\b{MONTH}\b|\b20\d\d\b))[^\n,;]{{3,50}})",
    re.I,
)
KIN_HAS = re.compile(
    r"(?:my|our) (?P<who>(?:[\w-]+ )?(?:wife|husband|partner|son|daughter|(?:grand)?(?:mother|father)(?:-in-law)?|"
    r"mom|mum|dad|"
    rf"brother|sister|(?:brother|sister|son|daughter)-in-law|cousin|uncle|aunt|niece|nephew|boss|dog|cat)(?:,? "
    rf"{NAME})?) "
    r"(?:has (?!been|to\b|gone|just|already|a (?:cold|point|question|meeting)|got|had|taken|made)|suffers from|"
    r"speaks|teaches|turns|"
    r"can't (?:eat|drink)|doesn't (?:eat|drink)|is (?:retired|pregnant|deaf|blind|vegan|vegetarian|diabetic|"
    r"allergic))[^\n]{2,80}",
    re.I,
)
LIFE = re.compile(
    r"i (?:studied (?!it|this|that|for)|graduated|majored in|grew up|was born|was raised|did my (?:phd|masters?|"
    r"bachelors?))\b"
    r"(?=[^\n]*(?-i:[A-Z]|\d))[^\n]{3,100}"
    r"|i(?:'ve| have) been an? [\w -]{3,40} (?:since|for) [^\n]{2,40}"
    r"|i(?:'ll| will)? (?:turn|be) \d{1,2} (?:in|on|next) [^\n]{2,30}",
    re.I,
)
WHO_IS = re.compile(
    rf"(?P<who>(?:(?:Dr|Prof|Mr|Mrs|Ms|Herr|Frau)\.? )?{NAME}) is (?:my|our) (?P<role>(?:[\w-]+ )?(?!number|answer|"
    rf"dinner|summer|offer|"
    r"order|weather|other|color|error|favor|present|moment)[\w-]+(?:er|or|ist|ian|ant|ent)|(?:[\w-]+ )?nurse|vet)\b",
    re.I,
)
ELSEWHERE = (
    re.compile(
        r"我(?:的)?(?:女儿|儿子|妻子|老婆|太太|丈夫|老公|先生|妈妈|母亲|爸爸|父亲|姐姐|妹妹|哥哥|弟弟|狗|猫|"
        r"老板|经理|医生|同事|朋友)(?:叫|是|住在|在|对|不吃)[^\n吗呢]{1,40}"
    ),
    re.compile(
        r"我们(?:的)?(?:数据库|服务器|项目|公司|产品|网站|团队|后端|前端)(?:是|叫|用的是|部署在|"
        r"在)[^\n吗呢]{1,40}"
    ),
    re.compile(
        r"(?:mein|meine|unser|unsere) (?:[\wäöüß-]+ ){1,3}?(?:heißt|heisst|wohnt in|lebt in|arbeitet (?:bei|als|"
        r"in)|läuft auf|ist "
        r"allergisch|studiert) [^\n]{2,80}",
        re.I,
    ),
    re.compile(
        r"(?:mein|meine|unser|unsere) (?:geburtstag|adresse|telefonnummer|chef|chefin|arzt|ärztin|zahnarzt|"
        r"datenbank|frist|projekt|"
        r"firma|steuernummer) ist [^\n]{2,60}",
        re.I,
    ),
)
NAMED_VALUE = re.compile(r"(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|I\b)(?:[A-ZÀ-Þ][\w'’-]+|\d[\d /.-]{4,})")


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
