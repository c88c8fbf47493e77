"""`offbook expand`: the messages behind a summary, word for word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook import Client

MESSAGES_AT_A_TIME = 200
SUMMARY_ID = re.compile(r"L[1-9]-[0-9]{4,15}")
"""The contract's."""

EPILOG = """\b
Examples:
  offbook expand L1-0003
  offbook expand L2-0001 --limit 20
  offbook expand --session chat --from 12 --to 30
  offbook expand --session chat --from 12
  offbook expand L1-0003 --json > source.jsonl

\b
`offbook inspect` lists the summaries. With --json each message is one line.
"""


def summary_id(value: str) -> str:
    """As it is shown; in small letters it is meant just the same."""
    if not SUMMARY_ID.fullmatch(value.upper()):
        raise click.BadParameter(f"{value!r} is no id such as L1-0003: `offbook inspect` lists the summaries")
    return value.upper()


@click.command("expand", epilog=EPILOG)
@click.argument("summary", type=summary_id, required=False, metavar="[SUMMARY_ID]")
@click.option("--session", type=UTF8, metavar="S", help="Instead of a summary: a stretch of this session.")
@click.option("--from", "first_seq", type=click.IntRange(min=1), metavar="SEQ", help="Its first message.")
@click.option("--to", "last_seq", type=click.IntRange(min=1), metavar="SEQ", help="Its last.  [default: the first]")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Most messages shown.  [default: all]")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    summary: str | None,
    session: str | None,
    first_seq: int | None,
    last_seq: int | None,
    limit: int | None,
) -> None:
    """Show the messages behind a summary, or a stretch of a session, exactly as they were said."""
    what = _meant(summary, session, first_seq, last_seq)
    with invocation.client() as client:
        expanded = Expanded(client, what, is_json=invocation.is_json)
        expanded.show(limit)
    if not invocation.is_json:
        _tell(expanded, what)


def _meant(summary: str | None, session: str | None, first_seq: int | None, last_seq: int | None) -> dict[str, Any]:
    """The fields of the request that say what is to be expanded."""
    if summary is not None:
        if session is not None or first_seq is not None or last_seq is not None:
            raise click.UsageError("a SUMMARY_ID says exactly what is meant: leave out --session, --from and --to")
        return {"summaryId": summary}
    if session is None or first_seq is None:
        raise click.UsageError(
            "say what is meant: a SUMMARY_ID (`offbook inspect` lists them), or --session S --from SEQ --to SEQ"
        )
    last_seq = first_seq if last_seq is None else last_seq
    if last_seq < first_seq:
        raise click.UsageError(f"--to {last_seq} is before --from {first_seq}")
    return {"span": {"sessionId": session, "firstSeq": first_seq, "lastSeq": last_seq}}


class Expanded:
    """Shows what was asked for, page by page, until there is no more."""

    def __init__(self, client: Client, what: dict[str, Any], *, is_json: bool) -> None:
        from offbook.cli.log import Transcript

        self.shown = 0
        self.has_more = False
        self._client = client
        self._what = what
        self._transcript = Transcript(is_json=is_json)
        self._is_json = is_json
        self._session = ""

    def show(self, limit: int | None) -> None:
        from offbook.cli.answered import asked, typed
        from offbook.model.summary import Expansion

        after: str | None = None
        while True:
            most = MESSAGES_AT_A_TIME if limit is None else min(limit - self.shown, MESSAGES_AT_A_TIME)
            document = asked(self._client, "expand", **self._what, after=after, limit=most)
            page = typed(document, Expansion)
            if page.next is not None and page.next == after:
                raise click.ClickException(f"the provider answers with the messages after {after} again")
            for message, line in zip(document["messages"], page.messages, strict=True):
                self._name(line.session_id, is_one=len(page.spans) == 1)
                self._transcript.show(message)
            self.shown += len(page.messages)
            after = page.next
            self.has_more = after is not None
            if after is None or (limit is not None and self.shown >= limit):
                return

    def _name(self, session_id: str, *, is_one: bool) -> None:
        """Says where a session begins, in what is of several."""
        if session_id == self._session or is_one or self._is_json:
            return
        from offbook.cli.output import printable

        click.secho(f"── session {printable(session_id)} ──", bold=True)
        self._session = session_id


def _tell(expanded: Expanded, what: dict[str, Any]) -> None:
    from offbook.cli.output import counted

    if expanded.has_more:
        click.echo(f"{counted(expanded.shown, 'message')} shown, and there are more: raise --limit", err=True)
    elif not expanded.shown:
        missing = "`offbook log` lists the sessions and how long each is" if "span" in what else "its log is empty"
        click.echo(f"nothing to show: {missing}", err=True)
