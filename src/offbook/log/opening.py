"""Which store a data folder has: its own file, or the database that the settings name."""

from __future__ import annotations

from contextlib import suppress

from offbook.log.sqlite.lost_log import refuse_lost, refuse_lost_log
from offbook.log.sqlite.store import SqliteStore
from offbook.log.store import Store
from offbook.model.errors import InvalidInput, SettingsError, StoreCorrupt
from offbook.model.home import Home
from offbook.model.settings.sections import StoreSettings

SCHEMES = ("postgresql://", "postgres://")
_NOT_TAKEN = (
    "store.url: not a URL that libpq takes; percent-encode what is special in its password (%40 for @, %2F for /, %25 "
    "for %), or keep the password in ~/.pgpass"
)


def open_store(home: Home, settings: StoreSettings) -> Store:
    """To write. The caller holds the lock on the folder."""
    if settings.url is None:
        if settings.node_url is not None:
            raise SettingsError("store.nodeUrl: several nodes share a database; set store.url to it")
        refuse_lost_log(home)
        return SqliteStore(home.database, readers=settings.readers, max_queued_writes=settings.max_queued_writes)
    check_url(settings.url)
    from offbook.log.postgres.store import PostgresStore

    return PostgresStore(
        settings.url,
        node=home.node(),
        head=home.database,
        readers=settings.readers,
        max_queued_writes=settings.max_queued_writes,
        lease_seconds=settings.lease.total_seconds(),
        node_url=settings.node_url,
    )


def open_snapshot(home: Home, settings: StoreSettings) -> Store:
    """To look at one moment of it, beside a provider or without one."""
    if settings.url is None:
        return SqliteStore(home.database, read_only=True, snapshot=True)
    check_url(settings.url)
    from offbook.log.postgres.store import PostgresStore

    return PostgresStore(settings.url, read_only=True, snapshot=True)


def refuse_partial(home: Home, settings: StoreSettings) -> None:
    """LogLost where a file that is looked at lost its newest part, or went on in a database. Damage in it is for who
    looks."""
    if settings.url is None:
        with suppress(StoreCorrupt):
            refuse_lost(home.database)


def is_there(home: Home, settings: StoreSettings) -> bool:
    """Whether there is something to look at. A database is, until opening it says otherwise."""
    return settings.url is not None or home.database.exists()


def refuse_database(settings: StoreSettings, what: str) -> None:
    """For what is done to files."""
    if settings.url is not None:
        raise InvalidInput(f"the memory is in PostgreSQL (`store.url`): {what}")


def check_url(url: str) -> None:
    """SettingsError where it names no database. Tells neither what it is nor what libpq says of it, which quotes
    parts of a password that was not percent-encoded."""
    if not url.startswith(SCHEMES):
        raise SettingsError("store.url: expected postgresql://USER@HOST/DATABASE, or null for a file")
    _need_driver()
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url)
    except (ProgrammingError, ValueError):
        raise SettingsError(_NOT_TAKEN) from None
    ports = str(parts.get("port", "")).split(",")
    hosts = str(parts.get("host", "")).split(",")
    has_stray_password = "@" in str(parts.get("dbname", "")) and "%40" not in url
    if (
        has_stray_password
        or not all(port.isdecimal() for port in ports if port)
        or any("@" in host[1:] for host in hosts)
    ):
        raise SettingsError(_NOT_TAKEN)


def _need_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise SettingsError(
            f"PostgreSQL needs a driver that is not here ({error}): run `pip install 'offbook[postgres]'`"
        ) from None
