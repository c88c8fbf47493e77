"""Which sentences of a message are its sender's own, about how things are: no code, no quotations, no questions,
nothing that is imagined, meant for once, written for somebody else to read or said as a joke."""

from __future__ import annotations

import re

from offbook.model.content import own_text
from offbook.model.types import Message
from offbook.rules.state.rules import sentences_in
from offbook.rules.supersession.facts import UNREAL
from offbook.search.substance import is_asking

NOTES_FROM = "memory:"
"""How the origin of a note begins that was taken over from another memory: a person or an agent chose to keep it."""
LONGEST_READ_CHARS = 2_000
"""Longer messages are mostly pasted, or a task described at length."""
LONGEST_NOTE_CHARS = 20_000
LONGEST_SENTENCE_CHARS = 400
FEWEST_WORDS = 2
FEWEST_WIDE_LETTERS = 4
"""Of a script without blanks, which says as much with fewer."""

_HEADER = re.compile(r"^(?:from|to|cc|subject|sent|date|von|an|betreff|gesendet)\s?:\s", re.IGNORECASE | re.MULTILINE)
_SPEAKER = re.compile(r"^(?:\*\*|\[)?[A-Z][\w .]{0,24}(?:\*\*|\])?\s?[:：]\s", re.MULTILINE)
MOST_SPEAKERS, MOST_HEADERS = 2, 1
_MADE_UP = re.compile(
    r"\b(?:(?:short |a |the |my |bedtime )stor(?:y|ies)|novel|novella|screenplay|poem|lyrics|fiction|fictional|"
    r"fanfic\w*|"
    r"protagonist|narrator|(?:my|the|main|each|this) character\b|characters (?:are|who|in the)|role-?play\w*|monologue|"
    r"act as|pretend|imagine|in the style of|user stor(?:y|ies)|as an? (?:user|customer|admin),? i|acceptance criteria|"
    r"dungeon|campaign setting|geschichte über|gedicht|stell dir vor)\b|小说|故事|剧本|诗|扮演|假装",
    re.IGNORECASE,
)
"""A message with such a word makes something up, or asks for it: what it states is not so."""
_TO_BE_WRITTEN = re.compile(
    r"\b(?:write|create|generate|draft|compose|continue|rewrite|give me|come up with|"
    r"need)\b[^\n]{0,200}?\b(?:stor(?:y|ies)|"
    r"script|scene|chapter|dialogue|essay|persona|blog ?posts?|posts?|lesson plan|captions?|headlines?|cover "
    r"letter|speech|"
    r"prompts?|song|articles?|ads?|descriptions?|bio|paragraphs?|tweets?)\b",
    re.IGNORECASE,
)
"""Likewise where a text is asked for: what follows is what it should say."""
_ON_A_TEXT = re.compile(
    r"(?:(?:please|can you|could you|now|then|and)\s+){0,3}(?:translate|rewrite|rephrase|paraphrase|proofread|reword|"
    r"fix|correct|edit|improve|polish|summari[sz]e|shorten|check|review|complete|continue|write|draft|compose|generate|"
    r"create|make(?! sure)|explain|analy[sz]e|compare|übersetze|schreib\w*|korrigiere|翻译|改写|写|润色)\b[^\n]{0,200}",
    re.IGNORECASE,
)
"""What a task begins with. What stands after its colon, and after it where it names "this text" or "the following", is
what it is about."""
_FOLLOWING = re.compile(
    r"[:：]|\b(?:this|these) (?:text|e-?mail|mail|sentence|paragraph|message|letter|article|essay|passage|code|"
    r"snippet|list|"
    r"note|speech)s?\b|\b(?:below|following|folgende\w*)\b|以下|下面",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"\A(?:(?:ok|okay|so|also|and|hey|hi)\b[\s,]*){0,2}(?:can|could|would|will) you (?P<order>(?:please "
    r")?(?:always|never|stop)"
    r"\b[^?]{3,240}|[^?]{3,240} from now on)\s?\?\Z",
    re.IGNORECASE,
)
"""A question in form only, where it says "please" or "from now on"."""
_MEANT = re.compile(r"\b(?:please|from now on)\b", re.IGNORECASE)
_PLEASE = re.compile(r"\Aplease ", re.IGNORECASE)
_FOR_ONCE = re.compile(
    r"\b(?:for now|for the moment|at the moment|right now|for today|(?<!as of )(?<!from )today|tonight|tomorrow|"
    r"yesterday|this (?:time|once|"
    r"morning|afternoon|evening|weekend|one)|just once|only once|(?:for|in|on) this (?:e-?mail|mail|message|letter|"
    r"case|"
    r"example|text|task|file|function|paragraph|section|document|answer|question|round|part|step|list|article|post)|"
    r"last (?:night|week|weekend|time)|the other day|just kidding|temporarily|"
    r"heute|morgen|gestern|diesmal|vorerst|gerade|im moment)\b|今天|明天|昨天|这次|暂时|刚才",
    re.IGNORECASE,
)
_LAUGHING = re.compile(
    r"\b(?:lol|lmao|rofl|haha\w*|hehe\w*|jk|j/k|kidding|joking)\b|[😂🤣😜😝😆]|;-?\)|[;:]-?[pP](?!\w)|"
    r"哈哈",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"\b(?:password(?! polic| manager| reset)|passwort|kennwort|passphrase|passcode|(?:my|the|our) pin|pin (?:code|"
    r"number)|secret key|api[ -]key|access token|"
    r"recovery code|seed phrase|cvv|iban|credit card|social security)\b|密码|口令",
    re.IGNORECASE,
)
"""It stays in the log, where it is found when it is asked for; it is not told in every turn."""
_CODE = re.compile(r"^\s*(?:[#/*|<{\[]|class |def |import |const |let \w+ =|function |return )|[{};]\s*$|=>|==|\(\)")
_QUOTED = re.compile(r"[\"“„«»「『][^\"“”„«»」』\n]{12,}[\"”“«»」』]|(?<!\w)'[^'\n]{20,}'(?!\w)")
_MARKS = re.compile(r"\*{1,3}|__")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_THIRD = re.compile(r"\A(?:the )?user(?P<own>'s)?\s+(?P<verb>\w+)", re.IGNORECASE)
_FIRST = {"is": "am", "has": "have", "does": "do", "was": "was", "doesn't": "don't", "isn't": "am not"}
_JOINED = re.compile(
    r"(?P<before>\b(?:and|but|or) (?:(?:also|always|never|often|usually|really|still|only|sometimes) )?)"
    r"(?P<verb>is|was|has|does|isn't|doesn't|likes|loves|prefers|hates|enjoys|dislikes|wants|needs|uses|owns|avoids|speaks|lives|eats|wears|"
    r"keeps|knows|thinks|believes|works(?= (?:at|as|for|in|from|on|with)\b))(?= )",
    re.IGNORECASE,
)
"""A second verb of the same subject. No verb that is as often a noun there ("tea and drinks")."""
_OF_ANOTHER = re.compile(r"\b(?:who|that|which|whose|where)\b", re.IGNORECASE)


