"""`offbook inspect`: the summaries there are, what each stands for and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook import Client
    from offbook.model.summary import SummaryView

SHOWN = 10
MOST_AT_A_TIME = 100
"""The contract's."""
LINES_SHOWN = 3
HIGHEST_LEVEL = 9
INDENT = "  "

EPILOG = """\b
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


@click.command("inspect", epilog=EPILOG)
@click.option("--level", type=level_number, metavar="L", help="Only those of this level: L1, L2, ….")
@click.option("--session", type=UTF8, metavar="S", help="Only those of this session.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="Most summaries shown."
)
@click.option("--all", "wants_all", is_flag=True, help="All of them, however many.")
@click.option("--full", is_flag=True, help="The whole text of each, and what it leaves out.")
@common_options
@pass_invocation
def command(
    invocation: Invocation, level: int | None, session: str | None, limit: int, wants_all: bool, full: bool
) -> None:
    """Show the summaries, the newest first: what each stands for, who wrote it, what it cost and what it leaves out."""
    from offbook.cli.output import print_json

    with invocation.client() as client:
        found = Found(client, level, session, None if wants_all else limit)
        documents = list(found)
        counts = _counts(client, session)
    if invocation.is_json:
        more = {"next": found.next} if found.next else {}
        print_json({"summaries": documents, "counts": counts, **more})
        return
    _show(documents, full=full)
    _tell(documents, counts, has_more=found.next is not None, is_filtered=level is not None or session is not None)


class Found:
    """The summaries asked for, page by page; `next` is where more would go on."""

    def __init__(self, client: Client, level: int | None, session: str | None, limit: int | None) -> None:
        self.next: str | None = None
        self._client = client
        self._level = level
        self._session = session
        self._limit = limit

    def __iter__(self) -> Iterator[dict[str, Any]]:
        from offbook.cli.answered import asked, typed
        from offbook.model.summary import SummaryPage

        left = self._limit
        while left is None or left > 0:
            document = asked(
                self._client,
                "summaries",
                level=self._level,
                sessionId=self._session,
                before=self.next,
                limit=MOST_AT_A_TIME if left is None else min(left, MOST_AT_A_TIME),
            )
            page = typed(document, SummaryPage)
            yield from document["summaries"]
            if page.next is not None and page.next == self.next:
                raise click.ClickException(f"the provider answers with the summaries before {page.next} again")
            self.next = page.next
            left = None if left is None else left - len(page.summaries)
            if self.next is None:
                return


def _counts(client: Client, session: str | None) -> dict[str, int]:
    """How many the agent has, by level. Whose a session is may be said by its key."""
    from offbook.cli.answered import typed
    from offbook.ingest.scope import resolve_agent
    from offbook.model.status import Status

    agent = resolve_agent(session, client.agent_id, "")
    return typed(client.status(agent or None), Status).summaries.counts


def _show(documents: list[dict[str, Any]], *, full: bool) -> None:
    from offbook.cli.answered import typed
    from offbook.model.summary import SummaryView

    for document in documents:
        summary = typed(document, SummaryView)
        click.echo(_head(summary))
        for line in _facts(summary):
            click.secho(INDENT + line, dim=True)
        for line in _text(summary, full=full):
            click.echo(line)
        click.echo()


def _head(summary: SummaryView) -> str:
    """Its id, what of which session it stands for, and from when to when that was said."""
    from offbook.cli.handed import told_span
    from offbook.cli.output import local_minute, printable

    places = "; ".join(
        f"session {span.session_id} {told_span(span.first_seq, span.last_seq)}" for span in summary.spans
    )
    when = f"{local_minute(summary.first_at)} to {local_minute(summary.last_at)}"
    return f"{click.style(summary.id, bold=True)}  {printable(places)}  {click.style(when, dim=True)}"


def _facts(summary: SummaryView) -> Iterator[str]:
    from offbook.cli.output import counted, local_minute, printable

    share = 100 * summary.tokens / max(1, summary.source_tokens)
    yield (
        f"{counted(summary.source_messages, 'message')} · {summary.source_tokens:,} → {summary.tokens:,} tokens "
        f"({share:.0f} %) · {counted(summary.lost, 'particular')} left out"
    )
    cost = f"${summary.usage.dollars:,.4f}" if summary.usage.dollars else "no cost"
    made = printable(f"by {summary.summarizer} on {local_minute(summary.made_at)} · {cost}")
    merges = f" · merges {summary.sources[0]} to {summary.sources[-1]}" if summary.sources else ""
    yield made + printable(merges) + (f" · merged into {summary.parent}" if summary.parent else "")


def _text(summary: SummaryView, *, full: bool) -> Iterator[str]:
    from offbook.cli.handed import told_span
    from offbook.cli.output import counted, printable, wrapped

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


def _tell(documents: list[dict[str, Any]], counts: dict[str, int], *, has_more: bool, is_filtered: bool) -> None:
    from offbook.cli.handed import told_levels
    from offbook.cli.output import counted

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
