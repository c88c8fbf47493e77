"""The database that the memory is in: is it reached, does it keep what it confirms, and who may write to it."""

from __future__ import annotations

import asyncio

from offbook.api.doctor.finding import Finding
from offbook.log.opening import check_url
from offbook.model.errors import OffbookError
from offbook.model.home import Home
from offbook.model.settings.values import without_password


async def check_database(home: Home, url: str) -> list[Finding]:
    try:
        check_url(url)
        return await asyncio.to_thread(_look, home, url)
    except OffbookError as error:
        mend = "mend what it says; `offbook config store.url` shows where the setting comes from"
        return [Finding(check="database", level="fail", what=error.detail, mend=mend)]


def _look(home: Home, url: str) -> list[Finding]:
    from offbook.log.postgres.connection import PostgresConnection, opening
    from offbook.log.postgres.lease import NODES, shown
    from offbook.log.postgres.schema import refuse_newer, refuse_unfit, schema_version

    with opening():
        connection = PostgresConnection(url, name="offbook doctor", read_only=True)
        try:
            refuse_unfit(connection)
            refuse_newer(connection)
            version = connection.execute("SHOW server_version").get
            durable = connection.execute("SHOW synchronous_commit").get
            is_synced = connection.execute("SHOW fsync").get == "on"
            what = f"PostgreSQL {version} at {without_password(url)}, synchronous_commit = {durable}"
            found = [Finding(check="database", level="ok", what=what)]
            if not is_synced:
                mend = "set fsync = on in postgresql.conf: after a power failure the whole database may be lost"
                found.append(Finding(check="database", level="warn", what="fsync is off", mend=mend))
            if not schema_version(connection):
                mend = "the next `offbook serve` makes the tables"
                return [*found, Finding(check="database", level="warn", what="it holds no memory yet", mend=mend)]
            held = shown(connection)
        finally:
            connection.close()
    if not held.is_held:
        return [*found, Finding(check="lease", level="ok", what="nobody writes to it now")]
    if held.node == NODES:
        what = f"held by several nodes until {held.until:%Y-%m-%d %H:%M:%S} UTC: `offbook nodes` shows them"
        return [*found, Finding(check="lease", level="ok", what=what)]
    is_ours = "this folder" if held.node == home.node() else "another folder or machine"
    what = f"held by {held.holder} of {is_ours} until {held.until:%Y-%m-%d %H:%M:%S} UTC, epoch {held.epoch}"
    return [*found, Finding(check="lease", level="ok", what=what)]
