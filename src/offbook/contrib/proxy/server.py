"""The proxy's own side: who may come in, one connection at a time, and a clean stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import structlog

from offbook.client.async_client import AsyncClient
from offbook.client.endpoint import Endpoint
from offbook.contrib.proxy.enricher import DEADLINE_SECONDS, Enricher
from offbook.contrib.proxy.forwarding import Client, Forwarder
from offbook.contrib.proxy.swaps import Limits
from offbook.contrib.proxy.upstream import Reader, Upstream, unavailable
from offbook.model.errors import (
    Forbidden,
    InvalidInput,
    OffbookError,
    ProviderUnavailable,
    SettingsError,
    StoreBusy,
    Unauthorized,
)
from offbook.model.home import token_digest
from offbook.model.http1 import Head, head_bytes, read_head, status_line
from offbook.model.origins import LOOPBACK_NAMES, check_host, check_origin, is_loopback
from offbook.model.types import Caller

IDLE_SECONDS = 75.0
"""For the next request of a connection to come, whole head and all."""
MOST_CONNECTIONS = 1_024
TOKEN_HEADER = b"offbook-token"

log = structlog.get_logger("offbook.proxy")


class Guard(NamedTuple):
    """`callers` is None on loopback, where whoever can connect brings their own key for the API."""

    callers: Callable[[], Mapping[str, Caller]] | None
    agent_id: str

    def check(self, head: Head) -> None:
        is_local = self.callers is None
        check_host(head.text(b"host"), LOOPBACK_NAMES if is_local else None)
        check_origin(head.text(b"origin"), LOOPBACK_NAMES)
        if self.callers is not None:
            token = (head.text(TOKEN_HEADER) or "").strip()
            caller = self.callers().get(token_digest(token)) if token else None
            if caller is None:
                raise Unauthorized("send a token of Offbook's in the header `Offbook-Token` (`offbook token create`)")
            if not caller.may_act_for(self.agent_id):
                raise Forbidden("this token is not for the agent of this proxy: use one that is")


class ProxyServer:
    def __init__(self, forwarder: Forwarder, guard: Guard) -> None:
        self._forwarder = forwarder
        self._guard = guard
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def start(self, opened: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=opened, ssl=tls, backlog=512)

    async def close(self, grace_seconds: float) -> None:
        """No new requests; answers under way finish, within the grace."""
        self._is_closing = True
        if self._server is not None:
            self._server.close()
        for idle in self._connections - self._busy:
            idle.cancel()
        if self._busy:
            await asyncio.wait(set(self._busy), timeout=grace_seconds)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _protocol(self) -> asyncio.Protocol:
        reader = Reader()

        def connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        return asyncio.StreamReaderProtocol(reader, connected)

    async def _serve(self, reader: Reader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._connections) > MOST_CONNECTIONS:
                _refuse(writer, StoreBusy(f"{MOST_CONNECTIONS:,} connections are open: try again"))
                return
            while not self._is_closing and await self._next(reader, writer):
                pass
        except OSError:  # of either side, too late for an answer that says so
            writer.transport.abort()
        except BaseException:
            writer.transport.abort()
            raise
        finally:
            with suppress(OSError, RuntimeError):
                writer.close()

    async def _next(self, reader: Reader, writer: asyncio.StreamWriter) -> bool:
        """One request. Whether another may follow."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                head = await read_head(reader, is_request=True)
            if head is None:
                return False
            if head.method == b"CONNECT":
                raise InvalidInput("CONNECT: this is no proxy for other hosts; use its address as the base URL")
            self._guard.check(head)
        except OffbookError as error:
            _refuse(writer, error)
            return False
        return await self._exchange(head, reader, writer)

    async def _exchange(self, head: Head, reader: Reader, writer: asyncio.StreamWriter) -> bool:
        own = asyncio.current_task()
        assert own is not None
        self._busy.add(own)
        client = Client(reader, writer)
        forwarding = asyncio.ensure_future(self._forwarder.forward(head, client))
        leaving = asyncio.ensure_future(reader.gone.wait())
        try:
            await asyncio.wait({forwarding, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not forwarding.done():
                log.info("a client went away", action="proxy.gone")
                return False
            return forwarding.result()
        except OffbookError as error:
            return _failed(client, error)
        except ConnectionError as error:
            return _failed(client, unavailable(error))
        finally:
            self._busy.discard(own)
            leaving.cancel()
            if not forwarding.done():
                forwarding.cancel()
                await asyncio.wait({forwarding})


def _failed(client: Client, error: OffbookError) -> bool:
    log.warning("a request failed", action="proxy.failed", reason=error.detail)
    if client.has_answer:  # broken off, so that nobody takes it for whole
        client.writer.transport.abort()
    else:
        _refuse(client.writer, error)
    return False


def _refuse(writer: asyncio.StreamWriter, error: OffbookError) -> None:
    status = 502 if isinstance(error, ProviderUnavailable) else error.status
    body = msgspec.json.encode(
        {"error": {"message": error.detail, "type": "offbook_proxy", "param": None, "code": error.slug}}
    )
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    writer.write(head_bytes(status_line(status), headers) + body)


# ── The proxy as a program: its parts put together, until SIGTERM or SIGINT ──

GRACE_SECONDS = 5.0
"""How long a stop waits for answers under way."""
SWITCH_SECONDS = 0.001
"""As the provider's: what is recorded is delivered by a thread, and streams must not wait for it."""
DEFAULT_PORT = 8771
"""Beside the provider's own."""


class Listen(NamedTuple):
    host: str
    port: int
    tls: ssl.SSLContext | None = None

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)


def read_upstream(url: str) -> Endpoint:
    """Only over the network: what a provider may also listen on is nothing that an API does."""
    if not url.lower().startswith(("http://", "https://")):
        raise InvalidInput(
            f"{url!r} is no API's base URL: it begins with http:// or https://, as in https://api.openai.com/v1"
        )
    endpoint, parts = Endpoint.parse(url), urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidInput(
            f"give the API's base URL as {endpoint}, without a password, a query or a fragment: the client's own "
            "requests bring their key and their parameters, and both are passed on"
        )
    return endpoint


def read_listen(address: str, tls: ssl.SSLContext | None) -> Listen:
    """`host:port`, or a port alone. Beyond loopback only with TLS: keys for the API pass here."""
    host, separator, port = address.rpartition(":")
    host = host.strip("[]") if separator else "127.0.0.1"
    if not host or not port.isdigit() or int(port) > 65_535:
        raise InvalidInput(f"{address!r} is no address to listen on: give one such as 127.0.0.1:{DEFAULT_PORT}")
    listen = Listen(host, int(port), tls)
    if tls is None and not listen.is_local:
        raise SettingsError(
            f"{host} is not loopback: give --tls-cert and --tls-key (for development: `offbook tls-cert`), "
            "or listen on 127.0.0.1"
        )
    return listen


async def run(
    memory: AsyncClient,
    upstream: Endpoint,
    listen: Listen,
    limits: Limits,
    *,
    agent_id: str,
    deadline_seconds: float = DEADLINE_SECONDS,
    callers: Callable[[], Mapping[str, Caller]],
    on_ready: Callable[[str], None] = lambda base_url: None,
) -> None:
    """`agent_id` is whom `memory` asks for. `callers` are those whose tokens are taken beyond loopback."""
    sys.setswitchinterval(SWITCH_SECONDS)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    opened = await asyncio.to_thread(_opened, listen)
    api = Upstream(upstream)
    enricher = Enricher(memory, limits, deadline_seconds=deadline_seconds)
    guard = Guard(None if listen.is_local else callers, agent_id)
    server = ProxyServer(Forwarder(api, enricher), guard)
    async with memory:
        await enricher.warm()
        await server.start(opened, listen.tls)
        base_url = _base_url(listen, opened, upstream)
        log.info("listening", action="proxy.start", url=base_url, upstream=str(upstream))
        on_ready(base_url)
        await stop.wait()
        log.info("stopping", action="proxy.stop")
        await server.close(GRACE_SECONDS)
        await enricher.close()
        api.close()
    log.info("stopped", action="proxy.stopped")


def _opened(listen: Listen) -> socket.socket:
    """Raises InvalidInput where the address is taken or is not one of this machine's."""
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=512)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidInput(
            f"{listen.host}:{listen.port} cannot be listened on ({reason}): choose another with --listen"
        ) from None


def _base_url(listen: Listen, opened: socket.socket, upstream: Endpoint) -> str:
    host, port = opened.getsockname()[:2]
    scheme = "https" if listen.tls else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{upstream.path}"
