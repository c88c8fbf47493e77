"""Which sentences tell of something unresolved, and which say that it is settled."""

from __future__ import annotations

import re

from offbook.rules.state.records import shared, words_of
from offbook.rules.state.rules import is_request
from offbook.rules.supersession.corrections import correction_in
from offbook.search.substance import is_asking

_TROUBLE = r"(?:problems?|issues?|trouble|difficult(?:y|ies)|obstacles?|hurdle|dilemma|bottleneck|bug)"
_TASK = r"(?:challenges?)"
_WE = r"\b(?:i|we)(?:'m|'re|'ve|'d| am| are| have| had)?"
_SO = (
    r"(?: (?:still|just|also|really|completely|totally|quite|so|now|very|again|both|all|honestly|a bit|a little)){0,3}"
)
_FAILS = r"(?:doesn't|does not|won't|will not|isn't|is not|aren't|are not|still not|just not|'s not|'re not|never)"
_SETTLED = r"(?:solved|fixed|resolved|patched|gone|closed|sorted|settled|over|done)"
_CONDITION = r"\b(?:if|in case|whether|when(?:ever)?|unless)"

_UNSOLVED = re.compile(
    "|".join(
        (
            # How they stand.
            rf"\b(?:i'm|im|i am|we're|we are|i got|i get|we got|i feel|still){_SO}(?: feeling|"
            rf" getting)?{_SO} (?:stuck|confused|"
            r"puzzled|baffled|stumped|torn between|at a loss|struggling|lost (?:with|in|on|here)|undecided)\b",
            rf"\b(?:i|we){_SO} struggle with\b",
            rf"{_WE}{_SO} (?:can't|cannot|can not|couldn't|unable to){_SO} (?:figure|decide|agree (?:on|about)|"
            rf"find (?:out|"
            r"a way|the cause)|get|solve|make up|tell whether|work out|understand|reproduce|log ?in|connect|choose|"
            r"settle)\b",
            rf"{_WE}{_SO} (?:don't|do not|didn't){_SO} (?:know (?:how|what|whether|why|which|where)|"
            rf"understand (?:why|how|"
            r"what))\b",
            rf"{_WE}{_SO} (?:haven't|have not|not)(?: yet)? (?:decided|solved|found|settled|figured|resolved)\b",
            rf"{_WE}{_SO} (?:no (?:idea|clue) (?:why|how|what|which|whether)|not sure (?:whether|how|which|what to|"
            rf"why))\b",
            rf"{_WE}{_SO} (?:having|have|had|got|facing|face|(?:keep )?running into|run into|ran into|hit|keep getting|"
            rf"experiencing){_SO} (?!no\b|to\b|never\b)(?:(?:an?|the|some|this|these|another|more|many|"
            rf"lots of) )?(?:(?!to\b)"
            rf"[\w'-]+ )?(?:{_TROUBLE}|errors?|hard time|crash(?:es)?)\b(?! sets?\b)",
            # What is wrong, as a thing.
            rf"\b(?:my|our|the|a)(?: [\w'-]+)? {_TROUBLE}(?: here| now| with [\w' -]{{1,40}}?|"
            rf" for \w+)?(?: still)? ?(?:is|are|"
            rf"remains?|:(?= ?\w)|'s)(?!\w)(?! (?:now |finally |already |been |long |all |also )*(?:{_SETTLED}\b|"
            rf"out\b|due|"
            rf"not (?:a|an|so|"
            r"too|that)|no\b|small|minor|easy|on (?:mon|tues|wednes|thurs|fri)day))",
            rf"\b(?:my|our|the (?:main|biggest|real|big|only|next|hardest))(?: [\w'-]+)? {_TASK} (?:is|remains|"
            rf"here is)\b",
            rf"\bthe {_TASK} (?:is|remains) (?:to|that|how|\w+ing)\b",
            rf"\A(?:and |but )?(?:{_TROUBLE}|{_TASK}) ?: ?\S",
            rf"\bthere(?:'s| is| are| seems to be| must be)(?: still| also)? (?:an?|some|"
            rf"another)(?: [\w'-]+)? (?:{_TROUBLE}|"
            r"error)\b",
            rf"\b(?:it|this|that)(?:'s| is)(?: still| really| becoming)? (?:an?|"
            rf"the)(?: [\w'-]+)? {_TROUBLE}\b(?! (?:free|of 1))",
            r"\bopen questions? (?:is|are|remains?)\b|\bsomething(?:'s| is)(?: still)? wrong with\b",
            # What does not do what it should.
            rf"(?:\b|(?<=\w)){_FAILS}(?: even| really| quite| properly| yet)? (?:work|working|start|turn on|boot|"
            rf"load|open|"
            r"connect|respond|compile|save|sync|print|charge)\b(?! (?:out|on|for|there|here|at|in|with|until|"
            r"that|tomorrow|"
            r"today)\b)",
            r"\b(?:won't|will not) stop \w+ing\b",
            r"\bkee?p(?:s|t)? (?:on )?(?:fail|crash|break|freez|disconnect|coming back|restart|throw|dropp|hang|"
            r"los|reject)\w*",
            r"\b(?:crashes|fails|freezes|hangs) (?:every|each|when|whenever|again|with|on|at|after|all)\b",
            r"(?:\bis|\bare|'s)(?: still| now| again| completely)? (?:broken|unclear|unresolved|undecided|"
            r"unanswered|stuck|"
            r"failing|crashing|not solved|not fixed)\b",
            r"\bstill (?:open|unclear|unresolved|undecided|missing|failing|broken|stuck|crashes|fails)\b",
        )
    ),
    re.IGNORECASE,
)
_UNSOLVED_ELSEWHERE = re.compile(
    "|".join(
        (
            r"卡(?:住|在)|(?<!没)问题(?:是|在于|出在)|(?:不知道|不清楚)(?:怎么|如何|该|为什么)",
            r"(?:还是|仍然|一直|总是)(?:不行|不能|没(?:有)?(?:解决|成功)|失败|报错)",
            r"(?:没|无)法(?:解决|运行|登录|连接)|搞不(?:懂|定|清)|遇到(?:了)?[^，。]{0,8}(?:问题|困难|麻烦)",
            r"有(?:个|一个|点)问题|很(?:困惑|纠结)|うまく(?:いか|行か|でき)な|動(?:か|きま)(?:ない|せん)",
            r"困って(?:い)?(?:る|ます)|詰まって|問題は|わから(?:ない|ず)|エラーが(?:出|消え)",
            r"\bno (?:me )?(?:funciona|arranca|carga|abre|enciende|s[ée] (?:c[óo]mo|qu[ée]|si))\b",
            r"\bel problema es|\btengo un problema|\bestoy (?:atascad|confundid|perdid)[oa]",
            r"\b(?:klappt|funktioniert|geht|läuft|startet)(?: [\wäöüß]+){0,2} nicht\b(?! (?:darum|um))",
            r"\bdas problem (?:ist|liegt)|\bich (?:komme|komm) nicht weiter",
            r"\bich (?:stecke fest|weiß nicht,? (?:wie|was|ob))|\bich bin verwirrt|\bes gibt ein problem",
            r"\bne (?:marche|fonctionne|d[ée]marre|s'ouvre)(?: [\wéè]+)? pas\b|\bje suis (?:bloqu|perdu|coinc)",
            r"\ble probl[èe]me(?:,)? (?:est|c'est)|\bj'ai un probl[èe]me|\bje ne sais pas (?:comment|quoi|si)",
        )
    ),
    re.IGNORECASE,
)
_NO_TENSION = re.compile(
    "|".join(
        (
            rf"(?:\b(?:no|any|without|zero|never an?|not (?:really )?an?|not have an?|never had an?)|"
            rf"n't(?: really)? an?|n't have "
            rf"an?|n't (?:see|have) any)(?: more| big| real| such| serious| further| major)? (?:{_TROUBLE}|{_TASK})\b",
            rf"(?:{_TROUBLE}|{_TASK})(?: has| have| was| were| is| are| got|'s)?(?: been| now| finally| already| all)* "
            rf"(?:{_SETTLED}\b|accepted|solving|sets?\b)",
            rf"\b(?:solv|fix|resolv|clos|sort)(?:e|es|ed|ing)(?: out)? (?:the|that|this|my|our|your|all|"
            rf"an?)(?: [\w'-]+)? "
            rf"{_TROUBLE}",
            r"(?:\b(?:not|no longer|never)|n't)(?: at all| really| be| get)? (?:stuck|confused)\b|\b(?:was|"
            r"were) (?:stuck|"
            r"confused)\b",
            rf"{_CONDITION} (?:you|there|i|we|anyone|it|they|that|this)\b[^\n]{{0,40}}?(?:{_TROUBLE}|stuck|"
            rf"confused|n't work|not work|can't|don't)\b",
            r"\bstuck (?:into|to|out|around|in (?:traffic|my head)|with (?:me|us)|in(?=[.!]*\Z))\b|\b(?:will|to|"
            r"can|they|must) issue\b|"
            r"\bissues? (?:#?\d+|of (?:the|\d))",
            r"\b(?:open|file|create|close|raise|report) (?:an?|the|this) (?:[\w'-]+ )?(?:issue|ticket)\b",
            rf"\b(?:love|like|enjoy)s? an?(?: good)? {_TASK}|\b(?:coding|reading|daily|photo|fitness|rewarding|fun|"
            rf"nice|good|great|"
            rf"exciting|welcome|interesting) {_TASK}\b|\b{_TASK} cup\b|\bchallenged\b",
            r"没(?:有)?问题|不是问题|問題(?:ない|ありません)|sin problema|kein problem|pas de probl[èe]me|"
            r"ning[úu]n problema",
        )
    ),
    re.IGNORECASE,
)
SIDES = re.compile(r"[,;.]? ?\b(?:however|but|yet|whereas|while)\b,? ?", re.IGNORECASE)
_ASKS_FOR_HELP = re.compile(rf"{_WE}\b|\bmy\b|\bour\b|\b(?:still|not|n't|keeps?)\b", re.IGNORECASE)


