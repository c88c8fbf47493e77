"""Where a provider listens, and the token it wants to see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from offbook.model.errors import InvalidInput
from offbook.model.home import home_folder
from offbook.model.origins import is_loopback
from offbook.model.private_files import read_private


class Endpoint(msgspec.Struct, frozen=True):
    """Where a provider listens. `path` is the socket's, or what stands before `/v1` in a URL. `others`: further nodes
    of the same provider, for where this one is not reached."""

    scheme: Literal["unix", "http", "https"]
    path: str = ""
    host: str = ""
    port: int = 0
    others: tuple[Endpoint, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """`unix:///path/sock`, `http://host:port`, `https://host:port`, or the bare path of a socket. Where a provider
        has several nodes, their URLs with commas between them."""
        urls = [url.strip() for url in text.split(",")]
        if len(urls) > 1 and all(url.startswith(("http://", "https://")) for url in urls):
            first, *others = map(cls.parse, urls)
            return msgspec.structs.replace(first, others=tuple(others))
        if text.startswith("/"):
            return cls(scheme="unix", path=text)
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise InvalidInput(f"endpoint {text!r} cannot be read: {error}") from None
        if parts.scheme == "unix" and parts.path and not parts.netloc:
            return cls(scheme="unix", path=unquote(parts.path))
        if parts.scheme in ("http", "https") and parts.hostname:
            return _tcp_endpoint(parts, parts.hostname, port)
        raise InvalidInput(f"endpoint {text!r} is none of unix:///path/to/socket, http://host:port, https://host:port")

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix://{self.path}"
        return ",".join([f"{self.scheme}://{self.authority}{self.path}", *map(str, self.others)])

    @property
    def authority(self) -> str:
        """What goes in the Host header. A socket has no host; every provider answers to localhost."""
        if self.scheme == "unix":
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host) and all(other.is_loopback for other in self.others)


def _tcp_endpoint(parts: SplitResult, host: str, port: int | None) -> Endpoint:
    path = parts.path.rstrip("/")
    if not (path.isascii() and path.isprintable() and " " not in path and host.isprintable()):
        raise InvalidInput(f"endpoint {parts.geturl()!r} holds characters that no URL has")
    if parts.scheme == "https":
        return Endpoint(scheme="https", path=path, host=host, port=443 if port is None else port)
    return Endpoint(scheme="http", path=path, host=host, port=80 if port is None else port)


def default_endpoint(environ: Mapping[str, str]) -> Endpoint:
    """OFFBOOK_URL, else OFFBOOK_SOCKET, else the socket in the data folder."""
    if url := environ.get("OFFBOOK_URL"):
        return Endpoint.parse(url)
    path = environ.get("OFFBOOK_SOCKET") or home_folder(environ) / "offbook.sock"
    return Endpoint(scheme="unix", path=str(path))


def default_token(endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    """OFFBOOK_TOKEN, else for TCP the token in the data folder, which no other machine ever gets to see.

    Raises InvalidInput where OFFBOOK_TOKEN is there and empty: whoever meant a token of less must not get the owner's.
    """
    token = environ.get("OFFBOOK_TOKEN")
    if token is not None:
        if not token.strip():
            raise InvalidInput(
                "OFFBOOK_TOKEN is set and empty: set it to a token (`offbook token create` makes one), or "
                "`unset OFFBOOK_TOKEN` to ask as the owner of the data folder"
            )
        return token
    if not endpoint.is_loopback:
        return None
    try:
        return read_private(home_folder(environ) / "token").decode().strip() or None
    except (OSError, UnicodeDecodeError):
        return None
