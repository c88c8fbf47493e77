"""`offbook inspect`, `compress`: the summaries that there are, and those still to be written."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.answers import Pages, asked, typed
from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation
from offbook.cli.output import (
    counted,
    local_minute,
    print_json,
    printable,
    progress,
    told_levels,
    told_span,
    warn,
    wrapped,
)

if TYPE_CHECKING:
    from offbook.client.blocking import Client
    from offbook.model.status import Status
    from offbook.model.summary import CompressionEstimate, SummaryView


# ── offbook inspect ───────────────────────────────────────────────────────────────────────────────

SHOWN = 10
LINES_SHOWN = 3
HIGHEST_LEVEL = 9
INDENT = "  "

INSPECT_EPILOG = """\b
Examples:
  offbook inspect                       the newest 10
  offbook inspect --level L2 --full     whole, with what each leaves out
  offbook inspect --session chat --all
  offbook inspect --all --json | jq -r '.summaries[].id'

\b
`offbook expand ID` shows the messages behind one, word for word.
`offbook compress` summarises what is not summarised yet.
"""


def level_number(value: str) -> int:
    """`L2` as it is shown, or `2`."""
    digits = value.strip().upper().removeprefix("L")
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits) <= HIGHEST_LEVEL):
        raise click.BadParameter(f"{value!r} is no level such as L1 or L2")
    return int(digits)


@click.command("inspect", epilog=INSPECT_EPILOG)
@click.option("--level", type=level_number, metavar="L", help="Only those of this level: L1, L2, ….")
@click.option("--session", type=UTF8, metavar="S", help="Only those of this session.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="Most summaries shown."
)
@click.option("--all", "wants_all", is_flag=True, help="All of them, however many.")
@click.option("--full", is_flag=True, help="The whole text of each, and what it leaves out.")
@common_options
@pass_invocation
def inspect_command(
    invocation: Invocation, level: int | None, session: str | None, limit: int, wants_all: bool, full: bool
) -> None:
    """Show the summaries, the newest first: what each stands for, who wrote it, what it cost and what it leaves out."""
    from offbook.model.summary import SummaryPage

    with invocation.client() as client:
        fields = {"level": level, "sessionId": session}
        found = Pages(client, "summaries", SummaryPage, fields, limit=None if wants_all else limit)
        documents = list(found)
        counts = _counts(client, session)
    if invocation.is_json:
        more = {"next": found.next} if found.next else {}
        print_json({"summaries": documents, "counts": counts, **more})
        return
    _show_summaries(documents, full=full)
    _tell_counts(
        documents, counts, has_more=found.next is not None, is_filtered=level is not None or session is not None
    )


def _counts(client: Client, session: str | None) -> dict[str, int]:
    """How many the agent has, by level. Whose a session is may be said by its key."""
    from offbook.ingest.scope import resolve_agent
    from offbook.model.status import Status

    agent = resolve_agent(session, client.agent_id, "")
    return typed(client.status(agent or None), Status).summaries.counts


def _show_summaries(documents: list[dict[str, Any]], *, full: bool) -> None:
    from offbook.model.summary import SummaryView

    for document in documents:
        summary = typed(document, SummaryView)
        click.echo(_summary_head(summary))
        for line in _summary_facts(summary):
            click.secho(INDENT + line, dim=True)
        for line in _summary_text(summary, full=full):
            click.echo(line)
        click.echo()


def _summary_head(summary: SummaryView) -> str:
    """Its id, what of which session it stands for, and from when to when that was said."""
    places = "; ".join(
        f"session {span.session_id} {told_span(span.first_seq, span.last_seq)}" for span in summary.spans
    )
    when = f"{local_minute(summary.first_at)} to {local_minute(summary.last_at)}"
    return f"{click.style(summary.id, bold=True)}  {printable(places)}  {click.style(when, dim=True)}"


def _summary_facts(summary: SummaryView) -> Iterator[str]:
    share = 100 * summary.tokens / max(1, summary.source_tokens)
    yield (
        f"{counted(summary.source_messages, 'message')} · {summary.source_tokens:,} → {summary.tokens:,} tokens "
        f"({share:.0f} %) · {counted(summary.lost, 'particular')} left out"
    )
    cost = f"${summary.usage.dollars:,.4f}" if summary.usage.dollars else "no cost"
    made = printable(f"by {summary.summarizer} on {local_minute(summary.made_at)} · {cost}")
    merges = f" · merges {summary.sources[0]} to {summary.sources[-1]}" if summary.sources else ""
    yield made + printable(merges) + (f" · merged into {summary.parent}" if summary.parent else "")


def _summary_text(summary: SummaryView, *, full: bool) -> Iterator[str]:
    lines = summary.text.rstrip().split("\n")
    shown = lines if full else lines[:LINES_SHOWN]
    yield from wrapped(printable("\n".join(shown)), INDENT)
    if len(lines) > len(shown):
        yield click.style(f"{INDENT}… {counted(len(lines) - len(shown), 'more line')}: --full", dim=True)
    if not full:
        return
    for (session_id, seq), losses in groupby(summary.losses, lambda loss: (loss.session_id, loss.seq)):
        told = ", ".join(f"{loss.kind} {loss.text}" for loss in losses)
        yield click.style(printable(f"{INDENT}left out of {session_id} {told_span(seq, seq)}: {told}"), fg="yellow")
    if (more := summary.lost - len(summary.losses)) > 0:
        yield click.style(f"{INDENT}and {counted(more, 'more particular')}: `offbook expand {summary.id}`", fg="yellow")


def _tell_counts(documents: list[dict[str, Any]], counts: dict[str, int], *, has_more: bool, is_filtered: bool) -> None:
    total = sum(counts.values())
    if not total:
        click.echo(
            "no summaries yet: they are made as sessions grow; `offbook compress` looks for what is due", err=True
        )
        return
    if not documents and is_filtered:
        click.echo("none of that kind: leave out --level or --session", err=True)
    click.echo(f"{counted(total, 'summary', 'summaries')} in all: {told_levels(counts)}")
    if has_more:
        click.echo(f"{len(documents):,} shown: --limit N or --all shows more", err=True)


# ── offbook compress ──────────────────────────────────────────────────────────────────────────────

TIMEOUT_SECONDS = 120.0
"""The estimate looks at every session of the agent."""
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.2, 2.0
"""Between two looks: each leaves an audit event, so they grow apart."""
STALLED_SECONDS = 180.0
"""Without anything new after which it is not waited for: longer than a slow model takes for one summary."""

COMPRESS_EPILOG = """\b
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