def is_read(message: Message) -> bool:
    """Whether somebody said it in person, or it is a note that was kept elsewhere."""
    if message.tool_call_id is not None or message.role not in ("user", "assistant"):
        return False
    return message.origin in (None, "", message.role) or is_note(message)


def is_note(message: Message) -> bool:
    return (message.origin or "").startswith(NOTES_FROM)


def own_sentences(message: Message) -> list[str]:
    text = own_text(message.content)
    is_kept = is_note(message)
    if len(text) > (LONGEST_NOTE_CHARS if is_kept else LONGEST_READ_CHARS) or not text.strip():
        return []
    if not is_kept and is_made_up(text):
        return []
    told: list[str] = []
    for sentence in sentences_in(text):
        said = _as_order(_MARKS.sub("", _first_person(sentence) if is_kept else sentence))
        if task := _ON_A_TEXT.match(said):
            if _FOLLOWING.search(task[0]):
                break
            continue
        if _counts(said):
            told.append(said)
    return told


def is_made_up(text: str) -> bool:
    """Whether a message is a mail or a talk of others, or asks for something invented."""
    return _is_pasted(text) or bool(_MADE_UP.search(text) or _TO_BE_WRITTEN.search(text))


def is_unreal(sentence: str) -> bool:
    """Whether it says how things might be. Apart, because how something is done may depend on an "if"."""
    return bool(UNREAL.search(sentence))


def _counts(sentence: str) -> bool:
    if len(sentence) > LONGEST_SENTENCE_CHARS or is_asking(sentence) or "?" in sentence or "？" in sentence:
        return False
    if _CODE.search(sentence) or _QUOTED.search(sentence) or sentence.endswith((":", "…", "...")):
        return False
    if _LAUGHING.search(sentence) or _SECRET.search(sentence) or _FOR_ONCE.search(sentence):
        return False
    return len(sentence.split()) >= FEWEST_WORDS or len(_WIDE.findall(sentence)) >= FEWEST_WIDE_LETTERS


def _is_pasted(text: str) -> bool:
    """A mail or a conversation of others."""
    return len(_HEADER.findall(text)) > MOST_HEADERS or len(_SPEAKER.findall(text)) > MOST_SPEAKERS


def _as_order(sentence: str) -> str:
    """ "Could you please always answer in German?" asks nothing."""
    found = _POLITE.match(sentence) if sentence.endswith("?") and _MEANT.search(sentence) else None
    if found is None:
        return sentence
    order = _PLEASE.sub("", found["order"])
    if order.lower().endswith(" from now on"):
        return f"From now on, {order[: -len(' from now on')]}."
    return f"Please {order}."


def _first_person(note: str) -> str:
    """ "User prefers tabs", as other memories put it, in the words the rules know: "I prefer tabs"."""
    found = _THIRD.match(note)
    if found is None:
        return note
    rest = note[found.end() :]
    if found["own"]:
        return f"My {found['verb']}{rest}"
    if not _OF_ANOTHER.search(rest):
        rest = _JOINED.sub(lambda joined: f"{joined['before']}{_own(joined['verb'])}", rest)
    return f"I {_own(found['verb'])}{rest}"


def _own(verb: str) -> str:
    """As "I" has it."""
    return _FIRST.get(verb.lower()) or _without_s(verb.lower())


def _without_s(verb: str) -> str:
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    if verb.endswith(("shes", "ches", "sses", "xes", "zes")):
        return verb[:-2]
    return verb.removesuffix("s")
