"""The answers that are of the wire only; the others are nouns of the package."""

from __future__ import annotations

import msgspec

from offbook.model.types import Value


class Saved(Value, frozen=True):
    saved: int


class Done(Value, frozen=True):
    ok: bool = True


class Missing(Value, frozen=True):
    """Ids that were asked for and are not there, each once, in the order given."""

    missing: list[str]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An RFC 9457 problem document. `retryable` says whether the same request may succeed later."""

    type: str
    title: str
    status: int
    detail: str
    retryable: bool
