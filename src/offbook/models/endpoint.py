"""One address that takes JSON: connections that are kept, one at a time for each caller."""

from __future__ import annotations

import random
import re
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


# ── A model behind an endpoint, asked with patience ──
# What passes is tried again, what does not is told at once.


LONGEST_PAUSE_SECONDS = 20.0
HEARD_BYTES = 400
"""Of a refusal: what it is about stands at its start, and further on perhaps what was sent."""
OF_WHAT_WAS_SENT = frozenset({400, 413, 422})


class Refused(Exception):
    """The cause of a ModelUnavailable: an answer that is none. Its words may quote a conversation or a key, and are
    shown nowhere."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.status = answer.status
        self._heard = answer.body[:HEARD_BYTES]

    def names(self, field: str) -> bool:
        return field.encode() in self._heard


class Remote:
    """`called` is what errors call it, `settings` the names of those that say where it is and which model."""

    def __init__(
        self, endpoint: Endpoint, *, called: str, model: str, settings: tuple[str, str], key_variable: str
    ) -> None:
        self._endpoint = endpoint
        self._called = called
        self._model = model
        self._settings = settings
        self._key_variable = key_variable
        self._closed = threading.Event()

    @property
    def url(self) -> str:
        return self._endpoint.url

    def ask(
        self, body: bytes, *, attempts: int, first_pause_seconds: float, timeout_seconds: float | None = None
    ) -> Answer:
        """An answer of status 200. ModelUnavailable says why there is none, and `retryable` if there may be one."""
        pause = first_pause_seconds
        for attempt in range(1, attempts + 1):
            if self._closed.is_set():
                raise ModelUnavailable(f"{self._called} is closed")
            try:
                answer = self._endpoint.post(body, timeout_seconds=timeout_seconds)
            except Broken as broken:
                failure, asked_pause = self._unreachable(broken), 0.0
            else:
                if answer.status == 200:
                    return answer
                failure, asked_pause = self._refused(answer), answer.retry_after_seconds
            if not failure.retryable or attempt == attempts:
                raise failure
            # Half of it by chance, so that those who were refused together do not come again together.
            spread = pause * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret
            self._closed.wait(min(max(spread, asked_pause), LONGEST_PAUSE_SECONDS))
            pause *= 2
        raise AssertionError("unreachable")

    def wrong(self, what: str, expected: str) -> ModelUnavailable:
        """For an answer that cannot be right."""
        return ModelUnavailable(
            f"{self._called} {self.url} sent {what}: check that it serves {expected} of {self._model!r}"
        )

    def close(self) -> None:
        """Whoever waits for an answer or for another attempt stops waiting."""
        self._closed.set()
        self._endpoint.close()

    def _unreachable(self, broken: Broken) -> ModelUnavailable:
        if self._closed.is_set():
            return ModelUnavailable(f"{self._called} is closed")
        return ModelUnavailable(
            f"{self._called} {self.url} does not answer ({broken}): start it, or mend the setting {self._settings[0]}",
            retryable=True,
        )

    def _refused(self, answer: Answer) -> ModelUnavailable:
        """Without its words: all agents share a model, and it may quote the conversation of one of them."""
        what = f"{self._called} {self.url} answered {answer.status}"
        is_passing = answer.status in (408, 429) or answer.status >= 500
        if answer.status in (401, 403):
            detail = f"{what}: put a key that it takes into the variable {self._key_variable}"
        elif is_passing:
            detail = f"{what} for model {self._model!r}: it may take it later"
        elif answer.status in OF_WHAT_WAS_SENT:
            detail = (
                f"{what} for model {self._model!r}: it does not take what was sent, or is not what the settings "
                f"{self._settings[0]} and {self._settings[1]} say; its own log tells more"
            )
        else:
            detail = f"{what} for model {self._model!r}: mend the settings {self._settings[0]} and {self._settings[1]}"
        failure = ModelUnavailable(detail, retryable=is_passing)
        failure.__cause__ = Refused(answer)
        return failure


def refusal(error: ModelUnavailable) -> Refused | None:
    return error.__cause__ if isinstance(error.__cause__, Refused) else None


def is_of_what_was_sent(error: ModelUnavailable) -> bool:
    """Whether another prompt may well be taken: this one was too long, or held what a provider does not read."""
    refused = refusal(error)
    return refused is not None and refused.status in OF_WHAT_WAS_SENT


def checked_key(key: str | None, key_variable: str, key_setting: str) -> str:
    """The name of the key's variable as it may be shown: not the key itself, where somebody wrote that there."""
    name = key_variable if re.fullmatch(r"[A-Z_][A-Z_0-9]*", key_variable) else f"that {key_setting} names"
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelUnavailable(f"the variable {name} holds no key, but blanks or foreign letters")
    return name
