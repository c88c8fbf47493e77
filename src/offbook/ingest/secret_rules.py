"""What a secret looks like, read from `data/secret_rules.txt` when it is first needed."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_MACROS = {
    "NUM": r"(?=[A-Za-z_+/%~-]{0,99}+[0-9])",
    "HEADER": r"[\"'\\]{0,4}\s{0,3}[:=,]\s{0,3}[\"'\\]{0,4}",
    "WORDS": r"(?:GAP(?!COMMAND)[^\s|;&]{1,100}+){0,12}?",
    "GAP": r"(?:[ \t]|\\\r?\n){1,8}+",
    "PORT": r"(?:ort\b|[ \t]{0,3}(?:[\d.]{1,15}:)?\d{1,5}(?::\d{1,5})?(?:/\w{1,4})?(?![^\s\"'|;&]))",
    "ARG": r"(?P<quote>[\"'](?=[^\"'\n]{3,200}[\"']))?+(?P<value>(?(quote)[^\"'\n]{3,200}+|[^\s\"'|;&]{3,200}+))",
}
_HEX = "[0-9A-Fa-f]"
ESCAPES = (rf"%25{_HEX}{{2}}", rf"%{_HEX}{{2}}", rf"\\u{_HEX}{{4}}", rf"\\x{_HEX}{{2}}", r"\\[0-7]{3}", r"\\[abefnrtv]")
"""Of one character, each of a fixed length."""
_COMMAND = re.compile(r"[a-z0-9-]+")
_ALNUM = re.compile(r"[A-Za-z0-9]+")


class Rule(NamedTuple):
    kind: str
    hint: str
    """What the text must hold for the pattern to be tried."""
    source: str

    @property
    def is_longer_than_a_run(self) -> bool:
        return any(beyond in self.source for beyond in (r"\s", r"\?"))

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.source)


class Rules(NamedTuple):
    tokens: dict[bytes, list[Rule]]
    """By the first letters and digits of what they begin with, three at most."""
    shapes: list[Rule]
    places: list[Rule]
    commands: list[Rule]
    hints: tuple[str, ...]
    """Those of `places`, each once."""

    @property
    def all(self) -> list[Rule]:
        tokens = [rule for rules in self.tokens.values() for rule in rules]
        return [*tokens, *self.shapes, *self.places, *self.commands]


@cache
def rules() -> Rules:
    sections: dict[str, list[Rule]] = {"tokens": [], "names": [], "shapes": [], "places": [], "commands": []}
    not_before, name = {"tokens": "[A-Za-z0-9]", "names": r"[\w-]"}, "tokens"
    for line in files("offbook.ingest").joinpath("data/secret_rules.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line and not line.startswith("#"):
            kind, hint, pattern = line.split(maxsplit=2)
            if name in not_before:
                starts = hint.split("|")
                sections[name] += [_rule(kind, start, _free(start, not_before[name]) + pattern) for start in starts]
            else:
                sections[name].append(_rule(kind, hint, pattern))
    by_head: dict[bytes, list[Rule]] = defaultdict(list)
    for rule in (*sections["tokens"], *sections["names"]):
        by_head[head_of(rule.hint)].append(rule)
    hints = tuple(dict.fromkeys(rule.hint for rule in sections["places"]))
    return Rules(dict(by_head), sections["shapes"], sections["places"], sections["commands"], hints)


def head_of(start: str) -> bytes:
    piece = _ALNUM.match(start)
    assert piece is not None, start
    return piece[0][:3].encode()


def _free(start: str, not_before: str) -> str:
    """Looks back only after it, so that the pattern begins with plain letters, which are found fast."""
    escaped = re.escape(start)
    after_escapes = "".join(rf"|(?<={escape}{escaped})" for escape in ESCAPES)
    return rf"{escaped}(?:(?<!{not_before}{escaped}){after_escapes})"


def _rule(kind: str, hint: str, pattern: str) -> Rule:
    for name, meaning in _MACROS.items():
        pattern = pattern.replace(name, meaning)
    # What was taken out already is not looked at again.
    for group in ("value", "strong", "pairs"):
        pattern = pattern.replace(f"(?P<{group}>", rf"(?!\[redacted:)(?P<{group}>")
    command = _COMMAND.match(pattern)
    return Rule(kind, hint, pattern.replace("COMMAND", command[0] if command else ""))


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.ASCII)
