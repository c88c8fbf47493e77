"""Secrets, replaced before anything is stored or indexed. The kind stays: `[redacted:github-token]`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import msgspec

from offbook.ingest.named_secrets import WORDS, Found, cookie_values, cookies, named_secrets, personal_numbers
from offbook.ingest.secret_rules import (
    ESCAPES,
    MOST_REMEMBERED,
    Reading,
    Rule,
    Span,
    is_broken,
    is_coloured,
    is_credentials,
    is_filled,
    is_given,
    is_strong,
    plainly,
    restored,
    rules,
    unbroken,
)
from offbook.model.content import Path, is_binary_path, replace, strings
from offbook.model.types import Message

_ID_KEYS = frozenset({"id", "toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "call_id"})
_DATA_KEYS = frozenset({"arguments", "input", "args", "parameters", "output", "details"})
ROUNDS = 4
"""What stands beside a secret may be recognised only once that is gone. Text without secrets takes one round."""


def redact_text(text: str, *, with_personal_numbers: bool = False) -> tuple[str, dict[str, int]]:
    """The text without its secrets, and how many of each kind it had."""
    if not with_personal_numbers and is_harmless(text):
        return text, {}
    counts: Counter[str] = Counter()
    return _redact(text, None, counts, with_personal_numbers), dict(counts)


def redact_message(message: Message, *, with_personal_numbers: bool = False) -> tuple[Message, dict[str, int]]:
    """The message without its secrets: content, labels and meta, not its ids and not its binaries.

    The very same message where there was nothing to replace.
    """
    labels = (message.name, message.origin, message.model)
    if labels == (None, None, None) and message.meta is None and isinstance(message.content, str):
        text, kinds = redact_text(message.content, with_personal_numbers=with_personal_numbers)
        return (msgspec.structs.replace(message, content=text) if kinds else message), kinds
    counts: Counter[str] = Counter()
    changed: dict[str, Any] = {}
    for field in ("content", "name", "origin", "model", "meta"):
        value = getattr(message, field)
        replacements = _redactions(value, counts, with_personal_numbers)
        if replacements:
            changed[field] = replace(value, replacements)
    return (msgspec.structs.replace(message, **changed) if changed else message), dict(counts)


def _redactions(value: Any, counts: Counter[str], with_personal_numbers: bool) -> dict[Path, str]:
    replacements: dict[Path, str] = {}
    for path, text in strings(value):
        is_id = bool(path) and path[-1] in _ID_KEYS and _DATA_KEYS.isdisjoint(path)
        if is_id or is_binary_path(value, path):
            continue
        field = path[-1] if path and isinstance(path[-1], str) else None
        redacted = _redact(text, field, counts, with_personal_numbers)
        if redacted != text:
            replacements[path] = redacted
    return replacements


def _redact(text: str, field: str | None, counts: Counter[str], with_personal_numbers: bool) -> str:
    for _ in range(ROUNDS):
        found = secrets_in(text, field=field, with_personal_numbers=with_personal_numbers)
        if not found:
            break
        pieces: list[str] = []
        end_of_last = 0
        for start, end, kind in found:
            pieces += (text[end_of_last:start], f"[redacted:{kind}]")
            end_of_last = end
        counts.update(kind for _, _, kind in found)
        text = "".join((*pieces, text[end_of_last:]))
    return text


# ── Where the secrets of a text lie ──
# Tokens are known by their spelling, passwords by what stands before them. What could hold one is found by plain
# substring searches; patterns run only there. Every repetition is possessive or bounded: nothing backtracks.


# A table of classes turns "where are unbroken runs long enough to be a token" into two scans in C.
_RUN_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+=~$%\\"
_ALNUM = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_CLASSES = bytes(ord("a") if code in _RUN_CHARS else ord(" ") for code in range(256))
_PIECES = bytes(code if code in _ALNUM else ord(" ") for code in range(256))
_ESCAPE = re.compile("|".join(ESCAPES).encode())
_SHORTEST_RUN = b"a" * 16
_FLAG = re.compile(r" (-[abcknpPsSuUw-])")
_TELLING_FIELD = ("authorization", "secret", "key", "pass", "pw", "token", "cookie")
_PLAIN = str.maketrans("\\\"'`\n", "_____")
_JUDGED_AS_CREDENTIALS = frozenset({"bearer-token", "aws-secret"})

_BREAK = r"(?>(?:\s|\\+[nrt]|[\"'+,>|]){0,200})"
_PEM = r"(?:[A-Z0-9]+ ){0,4}?PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY = re.compile(
    rf"-----BEGIN {_PEM}(?>(?:{_BREAK}(?:Proc-Type|DEK-Info|Version|Comment|Hash): ?[^\n\\]{{0,200}}+){{0,8}})"
    rf"(?>(?:{_BREAK}[A-Za-z0-9/=][A-Za-z0-9+/=]{{15,}}+)+)"  # a mention of the header alone is no key
    rf"(?>(?:{_BREAK}[A-Za-z0-9/=][A-Za-z0-9+/=]{{0,15}}+(?={_BREAK}(?:-----|…|\.\.\.)))?)"
    rf"(?>(?:{_BREAK}-----END {_PEM})?)"
)


def is_harmless(text: str) -> bool:
    """Whether nothing in the text could be part of a secret: so it is with most of what people say."""
    if not text.isascii():
        return False
    ascii_text = text.encode("ascii")
    if b" -" in ascii_text or _SHORTEST_RUN in ascii_text.translate(_CLASSES):
        return False
    if "\n" in text and is_broken(text):
        return False
    lowered = text.lower()
    if is_coloured(lowered):
        return False
    return not any(word in lowered for word in WORDS) and not any(hint in lowered for hint in rules().hints)


def secrets_in(text: str, *, field: str | None = None, with_personal_numbers: bool = False) -> list[Span]:
    """Where they lie, in order and apart from each other, and of which kind. `field`: what the text is the value of."""
    view = plainly(text)
    seen = text if view is None else view.text
    found = [*_in_view(seen), *(_of_field(field, seen) if field is not None else ())]
    if with_personal_numbers:
        found += personal_numbers(seen)
    if view is not None and found:
        found = restored(found, view.cuts())
    return _apart(found)


def _apart(found: list[Span]) -> list[Span]:
    # Sorting is stable: where two rules name the same place, the one tried first tells the kind and the end.
    found.sort(key=itemgetter(0))
    kept: list[Span] = []
    for start, end, kind in found:
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, kind))
        elif start > kept[-1][0] and end > kept[-1][1]:
            kept[-1] = (kept[-1][0], end, kept[-1][2])
    return kept


def _in_view(text: str) -> list[Span]:
    reading = Reading(text)
    found = [*_tokens(reading), *_at_places(reading), *cookies(reading), *named_secrets(reading)]
    return [*_across_lines(text, found), *found]


def _tokens(reading: Reading) -> Found:
    """What is known by its spelling alone."""
    text, runs = reading.text, _long_runs(reading.ascii)
    if not runs:
        return
    if b"PRIVATE KEY" in reading.ascii:
        for match in _PRIVATE_KEY.finditer(text):
            yield *match.span(), "private-key"
    table = rules()
    run_text = runs.decode("ascii")
    pieces = runs.translate(_PIECES).split()
    if b"%" in runs or b"\\" in runs:
        pieces += _ESCAPE.sub(b" ", runs).translate(_PIECES).split()
    heads = {piece[:3] for piece in pieces}
    tried = [rule for head in heads.intersection(table.tokens) for rule in table.tokens[head]]
    for rule in (*tried, *table.shapes):
        if rule.hint in run_text and (rule.is_longer_than_a_run or rule.pattern.search(run_text)):
            yield from _matches(rule, text, text)


def _long_runs(ascii_text: bytes) -> bytes:
    classes = ascii_text.replace(b"[redacted:", b"[redacted ").translate(_CLASSES)  # what was taken out is no run
    found = []
    start = classes.find(_SHORTEST_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        found.append(ascii_text[start : end if end >= 0 else len(ascii_text)])
        start = classes.find(_SHORTEST_RUN, end) if end >= 0 else -1
    return b" ".join(found)


def _across_lines(text: str, known: list[Span]) -> Iterator[Span]:
    """What goes on after a line break. What was found already goes on only where the rest looks like it."""
    view = unbroken(text)
    if view is None:
        return
    reading, ends = Reading(view.text), {start: end for start, end, _ in reversed(known)}
    tokens = restored(list(_tokens(reading)), view.cuts())
    values = restored([*_at_places(reading), *named_secrets(reading)], view.cuts())
    for start, end, kind in (*tokens, *(value for value in values if value[0] in ends)):
        rest = text[ends[start] : end] if start in ends else None
        if "\n" in text[start:end] and (rest is None or _is_of_mixed_case(rest)):
            yield start, end, kind


def _is_of_mixed_case(rest: str) -> bool:
    return any(map(str.isdigit, rest)) and any(map(str.isupper, rest)) and any(map(str.islower, rest))


def _at_places(reading: Reading) -> Found:
    table, text, words = rules(), reading.text, reading.words
    hints = [hint for hint in table.hints if hint in words]
    if hints:
        for rule in table.places:
            if rule.hint in hints:
                yield from _matches(rule, text, reading.lowered)
    flags = set(_FLAG.findall(text))
    if flags:
        for rule in table.commands:
            if rule.hint in flags:
                yield from _matches(rule, text, text)


def _matches(rule: Rule, text: str, read: str) -> Found:
    """`read`: the text as the pattern reads it."""
    pattern, kind = rule.pattern, rule.kind
    group, is_secret = _group_and_verdict(rule)
    verdicts: dict[str, bool] = {}
    for match in pattern.finditer(read):
        start, end = match.span(group)
        if group == "pairs":
            yield from cookie_values(text, start, end, verdicts)
            continue
        value = text[start:end]
        if value not in verdicts:
            if len(verdicts) > MOST_REMEMBERED:
                verdicts.clear()
            verdicts[value] = is_secret(value)
        if verdicts[value]:
            yield start, end, kind


def _group_and_verdict(rule: Rule) -> tuple[str | int, Callable[[str], bool]]:
    groups = rule.pattern.groupindex
    if "strong" in groups:
        return "strong", is_strong
    if "pairs" in groups:
        return "pairs", is_given
    if "value" not in groups:
        return 0, is_filled
    return "value", is_credentials if rule.kind in _JUDGED_AS_CREDENTIALS else is_given


def _of_field(field: str, value: str) -> Found:
    """What the name of its field tells of a value: read as it would stand in JSON."""
    lowered = field.lower()
    if any(word in lowered for word in _TELLING_FIELD):
        head = f'"{field}": "'
        written = f'{head}{value.translate(_PLAIN)}"'
        reading = Reading(written)
        for start, end, kind in (*_at_places(reading), *cookies(reading), *named_secrets(reading)):
            if start >= len(head):
                yield start - len(head), end - len(head), kind
