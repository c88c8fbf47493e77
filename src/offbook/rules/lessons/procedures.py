"""Procedures: "to deploy, run …", "the way to X is …", "first … then …", steps with numbers."""

from __future__ import annotations

import re

from offbook.rules.lessons.voice import HURRY, Taught, by_words
from offbook.search.words import terms

HOW = 0.7
IN_ORDER = 0.6
FEWEST_TERMS = 3
_DO = (
    r"(?:run|execute|call|open|press|hold|restart|start|stop|click|type|enter|set|go to|log (?:in|out|on)|copy|"
    r"push|pull|"
    r"merge|install|build|ssh|edit|delete|remove|turn|unplug|plug|reboot|raise|lower|bump|tag|deploy|rebase|commit|"
    r"connect|export|import|source|activate|mount|scp|rsync|curl|docker|kubectl|npm|pip|make|git|switch|flip|insert|"
    r"select|choose|scan|mix|preheat|boil|rinse|soak|drain|pour|invite|order|create|upload|download|clear|reset|"
    r"check|ping|notify|ask|fill|sign|attach|charge|wait|use|add|change|update|apply|load|save|close|kill|"
    r"revert|cherry-pick|branch|squash|roll back|escalate|file|email|page|contact|submit|register|put|take|move|"
    r"print|dial|"
    r"water|feed|lock|unlock|flush|wipe|drop|dump|restore|rename|verify|test|publish|send)"
)
"""What is done by hand or typed. What a model is asked for ("explain", "summarise", "write") is not among them."""
_LEAD = (
    r"(?:(?:ok|okay|so|well|and|also|fyi|btw|by the way|note|remember|for the record|reminder|just so you "
    r"know)\b[\s,:;.!–—-]*){0,2}"
)
_TO_DO = re.compile(
    rf"{_LEAD}(?:in order )?to (?P<aim>(?!be\b|me\b|my\b|summari|sum\b|clarify|answer|make (?:it|this)|start "
    rf"with)[\w'-]+"
    rf"(?: [^\n,:;]{{1,80}}?)?)(?:[,:]? (?:you (?:first |just |simply |only )?(?:have to |need to |must |should )?|"
    rf"we (?:first |"
    rf"always |just )?|(?:first|just|simply|always)[,]? )|[,:] ){_DO}\b (?P<what>[^\n]{{3,240}})",
    re.I,
)
_THE_WAY = re.compile(
    rf"{_LEAD}the (?:right |correct |only |proper |usual |official |easiest )?(?:way|trick|procedure|command|"
    rf"steps?) (?:to|for|we) "
    r"(?P<aim>(?!go\b|be\b|do it\b|do this\b)[^\n]{3,80}?) (?:is|are|goes)(?: to| by| as follows)?[:]? "
    rf"(?P<what>(?:first |you |we )?(?:{_DO}|\w+ing|`)[^\n]{{3,240}})",
    re.I,
)
_OURS = re.compile(
    r"(?:our|the|my) (?:release |deploy\w* |team |usual |standard )?(?:process|procedure|workflow|routine|"
    r"checklist|steps) "
    r"(?:for|to|when) (?P<aim>[^\n:]{3,60}?)(?: is)?:? (?P<what>[^\n]{10,240})",
    re.I,
)
_IN_ORDER = re.compile(
    rf"{_LEAD}(?:[^\n,]{{3,60}}, )?first,? {_DO}\b [^\n]{{2,160}}?[,;.]? (?:and )?then,? {_DO}\b "
    rf"(?P<what>[^\n]{{2,200}})",
    re.I,
)
_WHEN = re.compile(
    rf"{_LEAD}(?:when|whenever|if|every time|each time|before (?:every|each|any|you)|after (?:every|each))(?<!you)\s"
    rf"(?P<aim>(?!i\b|we\b|you\b|possible|necessary|applicable|needed|"
    rf"unsure|not\b|so\b|that\b|that's|this\b|it\b|it's|there\b)[^\n,]{{4,100}}), (?:then |always |first |please |"
    rf"you (?:have to |need to |must |should ))?{_DO}\b "
    r"(?P<what>[^\n]{3,240})",
    re.I,
)
_FOR_WE = re.compile(
    rf"{_LEAD}(?:for|on|during) (?P<aim>[\w' -]{{3,50}}?),? (?:we|you) (?:always |usually |first )?{_DO}\b "
    rf"[^\n]{{2,160}}?,? "
    r"(?:and then|then|and finally|before|and) (?P<what>[^\n]{3,160})",
    re.I,
)
_HAVE_TO = re.compile(
    rf"{_LEAD}(?:you|we|one) (?:always |first )?(?:have to|need to|must) (?:always |first )?{_DO}\b "
    rf"(?P<what>[^\n]{{3,160}} "
    r"(?:before|after|otherwise|or else|first)\b[^\n]{3,160})",
    re.I,
)
_FOR_THE_AGENT = re.compile(
    r"\b(?:show|give|send|tell|get) (?:it |them |that |those )?(?:to )?me\b|\bfor me\b|\bmake sure\b|\b(?:for|"
    r"when) you\b|\bi want\b",
    re.I,
)
"""A task of today, however it is put."""
_ELSEWHERE = (
    re.compile(
        r"um [^\n,]{3,80} zu \w+(?:en|n), (?:muss|musst|müssen|führe?|starte|öffne|gib|drück\w*|ruf\w*|geh\w*|erst|"
        r"zuerst)\b[^\n]{3,200}",
        re.I,
    ),
    re.compile(
        r"(?!我(?!们))[^\n，]{0,30}(?:的时候|之前|时|要)[，,]?(?:要|需要|请|必须)?先[^\n，,]{2,60}[，,](?:然后|再|"
        r"接着)[^\n]{2,80}"
    ),
)
_NUMBERED = re.compile(r"(?:^|\s)(?P<number>\d{1,2})[.)]\s+(?P<step>\S[^\n]{0,200}?)(?=(?:\s+\d{1,2}[.)]\s)|\n|\Z)")
_INTRODUCED = re.compile(
    r"(?:here(?:'s| is| are) (?:how (?:we|i|to)|our|the (?:steps|procedure|process))|how (?:we|to) [^\n:]{3,60}|"
    r"(?:our|the|my) "
    r"(?:process|procedure|steps|workflow|checklist|routine)\b|steps (?:to|for)|^to [\w' -]{3,60}|so (?:machen|"
    r"geht)|步骤|流程)"
    r"[^\n:：]{0,80}[:：]",
    re.I | re.M,
)
_BEGINS = re.compile(rf"\W*(?:then |first )?(?:{_DO}\b|[\u4e00-\u9fff]|[a-zäöü]+(?:e|en)\b)", re.I)
"""A step is something to do, not a name in a list."""
FEWEST_STEPS = 2
MOST_STEPS_CHARS = 260


