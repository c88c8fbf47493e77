"""What says something, and what only speaks about memory (D7).

An archive fills with "do you remember …?" and "I have no record of …". They resemble a later question more than the
answer does, so recall must know them.
"""

from __future__ import annotations

import re

from offbook.retrieval.phrases import GREETING, RECALL, is_asking, sentences_of, straight

READ_CHARS = 4000
"""What a message is about shows in its beginning."""
READ_QUESTION_CHARS = 800
"""What a message asks shows in its end."""
LONGEST_DENIAL_CHARS = 400
LONGEST_BOILERPLATE_CHARS = 120
LONGEST_MEMORY_QUESTION_CHARS = 300
SUBSTANTIAL_CHARS = 60
"""A sentence of this length beside a question states something."""
WIDE_CHARS = 3
"""A Chinese or Japanese character says about as much as three Latin letters."""

_KNOWN = (
    r"(?:information|info|memory|memories|record|records|recollection|details?|context|knowledge|history|notes?|"
    r"mention|trace|anything|prior\s+conversations?|previous\s+conversations?|past\s+conversations?)"
)
_DENIAL = re.compile(
    r"\b(?:"
    r"(?:i|we)\s+(?:currently\s+|actually\s+)?(?:don't|do\s+not|didn't|did\s+not)\s+(?:currently\s+|actually\s+|"
    r"seem\s+to\s+"
    r"|appear\s+to\s+)?(?:have|see|find|possess|retain|keep|store)\s+(?:[\w-]+\s+){0,4}" + _KNOWN + r"\b"
    r"|(?:i|we)\s+(?:have|had|see|find|found)\s+no\s+(?:[\w-]+\s+){0,3}" + _KNOWN + r"\b"
    r"|i\s+(?:don't|do\s+not|can't|cannot|can\s+not|am\s+unable\s+to|am\s+not\s+able\s+to)\s+(?:actually\s+|"
    r"really\s+|"
    r"seem\s+to\s+|specifically\s+)?(?:recall|remember)\b"
    r"|i'm\s+(?:unable|not\s+able)\s+to\s+(?:recall|remember|access\s+(?:[\w-]+\s+){0,3}(?:conversations?|"
    r"memory|history))"
    r"|(?:i|we)\s+(?:couldn't|could\s+not|can't|cannot|wasn't\s+able\s+to|was\s+unable\s+to|didn't|did\s+not)\s+"
    r"(?:find|locate|retrieve)\s+(?:any\s+|anything|nothing)"
    r"|as\s+an\s+ai(?:\s+[\w-]+){0,3},?\s+i\s+(?:don't|do\s+not|cannot|can't)\s+(?:[\w-]+\s+){0,3}"
    r"(?:remember|recall|retain|memory|memories|access|store)"
    r"|i\s+(?:have|had)\s+no\s+(?:idea|way\s+of\s+knowing|memory)\b"
    r"|(?:it\s+(?:looks|seems|appears)\s+(?:like|that|as\s+if)|unfortunately,?)\s+i\s+(?:don't|"
    r"do\s+not)\s+(?:\w+\s+){0,2}have\b"
    r"|i\s+(?:don't|do\s+not)\s+know\s+(?:what|which|who|where|when|anything|about)\b"
    r"|you\s+haven't\s+(?:told|mentioned|shared)|you\s+(?:have\s+not|never)\s+(?:told\s+me|mentioned|shared)"
    r"|(?:there's|there\s+is|there\s+are)\s+no\s+(?:record|mention|memory|memories|information)\b"
    r"|(?:nothing|no\s+results?)\s+(?:was\s+|were\s+)?(?:found|comes?\s+up|in\s+my\s+memory)"
    r"|(?:this|our)\s+(?:is|seems\s+to\s+be|appears\s+to\s+be)\s+(?:the\s+)?(?:first|start\s+of\s+our)\s+"
    r"(?:conversation|message|time)"
    r")"
    r"|我(?:没有|沒有|不)(?:[^。！？\n]{0,8})(?:记录|記錄|记忆|信息|資訊|资料|记得|記得|印象)|(?:没有|未)(?:找到|查到)|不记得|想不起来"
    r"|覚えて(?:いません|ない)|記憶(?:に|が)(?:ありません|ない)|記録(?:が|は)(?:ありません|ない|見つかり)|見つかりません|情報(?:が|は)ありません"
    r"|기억(?:이|나지)?\s?(?:안|않|없|하지\s?못)|기억나지\s?않|(?:기록|정보)(?:이|가)?\s?없|찾을\s?수\s?없"
    r"|لا\s+(?:أتذكر|أذكر|أملك|توجد\s+لدي|يوجد\s+لدي|تتوفر)|ليس(?:ت)?\s+لدي|لم\s+(?:أجد|أعثر)",
    re.IGNORECASE,
)
_SPOKE = (
    r"(?:say|said|tell|told|mention|mentioned|talk|talked|discuss|discussed|decide|decided|agree|agreed|suggest|"
    r"suggested|recommend|recommended|share|shared|ask|asked)"
)
_YOU_SPOKE = (
    r"(?:say|said|tell me|told me|suggest|suggested|recommend|recommended|mention|mentioned|promise|"
    r"promised)"
)
_ABOUT_MEMORY = re.compile(
    r"\b(?:(?:do|don't|can|could|did) (?:you|anyone) (?:still |even |ever )?(?:remember|recall)\b"
    rf"|(?:what|which|where|when|who|how|why) (?:[\w']+ ){{0,5}}(?:did|have|had) (?:i|we) (?:ever |already |"
    rf"just )?{_SPOKE}\b"
    rf"|(?:did|have|had) (?:i|we) (?:ever |already )?{_SPOKE}\b|did you (?:ever |already |just )?{_YOU_SPOKE}\b"
    rf"|what do you (?:know|remember) about\b|what (?:was|were|is|are) (?:[\w']+ ){{1,6}}(?:i|we|you) {_SPOKE}\b"
    r"|(?:please|you|you please) remind me\b|what was (?:that|it) (?:i|we|you)\b)"
    r"|(?:\A|[.!?\n] ?)(?:(?:so|hey|hi|and|ok|also|well|please)[ ,]+)?(?:remember (?:when|my|our|what|that|the|"
    r"how|who|where)\b"
    r"|remind me (?:of|what|who|where|when|which|how|about)\b)"
    r"|记得|記得|我(?:说|提到|告诉)[过了你]|覚えて|기억(?:하|나|해)|تتذكر|هل تذكر",
    re.IGNORECASE,
)
_SESSION = re.compile(
    r"(?:a\s+)?new\s+session\s+(?:was\s+|has\s+been\s+)?started|session\s+(?:was\s+|has\s+been\s+)?(?:started|"
    r"reset|resumed|"
    r"ended|restored)\b|conversation\s+(?:was\s+|has\s+been\s+)?(?:started|reset|cleared)\b|context\s+(?:was\s+|"
    r"has\s+been\s+)?"
    r"(?:compacted|reset|cleared)\b|/(?:new|reset|clear|start|compact)\b|✅\s*new\s+session",
    re.IGNORECASE,
)
_STOPS = r"[\s,.!?~…:;)(。！？，、；：\"'*_-]*"
_ADDRESSED = re.compile(
    r"(?:[\s,]+(?:there|again|all|everyone|so much|a lot|very much|man|guys|for (?:now|that|this|the help|your help|"
    r"everything)|then|to you|too|and|[A-Z][\w'-]{1,20})(?!\w)){0,3}" + _STOPS
)
_WORDLESS = re.compile(r"[^\w]*\Z")


