"""What says something, and what only speaks about memory (D7).

An archive fills with "do you remember …?" and "I have no record of …". They resemble a later question more than the
answer does, so recall must know them.
"""

from __future__ import annotations

import re

# ── How people ask, greet and refer to what was said before, and how agents say that they know ──

# D9: the indicators of the original plugin. "before", "earlier" and "back to" count beside a verb of speaking or going
# only, and "remember to" is an errand.
RECALL = re.compile(
    r"\b(?:"
    r"remember(?!\s+to\b)|recall(?:ing|ed)?\b|remind\s+me\s+(?:of|what|who|where|when|which|how|about|again)"
    r"|(?:i|we|you)(?:'ve|\s+have)?\s+forgot(?:ten)?\b|(?:did|do|have)\s+(?:you|i|we)\s+forg[eo]t(?:ten)?\b|forget\s+what"
    r"|you(?:'ve|\s+have|\s+had)?\s+(?:already\s+)?(?:said|told|mentioned|suggested|recommended|promised|proposed)\b"
    r"|i(?:'ve|\s+have|\s+had)?\s+(?:already\s+)?(?:said|told\s+you|mentioned|asked\s+you|shared\s+with\s+you)\b"
    r"|told\s+(?:me|you)\b|we\s+(?:were|was|have\s+been|had\s+been)\s+(?:talking|discussing|speaking|chatting)\b"
    r"|we(?:'ve|\s+have|\s+had)?\s+(?:already\s+)?(?:talked|discussed|spoke|spoken|decided|agreed|settled|covered)\b"
    r"|what\s+(?:did|was|were|have|had)\s+(?:we|it\s+(?:you|we|i))\b|(?:what|which|where|when|who|how|did|have)\s+"
    r"(?:[\w']+\s+){0,3}i\s+(?:say|said|tell|told|mention|mentioned|ask|asked)\b"
    r"|did\s+(?:i|we|you)\s+(?:say|tell|mention|ask|talk|discuss|decide|agree|suggest|recommend|propose)\b"
    r"|have\s+(?:i|we|you)\s+(?:ever\s+)?(?:said|told|mentioned|asked|talked|discussed|decided|agreed)\b"
    r"|(?:the\s+)?last\s+(?:time|session|conversation|chat)\b|previous(?:ly|\s+(?:chat|conversation|session|discussion))\b"
    r"|(?:you|i|we|as|it|that)\s+(?:[\w']+\s+){0,3}(?:mentioned|brought\s+up|came\s+up)\b|what\s+was\s+(?:that|the\s+name)\b"
    r"|(?:said|told|asked|mentioned|talked|discussed|spoke|suggested|did|told\s+me|told\s+you)\s+(?:[\w']+\s+){0,4}"
    r"(?:before|earlier)\b|earlier\s+(?:you|we|i)\b|(?:our|the)\s+earlier\b"
    r"|lost\s+(?:the\s+|my\s+)?thread\b|(?:go|going|get|getting|come|coming|circl\w{1,3})\s+back\s+to\b"
    r"|picking\s+(?:this\s+|it\s+)?up\b|pick\s+up\s+where\b|where\s+(?:were\s+we|did\s+we\s+leave|we\s+left)\b"
    r")"
    r"|记得|記得|想起|忘了|忘记|上次|之前[说聊提讲讨]|我[们說说]?[过過]什么|我(?:们)?(?:说|聊|提到|告诉)[过了]|你(?:说|建议|推荐|提到)[过了]"
    r"|覚えて|思い出|前回|この前|言った(?:っけ|こと)|話した"
    r"|기억|지난번|저번에|말했(?:던|지|었)|얘기했"
    r"|تتذكر|تذكر|أتذكر|هل\s+تذكرين|المرة\s+(?:السابقة|الماضية)|قلت\s+لك|أخبرتك",
    re.IGNORECASE,
)

