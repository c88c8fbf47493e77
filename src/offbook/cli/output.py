"""What the commands print. Colours and tables on a terminal, plain lines elsewhere, JSON where it was asked for."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from offbook.model.types import Message, Part

_STEERING = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN = {number: f"\\u{number:04x}" for number in _STEERING if number not in (0x09, 0x0A)}

ROLE_COLOURS = {"user": "cyan", "assistant": "green", "system": "magenta", "tool": "yellow"}

Advance = Callable[[int], None]


def print_json(value: Any) -> None:
    """One document, laid out for reading."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def print_json_line(value: Any) -> None:
    click.echo(msgspec.json.encode(value))


def printable(text: str) -> str:
    """Messages come from anywhere: what would steer a terminal is shown instead of obeyed."""
    return text.replace("\r\n", "\n").translate(_SHOWN)


def warn(text: str) -> None:
    click.secho(f"! {text}", fg="yellow", err=True)


# ── values as people read them ────────────────────────────────────────────────────────────────


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def local_time(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def local_minute(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def ago(moment: datetime, at: datetime | None = None) -> str:
    """`3 weeks ago`, in the words in which a turn tells it."""
    from offbook.context.time_text import ago as relative

    return relative(moment, (at or datetime.now(UTC)).astimezone())


def spoken_duration(duration: timedelta) -> str:
    """The two largest units: `3 h 12 min`."""
    seconds = max(0, int(duration.total_seconds()))
    for unit, size, smaller, smaller_size in (
        ("d", 86_400, "h", 3_600),
        ("h", 3_600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if seconds >= size:
            rest = seconds % size // smaller_size
            return f"{seconds // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"


def spoken_size(size_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size_bytes < 1_000:
            return f"{size_bytes:.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1_000
    return f"{size_bytes:.1f} TB"


def wrapped(text: str, indent: str) -> list[str]:
    """Indented lines, as wide as the terminal. Without one nothing is broken, so that it can be searched."""
    lines = text.rstrip().split("\n")
    if not sys.stdout.isatty():
        return [indent + line for line in lines]
    from rich.console import Console
    from rich.text import Text

    console = Console()
    width = max(20, console.width - len(indent))
    return [indent + part.plain.rstrip() for line in lines for part in Text(line).wrap(console, width)]


# ── tables and bars ───────────────────────────────────────────────────────────────────────────


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Columns named in `right` are numbers. Without a terminal nothing is cut, so that it can be searched."""
    if sys.stdout.isatty():
        _rich_table(columns, rows, right)
        return
    cells = [[printable(cell).replace("\n", " ") for cell in row] for row in [columns, *rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    for row in cells:
        padded = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(columns, row, widths, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    pretty = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        pretty.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        pretty.add_row(*(Text(printable(cell)) for cell in row))  # Text: what is stored is never markup
    Console(highlight=False).print(pretty)


def bar(done: int, total: int, width: int = 20) -> str:
    """A share as text. Full only where nothing is missing."""
    full = width if done >= total else min(width - 1, width * done // max(1, total))
    return "█" * full + "░" * (width - full)


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Advance]:
    """A bar on stderr while something takes long. `total` None: it is not known how long."""
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)


# ── what an import or an export leaves out ────────────────────────────────────────────────────────

_ABOUT = frozenset(("of", "on", "that", "with", "without", "between", "beside"))
"""Before these words stands what is counted, after them only what it is about."""
_PLURAL = re.compile(r"(?P<stem>\w{2,}?)(?P<end>ies|(?<!s)s)\b")
_VERBS = {" that are ": " that is ", " that say ": " that says "}


def left_out(count: int, what: str) -> str:
    """`what` names several."""
    return counted(count, _one(what), what)


def _one(what: str) -> str:
    words = what.split(" ")
    end = next((at for at, word in enumerate(words) if word in _ABOUT or word.startswith("(")), len(words))
    head = _PLURAL.sub(lambda word: word["stem"] + ("y" if word["end"] == "ies" else ""), " ".join(words[:end]))
    rest = what.removeprefix(" ".join(words[:end]))
    for many, one in _VERBS.items():
        rest = rest.replace(many, one, 1) if rest.startswith(many) else rest
    return head.replace(" and ", " or ") + rest


# ── a context, and what it is made of ─────────────────────────────────────────────────────────────


def told_parts(parts: Sequence[Part]) -> str:
    """`14 messages verbatim, 3 summaries (1 L2, 2 L1), 8 messages digested or only counted`."""
    shown = [part for part in parts if part.chars or part.kind == "verbatim"]
    verbatim = sum(_messages(part) for part in shown if part.kind == "verbatim")
    levels = Counter(part.level or 0 for part in shown if part.kind == "summary")
    # Level 0: no summary stands for it, so it was made short on the spot, to a line if need be.
    digested = sum(_messages(part) for part in shown if part.kind == "summary" and not part.level)
    left_out = sum(_messages(part) for part in parts) - sum(_messages(part) for part in shown)
    relative = [f"{counted(verbatim, 'message')} verbatim"]
    if summaries := sum(number for level, number in levels.items() if level):
        by_level = told_levels({f"L{level}": number for level, number in levels.items() if level})
        relative.append(f"{counted(summaries, 'summary', 'summaries')} ({by_level})")
    if digested:
        relative.append(f"{counted(digested, 'message')} digested or only counted")
    if left_out:
        relative.append(f"{counted(left_out, 'message')} left out for want of room")
    return ", ".join(relative)


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