def is_denial(text: str, role: str) -> bool:
    """Whether an agent says only that it knows of nothing."""
    said = straight(text.strip())
    if role != "assistant" or len(said) > LONGEST_DENIAL_CHARS:
        return False
    return bool(_DENIAL.search(said))


def is_memory_question(text: str) -> bool:
    """Whether a message asks what is remembered and states nothing itself."""
    said = straight(text[:READ_CHARS].strip())
    if len(said) > LONGEST_MEMORY_QUESTION_CHARS or not _ABOUT_MEMORY.search(said):
        return False
    sentences = sentences_of(said)
    if not any((is_asking(sentence) or RECALL.search(sentence)) for sentence in sentences):
        return False
    others = [sentence for sentence in sentences if not is_asking(sentence) and not _ABOUT_MEMORY.search(sentence)]
    return is_question(said) and all(latin_chars(sentence) <= SUBSTANTIAL_CHARS for sentence in others)


def is_boilerplate(text: str) -> bool:
    """Greetings, thanks, assent, and what a host says when a session begins."""
    said = straight(text[:READ_CHARS].strip())
    if _SESSION.match(said):
        return True
    if len(said) > LONGEST_BOILERPLATE_CHARS:
        return False
    at = 0
    while at < len(said):
        greeting = GREETING.match(said, at)
        if greeting is None:
            return bool(_WORDLESS.match(said, at))
        following = _ADDRESSED.match(said, greeting.end())
        at = following.end() if following else greeting.end()
    return True


def is_question(text: str) -> bool:
    """Whether a message mainly asks: its last sentence does, or all of a short one."""
    sentences = sentences_of(text[-READ_QUESTION_CHARS:].strip())
    if not sentences:
        return False
    asking = [is_asking(sentence) for sentence in sentences]
    asked = sum(len(sentence) for sentence, is_asked in zip(sentences, asking, strict=True) if is_asked)
    return asked * 2 >= sum(map(len, sentences)) or (asking[-1] and len(text) <= LONGEST_MEMORY_QUESTION_CHARS)


def latin_chars(text: str) -> int:
    """How long it would be in Latin letters."""
    return sum(WIDE_CHARS if "\u3040" <= letter <= "\ud7a3" else 1 for letter in text)
