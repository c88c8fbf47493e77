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
from offbook.continuity.corrections import correction_in
from offbook.continuity.keeping import shared, words_of
from offbook.retrieval.phrases import is_asking
from offbook.settings import CONTRADICTION_WORDS, IDENTITY_WORDS, TENSION_WORDS, AnchorKeywords
from offbook.turns import AnchorKind

LONGEST_READ_SENTENCE_CHARS = 400
"""Whoever writes longer sentences than that has pasted something."""


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
_TURN = r"\b(?:but|yet|however|though|whereas|now|today|instead|then|while|nevertheless|still)\b"
_OPPOSED = re.compile(
    rf"\A(?:[\w' ]{{0,20}}[,.!:]? ?)?\b(?:but|yet|however|wait|hold on|hang on|"
    rf"no)\b[ ,]{{1,2}}(?:[\w']+ ){{0,3}}?{_SAID}"
    rf"|\b(?:but|yet|however)\b[ ,]{{1,2}}(?:earlier|before|last time|yesterday|previously|originally|in your)\b"
    rf"|(?<!as )\b{_SAID}[^\n]{{1,160}}?(?:{_TURN}|, not\b|, you\b|\band (?:now|today|then)\b)"
    rf"|\b(?:earlier|before,|yesterday|last (?:time|week|month)|previously|first|originally|initially|at first|"
    rf"in your first)(?!\w)"
    rf"[^\n]{{1,120}}?\b(?:now|today|but|however|suddenly) (?:it|you|we|i|they|he|she|the|that|this)\b[^\n]{{0,40}}?"
    rf"(?:'s|'re| is| are| was| {_SAY}| costs?| wants?| has| have| do| does| shows?)\b"
    rf"|\bi thought (?:you|we|i) (?:\w+ ){{0,2}}?(?:{_SAY}|were|wanted|was)\b"
    rf"|(?:not|isn't|wasn't|never) what (?:you|i|we|he|she|they|the)\b[^\n]{{0,30}}?(?:{_SAY}|agreed|asked|wanted|"
    rf"ordered|meant|discussed)"
    rf"|\b(?:i|we) (?:never|didn't|did not) (?:{_SAY}|ask for|agree|mean|order|want)\b(?! me| him| her| us| anyone)"
    rf"|\bi (?:asked (?:for|you)|ordered|wanted|told you|meant)\b[^\n]{{1,100}}?(?:, not\b|, but\b| but (?:i |you |"
    rf"this |it |that |the )|"
    rf" and (?:you|i) (?:got|get|gave|sent))"
    rf"|\A(?:no|sorry|oops|wait|correction|my (?:mistake|bad))\b[^\n]{{1,120}}?, (?:and )?not\b|"
    rf"\d[^,\n]{{0,20}}, not \d",
    re.IGNORECASE,
)
_UNFIT = re.compile(
    r"\bcontradict(?:s|ed|ing|ory|ions?)?\b|\b(?:inconsistent|inconsistency|incompatible|irreconcilable)\b"
    r"|\bconflict(?:s|ed)? with\b|\bconflicting\b|\bin conflict with\b|\bclash(?:es)? with\b"
    r"|\b(?:doesn't|does not|don't|do not|didn't|did not) (?:add up|match|fit together|agree with|line up|"
    r"square with|tally)\b"
    r"|\bmismatch between\b|\bthe (?:exact |very |complete )?opposite\b|\bcontrary to (?:what|your|my|the)\b"
    r"|\bchanged (?:my|your|our|his|her|their) minds?\b|\bthat(?:'s| is| was) (?:wrong|incorrect|not (?:right|true|"
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
    r"\b(?:earlier|before|previously|last time|yesterday|instead|actually|said|told|not [^,.;]{1,40}? but)\b",
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
    return None if _LOOKS_BACK.search(sentence) and not is_asking(sentence) else False


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


# ── what is unresolved ────────────────────────────────────────────────────────────────────────

_TROUBLE = (
    r"(?:problems?|issues?|challenges?|trouble|difficult(?:y|ies)|obstacles?|hurdle|dilemma|bottleneck|bug|catch)"
)
_WE = r"\b(?:i|we)(?:'m|'re|'ve|'d| am| are| have| had)?"
_SO = r"(?: still| just| also| really| completely| totally| a bit| a little| quite| so| now| very| again| both| all)*"
_UNSOLVED = re.compile(
    rf"{_WE}{_SO}(?: got| getting| feel| feeling)?{_SO} (?:stuck|confused|puzzled|baffled|stumped|torn between|"
    rf"at a loss|struggl(?:e|ing)|"
    rf"lost (?:with|in|on|here)|undecided)\b"
    rf"|{_WE}{_SO} (?:can't|cannot|can not|couldn't|are unable to|am unable to|unable to|"
    rf"don't know how to){_SO} (?:figure|decide|agree|"
    rf"find (?:out|a way|the cause)|get|solve|make up|tell whether|work out|understand|reproduce|log ?in|connect|"
    rf"choose|settle)\b"
    rf"|{_WE}{_SO} (?:don't|do not|didn't){_SO} (?:know (?:how|what|whether|why|which|where|if)|understand (?:why|"
    rf"how|what))\b"
    rf"|{_WE}{_SO} (?:haven't|have not|not)(?: yet)? (?:decided|solved|found|settled|figured|resolved)\b"
    rf"|{_WE}{_SO} no (?:idea|clue) (?:why|how|what|which|whether)\b|{_WE} not sure (?:whether|how|which|what to|why)\b"
    rf"|{_WE}{_SO} (?:having|have|had|got|facing|face|running into|run into|ran into|keep running into|hit|"
    rf"keep getting|experiencing)"
    rf"{_SO} (?!no\b|never\b)(?:an?|the|some|the same|this|these|another|more|many|lots of)? ?(?:[\w'-]+ )?"
    rf"(?:{_TROUBLE}|errors?|hard time|crash(?:es)?)\b(?! sets?\b)"
    rf"|\b(?:my|our|the|a)(?: [\w'-]+)? {_TROUBLE}(?: here| now| with [\w' -]{{1,40}}?| remains|"
    rf" for \w+)?(?: still)? ?(?:is\b|are\b|remains?\b|:|'s\b)"
    r"(?! (?:now |finally |already |been |long |all |also )*(?:solved|fixed|resolved|gone|closed|over|out\b|due|"
    r"on (?:monday|tuesday|"
    r"wednesday|thursday|friday)|not (?:a|an|so|too|that)|no\b|small|minor|easy|done|settled))"
    rf"|\A(?:and |but )?{_TROUBLE} ?: ?\S|\bthere(?:'s| is| are| seems to be| must be)(?: still| also)? (?:an?|"
    rf"some|another|still an?)(?: [\w'-]+)? "
    rf"(?:{_TROUBLE}|error)\b|\b(?:it|this|that)(?:'s| is)(?: still| really| becoming)? (?:an?|"
    rf"the)(?: [\w'-]+)? (?:{_TROUBLE})\b(?! (?:free|of 1))"
    r"|\b(?:doesn't|does not|don't|won't|will not|isn't|is not|aren't|can't|cannot|not|never)(?: even| really|"
    r" quite| properly| yet)? "
    r"(?:work|working|start|turn on|boot|load|open|connect|respond|compile|save|sync|print|charge|stop)\b(?! (?:on|"
    r"for|there|here|at|in|with|"
    r"tomorrow|today|until|that)\b)"
    r"|\b(?:keeps?|kept) (?:on )?(?:fail|crash|break|freez|disconnect|com(?:ing|es) back|restart|throw|drop|hang|"
    r"los|reject|show)\w*"
    r"|\b(?:crashes|fails|freezes|hangs) (?:every|each|when|whenever|again|with|on|at|after|all)\b"
    r"|\b(?:is|are|'s)(?: still| now| again| completely)? (?:broken|unclear|unresolved|undecided|unanswered|"
    r"still open|not solved|not fixed|stuck|failing|"
    r"crashing)\b|\bstill (?:open|unclear|unresolved|undecided|missing|failing|broken|stuck|crashes|fails)\b"
    r"|\b(?:open|unanswered|unresolved) questions? (?:is|are|remains?)\b|\bsomething(?:'s| is)(?: still)? wrong with\b",
    re.IGNORECASE,
)
_UNSOLVED_ELSEWHERE = re.compile(
    r"卡(?:住|在)|(?<!没)问题(?:是|在于|出在)|(?:不知道|不清楚)(?:怎么|如何|该|为什么)|(?:还是|仍然|一直|"
    r"总是)(?:不行|不能|没(?:有)?(?:解决|成功)|失败|报错)|"
    r"(?:没|无)法(?:解决|运行|登录|连接)|搞不(?:懂|定|清)|遇到(?:了)?[^，。]{0,8}(?:问题|困难|麻烦)|有(?:个|一个|"
    r"点)问题|很(?:困惑|纠结)"
    r"|うまく(?:いか|行か|でき)な|動(?:か|きま)(?:ない|せん)|困って(?:い)?(?:る|ます)|詰まって|問題は|"
    r"わから(?:ない|ず)|エラーが(?:出|消え)"
    r"|\bno (?:me )?(?:funciona|arranca|carga|abre|enciende|s[ée] (?:c[óo]mo|qu[ée]|si))\b|\bel problema es|"
    r"\btengo un problema|\bestoy (?:atascad|"
    r"confundid|perdid)[oa]"
    r"|\b(?:klappt|funktioniert|geht|läuft|startet)(?: [\wäöüß]+){0,2} nicht\b(?! (?:darum|um))|"
    r"\bdas problem (?:ist|liegt)|\bich (?:komme|komm) nicht weiter"
    r"|\bich (?:stecke fest|weiß nicht,? (?:wie|was|ob))|\bich bin verwirrt|\bes gibt ein problem"
    r"|\bne (?:marche|fonctionne|d[ée]marre|s'ouvre)(?: [\wéè]+)? pas\b|\bje suis (?:bloqu|perdu|coinc)|"
    r"\ble probl[èe]me(?:,)? (?:est|c'est)|\bj'ai un "
    r"probl[èe]me|\bje ne sais pas (?:comment|quoi|si)",
    re.IGNORECASE,
)
_NO_TENSION = re.compile(
    rf"\b(?:no|any|without|zero|never an?|not (?:really )?an?|n't(?: really)? an?|n't have an?|not have an?|"
    rf"never had an?|n't (?:see|have) any)"
    rf"(?: more| big| real| such| serious| further| major)? {_TROUBLE}\b"
    rf"|{_TROUBLE}(?: has| have| was| were| is| are| got|'s)?(?: been| now| finally| already| all)* (?:solved|"
    rf"fixed|resolved|gone|closed|"
    rf"sorted|accepted|over\b|solving|sets?\b)|\b(?:solv|fix|resolv|clos|sort)(?:e|es|ed|ing)(?: out)? (?:the|that|"
    rf"this|my|our|your|all|an?)"
    rf"(?: [\w'-]+)? {_TROUBLE}|\b(?:not|n't|no longer|never)(?: at all| really)? (?:stuck|confused)\b"
    rf"|\bif (?:you|there|i|we|anyone|it|they)\b[^\n]{{0,40}}?(?:{_TROUBLE}|stuck|confused)\b|\b(?:was|"
    rf"were) (?:stuck|confused)\b"
    r"|\bstuck (?:to|out|around|in (?:traffic|my head))\b|\b(?:will|to|can|they|must) issue\b|\bissues? (?:#?\d+|"
    r"of (?:the|\d))|\bproblem sets?\b|"
    rf"\b(?:open|file|create|close|raise|report) (?:an?|the|this) (?:[\w'-]+ )?(?:issue|ticket)\b|\b(?:love|like|"
    rf"enjoy)s? an?(?: good)? challenge"
    r"|\b(?:coding|ice bucket|reading|daily|photo|fitness) challenge\b|\bchallenge (?:cup|accepted)|\bchallenged\b|"
    r"没(?:有)?问题|不是问题|問題(?:ない|ありません)|"
    r"sin problema|kein problem|pas de probl[èe]me|ning[úu]n problema",
    re.IGNORECASE,
)
_ASKS_FOR_HELP = re.compile(rf"{_WE}\b|\bmy\b|\bour\b|\b(?:still|not|n't|keeps?)\b", re.IGNORECASE)


def tension_in(sentence: str) -> bool | None:
    """Whether a sentence tells of something unresolved; None where it has nothing but the word."""
    if _NO_TENSION.search(sentence):
        return False
    if settled := settled_in(sentence):
        return any(_UNSOLVED.search(part) for part in _SIDES.split(sentence) if part not in settled)
    if _UNSOLVED.search(sentence) or _UNSOLVED_ELSEWHERE.search(sentence):
        return not is_asking(sentence) or bool(_ASKS_FOR_HELP.search(sentence)) or not sentence.isascii()
    return False if is_asking(sentence) else None


_SOLVED = re.compile(
    r"\b(?:(?:is|are|was|were|'s|got|has been|have been|been|all)(?: now| finally| all| already)* (?:solved|fixed|"
    r"resolved|sorted(?: out)?|"
    r"working(?: again| now| fine)|gone now)|(?:works?|worked|running|runs)(?: just| all)? (?:now|again|fine|"
    r"perfectly|great|like a charm|out)|"
    r"(?:now|finally|it|that|this|everything) (?:works|worked)|(?:solved|fixed|resolved) (?:it|that|this|the|my|"
    r"our|now)|"
    r"(?:problem|issue) (?:solved|fixed|resolved)|(?:figured|sorted|worked) (?:it|that|this) out|(?:i|"
    r"we) (?:finally |have )?(?:decided|"
    r"figured out|solved|fixed|resolved|settled on)|no longer (?:stuck|confused|a problem|an issue|fails|crashes))\b"
    r"|(?:解决|搞定|修好|弄好|可以用)了|解決(?:し|した)|直りました|\bya (?:funciona|est[áa] (?:resuelto|"
    r"solucionado|arreglado))|\b(?:funktioniert|klappt|geht|läuft) "
    r"(?:es )?(?:jetzt|wieder)|\b(?:gelöst|behoben)\b|\b(?:marche|fonctionne) (?:maintenant|de nouveau|à nouveau)|"
    r"\br[ée]solu",
    re.IGNORECASE,
)
_NOT_SOLVED = re.compile(
    r"\b(?:not|never|if|until|unless|once|when|hope|hopefully|should|would|could|might|may|will|until|how|whether|"
    r"almost|still|please|"
    r"must|need|needs|want|wants|can|nobody|nothing|only|haven't)\b|n't\b|\?|还没|没有?解决|nicht|"
    r"\bno (?:ya )?funciona|\bpas\b|まだ",
    re.IGNORECASE,
)
_OF_SOLVING = frozenset(
    words_of(
        "problem issue challenge trouble solve solved fix fixed resolve resolved sorted work works working worked "
        "now finally decided "
        "decide figured settled thanks thank stuck confused longer again fine great perfectly error bug still keep "
        "broken all yes"
    )
)


def settled_in(sentence: str) -> list[str]:
    """The parts of a sentence that say that something is settled: it is fixed, it works now, they have decided."""
    if not _SOLVED.search(sentence):
        return []
    return [part for part in _SIDES.split(sentence) if _SOLVED.search(part) and not _NOT_SOLVED.search(part)]


def subject_of(sentence: str) -> list[str]:
    """What a tension, or its end, is about: its telling words without those of trouble and of its end."""
    return [word for word in words_of(sentence) if word not in _OF_SOLVING]


# ── the words of the settings ─────────────────────────────────────────────────────────────────

KINDS: tuple[AnchorKind, ...] = ("identity", "contradiction", "tension")
_DEFAULTS = {"identity": IDENTITY_WORDS, "contradiction": CONTRADICTION_WORDS, "tension": TENSION_WORDS}
_RULES = {"identity": identity_in, "contradiction": contradiction_in, "tension": tension_in}
_I_AM = re.compile(r"\bi'm\b")
_ENDS = " \t.!?…。！？\"'"


def nominees(sentence: str, keywords: AnchorKeywords) -> Iterator[Nominee]:
    """The kinds a sentence may be of. Identity comes first: one that corrects another one is an identity still."""
    said = sentence[:LONGEST_READ_SENTENCE_CHARS]
    lower = _I_AM.sub("i am", said.lower())
    for kind in KINDS:
        words: tuple[str, ...] = tuple(getattr(keywords, kind))
        if words:
            verdict = _verdict(kind, said, lower, words)
            if verdict is not False:
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
