"""`offbook log`, `expand`, `end`: a session's messages as they were said."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypedDict

import click

from offbook.cli.answers import asked, typed
from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation
from offbook.cli.output import ROLE_COLOURS, counted, print_json, print_json_line, printable
from offbook.cli.verb_command import verb_command
from offbook.model.plain_names import is_digits

if TYPE_CHECKING:
    from offbook.client.blocking import Client
    from offbook.model.types import LogLine


# ── offbook log ───────────────────────────────────────────────────────────────────────────────────

NEWEST_SHOWN = 20
MESSAGES_AT_A_TIME = 200
WAIT_MILLISECONDS = 55_000
"""Just under the longest a provider waits: every look leaves an audit event, so few and long ones."""
RETRY_SECONDS = 1.0
TEXT_COLUMN = 28
"""Where the text of most messages begins: after time, number and role."""

LOG_EPILOG = """\b
Examples:
  offbook log                      the sessions
  offbook log chat                 the newest 20 messages
  offbook log chat -f              and what comes, as it comes
  offbook log chat --after 0       everything
  offbook log chat --after 0 --json > chat.jsonl

With --json each message is one line.
"""


@click.command("log", epilog=LOG_EPILOG)
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
def log_command(
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
        return typed(self._client.log(self._session, *where, **how), Page)


class Transcript:
    """Prints messages as they come: a line each, under the day they were said."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._day = ""

    def show(self, document: dict[str, Any]) -> None:
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
    from offbook.model.content import render

    message = line.message
    said_at = (message.ts or line.received_at).astimezone()
    place = f"{said_at:%H:%M:%S}  #{line.seq:<5} "
    speaker = f"{printable(f'{message.role} {message.name}' if message.name else message.role):<10} "
    marks = [f"[noise: {line.noise}]"] if line.noise else []
    marks += [f"[redacted: {', '.join(sorted(line.redactions))}]"] if line.redactions else []
    marks += [f"[missing: {counted(len(line.missing_parts), 'large part')}]"] if line.missing_parts else []
    head = click.style(place, dim=True) + click.style(speaker, fg=ROLE_COLOURS.get(message.role), bold=True)
    text = printable(render(message)).replace("\n", "\n" + " " * TEXT_COLUMN)
    said = click.style(text, dim=True) if line.noise else text
    return head + "".join(click.style(printable(f"{mark} "), dim=True) for mark in marks) + said


# ── offbook expand ────────────────────────────────────────────────────────────────────────────────

EXPANDED_AT_A_TIME = 200
SOURCES = (*(f"L{level}" for level in range(1, 10)), "LESSON")

EXPAND_EPILOG = """\b
Examples:
  offbook expand L1-0003
  offbook expand L2-0001 --limit 20
  offbook expand --session chat --from 12 --to 30
  offbook expand --session chat --from 12
  offbook expand lesson-0007
  offbook expand L1-0003 --json > source.jsonl

\b
`offbook inspect` lists the summaries, `offbook lessons` the lessons. With
--json each message is one line.
"""


def source_id(value: str) -> str:
    """As it is shown; in other letters it is meant just the same."""
    source, _, number = value.upper().partition("-")
    if source not in SOURCES or not is_digits(number, least=4, most=15):
        raise click.BadParameter(
            f"{value!r} is no id such as L1-0003 or lesson-0007: `offbook inspect` lists the summaries, "
            "`offbook lessons` the lessons"
        )
    return value.lower() if source == "LESSON" else value.upper()


@click.command("expand", epilog=EXPAND_EPILOG)
@click.argument("summary", type=source_id, required=False, metavar="[ID]")
@click.option("--session", type=UTF8, metavar="S", help="Instead of an ID: a stretch of this session.")
@click.option("--from", "first_seq", type=click.IntRange(min=1), metavar="SEQ", help="Its first message.")
@click.option("--to", "last_seq", type=click.IntRange(min=1), metavar="SEQ", help="Its last.  [default: the first]")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Most messages shown.  [default: all]")
@common_options
@pass_invocation
def expand_command(
    invocation: Invocation,
    summary: str | None,
    session: str | None,
    first_seq: int | None,
    last_seq: int | None,
    limit: int | None,
) -> None:
    """Show the messages behind a summary or a lesson, or a stretch of a session, exactly as they were said."""
    what = _meant_span(summary, session, first_seq, last_seq)
    with invocation.client() as client:
        expanded = Expanded(client, what, is_json=invocation.is_json)
        expanded.show(limit)
    if not invocation.is_json:
        _tell_expanded(expanded, what)


def _meant_span(
    summary: str | None, session: str | None, first_seq: int | None, last_seq: int | None
) -> dict[str, Any]:
    """The fields of the request that say what is to be expanded."""
    if summary is not None:
        if session is not None or first_seq is not None or last_seq is not None:
            raise click.UsageError("an ID says exactly what is meant: leave out --session, --from and --to")
        return {"summaryId": summary}
    if session is None or first_seq is None:
        raise click.UsageError(
            "say what is meant: the ID of a summary (`offbook inspect` lists them) or a lesson (`offbook lessons`), or "
            "--session S --from SEQ --to SEQ"
        )
    last_seq = first_seq if last_seq is None else last_seq
    if last_seq < first_seq:
        raise click.UsageError(f"--to {last_seq} is before --from {first_seq}")
    return {"span": {"sessionId": session, "firstSeq": first_seq, "lastSeq": last_seq}}


class Expanded:
    """Shows what was asked for, page by page, until there is no more."""

    def __init__(self, client: Client, what: dict[str, Any], *, is_json: bool) -> None:
        self.shown = 0
        self.has_more = False
        self._client = client
        self._what = what
        self._transcript = Transcript(is_json=is_json)
        self._is_json = is_json
        self._session = ""

    def show(self, limit: int | None) -> None:
        from offbook.model.summary import Expansion

        after: str | None = None
        while True:
            most = EXPANDED_AT_A_TIME if limit is None else min(limit - self.shown, EXPANDED_AT_A_TIME)
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
        click.secho(f"── session {printable(session_id)} ──", bold=True)
        self._session = session_id


def _tell_expanded(expanded: Expanded, what: dict[str, Any]) -> None:
    if expanded.has_more:
        click.echo(f"{counted(expanded.shown, 'message')} shown, and there are more: raise --limit", err=True)
    elif not expanded.shown:
        missing = "`offbook log` lists the sessions and how long each is" if "span" in what else "its log is empty"
        click.echo(f"nothing to show: {missing}", err=True)


# ── offbook end ───────────────────────────────────────────────────────────────────────────────────

END_EPILOG = """\b
Examples:
  offbook end chat
  offbook end chat --reason reset
"""


@verb_command("end", verb="hooks/session-end", epilog=END_EPILOG, positional=["session_id"])
def end_command(_answer: None, *, session_id: str, reason: str | None, **_: Any) -> None:
    """Say that a session is over. The next message to it opens it again."""
    click.echo(printable(f"session {session_id} is over" + (f" ({reason})" if reason else "")))
