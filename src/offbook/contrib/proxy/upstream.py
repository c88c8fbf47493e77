"""The connections to the API behind the proxy: opened when needed, kept for the next request."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Coroutine, Iterable
from typing import Any, NamedTuple, SupportsIndex

from offbook.client.endpoint import Endpoint
from offbook.model.errors import InvalidInput, ProviderUnavailable
from offbook.model.http1 import MAX_HEAD_BYTES, Head, read_head

CONNECT_SECONDS = 15.0
IDLE_SECONDS = 20.0
"""Less than servers keep one that is idle: who closes first must not be a surprise."""
MOST_IDLE = 128
NOT_KNOWN = "name the authority that signed it in SSL_CERT_FILE=/path/to/ca.pem, and start the proxy anew"
OTHER_NAME = "give --upstream the host name that it was made for"
REMEDIES = {10: "it has expired, and whoever runs the API must renew it", 62: OTHER_NAME, 64: OTHER_NAME}
"""By OpenSSL's numbers (X509_V_ERR_…): no authority helps against these."""


class Reader(asyncio.StreamReader):
    """Tells when the other side has gone, also while nobody reads, and how much came from it. Where it has gone in
    trouble, what it said before is read first: one who refuses what he has not read answers, and resets."""

    def __init__(self) -> None:
        super().__init__(limit=MAX_HEAD_BYTES)
        self.gone = asyncio.Event()
        self.received_bytes = 0
        self._trouble: Exception | None = None

    @property
    def has_unread(self) -> bool:
        unread: bytearray = self._buffer  # type: ignore[attr-defined]
        return bool(unread)

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        came = bytes(data)
        self.received_bytes += len(came)
        super().feed_data(came)

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        self._trouble = exc
        self.feed_eof()

    async def read(self, n: int = -1) -> bytes:
        data = await super().read(n)
        if self._trouble is not None and not data and n != 0:
            raise self._trouble
        return data

    async def readuntil(self, separator: bytes = b"\n") -> bytes:  # type: ignore[override]
        try:
            return await super().readuntil(separator)
        except asyncio.IncompleteReadError:
            if self._trouble is not None:
                raise self._trouble from None
            raise


class Link(NamedTuple):
    reader: Reader
    writer: asyncio.StreamWriter
    is_fresh: bool
    idle_since: float = 0.0

    @property
    def is_usable(self) -> bool:
        """Nothing unread: it would be taken for the answer to the next request."""
        return not self.reader.gone.is_set() and not self.reader.has_unread and not self.writer.is_closing()

    def close(self) -> None:
        self.writer.transport.abort()


class Upstream:
    """One API. Certificates are verified by the system's authorities, or those of SSL_CERT_FILE."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._tls = ssl.create_default_context() if endpoint.scheme == "https" else None
        self._idle: list[Link] = []

    @property
    def host_header(self) -> bytes:
        """Without the port where it is the scheme's own: some APIs know their name only."""
        is_usual = self.endpoint.port == (443 if self.endpoint.scheme == "https" else 80)
        authority = self.endpoint.authority
        return (authority.rpartition(":")[0] if is_usual else authority).encode("ascii")

    async def link(self, *, fresh: bool = False) -> Link:
        """An idle one, or a new one. Raises ProviderUnavailable."""
        oldest = time.monotonic() - IDLE_SECONDS
        while self._idle and not fresh:
            link = self._idle.pop()
            if link.is_usable and link.idle_since > oldest:
                return link._replace(is_fresh=False)
            link.close()
        return await self._connect()

    def give_back(self, link: Link) -> None:
        if link.is_usable and len(self._idle) < MOST_IDLE:
            self._idle.append(link._replace(idle_since=time.monotonic()))
        else:
            link.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _connect(self) -> Link:
        loop = asyncio.get_running_loop()
        reader = Reader()
        protocol = asyncio.StreamReaderProtocol(reader)
        where = self.endpoint
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport, _ = await loop.create_connection(
                    lambda: protocol,
                    where.host,
                    where.port,
                    ssl=self._tls,
                    server_hostname=where.host if self._tls else None,
                )
        except ssl.SSLCertVerificationError as error:
            remedy = REMEDIES.get(error.verify_code, NOT_KNOWN)
            raise ProviderUnavailable(
                f"the certificate of {where} is not trusted ({error.verify_message}): {remedy}"
            ) from None
        except TimeoutError:
            raise ProviderUnavailable(f"{where} did not answer within {CONNECT_SECONDS:g} s") from None
        except (OSError, ValueError) as error:
            raise ProviderUnavailable(f"{where} cannot be reached: {error}") from None
        return Link(reader, asyncio.StreamWriter(transport, protocol, reader, loop), is_fresh=True)


class Reply(NamedTuple):
    """The head of an answer. Its body is still to come."""

    link: Link
    head: Head
    sending: asyncio.Task[Any]

    @property
    def is_sent(self) -> bool:
        """Whether the request was read to its end. An API may answer before."""
        return self.sending.done() and not self.sending.cancelled() and self.sending.exception() is None

    def close(self) -> None:
        self.sending.cancel()
        self.link.close()


async def reply_to(link: Link, request: Coroutine[Any, Any, Any]) -> Reply:
    """Listens while it sends: an API may refuse what it has not read. `request` raises what is the client's fault only.

    Raises ConnectionError where the API has gone, ProviderUnavailable where it is at fault otherwise.
    """
    sending, hearing = asyncio.create_task(request), asyncio.create_task(_head(link))
    sending.add_done_callback(_is_wrong)
    try:
        await asyncio.wait({sending, hearing}, return_when=asyncio.FIRST_COMPLETED)
        if not hearing.done():
            sending.result()
        return Reply(link, await hearing, sending)
    except BaseException:
        hearing.cancel()
        sending.cancel()
        link.close()
        raise


async def _head(link: Link) -> Head:
    try:
        while True:
            response = await read_head(link.reader, is_request=False)
            if response is None:
                raise ConnectionResetError("the API closed the connection")
            if response.status >= 200:  # interim answers are between the API and us
                return response
    except InvalidInput as error:
        raise ProviderUnavailable(f"the API's answer cannot be read: {error.detail}") from None
    except ConnectionError:
        raise
    except OSError as error:
        raise unavailable(error) from None


def _is_wrong(task: asyncio.Task[Any]) -> bool:
    """Looked at, so that nobody complains of what nobody waits for."""
    return not task.cancelled() and task.exception() is not None


def unavailable(error: Exception) -> ProviderUnavailable:
    return error if isinstance(error, ProviderUnavailable) else ProviderUnavailable(f"the API gave no answer: {error}")
