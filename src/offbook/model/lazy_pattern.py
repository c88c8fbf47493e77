"""Regular expressions that are compiled when they are first used: a large one takes longer than most messages."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class _Lazy:
    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))
