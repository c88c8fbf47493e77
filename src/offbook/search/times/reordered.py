"""Times as `offbook.models.glossary` reads them out of other languages, word for word, in the order of English:
"before three days", "does three days", "the week last"."""

from __future__ import annotations

import re

from offbook.search.times.words import COUNTS, MONTHS, UNITS, WEEKDAYS, any_of

_MONTHS = f"(?:{any_of(MONTHS)})"
_COUNTED = rf"(?:\d+|{any_of(COUNTS)}) (?:{any_of(UNITS)})s?"
_RULES = [
    (re.compile(pattern, re.IGNORECASE), written)
    for pattern, written in (
        (rf"\b(?:before|it (?:there )?has|he (?:there )?has|there (?:is|has)|does|ago) ({_COUNTED})\b", r"\1 ago"),
        (rf"\b({_COUNTED}) (?:does|makes?)\b", r"\1 ago"),
        (rf"\b(?:the )?({any_of([*UNITS, *WEEKDAYS])}) (?:last|past)\b", r"last \1"),
        (r"\b(today|yesterday)(?: for| in| at)?(?: the)? tomorrow\b", r"\1 morning"),
        (r"\b(?:the|each|every) tomorrow\b", "the morning"),
        (rf"\b(\d{{1,2}})\. ({_MONTHS})\b", r"\1 \2"),
        (rf"\bin the ({_MONTHS})\b", r"in \1"),
        (rf"\b(?:beginning|start) (?:of )?({_MONTHS})\b", r"early \1"),
        (rf"\bend (?:of )?({_MONTHS})\b", r"late \1"),
    )
]


def reordered(text: str) -> str:
    for pattern, written in _RULES:
        text = pattern.sub(written, text)
    return text
