"""Words of others in an answer, so that none of them can pose as ours: in its text and in its structure alike.

The structure is for programs, and a program may want every character as it was. It is altered all the same, because
several clients show a model the structure instead of the text, and no word in there may order a model about. So
nothing of MCP promises exact characters: what was altered looks altered (`‹` for the `<` of a tag, `[System]:` for a
role, `⟦…⟧` around an order), and all else is as it was said. Whoever needs the very characters has the same verbs over
HTTP and on the command line (`offbook expand --json`). Names of sessions and agents stay exact: they are copied back
into arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from offbook.context.quotes import defused

NAMES = frozenset({"sessionId", "agentId"})
"""Fields of our own answers that are copied back."""
PIECE_CHARS = 20_000
"""Read at once, or little more. A pattern at work on a text lets nobody else in this process do anything."""
AROUND_CHARS = (1_200, 5_000)
"""Read on either side of a place to know whether the text can be parted there; more where too little is solid."""
SOLID_CHARS = 800
"""So many letters and digits have to be among them: more than anything has that is altered as one, with as much of
what is not seen as may be taken for letters where reading begins in the middle of it."""
TRIED_PLACES = 8
STEP_CHARS = 61


def harmless(text: str) -> str:
    """The text line by line as it is, but for what poses as something else, hides, or gives orders."""
    return "".join(map(defused, _pieces(text)))


def harmless_json(value: Any, exact: frozenset[str] = frozenset()) -> Any:
    """Nested JSON with all its words harmless, its keys too; what stands under the keys `exact` stays as it is."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, list):
        return [harmless_json(each, exact) for each in value]
    if isinstance(value, dict):
        return {
            key if key in exact else harmless(key): each if key in exact else harmless_json(each, exact)
            for key, each in value.items()
        }
    return value


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that are together what they are apart. Where no place can be found to part them, in a tag of
    ten thousand blanks say, a piece is longer."""
    start, end = 0, PIECE_CHARS
    while end < len(text):
        places = range(end, max(start, end - TRIED_PLACES * STEP_CHARS), -STEP_CHARS)
        parting = next((place for place in places if _parts_cleanly(text, place)), None)
        if parting is not None:
            yield text[start:parting]
            start = end = parting
        end += PIECE_CHARS
    yield text[start:]


def _parts_cleanly(text: str, place: int) -> bool:
    """Whether nothing on either side is altered otherwise without the other side. That is tried, so it holds for every
    pattern there is or will be, as long as all of what is altered as one is around the place."""
    for around in AROUND_CHARS:
        first, end = max(0, place - around), place + around
        before = defused(text[first:place])
        if first and not _is_solid(before):
            continue
        after = defused(text[place:end])
        if end >= len(text) or _is_solid(after):
            return defused(text[first:end]) == before + after
    return False


def _is_solid(text: str) -> bool:
    """Blanks, zeros, accents and what is not seen may be in a tag or an order in any number."""
    return sum(character.isalnum() and character != "0" for character in text) >= SOLID_CHARS
