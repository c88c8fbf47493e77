"""The proxy as a program: its parts put together, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import structlog

from offbook.client.clients import AsyncClient
from offbook.client.endpoint import Endpoint
from offbook.errors import InvalidInput, SettingsError
from offbook.proxy.enriching import DEADLINE_SECONDS, Enricher
from offbook.proxy.forwarding import Forwarder
from offbook.proxy.serving import Guard, ProxyServer
from offbook.proxy.swaps import Limits
from offbook.proxy.upstream import Upstream
from offbook.surfaces.guard import is_loopback
from offbook.types import Caller

GRACE_SECONDS = 5.0
"""How long a stop waits for answers under way."""
SWITCH_SECONDS = 0.001
"""As the provider's: what is recorded is delivered by a thread, and streams must not wait for it."""
DEFAULT_PORT = 8771
"""Beside the provider's own."""

log = structlog.get_logger("offbook.proxy")


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
