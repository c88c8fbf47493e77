"""Does everything work, and if not, how is it mended? One small function for each check; only `fix` changes things."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import apsw
import msgspec

from offbook.api.doctor.database import check_database
from offbook.api.doctor.encryption import check_encryption
from offbook.api.doctor.finding import Finding, Level
from offbook.api.doctor.folder import (
    check_blob_files,
    check_folder,
    check_log,
    check_modes,
    check_outboxes,
    check_restore,
    check_tokens,
    fix,
)
from offbook.api.doctor.machine import check_python, check_settings, check_space, check_sqlite
from offbook.api.doctor.provider import check_chosen, check_lock, check_port, check_socket
from offbook.api.doctor.record import check_store
from offbook.api.doctor.salvage import mend_log
from offbook.api.doctor.search import check_index, check_model, check_reader
from offbook.api.doctor.upkeep import check_maintenance
from offbook.log.opening import is_there
from offbook.model.home import Home
from offbook.model.settings import Settings

__all__ = ["Finding", "Level", "examine", "fix", "mend_log"]


async def examine(
    home: Home,
    environ: Mapping[str, str],
    *,
    is_quick: bool = False,
    progress: Callable[[int], None] = lambda steps: None,
) -> list[Finding]:
    """Every finding, in the order a person would ask. `progress` is told of audit events as they are verified."""
    findings = [check_python(sys.version_info[:3]), check_sqlite(apsw.sqlite_lib_version())]
    settings, of_settings = check_settings(home, environ)
    findings += [of_settings, check_folder(home), *check_modes(home), *check_restore(home)]
    answer = await check_socket(home)
    is_chosen = bool(environ.get("OFFBOOK_URL") or environ.get("OFFBOOK_SOCKET"))
    findings += [await check_chosen(environ) if is_chosen else answer]
    findings += [check_lock(home, is_answering=answer.level == "ok")]
    if settings is not None and answer.level == "ok" and not is_chosen:
        findings.append(await check_port(home, settings))
    if home.folder.is_dir():
        findings += _of_folder("disk", lambda: [check_space(home)])
        if settings is None or settings.store.url is None:
            findings += _of_folder("log", lambda: check_log(home))
        findings += _of_folder("encryption", lambda: check_encryption(home))
        findings += _of_folder("tokens", lambda: [check_tokens(home)])
        findings += _of_folder("outboxes", lambda: check_outboxes(home))
        findings += _of_folder("large parts", lambda: [check_blob_files(home)])
    if settings is not None:
        findings += _of_folder("model", lambda: [check_model(home, settings, environ)])
        findings += _of_folder("reader", lambda: check_reader(home, settings, environ))
        findings += [await check_index(home, settings, is_answering=answer.level == "ok")]
        if answer.level == "ok":
            findings += await check_maintenance(home, settings)
    if settings is not None and settings.store.url is not None:
        findings += await check_database(home, settings.store.url)
    if is_there(home, (settings or Settings()).store):
        findings += await check_store(home, settings, is_quick=is_quick, progress=progress)
    return findings if is_chosen else [_naming_home(finding, home) for finding in findings]


def _of_folder(check: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """One that cannot look must not keep the others from it."""
    try:
        return look()
    except OSError as error:
        return [Finding(check=check, level="fail", what=str(error), mend="mend its permissions, or run as its owner")]


def _naming_home(finding: Finding, home: Home) -> Finding:
    """A command that is copied out of the report must mean the folder that was looked at."""
    if finding.mend is None or home.folder == Path("~/.offbook").expanduser():
        return finding
    command = f"offbook --home {shlex.quote(str(home.folder))} "
    mend = finding.mend.replace("`offbook ", f"`{command}")
    named = command + mend.removeprefix("offbook ") if mend.startswith("offbook ") else mend
    return msgspec.structs.replace(finding, mend=named)
