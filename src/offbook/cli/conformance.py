"""`offbook conformance`: does a provider hold what the contract promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, home_option, json_option, pass_invocation

if TYPE_CHECKING:
    from offbook.conformance import Report, Result

MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "not offered": ("–", "yellow")}

EPILOG = """\b
Examples:
  offbook conformance                                the provider of this data folder
  offbook conformance http://127.0.0.1:8770          its port, with the token of this data folder
  offbook conformance https://memory.example --token "$TOKEN"
  offbook conformance unix:///run/memory.sock --only 7
  offbook conformance --json | jq '.results[] | select(.outcome == "failed")'

\b
Exit status 1 where a promise is not kept, 3 where no provider answers. A verb
that a provider may leave out and does is no failure. Promise 0 is the shape of
the answers.
"""


@click.command("conformance", epilog=EPILOG)
@click.argument("url", type=UTF8, required=False)
@click.option("--token", type=UTF8, help="Token to show (else OFFBOOK_TOKEN, else that of the data folder).")
@click.option("--only", type=click.IntRange(0, 7), metavar="PROMISE", help="Only the checks of this promise, 0 to 7.")
@home_option
@json_option
@pass_invocation
def command(invocation: Invocation, url: str | None, token: str | None, only: int | None) -> None:
    """Test any provider against the contract.

    URL is http://host:port, https://host:port or unix:///path/to/socket; left out, it is the local provider.
    The suite asks under agents of its own (conformance-…), so that nothing a provider in use holds is
    read or changed; what it writes under those stays there.
    """
    import asyncio

    from offbook.conformance import CHECKS, run

    if url is not None:
        invocation.url_given = url
    endpoint, shown_token = invocation.endpoint, token or invocation.token
    checks = [check for check in CHECKS if only is None or check.promise == only]
    told = _Told(first_promise=only or 0)
    report = asyncio.run(
        run(endpoint, shown_token, checks=checks, on_result=(lambda result: None) if invocation.is_json else told.tell)
    )
    if invocation.is_json:
        _print_json(report)
    else:
        told.head(up_to=7 if only is None else only)
        _print_end(report)
    if not report.is_conforming:
        raise SystemExit(1)


class _Told:
    """Tells results as they come, under a heading for each promise, those without checks too."""

    def __init__(self, first_promise: int) -> None:
        self._next_promise = first_promise

    def tell(self, result: Result) -> None:
        from offbook.cli.output import printable

        self.head(result.promise)
        mark, colour = MARKS[result.outcome]
        click.echo(f"   {click.style(mark, fg=colour)} {result.holds}")
        if result.outcome == "failed":
            click.secho(f"     {result.check}, {result.seconds:.1f} s", dim=True)
        for line in result.detail.splitlines():
            click.echo(f"     {printable(line)}")

    def head(self, up_to: int) -> None:
        from offbook.conformance import PROMISES

        for promise in range(self._next_promise, up_to + 1):
            click.secho(f"\n{promise}  {PROMISES[promise]}", bold=True)
        self._next_promise = max(self._next_promise, up_to + 1)


def _print_json(report: Report) -> None:
    from offbook.cli.output import print_json

    print_json(report)


def _print_end(report: Report) -> None:
    from offbook.cli.output import counted, printable

    passed, failed, missing = (len(report.with_outcome(outcome)) for outcome in ("passed", "failed", "not offered"))
    counts = f"{counted(passed, 'check')} passed, {failed} failed, {missing} not offered"
    click.echo(printable(f"\n{report.endpoint}: {counts}, in {report.seconds:.1f} s"))
