"""One address that takes JSON: connections that are kept, one at a time for each caller."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
    UnknownProtocol,
)
from typing import NamedTuple
from urllib.parse import urlsplit

from offbook.model.errors import ModelUnavailable
from offbook.model.origins import is_loopback

MOST_ANSWER_BYTES = 64 << 20
"""64 vectors of 4,096 numbers are 6 MB of JSON."""
PIECE_BYTES = 1 << 16
KEPT_CONNECTIONS = 4
CONNECT_SECONDS = 10.0
"""Until somebody takes the call. Only this cannot be broken off, so it is short."""


class Broken(Exception):
    """The exchange did not come to its end."""


class Answer(NamedTuple):
    status: int
    body: bytes
    retry_after_seconds: float = 0.0


class Deadline:
    """Of a whole exchange: what is asked of a socket waits for each piece anew, and pieces may come without end."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        return self._at - time.monotonic()

    def require(self) -> float:
        """What is left of it."""
        if (left := self.seconds_left) <= 0:
            raise TimeoutError(f"an answer not complete after {self.seconds:g} seconds")
        return left


class Endpoint:
    """`POST <url><path>`. Thread-safe. Never follows a redirect: the key is for this address only.

    `setting` and `key_setting` are what errors name. An exchange over a connection that was kept may be sent twice,
    where the other side had closed it; what costs money keeps none.
    """

    def __init__(
        self,
        url: str,
        path: str = "/embeddings",
        *,
        key: str | None,
        timeout_seconds: float,
        headers: Mapping[str, str] | None = None,
        setting: str = "embedding.endpoint",
        key_setting: str = "embedding.apiKeyVariable",
        kept_connections: int = KEPT_CONNECTIONS,
    ) -> None:
        self.url = url.rstrip("/")
        self._is_tls, self._host, self._port, base = _checked(self.url, setting, key_setting)
        self._path = base + path
        self._timeout_seconds = timeout_seconds
        self._kept_connections = kept_connections
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "offbook"}
        self._headers |= headers if headers is not None else bearer(key)
        self._tls = ssl.create_default_context() if self._is_tls else None
        self._idle: list[HTTPConnection] = []
        self._in_use: dict[HTTPConnection, socket.socket | None] = {}
        """With its socket, of which a connection lets go while its last answer is still read."""
        self._is_closed = False
        self._changing = threading.Lock()

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    def post(self, body: bytes, *, timeout_seconds: float | None = None) -> Answer:
        deadline = Deadline(timeout_seconds or self._timeout_seconds)
        with self._changing:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            try:
                return self._exchange(kept, body, deadline)
            except (ConnectionError, HTTPException):
                pass  # it was closed while nobody used it; asking twice does no harm
            except OSError as error:
                raise Broken(str(error)) from None
        try:
            return self._exchange(self._connection(), body, deadline)
        except (OSError, HTTPException, UnicodeError) as error:
            raise Broken(_why(error)) from None

    def close(self) -> None:
        """Whoever waits for an answer is told at once that there will be none."""
        with self._changing:
            self._is_closed = True
            idle, self._idle = self._idle, []
            in_use = list(self._in_use)
        for connection in idle:
            connection.close()
        for connection in in_use:
            self._break_off(connection)

    def _connection(self) -> HTTPConnection:
        if self._tls is not None:
            return HTTPSConnection(self._host, self._port, timeout=self._timeout_seconds, context=self._tls)
        return HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)

    def _exchange(self, connection: HTTPConnection, body: bytes, deadline: Deadline) -> Answer:
        is_reusable = False
        timer = threading.Timer(deadline.require(), self._break_off, (connection,))
        timer.daemon = True
        with self._changing:
            self._in_use[connection] = connection.sock
        timer.start()
        try:
            self._connect(connection, deadline)
            connection.request("POST", self._path, body, self._headers)
            response = connection.getresponse()
            answer = Answer(response.status, self._read(response), _seconds(response.getheader("Retry-After")))
            deadline.require()  # what was broken off may look like an answer that ends there
            is_reusable = not response.will_close
        except (OSError, HTTPException):
            deadline.require()
            raise
        finally:
            timer.cancel()
            with self._changing:
                del self._in_use[connection]
            if not (is_reusable and self._keep(connection)):
                connection.close()
        return answer

    def _connect(self, connection: HTTPConnection, deadline: Deadline) -> None:
        is_new = connection.sock is None
        if is_new:
            connection.timeout = min(deadline.require(), CONNECT_SECONDS)
            HTTPConnection.connect(connection)  # without TLS: nobody could break off its handshake in there
            if self._tls is not None:
                connection.sock = self._tls.wrap_socket(
                    connection.sock, server_hostname=self._host, do_handshake_on_connect=False
                )
            self._in_use[connection] = connection.sock
        connection.sock.settimeout(deadline.require())
        if self._is_closed:
            raise HTTPException("closed")
        if is_new and isinstance(connection.sock, ssl.SSLSocket):
            connection.sock.do_handshake()

    def _break_off(self, connection: HTTPConnection) -> None:
        if (sock := self._in_use.get(connection)) is not None:
            with suppress(OSError):  # its user has closed it meanwhile
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # also under TLS, without its farewell

    def _read(self, response: HTTPResponse) -> bytes:
        """All of it, unless it is too much."""
        pieces: list[bytes] = []
        size = 0
        while piece := response.read1(PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > MOST_ANSWER_BYTES:
                raise HTTPException(f"an answer of more than {MOST_ANSWER_BYTES:,} bytes")
        if response.length:  # read1 takes an early end for the end
            raise IncompleteRead(b"", response.length)
        response.read()  # nothing; but only this says that the connection is free again
        return b"".join(pieces)

    def _keep(self, connection: HTTPConnection) -> bool:
        with self._changing:
            if len(self._idle) < self._kept_connections and not self._is_closed:
                self._idle.append(connection)
                return True
        return False


def _why(error: Exception) -> str:
    """Not in the words of the other side, which may be anything."""
    if isinstance(error, BadStatusLine | UnknownProtocol) and not isinstance(error, RemoteDisconnected):
        return "what it speaks is not HTTP"
    return str(error) or type(error).__name__


def bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _checked(url: str, setting: str, key_setting: str) -> tuple[bool, str, int | None, str]:
    """Whether it is TLS, the host, the port, the path. What is refused is not quoted: a password may be in it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ModelUnavailable(f"the setting {setting} is not a URL ({error})") from None
    if parts.username or parts.password:
        raise ModelUnavailable(
            f"the setting {setting} holds a password: put the key into the variable that {key_setting} names instead"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ModelUnavailable(f"the setting {setting} must be like http://127.0.0.1:11434/v1")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ModelUnavailable(f"the setting {setting} holds characters that no URL has")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ModelUnavailable(
            f"the setting {setting} names {parts.hostname} without TLS, and conversations and the key would "
            "go there readable for all between: use https, or an address of this machine"
        )
    return parts.scheme == "https", parts.hostname, port, parts.path


def _seconds(retry_after: str | None) -> float:
    """A number of seconds; a date, which the header may be as well, is left to our own pauses."""
    return float(retry_after) if retry_after and retry_after.isdecimal() and len(retry_after) < 6 else 0.0
