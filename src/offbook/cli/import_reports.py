"""What every `offbook import` does once it knows the conversations: tells them, with a bar, and reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation
from offbook.cli.output import counted, left_out, printable, progress, table, warn

if TYPE_CHECKING:
    from offbook.client.blocking import Client
    from offbook.client.history.conversations import Conversation, ImportReport

TIMEOUT_SECONDS = 60.0
"""A batch on a slow disk; a person may wait that long for a bulk load."""
PROBLEMS_SHOWN = 20


def importing_client(invocation: Invocation, stack: ExitStack, dry_run: bool) -> Client | None:
    """Asked before anything is read: a person should not wait to hear that it is away."""
    from offbook.model.errors import ProviderUnavailable

    client = stack.enter_context(invocation.client(timeout_seconds=TIMEOUT_SECONDS))
    try:
        client.ping()
    except ProviderUnavailable as error:
        if not dry_run:
            raise
        warn(f"{error.detail}\n! so this cannot tell what is stored already")
        return None
    return client


def tell_conversations(
    client: Client | None, report: ImportReport, conversations: Sequence[Conversation], since: datetime | None = None
) -> None:
    """Every message of every conversation, each once. The report counts as it goes, also where it breaks off."""
    from offbook.client.history.conversations import HistoryImport

    started = time.monotonic()
    total = sum(each.size_bytes for each in conversations)
    with (
        with_progress_so_far(lambda: _broken_off(report)),
        progress("reading" if report.is_dry_run else "storing", total) as advance,
    ):
        importing = HistoryImport(client, report, since, advance)
        for conversation in conversations:
            importing.conversation(conversation, report.agent(conversation.agent_id))
    report.seconds = round(time.monotonic() - started, 3)


@contextmanager
def with_progress_so_far(told: Callable[[], str]) -> Iterator[None]:
    """Where it breaks off, a person hears how far it came."""
    from offbook.model.errors import ProviderRefused, ProviderUnavailable

    try:
        yield
    except ProviderUnavailable as error:
        raise ProviderUnavailable(f"{error.detail}\n{told()}") from None
    except ProviderRefused as error:
        detail = f"{error.document.get('detail', '')}\n{told()}"
        raise ProviderRefused({**error.document, "detail": detail}) from None
    except KeyboardInterrupt:
        click.echo(f"offbook: interrupted\noffbook: {told()}", err=True)
        raise


def _broken_off(report: ImportReport) -> str:
    stored = counted(report.total("new"), "message")
    return f"{stored} stored until then. Run this again: nothing is stored twice, and it goes on where it was"


def show_import(report: ImportReport) -> None:
    new = "would store" if report.is_dry_run else "stored"
    columns = {
        "agent": "agent_id",
        "sessions": "sessions",
        "messages": "messages",
        new: "new",
        "already there": "already_there",
        "not known": "unknown",
        "before --since": "before_since",
        "skipped": "skipped",
        "forgotten sessions": "forgotten",
        "incognito sessions": "incognito",
    }
    always = {"agent", "sessions", "messages", new, "already there"}
    shown = {name: each for name, each in columns.items() if name in always or report.total(each)}
    rows = [[_cell(getattr(agent, each)) for each in shown.values()] for agent in report.agents]
    table(list(shown), rows, right=list(shown)[1:])
    click.echo(
        f"{counted(report.total('messages'), 'message')}: {report.total('new'):,} "
        f"{'would be ' if report.is_dry_run else ''}stored, {report.total('already_there'):,} already there"
    )
    for agent_id in report.changed_while_read:
        warn(f"OpenClaw wrote while agent {agent_id} was read: run this again to be sure that all is there")
    for left in report.left_out:
        click.echo(printable(f"left out: {left_out(left.count, left.what)}: {left.why}"))
    _show_late(report)
    _show_problems(report)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _show_late(report: ImportReport) -> None:
    if not report.came_after_newer:
        return
    many = counted(len(report.came_after_newer), "session")
    come = "would come" if report.is_dry_run else "came"
    warn(f"in {many} messages {come} after newer ones: the log keeps the order in which they arrive")
    for late in report.came_after_newer[:PROBLEMS_SHOWN]:
        click.echo(
            printable(f"  {late.session_id}: {counted(late.messages, 'message')} {come} after newer ones"), err=True
        )
    _and_more(len(report.came_after_newer))


def _show_problems(report: ImportReport) -> None:
    if not report.problems:
        return
    counts = {
        ("skipped", "skipped"): report.total("skipped"),
        ("with other content than what is stored, which stays",) * 2: report.total("conflicts"),
        ("file or database not read to the end", "files or databases not read to the end"): report.unreadable,
    }
    told = "; ".join(counted(count, one, many) for (one, many), count in counts.items() if count)
    warn(told or f"{counted(len(report.problems), 'thing')} to look at")
    for problem in report.problems[:PROBLEMS_SHOWN]:
        click.echo(printable(f"  {problem.where}: {problem.reason}"), err=True)
    _and_more(len(report.problems))


def _and_more(count: int) -> None:
    if count > PROBLEMS_SHOWN:
        click.echo(f"  and {count - PROBLEMS_SHOWN:,} more: --json names them", err=True)
