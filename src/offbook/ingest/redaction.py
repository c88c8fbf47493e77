"""Secrets, replaced before anything is stored or indexed. The kind stays: `[redacted:github-token]`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from offbook.ingest.secret_scan import is_harmless, secrets_in
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
