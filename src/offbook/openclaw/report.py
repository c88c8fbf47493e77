"""What the plugin wrote of itself: `<state>/offbook/report.json`."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from offbook.api.doctor.finding import FAULTS_SHOWN, Finding
from offbook.client.endpoint import Endpoint
from offbook.model.errors import InvalidInput
from offbook.openclaw.changes import Level
from offbook.openclaw.checks import CONVERSATION, setting
from offbook.openclaw.setup import Commands

REPORT = Path("offbook", "report.json")


class _ReportPart(msgspec.Struct, frozen=True, rename="camel"):
    """Every field has a default: a plugin that is older or newer than we are may leave it out."""


class ProviderSeen(_ReportPart, frozen=True):
    endpoint: str | None = None
    ok: bool | None = None
    checked_at: datetime | None = None
    error: str | None = None


class Captured(_ReportPart, frozen=True):
    messages: int = 0
    delivered: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    turned_away: int = 0
    refused: int = 0
    last_at: datetime | None = None
    last_entry_id: str | None = None
    last_session_key: str | None = None
    last_delivered_at: datetime | None = None


class LastTurn(_ReportPart, frozen=True):
    at: datetime | None = None
    session_key: str | None = None
    recall_chars: int = 0
    memory_chars: int = 0
    took_ms: float = 0
    error: str | None = None


class Turns(_ReportPart, frozen=True):
    prepared: int = 0
    injected: int = 0
    late: int = 0
    failed: int = 0
    last: LastTurn | None = None


class LastAssembly(_ReportPart, frozen=True):
    at: datetime | None = None
    session_key: str | None = None
    messages_in: int = 0
    messages_out: int = 0
    generation: int | None = None
    reason: str | None = None


class Engine(_ReportPart, frozen=True):
    assembled: int = 0
    committed: int = 0
    swaps: int = 0
    fallbacks: int = 0
    last: LastAssembly | None = None


class HostSeen(_ReportPart, frozen=True):
    version: str | None = None


class Permissions(_ReportPart, frozen=True):
    conversation: bool | None = None


class Trouble(_ReportPart, frozen=True):
    at: datetime | None = None
    what: str = ""
    detail: str = ""
    times: int = 1


class Report(_ReportPart, frozen=True):
    plugin: str | None = None
    pid: int | None = None
    started_at: datetime | None = None
    saved_at: datetime | None = None
    level: str | None = None
    host: HostSeen = HostSeen()
    provider: ProviderSeen = ProviderSeen()
    capture: Captured = Captured()
    turns: Turns = Turns()
    engine: Engine = Engine()
    permissions: Permissions = Permissions()
    agents: list[str] = []
    problems: list[Trouble] = []


def read_report(state: Path) -> Report | None:
    """None where the plugin never wrote one. Raises OSError, and ValueError for what is no report."""
    try:
        raw = (state / REPORT).read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(raw, type=Report)


def is_alive(pid: int | None) -> bool:
    """Whether that process runs, here and now."""
    if pid is None or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, but there
        return True
    return True


# ── What the plugin tells of itself: does it run, whom does it deliver to, and what did not make it ──

STALE_AFTER = timedelta(seconds=120)
"""A plugin that runs writes its report every 30 seconds at least."""
RESTART = "openclaw gateway restart"
INSPECT = "openclaw plugins inspect offbook --runtime"
USUAL = Commands()


def check_gateway(report: Report | None, level: Level, *, now: datetime, is_alive: bool) -> list[Finding]:
    """Is the plugin loaded, at the level that is configured, and may it see turns?"""
    if report is None:
        mend = f"start the gateway, or {RESTART}; then {INSPECT} says why it does not load"
        return [Finding(check="gateway", level="fail", what="the plugin was never started by a gateway", mend=mend)]
    findings: list[Finding] = []
    if report.level != level:
        what = f"the gateway runs the plugin at level {report.level}, the file says {level}"
        findings.append(Finding(check="gateway", level="fail", what=what, mend=RESTART))
    if report.permissions.conversation is False:
        what = "the host blocks the plugin's hooks: it may not see turns"
        findings.append(Finding(check="gateway", level="fail", what=what, mend=setting(CONVERSATION, True)))
    if (silence := _silence(report, now, is_alive=is_alive)) is not None:
        findings.append(silence)
    if findings:
        return findings
    process = f"process {report.pid}" + " (not seen from here)" * (not is_alive)
    host = f"OpenClaw {report.host.version or 'of unknown version'}, {process}"
    return [Finding(check="gateway", level="ok", what=f"{host}, runs plugin {report.plugin} at level {level}")]


def _silence(report: Report, now: datetime, *, is_alive: bool) -> Finding | None:
    """A number of a process is given again, and means nothing in a container: what was written last tells."""
    if report.saved_at is None:
        if is_alive:
            return None
        what = f"the gateway that last loaded the plugin (process {report.pid}) does not run here"
        return Finding(check="gateway", level="warn", what=what, mend="openclaw gateway start")
    if now - report.saved_at <= STALE_AFTER:
        return None
    what = f"the plugin last told of itself at {report.saved_at:%Y-%m-%d %H:%M:%SZ}: no gateway runs it now"
    if not is_alive:
        return Finding(check="gateway", level="warn", what=what, mend="openclaw gateway start")
    what += f" (there is a process {report.pid}; it may be another program's)"
    return Finding(check="gateway", level="warn", what=what, mend=f"openclaw gateway start, or {RESTART}")


def check_reached(report: Report, asked: Endpoint | None = None) -> Finding:
    """What the plugin sees of the provider, which need not be what we see from here. `asked`: whom we asked."""
    seen = report.provider
    if asked is not None and seen.endpoint and not _is_same(seen.endpoint, asked):
        what = f"the plugin delivers to {seen.endpoint}, but this asked {asked}: what is told here is not of its memory"
        mend = f"{RESTART}, where the file was changed; else the gateway's OFFBOOK_HOME or OFFBOOK_URL is not the one "
        mend += "here: offbook openclaw setup … --home DIR, or --url URL, writes it down for both"
        return Finding(check="reached", level="fail", what=what, mend=mend)
    if seen.ok is False:
        mend = "is it another endpoint, home or token than here? See plugins.entries.offbook.config"
        what = f"the plugin does not reach {seen.endpoint}: {seen.error or 'no reason told'}"
        return Finding(check="reached", level="fail", what=what, mend=mend)
    told = f"has reached {seen.endpoint}" if seen.ok else "has asked nobody yet"
    return Finding(check="reached", level="ok", what=f"the plugin {told}")


def _is_same(told: str, asked: Endpoint) -> bool:
    """The plugin writes `unix:/path`, and of a URL what stands before its path."""
    if told.startswith("unix:"):
        return asked.scheme == "unix" and told.removeprefix("unix:").removeprefix("//") == asked.path
    try:
        place = Endpoint.parse(told)
    except InvalidInput:
        return False
    return (place.scheme, place.host, place.port) == (asked.scheme, asked.host, asked.port)


def check_delivery(report: Report, commands: Commands = USUAL) -> list[Finding]:
    """What is on its way, and what did not make it."""
    capture = report.capture
    findings: list[Finding] = []
    if capture.refused:
        mend = "see offbook/outbox/refused.jsonl in the host's state folder, and the provider's log"
        what = f"the provider refused {capture.refused:,} messages for good"
        findings.append(Finding(check="delivery", level="fail", what=what, mend=mend))
    if capture.turned_away:
        mend = f"{commands.serve}; the plugin then fetches them from the transcripts, and so does "
        mend += f"`{commands.import_all}`"
        what = f"the outbox was full: {capture.turned_away:,} messages did not fit"
        findings.append(Finding(check="delivery", level="warn", what=what, mend=mend))
    if capture.waiting:
        mend = f"they are delivered once the provider answers: {commands.serve}"
        what = f"{capture.waiting:,} messages wait in the outbox ({capture.waiting_bytes:,} bytes)"
        findings.append(Finding(check="delivery", level="warn", what=what, mend=mend))
    what = f"{capture.delivered:,} of {capture.messages:,} messages since the gateway started"
    return findings or [Finding(check="delivery", level="ok", what=what)]


def check_problems(report: Report) -> Finding:
    if not report.problems:
        return Finding(check="problems", level="ok", what="the plugin tells of none")
    newest = sorted(report.problems, key=lambda each: each.at.timestamp() if each.at else 0.0)[-FAULTS_SHOWN:]
    lines = [
        f"{each.at:%Y-%m-%d %H:%M:%SZ} " * bool(each.at)
        + f"{each.what}: {each.detail}"
        + f" (×{each.times})" * (each.times > 1)
        for each in reversed(newest)
    ]
    return Finding(check="problems", level="warn", what="\n".join(lines), mend="`openclaw logs` has what came before")
