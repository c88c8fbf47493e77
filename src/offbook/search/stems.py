"""A light English stemmer: the first steps of Porter's, with the irregular forms people use most.

It joins what a reader takes for the same word (`moves`, `moved`, `moving`; `go`, `went`) and leaves derivations apart
(`organise`, `organ`). A stem is a key, not a word: both sides of a search go through it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

SHORTEST_STEMMED_CHARS = 3
LONGEST_STEMMED_CHARS = 32
"""Longer than any English word that inflects; what is longer is an identifier or a hash."""
STEMS_KEPT = 1 << 16

_IRREGULAR = {
    form: base
    for base, forms in {
        "go": "goes going gone went",
        "run": "ran",
        "buy": "bought",
        "bring": "brought",
        "think": "thought thoughts",
        "teach": "taught",
        "catch": "caught",
        "take": "took taken",
        "make": "made",
        "give": "gave given",
        "get": "got gotten getting",
        "see": "saw seen",
        "eat": "ate eaten",
        "drive": "drove driven",
        "write": "wrote written",
        "speak": "spoke spoken",
        "break": "broke broken",
        "choose": "chose chosen",
        "wear": "wore worn",
        "meet": "met",
        "leave": "left",
        "feel": "felt",
        "keep": "kept",
        "sleep": "slept",
        "lose": "lost",
        "sell": "sold",
        "tell": "told",
        "say": "said says",
        "find": "found",
        "send": "sent",
        "spend": "spent",
        "build": "built",
        "pay": "paid",
        "hold": "held",
        "hear": "heard",
        "know": "knew known",
        "grow": "grew grown",
        "fly": "flew flown flies",
        "draw": "drew drawn",
        "throw": "threw thrown",
        "begin": "began begun",
        "swim": "swam swum",
        "sing": "sang sung",
        "drink": "drank drunk",
        "win": "won",
        "fight": "fought",
        "forget": "forgot forgotten",
        "become": "became",
        "come": "came",
        "sit": "sat sitting",
        "stand": "stood",
        "understand": "understood",
        "ride": "rode ridden",
        "fall": "fell fallen",
        "die": "died dies dying",
        "lie": "lied lying",
        "tie": "tied tying",
        "child": "children",
        "woman": "women",
        "man": "men",
        "person": "people persons",
        "foot": "feet",
        "tooth": "teeth",
        "mouse": "mice",
        "wife": "wives",
        "life": "lives",
        "knife": "knives",
        "leaf": "leaves",
        "shelf": "shelves",
        "wolf": "wolves",
        "bus": "buses",
        "gas": "gases",
        "center": "centre centres centers",
        "theater": "theatre theatres theaters",
        "meter": "metre metres meters",
        "liter": "litre litres liters",
        "program": "programme programmes programs",
        "gray": "grey",
        "license": "licence licences licenses",
        "defense": "defence",
        "mom": "mum mums moms",
    }.items()
    for form in forms.split()
}
_KEPT_TEXT = (
    "news series species evening wedding ceiling sibling embed indeed hundred sacred naked during various always "
    "perhaps red bed led fed thus yes this his was has does plus lens bias atlas canvas christmas monday tuesday "
    "wednesday thursday friday saturday sunday goes april july italy germany"
)
_KEPT = frozenset(_KEPT_TEXT.split())
_FORMS: dict[str, list[str]] = {}
_OUR = "col fav behavi neighb hon hum lab flav harb rum arm vap tum sav endeav glam parl savi splend vig cand ferv"
_ISE = (
    "organ real recogn apolog memor summar custom optim priorit categor visual final normal minim maxim util special "
    "modern character emphas critic author social"
)
_YSE = "anal paral catal"
_AMERICAN = {f"{root}our": f"{root}or" for root in _OUR.split()}
_AMERICAN |= {f"{root}is{end}": f"{root}iz{end}" for root in _ISE.split() for end in ("e", "ing", "ation")}
_AMERICAN |= {f"{root}ys{end}": f"{root}yz{end}" for root in _YSE.split() for end in ("e", "ing")}
_BRITISH = {f"{root}or": f"{root}our" for root in _OUR.split()}
_BRITISH |= {f"{root}iz": f"{root}is" for root in _ISE.split()} | {f"{root}yz": f"{root}ys" for root in _YSE.split()}
_VOWELS = frozenset("aeiou")
_DOUBLED = frozenset("bdfgmnprt")
_LY_AFTER = frozenset("cdeghklmnrstwxy")
"""Letters before a -ly that makes an adverb: `supply`, `assembly`, `butterfly` and `family` end otherwise."""


@lru_cache(maxsize=STEMS_KEPT)
def stem(word: str) -> str:
    """The stem of a lower-case word. Words with anything but a to z in them are their own stems."""
    if word in _IRREGULAR:
        return _inflected(_IRREGULAR[word])
    is_stemmed = SHORTEST_STEMMED_CHARS <= len(word) <= LONGEST_STEMMED_CHARS
    if not is_stemmed or word in _KEPT or not (word.isascii() and word.isalpha()):
        return word
    return _inflected(_american(word))


def roots(stemmed: str) -> tuple[str, ...]:
    """Whatever word has this stem holds one of these: for a search in a text that nobody has read into words."""
    if not (stemmed.isascii() and stemmed.isalpha()):
        return (stemmed,)
    british = [stemmed.replace(ours, theirs, 1) for ours, theirs in _BRITISH.items() if ours in stemmed]
    spelt = dict.fromkeys((stemmed, *british))
    found = [root for one in spelt for root in _uninflected(one)]
    return tuple(dict.fromkeys([*found, *_forms().get(stemmed, ())]))


def _uninflected(stemmed: str) -> list[str]:
    """A final e may be ours (`baking`, `bake`), and a final i was a y (`carry`, `carri`)."""
    if stemmed.endswith("e") and len(stemmed) > 2:
        return [stemmed[:-1]]
    return [stemmed, f"{stemmed[:-1]}y"] if stemmed.endswith("i") else [stemmed]


def _forms() -> dict[str, list[str]]:
    """The irregular forms by their stem."""
    if not _FORMS:
        found: dict[str, list[str]] = {}
        for form, base in _IRREGULAR.items():
            found.setdefault(_inflected(base), []).append(form)
        _FORMS.update(found)
    return _FORMS


def _american(word: str) -> str:
    if "our" in word or "is" in word or "ys" in word:
        for british, american in _AMERICAN.items():
            word = word.replace(british, american, 1)
    return word


def _inflected(word: str) -> str:
    return _without_final_e(_final_y(_without_ly(_without_ed_or_ing(_without_plural(word)))))


def _without_plural(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2] if len(word) > 4 else word[:-1]
    return word[:-1] if _has_vowel(word[:-2]) else word


def _without_ed_or_ing(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    if word.endswith("ied"):
        return word[:-2] if len(word) > 4 else word[:-1]
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return _mended(rest) if len(rest) > 1 and _has_vowel(rest) else word
    return word


def _mended(rest: str) -> str:
    """What `-ed` or `-ing` was added to: `bak` was `bake`, `runn` was `run`."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] in _DOUBLED:
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _without_ly(word: str) -> str:
    rest = word[:-2]
    if not word.endswith("ly") or len(rest) < 4:
        return word
    return rest if rest[-1] in _LY_AFTER or (rest[-1] == "i" and len(rest) > 4) else word


