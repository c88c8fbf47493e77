"""What a word of a text is: what telegraph style does with it, what it counts, whether a clause ends with it.

Words are what lies between spaces. The same ones come again and again, so each is looked at once and remembered.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

# ── The English that telegraph style knows: words it leaves out, words that say little. Other  ──


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DROPPED = _words(
    """
    a an the am is are was were be been being have has had having do does did doing shall
    i i'm im i've ive i'd i'll me my myself yourself it it's its that that's thats this these those there there's
    we us our we're we've we'll you're youre you've you'd you'll he's she's they're they've who's what's here's let's
    really very so just quite pretty rather actually basically literally totally absolutely definitely certainly
    obviously honestly simply truly super kinda sorta gonna gotta also then well even such of some any as which
    oh ah um uh hmm hm wow whoa yay hey hi hello yo yeah yep yup yes ok okay please thanks thank bye goodbye welcome
    haha hah lol omg aww aw cheers sure cool awesome congrats congratulations sorry anyway anyways lets
    """
)
"""Left out wherever they stand. Nothing that negates, compares, bounds, asks or says who and whether is among them."""

GREETINGS = _words(
    "hey hi hello thanks thank wow yeah yep yes ok okay bye congrats congratulations sure cool awesome sorry aww oh "
    "you absolutely definitely totally welcome"
)
"""A name right after one of these is only called, not spoken of."""

SMALL = _words("to for in on at into onto about up out and or with by from")
"""Left out before a plain word, kept before a number or a name: `moved to Berlin`, `from 3 to 5`, `at 10:30`."""
LINKING = _words("and or with by from")
"""Of the small words, those kept between any two: who with whom, this or that."""

OPENERS = _words("because although though while whereas unless since if when after before until")
SILENT_OPENERS = frozenset(("so", "and", "but"))
"""A clause begins here as well; the word says nothing once the clause before is gone."""
SUBJECTS = _words(
    "i i'm i've i'd i'll you you're he she it it's we we're we've they they're that this there he's she's my"
)
"""After `and`, the sign that a clause begins rather than a list goes on."""

_HEDGES = """
    i think|i guess|i believe|i mean|i bet|i suppose|you know|you see|kind of|sort of|a lot|lots of|of course|by the|
    the way|as well|at all|in fact|have been|has been|had been|so much|very much|good luck|no problem|no worries|
    glad to|great to|nice to|good to|a bit|let me
