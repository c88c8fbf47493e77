"""Statements: what somebody said that may hold beyond its moment, in whole sentences, and where it was said."""

from __future__ import annotations

from typing import Literal, NamedTuple

StatementKind = Literal["fact", "preference", "constraint", "order", "decision", "task", "outcome", "feeling", "other"]
"""`order`: how the agent is to behave from now on. `outcome`: what happened or was done. `other` states nothing."""
KINDS: tuple[StatementKind, ...] = (
    "fact",
    "preference",
    "constraint",
    "order",
    "decision",
    "task",
    "outcome",
    "feeling",
    "other",
)


class ReadSentence(NamedTuple):
    """A sentence of a message, and what it was read as."""

    text: str
    start: int
    end: int
    """Where it stands in the message's text."""
    kind: StatementKind
    sure: float
    """How likely it is of that kind, 0 to 1."""
    states: float
    """How likely it states anything at all: 1 less what `other` has."""
    tells: float
    """How likely it tells what is or was so, and not what is wanted: a fact, a feeling, an outcome or a decision."""
    own: float
    """How likely the speaker says it for themselves: not pasted, quoted, played, imagined or a joke."""
    keep: float
    """How likely it matters in another conversation weeks later."""
    undertaken: float
    """Where it is a user's task: how likely it is one they do themselves ("I'll call him"), and do not give."""