_OPENS = re.compile(
    r"(?:(?:so|and|but|ok|okay|well|hey|hi|hello|also|then|oh|hmm|um|please|sorry|quick\s+question)\b[\s,.!:…-]*){0,3}"
    r"(?:(?:what|when|where|who|whom|whose|which|why|how)(?:'s|'re|'d|'ll)?\s+\w"
    r"|(?:do|does|did|is|are|was|were|am|has|had|have|can|could|will|would|shall|should|may|might)(?:n't|\s+not)?\s+"
    r"(?:i|you|we|they|he|she|it|my|your|our|their|his|her|the|this|that|these|those|there|any\w*|some\w*|(?-i:[A-Z]\w*))\b"
    r"|(?:tell|remind|show)\s+me\s+(?:what|when|where|who|which|why|how|about|again|of|if|whether)\b"
    r"|any\s+(?:idea|ideas|advice|tips|suggestions|thoughts)\b)",
    re.IGNORECASE,
)
# "What a day!", "How lovely", "When I was young, …", "Which is why …" open like questions and ask nothing.
_NO_QUESTION = re.compile(
    r"(?:what\s+an?\b|how\s+(?:nice|lovely|cool|awesome|wonderful|great|sweet|exciting|beautiful|sad)\b(?!\s+(?:is|was|are))"
    r"|(?:when|where|while)\s+(?:i|we|you|he|she|they|it|my|the)\b|which\s+(?:is|was|means|made)\b|what\s+(?:i|we|you)\b"
    r"|have\s+(?:a|an|fun|you\s+a)\b|who\s+knows\b)",
    re.IGNORECASE,
)
_ASKING_END = re.compile(r"[?？؟][\s\"'”’)\]}*_~]{0,8}(?:[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\s]{0,8})\Z")
_ASKING_PARTICLE = re.compile(r"(?:吗|嗎|呢|ですか|ますか|ましたか|でしたか|っけ|나요|까요|습니까|니)[。.!！\s]{0,4}\Z")

GREETING = re.compile(
    r"(?:thank(?:s|\s+you)\s+for\s+(?:sharing|telling\s+me|letting\s+me\s+know)(?:\s+[\w'-]+){0,5}|hi|hey|hello|heya|hiya|yo|howdy|greetings|good\s+(?:morning|afternoon|evening|night|day)|morning|evening|bye|"
    r"goodbye|see\s+(?:you|ya)|take\s+care|talk\s+(?:soon|later)|thank\s+you|thanks?|thx|ty|cheers|great|cool|nice|"
    r"perfect|awesome|wonderful|ok(?:ay)?|sure|yes|yeah|yep|yup|no|nope|right|alright|got\s+it|understood|sounds\s+good|"
    r"will\s+do|you'?re\s+welcome|no\s+problem|np|welcome(?:\s+back)?|how\s+are\s+you|how(?:'s|\s+is)\s+it\s+going|"
    r"what'?s\s+up|nice\s+to\s+meet\s+you|how\s+can\s+i\s+help(?:\s+you)?(?:\s+today)?|"
    r"what\s+can\s+i\s+do\s+for\s+you(?:\s+today)?|anything\s+else|lol|haha+|hmm+|wow|noted|"
    # "I'll remember that recipe": assent, with what is assented to.
    r"(?:i'?ll|i\s+will|i'?ve|i\s+have)\s+(?:definitely\s+|certainly\s+|now\s+)?(?:remember(?:ed)?|noted?|saved?|stored?|"
    r"keep|kept|make\s+a\s+note\s+of|made\s+a\s+note\s+of)\s+(?:that|this|it|these|your|the)(?:\s+[\w'-]+){0,5}|"
    r"你好|您好|早上好|晚上好|晚安|谢谢|謝謝|再见|好的|嗯|收到|明白了?|こんにちは|こんばんは|おはよう(?:ございます)?|"
    r"ありがとう(?:ございます)?|はい|了解(?:です)?|안녕(?:하세요)?|감사합니다|고마워(?:요)?|네|알겠(?:어요|습니다)|"
    r"مرحبا|أهلا|السلام\s+عليكم|صباح\s+الخير|مساء\s+الخير|شكرا|نعم|حسنا)(?!\w)",
    re.IGNORECASE,
)

_SENTENCE_END = re.compile(r"(?<=[.!?؟।…])\s+|(?<=[。！？])|\n+")
_BLANKS = re.compile(r"[^\S\n]+")


def straight(text: str) -> str:
    """With typewriter apostrophes and single blanks, which is how the patterns are spelt."""
    text = text.replace("’", "'").replace("‘", "'")
    # Most texts have nothing but single blanks: then there is nothing to do.
    return text if text.isprintable() and "  " not in text and "\u00a0" not in text else _BLANKS.sub(" ", text)


def sentences_of(text: str) -> list[str]:
    return [sentence for part in _SENTENCE_END.split(text) if (sentence := part.strip())]


def is_asking(sentence: str) -> bool:
    """Whether one sentence is a question."""
    said = straight(sentence.strip())
    if _ASKING_END.search(said[-24:]) or _ASKING_PARTICLE.search(said[-12:]):
        return True
    if said.endswith(("!", "！")) or _NO_QUESTION.match(said):
        return False
    return bool(_OPENS.match(said))


def is_recalling(text: str) -> bool:
    """Whether a text refers to what was said before (D9)."""
    return bool(RECALL.search(straight(text)))


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
