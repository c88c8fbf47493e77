"""How an agent says what it has done, what it will do and what it waits for."""

from __future__ import annotations

import re
from typing import NamedTuple

from offbook.rules.state.records import words_of
from offbook.search.substance import is_asking, is_boilerplate

LONGEST_READ_SENTENCE_CHARS = 500
SHORTEST_ANSWER_CHARS = 2

_OUTWARD = (
    "sent emailed mailed messaged replied posted published deployed redeployed released shipped deleted removed "
    "dropped destroyed paid "
    "charged transferred refunded purchased bought ordered booked reserved cancell?ed pushed merged submitted "
    "uploaded shared "
    "invited notified scheduled approved rejected subscribed unsubscribed registered reverted restarted "
    "provisioned migrated "
    "granted revoked archived filed opened closed signed tweeted called backed.up restored renewed signed.up"
)
_MINOR = (
    "created written wrote saved committed updated added edited changed fixed implemented configured enabled "
    "disabled installed "
    "renamed moved copied refactored replaced generated built tagged applied patched rewritten rewrote set.up recorded "
    "cleaned.up drafted completed finished imported exported"
)
_OUTWARD_VERB = r"(?:" + "|".join(_OUTWARD.split()) + r")"
_VERB = r"(?:" + "|".join((*_OUTWARD.split(), *_MINOR.split())) + r")"
_HOW = r"(?: now| just| also| already| successfully| since| then| finally| both| all)*"
_LEAD = (
    r"(?:(?:ok(?:ay)?|great|perfect|good news|good|yes|alright|all right|update|and|also|so|now|sure|then|finally|✅|"
    r"status)(?!\w)[\s,.:;!–—-]*+){0,4}"
)
_REPORT = re.compile(
    rf"{_LEAD}(?:(?:i|we)(?:'ve| have){_HOW} |(?:i|we){_HOW} |(?:successfully |just )?(?=\w+ (?:the|an?|my|your|our|"
    rf"all|it|them|this|that|to|both|(?-i:[A-Z0-9`\"]))\b))(?P<verb>{_VERB})\b(?!-)(?! (?:into|sure|out of)\b)",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    rf"{_LEAD}[^,;:?\n]{{1,120}}? (?:(?:has|have){_HOW} been{_HOW}|(?:was|were) successfully|(?:is|are) now) "
    rf"(?P<verb>{_VERB}|live)\b(?!-)",
    re.IGNORECASE,
)
_PASSIVE_WORDS = (" been ", " successfully ", " now ")
"""One of these is in whatever that finds."""
_CHINESE_REPORT = re.compile(
    r"(?:我)?(?:已经?|已)(?:成功)?(?:发送|部署|删除|支付|提交|推送|创建|发布|完成|保存|写入|更新|修复|合并|安装|预订)"
)
_DONE = re.compile(
    r"(?:(?:all|and|it's|that's|task|everything is|everything's|ok|okay|great|perfect|now|yes|the (?:task|work|"
    r"job|whole thing) is)\b[\s,.!]*){0,4}"
    r"(?:done|completed|complete(?=\s*(?:[.!:,✅–—]|\Z))|"
    r"finished)(?!\w)(?! (?:by|with|when|once|if|until|yet|in \d|soon|the \w+ "
    r"part))[\s:.!,–—✅-]*(?P<rest>.*)|(?:已)?完成[了：:。！]?",
    re.IGNORECASE | re.DOTALL,
)
_UNTRUE = re.compile(
    r"\b(?:not|never|unable|cannot|without|failed|would|could|should|might|may|if|once|after|when|whenever|before|"
    r"until|unless|almost|"
    r"nearly|you|whether|assuming|will|yet|attempted|tried|still|no)\b|n't\b|没有?|未",
    re.IGNORECASE,
)
_NOT_YET = re.compile(
    r"\b(?:not|still|yet|haven't|hasn't|didn't|couldn't|unable|failed|will|going to)\b|n't\b|i'll\b", re.IGNORECASE
)
_TELLS_DONE = re.compile(
    r"\b(?:here(?:'s| is| are)|attached|below|ready|done|complete|completed|finished|found|ran|pass(?:es|ed)?|"
    r"works|succeeded|is up|"
    r"are up|sent|paid|built|wrote|written|made|live|\w{3,}ed)\b|已|完成",
    re.IGNORECASE,
)

