"""`offbook redact`: kinds and places, never the secret; or the text without it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from offbook.cli.root import root

TEXT = "one line\nthe password: hunter22 is old\ncard 4111 1111 1111 1111\n"


def test_a_dry_run_shows_kinds_and_places_and_not_the_secret(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(TEXT)
    shown = CliRunner().invoke(root, ["redact", "--dry-run", str(tmp_path / "notes.txt")])
    assert shown.exit_code == 0
    assert "hunter22" not in shown.output
    assert "2:15" in shown.output
    document = json.loads(CliRunner().invoke(root, ["redact", "--dry-run", "--json"], input=TEXT).output)
    assert document == {"secrets": [{"kind": "password", "line": 2, "column": 15, "chars": 8}]}


def test_the_text_is_printed_without_its_secrets() -> None:
    redacted = TEXT.replace("hunter22", "[redacted:password]")
    assert CliRunner().invoke(root, ["redact"], input=TEXT).output == redacted
    without = CliRunner().invoke(root, ["redact", "--personal-numbers"], input=TEXT).output
    assert without == redacted.replace("4111 1111 1111 1111", "[redacted:payment-card]")
    assert json.loads(CliRunner().invoke(root, ["redact", "--json"], input=TEXT).output) == {
        "text": redacted,
        "redactions": {"password": 1},
    }
