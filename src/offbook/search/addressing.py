"""Who is called what: "Thanks, Ada!" said by one side is the other side's name.

Hosts seldom say a name with a message. But a question such as "what did Ada say about …?" is about one side of the
conversation, and people call each other by name often enough to know which.
"""

from __future__ import annotations

import re

READ_CHARS = 600
"""One is greeted at the beginning."""
LEAST_TIMES = 4
CERTAIN = 0.9
"""Of all times a name is used so, the share that is said by one side."""

_OPENERS = (
    r"hey|hi|hello|hiya|thanks(?: so much| a lot)?|thank you|wow|congrats|congratulations|bye|goodbye|"
    r"welcome(?: back)?|good (?:morning|evening|afternoon|night|luck|job)|great job|well done|nice(?: one)?|sorry|"
    r"sure(?: thing)?|"
    r"no problem|absolutely|awesome|cool|yeah|yep|yes|oh|aw+|great|take care|see you|of course|definitely|totally|"
    r"sounds (?:good|great|awesome)"
)
_CALLED = re.compile(rf"(?:^|[.!?]\s+)(?i:{_OPENERS})\s*,?\s+([A-Z][a-z]{{1,20}})(?=\s*[,.!?]|\s+[-–—])")


_LABELLED = re.compile(r"\s*([A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20})?):\s+(?=\S)")
_LABEL_WORDS = (
    "note notes update updates warning error question answer summary step example examples todo re fwd subject from to "
    "cc date ps edit source result results output input response prompt task goal title name reminder tip important "
    "caution info debug option options day week part chapter section phase user assistant system human ai"
)
_LABELS = frozenset(_LABEL_WORDS.split())


def labelled_speaker(text: str) -> tuple[str, str]:
    """Who a text says it is by, and the rest: ("Ada", "I moved") of "Ada: I moved"; ("", text) where it does not."""
    match = _LABELLED.match(text[:READ_CHARS])
    if match is None or match[1].split()[0].casefold() in _LABELS:
        return "", text
    return match[1], text[match.end() :]


def names_called(text: str) -> list[str]:
    """The names somebody is addressed by in this text."""
    return _CALLED.findall(text[:READ_CHARS])


def is_certain(times: int, all_times: int) -> bool:
    """Whether a name said this often by one side, of all times it was said, is the other side's."""
    return times >= LEAST_TIMES and times >= CERTAIN * all_times
