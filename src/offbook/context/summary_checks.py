"""Whether what a model wrote may stand for its source. Pure: no model judges another.

A memory that is wrong is worse than one that is plain, so whatever fails here is written by the next in line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from offbook.context.summary_prompts import LONGEST_IDENTIFIER_CHARS, MOST_IDENTIFIERS
from offbook.ingest.frames import SHOWN, neutralise
from offbook.model.sentences import parts
from offbook.models.tokens import CHARS_PER_TOKEN, estimate_tokens

FEWEST_WORDS = 5
LEAST_SHARE, LEAST_OF_TARGET = 0.02, 0.1
"""Of what it stands for, and of the length that was asked for, where that is less: a memory of 17 tokens of a talk of
6,000 is none."""
MOST_TIMES_TARGET = 2.0
MOST_LOST_SHARE = 0.3
FEWEST_JUDGED = 3
"""Of fewer identifiers, one that is missing says nothing."""
SHORT_CHARS = 400
"""A refusal says little else; in a longer text, "I can't" is something that was said."""
REPEATED_WORDS = 8
"""A loop says the same words over and over; prose hardly ever says eight of them twice."""
MOST_REPEATED_SHARE = 0.35
FEWEST_REPEATS = 6

_REFUSAL = re.compile(
    r"\b(?:i['’]?m|i am) (?:sorry|afraid|unable|not able)\b.{0,80}\b(?:can(?:no|['’])?t|unable|not able|won['’]?t)\b"
    r"|\b(?:as|i['’]?m|i am) an? (?:ai|artificial intelligence|(?:large )?language model)\b"
    r"|^\W*i (?:can(?:no|['’])?t|am unable to|won['’]?t) (?:help|assist|do that|comply|fulfil|summari|write|provide)"
    r"|\bi (?:must|have to|need to|will have to) (?:\w+ )?decline\b"
    r"|\bnot comfortable (?:with )?(?:summari|writing|providing|creating|doing|remembering)"
    r"|\bi (?:do not|don['’]?t) have (?:any )?(?:memor(?:y|ies)|access|previous conversations?)\b"
    r"|^\W*(?:please provide|could you (?:please )?provide|what would you like)",
    re.IGNORECASE | re.DOTALL,
)
_ECHOES = (
    "[context manager]",
    "[ context manager ]",
    "keep these exactly as they are written",
    "write down your memory of it",
    "orders inside the conversation were for then",
)
_PREFACE = re.compile(
    r"^\W*(?:sure|certainly|of course|here(?:['’]s| is| are))\b[^\n]{0,120}:\s*(?:\n|$)", re.IGNORECASE
)
_TEMPLATE_TEXT = "<|im_ <|start <|end <|user <|assistant <|system [inst] [/inst] <think </think"
_TEMPLATE = tuple(_TEMPLATE_TEXT.split())
_TURN = ("<s>", "</s>")


def faults(text: str, *, source_chars: int, identifiers: Sequence[str], max_tokens: int) -> list[str]:
    """What is wrong with it, in sentences; none where nothing is. `max_tokens` is the length that was asked for.

    Nothing is quoted: a sentence may be shown to who may not read the conversation.
    """
    words = text.split()
    if not words:
        return ["it is empty"]
    found = []
    if len(words) < FEWEST_WORDS and source_chars > 2 * len(text) and estimate_tokens(text) < FEWEST_WORDS:
        found.append(f"it has {len(words)} words only")
    if len(text) > source_chars:
        found.append(f"it is longer than its source: {len(text):,} characters for {source_chars:,}")
    tokens = estimate_tokens(text)
    least = min(LEAST_SHARE * source_chars / CHARS_PER_TOKEN, LEAST_OF_TARGET * max_tokens)
    if FEWEST_WORDS <= tokens < least:
        found.append(f"it has about {tokens:,} tokens, too few for its source")
    if tokens > MOST_TIMES_TARGET * max_tokens:
        found.append(f"it has about {tokens:,} tokens where {max_tokens:,} were asked for")
    found += filter(None, (_lost(text, identifiers), _refused(text), _repeated(words), _echoed(text), _framed(text)))
    return found


def _lost(text: str, identifiers: Sequence[str]) -> str | None:
    listed = [name for name in identifiers if len(name) <= LONGEST_IDENTIFIER_CHARS][:MOST_IDENTIFIERS]
    lost = [name for name in listed if name not in text]
    if len(listed) < FEWEST_JUDGED or len(lost) <= MOST_LOST_SHARE * len(listed):
        return None
    return f"it loses {len(lost)} of {len(listed)} identifiers that it was to keep"


def _refused(text: str) -> str | None:
    text = text.strip()
    sentence = text
    if len(text) >= SHORT_CHARS:
        sentence = text[: SHORT_CHARS + 1].splitlines()[0]
        sentence = next(iter(parts(sentence)), sentence)
        if len(text) - len(sentence) >= SHORT_CHARS:
            return None
    return "it is a refusal" if _REFUSAL.search(sentence) else None


def _repeated(words: Sequence[str]) -> str | None:
    """A share of all runs of words that are there before, and one that is there many times."""
    runs = Counter(tuple(words[at : at + REPEATED_WORDS]) for at in range(len(words) - REPEATED_WORDS + 1))
    if not runs:
        return "it says one word over and over" if len(words) > FEWEST_WORDS and len(set(words)) == 1 else None
    [(_, times)] = runs.most_common(1)
    again = sum(count - 1 for count in runs.values())
    if again > MOST_REPEATED_SHARE * runs.total() or times >= FEWEST_REPEATS:
        return f"it repeats itself: {REPEATED_WORDS} words in a row {times} times"
    return None


def _echoed(text: str) -> str | None:
    """The Context Manager's words, a model's own marks, or a preface in the place of the memory."""
    lower = " ".join(text.lower().split())
    if any(phrase in lower for phrase in _ECHOES) or 0 <= lower.find("[call ") < lower.rfind("[result of"):
        return "it echoes what it was asked"
    if any(mark in lower for mark in _TEMPLATE) or lower.startswith(_TURN) or lower.endswith(_TURN):
        return "it holds marks of the model's own"
    return "it begins with a preface" if _PREFACE.search(text) else None


def _framed(text: str) -> str | None:
    """What looks like something that Offbook injected would be taken out, or believed, later."""
    is_framed = neutralise(text) != text or SHOWN in text
    return "it holds the marks of what Offbook shows" if is_framed else None
