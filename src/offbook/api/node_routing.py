"""Of several nodes over one database: a request is answered by the node that has its agent, whichever it came to.

The node that a request comes to checks the caller's token, and passes the request on with the caller's name and rights.
What nodes show each other is made from the key of the installation, which only those know who reach the database.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Collection
from typing import Any

import msgspec
import structlog

from offbook.api.background import Background
from offbook.api.messages import Request
from offbook.client.endpoint import Endpoint
from offbook.client.transport import Transport, content_of
from offbook.log.owners import Owners
from offbook.log.store import Store
from offbook.model.errors import (
    AgentMoved,
    InvalidInput,
    OffbookError,
    ProviderRefused,
    ProviderUnavailable,
    SettingsError,
    Unauthorized,
)
from offbook.model.settings import Settings
from offbook.model.types import Caller

CALLER = b"offbook-caller"
"""Header of a request that another node passes on: who asks."""
PASSED_SECONDS = 150.0
"""For the owner's answer: longer than any that a client waits for."""
RETRY_SECONDS = 1.0

log = structlog.get_logger("offbook.nodes")


class RefusedByNode(OffbookError):
    """The node that has the agent refused this."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        super().__init__(str(document.get("detail", "")))

    def problem(self) -> dict[str, Any]:
        return self._document


class NodeRouter:
    def __init__(self, owners: Owners, installation_key: bytes) -> None:
        self._owners = owners
        self._token = hmac.digest(installation_key, b"between nodes", "sha256").hex()
        self._transports: dict[str, Transport] = {}

    def epoch(self, agent_id: str) -> int | None:
        """None where another node has the agent."""
        return self._owners.epoch(agent_id)

    def check(self, agent_id: str, epoch: int) -> None:
        """Before something is answered that was read under `epoch`. AgentMoved where others may have written since."""
        if self._owners.epoch(agent_id) != epoch:
            raise AgentMoved("another node answers for this agent now: send it again in a moment")

    def refuse_elsewhere(self, agent_id: str) -> None:
        """For what is not passed on."""
        if self._owners.epoch(agent_id) is None:
            where = self._owners.url(agent_id) or "none just now"
            raise AgentMoved(f"another node has this agent ({where}), and this is not passed on: ask there")

    def caller(self, request: Request) -> Caller | None:
        """Who asks, by the word of the node that passed it on; None where none did."""
        told = request.header(CALLER)
        if told is None:
            return None
        token = (request.header(b"authorization") or "").removeprefix("Bearer ")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise Unauthorized("this is no node of the same database")
        try:
            return msgspec.json.decode(told, type=Caller)
        except msgspec.DecodeError as error:
            raise InvalidInput(f"the header Offbook-Caller cannot be read: {error}") from None

    async def passed_on(self, agent_id: str, verb: str, body: bytes, caller: Caller, request: Request) -> msgspec.Raw:
        """The owner's answer, as it is. AgentMoved where there is none, or it is not reached."""
        url = self._owners.url(agent_id)
        if url is None or request.header(CALLER) is not None:
            raise AgentMoved("no node is known to have this agent just now: send it again in a moment")
        headers = f"{CALLER.decode()}: {_encoded(caller)}\r\n"
        if (capture := request.header(b"offbook-capture")) is not None:
            headers += f"offbook-capture: {capture}\r\n"
        try:
            answer = await self._transport(url).post(f"/v1/{verb}", body, headers=headers)
            return msgspec.Raw(content_of(answer))
        except ProviderRefused as error:
            raise RefusedByNode(error.document) from None
        except ProviderUnavailable as error:
            log.info("not passed on", action="node.forward", url=url, detail=error.detail)
            raise AgentMoved(
                f"the node that has this agent ({url}) is not reached: send it again in a moment"
            ) from None

    def _transport(self, url: str) -> Transport:
        if url not in self._transports:
            self._transports[url] = Transport(Endpoint.parse(url), token=self._token, timeout_seconds=PASSED_SECONDS)
        return self._transports[url]

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()


def _encoded(caller: Caller) -> str:
    """In ASCII, as a header takes it."""
    text = msgspec.json.encode(caller).decode()
    return "".join(letter if letter.isascii() else f"\\u{ord(letter):04x}" for letter in text)


def check_node_url(settings: Settings) -> None:
    """SettingsError where others could not reach this node, or its token would be read on the way."""
    if settings.store.node_url is None:
        return
    try:
        endpoint = Endpoint.parse(settings.store.node_url)
    except InvalidInput as error:
        raise SettingsError(f"store.nodeUrl: {error.detail}") from None
    if endpoint.scheme == "unix" or not settings.server.port:
        raise SettingsError("store.nodeUrl: the other nodes need a URL and a port (server.port) to reach this one")
    if endpoint.scheme == "http" and not endpoint.is_loopback:
        raise SettingsError("store.nodeUrl: beyond this machine it has to be https, with server.tlsCert and tlsKey")


class MovingAgents:
    """Has the background follow what this node has: of agents that another has now, all that is kept is let go of."""

    def __init__(self, store: Store, owners: Owners, background: Background) -> None:
        self._store = store
        self._owners = owners
        self._background = background
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        owners.when_lost = self._lost
        owners.when_taken = self._taken

    def _taken(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._background.runner.meet)

    def _lost(self, buckets: Collection[int]) -> None:
        """In the thread that noticed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin, frozenset(buckets))

    def _begin(self, buckets: frozenset[int]) -> None:
        task = asyncio.create_task(self._let_go(buckets))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _let_go(self, buckets: frozenset[int]) -> None:
        """None of them is taken again before it is done, so it is tried until it is."""
        while True:
            try:
                for agent_id in await self._store.agents():
                    if self._owners.bucket(agent_id) in buckets:
                        await self._background.let_go(agent_id)
            except (OffbookError, OSError) as error:
                log.warning("not let go of yet", action="node.let_go", detail=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._owners.let_go(buckets)
                return

    async def close(self) -> None:
        self._owners.when_lost = self._owners.when_taken = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
