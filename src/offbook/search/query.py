"""What a message asks for: a bounded query instead of a whole conversation.

An embedding of "Do you remember what Caroline said about the recipe?" lies nearer to other questions than to the
recipe. So the wrapping goes, and of a short question the words that only make it a question.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from offbook.model.types import Value
from offbook.search.spotting import unwrapped
from offbook.search.substance import GREETING, is_asking, is_question, is_recalling, sentences_of, straight
from offbook.search.times import QueryTimes, without_times
from offbook.search.words import MARKS, STOP_WORDS, query_terms

if TYPE_CHECKING:
    pass


MAX_QUERY_CHARS = 2000
READ_CHARS = 8000
"""Of each end of a message. What stands between is neither the opening nor the ask."""
HEAD_CHARS = 700
"""Of a query that must be cut; the end of a long message usually holds the ask, so it gets the rest."""
MAX_SENTENCES = 6
SUBSTANTIAL_TERMS = 3
LONGEST_BARE_QUESTION_CHARS = 300
"""Longer messages say enough themselves to be searched for as they are."""
MAX_NAMES = 500

Asked = Literal["user", "assistant"]

_ROLES = frozenset(("user", "assistant", "system", "tool", "human", "ai", "bot", "agent", "me", "you", "i"))
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]")
# A vowel sign is no letter to Python, and no end of a word to anybody.
_WORD = re.compile(
    rf"[^\W_](?:[\w{MARKS}'’.@&+/:-]*[\w{MARKS}])?(?:\+{{1,2}}|#)?|[^\w\s,.;:!?()\[\]{{}}\"'’…。！？，、；：؟*_-]+"
)
_KEPT_IN_FOCUS_TEXT = (
    "about above after against before below between during for from in no not off on out over under until with "
    "without own more most"
)
_KEPT_IN_FOCUS = frozenset(_KEPT_IN_FOCUS_TEXT.split())
_DROPPED_FROM_FOCUS = (STOP_WORDS - _KEPT_IN_FOCUS) | frozenset(("please", "ago"))
_EDGE_WORDS = _KEPT_IN_FOCUS - {"not", "no", "without", "own", "more", "most"}
_CONTRACTED = re.compile(r"(?:'(?:s|ll|re|ve|d|m)|n't)\Z", re.IGNORECASE)
# What introduces the thing asked for. The verb of deciding or suggesting stays: it says what kind of thing.
_RECALLING = re.compile(
    r"\b(?:(?:do|don't|can|could|did|would)\s+you\s+(?:still\s+|even\s+|happen\s+to\s+)?(?:remember|recall|know)(?:\s+(?:when|if|"
    r"what|how|who|where|which|about|anything\s+about))?|(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:tell|remind)\s+me|"
    r"(?:please\s+)?(?:remind|tell)\s+me(?:\s+(?:again|about|of|what|when|where|who|which|how|if|whether))?|i\s+(?:can't|"
    r"don't|cannot)\s+(?:remember|recall)|i\s+forgot|(?:that|which|what|as)?\s*(?:did\s+)?i\s+(?:ever\s+|already\s+|just\s+)?(?:told|"
    r"tell|mentioned|mention|said|say)(?:\s+(?:to\s+)?you)?(?:\s+(?:about|earlier|before|last\s+time))?|(?:that\s+|which\s+)?we\s+"
    r"(?:were\s+|have\s+been\s+|had\s+been\s+)?(?:talked|talking|discussed|discussing|spoke|speaking|chatted)(?:\s+about)?|"
    r"(?:did|have)\s+we\s+(?:ever\s+)?(?:talk|talked|discuss|discussed|speak|spoken)(?:\s+about)?|(?:that\s+|which\s+)?you\s+"
    r"(?:had\s+|have\s+)?(?:told|tell|said|say|mentioned|mention)(?:\s+(?:to\s+)?me)?(?:\s+about)?|the\s+last\s+time|last\s+time|earlier|previously|"
    r"what\s+do\s+you\s+(?:know|remember)\s+about|remember(?:\s+(?:when|that|what|how))?|recall)\b",
    re.IGNORECASE,
)
_BOILERPLATE_ELSEWHERE = re.compile(
    r"你?还?(?:记得|記得)|你知道|我(?:之前|上次)?(?:说|提到|告诉你?)[过的了]*|我们(?:之前|上次)?(?:说|聊|谈|讨论)[过的了到]*|上次|之前|我的|请问|"
    r"(?:是)?什么(?:时候|地方)?|哪里|哪个|怎么|多少|[吗嗎呢吧啊]|覚えて(?:い|る|ます|います|いる)*か?|私の|前回|何|(?:です|ます|ました|でした)か|"
    r"기억(?:하고\s?있|나|하|해)\S{0,4}|내가|나의|지난번에?|무엇|뭐|هل|تتذكر(?:ين)?|ما\s+هو|ما\s+هي|ماذا|[?？؟。！!]"
)

_SAID = (
    r"(?:say|said|tell|told|mention|mentioned|ask|asked|share|shared|write|wrote|want|wanted|decide|decided|choose|"
    r"chose|promise|promised)"
)
_ADVISED = (
    r"(?:suggest|suggested|recommend|recommended|say|said|tell|told|propose|proposed|advise|advised|mention|mentioned|"
    r"write|wrote|give|gave|given|explain|explained|list|listed|promise|promised|answer|answered|come\s+up\s+with|think|"
    r"thought|call|describe|described|draft|drafted|offer|offered|share|shared)"
)
_USER_SAID = re.compile(
    rf"\b(?:did|do|have|had|that|what|which|as|when|where|who)\s+i\s+(?:ever\s+|already\s+|just\s+)?{_SAID}\b"
    r"|\bi(?:'ve|\s+have|\s+had)?\s+(?:already\s+)?(?:told\s+you|mentioned|said)\b|我(?:之前|上次)?(?:说|提|告诉你)|私が言|내가\s?말|قلت\s+لك",
    re.IGNORECASE,
)
_ASSISTANT_SAID = re.compile(
    rf"\b(?:did|have|had|do|would)\s+you\s+(?:ever\s+|already\s+|just\s+)?{_ADVISED}\b|\byou(?:'ve|\s+have|\s+had|'d)?\s+"
    r"(?:just\s+|already\s+)?(?:said|told\s+me|suggested|recommended|mentioned|proposed|advised|gave\s+me|wrote|listed|promised|"
    r"drafted|explained|described)\b|\byour\s+(?:last\s+|previous\s+|earlier\s+|first\s+)?(?:suggestions?|recommendations?|advice|"
    r"answers?|proposals?|reply|replies|explanation|list)\b|你(?:之前|上次)?(?:说|建议|推荐|提到)|あなたが(?:言|勧|提案)|네가\s?(?:말|추천)",
    re.IGNORECASE,
)
_ABOUT_ME = re.compile(r"\b(?:my|mine|am\s+i|do\s+i|did\s+i|have\s+i|was\s+i)\b|我的|私の|僕の|나의|제\s", re.I)


class Query(Value, frozen=True):
    """What is searched for, in the forms the retrievers need."""

    text: str
    """What was asked, without its wrapping, at most MAX_QUERY_CHARS."""
    focus: str
    """What it is about: what is embedded. Never empty where `text` is not."""
    sentences: tuple[str, ...]
    """Its substantial sentences, the most specific first: a long message asks for several things."""
    names: tuple[str, ...]
    """The speakers it names, as given."""
    asks_about: Asked | None
    """Whose words are asked for."""
    is_question: bool
    wants_memory: bool
    """It refers to what was said before (D9)."""


def read_query(text: str, names: Collection[str] = ()) -> Query:
    """Read a message as a query. `names` are the speakers known."""
    said = _bounded(unwrapped(_both_ends(text)))
    plain = straight(said)
    asks = is_question(said)
    wants = is_recalling(plain)
    named, without_names = _names_in(plain, names)
    sentences = sentences_of(said)
    return Query(
        text=said,
        focus=_focus(plain, without_names, wants) if _is_bare_question(plain, wants) else said,
        sentences=_substantial(sentences),
        names=named,
        asks_about=_asked_about(plain) if asks or wants else None,
        is_question=asks,
        wants_memory=wants,
    )


def _both_ends(text: str) -> str:
    return text if len(text) <= 2 * READ_CHARS else f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"


def _bounded(text: str) -> str:
    """Whole sentences from the beginning and from the end."""
    if len(text) <= MAX_QUERY_CHARS:
        return text
    sentences = sentences_of(text)
    first = _taken(sentences, HEAD_CHARS) or [text[:HEAD_CHARS]]
    tail_chars = MAX_QUERY_CHARS - sum(len(sentence) + 1 for sentence in first) - 2
    last = _taken(sentences[::-1], tail_chars)[::-1] or [text[-tail_chars:]]
    return f"{' '.join(first)} … {' '.join(last)}"[:MAX_QUERY_CHARS]


def _taken(sentences: list[str], max_chars: int) -> list[str]:
    taken: list[str] = []
    chars = 0
    for sentence in sentences:
        chars += len(sentence) + 1
        if chars > max_chars:
            break
        taken.append(sentence)
    return taken


def _substantial(sentences: list[str]) -> tuple[str, ...]:
    specific = {sentence: len(query_terms(sentence)) for sentence in sentences if not GREETING.fullmatch(sentence)}
    ranked = sorted(specific, key=lambda sentence: (-specific[sentence], -len(sentence)))
    kept = [sentence for sentence in ranked if specific[sentence] >= SUBSTANTIAL_TERMS]
    return tuple((kept or ranked[:1])[:MAX_SENTENCES])


def _names_in(said: str, names: Collection[str]) -> tuple[tuple[str, ...], str]:
    """The names found, in their order, and the text without them."""
    spelt: dict[str, str] = {}
    for name in names:
        bare = straight(name).strip()
        if len(bare) > 1 and bare.lower() not in _ROLES and len(spelt) < MAX_NAMES:
            spelt.setdefault(bare.lower(), name)
    if not spelt:
        return (), said
    longest_first = sorted(spelt, key=len, reverse=True)
    pattern = re.compile("|".join(_name_pattern(name) for name in longest_first), re.IGNORECASE)
    found = [spelt[key] for match in pattern.finditer(said) if (key := _name_key(match[0])) in spelt]
    return tuple(dict.fromkeys(found)), pattern.sub(" ", said)


def _name_pattern(name: str) -> str:
    """A name in a script without spaces may stand anywhere."""
    if _UNSPACED.search(name):
        return re.escape(name)
    return rf"(?<!\w){re.escape(name)}(?:'s)?(?!\w)"


def _name_key(found: str) -> str:
    return found.lower().removesuffix("'s")


def _is_bare_question(said: str, wants: bool) -> bool:
    """Whether nothing but a short question was sent: its words of asking are in the way."""
    if len(said) > LONGEST_BARE_QUESTION_CHARS:
        return False
    sentences = [sentence for sentence in sentences_of(said) if not GREETING.fullmatch(sentence.strip(" ,.!"))]
    return all(is_asking(sentence) or (wants and is_recalling(sentence)) for sentence in sentences)


def _focus(said: str, without_names: str, wants: bool) -> str:
    """The words of content; where asking or names are all there is, more and more of what was said."""
    asked = without_names
    if not asked.isascii():
        asked = _BOILERPLATE_ELSEWHERE.sub(" ", asked)
    shorter = _content(_RECALLING.sub(" ", asked)) if wants else _content(asked)
    return shorter or _content(asked) or _content(said) or said


def _content(said: str) -> str:
    kept = [word for found in _WORD.findall(said) if (word := _CONTRACTED.sub("", found)) and _is_content(word)]
    while kept and kept[0].lower() in _EDGE_WORDS:
        kept.pop(0)
    while kept and kept[-1].lower() in _EDGE_WORDS:
        kept.pop()
    return " ".join(kept)


def _is_content(word: str) -> bool:
    return word.lower() not in _DROPPED_FROM_FOCUS or (len(word) > 1 and word.isupper())


def _asked_about(said: str) -> Asked | None:
    if _USER_SAID.search(said):
        return "user"
    if _ASSISTANT_SAID.search(said):
        return "assistant"
    referring = [sentence for sentence in sentences_of(said) if is_asking(sentence) or is_recalling(sentence)]
    return "user" if any(_ABOUT_ME.search(sentence) for sentence in referring) else None


# ── One question to memory, and what one agent's memory had of it ──


# ── A query as the speaker would have said it: what is embedded ──


def as_spoken(query: Query) -> str:
    """The query with speakers' names as "I" and "my"; without names, what it is about."""
    if not query.names:
        return query.focus if query.wants_memory else query.text
    names = "|".join(sorted((re.escape(name) for name in query.names), key=len, reverse=True))
    owned = re.sub(rf"\b(?:{names})['’]s?(?!\w)", "my", query.text, flags=re.IGNORECASE)
    return re.sub(rf"\b(?:{names})\b", "I", owned, flags=re.IGNORECASE)


SAYS_NOTHING = frozenset(
    query_terms("happen happened talk talked discuss discussed say said tell told do did done go going mention chat")
)
"""Beside a time they ask for whatever there was."""


def searched_terms(query: Query, times: QueryTimes, names: Collection[str]) -> list[str]:
    """The words to look for: not the speakers, who are known by name, nor the time, which is known as one. None,
    where a time is all that is asked for ("what did we talk about last Tuesday?")."""
    if times == QueryTimes():
        return _without_names(query_terms(query.focus), query)
    # The focus has lost the small words that make a time: it is taken out of what was asked.
    rest = read_query(without_times(query.text, times), names)
    terms = [term for term in query_terms(rest.focus) if term not in SAYS_NOTHING]
    if terms or not times.ranges:
        events = {term for bound in times.bounds for term in query_terms(bound.event)}
        others = [term for term in terms if term not in events]
        return _without_names(others or terms or query_terms(query.focus), query)
    return []


def _without_names(terms: list[str], query: Query) -> list[str]:
    names = {term for name in query.names for term in query_terms(name)}
    return [term for term in terms if term not in names] or terms
