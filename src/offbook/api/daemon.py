"""The provider: opens the store, listens on the socket and on loopback, stops cleanly. Chooses the implementations."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import structlog

from offbook.api.embedded import open_parts
from offbook.api.http import HttpSurface
from offbook.api.listener import BodyBudget, Listener
from offbook.api.memory import Memory
from offbook.api.metrics import Metrics
from offbook.api.node_routing import NodeRouter, check_node_url
from offbook.api.refusals import RefusalLog
from offbook.api.web.sign_in import SignIn
from offbook.api.web.surface import WebSurface
from offbook.log.opening import refuse_database
from offbook.log.store import Store
from offbook.model.errors import SettingsError, StoreReadOnly
from offbook.model.home import Home, TokenBook
from offbook.model.origins import LOOPBACK_NAMES, is_loopback
from offbook.model.settings import Settings
from offbook.model.types import Value
from offbook.model.version import VERSION
from offbook.models.worker import IN_PROCESS, OwnProcess
from offbook.projections.base import Batch, Progress
from offbook.projections.lanes import Job

GRACE_SECONDS = 5
"""How long a stop waits for requests under way."""

SWITCH_SECONDS = 0.001
"""How long a thread may keep the interpreter while another waits for it; Python's own 5 ms is a message's worth."""

log = structlog.get_logger("offbook.daemon")


class Address(Value, frozen=True):
    """Where the daemon listens, once it does."""

    socket: str
    url: str | None
    home: str


async def serve(
    home: Home,
    settings: Settings,
    *,
    origins: Mapping[str, str] | None = None,
    on_ready: Callable[[Address], None] = lambda address: None,
) -> None:
    """Run until SIGTERM or SIGINT. `origins`: who gave each setting that is not a default."""
    check_binding(settings)
    check_node_url(settings)
    _leave_room_for_answers()
    home.check_socket_path()
    worker = OwnProcess() if settings.maintenance.own_process else IN_PROCESS
    parts = open_parts(home, settings, tasks=[_backups(home, settings)], origins=origins, worker=worker)
    async with parts as (memory, store):
        home.owner_token()
        key = await store.installation_key()
        router = None if store.owners is None else NodeRouter(store.owners, key)
        listeners = _Listeners(home, settings, memory, store, SignIn(key), router)
        stop = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        try:
            address = await listeners.start()
            # What was loaded stays: the collector need not look at it again.
            gc.collect()
            gc.freeze()
            log.info("listening", action="daemon.start", socket=address.socket, url=address.url, version=VERSION)
            on_ready(address)
            loading = asyncio.ensure_future(asyncio.to_thread(load_for_turns))
            await stop.wait()
            await loading
        finally:
            log.info("stopping", action="daemon.stop")
            memory.stop_waiting()
            await listeners.close()
            if router is not None:
                router.close()
    log.info("stopped", action="daemon.stopped")


def _backups(home: Home, settings: Settings) -> Job:
    hours, keep = settings.backup.every_hours, settings.backup.keep
    if hours is not None:
        refuse_database(settings.store, "back up the database with its own tools, and leave backup.everyHours at null")
    every = None if hours is None else timedelta(hours=hours)

    async def run(_batch: Batch) -> Progress:
        from offbook.transfer.backup import keep_backing_up  # none is made by most, and then it is not loaded

        return Progress() if every is None else await keep_backing_up(home, every, keep)

    return Job("backup", run, per_agent=False)


def load_for_turns() -> None:
    """What is loaded when it is first needed takes longer than the first turn after a start has: modules, vocabularies
    and weights."""
    from offbook.models import minilm, sentence_kinds

    for name in ("offbook.search.ranking", "numpy.ma"):
        import_module(name)
    minilm.reads("qwx zxq")  # a word of no language is looked for in all of them
    sentence_kinds.read_sentences("It is loaded.", is_user=True)


def _leave_room_for_answers() -> None:
    """The background shares the interpreter and the cores with whoever waits for an answer."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # Read when numpy is first loaded. Its products here are small: a second thread costs more than it brings.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def check_binding(settings: Settings) -> None:
    """Beyond loopback only with TLS; the token is always asked for."""
    server = settings.server
    if server.port and not is_loopback(server.host) and not (server.tls_cert and server.tls_key):
        raise SettingsError(
            f"{server.host} is not loopback: give --tls-cert and --tls-key (for development: `offbook tls-cert`), "
            "or keep server.host at 127.0.0.1"
        )


