"""`offbook status`: what is stored, and what went missing on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook.model.status import IndexStatus, Status, SummaryStatus, TaskHealth
    from offbook.model.types import Session

MOST_AGENTS = 20
OF_THE_SUITE = "conformance-"

EPILOG = """\b
Examples:
  offbook status
  offbook status researcher
  offbook status --json | jq .capture
"""


@click.command("status", epilog=EPILOG)
@click.argument("agent", type=UTF8, required=False)
@common_options
@pass_invocation
def command(invocation: Invocation, agent: str | None) -> None:
    """Show what is stored for an agent, what recall can find, what is summarised, its newest sessions, and what went
    missing."""
    from offbook.cli.answered import typed
    from offbook.cli.output import print_json
    from offbook.model.status import Status

    with invocation.client() as client:
        document = client.status(agent)
    if invocation.is_json:
        print_json(document)
        return
    _show(typed(document, Status))


def _show(status: Status) -> None:
    from offbook.cli.output import printable, spoken_duration
    from offbook.model.types import now

    uptime = spoken_duration(now() - status.started_at)
    click.secho(f"Agent {printable(status.agent_id)}", bold=True)
    click.echo(f"Offbook {status.version} · store {status.store} · up {uptime}\n")
    _show_counts(status)
    _show_index(status)
    _show_summaries(status.summaries)
    _show_maintenance(status.maintenance)
    _show_sessions(status.sessions, status.counts.sessions)
    _show_capture(status)
    others = [printable(agent) for agent in _others(status)]
    if others:
        hidden = len(others) - MOST_AGENTS
        more = f" and {hidden:,} more (--json names all)" if hidden > 0 else ""
        click.echo(f"\nOther agents: {', '.join(others[:MOST_AGENTS])}{more}")


def _others(status: Status) -> list[str]:
    """Those of the conformance suite last: nobody talks to them."""
    others = [agent for agent in status.agents if agent != status.agent_id]
    return sorted(others, key=lambda agent: agent.startswith(OF_THE_SUITE))


def _show_counts(status: Status) -> None:
    counts = status.counts
    facts = {
        "messages": f"{counts.messages:,}" + (f"  ({counts.noise:,} noise)" if counts.noise else ""),
        "characters": f"{counts.chars:,}",
        "large parts": f"{counts.blobs:,}",
        "duplicates": f"{counts.duplicates:,}"
        + (f"  ({counts.conflicts:,} with other content: the first one stays)" if counts.conflicts else ""),
        "redactions": f"{counts.redactions:,}",
        "audit events": f"{counts.audit_events:,}",
        "backlog": f"{status.backlog:,}",
        "models": f"{status.costs.tokens:,} tokens, ${status.costs.dollars:,.2f}",
    }
    for name, value in facts.items():
        click.echo(f"{name:<14}{value}")


def _show_index(status: Status) -> None:
    """What can be found, by text and by meaning, and how much of it is at hand."""
    from offbook.cli.output import printable

    index, tiers = status.index, status.tiers
    facts = {
        "by text": _by_text(status),
        "by meaning": _embedded(index),
        "embeddings": f"none: {index.trouble}" if index.trouble else index.model or "none yet",
        "tiers": f"{tiers.hot:,} hot, {tiers.warm:,} warm, {tiers.cold:,} cold{_lifetime(status)}",
        "pinned": f"{status.pinned:,}",
        "retrievals": f"{status.retrievals:,}",
    }
    click.echo("\nwhat recall can find:")
    for name, value in facts.items():
        click.echo(printable(f"{name:<14}{value}"))


def _by_text(status: Status) -> str:
    """Where something was forgotten, what was once recorded is no measure of how much can be found."""
    entries, recorded = status.index.entries, status.counts.messages - status.counts.noise
    if status.forgets and entries < recorded:
        return f"{entries:,}  ({recorded - entries:,} more: forgotten, or still to be taken in)"
    return f"{entries:,} of {recorded:,}"


def _lifetime(status: Status) -> str:
    hours = status.hot_hours
    return f"  (hot {hours.base:g} h, {hours.bump:g} h more a retrieval, at most {hours.most:g} h)" if hours else ""


def _embedded(index: IndexStatus) -> str:
    from offbook.cli.output import bar

    if not index.entries:
        return "0"
    share = index.embedded / index.entries
    waiting = f", {index.waiting:,} waiting" if index.waiting else ""
    return f"{bar(index.embedded, index.entries)} {int(100 * share)} %  ({index.embedded:,}{waiting})"


def _show_summaries(summaries: SummaryStatus) -> None:
    """How many there are, who writes them, and why somebody does not."""
    from offbook.cli.handed import told_levels
    from offbook.cli.output import counted, printable, warn

    facts = {
        "by level": told_levels(summaries.counts) + ("" if summaries.counts else " yet"),
        "waiting": f"{counted(summaries.waiting, 'session')} to look at" if summaries.waiting else "nothing",
        "written by": ", else ".join(summaries.summarizers) or "nobody",
    }
    click.echo("\nsummaries:")
    for name, value in facts.items():
        click.echo(printable(f"{name:<14}{value}"))
    for name, trouble in summaries.troubles.items():
        warn(printable(f"{name} is not used now: {trouble}"))


def _show_maintenance(tasks: list[TaskHealth]) -> None:
    """One line for all of it, and one for each task that goes on failing."""
    from offbook.cli.output import counted, local_time, printable, warn

    if not tasks:
        return
    failing = [task for task in tasks if task.error is not None]
    last = max((task.last_run for task in tasks if task.last_run), default=None)
    when = f", last at {local_time(last)}" if last else ""
    state = f"{len(failing):,} of {counted(len(tasks), 'task')} failing" if failing else counted(len(tasks), "task")
    click.echo(printable(f"\n{'maintenance':<14}{state}{when}"))
    for task in failing:
        since = f", last done at {local_time(task.last_success)}" if task.last_success else ""
        warn(printable(f"{task.task} fails ({counted(task.failures, 'time')} in a row{since}): {task.error}"))
    broken = sum(task.did.get("pages not understood", 0) for task in tasks)
    if broken:
        warn(f"{counted(broken, 'page')} of lessons in the wiki not understood: mend or remove them")
    for each in (each for task in tasks for each in task.waits):
        warn(printable(f"  {each}"))


def _show_sessions(sessions: list[Session], total: int) -> None:
    from offbook.cli.output import counted

    click.echo()
    if not sessions:
        click.echo("no sessions yet")
        return
    shown = f", the newest {len(sessions)}" if total > len(sessions) else ""
    click.echo(f"{counted(total, 'session')}{shown}:")
    show_sessions(sessions)


def show_sessions(sessions: list[Session]) -> None:
    from offbook.cli.output import local_time, table

    has_parents = any(session.parent_session_id for session in sessions)  # most agents have none: no empty column
    table(
        ["session", "messages", "characters", "last message", "state", *(["started by"] if has_parents else [])],
        [
            [
                session.session_id,
                f"{session.last_seq:,}",
                f"{session.chars:,}",
                local_time(session.last_at),
                _state(session),
                *([session.parent_session_id or ""] if has_parents else []),
            ]
            for session in sessions
        ],
        right=["messages", "characters"],
    )


def _state(session: Session) -> str:
    if session.ended_at is None:
        return "open"
    return f"ended ({session.end_reason})" if session.end_reason else "ended"


def _show_capture(status: Status) -> None:
    from offbook.cli.output import counted, local_time, table, warn

    capture = status.capture
    if capture.clients:
        click.echo("\nwhat clients say they sent, and what arrived:")
        table(
            ["client", "sent", "arrived", "missing", "on its way", "last seen"],
            [
                [
                    client.client,
                    f"{client.sent:,}",
                    f"{client.received:,}",
                    f"{client.missing:,}",
                    f"{client.waiting:,}",
                    local_time(client.last_seen),
                ]
                for client in capture.clients
            ],
            right=["sent", "arrived", "missing", "on its way"],
        )
    if capture.missing:
        warn(
            f"{counted(capture.missing, 'message')} never arrived: the client's outbox was full or lost. "
            "`offbook doctor` looks at the outboxes; restore what is missing from the host's own transcript."
        )
    elif capture.waiting:
        click.echo(f"{counted(capture.waiting, 'message')} still to come: `offbook flush` delivers what waits here")
