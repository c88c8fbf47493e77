"""Everything the doctor of this host looks at, in the order a person would ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from offbook.api.doctor.finding import FAULTS_SHOWN, Finding
from offbook.client.blocking import Client
from offbook.client.history.databases import FAULTS
from offbook.client.history.files import is_incognito
from offbook.model.errors import (
    NotFound,
    OffbookError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    SettingsError,
)
from offbook.model.settings import load
from offbook.openclaw import checks
from offbook.openclaw import report as plugin_report
from offbook.openclaw.changes import PLUGIN
from offbook.openclaw.checks import CONVERSATION, ENGINE_SLOT, installed_copy, loaded_copies, setting
from offbook.openclaw.places import Agent, agents
from offbook.openclaw.report import INSPECT, REPORT, RESTART, USUAL, Report, is_alive, read_report
from offbook.openclaw.setup import Commands, Reached, commands, reached_by, read, resolved
from offbook.openclaw.transcripts import Database, Event
from offbook.openclaw.writer import check_writer, present_writer

SESSIONS_EACH = 3
IDS_AT_A_TIME = 1_000
"""What `missing` takes in one question."""
ANSWER_SECONDS = 5.0


@dataclass
class Examination:
    findings: list[Finding] = field(default_factory=list)
    sessions: list[Compared] = field(default_factory=list)
    is_provider_away: bool = False


def examine(config_path: Path, state: Path, environ: Mapping[str, str], now: datetime) -> Examination:
    seen = Examination()
    config = _config(seen, config_path)
    if config is None:
        return seen
    level = checks.level_of(config)
    if level == "off":  # then all else is as it should be, or set right by the same command
        seen.findings.append(checks.check_level(config))
        return seen
    copies = loaded_copies(config, config_path.parent)
    installed = installed_copy(state)
    seen.findings += [checks.check_enabled(config), checks.check_files([*copies, *([installed] if installed else [])])]
    seen.findings += [checks.check_level(config), *checks.check_permissions(config), checks.check_slot(config)]
    seen.findings += checks.check_memory_slot(config, copies)
    report, of_report = _report(state)
    seen.findings += of_report
    sessions, faults = newest_sessions(state, SESSIONS_EACH)
    sessions = [each for each in sessions if not is_incognito(each.session_key)]
    reached = _reached(seen, config, environ)
    named = commands(reached.home, reached.endpoint, state, environ) if reached is not None else Commands()
    missing = _missing_messages(seen, reached, named, sessions) if reached is not None else None
    if reached is not None and (reached.endpoint.scheme == "unix" or reached.endpoint.is_loopback):
        with suppress(SettingsError):  # the provider says that itself, and does not start
            settings = load(reached.home, environ=environ).settings
            seen.findings.append(check_writer(present_writer(config, settings), level))
    if not of_report:
        is_there = report is not None and is_alive(report.pid)
        seen.findings += plugin_report.check_gateway(report, level, now=now, is_alive=is_there)
    if report is not None:
        seen.findings.append(plugin_report.check_reached(report, reached.endpoint if reached is not None else None))
        seen.findings += [*plugin_report.check_delivery(report, named), plugin_report.check_problems(report)]
    if missing is not None:
        seen.sessions = compared_sessions(sessions, missing)
        seen.findings += check_last_turns(seen.sessions, report, named)
        seen.findings += [*check_history(seen.sessions, named), *check_damage(seen.sessions, faults)]
    newest = sessions[0] if sessions else None
    if report is not None and level in ("recall", "hot-swap"):
        seen.findings.append(check_recalled(report, newest))
    if report is not None and level == "hot-swap":
        seen.findings += check_engine(report, newest)
    return seen


def _config(seen: Examination, path: Path) -> dict[str, Any] | None:
    try:
        file = read(path)
        config = resolved(file.config, file.path.parent)
    except (OffbookError, OSError) as error:
        mend = "openclaw config validate; or name the right file with --config"
        if isinstance(error, NotFound):
            mend = "name the file with --config, or its folder with --state; where there is none yet: openclaw onboard"
        seen.findings.append(Finding(check="config", level="fail", what=str(error), mend=mend))
        return None
    seen.findings.append(Finding(check="config", level="ok", what=str(path)))
    return config if isinstance(config, dict) else {}


def _report(state: Path) -> tuple[Report | None, list[Finding]]:
    try:
        return read_report(state), []
    except (OSError, ValueError) as error:
        what = f"{state / REPORT} cannot be read: {error}"
        return None, [Finding(check="gateway", level="fail", what=what, mend=f"{plugin_report.RESTART} makes it anew")]


def _reached(seen: Examination, config: dict[str, Any], environ: Mapping[str, str]) -> Reached | None:
    try:
        return reached_by(config, environ)
    except OffbookError as error:
        mend = "mend endpoint in plugins.entries.offbook.config: unix:///path, http://host:port, https://host:port"
        seen.findings.append(Finding(check="provider", level="fail", what=error.detail, mend=mend))
        return None


def _missing_messages(
    seen: Examination, reached: Reached, named: Commands, sessions: Sequence[Session]
) -> dict[str, list[str]] | None:
    """What Offbook lacks of each session, by the host's session id; None where nobody can say."""
    endpoint, home = reached.endpoint, reached.home
    try:
        with Client(
            endpoint, token=reached.token, client="openclaw-doctor", home=home, timeout_seconds=ANSWER_SECONDS
        ) as client:
            client.ping()
            seen.findings.append(Finding(check="provider", level="ok", what=f"answers at {endpoint}"))
            return {each.session_id: _lacking(client, each) for each in sessions}
    except ProviderUnavailable as error:
        seen.is_provider_away = True
        mend = f"{named.serve}; or `offbook openclaw setup … --start-daemon` lets the plugin start it"
        seen.findings.append(Finding(check="provider", level="fail", what=error.detail, mend=mend))
    except ProviderRefused as error:
        mend = "a token that the provider knows: tokenFile in plugins.entries.offbook.config, or the token in its home"
        if error.document.get("status") != 401:
            mend = "is the provider as new as this program? Update it and start it again"
        seen.findings.append(Finding(check="provider", level="fail", what=error.detail, mend=mend))
    except ProviderError as error:
        seen.findings.append(Finding(check="provider", level="fail", what=error.detail, mend="see the provider's log"))
    return None