class _Listeners:
    def __init__(
        self,
        home: Home,
        settings: Settings,
        memory: Memory,
        store: Store,
        sign_in: SignIn,
        router: NodeRouter | None,
    ) -> None:
        self._router = router
        self._home = home
        self._settings = settings
        self._memory = memory
        runner = memory.runner
        self._metrics = Metrics(
            VERSION,
            lambda: store.queued_writes,
            maintenance=runner.health,
            failures=lambda: runner.failures,
        )
        self._tokens = TokenBook(home)
        self._web = WebSurface(memory, self._tokens.callers, sign_in, router)
        self._refusals = RefusalLog()
        self._bodies = BodyBudget(settings.server.max_buffered_bytes)
        self._listeners: list[Listener] = []

    async def start(self) -> Address:
        unix = listen_on_socket(self._home.socket)
        tcp = listen_on_port(self._settings.server.host, self._settings.server.port)
        await self._serve(unix, is_socket=True)
        url = None
        if tcp is not None:
            await self._serve(tcp, is_socket=False)
            host, port = tcp.getsockname()[:2]
            scheme = "https" if self._settings.server.tls_cert else "http"
            url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
            self._web.url = url
        return Address(socket=str(self._home.socket), url=url, home=str(self._home.folder))

    async def close(self) -> None:
        await asyncio.gather(*[listener.close(GRACE_SECONDS) for listener in self._listeners])
        self._refusals.end_minute()
        self._home.socket.unlink(missing_ok=True)

    async def _serve(self, opened: socket.socket, *, is_socket: bool) -> None:
        settings = self._settings.server
        surface = HttpSurface(
            self._memory,
            self._metrics,
            self._tokens.callers,
            is_socket=is_socket,
            allowed_hosts=self._allowed_hosts(),
            refusals=self._refusals,
            web=self._web,
            router=self._router,
        )
        listener = Listener(
            surface,
            surface.admit,
            max_body_bytes=settings.max_request_bytes,
            keep_alive_seconds=settings.keep_alive_seconds,
            refused=surface.refused,
            bodies=self._bodies,
        )
        self._listeners.append(listener)
        await listener.start(opened, None if is_socket else tls_context(settings.tls_cert, settings.tls_key))

    def _allowed_hosts(self) -> frozenset[str] | None:
        """Names we answer to. A remote provider without a list answers to any: TLS and the token decide there."""
        server = self._settings.server
        named = frozenset(name.lower() for name in server.allowed_hosts)
        if is_loopback(server.host):
            return LOOPBACK_NAMES | named
        return LOOPBACK_NAMES | named | {server.host.lower()} if named else None


def tls_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"the TLS certificate {certificate} or its key cannot be used: {error}") from None
    return context


def listen_on_socket(path: Path) -> socket.socket:
    """A socket file only its owner can open. A stale one is removed: the folder's lock proves nobody listens."""
    if path.is_socket() or (path.exists() and stat.S_ISSOCK(path.lstat().st_mode)):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Made under another name and moved: nobody can connect before its mode is right. No longer a name than
    # the last one, since that is what `check_socket_path` has measured.
    unfinished = path.with_suffix(".new")
    try:
        unfinished.unlink(missing_ok=True)
        listener.bind(str(unfinished))
        unfinished.chmod(0o600)
        listener.listen(1024)
        unfinished.rename(path)
    except OSError as error:
        listener.close()
        raise StoreReadOnly(f"the socket {path} cannot be made ({error}): check the folder {path.parent}") from None
    listener.setblocking(False)
    return listener


def listen_on_port(host: str, port: int) -> socket.socket | None:
    """None for port 0: the socket only."""
    if port == 0:
        return None
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"port {port} is in use by another program: choose another with --port or OFFBOOK_PORT "
                "(0 = socket only)"
            ) from None
        raise SettingsError(f"{host}:{port} cannot be listened on: {error}") from None
    listener.listen(1024)
    listener.setblocking(False)
    return listener
