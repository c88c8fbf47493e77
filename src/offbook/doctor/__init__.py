"""Does everything work, and if not, how is it mended? One small function for each check; only `fix` changes things."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import apsw

from offbook.doctor.finding import Finding, Level
from offbook.doctor.folder import check_blob_files, check_folder, check_modes, check_outboxes, fix
from offbook.doctor.machine import check_python, check_settings, check_space, check_sqlite
from offbook.doctor.provider import check_lock, check_port, check_socket
from offbook.doctor.record import check_store
from offbook.home import Home

__all__ = ["Finding", "Level", "examine", "fix"]


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
    findings += [of_settings, check_folder(home), *check_modes(home)]
    answer = await check_socket(home)
    findings += [answer, check_lock(home, is_answering=answer.level == "ok")]
    if settings is not None and answer.level == "ok":
        findings.append(await check_port(home, settings))
    if home.folder.is_dir():
        findings += [check_space(home), *check_outboxes(home), check_blob_files(home)]
    if home.database.exists():
        findings += await check_store(home, is_quick=is_quick, progress=progress)
    return findings
