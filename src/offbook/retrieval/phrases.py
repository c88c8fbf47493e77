"""How people ask, greet and refer to what was said before, and how agents say that they know of nothing.

One list of each, for the query (`query`), for what counts as substance (`substance`) and for corrections. Every
pattern is bounded or anchored: reading takes time in proportion to the text.
"""

from __future__ import annotations

import re

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
