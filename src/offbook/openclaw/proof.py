"""Did the last turns go through Offbook? What the host wrote against what is stored: pure findings.

A host whose plugin is blocked, or whose context engine is not ours, goes on without a word. So nothing here trusts the
configuration alone: the transcripts of the host are what is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from offbook.api.doctor.finding import FAULTS_SHOWN, Finding
from offbook.openclaw.changes import PLUGIN
from offbook.openclaw.checks import CONVERSATION, ENGINE_SLOT, setting
from offbook.openclaw.report import INSPECT, RESTART, USUAL, Report
from offbook.openclaw.setup import Commands
from offbook.openclaw.transcripts import Session

AROUND_A_TURN = timedelta(seconds=30)
"""The user's message is written, and the turn prepared, within moments of each other, in either order."""


@dataclass(frozen=True)
class Compared:
    """A session of the host and the ids of it that Offbook lacks."""

    session: Session
    missing: frozenset[str]

    @property
    def stored(self) -> int:
        return len(self.session.entries) - len(self.missing)

    @property
    def lacks_of_last_turn(self) -> int:
        return sum(entry.entry_id in self.missing for entry in self.session.last_turn)


def check_last_turns(compared: Sequence[Compared], report: Report | None, commands: Commands = USUAL) -> list[Finding]:
    """Of each agent: is its last turn stored, all of it?"""
    if not compared:
        mend = "say something to an agent, then run this again"
        return [Finding(check="last turn", level="warn", what="the host has no conversation yet", mend=mend)]
    newest: dict[str, Compared] = {}
    for each in compared:  # newest first
        newest.setdefault(each.session.agent_id, each)
    return [_of_last_turn(each, report, commands) for each in newest.values()]


def _of_last_turn(compared: Compared, report: Report | None, commands: Commands) -> Finding:
    session, lacks = compared.session, compared.lacks_of_last_turn
    turn = len(session.last_turn)
    where = f"of {session.agent_id} in {session.session_key}" + f" at {session.last_at:%Y-%m-%d %H:%M:%SZ}" * bool(
        session.last_at
    )
    if not lacks:
        return Finding(check="last turn", level="ok", what=f"{where}: all {turn} messages are stored")
    what = f"{where}: {lacks} of {turn} messages are not stored"
    if report is not None and report.capture.waiting:
        return Finding(check="last turn", level="warn", what=what, mend=f"they wait in the outbox: {commands.serve}")
    if _is_before(session, report):
        mend = f"it was before the plugin ran: `{commands.import_all}` brings it; "
        mend += "else say something, and run this again"
        return Finding(check="last turn", level="warn", what=what, mend=mend)
    mend = f"{INSPECT}; `{commands.import_all}` brings what is missing"
    return Finding(check="last turn", level="fail", what=what, mend=mend)


def check_history(compared: Sequence[Compared], commands: Commands = USUAL) -> list[Finding]:
    """What the host has and Offbook has not, beside the last turns."""
    lacking = [each for each in compared if len(each.missing) > each.lacks_of_last_turn]
    host = sum(len(each.session.entries) for each in compared)
    stored = sum(each.stored for each in compared)
    plugin_report = f"{stored:,} of {host:,} messages of the last {len(compared)} sessions are stored"
    if lacking:
        return [Finding(check="history", level="warn", what=plugin_report, mend=commands.import_all)]
    return [Finding(check="history", level="ok", what=plugin_report)] if compared else []


def check_damage(compared: Sequence[Compared], faults: Sequence[str]) -> list[Finding]:
    damaged = sum(each.session.damaged for each in compared)
    lines = [*faults[:FAULTS_SHOWN], *([f"{damaged} entries cannot be read"] if damaged else [])]
    if not lines:
        return []
    mend = "openclaw doctor; run as the user that the gateway runs as"
    return [Finding(check="transcripts", level="warn", what="\n".join(lines), mend=mend)]


def check_recalled(report: Report, newest: Session | None) -> Finding:
    """Was the last turn prepared, and did what came to mind go into it?"""
    turns, last = report.turns, report.turns.last
    blocked = f"{setting(CONVERSATION, True)}; {INSPECT} shows what is blocked"
    if (early := _not_yet("recall", newest, report)) is not None:
        return early
    if last is None or not _covers(last.at, newest):
        what = f"the last turn was not prepared ({turns.prepared:,} were since the gateway started)"
        return Finding(check="recall", level="fail", what=what, mend=blocked)
    if last.error:
        mend = "offbook doctor; a higher turnDeadlineMs in plugins.entries.offbook.config gives it more time"
        return Finding(check="recall", level="warn", what=f"the last turn went on without: {last.error}", mend=mend)
    what = f"the last turn was prepared in {last.took_ms:.0f} ms: {last.recall_chars:,} characters recalled, "
    what += f"{last.memory_chars:,} of memory ({turns.injected:,} of {turns.prepared:,} turns got some)"
    return Finding(check="recall", level="ok", what=what)


def check_engine(report: Report, newest: Session | None) -> list[Finding]:
    """Did our engine put the last context together, and take the turn in? Else the host used its own, silently."""
    engine, last = report.engine, report.engine.last
    mend = f"{setting(ENGINE_SLOT, PLUGIN)}; then {RESTART}; {INSPECT} must list the context engine {PLUGIN!r}"
    if (early := _not_yet("engine", newest, report)) is not None:
        return [early]
    if last is None or not _covers(last.at, newest):
        what = (
            f"the host used its own engine for the last turn ({engine.assembled:,} contexts were ours since it started)"
        )
        return [Finding(check="engine", level="fail", what=what, mend=mend)]
    findings: list[Finding] = []
    if not engine.committed:
        what = f"contexts are made ({engine.assembled:,}), but no turn was handed over at its end"
        mend = "wait for the turn to end; else `openclaw logs` tells why the host left the engine"
        findings.append(Finding(check="engine", level="fail", what=what, mend=mend))
    if engine.fallbacks:
        what = f"{engine.fallbacks:,} times the host had to compact by itself"
        findings.append(Finding(check="engine", level="warn", what=what, mend="see problems, and offbook doctor"))
    what = f"made the last context: {last.messages_in} messages in, {last.messages_out} out"
    what += f"; {engine.committed:,} turns taken in, {engine.swaps:,} swaps"
    return findings or [Finding(check="engine", level="ok", what=what)]


def _not_yet(check: str, newest: Session | None, report: Report) -> Finding | None:
    if newest is not None and not _is_before(newest, report):
        return None
    what = "no turn since the gateway loaded the plugin"
    return Finding(check=check, level="warn", what=what, mend="say something to an agent, then run this again")


def _is_before(session: Session, report: Report | None) -> bool:
    """Whether the last turn was over before the plugin ran. Without a report nobody can say that it did."""
    if report is None or report.started_at is None or session.last_at is None:
        return False
    return session.last_at < report.started_at


def _covers(at: datetime | None, session: Session | None) -> bool:
    begun = session.last_turn[0].at if session is not None else None
    return at is not None and (begun is None or at >= begun - AROUND_A_TURN)


def compared_sessions(sessions: Sequence[Session], missing: Mapping[str, Sequence[str]]) -> list[Compared]:
    """`missing`: by the host's session id."""
    return [Compared(each, frozenset(missing.get(each.session_id, ()))) for each in sessions]