_WILL = re.compile(
    rf"{_LEAD}(?:(?:in the meantime|meanwhile|once [^,]{{1,80}}|when [^,]{{1,80}}|after [^,]{{1,80}}|as soon as "
    rf"[^,]{{1,80}}|tomorrow|later|first|next)[, ]+)?"
    r"(?:i'll|i will|i shall|i'm going to|i am going to|i'm about to|i promise(?: to| i'll| that i'll)|i "
    r"can promise to)\b"
    r"(?: now| then| also| just| immediately| definitely| certainly| go ahead and| first| next)*\s+(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_LET_ME = re.compile(
    rf"{_LEAD}let me (?!know\b)(?P<what>.*?\b(?:get back|come back|report|let you know|follow up|update you|tell "
    rf"you)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_CHINESE_WILL = re.compile(
    r"(?:好的?[，,。]?)?(?:稍后|之后|然后|完成后|等.{1,20}?后[，,]?)?我(?:会|将|马上|稍后|之后)(?!不)(?P<what>.{2,})",
    re.DOTALL,
)
_NO_PROMISE = re.compile(
    r"(?:be (?!monitoring|sending|checking|watching|running|back)|need\b|assume|have to\b|wait\b|remember|"
    r"note\b|keep (?:that|this|it|these)\b|"
    r"admit|leave\b|use\b|not\b|never\b|avoid|stop\b|explain|show you|walk you|say\b|start by|go with|take that|"
    r"give you a (?:brief|quick|short)|"
    r"stick\b|respect|treat\b|refer\b|call (?:it|this|that)\b|love\b|always\b)",
    re.IGNORECASE,
)
_OFFERED = re.compile(
    r"\bif (?:you|that|needed|necessary|this)\b|\bwould you like\b|\bunless you\b|\bjust say\b|\blet me know\b(?= "
    r"if| when| which| what)",
    re.IGNORECASE,
)
_DEFERRED = re.compile(
    r"\b(?:later|tomorrow|tonight|once|when|whenever|after|as soon as|until|get back|come back|let you know|"
    r"remind|follow up|update you|"
    r"ping|notify|monitor|keep an eye|every|by (?:mon|tues|wednes|thurs|fri|satur|sun|noon|eod|end|tomorrow|"
    r"tonight|\d)|in (?:an?|the|\d+|a few|"
    r"some) (?:\w+ )?(?:minutes?|hours?|days?|weeks?|morning|afternoon|evening)|next (?:week|month|time)|on "
    r"(?:mon|tues|wednes|thurs|fri|satur|"
    r"sun)|at \d)|稍后|之后|明天|等",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\A(?:report|share)\b|\b(?:(?:and|then|will) report|report (?:back|to you|on|how|what|whether)|get back|come "
    r"back|let you know|follow up|update you|tell you|remind|ping you|notify you)\b|告诉你|汇报|通知你|提醒",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"[,\s]+(?:once|when|whenever|after|as soon as|until|before|while|because|since|so that)\b.*|\Aonce [^,]{1,80}, ",
    re.IGNORECASE | re.DOTALL,
)
_WAITS = re.compile(
    r"(?:[^.;\n]{0,60}?\b)?(?:(?:i'm |i am |i'll |i will |still |now )*(?:waiting|wait|pending|blocked|holding "
    r"off)\b[^.;\n]{0,60}?\b(?:approval|confirmation|"
    r"go-ahead|permission|sign-off|decision|your (?:ok|okay|answer|reply|input|review))|please (?:confirm|approve|"
    r"authori[sz]e)|(?:needs?|requires?|require) "
    r"(?:your |an? |the )?(?:approval|confirmation|go-ahead|permission|sign-off)|let me know (?:if|whether|which|"
    r"when|how|what) (?:i should|you(?:'d| would) "
    r"(?:like|prefer|rather) me to|to )|请确认|等待(?:你|您)的?(?:确认|批准))",
    re.IGNORECASE,
)
WAITS_FOR_APPROVAL = re.compile(
    r"\b(?:approval|confirmation|permission) (?:is )?(?:required|needed|pending)|\b(?:awaiting|waiting for|"
    r"requires?|needs?|pending) (?:your |user |human |manual |an? )*"
    r"(?:approval|confirmation)|[\"']?status[\"'>: ]{1,4}(?:approval|pending_approval|approval-pending|awaiting)",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?:(?:does|do) (?:that|this|it) (?:make sense|help|sound|look)|make sense|sound(?:s)? good|anything else|is "
    r"there anything else|how can i help|what else|"
    r"what (?:would you like|do you want) (?:to do )?next|right\?|ok(?:ay)?\?|why\?|how\?|what (?:changed|"
    r"happened|does this mean|is this)\?|want to know)",
    re.IGNORECASE,
)
# The longer of two that begin alike comes first, as what was matched is not tried again.
_ACKNOWLEDGED = re.compile(
    r"(?:(?:good question|great question|right away|ok(?:ay)?|sure|great|good|right|absolutely|certainly|of course|yes|"
    r"understood|got it|alright|thanks?|noted|will do|on it|no problem|happy to help|sorry|one moment|one sec|hold on|"
    r"working on it|looking into (?:it|this|that)|checking(?: now)?|i'm on it|just a moment|give me a (?:moment|minute|"
    r"second)|let me\b[^.!?\n]*+|now let me\b[^.!?\n]*+|i'll\b[^.!?\n]*+|i will\b[^.!?\n]*+|"
    r"好的?|收到|稍等|明白了?|没问题)"
    r"(?!\w)[\s,.!:;…。！，-]*+){1,8}+\Z",
    re.IGNORECASE,
)

_OFFERS = re.compile(
    rf"{_LEAD}(?:(?:should|shall|may|can|could) (?:i|we)\b|(?:do you|would you|you) (?:want|like) me to\b|want me "
    rf"to\b|would it be ok(?:ay)? if i\b|"
    r"ready (?:for me )?to\b|(?:要|需要)我)",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(r"\b(?:don't know|not sure|no idea|unclear|need to (?:check|look))\b", re.IGNORECASE)
_OUTWARD_WORD = re.compile(rf"\b(?:{_OUTWARD_VERB}|live)\b", re.IGNORECASE)
_WAITING_WORDS = (
    "wait",
    "pending",
    "blocked",
    "holding",
    "confirm",
    "approv",
    "authori",
    "need",
    "requir",
    "let me know",
    "确认",
    "等待",
)
"""One of these is in whatever `_WAITS` finds."""
_YES_OR_NO = re.compile(r"(?:yes|no|yep|nope|correct|是的?|不是|没有)\s*[.!。！]?\Z", re.IGNORECASE)


class Report(NamedTuple):
    text: str
    is_outward: bool
    """It changed something for others, or something that cannot be undone."""


class Promise(NamedTuple):
    text: str
    words: list[str]
    is_deferred: bool
    """It was not to be done at once."""
    is_telling: bool
    """To tell the user something: only words keep it."""


class Spoken(NamedTuple):
    """A sentence of an agent, and what it is."""

    text: str
    is_asking: bool = False
    is_waiting: bool = False
    promise: Promise | None = None
    report: Report | None = None
    says_done: bool = False
    """All is done, whatever that was."""


def spoken(sentence: str) -> Spoken:
    if is_asking(sentence):
        return Spoken(sentence, is_asking=True)
    said = sentence[:LONGEST_READ_SENTENCE_CHARS]
    if promise := _promise(said):
        return Spoken(sentence, promise=promise)
    done = _DONE.match(said)
    is_done = done is not None and not _NOT_YET.search(said)
    report = _report(said, done["rest"] or "" if done and is_done else None)
    return Spoken(sentence, is_waiting=_may_wait(said), report=report, says_done=is_done)


def report_in(sentence: str) -> Report | None:
    """What a sentence says was done."""
    return spoken(sentence).report


def promise_in(sentence: str) -> Promise | None:
    return spoken(sentence).promise


def tells_done(said: Spoken) -> bool:
    """Whether it speaks of something that is done now: what was promised may be that."""
    if said.is_asking or said.promise:
        return False
    return bool(_TELLS_DONE.search(said.text)) and not _NOT_YET.search(said.text)


def offers(question: str) -> bool:
    """Whether it asks to be allowed to do something: a yes makes that the task."""
    return bool(_OFFERS.match(question))


def asks_user(said: Spoken) -> bool:
    """Whether it asks something that the user is to answer."""
    if not said.is_asking or len(said.text) <= SHORTEST_ANSWER_CHARS:
        return False
    return not _ASIDE.match(said.text) and not is_boilerplate(said.text)


def is_answer(said: Spoken) -> bool:
    """Whether it says something, rather than ask, promise or acknowledge."""
    if said.is_asking or said.is_waiting or said.promise or len(said.text) < SHORTEST_ANSWER_CHARS:
        return False
    return bool(_YES_OR_NO.match(said.text)) or not (_ACKNOWLEDGED.match(said.text) or is_boilerplate(said.text))


def leaves_open(said: Spoken) -> bool:
    """Whether it puts something off, or says that it is not known."""
    return said.promise is not None or bool(_UNKNOWN.search(said.text))


def _report(said: str, rest: str | None) -> Report | None:
    if rest is not None:
        rest = rest.strip()
        return Report(rest, bool(_OUTWARD_WORD.search(rest))) if words_of(rest) else None
    if _CHINESE_REPORT.match(said) and not _UNTRUE.search(said[:6]):
        return Report(said, is_outward=True)
    found = _REPORT.match(said)
    if found is None and any(word in said for word in _PASSIVE_WORDS):
        found = _PASSIVE.match(said)
    if found is None or _UNTRUE.search(said, 0, found.end()) or len(words_of(said)) < 2:
        return None
    return Report(said, bool(_OUTWARD_WORD.fullmatch(found["verb"])))


def _promise(said: str) -> Promise | None:
    found = _WILL.match(said) or _LET_ME.match(said) or _CHINESE_WILL.match(said)
    if found is None or _NO_PROMISE.match(found["what"]) or _OFFERED.search(said):
        return None
    is_telling = bool(_TELLING.search(found["what"]))
    words = words_of(_CONDITION.sub("", found["what"]))
    if not words and not is_telling:
        return None
    return Promise(said, words or words_of(said), bool(_DEFERRED.search(said)), is_telling)


def _may_wait(said: str) -> bool:
    lower = said.lower()
    return any(word in lower for word in _WAITING_WORDS) and bool(_WAITS.match(said))
