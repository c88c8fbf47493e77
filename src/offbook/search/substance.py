"""What says something, and what only speaks about memory (D7).

An archive fills with "do you remember …?" and "I have no record of …". They resemble a later question more than the
answer does, so recall must know them.
"""

from __future__ import annotations

import re

from offbook.model.sentences import is_question, sentences

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

# D9: the indicators of the original plugin. "Remember to" is an errand. `beside`: what
# refers to something said before, and may ask for anything else about it.
_RECALL = re.compile(
    r"\b(?:remember(?! to\b)|(?:i|you|we|not|to|can't|don't) (?:\w+ )?recall(?:ed)?|told (?:me|you)|forgot(?:ten)?"
    r"|remind me (?:of|what|who|where|when|which|how|about|again)|what was (?:that|the name)"
    r"|(?:did|have) (?:i|we) (?:\w+ )?(?:say|said|tell|mention|ask|talk|discuss|decide|agree|settle)\w*"
    r"|did you (?:\w+ )?(?:say|tell|mention|suggest|recommend|propose|promise)"
    r"|(?P<beside>(?<!have )(?:i|we|you)(?:'ve| have| had| were)? (?:\w+ )?(?:said|mentioned|asked|suggested"
    r"|recommended|promised|spoke|talk(?:ed|ing)|discuss(?:ed|ing)|decided|agreed|settled)"
    r"|(?:go|going|get|come|coming) back to|last (?:time|session|conversation|chat)"
    r"|(?:previous|earlier) (?:chat|conversation|session|discussion)s?))\b"
    r"|记得|記得|忘了|上次|覚えて|思い出|前回|기억|지난번|تتذكر|تذكر",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\bi(?:'m)? (?:\w+ )?(?:don't|do not|didn't|did not|can't|cannot|couldn't|could not|have no|found no|unable to)\b"
    r"[^.!?\n]{0,60}\b(?:records?|memory|memories|information|recall|remember|conversations?|history|find any\w*)\b"
    r"|\byou (?:haven't|have not|never) (?:told|mentioned|shared)|\bthere(?:'s| is| are) no (?:record|mention|memory)"
    r"|我?(?:没有|沒有|不)[^。！？\n]{0,8}(?:记录|記錄|记忆|信息|记得|記得)|覚えて(?:いません|ない)|見つかりません|기억[^.\n]{0,6}(?:없|않)"
    r"|لا أتذكر|ليس لدي",
    re.IGNORECASE,
)
_OPENS_A_QUESTION_TEXT = (
    "what when where who whom whose which why how do does did is are was were am can could will would should"
)
_OPENS_A_QUESTION = frozenset(_OPENS_A_QUESTION_TEXT.split())
_BEFORE_A_QUESTION = frozenset(("so", "and", "but", "ok", "okay", "well", "hey", "hi", "hello", "also", "oh", "please"))
_PLEASANTRIES_TEXT = (
    "hi hey hello heya hiya howdy greetings good morning afternoon evening night bye goodbye see you ya take care talk "
    "soon later thank thanks thx ty cheers so much a lot very great cool nice perfect awesome wonderful ok okay sure "
    "yes yeah yep no nope right alright got it understood sounds welcome problem np how are can i help today what's up "
    "there again all everyone then too and for now haha lol hmm wow noted "
    "你好 您好 早上好 晚上好 晚安 谢谢 謝謝 再见 好的 嗯 收到 明白 こんにちは こんばんは おはよう おはようございます "
    "ありがとう ありがとうございます はい 了解 안녕 안녕하세요 감사합니다 고마워 네 مرحبا أهلا شكرا نعم حسنا"
)
_PLEASANTRIES = frozenset(_PLEASANTRIES_TEXT.split())
_ASSENTING = frozenset(("remember", "remembered", "saved", "note"))
_IN_ASSENT = frozenset(
    ["i'll", "i've", "will", "have", "made", "make", "a", "of", "that", "this", "your", "in", "mind", "definitely"]
)
_AROUND = " ,.!?~…:;()[]。！？，、；：\"'“”*_-"


def straight(text: str) -> str:
    """With typewriter apostrophes and single blanks, which is how the patterns are spelt."""
    text = text.replace("’", "'").replace("‘", "'")
    # Most texts have nothing but single blanks: then there is nothing to do.
    if text.isprintable() and "  " not in text and "\u00a0" not in text:
        return text
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def sentences_of(text: str) -> list[str]:
    return [one.text for one in sentences(text)]


def is_asking(sentence: str) -> bool:
    """Whether one sentence is a question; without any mark at its end also by how it opens."""
    if is_question(sentence):
        return True
    said = sentence.rstrip()
    if said.endswith((".", "!", "…", ":", "。", "！")):
        return False
    opening = [word.strip(_AROUND) for word in straight(said[:60]).lower().split()]
    first = next((word for word in opening if word not in _BEFORE_A_QUESTION), "")
    return first.partition("'")[0] in _OPENS_A_QUESTION


def is_recalling(text: str) -> bool:
    """Whether a text refers to what was said before (D9)."""
    return bool(_RECALL.search(straight(text)))


def is_denial(text: str, role: str) -> bool:
    """Whether an agent says only that it knows of nothing."""
    said = straight(text.strip()) if role == "assistant" else ""
    return len(said) <= LONGEST_DENIAL_CHARS and bool(_DENIAL.search(said))


def is_memory_question(text: str) -> bool:
    """Whether a message asks what is remembered and states nothing itself."""
    said = text[:READ_CHARS].strip()
    if len(said) > LONGEST_MEMORY_QUESTION_CHARS or not is_recalling(said):
        return False
    parts = sentences_of(said)
    asked = [one for one in parts if is_asking(one)]
    others = [one for one in parts if one not in asked]
    recalled = [_RECALL.search(straight(one)) for one in asked]
    is_asked = any(one is not None and one["beside"] is None for one in recalled)
    return is_asked and all(latin_chars(one) <= SUBSTANTIAL_CHARS for one in others)


def is_boilerplate(text: str) -> bool:
    """Greetings, thanks and assent, with at most one name."""
    said = text[: LONGEST_BOILERPLATE_CHARS + 1].strip()
    if len(said) > LONGEST_BOILERPLATE_CHARS:
        return False
    words = [bare for word in straight(said).split() if any(map(str.isalnum, bare := word.strip(_AROUND)))]
    others = [word for word in words if word.lower() not in _PLEASANTRIES]
    if not _ASSENTING.isdisjoint(word.lower() for word in others):  # "I'll remember that recipe": and what it is
        return len([word for word in others if word.lower() not in _IN_ASSENT | _ASSENTING]) <= 1
    return not others or (len(others) == 1 and others[0] != words[0] and others[0].istitle() and others[0].isalpha())


def asks(text: str) -> bool:
    """Whether a message mainly asks: its last sentence does, or all of a short one."""
    parts = sentences_of(text[-READ_QUESTION_CHARS:].strip())
    if not parts:
        return False
    asking = [is_asking(one) for one in parts]
    asked = sum(len(one) for one, is_asked in zip(parts, asking, strict=True) if is_asked)
    return asked * 2 >= sum(map(len, parts)) or (asking[-1] and len(text) <= LONGEST_MEMORY_QUESTION_CHARS)


def latin_chars(text: str) -> int:
    """How long it would be in Latin letters."""
    return sum(WIDE_CHARS if "\u3040" <= letter <= "\ud7a3" else 1 for letter in text)
