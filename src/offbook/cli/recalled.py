"""What recall answered, as a person reads it: in the order it was said, each with its setting below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from offbook.cli.output import ROLE_COLOURS, ago, counted, local_minute, printable, warn, wrapped

if TYPE_CHECKING:
    from offbook.model.memory_entry import Explained, MemoryEntry, Recollection, Why

INDENT = "  "
LEAST_EVIDENCE = 0.05
"""Less than that did not decide anything."""
LEFT_OUT_SHOWN = 10
GLIMPSE_CHARS = 60


def show(found: Recollection, *, explains: bool, names_agents: bool) -> None:
    for note in found.degraded:
        warn(printable(note))
    best = max(found.entries, key=lambda entry: entry.score).id if len(found.entries) > 1 else None
    texts = {entry.id: entry.text for entry in found.entries}
    for entry in sorted(found.entries, key=lambda entry: (entry.ts, entry.id)):
        click.echo(_head(entry, names_agents=names_agents, is_best=entry.id == best))
        for line in _body(entry, texts, explains=explains):
            click.echo(line)
        click.echo()
    if explains and found.explained is not None:
        _show_explained(found.explained, found)


def _head(entry: MemoryEntry, *, names_agents: bool, is_best: bool) -> str:
    """When, who, where; then how it stands with it."""
    speaker = entry.origin if entry.why is None or entry.why.speaker is None else f"{entry.origin} {entry.why.speaker}"
    place = f"session {entry.session_id}" + (f" of agent {entry.agent_id}" if names_agents else "")
    marks = [entry.tier, *(["pinned"] if entry.pinned else [])]
    score = "the newest there is" if entry.score < 0 else f"score {entry.score:.2f}" + (" (best)" if is_best else "")
    when = click.style(f"{local_minute(entry.ts)} ({ago(entry.ts)})", dim=True)
    who = click.style(printable(speaker), fg=ROLE_COLOURS.get(entry.origin), bold=True)
    rest = click.style(printable(" · ".join([place, *marks, score, entry.id])), dim=True)
    return f"{when}  {who}  {rest}"


def _body(entry: MemoryEntry, texts: dict[str, str], *, explains: bool) -> Iterator[str]:
    yield from wrapped(printable(entry.text), INDENT)
    why = entry.why
    for old in why.replaces if why else ():
        told = f"replaces: {old.text} ({local_minute(old.ts)}, {old.id})"
        yield from (click.style(line, dim=True) for line in wrapped(printable(told), INDENT))
    if entry.superseded_by is not None:
        glimpse = texts.get(entry.superseded_by)
        said = f": {_glimpse(glimpse)}" if glimpse else ""
        told = f"replaced by {entry.superseded_by}{said}"
        yield from (click.style(line, fg="yellow") for line in wrapped(printable(told), INDENT))
    if explains and why is not None:
        yield click.style(f"{INDENT}{_found_by(entry, why)}", dim=True)
        if evidence := _evidence(why):
            yield click.style(f"{INDENT}{evidence}", dim=True)


def _found_by(entry: MemoryEntry, why: Why) -> str:
    """`text 2nd, meaning 1st`: its place in what each retriever found."""
    by = [f"{name} ({_place(why.ranks[name])})" if name in why.ranks else name for name in entry.found_by]
    likeness = f" · similarity {why.similarity:.2f}" if why.similarity is not None else ""
    return f"found by {', '.join(by)}{likeness}"


def _evidence(why: Why) -> str:
    most = sorted(why.evidence.items(), key=lambda pair: -abs(pair[1]))
    told = [f"{name.replace('_', ' ')} {value:+.2f}" for name, value in most if abs(value) >= LEAST_EVIDENCE]
    return f"evidence {', '.join(told)} = {sum(why.evidence.values()):.2f}" if told else ""


def _show_explained(explained: Explained, found: Recollection) -> None:
    recipes = sorted(set(filter(None, explained.recipes.values())))
    rows = {
        "looked for": ", ".join(explained.looked_for) or "no words: by meaning and time only",
        "times": ", ".join(explained.times) or "none in the query",
        "recipe": ", ".join(recipes) or "none",
        "looked at": f"{counted(explained.looked_at, 'message')} in {found.took_ms:,.1f} ms",
        "left out": "" if explained.left_out else "nothing",
    }
    for name, value in rows.items():
        click.echo(printable(f"{name:<12}{value}").rstrip())
    for left in explained.left_out[:LEFT_OUT_SHOWN]:
        click.echo(printable(f"{INDENT}{left.id}  {left.why}"))
    if (more := len(explained.left_out) - LEFT_OUT_SHOWN) > 0:
        click.echo(f"{INDENT}and {more:,} more: --json has all of them")


def _place(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _glimpse(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= GLIMPSE_CHARS else line[: GLIMPSE_CHARS - 1].rstrip() + "…"
