"""Everything the doctor of this host looks at, in the order a person would ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from offbook.api.doctor.finding import Finding
from offbook.client.clients import Client
from offbook.client.history.fields import is_incognito
from offbook.model.errors import (
    NotFound,
    OffbookError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    SettingsError,
)
from offbook.model.settings import load
from offbook.openclaw import checks, proof
from offbook.openclaw import report as plugin_report
from offbook.openclaw.config_file import read, resolved
from offbook.openclaw.plugin_folder import installed_copy, loaded_copies
from offbook.openclaw.reached import Reached, reached_by
from offbook.openclaw.report import REPORT, Report, is_alive, read_report
from offbook.openclaw.setup import Commands, commands
from offbook.openclaw.transcripts import Session, newest_sessions
from offbook.openclaw.writer import check_writer, present_writer

SESSIONS_EACH = 3
IDS_AT_A_TIME = 1_000
"""What `missing` takes in one question."""
ANSWER_SECONDS = 5.0


@dataclass
class Examination:
    findings: list[Finding] = field(default_factory=list)
    sessions: list[proof.Compared] = field(default_factory=list)
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
        seen.sessions = proof.compared_sessions(sessions, missing)
        seen.findings += proof.check_last_turns(seen.sessions, report, named)
        seen.findings += [*proof.check_history(seen.sessions, named), *proof.check_damage(seen.sessions, faults)]
    newest = sessions[0] if sessions else None
    if report is not None and level in ("recall", "hot-swap"):
        seen.findings.append(proof.check_recalled(report, newest))
    if report is not None and level == "hot-swap":
        seen.findings += proof.check_engine(report, newest)
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