def procedure_in(clause: str) -> Taught | None:
    """Of one sentence. It may hold an "if": how something is done depends on when."""
    if HURRY.search(clause) or _FOR_THE_AGENT.search(clause):
        return None
    for pattern in (_TO_DO, _THE_WAY, _OURS, _WHEN, _FOR_WE, _HAVE_TO):
        found = pattern.match(clause)
        if found and len(terms(found[0])) >= FEWEST_TERMS:
            aim = found.groupdict().get("aim")
            return Taught("procedure", clause, by_words("procedure", clause), HOW, aim)
    if any(pattern.match(clause) for pattern in _ELSEWHERE):
        return Taught("procedure", clause, by_words("procedure", clause), HOW)
    if _IN_ORDER.match(clause):
        return Taught("procedure", clause, by_words("procedure", clause), IN_ORDER)
    return None


def steps_in(text: str) -> Taught | None:
    """Of a whole message: steps with numbers, under words that say what they are for."""
    found = _INTRODUCED.search(text)
    if found is None:
        return None
    steps = [(int(one["number"]), one["step"].strip(" .;,")) for one in _NUMBERED.finditer(text[found.end() :])]
    if len(steps) < FEWEST_STEPS or [number for number, _ in steps] != list(range(1, len(steps) + 1)):
        return None
    if sum(bool(_BEGINS.match(step)) for _, step in steps) * 2 < len(steps):
        return None
    listed = "; ".join(f"{number}. {step}" for number, step in steps)
    clause = f"{found[0].rstrip(':：')}: {listed}"
    if len(clause) > MOST_STEPS_CHARS:
        return None
    return Taught("procedure", clause, by_words("procedure", clause), HOW)
