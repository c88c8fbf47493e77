"""`offbook doctor`, `maintain`, `reindex`, `flush`: what keeps a memory well."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.answers import agents_there, refuse_unknown, typed
from offbook.cli.options import (
    UTF8,
    Invocation,
    common_options,
    home_option,
    json_option,
    offline_options,
    pass_invocation,
    url_option,
)
from offbook.cli.output import counted, print_json, printable, progress, table, warn

if TYPE_CHECKING:
    from offbook.api.doctor import Finding
    from offbook.client.blocking import Client
    from offbook.client.endpoint import Endpoint
    from offbook.model.maintenance import MaintenanceReport, TaskRun
    from offbook.model.status import IndexStatus


# ── offbook doctor ────────────────────────────────────────────────────────────────────────────────

LEVEL_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}

DOCTOR_EPILOG = """\b
Examples:
  offbook doctor
  offbook doctor --quick            without reading the whole history
  offbook doctor --fix              tighten modes, remove a stale socket, save
                                    what can be read of a damaged log
  offbook doctor --json | jq '.findings[] | select(.level != "ok")'

\b
--fix refuses to touch a damaged log while a provider runs. What can be read goes
into a fresh file, the damaged one is kept in damaged-<time> in the data folder.

Exit status 1 where something fails; warnings alone leave it 0.
"""


@click.command("doctor", epilog=DOCTOR_EPILOG)
@click.option("--quick", is_flag=True, help="Leave out what takes as long as there is history.")
@click.option("--fix", "wants_fix", is_flag=True, help="Mend what can be mended safely, then check.")
@offline_options
@pass_invocation
def doctor_command(invocation: Invocation, quick: bool, wants_fix: bool) -> None:
    """Check that everything works, and say how to mend what does not."""
    from offbook.api.doctor import examine, fix, mend_log

    home = invocation.home
    fixed = fix(home) if wants_fix else []
    unmended: list[Finding] = []
    if wants_fix and not quick:
        with progress("looking at the log", None):
            mended, unmended = asyncio.run(mend_log(home, invocation.environ))
        fixed += mended
    with progress("examining", None) as advance:
        findings = unmended + asyncio.run(examine(home, invocation.environ, is_quick=quick, progress=advance))
    if invocation.is_json:
        print_json({"fixed": fixed, "findings": findings})
    else:
        show_findings(fixed, findings)
    if any(finding.level == "fail" for finding in findings):
        raise click.exceptions.Exit(1)


def show_findings(fixed: list[str], findings: list[Finding]) -> None:
    for line in fixed:
        click.echo(printable(f"fixed: {line}"))
    for finding in findings:
        what = printable(finding.what).replace("\n", "\n" + " " * 19)
        level = click.style(f"{finding.level:<5}", fg=LEVEL_COLOURS[finding.level], bold=True)
        click.echo(f"{level} {finding.check:<12} {what}")
        if finding.mend:
            click.echo(f"{'':<19}→ {printable(finding.mend)}")
    levels = Counter(finding.level for finding in findings)
    click.echo(f"\n{levels['ok']} ok, {counted(levels['warn'], 'warning')}, {counted(levels['fail'], 'failure')}")


# ── offbook maintain ──────────────────────────────────────────────────────────────────────────────

MAINTAIN_TIMEOUT_SECONDS = 3600.0
"""A backup of a long history, or the pages of one, take a while."""
ONE_OF = {
    "session logs": "session log",
    "cold pages": "cold page",
    "lessons": "lesson",
    "edits taken": "edit taken",
    "pages not understood": "page not understood",
    "backups": "backup",
}

MAINTAIN_EPILOG = """\b
Examples:
  offbook maintain
  offbook maintain researcher --task tiers
  offbook maintain --json | jq '.runs[] | select(.error)'

\b
The provider does the same by itself, every `maintenance.interval`. A task
that fails is tried again by itself; `offbook status` shows those that go on
failing. Exit status 1: one failed; 2: there is no such agent.
"""


@click.command("maintain", epilog=MAINTAIN_EPILOG)
@click.argument("agent", type=UTF8, required=False)
@click.option("--task", "tasks", type=UTF8, multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@common_options
@pass_invocation
def maintain_command(invocation: Invocation, agent: str | None, tasks: tuple[str, ...]) -> None:
    """Look after an agent's memory now, and show what was done."""
    with invocation.client(timeout_seconds=MAINTAIN_TIMEOUT_SECONDS) as client:
        if named := agent or invocation.agent_given:
            refuse_unknown([named], agents_there(client, [named]), "AGENT")
        with progress("looking after it", None):
            report = client.maintain(tasks=tasks or None, agent_id=agent or invocation.agent)
    if invocation.is_json:
        print_json(report)
    else:
        _show_maintained(report)
    if any(run.error is not None for run in report.runs):
        raise click.exceptions.Exit(1)


