"""Text as models can read it."""

from __future__ import annotations


def readable(text: str) -> str:
    """Halves of a character, which JSON can carry and UTF-8 cannot, joined where they meet, else marked as unknown."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
