"""Words of a text, for the text index and for the ranker: both sides of a search must cut words the same way.

A term is lower-case, without diacritics, stemmed where it is English. Names of things made by people (`getUserName`,
`v1.2.3`, `ada@example.com`) are one term as a whole and one for each part. Scripts without spaces between words give
overlapping pairs of letters, so that a search finds a word wherever it stands; a message is indexed by its single
letters as well, since many of their words are one letter long.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from offbook.models.glossary import gloss, in_english, language_of
from offbook.search.stems import stem

MAX_TERM_CHARS = 64
MAX_PARTS = 16
"""Of one identifier. A path of more parts is found by its first ones."""
LONGEST_CACHED_CHARS = 40
PIECE_CHARS = 50_000
"""Of a long text read at a time: nobody else gets a word in while one is read."""
MOST_DISTINCT = 2_000_000
"""Terms of one text. A book has some ten thousand; a file of hashes may have one in every ten bytes."""
TOKENS_KEPT = 1 << 16

_STOP_WORDS_TEXT = (
    "a about above after again against all also although am an and any anyone anything are as at be because been "
    "before being below between both but by can cannot could did do does doing down during each "
    "either else ever every everyone everything few for from further had has have having he hence her "
    "here hers herself him himself his how however i if in into is it its itself just let me might mine more most "
    "much must my myself neither no nor not nothing of off on once one only onto or other ought our ours ourselves out "
    "over own per quite rather really same shall she should since so some someone something such than "
    "that the their theirs them themselves then there these they this those though through thus to too under until up "
    "upon us very was we were what whatever when whenever where wherever whether which while who whoever "
    "whom whose why will with within without would yet you your yours yourself yourselves "
    "im ive youre youve youd youll hes shes its were weve theyre theyve theyd theyll thats theres whats wheres "
    "whos hows lets dont doesnt didnt isnt arent wasnt werent cant couldnt wouldnt shouldnt wont havent hasnt hadnt "
    "yeah yes ok okay oh hey hi hello um uh hmm"
)
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_ASKING_TEXT = (
    "remember recall remind forget tell say mention talk discuss know please kind type sort thing many "
    "question ask answer earlier previously previous again ago able"
)
ASKING_WORDS = frozenset(stem(word) for word in _ASKING_TEXT.split())
"""Stems of words that make a question to memory and say nothing of what is asked for."""
_CAPITALS_THAT_ARE_NO_STOP_WORDS = frozenset(("US", "IT", "WHO"))

# Marks are no letters to `re`, yet belong to the word they stand in. The first ranges are Latin, Cyrillic, Hebrew and
# Arabic; then the scripts of India and of South-East Asia without their punctuation; last the joiners.
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06ed\u0711\u0730-\u074a\u0900-\u0963\u0966-\u096f\u0971-\u0df3\u0e31-\u0e3a\u0e40-\u0e4e"
    "\u0eb1-\u0ebc\u0ec0-\u0ece\u0f18\u0f19\u0f35\u0f37\u0f39\u0f71-\u0f84\u0f86-\u0fbc\u102b-\u103f\u1056-\u1059"
    "\u105e-\u109d\u17b4-\u17d3\u3099\u309a\u200c\u200d"
)
_EMOJI = (
    "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25b6\u25c0\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
# Han with its iteration marks, kana, then Thai, Lao, Khmer and Burmese.
UNSPACED = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u3099-\u309f\u30a1-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e01-\u0e4e\u0e81-\u0ede\u1780-\u17d3\u1000-\u1049\u1050-\u109d"
)
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"

_JOINED = r"(?:[.@'&+-]{w}+|(?<=\d):(?=\d){w}+|(?<=\d),(?=\d\d\d(?!\d)){w}+)*(?:\+\+|#(?!\w))?"
_ASCII_TOKEN = re.compile(r"\w+" + _JOINED.replace("{w}", r"\w"), re.ASCII)
_TOKEN = re.compile(
    rf"[\w{MARKS}]+"
    + _JOINED.replace("{w}", rf"[\w{MARKS}]")
    + rf"|[\U0001f1e6-\U0001f1ff]{{2}}|[{_EMOJI}][\ufe0f\U0001f3fb-\U0001f3ff]*"
    + rf"(?:\u200d[{_EMOJI}][\ufe0f\U0001f3fb-\U0001f3ff]*){{0,8}}"
)
_BY_SCRIPT = re.compile(rf"([{UNSPACED}]+)|([{_HANGUL}]+)|([^{UNSPACED}{_HANGUL}]+)")
_LETTER = re.compile(r".[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u17b4-\u17d3\u102b-\u103f]*")
# What is dropped: accents, joiners, the colours of emoji. A breve on и makes another letter of it, й.
_ACCENT = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u200c\u200d\ufe0f\U0001f3fb-\U0001f3ff](?<![иИ][\u0300-\u036f])"
)
_LETTERS_WITHOUT_ACCENT = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "þ": "th", "ı": "i", "æ": "ae", "Æ": "AE",
     "œ": "oe", "Œ": "OE", "ß": "ss", "ẞ": "SS"}
)  # fmt: skip
_OTHER_LETTERS = tuple(map(chr, _LETTERS_WITHOUT_ACCENT))
_ARABIC = re.compile("[\u0600-\u06ff\u0750-\u077f]")
_ARABIC_MARKS = (*range(0x610, 0x61B), 0x640, *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6DD), *range(0x6DF, 0x6EE))
_ARABIC_LETTERS = dict.fromkeys(_ARABIC_MARKS) | str.maketrans("أإآٱىیةک", "ااااييهك")
_ARABIC_STOP_WORDS_TEXT = "في من علي الي عن هل ما هذا هذه ذلك التي الذي ان انا انت هو هي مع او ثم كان قد لا يا"
_ARABIC_STOP_WORDS = frozenset(_ARABIC_STOP_WORDS_TEXT.split())
_ARABIC_ARTICLES = ("وال", "فال", "بال", "كال", "ال", "لل")
_ARABIC_PREFIXES = ("و", "ب", "ل")

UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
WORD_PIECE = re.compile(r"[^\W_]+")
"""Letters and digits in a row."""
CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER_SIGNS = str.maketrans(".:,_-", "     ")
_CONTRACTIONS = frozenset(("s", "ll", "re", "ve", "d", "m"))
# Letters and digits in turns, three times or more: not `page3`.
_HASH = re.compile(r"(?:[A-Za-z]+[0-9]+[A-Za-z]|[0-9]+[A-Za-z]+[0-9])[A-Za-z0-9]*")


def terms(text: str) -> list[str]:
    """The terms of a text in their order, in its own language and behind them in English."""
    found, english = own_terms(text), in_english(text)
    if english == text:
        return found
    known = set(found)
    return found + [term for term in _terms_of_all(_tokens(english)) if term not in known]


def own_terms(text: str) -> list[str]:
    """In its own language alone. A text of nothing but stop words gives those."""
    tokens = _tokens(text)
    return _terms_of_all(tokens) or [word for token in tokens for word in _plain(token)]


def _terms_of_all(tokens: list[str]) -> list[str]:
    found: list[str] = []
    for token in tokens:
        found += _terms_of(token) if len(token) <= LONGEST_CACHED_CHARS else _read(token)
    return found


def indexed_terms(text: str) -> list[str]:
    """The terms of a text as it is searched: with the letters that may be a word, 海 of 看海, each once."""
    found = terms(text)
    if text.isascii():
        return found
    known = set(found)
    return found + [letter for letter in _single_letters(text) if letter not in known]


def distinct_terms(text: str) -> list[str]:
    """Each term of a long text once, as `indexed_terms` reads it; of what looks like a hash only the whole."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for start, end in pieces_of(text, PIECE_CHARS):
        piece = text[start:end]
        new = [token for token in dict.fromkeys(_tokens(piece)) if token not in seen]
        seen.update(new)
        for token in new:
            if _HASH.fullmatch(token):  # taken apart, it takes ten times as long, and nobody asks for its parts
                found[token.lower()[:MAX_TERM_CHARS]] = None
            else:
                found.update(dict.fromkeys(_read(token)))
        if not piece.isascii():
            found.update(_single_letters(piece))
        english = in_english(piece)
        if english != piece:
            found.update(dict.fromkeys(_terms_of_all(_tokens(english))))
        if len(found) >= MOST_DISTINCT:
            break
    return list(found)


