"""`offbook redact`: what redaction finds in a text, without storing anything."""

from __future__ import annotations

from collections import Counter
from typing import IO, NamedTuple

import click

from offbook.cli.options import Invocation, common_options, pass_invocation
from offbook.cli.output import counted, print_json, table

EPILOG = """\b
Examples:
  offbook redact --dry-run notes.txt        kinds and places, not the secrets
  offbook redact < notes.txt > clean.txt
  git diff | offbook redact --dry-run --json

\b
It needs no provider. What it finds is what would be taken out of a message
with this text before it is stored.
"""


class Finding(NamedTuple):
    kind: str
    line: int
    column: int
    """In characters, from 1."""
    chars: int


@click.command("redact", epilog=EPILOG)
@click.argument("source", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--dry-run", is_flag=True, help="Show kinds and places only.")
@click.option("--personal-numbers", is_flag=True, help="Payment cards, IBANs and US social security numbers as well.")
@common_options
@pass_invocation
def redact_command(invocation: Invocation, source: IO[str], dry_run: bool, personal_numbers: bool) -> None:
    """Take secrets out of a text (a file, or stdin), as is done with every message before it is stored."""
    from offbook.ingest.redaction import redact_text

    text = source.read()
    if dry_run:
        _show(invocation, _findings(text, personal_numbers))
        return
    redacted, kinds = redact_text(text, with_personal_numbers=personal_numbers)
    if invocation.is_json:
        print_json({"text": redacted.encode("utf-8", "replace").decode(), "redactions": kinds})
    else:
        click.echo(redacted.encode("utf-8", "surrogateescape"), nl=False)


def _findings(text: str, personal_numbers: bool) -> list[Finding]:
    from offbook.ingest.secret_scan import secrets_in

    findings = []
    line, start_of_line, read = 1, 0, 0
    for start, end, kind in secrets_in(text, with_personal_numbers=personal_numbers):
        if breaks := text.count("\n", read, start):
            line += breaks
            start_of_line = text.rfind("\n", read, start) + 1
        read = start
        findings.append(Finding(kind, line, start - start_of_line + 1, end - start))
    return findings


def _show(invocation: Invocation, findings: list[Finding]) -> None:
    if invocation.is_json:
        print_json({"secrets": [finding._asdict() for finding in findings]})
        return
    if not findings:
        click.echo("no secrets found")
        return
    rows = [[finding.kind, f"{finding.line}:{finding.column}", f"{finding.chars}"] for finding in findings]
    table(["kind", "line:column", "chars"], rows, right=["chars"])
    kinds = Counter(finding.kind for finding in findings)
    click.echo(f"{counted(len(findings), 'secret')} of {counted(len(kinds), 'kind')}")
