"""What a module of this package says where its framework is not installed."""

from __future__ import annotations

from offbook.errors import OffbookError


class MissingExtra(OffbookError, ImportError):
    """A framework is not installed."""


def missing(framework: str, extra: str, error: ImportError) -> MissingExtra:
    return MissingExtra(f"{framework} is not installed ({error}): run `pip install 'offbook[{extra}]'`")
