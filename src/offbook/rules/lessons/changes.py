"""What a lesson takes the place of, by its own words: "… now", "…, not blue", "instead of MySQL", "changed my mind".

Choices, wishes and orders are all of one make: a verb, what it is done with, and what for ("use | MySQL | for
reporting"). The newer of two takes the place of the older where only one of these differs, and it names the old one as
dropped, or says that it has changed between things of one kind. What is not surely the same subject stays beside it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from offbook.model.lesson import LessonKind
from offbook.rules.lessons.voice import without_reason
from offbook.search.stems import stem
from offbook.search.words import terms

# ── What people have one of at a time, of the same kind: who prefers coffee *now* no longer pr ──

_KINDS = (
    "tea / coffee / green tea / black tea / cocoa / juice / water / sparkling water / still water / soda / mate",
    "beer / wine / red wine / white wine / cider / whisky / whiskey / gin",
    "oat milk / soy milk / almond milk / cow's milk / milk / cream",
    "red / blue / green / yellow / orange / purple / pink / black / white / grey / gray / brown / turquoise",
    "tabs / spaces",
    "tabs / two spaces / four spaces / 2 spaces / 4 spaces / eight spaces / 8 spaces",
    "single / double",
    "single quotes / double quotes",
    "dark / light",
    "dark mode / light mode",
    "short / long / brief / detailed / concise",
    "formal / informal / casual",
    "window / aisle",
    "window seats / aisle seats / the window / the aisle",
    "morning / afternoon / evening / mornings / afternoons / evenings / nights",
    "metric / imperial",
    "metric units / imperial units",
    "celsius / fahrenheit / kelvin",
    "kilometres / miles",
    "12-hour / 24-hour",
    "email / e-mail / slack / teams / phone / calls / chat / text messages / letters / signal / whatsapp / telegram",
    "train / car / bus / bike / plane / tram / trains / planes / buses / taxi / ferry",
    "cats / dogs",
    "summer / winter / spring / autumn / fall",
    "german / english / french / spanish / italian / portuguese / dutch / swedish / polish / russian / turkish / "
    "japanese / chinese / korean / american english / british english",
    "american / british / australian",
    "mysql / mariadb / postgres / postgresql / sqlite / oracle / mongodb / sql server / cockroachdb / duckdb",
    "vim / neovim / emacs / helix / nano / vs code / vscode / sublime / zed",
    "bash / zsh / fish",
    "linux / windows / macos",
    "ubuntu / debian / fedora / arch",
    "firefox / chrome / safari / edge / brave",
    "npm / yarn / pnpm / bun",
    "pip / poetry / uv / pipenv / conda",
    "pytest / unittest",
    "github / gitlab / bitbucket",
    "aws / azure / gcp / google cloud / hetzner",
    "rebase / merge / squash",
    "rebasing / merging / squashing",
    "json / yaml / toml / xml",
    "rest / graphql / grpc",
    "jira / linear / trello / asana",
    "zoom / teams / google meet",
)
_OF_KIND: dict[str, set[int]] = {}
for _number, _kind in enumerate(_KINDS):
    for _one in _kind.split(" / "):
        _OF_KIND.setdefault(" ".join(terms(_one)), set()).add(_number)


def are_alternatives(one: str, other: str) -> bool:
    """Of two different things, as stems with blanks between them."""
    return one != other and bool(_OF_KIND.get(one, set()) & _OF_KIND.get(other, set()))


LONGEST_READ_CHARS = 300
TEXTS_KEPT = 4096

_ITEM = r"[\w'.+#-]+(?: [\w'.+#-]+){0,2}?"
_DROPPED = re.compile(
    r"(?:,? (?:instead of|rather than|in place of)|\s?[,;–—]\s?(?:and )?(?:not|no longer))"
    r" (?!(?:only|just|because|when|if|even|always|every|all|too|so|that|this|it|more|less|as|like|to|the (?:other|old)"
    rf"|\w+ing)\b)(?:in |with |on |at |the |an? )?(?P<old>{_ITEM})(?: any ?more| now)?"
    r"(?=[\s.!,;]*\Z| (?:for|in|on|at|as|when|from|with|by|during)\b)",
    re.IGNORECASE,
)
_WORDS_OF_CHANGE = (
    r"from (?:now|here|today) on(?:wards?)?|going forward|moving forward|in (?:the )?future|henceforth|now|nowadays|"
    r"these days|instead|any ?more|as of (?:now|today)"
)
_AT_THE_END = re.compile(rf"(?:[\s,]+(?:{_WORDS_OF_CHANGE}))+(?=[\s.!]*\Z)", re.IGNORECASE)
_ANYWHERE = re.compile(rf"[\s,]*\b(?:{_WORDS_OF_CHANGE}|by default|at all times|every time|please)\b(?! of\b)", re.I)
_NOW = re.compile(rf"\b(?:{_WORDS_OF_CHANGE}|no longer)\b(?! of\b)", re.IGNORECASE)
_INSTEAD = re.compile(
    r"\binstead\b(?! of\b)|\bchanged (?:my|our|their) minds?\b|\b(?:switch|migrat)(?:e|ing)? to\b", re.I
)
CHANGED_MIND = (
    r"(?:i|we|they)(?:'ve| have)? (?:just )?changed (?:my|our|their) minds?(?: (?:about|on) [^\n,:;.]{2,60})?"
)

_QUOTED = re.compile(r"\A(?P<who>[^\n“]{1,80}?) (?P<how>asked me|corrected me|said): “(?P<said>.+)”\Z", re.DOTALL)
_BEFORE = re.compile(
    r"(?:(?:ok|okay|so|well|and|but|also|yes|no(?! longer\b)|actually|please|just|only|really|strongly|usually|"
    r"generally|still|"
    r"always|by default|as a rule|remember to|make sure (?:to|you|that you)|you (?:should|must)|i want you to|"
    rf"i'd like you to|let's|{_WORDS_OF_CHANGE}|{CHANGED_MIND}|(?:final |our |my |team )?(?:decision|decided|agreed)"
    r"(?=\s?[:–—-])|(?:we|i|they)(?:'ve| have| had|'ll| will|'re going to| are going to|'re| are)?(?: (?:just|finally|"
    r"now|all|both|already))?(?: (?:decided|agreed|resolved|opted|committed))?(?: (?:on|to|that|for|upon))?)"
    r"(?![\w'])[\s,:;.!–—-]*)*+",
    re.IGNORECASE,
)
_NO = re.compile(
    r"(?:no longer|not going to|not to|not|won't|will not|don't|do not|to stop|stop|stopped)\s+(?=\w)", re.IGNORECASE
)
_USE = re.compile(
    r"(?:use|using|go(?:ing)? with|switch(?:ing)? to|stick(?:ing)? (?:with|to)|settle on|settled on|adopt(?:ing)?|"
    r"choose|chose|chosen|pick|picked|move to|moving to|migrat(?:e|ing) to|stay(?:ing)? (?:with|on)|keep using|"
    r"standardi[sz]e on)\b",
    re.IGNORECASE,
)
_SWITCHED = re.compile(
    r"(?:just |now |finally |recently )?(?:switch(?:ed|ing)?|migrat(?:ed?|ing)|mov(?:ed?|ing)|converted)(?: over)? "
    rf"from (?P<old>{_ITEM}) to ",
    re.IGNORECASE,
)
_PREFER = re.compile(r"prefer\b", re.IGNORECASE)
_OVER = re.compile(rf"\A(?P<new>[^\n]{{2,60}}?) (?:over|to|more than) (?P<old>{_ITEM})(?=[\s.!]*\Z| for\b)", re.I)
_SEVERAL = re.compile(r"[,;:()]|\b(?:and|or|but|if|unless|except|not|also|too|both|either)\b", re.IGNORECASE)
_FOR = re.compile(r"\b(for|in|on|with|at|when|whenever|as|during|to|from|by)\b")
_GENERIC = frozenset(map(stem, ("service", "project", "system", "app", "application", "platform", "job", "part")))
"""What is for reporting is for the reporting service, too."""


class Frame(NamedTuple):
    """A choice, a wish or an order, cut into its parts."""

    whose: str
    verb: str
    slots: dict[str, tuple[str, ...]]
    """By preposition, what is done with without one."""
    dropped: frozenset[str]
    """What it names as the one before."""
    is_change: bool
    is_instead: bool
    """It says that it stands for something else, and not only since when."""
    is_denied: bool


def parted_from_old(clause: str) -> tuple[str, str]:
    """The clause without what it drops, and that: "… green, not blue", "use X instead of Y for …". "" where it names
    nothing."""
    found = _DROPPED.search(clause)
    if found is None or not _BEFORE.sub("", clause[: found.start()], count=1):  # "from now on, no longer use tabs"
        return clause, ""
    return clause[: found.start()] + clause[found.end() :], found["old"]


def without_now(text: str) -> str:
    """Without the words of change at its end."""
    return _AT_THE_END.sub("", text)


def groups_of(frame: Frame) -> set[str]:
    """Two that have none in common differ in more than one part: they need not be compared."""
    parts = {slot: f"{slot} {' '.join(_telling(words))}" for slot, words in frame.slots.items()}
    return {
        f"to {frame.verb}: {', '.join(f'{other} …' if other == slot else parts[other] for other in sorted(parts))}"
        for slot in parts
    }


def takes_place_of(new: Frame, old: Frame) -> bool:
    """Whether the newer of two takes the place of the older."""
    if new.verb != old.verb or new.slots.keys() != old.slots.keys():
        return False
    if new.verb == "prefer" and new.whose != old.whose:
        return False
    if new.is_denied or old.is_denied:  # to do it, and to do it no longer
        return new.is_denied != old.is_denied and bool(new.slots[""]) and new.slots == old.slots
    others = [slot for slot in new.slots if _telling(new.slots[slot]) != _telling(old.slots[slot])]
    if len(others) != 1:
        return False
    chosen, before = new.slots[others[0]], old.slots[others[0]]
    if not chosen or not before or set(chosen) <= set(before) or set(before) <= set(chosen):
        return False  # it only says more, or less
    if new.dropped:
        return new.dropped <= set(before)
    if old.dropped == frozenset(chosen):
        return True  # back to what was dropped
    is_the_thing = (others[0] == "") == (new.verb in ("use", "prefer"))  # and what it is for is the same
    if new.is_instead and is_the_thing and any(new.slots[slot] for slot in new.slots if slot != others[0]):
        return True
    return new.is_change and _are_of_one_kind(chosen, before)


@lru_cache(TEXTS_KEPT)
def frame_of(kind: LessonKind, text: str) -> Frame | None:
    """None where a lesson is of another make, or not so plain that it can be compared."""
    if kind == "procedure" or len(text) > LONGEST_READ_CHARS:
        return None
    quoted = _QUOTED.match(text)
    claim = quoted["said"] if quoted else text
    rest = _BEFORE.sub("", claim, count=1)
    denied = _NO.match(rest)
    rest = rest[denied.end() :] if denied else rest
    is_order = quoted is not None and quoted["how"] == "asked me"
    verb, rest, old = _verb(rest, is_any=is_order or kind == "decision")
    if not verb or (kind == "fact" and verb != "use"):
        return None
    if not old:
        rest, old = parted_from_old(without_reason(rest))
    if verb == "prefer" and not old and (over := _OVER.match(rest)):
        rest, old = over["new"] + rest[over.end() :], over["old"]
    slots = _slots(_ANYWHERE.sub("", rest).strip(" .!").lower())  # "MySQL" is one word then, as "mysql" is
    if slots is None:
        return None
    return Frame(
        whose=quoted["who"] if quoted else "They",
        verb=verb,
        slots=slots,
        dropped=frozenset(terms(old.lower())),
        is_change=bool(_NOW.search(claim)),
        is_instead=bool(_INSTEAD.search(claim)),
        is_denied=denied is not None,
    )


def _verb(said: str, *, is_any: bool) -> tuple[str, str, str]:
    """The verb, what follows it, and what was before where the verb says so. `is_any`: whatever comes first is one."""
    if found := _SWITCHED.match(said):
        return "use", said[found.end() :], found["old"]
    for verb, pattern in (("use", _USE), ("prefer", _PREFER)):
        if found := pattern.match(said):
            return verb, said[found.end() :], ""
    first, _, rest = said.partition(" ")
    return (stem(first.lower()), f" {rest}", "") if is_any and first.isalpha() and rest else ("", "", "")


def _slots(said: str) -> dict[str, tuple[str, ...]] | None:
    if _SEVERAL.search(said):
        return None
    pieces = _FOR.split(said)
    found = {"": tuple(terms(pieces[0]))}
    for preposition, what in zip(pieces[1::2], pieces[2::2], strict=True):
        if preposition in found:
            return None
        found[preposition] = tuple(terms(what))
    return found


def _telling(slot: tuple[str, ...]) -> list[str]:
    return sorted(set(slot) - _GENERIC) or list(slot)


def _are_of_one_kind(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """By what differs in them: "dark mode", "light mode"."""
    if are_alternatives(" ".join(one), " ".join(other)):
        return True
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return are_alternatives(" ".join(one), " ".join(other))
