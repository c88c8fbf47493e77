"""`offbook doctor`: what works, what does not, and how to mend it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, offline_options, pass_invocation

if TYPE_CHECKING:
    from offbook.api.doctor import Finding

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}

EPILOG = """\b
Examples:
  offbook doctor
  offbook doctor --quick            without reading the whole history
  offbook doctor --fix              tighten modes, remove a stale socket
  offbook doctor --json | jq '.findings[] | select(.level != "ok")'

Exit status 1 where something fails; warnings alone leave it 0.
"""


@click.command("doctor", epilog=EPILOG)
@click.option("--quick", is_flag=True, help="Leave out what takes as long as there is history.")
@click.option("--fix", "wants_fix", is_flag=True, help="Mend what can be mended safely, then check.")
@offline_options
@pass_invocation
def command(invocation: Invocation, quick: bool, wants_fix: bool) -> None:
    """Check that everything works, and say how to mend what does not."""
    from offbook.api.doctor import examine, fix
    from offbook.cli.output import print_json, progress

    home = invocation.home
    fixed = fix(home) if wants_fix else []
    with progress("examining", None) as advance:
        findings = asyncio.run(examine(home, invocation.environ, is_quick=quick, progress=advance))
    if invocation.is_json:
        print_json({"fixed": fixed, "findings": findings})
    else:
        show(fixed, findings)
    if any(finding.level == "fail" for finding in findings):
        raise click.exceptions.Exit(1)


def show(fixed: list[str], findings: list[Finding]) -> None:
    from offbook.cli.output import counted, printable

    for line in fixed:
        click.echo(f"fixed: {line}")
    for finding in findings:
        what = printable(finding.what).replace("\n", "\n" + " " * 19)
        click.echo(
            f"{click.style(f'{finding.level:<5}', fg=COLOURS[finding.level], bold=True)} {finding.check:<12} {what}"
        )
        if finding.mend:
            click.echo(f"{'':<19}→ {printable(finding.mend)}")
    levels = Counter(finding.level for finding in findings)
    click.echo(f"\n{levels['ok']} ok, {counted(levels['warn'], 'warning')}, {counted(levels['fail'], 'failure')}")