"""
HEDGES = frozenset(hedge.strip() for hedge in _HEDGES.split("|"))
"""Two words of which nothing is kept."""

GENERIC = _words(
    """
    amazing awesome great good nice cool wonderful fantastic incredible lovely beautiful happy glad excited exciting
    fun interesting perfect excellent special important thing things something anything everything someone anyone
    everyone way lot lots bit kind sort stuff much many more most other another same own able enough already yet soon
    get gets got getting go goes going went gone come comes came make makes made making take takes took taking give
    gives gave see sees saw seen look looks looked looking know knows knew think thinks thought feel feels felt feeling
    say says said tell told talk talking want wants wanted need needs needed like likes liked love loves loved let
    try tried trying keep keeps kept help helps helped hope wish sounds sound seem seems wait share shares sharing
    shared guess mean right now today time times day days always ever never again back around over down off away here
    there where when what how why who than if or not no don't can can't won't while because but up out about with from
    by into at on in for to and one still since before after all both few new old big little long last next first maybe
    must should may might every each less least later together inspiring could would will you your too
    him her his their them they he she hers theirs ours pic photo picture image
    agree hear heard proud lucky grateful thankful appreciate appreciated worth huge tough true self world life words
    remind reminds part awe stoked pumped super sweet cute gorgeous matter matters happen happened happens truly
    completely exactly understand understood clear sense point course idea ideas chance moment moments step works
    """
)
"""Words nobody will ask for later: they count little, whatever is said."""

ABBREVIATIONS = _words("mr. mrs. ms. dr. prof. st. vs. e.g. i.e. etc. cf. no. approx. inc. ltd. jr. sr. fig. p. pp.")
"""Their full stop ends no sentence."""

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
TIME_WORDS = _words(
    "monday tuesday wednesday thursday friday saturday sunday week weeks weekend month months year years yesterday "
    "tomorrow tonight morning evening hour hours minutes"
)
NUMBER_WORDS = _words(
    "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty fifty hundred thousand million "
    "once twice half dozen second third fourth"
)
DECIDING = _words(
    "decided decide decision agreed chose chosen picked approved rejected settled confirmed deadline todo instead "
    "wrong correction corrected fixed broke broken failed fails failure error exception renamed switched cancelled "
    "canceled postponed promised"
)
"""Words of decisions, corrections and results: the clause that holds one counts more."""
REQUESTS = ("can you", "could you", "would you", "will you", "please", "how do i", "how can i", "what if we")
"""How questions begin that ask for something to be done: they count as statements do."""


SHAPES_KEPT = 1 << 14
LONGEST_TERM_CHARS = 48
MOST_TERMS = 16
"""Of one word. A path of more parts counts by its first ones."""

KEPT, LEFT_OUT, LITTLE, OPENING, SILENT = range(5)
"""What telegraph style does with a word: keeps it; leaves it out; leaves it out before a plain word; begins a clause
with it; begins a clause without it."""
NO_END, SOFT_END, HARD_END, QUESTION_END = range(4)
"""What ends with a word: nothing, a clause, a sentence, a question."""

# About how much likelier an answer of LoCoMo asks for a word of each kind than for a plain one. Half or twice as much
# changes the share of answers kept by a point or less.
PLAIN_WEIGHT = 1.0
TELLING_WEIGHT = 0.6
"""What was done and how it was: verbs in `-ed` and `-ing`, words in `-ly`. What is asked for is rather what it was."""
GENERIC_WEIGHT = 0.2
NAME_WEIGHT = 6.0
NUMBER_WEIGHT = 5.0
TIME_WEIGHT = 2.0
IDENTIFIER_WEIGHT = 3.0
OPENING_CAPITAL_WEIGHT = 1.2
"""The first word of a sentence says little about names by its capital."""
PAIR_WEIGHT = 0.5
"""Two letters of a script without spaces; a word has about two such pairs."""

Term = tuple[str, str, float]
"""A word as coverage counts it: its form, its stem (which its other forms share), its weight."""


class Shape(NamedTuple):
    text: str
    """As it is printed: without the mark that ends its clause."""
    role: int
    end: int
    is_particular: bool
    """A number, a name or an identifier: small words before it are kept."""
    terms: tuple[Term, ...]
    opening_terms: tuple[Term, ...]
    """What it counts as the first word of a sentence."""
    lower: str
    begins_hedge: bool
    is_deciding: bool


UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e01-\u0e4e\u0e81-\u0ede"
    "\u1780-\u17d3\u1000-\u109d\U00020000-\U0003ffff"
)
"""Han, kana, Thai, Lao, Khmer, Burmese: scripts that put no spaces between words."""
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_PIECES = re.compile(r"[^\W_]+")
_MADE = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\w[._/\\@#:=]\w|_|\d[A-Za-z]|[A-Za-z]\d")
"""Names made by people or machines: camelCase, LGBTQ, file.py, user@host, v2."""
_MARKS = ".,;:!?…。！？；，、："
_OPENING = "\"'“‘«([{*_`#>~-–—•·「『（"
_CLOSING = "\"'”’»)]}*_`~」』）"
_BRACKETS = tuple((pair[0], pair[1]) for pair in ("()", "[]", "{}", '""', "“”", "‘’", "``", "「」", "『』", "（）"))
_TELLING = ("ed", "ing", "ly", "ive", "able", "ful", "ous")
_HEDGE_OPENERS = frozenset(hedge.split()[0] for hedge in HEDGES)


@lru_cache(SHAPES_KEPT)
def shape_of(word: str) -> Shape:
    bare = word.rstrip(_CLOSING)
    unmarked = bare.rstrip(_MARKS)
    marks = bare[len(unmarked) :]
    core = unmarked.strip(_OPENING + _CLOSING)
    lower = core.lower().replace("’", "'")
    end = _end(word, bare, marks)
    if not core:
        return Shape("", LEFT_OUT, end, False, (), (), "", False, False)
    is_simple = core.isalpha() and core.islower()
    is_made = not is_simple and _MADE.search(core) is not None
    is_capitalised = core[0].isupper()
    has_digit = not is_simple and any(map(str.isdigit, core))
    terms = _terms(core, lower, is_made=is_made, is_capitalised=is_capitalised)
    opening = terms
    if is_capitalised and not (is_made or has_digit):
        opening = tuple((form, root, min(weight, OPENING_CAPITAL_WEIGHT)) for form, root, weight in terms)
    return Shape(
        text=core if core == unmarked == word else _printed(word, bare, marks if end and "…" not in marks else ""),
        role=_role(core, lower, end),
        end=end,
        is_particular=has_digit or is_made or is_capitalised,
        terms=terms,
        opening_terms=opening,
        lower=lower,
        begins_hedge=lower in _HEDGE_OPENERS and not end,
        is_deciding=lower in DECIDING,
    )


def _role(core: str, lower: str, end: int) -> int:
    if core.isupper() and len(core) > 1 and core != "OK":  # IT, US, AM
        return KEPT
    if lower in SILENT_OPENERS:
        return SILENT
    if lower in DROPPED or (lower == "too" and end):
        return LEFT_OUT
    if lower in SMALL:
        return LITTLE
    return OPENING if lower in OPENERS else KEPT


def _end(word: str, bare: str, marks: str) -> int:
    if not marks:
        return SOFT_END if not word.strip("-–—|") else NO_END
    if "?" in marks or "？" in marks:
        return QUESTION_END
    if marks == ".":
        is_initial = len(bare) == 2 and bare[0].isupper()
        return NO_END if is_initial or bare.lower().lstrip(_OPENING) in ABBREVIATIONS else HARD_END
    return SOFT_END if marks in (",", ";", ":", "，", "、", "；", "：") else HARD_END


def _printed(word: str, bare: str, marks: str) -> str:
    """Without the marks that end its clause, without emphasis, and without a bracket whose other half is elsewhere."""
    text = (bare.removesuffix(marks) + word[len(bare) :]).strip("*") or word
    for opening, closing in _BRACKETS:
        halves = 1 if opening == closing else 0
        if text.startswith(opening) and text.count(closing) == halves:
            text = text[1:]
        elif text.endswith(closing) and text.count(opening) == halves:
            text = text[:-1]
    return text


# ── what it counts ────────────────────────────────────────────────────────────────────────────


def _terms(core: str, lower: str, *, is_made: bool, is_capitalised: bool) -> tuple[Term, ...]:
    if not core.isascii() and _UNSPACED_RUN.search(core):
        return _pairs(lower)
    terms = []
    for piece in _PIECES.findall(lower.removesuffix("'s"))[:MOST_TERMS]:
        form = piece[:LONGEST_TERM_CHARS]
        if form in GENERIC:
            weight = GENERIC_WEIGHT
        elif form in DROPPED and not core.isupper():
            continue
        elif form[0].isdigit() or form in NUMBER_WORDS:
            weight = NUMBER_WEIGHT
        elif form in TIME_WORDS or (is_capitalised and form in MONTHS):
            weight = TIME_WEIGHT
        elif is_capitalised:
            weight = NAME_WEIGHT
        elif is_made:
            weight = IDENTIFIER_WEIGHT
        else:
            weight = TELLING_WEIGHT if form.endswith(_TELLING) and len(form) > 5 else PLAIN_WEIGHT
        terms.append((form, stem(form), weight))
    return tuple(terms)


def _pairs(lower: str) -> tuple[Term, ...]:
    found: dict[str, Term] = {}
    for run in _UNSPACED_RUN.findall(lower):
        for at in range(max(1, len(run) - 1)):
            pair = run[at : at + 2]
            found[pair] = (pair, pair, PAIR_WEIGHT)
    for form in _PIECES.findall(_UNSPACED_RUN.sub(" ", lower)):
        found[form] = (form, stem(form), NUMBER_WEIGHT if form[0].isdigit() else NAME_WEIGHT)
    return tuple(found.values())


def stem(word: str) -> str:
    """Plurals and the forms of a verb, roughly. A key, not a word; what is no small English word stays as it is."""
    if len(word) < 4 or not word.isascii() or word[-1].isdigit():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "i"
    if word.endswith("ing") and len(word) > 5:
        word = word[:-3]
    elif len(word) > 4 and word.endswith(("ed", "ses", "xes", "zes", "hes")):
        word = word[:-2]
    elif word.endswith("s") and word[-2] not in "su":
        word = word[:-1]
    if len(word) < 4:
        return word
    if word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") else word.rstrip("e")