@click.command("compress", epilog=COMPRESS_EPILOG)
@click.option("--session", type=UTF8, metavar="S", help="Only this session.")
@click.option("--all", "wants_all", is_flag=True, help="Every session of the agent, which is the default.")
@click.option("--again", is_flag=True, help="Also write again what a lesser summarizer wrote than there is now.")
@click.option("--dry-run", is_flag=True, help="Only say what it would take.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, even where it costs money.")
@click.option("--no-wait", is_flag=True, help="Begin it, and do not wait for its end.")
@common_options
@pass_invocation
def compress_command(
    invocation: Invocation, session: str | None, wants_all: bool, again: bool, dry_run: bool, yes: bool, no_wait: bool
) -> None:
    """Summarise what is not summarised yet, in the background, after saying what that takes."""
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
    from offbook.model.status import Status

    return typed(client.status(agent), Status)


def _waited(client: Client, estimate: CompressionEstimate, before: Status) -> Status:
    """The status once no session waits, or once nothing has moved for long."""
    pause, shown, moved_at = FIRST_LOOK_SECONDS, 0, time.monotonic()
    status = before
    try:
        # What is written again is not counted anywhere, so how long that takes is not known.
        with progress("summarising", None if estimate.again else estimate.summaries or None) as advance:
            while True:
                seen, status = _progress_of(status), _status(client, estimate.agent_id)
                done = sum(_made(estimate, status).values())
                advance(max(0, done - shown))
                shown = max(shown, done)
                if _progress_of(status) != seen:
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


def _progress_of(status: Status) -> Any:
    """What moves while it is at work."""
    return status.summaries.waiting, status.summaries.counts, status.costs


def _made(estimate: CompressionEstimate, after: Status) -> dict[str, int]:
    """Summaries that are not among those told of before, by level: also those that were made while that was read."""
    grown = {level: number - estimate.counts.get(level, 0) for level, number in after.summaries.counts.items()}
    return {level: number for level, number in grown.items() if number > 0}


# ── after ─────────────────────────────────────────────────────────────────────────────────────


def _tell_made(made: dict[str, int], after: Status, spent: float) -> None:
    paid = f" for {_money(spent)}" if spent > 0 else ""
    if made:
        number = counted(sum(made.values()), "summary", "summaries")
        click.echo(f"{number} made{paid}: {told_levels(made)}; `offbook inspect` shows them")
    else:
        there_are = told_levels(after.summaries.counts)
        click.echo(f"no new summaries{paid}; there are {there_are}: all that is old enough is summarised")


def _tell_again(written: int, left: int) -> None:
    click.echo(f"{counted(written, 'summary', 'summaries')} written again")
    if left:
        warn(
            f"{counted(left, 'summary', 'summaries')} could be written again and {'was' if left == 1 else 'were'} not: "
            "`offbook compress --again` goes on with them"
        )


def _tell_troubles(after: Status) -> None:
    for name, trouble in after.summaries.troubles.items():
        warn(printable(f"{name} is not used now: {trouble}"))
    if waiting := after.summaries.waiting:
        warn(
            f"{counted(waiting, 'session')} still to look at, and nothing moves: it goes on in the background; "
            "`offbook status` shows how far it is, the provider's log has more"
        )
