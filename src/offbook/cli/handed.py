"""A context as a person reads it: what it is made of, and the messages that the agent gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from offbook.cli.output import ROLE_COLOURS, counted, local_minute, printable

if TYPE_CHECKING:
    from offbook.model.types import Message, Part


def told_parts(parts: Sequence[Part]) -> str:
    """`14 messages verbatim, 3 summaries (1 L2, 2 L1), 8 messages digested or only counted`."""
    shown = [part for part in parts if part.chars or part.kind == "verbatim"]
    verbatim = sum(_messages(part) for part in shown if part.kind == "verbatim")
    levels = Counter(part.level or 0 for part in shown if part.kind == "summary")
    # Level 0: no summary stands for it, so it was made short on the spot, to a line if need be.
    digested = sum(_messages(part) for part in shown if part.kind == "summary" and not part.level)
    left_out = sum(_messages(part) for part in parts) - sum(_messages(part) for part in shown)
    told = [f"{counted(verbatim, 'message')} verbatim"]
    if summaries := sum(number for level, number in levels.items() if level):
        by_level = told_levels({f"L{level}": number for level, number in levels.items() if level})
        told.append(f"{counted(summaries, 'summary', 'summaries')} ({by_level})")
    if digested:
        told.append(f"{counted(digested, 'message')} digested or only counted")
    if left_out:
        told.append(f"{counted(left_out, 'message')} left out for want of room")
    return ", ".join(told)


def told_levels(counts: Mapping[str, int]) -> str:
    """`1 L2, 9 L1`: the widest first."""
    return ", ".join(f"{counts[level]:,} {level}" for level in sorted(counts, reverse=True)) or "none"


def told_span(first_seq: int, last_seq: int) -> str:
    return f"#{first_seq}" if first_seq == last_seq else f"#{first_seq} to #{last_seq}"


def show_messages(messages: Sequence[Message]) -> None:
    """Each under a line that says whose it is; its text as it stands."""
    from offbook.model.content import render

    for message in messages:
        who = printable(f"{message.role} {message.name}" if message.name else message.role)
        when = f" · {local_minute(message.ts)}" if message.ts else ""
        click.secho(f"── {who}{when} ──", fg=ROLE_COLOURS.get(message.role), bold=True)
        click.echo(printable(render(message)) + "\n")


def _messages(part: Part) -> int:
    return part.last_seq - part.first_seq + 1
