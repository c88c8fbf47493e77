"""`offbook status`, `config`, `version`: what is stored, what went missing on the way, and what runs here."""

from __future__ import annotations

import platform
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.answers import typed
from offbook.cli.options import UTF8, Invocation, common_options, json_option, offline_options, pass_invocation
from offbook.cli.output import (
    bar,
    counted,
    local_time,
    print_json,
    printable,
    spoken_duration,
    table,
    told_levels,
    warn,
)

if TYPE_CHECKING:
    from offbook.model.settings import LoadedSettings, Row
    from offbook.model.status import DailySpending, IndexStatus, Status, SummaryStatus, TaskHealth
    from offbook.model.types import Session


# ── offbook status ────────────────────────────────────────────────────────────────────────────────

MOST_AGENTS = 20
OF_THE_SUITE = "conformance-"

STATUS_EPILOG = """\b
Examples:
  offbook status
  offbook status researcher
  offbook status --json | jq .capture
"""


@click.command("status", epilog=STATUS_EPILOG)
@click.argument("agent", type=UTF8, required=False)
@common_options
@pass_invocation
def status_command(invocation: Invocation, agent: str | None) -> None:
    """Show what is stored for an agent, what recall can find, what is summarised, its newest sessions, and what went
    missing."""
    from offbook.model.status import Status

    with invocation.client() as client:
        document = client.status(agent)
    if invocation.is_json:
        print_json(document)
        return
    _show_status(typed(document, Status))


def _show_status(status: Status) -> None:
    from offbook.model.types import now

    uptime = spoken_duration(now() - status.started_at)
    click.secho(f"Agent {printable(status.agent_id)}", bold=True)
    store = f"{status.store}, encrypted" if status.encrypted else status.store
    click.echo(f"Offbook {status.version} · store {store} · up {uptime}\n")
    _show_counts(status)
    _show_index(status)
    _show_summaries(status.summaries)
    _show_maintenance(status.maintenance)
    _show_backups(status)
    _show_sessions(status.sessions, status.counts.sessions)
    _show_capture(status)
    others = [printable(agent) for agent in _other_agents(status)]
    if others:
        hidden = len(others) - MOST_AGENTS
        more = f" and {hidden:,} more (--json names all)" if hidden > 0 else ""
        click.echo(f"\nOther agents: {', '.join(others[:MOST_AGENTS])}{more}")


def _other_agents(status: Status) -> list[str]:
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
    index, tiers = status.index, status.tiers
    facts = {
        "by text": _by_text(status),
        "by meaning": _embedded(index),
        "embeddings": f"none: {index.trouble}" if index.trouble else index.model or "none yet",
        **({"read again by": index.reader} if index.reader else {}),
        "tiers": f"{tiers.hot:,} hot, {tiers.warm:,} warm, {tiers.cold:,} cold{_lifetime(status)}",
        "pinned": f"{status.pinned:,}",
        "retrievals": f"{status.retrievals:,}",
    }
    click.echo("\nwhat recall can find:")
    for name, value in facts.items():
        click.echo(printable(f"{name:<14}{value}"))
    if index.reader_trouble:
        warn(printable(f"{index.reader} did not read again: {index.reader_trouble}"))


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
    if not index.entries:
        return "0"
    share = index.embedded / index.entries
    waiting = f", {index.waiting:,} waiting" if index.waiting else ""
    return f"{bar(index.embedded, index.entries)} {int(100 * share)} %  ({index.embedded:,}{waiting})"


def _show_summaries(summaries: SummaryStatus) -> None:
    """How many there are, who writes them, and why somebody does not."""
    facts = {
        "by level": told_levels(summaries.counts) + ("" if summaries.counts else " yet"),
        "waiting": f"{counted(summaries.waiting, 'session')} to look at" if summaries.waiting else "nothing",
        "written by": ", else ".join(summaries.summarizers) or "nobody",
        **({"today": _told_spending(summaries.spending)} if summaries.spending is not None else {}),
    }
    click.echo("\nsummaries:")
    for name, value in facts.items():
        click.echo(printable(f"{name:<14}{value}"))
    for name, trouble in summaries.troubles.items():
        warn(printable(f"{name} is not used now: {trouble}"))


def _told_spending(spent: DailySpending) -> str:
    tokens = f"{spent.tokens:,} of {spent.max_tokens:,} tokens"
    return f"{tokens}, ${spent.dollars:,.2f} of ${spent.max_dollars:,.2f}"