# One of these is in every sentence that the rules know: most have none, and need not be read for more.
_MAY_TELL = re.compile(
    r"stuck|confus|puzzled|baffled|stumped|torn|at a loss|struggl|lost|undecided|can|couldn|unable|n't|not|no |"
    r"problem|issue|trouble|difficult|obstacle|hurdle|dilemma|bottleneck|bug|error|hard time|crash|challeng|"
    r"open question|wrong|never|kee?p|fail|freez|hang|broken|un(?:clear|resolved|answered)|still|missing|solved|"
    r"fixed|resol|sorted|work|run|figured|decided|settled|gone|funciona|arranca|carga|abre|enciende|estoy|klappt|"
    r"geht|startet|ich|marche|suis|ne ",
    re.IGNORECASE,
)


def tension_in(sentence: str) -> bool | None:
    """Whether a sentence tells of something unresolved; None where it has nothing but the word."""
    if sentence.isascii() and not _MAY_TELL.search(sentence):
        return False if is_asking(sentence) else None
    if _NO_TENSION.search(sentence):
        return False
    if settled := settled_in(sentence):
        return any(_UNSOLVED.search(part) for part in SIDES.split(sentence) if part not in settled)
    if _UNSOLVED.search(sentence) or _UNSOLVED_ELSEWHERE.search(sentence):
        return not is_asking(sentence) or bool(_ASKS_FOR_HELP.search(sentence)) or not sentence.isascii()
    return False if is_asking(sentence) else None