def pieces_of(text: str, chars: int) -> Iterator[tuple[int, int]]:
    """Where pieces of a text of about this length begin and end: between words, or else overlapping by a word."""
    start = 0
    while start < len(text):
        end = start + chars
        if end >= len(text):
            yield start, len(text)
            return
        space = max(text.rfind(" ", start + chars // 2, end), text.rfind("\n", start + chars // 2, end))
        yield start, space if space > 0 else end
        start = space if space > 0 else end - min(MAX_TERM_CHARS, chars // 4)


def plain_letters(text: str) -> str:
    """The text in the letters that terms are written in. Capitals stay: they tell the parts of a name apart."""
    if text.isascii():
        return text
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).replace("’", "'")))
    bare = unicodedata.normalize("NFC", bare)
    if any(letter in bare for letter in _OTHER_LETTERS):  # to translate takes ten times as long as to look
        bare = bare.translate(_LETTERS_WITHOUT_ACCENT)
    if _ARABIC.search(bare):
        bare = bare.translate(_ARABIC_LETTERS)
    return bare


def is_latin(text: str) -> bool:
    """Whether at least half of the letters are of the Latin alphabet."""
    letters = [letter for letter in text[:2000] if letter.isalpha()]
    latin = sum(letter < "\u0250" or "\u1e00" <= letter <= "\u1eff" for letter in letters)
    return 2 * latin >= len(letters)


