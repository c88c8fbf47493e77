"""What a message may hold, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

WORDS = st.text(max_size=30)
NAMES = st.text("abcdefgh_0123456789", min_size=1, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
