"""`offbook conformance`: does a provider hold what the contract promises."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, home_option, json_option, pass_invocation, provider_url
from offbook.cli.output import counted, print_json, printable

if TYPE_CHECKING:
    from offbook.contrib.conformance import Report, Result
    from offbook.contrib.conformance.check import Check

MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "not offered": ("–", "yellow")}
MOST_NAMED = 8

EPILOG = """\b
Examples:
  offbook conformance http://127.0.0.1:9000          with the token of this data folder
  offbook conformance https://memory.example --token "$TOKEN"
  offbook conformance unix:///run/memory.sock --only 1 --only 7
  offbook conformance http://127.0.0.1:9000 --check receipts-count
  offbook conformance --home /tmp/throwaway --json | jq '.results[] | select(.outcome == "failed")'
  offbook conformance --yes                          the provider in use: see above

\b
Exit status:
  0  every promise that could be checked is kept
  1  one is not, or the provider refuses the token, or takes it for some agents only
  2  the command line is wrong, or names no provider without --yes
  3  no provider answers
A verb that a provider may leave out and does is no failure. Promise 0 is the
shape of the answers.
"""


@click.command("conformance", epilog=EPILOG)
@click.argument("url", type=provider_url, required=False)
@click.option("--token", type=UTF8, help="Token to show (else OFFBOOK_TOKEN, else that of the data folder).")
@click.option(
    "--only",
    type=click.IntRange(0, 7),
    multiple=True,
    metavar="PROMISE",
    help="Only the checks of this promise, 0 to 7; repeatable.",
)
@click.option("--check", "ids", type=UTF8, multiple=True, metavar="ID", help="Only this check; repeatable.")
@click.option("--yes", is_flag=True, help="Do not ask where no provider is named.")
@home_option
@json_option
@pass_invocation
def conformance_command(
    invocation: Invocation, url: str | None, token: str | None, only: tuple[int, ...], ids: tuple[str, ...], yes: bool
) -> None:
    """Test any provider against the contract.

    Use a provider that is there to be tested: the suite asks under some 70 agents of its own (conformance-…) and
    reads and changes nothing else, but what it writes stays there, and `offbook status` lists them ever after.

    URL is http://host:port, https://host:port or unix:///path/to/socket. Where neither it nor --home is given, the
    provider in use is meant, and you are asked first.
    """
    import asyncio

    from offbook.contrib.conformance import PROMISES, run
    from offbook.model.errors import ProviderRefused, Unauthorized

    if url is not None:
        invocation.url_given = url
    if token is not None and not token.strip():
        raise click.BadParameter("it is empty; left out, it is that of the data folder", param_hint="'--token'")
    endpoint, shown_token = invocation.endpoint, token or invocation.token
    checks = _chosen(only, ids)
    if url is None and invocation.home_given is None and not yes:
        _agree(str(endpoint), may_ask=not invocation.is_json)
    # Whoever asks for all hears of every promise, those without checks too.
    printer = _ResultPrinter(sorted({*only, *(check.promise for check in checks)} if only or ids else PROMISES))
    try:
        report = asyncio.run(
            run(
                endpoint,
                shown_token,
                checks=checks,
                on_result=(lambda result: None) if invocation.is_json else printer.tell,
            )
        )
    except ProviderRefused as refused:
        why = refused.document.get("detail") or refused.detail
        asked = "this token" if shown_token else "to answer without a token"
        raise Unauthorized(f"{endpoint} refuses {asked} ({why}): name the right one with --token") from None
    if invocation.is_json:
        _print_json(report)
    else:
        printer.head(up_to=max(PROMISES))
        for line in format_verdict(report):
            click.echo(line)
    if not report.is_conforming:
        raise SystemExit(1)


def _agree(endpoint: str, *, may_ask: bool) -> None:
    printer = f"agents named conformance-… would be written to {endpoint}, the provider in use, and stay there"
    if not (may_ask and sys.stdin.isatty()):
        raise click.UsageError(
            f"{printer}: name a provider that is there to be tested (URL or --home), or agree with --yes"
        )
    click.confirm(f"{printer[0].upper()}{printer[1:]}. Go on?", abort=True, err=True)


def _chosen(only: Sequence[int], ids: Sequence[str]) -> list[Check]:
    """Those of the promises, and those named; all where neither is said."""
    from offbook.contrib.conformance import CHECKS

    known = [check.id for check in CHECKS]
    for name in ids:
        if name not in known:
            near = "".join(f" Did you mean {each!r}?" for each in get_close_matches(name, known, 1))
            raise click.BadParameter(f"there is no check {name!r}.{near}", param_hint="'--check'")
    return [check for check in CHECKS if not (only or ids) or check.promise in only or check.id in ids]


class _ResultPrinter:
    """Tells results as they come, under a heading for each promise."""

    def __init__(self, promises: Sequence[int]) -> None:
        self._to_head = list(promises)

    def tell(self, result: Result) -> None:
        self.head(result.promise)
        mark, colour = MARKS[result.outcome]
        click.echo(f"   {click.style(mark, fg=colour)} {result.holds}")
        if result.outcome == "failed":
            click.secho(f"     {result.check}, {result.seconds:.1f} s", dim=True)
        for line in result.detail.splitlines():
            click.echo(f"     {printable(line)}")

    def head(self, up_to: int) -> None:
        from offbook.contrib.conformance import PROMISES

        while self._to_head and self._to_head[0] <= up_to:
            promise = self._to_head.pop(0)
            click.secho(f"\n{promise}  {PROMISES[promise]}", bold=True)


def _print_json(report: Report) -> None:
    import msgspec

    print_json({"isConforming": report.is_conforming, **msgspec.to_builtins(report)})


def format_verdict(report: Report) -> list[str]:
    """The verdict, and what of it has scrolled away: which promises are not kept, by which checks, and what was not
    checked."""
    passed, failed, missing = (report.with_outcome(outcome) for outcome in ("passed", "failed", "not offered"))
    counts = f"{counted(len(passed), 'check')} passed, {len(failed)} failed, {len(missing)} not offered"
    lines = ["", f"{report.endpoint}: {counts}, in {report.seconds:.1f} s"]
    for promise, number in Counter(result.promise for result in failed).items():
        names = [result.check for result in failed if result.promise == promise]
        more = [f"and {number - MOST_NAMED} more"] if number > MOST_NAMED else []
        lines.append(
            f"Promise {promise} is not kept, in {counted(number, 'check')}: {', '.join([*names[:MOST_NAMED], *more])}"
        )
    for reason, number in Counter(result.detail for result in missing).items():
        lines.append(f"Not checked: {reason} ({counted(number, 'check')})")
    if len(failed) > 1 and not passed:
        lines.append(
            f"Nothing passed: is {report.endpoint} a memory provider? It is asked at {report.endpoint}/v1/<verb>."
        )
    return [printable(line) for line in lines]