_SOLVED = re.compile(
    "|".join(
        (
            r"\A(?:all |yes,? |ok(?:ay)?,? )?(?:solved|fixed|resolved|sorted)\b[\s.!]*\Z",
            r"\b(?:(?:is|are|was|were|'s|got|has been|have been|been|all)(?: now| finally| all|"
            r" already)* (?:solved|fixed|resolved|sorted(?: out)?|working(?: again| now| fine)|gone now)|"
            r"(?:works?|worked|running|runs)(?: just| all)? (?:now|again|fine|perfectly|great|like a charm|out)|"
            r"(?:now|finally|it|that|this|everything) (?:works|worked)|(?:solved|fixed|resolved) (?:it|that|"
            r"this|the|my|our|now)|(?:problem|issue) (?:solved|fixed|resolved)|(?:figured|sorted|worked) (?:it|"
            r"that|this) out|(?:i|we) (?:finally |have )?(?:decided|figured out|solved|fixed|resolved|"
            r"settled on)|no longer (?:stuck|confused|a problem|an issue|fails|crashes))\b",
            r"(?:解决|搞定|修好|弄好|可以用)了|解決(?:し|した)|直りました",
            r"\bya (?:funciona|est[áa] (?:resuelto|solucionado|arreglado))",
            r"\b(?:funktioniert|klappt|geht|läuft) (?:es )?(?:jetzt|wieder)|\b(?:gelöst|behoben)\b",
            r"\b(?:marche|fonctionne) (?:maintenant|de nouveau|à nouveau)|\br[ée]solu",
        )
    ),
    re.IGNORECASE,
)
_NOT_SOLVED = re.compile(
    "|".join(
        (
            r"\b(?:not|never|if|until|unless|once|when|hope|hopefully|should|would|could|might|may|will|until|"
            r"how|whether|almost|still|please|must|need|needs|want|wants|can|nobody|nothing|only|haven't)\b",
            r"n't\b|\?|还没|没有?解决|nicht|\bno (?:ya )?funciona|\bpas\b|まだ",
        )
    ),
    re.IGNORECASE,
)
_OF_SOLVING_TEXT = (
    "problem issue challenge trouble solve solved fix fixed resolve resolved sorted work works working worked now "
    "finally decided decide figured settled thanks thank stuck confused longer again fine great perfectly error bug "
    "still keep keeps broken all yes struggling failing fails crashing crashes"
)
_OF_SOLVING = frozenset(stem for word in _OF_SOLVING_TEXT.split() for stem in words_of(word))


def settled_in(sentence: str) -> list[str]:
    """The parts of a sentence that say that something is settled: it is fixed, it works now, they have decided."""
    if not _SOLVED.search(sentence):
        return []
    return [part for part in SIDES.split(sentence) if _SOLVED.search(part) and not _NOT_SOLVED.search(part)]


def subject_of(sentence: str) -> list[str]:
    """What a tension, or its end, is about: its telling words without those of trouble and of its end."""
    return [word for word in words_of(sentence) if word not in _OF_SOLVING]


# ── Which sentences set something against what was said before. "But" alone does not: it mostl ──

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
