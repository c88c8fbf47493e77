"""`offbook sessions`, `entries`, `activity`: an agent's memory at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from offbook.cli.output import local_time, printable, table
from offbook.cli.verb_command import verb_command

if TYPE_CHECKING:
    from offbook.model.overview import Activity, EntryList, SessionPage

NOTHING = "nothing yet: `offbook record SESSION TEXT`, or a host that records what is said"


@verb_command("sessions", epilog="\b\nExamples:\n  offbook sessions\n  offbook sessions --limit 200 --json")
def sessions_command(page: SessionPage, **_: Any) -> None:
    """Show the sessions, the one last written to first, and about how full the context of each is."""
    if not page.sessions:
        click.echo(NOTHING, err=True)
        return
    rows = [
        [
            session.session_id,
            f"{session.last_seq:,}",
            f"{session.context_tokens:,}",
            f"{100 * session.context_tokens // max(1, session.context_window)} %",
            f"{session.generation:,}",
            local_time(session.last_at),
        ]
        for session in page.sessions
    ]
    numbers = ["messages", "context tokens", "of its window", "swaps"]
    table(["session", *numbers, "last message"], rows, right=numbers)
    if page.next is not None:
        click.echo(f"{page.total:,} in all: `--after {page.next}` goes on", err=True)


@verb_command(
    "entries",
    epilog="\b\nExamples:\n  offbook entries                what is pinned\n  offbook entries m100000001",
    positional=("entry_ids",),
)
def entries_command(found: EntryList, **_: Any) -> None:
    """Show entries by their ids, as `recall --json` gives them; without any, those that are pinned."""
    if not found.entries:
        click.echo("none: `offbook pin` pins entries, and `offbook recall` finds them", err=True)
    for entry in found.entries:
        pin = " · pinned" if entry.pinned else ""
        where = f"{entry.session_id} {entry.span.first_seq} · {entry.origin} · {entry.tier}{pin}"
        click.secho(printable(f"{entry.id}  {local_time(entry.ts)} · {where}"), bold=True)
        click.echo(printable(entry.text) + "\n")


@verb_command("activity", epilog="\b\nExamples:\n  offbook activity\n  offbook activity --days 30")
def activity_command(activity: Activity, **_: Any) -> None:
    """Show how much was said on each day (UTC), and what models cost for it."""
    if not activity.days:
        click.echo(NOTHING, err=True)
        return
    rows = [
        [
            day.day,
            f"{day.messages:,}",
            f"{day.chars:,}",
            f"{day.model_calls:,}",
            f"{day.usage.input_tokens + day.usage.output_tokens:,}",
            f"${day.usage.dollars:,.4f}",
        ]
        for day in activity.days
    ]
    numbers = ["messages", "characters", "model calls", "model tokens", "cost"]
    table(["day", *numbers], rows, right=numbers)