def _show_backups(status: Status) -> None:
    from offbook.model.types import now

    newest = status.backups[0] if status.backups else None
    if newest is not None:
        age = spoken_duration(now() - newest.made_at)
        click.echo(f"{'backups':<14}{len(status.backups):,}, the newest {age} old")
    if status.unreadable_backups:
        warn(f"{counted(status.unreadable_backups, 'backup')} cannot be read: `offbook backup --list` says why")


def _show_maintenance(tasks: list[TaskHealth]) -> None:
    """One line for all of it, and one for each task that goes on failing."""
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
    click.echo()
    if not sessions:
        click.echo("no sessions yet")
        return
    shown = f", the newest {len(sessions)}" if total > len(sessions) else ""
    click.echo(f"{counted(total, 'session')}{shown}:")
    show_sessions(sessions)


def show_sessions(sessions: list[Session]) -> None:
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


# ── offbook config ────────────────────────────────────────────────────────────────────────────────

CONFIG_EPILOG = """\b
Examples:
  offbook config
  offbook config --changed
  offbook config server.port
  offbook config server                 the settings of one group
  $EDITOR "$(offbook config --path)"
"""


@click.command("config", epilog=CONFIG_EPILOG)
@click.argument("name", type=UTF8, required=False)
@click.option("--path", "wants_path", is_flag=True, help="Print where config.toml is, or would be.")
@click.option("--changed", is_flag=True, help="Only what is not a default.")
@offline_options
@pass_invocation
def config_command(invocation: Invocation, name: str | None, wants_path: bool, changed: bool) -> None:
    """Show every setting and where it came from, or one of them.

    \b
    Later wins: defaults, config.toml of the data folder, OFFBOOK_… variables,
    flags of `offbook serve`.
    """
    from offbook.model.settings import load

    home = invocation.home
    if wants_path:
        if invocation.is_json:
            print_json({"path": str(home.config), "exists": home.config.exists()})
        else:
            click.echo(home.config)
        return
    loaded = load(home.folder, environ=invocation.environ)
    rows = [row for row in loaded if not changed or row.origin != "default"]
    if name is not None:
        rows = _setting_named(loaded, rows, name)
    if invocation.is_json:
        documents = [_settings_document(row) for row in rows]
        print_json(
            documents[0] if name is not None and [row.name for row in rows] == [_full_setting(name)] else documents
        )
        return
    _show_settings(rows, name)


def _setting_named(loaded: LoadedSettings, rows: list[Row], name: str) -> list[Row]:
    """The setting of that name, in either spelling, or the settings of the group."""
    from offbook.model.settings import catalogue

    wanted = _full_setting(name)
    found = [row for row in rows if row.name == wanted or row.name.startswith(wanted + ".")]
    if not found and not catalogue().is_group(name.split(".")):
        loaded.origin_of(wanted)  # raises, with the name that was probably meant
    return found


def _full_setting(name: str) -> str:
    from offbook.model.settings import catalogue

    setting = catalogue().find_short(name) or catalogue().find(name.split("."))
    return setting.name if setting is not None else name


def _settings_document(row: Row) -> dict[str, Any]:
    from offbook.model.settings.values import as_text

    value = as_text(row.value) if isinstance(row.value, timedelta) else row.value
    return {"name": row.name, "value": value, "origin": row.origin, "description": row.description}


def _show_settings(rows: list[Row], name: str | None) -> None:
    from offbook.model.settings.values import as_text

    if name is not None and len(rows) == 1:
        (row,) = rows
        click.echo(printable(f"{row.name} = {as_text(row.value)}\n  {row.description}\n  from: {row.origin}"))
        return
    if not rows:
        click.echo("every setting has its default")
        return
    table(["setting", "value", "from"], [[row.name, as_text(row.value), row.origin] for row in rows])


# ── offbook version ───────────────────────────────────────────────────────────────────────────────

VERSION_EPILOG = """\b
Examples:
  offbook version
  offbook version --json
"""


@click.command("version", epilog=VERSION_EPILOG)
@json_option
@pass_invocation
def version_command(invocation: Invocation) -> None:
    """Show the versions of what runs here."""
    import apsw

    from offbook.log.sql.schema import latest_version
    from offbook.model.version import VERSION

    versions = {
        "offbook": VERSION,
        "schema": latest_version(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "platform": platform.platform(),
    }
    if invocation.is_json:
        print_json(versions)
        return
    for name, version in versions.items():
        click.echo(f"{name:<9}{version}")