def _show_maintained(report: MaintenanceReport) -> None:
    click.secho(f"Agent {printable(report.agent_id)}", bold=True)
    table(
        ["task", "seconds", "what it did"],
        [[run.task, f"{run.seconds:.2f}", told_run(run)] for run in report.runs],
        right=["seconds"],
    )
    for run in report.runs:
        if run.error is not None:
            click.secho(printable(f"{run.task} failed: {run.error}"), fg="red")
        for each in run.waits:
            warn(printable(f"waits for you to mend or remove it: {each}"))


def told_run(run: TaskRun) -> str:
    """`indexed` and `offloaded` say what they count; nothing done is said so."""
    if run.error is not None:
        return "failed"
    return ", ".join(_told_count(number, name) for name, number in run.did.items() if number) or "nothing to do"


def _told_count(number: int, name: str) -> str:
    """`did` names its counts as of several."""
    return f"{number:,} {ONE_OF.get(name, name) if number == 1 else name}"


# ── offbook reindex ───────────────────────────────────────────────────────────────────────────────

REINDEX_TIMEOUT_SECONDS = 120.0
"""Dropping the vectors of a long history takes a while."""
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.2, 2.0
"""Between two looks: each leaves an audit event, so they grow apart."""

STALLED_SECONDS = 30.0
"""Without anything new after which it is not waited for: the model is away, say."""

REINDEX_EPILOG = """\b
Examples:
  offbook reindex
  offbook reindex --embeddings      the vectors too: minutes to hours
  offbook reindex --all-agents
  offbook reindex --no-wait && offbook status

Recall goes on meanwhile, with what is indexed so far. Nothing of the log is touched.
"""


@click.command("reindex", epilog=REINDEX_EPILOG)
@click.option("--embeddings", is_flag=True, help="Embed every message again as well, not only index it.")
@click.option("--all-agents", is_flag=True, help="For every agent that this provider knows.")
@click.option("--no-wait", is_flag=True, help="Begin it, and do not wait for its end.")
@common_options
@pass_invocation
def reindex_command(invocation: Invocation, embeddings: bool, all_agents: bool, no_wait: bool) -> None:
    """Make the agent's search index anew from the log, in the background.

    Not needed in daily life: the index follows the log by itself, and is made anew by itself where it is damaged.
    """
    if all_agents and invocation.agent_given:
        raise click.UsageError("either --agent or --all-agents")
    with invocation.client(timeout_seconds=REINDEX_TIMEOUT_SECONDS) as client:
        agents = _index_status(client, invocation.agent)[1] if all_agents else [invocation.agent]
        begun = [client.reindex(embeddings=embeddings, agent_id=agent) for agent in agents]
        try:
            ended = begun if no_wait else [_waited_for_index(client, agent) for agent in agents]
        except KeyboardInterrupt:
            click.echo("\nit goes on in the background: `offbook status` shows how far it is", err=True)
            raise
    if invocation.is_json:
        print_json(dict(zip(map(str, agents), ended, strict=True)) if all_agents else ended[0])
        return
    for agent, index in zip(agents, ended, strict=True):
        _tell_index(agent, index, is_over=not no_wait)


def _index_status(client: Client, agent: str | None) -> tuple[IndexStatus, list[str], int]:
    """How far the index is, the agents there are, and how many messages there are to be found."""
    from offbook.model.status import Status

    status = typed(client.status(agent), Status)
    return status.index, status.agents, status.counts.messages - status.counts.noise


def _waited_for_index(client: Client, agent: str | None) -> IndexStatus:
    """The index, once it has stopped growing and nothing waits for its vector."""
    name = f" {agent}" if agent else ""
    index, _, total = _index_status(client, agent)
    pause, shown, moved_at = FIRST_LOOK_SECONDS, 0, time.monotonic()
    # Each message counts twice: found by text, then by meaning.
    with progress(f"indexing{name}", 2 * total if sys.stderr.isatty() else None) as advance:
        while True:
            done = index.entries + (index.embedded if index.trouble is None else index.entries)
            advance(max(0, done - shown))
            shown = max(shown, done)
            time.sleep(pause)
            pause = min(LONGEST_LOOK_SECONDS, 1.5 * pause)
            before, (index, _, total) = index, _index_status(client, agent)
            if (index.entries, index.embedded) != (before.entries, before.embedded):
                moved_at = time.monotonic()
            elif index.waiting == 0 or index.trouble is not None or time.monotonic() - moved_at > STALLED_SECONDS:
                return index


def _tell_index(agent: str | None, index: IndexStatus, *, is_over: bool) -> None:
    whose = printable(f"agent {agent}: " if agent else "")
    if not is_over:
        click.echo(f"{whose}begun, {counted(index.waiting, 'message')} to go: `offbook status` shows how far it is")
        return
    click.echo(
        f"{whose}{counted(index.entries, 'message')} can be found by text, {index.embedded:,} of them by meaning too"
    )
    if index.trouble is not None:
        warn(printable(f"no embeddings: {index.trouble}"))
    elif index.waiting:
        warn(
            f"{counted(index.waiting, 'message')} still to go, and nothing moves: it goes on in the background; "
            "`offbook doctor` looks at the model, the provider's log has more"
        )


