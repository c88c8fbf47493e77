"""Making the tables in a database, and refusing one that cannot hold a log."""

from __future__ import annotations

from offbook.log.postgres.connection import PostgresConnection
from offbook.log.postgres.dialect import SCHEMA, migration
from offbook.log.sql.copying import is_unfinished
from offbook.log.sql.schema import latest_version, migrations, new_installation
from offbook.model.errors import SettingsError, StoreError, StoreTooNew

OLDEST_SERVER = 150000
MIGRATION_LOCK = 0x0FFB00C
"""Of those who migrate at once, one does."""
_OURS = "postgres"
_SHARED = "store"


def refuse_unfit(connection: PostgresConnection) -> None:
    """What was acknowledged must be durable, and text is UTF-8."""
    if connection.execute("SHOW synchronous_commit").get == "off":
        raise SettingsError(
            "the database answers before anything is durable (synchronous_commit = off): what was acknowledged could "
            "be lost; run `ALTER ROLE … SET synchronous_commit = on` for the role that Offbook connects as"
        )
    if connection.execute("SHOW synchronous_commit").get == "local" and (
        standbys := connection.execute("SHOW synchronous_standby_names").get
    ):
        raise SettingsError(
            f"the database has a synchronous standby ({standbys}) and does not wait for it (synchronous_commit = "
            "local): run `ALTER ROLE … SET synchronous_commit = on` for the role that Offbook connects as"
        )
    encoding = connection.execute("SHOW server_encoding").get
    if encoding != "UTF8":
        raise SettingsError(f"the database's encoding is {encoding}: make one with `CREATE DATABASE … ENCODING 'UTF8'`")
    if int(connection.execute("SHOW server_version_num").get) < OLDEST_SERVER:
        version = connection.execute("SHOW server_version").get
        raise SettingsError(f"PostgreSQL {version} is too old: 15 is the oldest that is tried")


def schema_version(connection: PostgresConnection) -> int:
    """0 where there are no tables yet."""
    if connection.execute("SELECT to_regclass(?)::text", (f"{SCHEMA}.migrations",)).get is None:
        return 0
    return _version(connection, _SHARED)


def refuse_newer(connection: PostgresConnection) -> None:
    version, newest = schema_version(connection), latest_version()
    if version > newest:
        raise StoreTooNew(
            f"the store has schema version {version}, this Offbook knows up to {newest}: upgrade Offbook, "
            "or restore a backup made with this version"
        )


def refuse_unfinished(connection: PostgresConnection) -> None:
    """Half a memory would be gone on with as if it were all."""
    if is_unfinished(connection):
        raise StoreError("a migration into this database broke off: run `offbook migrate` again, it goes on there")


def migrate(connection: PostgresConnection) -> None:
    """Bring the tables to the newest version, each step in its own transaction, one process at a time."""
    refuse_unfit(connection)
    refuse_newer(connection)
    if schema_version(connection) == latest_version() and _version(connection, _OURS) == _newest_of_ours():
        return
    connection.execute("SELECT pg_advisory_lock(?)", (MIGRATION_LOCK,))
    try:
        connection.script(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.script(
            f"CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations (kind TEXT, version BIGINT, "
            "applied_at TIMESTAMPTZ NOT NULL DEFAULT now(), PRIMARY KEY (kind, version))"
        )
        for version, sql in migrations():
            _apply(connection, _SHARED, version, migration(sql))
        for version, sql in migrations("offbook.log.postgres"):
            _apply(connection, _OURS, version, sql)
    finally:
        if not connection.is_lost:
            connection.execute("SELECT pg_advisory_unlock(?)", (MIGRATION_LOCK,))


def _apply(connection: PostgresConnection, kind: str, version: int, sql: str) -> None:
    if version <= _version(connection, kind):
        return
    connection.execute("BEGIN")
    try:
        connection.script(sql)
        if (kind, version) == (_SHARED, 1):
            connection.execute(*new_installation())
        connection.execute("INSERT INTO migrations (kind, version) VALUES (?,?)", (kind, version))
        connection.execute("COMMIT")
    except BaseException:
        if not connection.is_lost:
            connection.execute("ROLLBACK")
        raise


def _version(connection: PostgresConnection, kind: str) -> int:
    found: int | None = connection.execute("SELECT max(version) FROM migrations WHERE kind = ?", (kind,)).get
    return found or 0


def _newest_of_ours() -> int:
    return migrations("offbook.log.postgres")[-1][0]
