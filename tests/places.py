"""Where the checkout and its folders are, for tests wherever they lie."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
DATA = REPOSITORY / "tests" / "data"