def is_unspaced(text: str) -> bool:
    """Whether some of it is in a script that puts no spaces between words, or particles behind them."""
    return any(unspaced or hangul for unspaced, hangul, _ in _BY_SCRIPT.findall(text))


def query_terms(text: str) -> list[str]:
    """The distinct terms of a question, without the words that only make it one."""
    english = in_english(text)
    if english == text:
        return _telling(own_terms(text))
    language = language_of(text)
    tokens = [token for token in _tokens(text) if language is None or not _is_stop_word(token, language)]
    return _telling(_terms_of_all(tokens) + _terms_of_all(_tokens(english))) or _telling(terms(text))


def _is_stop_word(token: str, language: str) -> bool:
    """Whether English has nothing but stop words for it. With a capital it may be a name: Mia, Will."""
    english = gloss(token, language) if token.islower() and token.isalpha() else None
    return english is not None and not _terms_of_all(_tokens(english))


def keyword_terms(text: str) -> list[str]:
    """As `query_terms`, in the text's own language alone."""
    return _telling(own_terms(text))


def _telling(found: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(found))
    return [term for term in distinct if term not in ASKING_WORDS] or distinct


def _tokens(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).replace("’", "'"))


def _read(token: str) -> tuple[str, ...]:
    """The terms of one token, none for a stop word."""
    if token.isascii():
        return _latin(token)
    found: list[str] = []
    for unspaced, hangul, other in _BY_SCRIPT.findall(token):
        if unspaced:
            found += _pairs(_LETTER.findall(unspaced))
        elif hangul:
            found += _hangul(hangul)
        else:
            found += _spaced(other)
    return tuple(found)


_terms_of = lru_cache(maxsize=TOKENS_KEPT)(_read)


def _single_letters(text: str) -> dict[str, None]:
    """Those that may be a word."""
    letters: dict[str, None] = {}
    for unspaced, hangul, _ in _BY_SCRIPT.findall(unicodedata.normalize("NFKC", text)):
        # What follows a Korean word is a particle more often than not, so only the first syllable may be one.
        letters.update(dict.fromkeys(_LETTER.findall(unspaced) if unspaced else hangul[:1]))
    return dict.fromkeys(letter[:MAX_TERM_CHARS] for letter in letters)


def _plain(token: str) -> list[str]:
    """A token's words as they are, for a text of which nothing else would be left."""
    return [word[:MAX_TERM_CHARS] for word in WORD_PIECE.findall(token.replace("'", "").casefold())]


def _pairs(letters: list[str]) -> list[str]:
    if len(letters) < 2:
        return [letter[:MAX_TERM_CHARS] for letter in letters]
    return [(first + second)[:MAX_TERM_CHARS] for first, second in pairwise(letters)]


def _hangul(word: str) -> list[str]:
    """The word with its particle, and pairs, which find it under any other particle."""
    pairs = _pairs(list(word))
    return pairs if len(word) <= 2 else [word[:MAX_TERM_CHARS], *pairs]


def _spaced(word: str) -> tuple[str, ...]:
    if _ARABIC.search(word):
        return _arabic(word)
    folded = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", word)))
    folded = folded.translate(_LETTERS_WITHOUT_ACCENT)
    if folded.isascii():
        return _latin(folded)
    bare = folded.casefold().strip(".@'&+-#_")
    return (bare[:MAX_TERM_CHARS],) if bare else ()