def _lacking(client: Client, session: Session) -> list[str]:
    ids = [entry.entry_id for entry in session.entries]
    lacking: list[str] = []
    for start in range(0, len(ids), IDS_AT_A_TIME):
        asked = ids[start : start + IDS_AT_A_TIME]
        lacking += client.missing(session.session_key, asked, agent_id=session.agent_id)
    return lacking


# ── Did the last turns go through Offbook? What the host wrote against what is stored ──
# Pure findings.
# A host whose plugin is blocked, or whose context engine is not ours, goes on without a word. So nothing here
# trusts the configuration alone: the transcripts of the host are what is compared.


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


# ── What the host wrote last, for the proof that Offbook has it ──
# The whole of it is read by `offbook import openclaw`.


@dataclass(frozen=True)
class Entry:
    """A message of a transcript."""

    entry_id: str
    role: str
    at: datetime | None


@dataclass(frozen=True)
class Session:
    """One session of the host, from its beginning."""

    agent_id: str
    session_key: str
    session_id: str
    entries: tuple[Entry, ...]
    damaged: int = 0

    @property
    def last_turn(self) -> tuple[Entry, ...]:
        """From the user's last message on; all of it where no user speaks."""
        starts = [at for at, entry in enumerate(self.entries) if entry.role == "user"]
        return self.entries[starts[-1] :] if starts else self.entries

    @property
    def last_at(self) -> datetime | None:
        times = [entry.at for entry in self.entries if entry.at is not None]
        return max(times, default=None)


class _Newest(Database):
    def newest(self, most: int) -> list[tuple[str, str]]:
        """Session ids and keys, those that were written to last first."""
        if not {"session_windows", "transcript_events"} <= self._tables:
            return []
        rows = self._connection.execute(
            "SELECT w.session_id, w.session_key, (SELECT created_at FROM transcript_events e "
            "WHERE e.session_id = w.session_id ORDER BY seq DESC LIMIT 1) AS written_at "
            "FROM session_windows w WHERE written_at IS NOT NULL ORDER BY written_at DESC LIMIT ?",
            (most,),
        )
        return [(session_id, session_key) for session_id, session_key, _ in rows]


def newest_sessions(state: Path, most: int) -> tuple[list[Session], list[str]]:
    """The last sessions of every agent, newest first, and what could not be read."""
    sessions: list[Session] = []
    faults: list[str] = []
    for agent in agents(state) if (state / "agents").is_dir() else []:
        if not agent.database.is_file():
            continue
        try:
            sessions += _of(agent, most)
        except FAULTS as error:
            faults.append(f"{agent.database}: {error}")
    return sorted(sessions, key=_moment, reverse=True), faults


def _moment(session: Session) -> float:
    return session.last_at.timestamp() if session.last_at else 0.0


def _of(agent: Agent, most: int) -> list[Session]:
    database = _Newest(agent.database)
    try:
        found = []
        for session_id, session_key in database.newest(most):
            entries: list[Entry] = []
            damaged = 0
            for event in database.events(session_id, session_key):  # a message may be large: none is kept
                if isinstance(event, Event):
                    entries.append(Entry(event.entry_id, event.message["role"], event.written_at))
                else:
                    damaged += 1
            if entries:
                found.append(Session(agent.agent_id, session_key, session_id, tuple(entries), damaged))
        return found
    finally:
        database.close()
