"""A text as somebody reads it who means to use what it says: without what is not seen, without line breaks in a token.

A view is a shorter or plainer text, and the places that were cut out of it; what is found in it is told in the places
of the text itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

Span = tuple[int, int, str]

_UNSEEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufe00-\ufe0f\ufeff]+"
    r"|(?:\x1b|\\{1,4}+(?:[xX]1[bB]|u001[bB]|033|e))\[[0-9;?]{0,20}+[A-Za-z]"  # colours of a terminal, also written out
)
_COLOURS = ("\x1b[", "1b[", "033[", "\\e[", "1B[")
_STYLED = re.compile("[\uff0b\uff0d-\uff19\uff1d\uff20-\uff3a\uff3f\uff41-\uff5a]")
"""Fullwidth letters, digits and what else tokens hold."""

# Either of them after an ASCII character, as the bytes of UTF-8: these are found much faster.
_ODD = (
    re.compile(rb"\xe2(?<=[\x00-\x7f]\xe2)(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf])"),
    re.compile(rb"\xef(?<=[\x00-\x7f]\xef)(?:\xb8[\x80-\x8f]|\xbb\xbf)"),
    re.compile(rb"\xef(?:\xbc[\x8b\x8d-\x99\x9d\xa0-\xba\xbf]|\xbd[\x81-\x9a])"),
    re.compile(rb"\xc2\xad"),
)

# A token may go on after a line break: what stands before it is no word, and what comes after has a digit and stands
# by itself, where a setting would have a `=` or `:`.
_RUN = r"[A-Za-z0-9_./+=-]"
_BROKEN = re.compile(
    r"\n(?=[ \t>|+\"']{0,12}+[A-Za-z_/+-]{0,40}+[0-9][A-Za-z0-9_/+-]{3})"
    rf"(?:(?<={_RUN}{{6}}\n)|(?<={_RUN}{{6}}[\r\\\"']\n)|(?<={_RUN}{{6}} \\\n))[ \t>|+\"']{{0,12}}+"
    r"(?=[A-Za-z0-9_/+-]{6,}+={0,2}(?:[\s\"'`,;.)\\]|\Z))"
)
_BEFORE_BREAK = "\r\\\"' "


class Reading:
    """A text, and what of it is looked through more than once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ascii = text.encode("ascii", "replace")
        """One byte a character: places are the same in both."""
        self.words = self.ascii.lower().decode("ascii")

    @cached_property
    def lowered(self) -> str:
        """Letter for letter: the one that becomes two is left as one."""
        return self.words if self.text.isascii() else self.text.replace("İ", "i").lower()


class View(NamedTuple):
    text: str
    cuts: Callable[[], Iterator[tuple[int, int]]]
    """What is left out, from and to, in the places of the text that was there before."""


def plainly(text: str) -> View | None:
    """Without zero-width characters and the like, and with plain letters; None where it is so already."""
    if not is_coloured(text):
        if text.isascii():
            return None
        data = text.encode("utf-8", "surrogatepass")
        if not any(odd.search(data) for odd in _ODD):
            return None
    plain = text
    for letter in set(_STYLED.findall(text)):
        normal = unicodedata.normalize("NFKC", letter)
        if len(normal) == 1:
            plain = plain.replace(letter, normal)
    return View(_UNSEEN.sub("", plain), lambda: (match.span() for match in _UNSEEN.finditer(text)))


def is_coloured(text: str) -> bool:
    return any(colour in text for colour in _COLOURS)


def is_broken(text: str) -> bool:
    """Whether a line break may lie in a token."""
    return _BROKEN.search(text) is not None


def unbroken(text: str) -> View | None:
    """With the line breaks taken out that may lie in a token; None where there are none."""
    if "\n" not in text:
        return None
    cuts = []
    for match in _BROKEN.finditer(text):
        start, end = match.span()
        while text[start - 1] in _BEFORE_BREAK:
            start -= 1
        cuts.append((start, end))
    if not cuts:
        return None
    starts, ends = (end for _, end in [(0, 0), *cuts]), (start for start, _ in [*cuts, (len(text), 0)])
    return View("".join(text[start:end] for start, end in zip(starts, ends, strict=True)), lambda: iter(cuts))


def restored(spans: Sequence[Span], cuts: Iterable[tuple[int, int]]) -> list[Span]:
    """The places of what was found in a view, in the text that it is a view of."""
    wanted = sorted({place for start, end, _ in spans for place in (start, end - 1)})
    places: dict[int, int] = {}
    removed, left = 0, iter(cuts)
    cut = next(left, None)
    for place in wanted:
        while cut is not None and cut[0] - removed <= place:
            removed += cut[1] - cut[0]
            cut = next(left, None)
        places[place] = place + removed
    return [(places[start], places[end - 1] + 1, kind) for start, end, kind in spans]
