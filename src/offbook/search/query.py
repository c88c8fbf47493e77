"""What a message asks for: a bounded query instead of a whole conversation.

An embedding of "Do you remember what Caroline said about the recipe?" lies nearer to other questions than to the
recipe. So the wrapping goes, and of a short question the words that only make it a question.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from offbook.model.types import Value
from offbook.models.glossary import in_english
from offbook.search.spotting import unwrapped
from offbook.search.stems import stem
from offbook.search.substance import asks, is_asking, is_boilerplate, is_recalling, sentences_of, straight
from offbook.search.times import QueryTimes, without_times
from offbook.search.words import ASKING_WORDS, MARKS, STOP_WORDS, is_unspaced, query_terms

MAX_QUERY_CHARS = 2000
QUERIES_KEPT = 32
READ_CHARS = 8000
"""Of each end of a message. What stands between is neither the opening nor the ask."""
HEAD_CHARS = 700
"""Of a query that must be cut; the end of a long message usually holds the ask, so it gets the rest."""
MAX_SENTENCES = 6
SUBSTANTIAL_TERMS = 3
LONGEST_BARE_QUESTION_CHARS = 300
"""Longer messages say enough themselves to be searched for as they are."""
MAX_NAMES = 500

_ROLES = frozenset(("user", "assistant", "system", "tool", "human", "ai", "bot", "agent", "me", "you", "i"))
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
_CONTRACTIONS = ("'s", "'ll", "'re", "'ve", "'d", "'m", "n't")
# Whose words are asked for: a verb of saying beside "I" or "you".
_WHO_SAID = re.compile(
    r"\b(i|you)(?:'ve| have| had)? (?:\w+ )?(?:say|said|tell|told|mention|suggest|recommend|propose|advise|promise"
    r"|decide|choose|describe|explain|write|give|ask)|\byour (?:\w+ )?(?:suggestion|recommendation|advice|answer)",
    re.IGNORECASE,
)


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
    asks_assistant: bool
    """The agent's own words are asked for."""
    is_question: bool
    wants_memory: bool
    """It refers to what was said before (D9)."""


def read_query(text: str, names: Collection[str] = ()) -> Query:
    """Read a message as a query. `names` are the speakers known."""
    return (_read_again if len(text) <= MAX_QUERY_CHARS else _read)(text, tuple(names))


def _read(text: str, names: tuple[str, ...]) -> Query:
    said = _bounded(unwrapped(_both_ends(text)))
    plain = straight(said)
    english = straight(in_english(said))
    is_asked = asks(said) or asks(english)
    wants = is_recalling(plain) or is_recalling(english)
    named, without_names = _names_in(plain, names)
    sentences = sentences_of(said)
    return Query(
        text=said,
        focus=_focus(plain, without_names) if _is_bare_question(plain, wants) else said,
        sentences=_substantial(sentences),
        names=named,
        # Word for word, "¿Qué te dije?" is "what you said".
        asks_assistant=(is_asked or wants) and _is_of_assistant(plain),
        is_question=is_asked,
        wants_memory=wants,
    )


_read_again = lru_cache(maxsize=QUERIES_KEPT)(_read)
"""A turn reads its prompt several times."""


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
    specific = {sentence: len(query_terms(sentence)) for sentence in sentences if not is_boilerplate(sentence)}
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
    if is_unspaced(name):
        return re.escape(name)
    return rf"(?<!\w){re.escape(name)}(?:'s)?(?!\w)"


def _name_key(found: str) -> str:
    return found.lower().removesuffix("'s")


def _is_bare_question(said: str, wants: bool) -> bool:
    """Whether nothing but a short question was sent: its words of asking are in the way."""
    if len(said) > LONGEST_BARE_QUESTION_CHARS:
        return False
    sentences = [sentence for sentence in sentences_of(said) if not is_boilerplate(sentence)]
    return all(is_asking(sentence) or (wants and is_recalling(sentence)) for sentence in sentences)


def _focus(said: str, without_names: str) -> str:
    """The words of content; where asking or names are all there is, more and more of what was said."""
    words = _content(without_names)
    telling = [word for word in words if stem(word.lower()) not in ASKING_WORDS]
    return " ".join(_trimmed(telling)) or " ".join(_trimmed(words)) or " ".join(_trimmed(_content(said))) or said


def _content(said: str) -> list[str]:
    words = [_uncontracted(found) for found in _WORD.findall(said)]
    return [word for word in words if word and _is_content(word)]


def _uncontracted(word: str) -> str:
    ending = next((one for one in _CONTRACTIONS if word.lower().endswith(one)), "")
    return word[: len(word) - len(ending)]


def _trimmed(words: list[str]) -> list[str]:
    """Without prepositions that have lost what stood beside them."""
    inside = [at for at, word in enumerate(words) if word.lower() not in _EDGE_WORDS]
    return words[inside[0] : inside[-1] + 1] if inside else []


def _is_content(word: str) -> bool:
    return word.lower() not in _DROPPED_FROM_FOCUS or (len(word) > 1 and word.isupper())


def _is_of_assistant(said: str) -> bool:
    found = _WHO_SAID.search(said)
    return found is not None and (found[1] or "").lower() != "i"


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
