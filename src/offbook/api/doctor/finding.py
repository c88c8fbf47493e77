"""What a check says."""

from __future__ import annotations

from typing import Literal

from offbook.model.types import Value

Level = Literal["ok", "warn", "fail"]
FAULTS_SHOWN = 5


class Finding(Value, frozen=True):
    """What one check saw; `mend` says what to do about it."""

    check: str
    level: Level
    what: str
    mend: str | None = None
