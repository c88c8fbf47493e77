"""`offbook audit`: who did what, and whether the record is whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.answers import typed
from offbook.cli.options import UTF8, Invocation, common_options, moment, pass_invocation
from offbook.cli.output import counted, local_time, print_json, printable, progress, table, warn
from offbook.model.plain_names import is_hex

if TYPE_CHECKING:
    from offbook.log.store import Store
    from offbook.model.status import AuditReport
    from offbook.model.types import AuditEvent, AuditHead, Fault

LONGEST_DETAILS = 80

EPILOG = """\b
Examples:
  offbook audit
  offbook audit --session chat -n 100
  offbook audit --since 2026-01-31T12:00
  offbook audit --since 120                after event 120
  offbook audit --verify                   the whole chain, of all agents
  offbook audit --verify --head 5d1c…      is what I noted then still in it?

\b
--verify reads the data folder itself, beside a provider or without one. It
finds what was altered, removed or added since it was written. Only a head
that was kept elsewhere shows that the end of a chain was cut off and rewritten.
"""


def seq_or_time(value: str) -> int | str:
    if value.isdecimal():
        return int(value)
    try:
        return moment(value).isoformat()
    except click.BadParameter as error:
        raise click.BadParameter(f"{error.message}, nor an event's number") from None


def head_hash(value: str) -> str:
    if not is_hex(value.lower(), 64):
        raise click.BadParameter("a head is 64 hexadecimal digits")
    return value.lower()


@click.command("audit", epilog=EPILOG)
@click.argument("agent", type=UTF8, required=False)
@click.option(
    "-n", "number", type=click.IntRange(1, 1_000), metavar="N", default=20, show_default=True, help="How many events."
)
@click.option("--session", type=UTF8, help="Only events of this session.")
@click.option(
    "--since",
    type=seq_or_time,
    metavar="SEQ|TIME",
    help="Only events after this one, or since this time (local unless it names a zone).",
)
@click.option("--verify", "wants_proof", is_flag=True, help="Verify every event and message, offline.")
@click.option(
    "--head", "heads", type=head_hash, multiple=True, metavar="HASH", help="With --verify: a head noted earlier."
)
@common_options
@pass_invocation
def audit_command(
    invocation: Invocation,
    agent: str | None,
    number: int,
    session: str | None,
    since: int | str | None,
    wants_proof: bool,
    heads: tuple[str, ...],
) -> None:
    """Show the record of who did what, or verify all of it."""
    if wants_proof:
        if session is not None or since is not None:
            raise click.UsageError("--verify looks at whole chains: leave out --session and --since")
        is_whole = asyncio.run(_verify(invocation, agent or invocation.agent, heads))
    elif heads:
        raise click.UsageError("--head goes with --verify")
    else:
        is_whole = _list(invocation, agent, number, session, since)
    if not is_whole:
        raise click.exceptions.Exit(1)


# ── listing ───────────────────────────────────────────────────────────────────────────────────


def _list(invocation: Invocation, agent: str | None, number: int, session: str | None, since: int | str | None) -> bool:
    from offbook.model.status import AuditReport

    with invocation.client() as client:
        document = client.audit(agent_id=agent, session_id=session, since=since, limit=number)
    report = typed(document, AuditReport)
    if invocation.is_json:
        print_json(document)
    else:
        _show_events(report)
    return report.verified


def _show_events(report: AuditReport) -> None:
    table(
        ["event", "at", "verb", "by", "session", "details"],
        [
            [
                str(event.seq),
                local_time(event.at),
                event.verb,
                event.actor,
                event.session_id or "",
                format_details(event.details),
            ]
            for event in report.events
        ],
        right=["event"],
    )
    click.echo(f"\nhead {report.head.hash} (event {report.head.seq:,})")
    if not report.verified:
        warn("the end of the chain does not verify: `offbook audit --verify` finds the place")


def format_details(details: dict[str, Any]) -> str:
    text = " ".join(f"{name}={value}" for name, value in details.items() if name not in ("hash", "sha256"))
    return text if len(text) <= LONGEST_DETAILS else text[: LONGEST_DETAILS - 1] + "…"


# ── verifying ─────────────────────────────────────────────────────────────────────────────────


async def _verify(invocation: Invocation, agent: str | None, noted: tuple[str, ...]) -> bool:
    from offbook.log.blobs import BlobFiles
    from offbook.log.verification import verify
    from offbook.model.errors import InvalidInput

    blobs = BlobFiles(invocation.home.blobs)
    async with _opened(invocation) as store:
        known = await store.agents()
        if agent is not None and agent not in known:
            raise InvalidInput(f"nothing is stored of the agent {agent!r}: there is {', '.join(known) or 'none yet'}")
        agents = known if agent is None else [agent]
        heads = {name: await _head_of(store, name) for name in agents}
        faults: list[Fault] = []
        with progress("verifying", sum(head.seq for head in heads.values())) as advance:
            for name in agents:
                faults += [fault async for fault in verify(store, name, blobs=blobs, progress=advance)]
        salvaged = {name: found for name in agents if (found := await _salvages(store, name))}
        places = {head: await _place_of(store, agents, head) for head in noted}
    is_whole = not faults and all(places.values())
    if invocation.is_json:
        print_json({"verified": is_whole, "heads": heads, "faults": faults, "noted": places, "salvages": salvaged})
    else:
        _show_proof(heads, faults, places, salvaged)
    return is_whole


@asynccontextmanager
async def _opened(invocation: Invocation) -> AsyncIterator[Store]:
    from offbook.log.opening import is_there, open_snapshot, refuse_partial
    from offbook.model.errors import InvalidInput
    from offbook.model.settings import load

    home = invocation.home
    settings = load(home.folder, environ=invocation.environ).settings.store
    if not is_there(home, settings):
        raise InvalidInput(f"there is nothing to verify: {home.database} does not exist")
    refuse_partial(home, settings)
    store = open_snapshot(home, settings)
    try:
        yield store
    finally:
        await store.close()


async def _head_of(store: Store, agent: str) -> AuditHead:
    from offbook.model.errors import StoreCorrupt
    from offbook.model.types import AuditHead

    try:
        return await store.audit_head(agent)
    except StoreCorrupt:  # the faults tell
        return AuditHead(seq=0, hash="cannot be read")


async def _place_of(store: Store, agents: list[str], head: str) -> dict[str, Any] | None:
    """The event that a noted head is the hash of."""
    from offbook.log.verification import EVENTS_AT_A_TIME
    from offbook.model.types import AuditEvent

    for agent in agents:
        after = 0
        while events := await store.examined_audit_events(agent, after_seq=after, limit=EVENTS_AT_A_TIME):
            for event in events:
                if isinstance(event, AuditEvent) and event.hash == head:
                    return {"agentId": agent, "seq": event.seq}
            after = events[-1].seq or after + 1
    return None


async def _salvages(store: Store, agent: str) -> list[AuditEvent]:
    from offbook.log.verification import salvages
    from offbook.model.errors import StoreCorrupt

    try:
        return await salvages(store, agent)
    except StoreCorrupt:  # the faults tell
        return []


def _show_proof(
    heads: dict[str, AuditHead],
    faults: list[Fault],
    places: dict[str, dict[str, Any] | None],
    salvaged: dict[str, list[AuditEvent]],
) -> None:
    from offbook.log.verification import salvage_told

    for fault in faults:
        click.secho(printable(f"fault: {described(fault)}"), fg="red")
    for head, place in places.items():
        if place is None:
            click.secho(f"fault: the head {head} is not in the chain: it was cut off or rewritten since", fg="red")
        else:
            click.echo(printable(f"the head {head} is event {place['seq']:,} of agent {place['agentId']}"))
    if heads:
        table(
            ["agent", "events", "head"],
            [[agent, f"{head.seq:,}", head.hash] for agent, head in heads.items()],
            right=["events"],
        )
    for agent, events in salvaged.items():
        for event in events:
            warn(printable(f"agent {agent}: {salvage_told(event)}"))
    number = len(faults) + sum(place is None for place in places.values())
    if number:
        click.secho(f"{counted(number, 'fault')} found: compare with a backup (`offbook restore`)", fg="red", bold=True)
    else:
        rest = "everything else" if salvaged else "everything"
        click.secho(f"{rest} is as it was written", fg="green")


def described(fault: Fault) -> str:
    place = [
        f"agent {fault.agent_id}" if fault.agent_id else "",
        f"session {fault.session_id}" if fault.session_id else "",
        f"#{fault.seq}" if fault.seq is not None else "",
    ]
    return f"{fault.what} ({', '.join(part for part in place if part)})" if any(place) else fault.what
