"""`offbook openclaw`: put Offbook into OpenClaw, and prove that it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from offbook.cli.openclaw_setup import config_option, places, setup, state_option
from offbook.cli.options import Invocation, offline_options, pass_invocation

if TYPE_CHECKING:
    from offbook.openclaw.examination import Examination
    from offbook.openclaw.proof import Compared

EPILOG = """\b
Examples:
  offbook openclaw setup --level capture
  offbook openclaw setup --level hot-swap --start-daemon
  offbook openclaw setup --level off
  offbook openclaw doctor
"""

DOCTOR_EPILOG = """\b
Examples:
  offbook openclaw doctor
  offbook openclaw doctor --state ~/.openclaw-work
  offbook openclaw doctor --json | jq '.findings[] | select(.level != "ok")'

\b
Exit status:
  0  all is well; there may be warnings
  1  something is wrong, and it says what to do
  3  no provider answers
"""


@click.group("openclaw", epilog=EPILOG)
def command() -> None:
    """Put Offbook into OpenClaw, and prove that it is there."""


command.add_command(setup)


@command.command("doctor", epilog=DOCTOR_EPILOG)
@config_option
@state_option
@offline_options
@pass_invocation
def doctor(invocation: Invocation, config_given: str | None, state_given: str | None) -> None:
    """Prove that the last turn went through Offbook, or say what is missing."""
    from offbook.cli.doctor import show
    from offbook.cli.output import print_json
    from offbook.cli.root import EXIT_FAILED, EXIT_UNREACHABLE
    from offbook.model.types import now
    from offbook.openclaw.examination import examine

    seen = examine(*places(invocation, config_given, state_given), invocation.environ, now())
    if invocation.is_json:
        print_json({"findings": seen.findings, "sessions": [_session(each) for each in seen.sessions]})
    else:
        _show_sessions(seen)
        show([], seen.findings)
    if seen.is_provider_away:
        raise click.exceptions.Exit(EXIT_UNREACHABLE)
    if any(finding.level == "fail" for finding in seen.findings):
        raise click.exceptions.Exit(EXIT_FAILED)


def _session(compared: Compared) -> dict[str, Any]:
    session = compared.session
    return {
        "agentId": session.agent_id,
        "sessionId": session.session_key,
        "hostSessionId": session.session_id,
        "host": len(session.entries),
        "stored": compared.stored,
        "missing": [entry.entry_id for entry in session.entries if entry.entry_id in compared.missing],
        "lastAt": session.last_at,
    }


def _show_sessions(seen: Examination) -> None:
    from offbook.cli.output import ago, table

    if not seen.sessions:
        return
    rows = [
        [
            each.session.agent_id,
            each.session.session_key,
            f"{len(each.session.entries):,}",
            f"{each.stored:,}",
            f"{len(each.missing):,}",
            ago(each.session.last_at) if each.session.last_at else "",
        ]
        for each in seen.sessions
    ]
    table(["agent", "session", "host", "stored", "missing", "last"], rows, right=["host", "stored", "missing"])
    click.echo()