def _final_y(word: str) -> str:
    return word[:-1] + "i" if len(word) > 2 and word[-1] == "y" and word[-2] not in _VOWELS else word


def _without_final_e(word: str) -> str:
    if word.endswith("ll") and _measure(word) > 1:
        return word[:-1]
    if not word.endswith("e"):
        return word
    rest = word[:-1]
    measure = _measure(rest)
    return rest if measure > 1 or (measure == 1 and not _ends_short(rest)) else word


def _is_consonant(word: str, at: int) -> bool:
    if word[at] == "y":
        return at == 0 or not _is_consonant(word, at - 1)
    return word[at] not in _VOWELS


def _has_vowel(word: str) -> bool:
    return any(not _is_consonant(word, at) for at in range(len(word)))


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant: Porter's m, about the number of syllables."""
    kinds = [_is_consonant(word, at) for at in range(len(word))]
    return sum(1 for before, after in pairwise(kinds) if not before and after)


def _ends_short(word: str) -> bool:
    """Consonant, vowel, consonant: the end of `hop(e)`, `mak(e)`."""
    if len(word) < 3 or word[-1] in "wxy":
        return False
    at = len(word) - 1
    return _is_consonant(word, at) and not _is_consonant(word, at - 1) and _is_consonant(word, at - 2)