def _arabic(word: str) -> tuple[str, ...]:
    """Without vowel signs and article. A prefix of one letter may also belong to the word: both readings count."""
    bare = word.translate(_ARABIC_LETTERS).strip(".@'&+-#_\u200c\u200d")
    if not bare or bare in _ARABIC_STOP_WORDS:
        return ()
    article = next((one for one in _ARABIC_ARTICLES if bare.startswith(one) and len(bare) >= len(one) + 3), "")
    if article:
        return (bare.removeprefix(article)[:MAX_TERM_CHARS],)
    if bare.startswith(_ARABIC_PREFIXES) and len(bare) > 4:
        return (bare[:MAX_TERM_CHARS], bare[1:][:MAX_TERM_CHARS])
    return (bare[:MAX_TERM_CHARS],)


def _latin(token: str) -> tuple[str, ...]:
    if token.isalpha() and not _is_camel(token):
        return _word(token)
    if token.endswith(("++", "#")) and len(token) > 4:
        token = token.rstrip("+#")
    if "'" in token:
        if token.lower().endswith("n't"):
            return ()
        word, _, ending = token.rpartition("'")
        token = (word if ending.lower() in _CONTRACTIONS else token).replace("'", "")
    token = token.strip("_")
    if token.isalpha() and not _is_camel(token):
        return _word(token)
    return _made_name(token)


def _word(token: str) -> tuple[str, ...]:
    is_plural_of_capitals = len(token) > 2 and token.endswith("s") and token[:-1].isupper()
    word = (token[:-1] if is_plural_of_capitals else token).lower()
    if word in STOP_WORDS and token not in _CAPITALS_THAT_ARE_NO_STOP_WORDS:
        return ()
    return (stem(word)[:MAX_TERM_CHARS],)


def _is_camel(token: str) -> bool:
    """Capitals inside: neither `Name` nor `NAME` nor `PCs`."""
    return not (token.islower() or token[1:].islower() or token.isupper() or token[:-1].isupper())


def _made_name(token: str) -> tuple[str, ...]:
    """An identifier, number, version, file name, address: whole, and by its parts."""
    whole = token.lower()
    if not whole:
        return ()
    if _is_number(token):
        years = (
            [part for part in token.split("-") if len(part) == 4 and part[:2] in ("19", "20")] if "-" in token else []
        )
        return (whole.replace(",", "")[:MAX_TERM_CHARS], *years)
    parts = _parts(token)
    if token.replace("-", "").isalpha() and "-" in token and not _is_camel(token.replace("-", "")):
        return (*parts, stem(whole.replace("-", ""))[:MAX_TERM_CHARS]) if token.count("-") == 1 else tuple(parts)
    if all(len(piece) == 1 for piece in token.split(".")):
        return (whole.replace(".", "")[:MAX_TERM_CHARS],)
    return (whole[:MAX_TERM_CHARS], *parts)


def _is_number(token: str) -> bool:
    """A version too: `v1.2.3`."""
    digits = token[1:] if token[0] in "vV" else token
    return all(part.isdecimal() for part in digits.translate(_NUMBER_SIGNS).split(" "))


def _parts(token: str) -> list[str]:
    found: list[str] = []
    for piece in WORD_PIECE.findall(token[: MAX_TERM_CHARS * MAX_PARTS]):
        is_ordinal = piece[:-2].isdecimal() and piece.endswith(("st", "nd", "rd", "th"))
        is_cut = is_ordinal or (piece.isalpha() and not _is_camel(piece))
        for part in (piece,) if is_cut else CAMEL.findall(piece):
            word = part.lower()
            if word != token.lower() and word not in STOP_WORDS and (len(word) > 1 or word.isdigit()):
                found.append(stem(word)[:MAX_TERM_CHARS])
    return found[:MAX_PARTS]


# ── The names by which entries are known outside: a place of the store, as text ──

ENTRY_ID = "^m(?:[1-9a-f][0-9a-f]{0,14}|[1-7][0-9a-f]{15})$"
"""A place is between 1 and 2^63 - 1."""
LAST_PLACE = 2**63 - 1


def entry_id(place: int) -> str:
    return f"m{place:x}"


def place_named(name: str) -> int | None:
    """None for what is no entry's id."""
    try:
        place = int(name[1:17], 16)
    except ValueError:
        return None
    return place if 0 < place <= LAST_PLACE and entry_id(place) == name else None