# ── offbook flush ─────────────────────────────────────────────────────────────────────────────────

ENDS_SECONDS = 30.0
"""For all that a host told of the ends of its sessions while nobody answered."""

FLUSH_EPILOG = """\b
Examples:
  offbook flush
  offbook flush --url https://memory.example:8770
  offbook flush --rejected         also what was refused, once the cause is mended
  offbook flush --everything       also what was meant for where it answered before

\b
Clients keep what they cannot send in $OFFBOOK_HOME/outbox and deliver it by
themselves when they run again; this is for those that do not. What is meant
for another provider is only counted: --url delivers it there.
"""


@click.command("flush", epilog=FLUSH_EPILOG)
@click.option("--rejected", "with_rejected", is_flag=True, help="Try again with what the provider refused for good.")
@click.option(
    "--everything", is_flag=True, help="Deliver here what is meant for another provider, too: this one has moved."
)
@home_option
@url_option
@json_option
@pass_invocation
def flush_command(invocation: Invocation, with_rejected: bool, everything: bool) -> None:
    """Deliver what clients could not send while nobody answered."""
    report = deliver_waiting(invocation, with_rejected=with_rejected, everything=everything)
    if invocation.is_json:
        print_json(_on_the_wire(report))
    else:
        _show_flushed(report)
    if report["waiting"]:
        raise click.exceptions.Exit(1)


def deliver_waiting(invocation: Invocation, *, with_rejected: bool = False, everything: bool = False) -> dict[str, Any]:
    """What was delivered, and what was not: as `deliver_outboxes` reports it, and how many sessions were `ended`."""
    from offbook.client.outboxes import deliver_outboxes
    from offbook.contrib.coding.hooks import Ends, hosts_with_ends

    home = invocation.home.folder
    with invocation.client() as client:
        client.ping()  # nobody there is exit status 3, not an outbox that stays as it is
        own = _own_names(invocation, client.endpoint)
        report = deliver_outboxes(
            home,
            client.endpoint,
            token=invocation.token,
            with_rejected=with_rejected,
            everything=everything,
            own=own,
        )
        whose = None if everything else client.endpoint
        report["ended"] = sum(
            Ends(home, host).tell(client, seconds=ENDS_SECONDS, endpoint=whose, own=own)
            for host in hosts_with_ends(home)
        )
    return report


def _own_names(invocation: Invocation, asked: Endpoint) -> frozenset[str]:
    """Of the provider of the data folder, where that is the one that is asked: it has a socket and a port."""
    from offbook.model.errors import SettingsError
    from offbook.model.settings import load

    try:
        server = load(invocation.home.folder, environ=invocation.environ).settings.server
    except SettingsError:
        return frozenset()  # `offbook config` says what is wrong; what waits does not wait for that
    scheme = "https" if server.tls_cert else "http"
    hosts = dict.fromkeys(("127.0.0.1", "localhost", "[::1]", server.host)) if server.port else {}
    names = {f"unix://{invocation.home.socket}", *(f"{scheme}://{host}:{server.port}" for host in hosts)}
    return frozenset(names) if str(asked) in names else frozenset()


def _on_the_wire(report: dict[str, Any]) -> dict[str, Any]:
    """In the spelling of all other documents."""
    outboxes = [_on_the_wire(outbox) for outbox in report.get("outboxes", [])]
    named = {"lastError" if name == "last_error" else name: value for name, value in report.items()}
    return {**named, "outboxes": outboxes} if "outboxes" in report else named


def _show_flushed(report: dict[str, Any]) -> None:
    if report["outboxes"]:
        table(
            ["outbox", "delivered", "refused", "waiting", ""],
            [
                [
                    Path(outbox["folder"]).name,
                    f"{outbox['delivered']:,}",
                    f"{outbox['rejected']:,}",
                    f"{outbox['waiting']:,}",
                    outbox["last_error"] or "",
                ]
                for outbox in report["outboxes"]
            ],
            right=["delivered", "refused", "waiting"],
        )
    for folder in report["busy"]:
        click.echo(f"{Path(folder).name}: in use by a running client, which delivers it by itself")
    for outbox in report["elsewhere"]:
        waits, where = counted(outbox["waiting"], "message"), outbox["endpoint"]
        click.echo(
            f"{Path(outbox['folder']).name}: {waits} meant for {where}: `offbook flush --url {where}` delivers there, "
            "--everything here, if that provider has moved"
        )
    if report["ended"]:
        click.echo(f"{counted(report['ended'], 'session')} of coding agents marked as ended")
    if not any(report[name] for name in ("outboxes", "busy", "elsewhere", "ended")):
        click.echo("nothing waits to be delivered")
    if report["rejected"]:
        warn(f"{counted(report['rejected'], 'message')} refused for good: see rejected*.jsonl in the outbox's folder")
