"""`offbook log`: the messages of a session as they were said."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypedDict

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook.client.clients import Client
    from offbook.model.types import LogLine

NEWEST_SHOWN = 20
MESSAGES_AT_A_TIME = 200
WAIT_MILLISECONDS = 55_000
"""Just under the longest a provider waits: every look leaves an audit event, so few and long ones."""
RETRY_SECONDS = 1.0
TEXT_COLUMN = 28
"""Where the text of most messages begins: after time, number and role."""

EPILOG = """\b
Examples:
  offbook log                      the sessions
  offbook log chat                 the newest 20 messages
  offbook log chat -f              and what comes, as it comes
  offbook log chat --after 0       everything
  offbook log chat --after 0 --json > chat.jsonl

With --json each message is one line.
"""


@click.command("log", epilog=EPILOG)
@click.argument("session", type=UTF8, required=False)
@click.option("-f", "--follow", is_flag=True, help="Wait for more and show it as it arrives; Ctrl-C ends it.")
@click.option(
    "-n",
    "number",
    type=click.IntRange(min=0),
    metavar="N",
    help="How many.  [default: the newest 20; all with --after]",
)
@click.option("--after", "after_seq", type=click.IntRange(min=0), metavar="SEQ", help="Only what came after that one.")
@common_options
@pass_invocation
def command(
    invocation: Invocation, session: str | None, follow: bool, number: int | None, after_seq: int | None
) -> None:
    """Show the messages of a session, or without SESSION the sessions."""
    with invocation.client() as client:
        if session is None:
            if follow or number is not None or after_seq is not None:
                raise click.UsageError("name the SESSION to show; `offbook log` alone lists them")
            _list_sessions(invocation, client)
            return
        reader = Reader(client, session, is_json=invocation.is_json)
        try:
            reader.start(number, after_seq)
            if follow:
                reader.follow()
        except KeyboardInterrupt:
            return
        if not reader.shown and not invocation.is_json:
            click.echo("nothing to show", err=True)


def _list_sessions(invocation: Invocation, client: Client) -> None:
    from offbook.cli.answered import typed
    from offbook.cli.output import print_json, printable
    from offbook.cli.status import show_sessions
    from offbook.model.status import Status

    document = client.status()
    status = typed(document, Status)
    if invocation.is_json:
        print_json(document["sessions"])
        return
    if status.sessions:
        show_sessions(status.sessions)
    else:
        click.echo(printable(f"agent {status.agent_id} has no sessions yet"))
    others = [printable(agent) for agent in status.agents if agent != status.agent_id]
    if others:
        click.echo(f"other agents (--agent NAME): {', '.join(others)}", err=True)


class Page(TypedDict):
    """Its messages as they came, so that --json leaves out nothing a newer provider says."""

    messages: list[dict[str, Any]]
    lastSeq: int


class Reader:
    """Shows one session, page by page, from where it is."""

    def __init__(self, client: Client, session: str, *, is_json: bool) -> None:
        self.shown = 0
        self._client = client
        self._session = session
        self._transcript = Transcript(is_json=is_json)
        self._after_seq = 0

    def start(self, number: int | None, after_seq: int | None) -> None:
        """What is there already: the newest `number`, or all, or `number` of them, after `after_seq`."""
        if after_seq is None:
            wanted = NEWEST_SHOWN if number is None else number
            self._after_seq = max(0, self._newest_seq() - wanted)
            left: int | None = wanted
        else:
            self._after_seq, left = after_seq, number
        while left is None or left > 0:
            limit = MESSAGES_AT_A_TIME if left is None else min(left, MESSAGES_AT_A_TIME)
            found = self._page(limit=limit)
            if not found:  # a short page is not the last one: a provider ends a page of large messages early
                return
            left = None if left is None else left - found

    def follow(self) -> None:
        """What comes, until interrupted. A provider that is restarted is waited for."""
        from offbook.model.errors import ProviderUnavailable

        is_lost = False
        while True:
            try:
                self._page(limit=MESSAGES_AT_A_TIME, wait_ms=0 if is_lost else WAIT_MILLISECONDS)
                if is_lost:
                    click.echo("offbook: the provider is back", err=True)
                is_lost = False
            except ProviderUnavailable as error:
                if not is_lost:
                    click.echo(f"offbook: {error.detail}; waiting for it", err=True)
                is_lost = True
                time.sleep(RETRY_SECONDS)

    def _newest_seq(self) -> int:
        return self._asked(limit=1, newest=True)["lastSeq"]

    def _page(self, *, limit: int, wait_ms: int = 0) -> int:
        page = self._asked(self._after_seq, limit, wait_ms)
        if page["messages"] and page["lastSeq"] <= self._after_seq:
            raise click.ClickException(f"the provider answers with the messages before #{self._after_seq} again")
        for line in page["messages"]:
            self._transcript.show(line)
        self._after_seq = max(self._after_seq, page["lastSeq"])
        self.shown += len(page["messages"])
        return len(page["messages"])

    def _asked(self, *where: int, **how: Any) -> Page:
        from offbook.cli.answered import typed

        return typed(self._client.log(self._session, *where, **how), Page)


class Transcript:
    """Prints messages as they come: a line each, under the day they were said."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._day = ""

    def show(self, document: dict[str, Any]) -> None:
        from offbook.cli.answered import typed
        from offbook.cli.output import print_json_line
        from offbook.model.types import LogLine

        if self._is_json:
            print_json_line(document)
            return
        line = typed(document, LogLine)
        day = f"{(line.message.ts or line.received_at).astimezone():%A, %d %B %Y}"
        if day != self._day:
            click.secho(f"── {day} ──", dim=True)
            self._day = day
        click.echo(pretty(line))


def pretty(line: LogLine) -> str:
    """Time, number, role, marks and what was said; its further lines stand under the first."""
    from offbook.cli.output import ROLE_COLOURS, printable
    from offbook.model.content import render

    message = line.message
    said_at = (message.ts or line.received_at).astimezone()
    place = f"{said_at:%H:%M:%S}  #{line.seq:<5} "
    speaker = f"{printable(f'{message.role} {message.name}' if message.name else message.role):<10} "
    marks = [f"[noise: {line.noise}]"] if line.noise else []
    marks += [f"[redacted: {', '.join(sorted(line.redactions))}]"] if line.redactions else []
    head = click.style(place, dim=True) + click.style(speaker, fg=ROLE_COLOURS.get(message.role), bold=True)
    text = printable(render(message)).replace("\n", "\n" + " " * TEXT_COLUMN)
    said = click.style(text, dim=True) if line.noise else text
    return head + "".join(click.style(printable(f"{mark} "), dim=True) for mark in marks) + said
