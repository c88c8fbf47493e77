"""How many tokens a text is, whichever model reads it.

The estimate counts characters by what they are, words, and runs of signs; each takes its weight. The weights are a
robust non-negative fit to the mean of cl100k_base and o200k_base (npm `gpt-tokenizer` 4.0.0) and Claude's published
vocabulary (npm `@anthropic-ai/tokenizer` 0.0.4), over 1,245 stretches of 300 to 2,000 characters: documentation, chat,
code of eight kinds, Chinese, fifteen other languages, logs, digests and listings. What to count was chosen on as many
stretches of other files, the chats, JavaScript and TypeScript below among them.

Mean error of a stretch against the mean of the three, and the total against theirs, on texts not fitted to
(`python -m benchmarks --only token_estimate`; the frozen ones are `tests/data/token_counts.json`):

                                                     error          in all            characters / 4, error
    English: chat (LoCoMo, RealMem), docs, frozen    2, 4, 2, 3 %   0, -1, -1, -2 %   7, 18, 8, 8 %
    Python (here, library), JavaScript, TypeScript   5, 6, 7, 4 %   0, +5, +5, +1 %   9, 16, 7, 8 %
    JSON, frozen code of all kinds                   8, 5 %         +8, +2 %          21, 13 %
    Chinese: in TypeScript, frozen                   6, 9 %         +3, +3 %          19, 59 %

The three differ from one another, so no estimate is near all of them: English is 5 % and code 6 % more tokens to Claude
than to cl100k_base, Chinese prose a quarter to a third more to either than to o200k_base. It is too low for random
letters (base64: 0.62 of the mean), traditional Chinese (0.86) and languages of plain letters other than English (German
0.83, Dutch 0.76, Italian 0.73). Of 1,135 further stretches of the three kinds, the worst was 45 % off (JSON).
"""

from __future__ import annotations

from math import ceil

CHARS_PER_TOKEN = 4
CHUNK_OVERHEAD_TOKENS = 30
"""What the frame around a recalled chunk costs (A5)."""

_CHARACTER = 0.05
"""Of any kind. All other weights come on top of it."""
_WORD = 0.74
_CAPITAL_WITHIN = 0.8
"""`camelCase` is two words. Set above the fit (0.5), because random letters (base64) are still counted too low."""
_SIGNS = 0.79
"""A run of them, however long: `):`, `-----`."""
_SYMBOLS = 1.5
"""Likewise: a line drawn beside a heading is one run of hundreds."""
_ASCII_WEIGHTS = {b"A": 0.04, b"0": 0.59, b".": 0.03, b"\n": 0.93}
"""Capitals, digits, signs, ends of line. Small letters and spaces take what every character takes."""
# The first byte of a character in UTF-8 tells its script: from this byte on, what a character takes.
_SCRIPT_WEIGHTS = {
    b"\xc2": 1.8,  # accented Latin
    b"\xce": 0.43,  # Greek, Cyrillic
    b"\xd5": 0.82,  # Hebrew, Arabic
    b"\xe0": 0.93,  # the scripts of India and of South-East Asia
    b"\xe2": 0.27,  # dashes, quotes, symbols: beside what their run takes
    b"\xe3": 0.79,  # kana
    b"\xe4": 1.03,  # Chinese characters
    b"\xea": 1.04,  # Hangul
    b"\xee": 0.54,  # full-width forms
    b"\xf0": 2.75,  # emoji and whatever is rare
}


def estimate_tokens(text: str) -> int:
    """About as many tokens as any of today's models would count."""
    data = text.encode("utf-8", "surrogatepass")
    classes = data.translate(_CLASSES, _LATER_BYTES)
    tokens = _CHARACTER * len(classes) + _CAPITAL_WITHIN * classes.count(b"aA")
    tokens += _WORD * _runs(classes.translate(_LETTERS)) + _SIGNS * _runs(classes.translate(_SIGN_MARKS))
    tokens += sum(weight * classes.count(mark) for mark, weight in _ASCII_WEIGHTS.items())
    if len(data) != len(text):
        tokens += _SYMBOLS * _runs(classes.translate(_SYMBOL_MARKS))
        tokens += sum(weight * classes.count(mark) for mark, weight in _SCRIPT_WEIGHTS.items())
    return max(ceil(tokens), 1 if text else 0)


def chunk_tokens(chars: int) -> int:
    """What a recalled chunk takes from the budget, its frame included (A5)."""
    return ceil(chars / CHARS_PER_TOKEN) + CHUNK_OVERHEAD_TOKENS


def _runs(marks: bytes) -> int:
    """How often marks begin, where `x` is one and a space is none."""
    return marks.count(b" x") + marks.startswith(b"x")


def _class_of(byte: int) -> int:
    """The byte that stands for all of its kind in a translated text."""
    if byte >= 0xC2:
        return max(first[0] for first in _SCRIPT_WEIGHTS if first[0] <= byte)
    character = chr(byte)
    if character.isalpha():
        return ord("a") if character.islower() else ord("A")
    if character.isdigit():
        return ord("0")
    return {" ": ord(" "), "\t": ord(" "), "\n": ord("\n"), "\r": ord("\n")}.get(character, ord("."))


_LATER_BYTES = bytes(range(0x80, 0xC2))
"""Those of a character after its first."""
_CLASSES = bytes(_class_of(byte) for byte in range(256))
# Of the classes, not of the text: `x` where one of the kind is, a space elsewhere.
_LETTERS, _SIGN_MARKS, _SYMBOL_MARKS = (
    bytes(ord("x" if byte in kind else " ") for byte in range(256)) for kind in (b"aA", b".", b"\xe2")
)
