"""How tasks, promises and reports are worded: the sentences that `working_state` acts on.

Each pattern is anchored at the beginning of a sentence and bounded. Reading too little leaves a record out; reading too
much puts an errand into the agent's head that nobody gave it, so what is not clearly a request is none.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from offbook.rules.state.records import words_of
from offbook.rules.supersession.corrections import correction_in
from offbook.search.spotting import unwrapped
from offbook.search.substance import is_asking, is_boilerplate, sentences_of, straight

READ_BEGINNING_CHARS = 2400
READ_END_CHARS = 1000
"""Who pastes a log says what they want before it or after it."""
MAX_SENTENCES = 48
LONGEST_READ_SENTENCE_CHARS = 600
FOLLOW_UP_CHARS = 80

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"(?:[-*#•>✅☑✔❌\s]|\d{1,2}[.)](?=\s))+")

_LEAD = (
    r"(?:(?:ok(?:ay)?|great|perfect|thanks?(?: you)?(?: so much| a lot)?|cool|nice|good|awesome|alright|all right|"
    r"right|now|"
    r"next|then|also|and|but|so|please|pls|kindly|hey|hi|hello|actually|instead|first|finally|well|yes|yeah|yep|"
    r"sure|no|"
    r"just|wait|anyway|after that|again|btw|by the way|meanwhile|moving on|next up|next step|new task|forget "
    r"(?:that|it|about "
    r"(?:that|it))|never ?mind(?: that| it)?|scratch that|that (?:works|worked|did it|looks good)|(?:it|"
    r"everything) works(?: now)?|"
    r"looks good|lgtm|great (?:job|work)|one more thing|quickly|ultimately)\b[\s,.:;!–—-]*+){0,6}"
)
_SETTING = (
    r"(?:(?:if|when|once|after|before|while|since|as soon as|in|on|for|with|using|given|because|now that|with "
    r"that)\b(?:[^,.;?\n]|\.(?=\S))"
    r"{1,120},\s*(?:then |please |also )?|@\w{1,40}[\s,:]+|[A-Z]\w{1,20},\s+(?:please )?)?"
)
_VERBS = (
    "add adjust analy[sz]e annotate answer append apply archive arrange assign attach audit automate back.?up "
    "benchmark book "
    "bring build bump buy calculate call cancel change check clean clear clone close collect combine commit "
    "compare compile "
    "complete compute configure connect continue convert copy correct count create debug decrypt define delete "
    "deliver demo "
    "deploy describe design detect develop diagnose disable display document download draft drop edit email "
    "enable encrypt "
    "ensure estimate evaluate examine exclude execute expand export extend extract fetch figure fill filter find "
    "finish fix "
    "follow format generate get give go group handle hide implement import improve include increase insert "
    "inspect install "
    "integrate introduce investigate invite keep kill launch learn limit link list load locate log look lower "
    "make manage map "
    "mark measure merge migrate mock monitor move notify open optimi[sz]e order organi[sz]e outline package "
    "parse paste patch "
    "pay pick plan play plot polish port post prepare print proceed process produce profile proofread propose "
    "provide provision "
    "publish pull purge push put query raise ramp rank read rebase rebuild record redo reduce redeploy refactor "
    "refresh register "
    "reinstall release reload remove rename reorder reorgani[sz]e replace reply report reproduce request rerun "
    "research reserve "
    "reset resolve restart restore restructure resume retrieve retry return revert review revise rewrite roll "
    "rotate run save "
    "scan schedule scrape search secure select send separate serve set setup share ship shorten show shut "
    "simplify simulate skip "
    "solve sort spawn speed split squash stage start stop store submit subscribe suggest summari[sz]e support "
    "swap switch sync "
    "tag take test tidy track train transcribe transfer transform translate trigger trim try turn tweak "
    "uninstall unify unsubscribe "
    "update upgrade upload use validate verify visit visuali[sz]e wait walk watch wire work.on wrap write zip"
)
_VERB = r"(?:" + "|".join(_VERBS.split()) + r")"
_IMPERATIVE = re.compile(
    rf"(?P<verb>{_VERB})\b(?!['-])(?! (?:is|are|was|were|has|have|had|will|fails?|failed|pass(?:es|ed)?|works?|"
    rf"worked|results?|"
    r"seems?|looks?|of|and i|i|we|you said|status|error|errors|failure)\b)(?! (?!what|why|who|how|if|that|which|"
    r"where|it|this|there)\w+ (?:is|are|was|were|has|have|had|failed|fails)\b)(?=[\s.!,]|\Z)",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    r"(?:(?:can|could|would|will) (?:you|we)(?: please| also| now| just| kindly| maybe| then)*|would you mind|"
    r"i(?:'d| would)? "
    r"(?:want|need|like) you to|go ahead and|help me(?: to| with)?|your (?:task|job|goal|mission) is(?: to)?|the "
    r"(?:task|goal) "
    r"(?:now )?is(?: to)?|(?:task|goal|objective|todo|to do|next|request)\s?:|i'd appreciate it if you(?: could)?|"
    r"don't forget to|"
    r"i (?:want|need) (?=an? ))\s*(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_WISHED = re.compile(
    r"(?:let's|lets|let us|i(?:'d| would) like(?: to)?|i (?:want|need)(?: to)?|we (?:need|have|want|ought) to|we "
    r"(?:should|must|can)|"
    r"you (?:should|need to|must)|please|make sure (?:to|you)|be sure to|remember to|time to)(?: please| now| "
    r"just| also| then)*\s+"
    r"(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_REQUEST = re.compile(_LEAD + _SETTING + r"(?:please |now |just |also |then )*", re.IGNORECASE)
_TELL = re.compile(
    r"(?:please )?(?:(?:tell|remind|show) (?:me|us)\b(?: again)?|explain|clarify|elaborate|describe how|let me "
    r"know|know|"
    r"give me (?:your|an?) (?:opinion|idea|estimate)|say|think|see|confirm|recommend|suggest|answer)\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"(?:summari[sz]e|translate|list|compare|describe|suggest|outline|review|analy[sz]e|draft|write|give|propose|"
    r"calculate|compute|estimate|"
    r"proofread|rewrite|find|look|check|research|plan|rank|show|count)\b|(?:请|帮我|给我)*(?:总结|翻译|列出|比较|写)",
    re.IGNORECASE,
)
_CHINESE_REQUEST = re.compile(
    r"(?:好的?[，,]?|谢谢[，,！!]?|那么?|现在|接下来|下一步|然后|另外|再|麻烦(?:你|您)?|算了[，,]?)*(?:请(?!问)|"
    r"帮(?:我|忙|个忙)|麻烦(?:你|您)|给我(?!们?看看吗)|"
    r"我(?:想|要|需要)(?:让|请)?你|我们来|你(?:去|来)|把|(?:接下来|下一步|现在)(?:来|去|做|写|改|部署|修复|实现|开始))"
)
_OTHER_REQUEST = re.compile(
    r"(?:してください|して下さい|お願いします|してくれ)[。!！]?\Z|(?:해\s?줘|해\s?주세요|부탁(?:해|드립니다))[.!]?\Z"
)
_GOES_ON = re.compile(
    r"(?:(?:let's|you (?:can|may)) )?(?:go on|go ahead|carry on|continue|proceed|resume|keep (?:going|on|it up|at it))"
    r"(?:[\s,]+(?:then|now|please|thanks?|thank you|with (?:it|this|that)|like (?:this|that)|as (?:before|planned|"
    r"discussed|agreed)|from (?:here|there)|where (?:you|we) (?:left off|stopped|were)))*[\s.!…]*\Z"
    r"|(?:好的?[，,]?|谢谢[，,！!]?|那么?|请|你)*(?:继续|接着)(?:做|来|说|下去|吧)*[。.！!]?\Z"
    r"|(?:続けて|進めて)(?:ください|下さい|お願いします)?[。!！]?\Z|계속\s?(?:해\s?(?:줘|주세요)|하세요|진행해\s?(?:줘|주세요))[.!]?\Z",
    re.IGNORECASE,
)
_MOVES_ON = re.compile(
    _LEAD + r"(?:now(?:,)? (?:let's|lets|i want|i need|we|please|can you|could you)|next\b[ ,:]|next up|moving on|"
    r"let's move on|on to |new task|(?:now that|with) (?:that|this|it)(?:'s| is)? ?(?:done|finished|out of the way|"
    r"working|fixed)|"
    r"switching to|"
    r"接下来|下一步)",
    re.IGNORECASE,
)
_NOW = re.compile(r"(?:[a-z ]{0,24}[,.!] )?(?:now|next)\b", re.IGNORECASE)
_END = r"(?=\s*(?:[.,;!:…–—)\n。，！；-]|\Z|and (?:now|then)\b|please\b|for now\b|thanks?\b))"
_DROPPED = re.compile(
    r"(?:(?:ok(?:ay)?|no|hmm|oh|actually|wait|well|sorry|please|and|just|you can|let's)\b[\s,.!]*){0,4}(?:never "
    r"?mind|nvm|stop(?: it| "
    r"that| this| here| now| please| working(?: on (?:it|this|that))?| everything| right there)?|cancel(?: it| "
    r"that| this| everything| the "
    r"task)?|abort(?: it| that)?|forget (?:it|(?:about )?that)|scratch that|strike that|leave (?:it|that)(?: for "
    r"now)?|drop (?:it|that)|"
    r"skip (?:it|that)|don't bother|no need(?: to)?|not needed any ?more|no longer needed)"
    + _END
    + r"|算了|不用了|停下|取消吧|别做了",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|thanks?(?: you)?|cool|nice|awesome|yes|yep|yeah|super|excellent|wow|"
    r"good)\b[\s,.!]*){0,4}(?:(?:all |we're |i'm |"
    r"it's )?done|that(?:'s| is| was)? (?:works?|worked|it|all|perfect|great|fixed|solved|exactly what \w+ "
    r"\w+)|(?:it|this|everything|"
    r"all)(?:'s| is)? (?:works?|worked|working|fixed|done|good|great|perfect)|works(?: now| great| fine| "
    r"perfectly)?|(?:looks|all) good|"
    r"we're (?:good|all set)|all set|problem solved|solved|fixed|(?:good|great|nice|well) (?:job|work|done)|lgtm|"
    r"ship it|perfect)"
    r"(?: now| here| great| fine| perfectly| for (?:now|me|today))?"
    + _END
    + r"|搞定了|可以了|没问题了|完成了|好了[，,。！!]?谢谢",
    re.IGNORECASE,
)
_ALL_FINISHED = re.compile(r"\b(?:that's (?:all|it)|all done|we're (?:all )?done|nothing else)\b|就这样", re.IGNORECASE)
_THANKED = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|cool|awesome|nice)[\s,.!]*)*(?:thanks?|thank you|thx|ty|cheers|谢谢|感谢)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:but|except|however|not|only|if|unless|almost|until|when)\b|n't\b|\?|但|不过", re.IGNORECASE
)
_FOLLOWS_UP = re.compile(
    r"\b(?:also|it|that|this|them|too|instead|again|as well|same)\b|\A(?:and|use|make|change|set)\b", re.IGNORECASE
)

_APPROVAL_KEPT = re.compile(
    r"(?:\A|[,;(]\s*|\b(?:please|but|and|also|always)\s+|"
    r"(?=[先等]))(?P<what>ask (?:me )?(?:first |for (?:my )?(?:approval|"
    r"permission|confirmation) )?before|wait for my|"
    r"(?:don't|do not|never) [^.;\n]{1,100}? (?:until|before|unless|without) (?:i|my|asking|me)\b|check with me "
    r"before|get my (?:approval|ok|"
    r"go-ahead)|先(?:问|征求)我|等我(?:确认|批准|同意))",
    re.IGNORECASE,
)
_FORBIDS = re.compile(r"(?:do not|don't) (?!i\b|you\b|we\b|they\b|he\b|she\b|it\b)", re.IGNORECASE)
_APPROVAL_WORDS = ("ask", "wait", "don't", "do not", "never", "check with", "get my", "我")
"""One of these is in whatever that finds."""
_APPROVED = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|looks good|thanks?|fine|good)\b[\s,.!]*)*(?:yes|yep|yeah|yup|approved?|i "
    r"approve|go ahead|go for it|do it|proceed|you (?:may|"
    r"can)|confirmed|lgtm|ship it|sure|permission granted|green light|ok(?:ay)?|fine|no|nope|denied|rejected|"
    r"don't)\b|同意|批准|可以|确认|好的|是的|不行",
    re.IGNORECASE,
)
_DEFERRED_REPLY = re.compile(
    r"(?:(?:hmm+|ok(?:ay)?|well|um|uh)\b[\s,.]*)*(?:wait|hold on|hang on|one (?:sec|second|moment|minute)|give me "
    r"a|let me (?:think|check|see)|"
    r"i'll (?:think|check|get back|let you know)|not sure(?: yet)?|brb)\b[^\n]{0,60}\Z|稍等|等一下|我想想",
    re.IGNORECASE,
)

_AGREED = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|sounds good|oh)\b[\s,.!]*)*(?:yes|yep|yeah|yup|sure|approved|go ahead|go for "
    r"it|do it|please do|proceed|absolutely|"
    r"definitely|of course|ok(?:ay)?|sounds good|please)\b|好的?|可以|同意|是的|行",
    re.IGNORECASE,
)


class Closing(NamedTuple):
    how: Literal["finished", "dropped", "thanked"]
    is_all: bool = False


def sentences_in(text: str) -> list[str]:
    """A message's own sentences, without code, quotations and what a host wraps around them."""
    if len(text) > READ_BEGINNING_CHARS + READ_END_CHARS:
        text = f"{text[:READ_BEGINNING_CHARS]}\n{text[-READ_END_CHARS:]}"
    if "```" in text:
        text = _FENCE.sub("\n", text)
    if not text.strip():
        return []
    found = sentences_of(straight(unwrapped(text)))
    if len(found) > MAX_SENTENCES:
        found = found[: MAX_SENTENCES // 2] + found[-MAX_SENTENCES // 2 :]
    return [said for one in found if not one.startswith(">") and (said := _unmarked(one))]


def is_request(sentence: str) -> bool:
    """Whether a user asks for something to be done. What is asked to be told is a question."""
    if len(sentence) > LONGEST_READ_SENTENCE_CHARS:
        sentence = sentence[:LONGEST_READ_SENTENCE_CHARS]
    if _goes_on(sentence):
        return False
    if not sentence.isascii() and (_CHINESE_REQUEST.match(sentence) or _OTHER_REQUEST.search(sentence)):
        return not _is_chinese_question(sentence)
    dropped = _DROPPED.match(sentence)
    if dropped and not words_of(sentence[dropped.end() :]):
        return False
    lead = _BEFORE_REQUEST.match(sentence)
    rest = sentence[lead.end() :] if lead else sentence
    if _TELL.match(rest):
        return False
    if asked := _ASKED_FOR.match(rest) or _ASKED_FOR.match(sentence):
        return not _TELL.match(asked["what"])
    if wished := _WISHED.match(rest) or _WISHED.match(sentence):
        return bool(_IMPERATIVE.match(wished["what"])) and not _TELL.match(wished["what"])
    return bool(_IMPERATIVE.match(rest)) and not sentence.rstrip().endswith("?")


def is_told_rather_than_done(request: str) -> bool:
    """Whether a text may be all that a request asks for."""
    lead = _BEFORE_REQUEST.match(request)
    rest = request[lead.end() :] if lead else request
    asked = _ASKED_FOR.match(rest) or _WISHED.match(rest)
    return bool(_TOLD.match(asked["what"] if asked else rest))


def asks(sentence: str) -> bool:
    """Whether a user's sentence is a question. "Don't deploy" begins like one."""
    return is_asking(sentence) and ("?" in sentence or not _FORBIDS.match(sentence))


def is_question(sentence: str, *, is_asked: bool) -> bool:
    """Whether a sentence wants an answer in words."""
    if not is_asked:
        lead = _BEFORE_REQUEST.match(sentence)
        return bool(_TELL.match(sentence, lead.end() if lead else 0)) and len(sentence) > 12
    return len(sentence) >= 4 and not is_boilerplate(sentence) and (len(sentence) > 12 or bool(words_of(sentence)))


def moves_on(sentences: list[str]) -> bool:
    """Whether a request says that what came before it is behind us."""
    return any(_MOVES_ON.match(one) or (_NOW.match(one) and is_request(one)) for one in sentences[:3])


def closing_in(sentences: list[str]) -> Closing | None:
    """Whether a user says at the beginning that the task is done, or not wanted any more."""
    for sentence in sentences[:2]:
        if _DROPPED.match(sentence):
            return Closing("dropped")
        if _FINISHED.match(sentence) and not _DOUBTED.search(sentence):
            return Closing("finished", bool(_ALL_FINISHED.search(sentence)))
    if sentences and _THANKED.match(sentences[0]) and not _DOUBTED.search(sentences[0]):
        return Closing("thanked", bool(_ALL_FINISHED.search(" ".join(sentences[:3]))))
    return None


_CANCELS = re.compile(
    r"(?:please |ok(?:ay)?,? |actually,? |no,? |and |oh,? ){0,3}(?:forget|never ?mind|cancel|drop|skip|scrap|call off)"
    r"(?: about)? (?:the|that|this|my|our|all) (?P<what>[^.!?\n]{3,80})[.!]*\Z",
    re.IGNORECASE,
)


def taken_back(sentences: list[str]) -> list[str]:
    """What they want no more, by its telling words; none where they take nothing back by name."""
    for sentence in sentences:
        correction = correction_in(sentence, "user")
        if correction is not None and correction.kind == "retract" and correction.target:
            return words_of(correction.target)
        if found := _CANCELS.match(straight(sentence)):
            return words_of(found["what"])
    return []


def is_follow_up(text: str) -> bool:
    """Whether a request changes a task rather than set one."""
    return len(text) <= FOLLOW_UP_CHARS and bool(_FOLLOWS_UP.search(text))


def approval_kept(sentence: str) -> str:
    """What a user wants to be asked about first; "" where nothing."""
    lower = sentence.lower()
    found = any(word in lower for word in _APPROVAL_WORDS) and _APPROVAL_KEPT.search(sentence)
    return sentence[found.start("what") :] if found else ""


def is_approval(sentence: str) -> bool:
    """Whether a user decides: whatever was waiting for that waits no more."""
    return bool(_APPROVED.match(sentence)) or _goes_on(sentence)


def is_agreement(sentences: list[str]) -> bool:
    """Whether a short reply says yes."""
    if not sentences or len(" ".join(sentences)) > FOLLOW_UP_CHARS:
        return False
    return bool(_AGREED.match(sentences[0])) or _goes_on(sentences[0])


def is_reply(stated: list[str]) -> bool:
    """Whether what a user states, their own questions aside, answers what they were asked."""
    if not stated or _DEFERRED_REPLY.match(stated[0]):
        return False
    return any(is_approval(one) or not is_boilerplate(one) for one in stated)


def _goes_on(sentence: str) -> bool:
    """Whether nothing is said but "go on": no task, though it agrees to one that was offered."""
    if len(sentence) > FOLLOW_UP_CHARS:
        return False
    lead = _BEFORE_REQUEST.match(sentence)
    return bool(_GOES_ON.match(sentence, lead.end() if lead else 0) or _GOES_ON.match(sentence))


def _unmarked(sentence: str) -> str:
    bullet = _BULLET.match(sentence)
    return sentence[bullet.end() :] if bullet else sentence


def _is_chinese_question(sentence: str) -> bool:
    return sentence.rstrip().endswith(("吗？", "吗?", "呢？", "什么？", "怎么办？"))
