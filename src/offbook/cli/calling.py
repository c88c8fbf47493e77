"""How others call this program."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def own_command() -> str:
    """As it was called now, in full: a gateway, or a program with windows, has another PATH than a terminal."""
    called = Path(sys.argv[0]).absolute()
    if called.name == "offbook" and called.is_file():
        return str(called)
    return shutil.which("offbook") or "offbook"
