"""`offbook compress`: summarise what is not summarised yet, after saying what that takes."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook import Client
    from offbook.model.status import Status
    from offbook.model.summary import CompressionEstimate

TIMEOUT_SECONDS = 120.0
"""The estimate looks at every session of the agent."""
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.2, 2.0
"""Between two looks: each leaves an audit event, so they grow apart."""
STALLED_SECONDS = 180.0
"""Without anything new after which it is not waited for: longer than a slow model takes for one summary."""

EPILOG = """\b
Examples:
  offbook compress --dry-run         what there is to do, and what it costs
  offbook compress
  offbook compress --session chat
  offbook compress --yes --no-wait   for scripts: pays without asking
  offbook compress --again --dry-run what a better model would write again

\b
Not needed in daily life: sessions are summarised as they grow. It is for
what was recorded before, and for what waited while a model was away.
Ctrl-C ends the waiting, not the work; the same command again goes on
waiting, and nothing is paid for twice.

\b
--again is for a model that came later: what one further back in
`summarizer.order` wrote (extractive is the last) is written again by the
first that can. Its id stays. What is not done yet is done by the next.
"""


@click.command("compress", epilog=EPILOG)
@click.option("--session", type=UTF8, metavar="S", help="Only this session.")
@click.option("--all", "wants_all", is_flag=True, help="Every session of the agent, which is the default.")
@click.option("--again", is_flag=True, help="Also write again what a lesser summarizer wrote than there is now.")
@click.option("--dry-run", is_flag=True, help="Only say what it would take.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, even where it costs money.")
@click.option("--no-wait", is_flag=True, help="Begin it, and do not wait for its end.")
@common_options
@pass_invocation
def command(
    invocation: Invocation, session: str | None, wants_all: bool, again: bool, dry_run: bool, yes: bool, no_wait: bool
) -> None:
    """Summarise what is not summarised yet, in the background, after saying what that takes."""
    from offbook.cli.answered import asked, typed
    from offbook.cli.output import counted, print_json
    from offbook.model.summary import CompressionEstimate

    if wants_all and session is not None:
        raise click.UsageError("either --session or --all")
    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        asking: dict[str, Any] = {"sessionId": session, "again": again or None}
        document = asked(client, "compress", **asking, dryRun=True)
        estimate = typed(document, CompressionEstimate)
        if not invocation.is_json:
            _tell_estimate(estimate, session, is_again=again)
        if dry_run:
            if invocation.is_json:
                print_json(document)
            return
        _agree(estimate, is_agreed=yes, may_ask=not invocation.is_json)
        before = _status(client, estimate.agent_id)
        asked(client, "compress", **asking)
        after = _status(client, estimate.agent_id) if no_wait else _waited(client, estimate, before)
        left = None
        if again and not no_wait:
            left = typed(asked(client, "compress", **asking, dryRun=True), CompressionEstimate).again
    if invocation.is_json:
        now = {"counts": after.summaries.counts, "waiting": after.summaries.waiting, "made": _made(estimate, after)}
        told_again = {"writtenAgain": max(0, estimate.again - left), "left": left} if left is not None else {}
        print_json({**document, **now, **told_again, "troubles": after.summaries.troubles})
    elif no_wait:
        waiting = counted(after.summaries.waiting, "session")
        click.echo(f"begun, {waiting} to look at: `offbook status` shows how far it is")
    else:
        _tell_made(_made(estimate, after), after, after.costs.dollars - before.costs.dollars)
        if left is not None:
            _tell_again(max(0, estimate.again - left), left)
        _tell_troubles(after)
    if left and left >= estimate.again:
        raise click.exceptions.Exit(1)  # it was asked for, and nothing of it was done


# ── before ────────────────────────────────────────────────────────────────────────────────────


def _tell_estimate(estimate: CompressionEstimate, session: str | None, *, is_again: bool) -> None:
    from offbook.cli.handed import told_levels
    from offbook.cli.output import counted, printable

    where = f"session {session}" if session is not None else counted(estimate.sessions, "session")
    facts = {
        "to summarise": f"about {estimate.source_tokens:,} tokens of {where}"
        if estimate.source_tokens
        else "nothing that is long enough; it is looked through all the same",
        "summaries": f"about {estimate.summaries:,} to be made; there are {told_levels(estimate.counts)}",
        **({"again": _told_again(estimate)} if is_again else {}),
        "written by": estimate.summarizer,
        "cost": _cost(estimate),
    }
    click.secho(printable(f"Agent {estimate.agent_id}"), bold=True)
    for name, value in facts.items():
        click.echo(printable(f"{name:<14}{value}"))


def _told_again(estimate: CompressionEstimate) -> str:
    from offbook.cli.output import counted

    number = counted(estimate.again, "summary", "summaries")
    return f"{number} by a lesser summarizer, to be written again" if estimate.again else "none is by a lesser one"


def _cost(estimate: CompressionEstimate) -> str:
    if not (estimate.input_tokens or estimate.output_tokens or estimate.dollars):
        return "nothing: no model is asked"
    tokens = f"about {estimate.input_tokens:,} tokens in, {estimate.output_tokens:,} out"
    return f"{tokens}: {_money(estimate.dollars) if estimate.dollars else 'nothing to pay that is known of'}"


def _money(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.01 else "less than $0.01"


def _agree(estimate: CompressionEstimate, *, is_agreed: bool, may_ask: bool) -> None:
    """Nothing is paid that nobody agreed to."""
    if estimate.dollars <= 0 or is_agreed:
        return
    cost = f"about {_money(estimate.dollars)}" if estimate.dollars >= 0.01 else _money(estimate.dollars)
    if not (may_ask and sys.stdin.isatty()):
        raise click.UsageError(f"this costs {cost}: --yes agrees to it, --dry-run only says what it would take")
    click.confirm(f"Pay {cost}?", abort=True, err=True)


# ── meanwhile ─────────────────────────────────────────────────────────────────────────────────


def _status(client: Client, agent: str) -> Status:
    from offbook.cli.answered import typed
    from offbook.model.status import Status

    return typed(client.status(agent), Status)


def _waited(client: Client, estimate: CompressionEstimate, before: Status) -> Status:
    """The status once no session waits, or once nothing has moved for long."""
    from offbook.cli.output import progress

    pause, shown, moved_at = FIRST_LOOK_SECONDS, 0, time.monotonic()
    status = before
    try:
        # What is written again is not counted anywhere, so how long that takes is not known.
        with progress("summarising", None if estimate.again else estimate.summaries or None) as advance:
            while True:
                seen, status = _place(status), _status(client, estimate.agent_id)
                done = sum(_made(estimate, status).values())
                advance(max(0, done - shown))
                shown = max(shown, done)
                if _place(status) != seen:
                    moved_at = time.monotonic()
                if status.summaries.waiting == 0 or time.monotonic() - moved_at > STALLED_SECONDS:
                    return status
                time.sleep(pause)
                pause = min(LONGEST_LOOK_SECONDS, 1.5 * pause)
    except KeyboardInterrupt:
        click.echo(
            "\nit goes on in the background: `offbook status` shows how far it is, "
            "`offbook compress` again waits for it",
            err=True,
        )
        raise


def _place(status: Status) -> Any:
    """What moves while it is at work."""
    return status.summaries.waiting, status.summaries.counts, status.costs


def _made(estimate: CompressionEstimate, after: Status) -> dict[str, int]:
    """Summaries that are not among those told of before, by level: also those that were made while that was read."""
    grown = {level: number - estimate.counts.get(level, 0) for level, number in after.summaries.counts.items()}
    return {level: number for level, number in grown.items() if number > 0}


# ── after ─────────────────────────────────────────────────────────────────────────────────────


def _tell_made(made: dict[str, int], after: Status, spent: float) -> None:
    from offbook.cli.handed import told_levels
    from offbook.cli.output import counted

    paid = f" for {_money(spent)}" if spent > 0 else ""
    if made:
        number = counted(sum(made.values()), "summary", "summaries")
        click.echo(f"{number} made{paid}: {told_levels(made)}; `offbook inspect` shows them")
    else:
        there_are = told_levels(after.summaries.counts)
        click.echo(f"no new summaries{paid}; there are {there_are}: all that is old enough is summarised")


def _tell_again(written: int, left: int) -> None:
    from offbook.cli.output import counted, warn

    click.echo(f"{counted(written, 'summary', 'summaries')} written again")
    if left:
        warn(
            f"{counted(left, 'summary', 'summaries')} could be written again and {'was' if left == 1 else 'were'} not: "
            "`offbook compress --again` goes on with them"
        )


def _tell_troubles(after: Status) -> None:
    from offbook.cli.output import counted, printable, warn

    for name, trouble in after.summaries.troubles.items():
        warn(printable(f"{name} is not used now: {trouble}"))
    if waiting := after.summaries.waiting:
        warn(
            f"{counted(waiting, 'session')} still to look at, and nothing moves: it goes on in the background; "
            "`offbook status` shows how far it is, the provider's log has more"
        )
