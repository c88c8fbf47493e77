"""`offbook maintain`: what is done every few minutes, now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook.model.maintenance import MaintenanceReport, TaskRun

TIMEOUT_SECONDS = 3600.0
"""A backup of a long history, or the pages of one, take a while."""
ONE = {
    "session logs": "session log",
    "cold pages": "cold page",
    "lessons": "lesson",
    "edits taken": "edit taken",
    "pages not understood": "page not understood",
    "backups": "backup",
}

EPILOG = """\b
Examples:
  offbook maintain
  offbook maintain researcher --task tiers
  offbook maintain --json | jq '.runs[] | select(.error)'

\b
The provider does the same by itself, every `maintenance.interval`. A task
that fails is tried again by itself; `offbook status` shows those that go on
failing. Exit status 1: one failed; 2: there is no such agent.
"""


@click.command("maintain", epilog=EPILOG)
@click.argument("agent", type=UTF8, required=False)
@click.option("--task", "tasks", type=UTF8, multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@common_options
@pass_invocation
def command(invocation: Invocation, agent: str | None, tasks: tuple[str, ...]) -> None:
    """Look after an agent's memory now, and show what was done."""
    from offbook.cli.known_agents import agents_there, refuse_unknown
    from offbook.cli.output import print_json, progress

    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        if named := agent or invocation.agent_given:
            refuse_unknown([named], agents_there(client, [named]), "AGENT")
        with progress("looking after it", None):
            report = client.maintain(tasks=tasks or None, agent_id=agent or invocation.agent)
    if invocation.is_json:
        print_json(report)
    else:
        _show(report)
    if any(run.error is not None for run in report.runs):
        raise click.exceptions.Exit(1)


def _show(report: MaintenanceReport) -> None:
    from offbook.cli.output import printable, table, warn

    click.secho(f"Agent {printable(report.agent_id)}", bold=True)
    table(
        ["task", "seconds", "what it did"],
        [[run.task, f"{run.seconds:.2f}", told(run)] for run in report.runs],
        right=["seconds"],
    )
    for run in report.runs:
        if run.error is not None:
            click.secho(printable(f"{run.task} failed: {run.error}"), fg="red")
        for each in run.waits:
            warn(printable(f"waits for you to mend or remove it: {each}"))


def told(run: TaskRun) -> str:
    """`indexed` and `offloaded` say what they count; nothing done is said so."""
    if run.error is not None:
        return "failed"
    return ", ".join(named(number, name) for name, number in run.did.items() if number) or "nothing to do"


def named(number: int, name: str) -> str:
    """`did` names its counts as of several."""
    return f"{number:,} {ONE.get(name, name) if number == 1 else name}"
