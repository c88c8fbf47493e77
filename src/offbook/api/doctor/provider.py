"""The provider: does it answer, and who has the folder if it does not."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from offbook.api.doctor.finding import Finding
from offbook.client.endpoint import Endpoint, default_endpoint, default_token
from offbook.client.transport import Transport, content_of
from offbook.model.errors import OffbookError, ProviderError, ProviderRefused, ProviderUnavailable, SettingsError
from offbook.model.home import Home, lock_holder
from offbook.model.private_files import read_private
from offbook.model.settings import Settings

ANSWER_SECONDS = 5.0


async def check_socket(home: Home) -> Finding:
    return await check_endpoint(Endpoint(scheme="unix", path=str(home.socket)), None)


async def check_chosen(environ: Mapping[str, str]) -> Finding:
    """The provider that OFFBOOK_URL or OFFBOOK_SOCKET names: the one that clients of this shell ask."""
    try:
        endpoint = default_endpoint(environ)
    except OffbookError as error:
        mend = "mend OFFBOOK_URL: unix:///path, http://host:port, https://host:port"
        return Finding(check="provider", level="fail", what=error.detail, mend=mend)
    try:
        token = default_token(endpoint, environ)
    except OffbookError as error:
        return Finding(check="provider", level="fail", what=error.detail, mend="unset OFFBOOK_TOKEN, or set it")
    return await check_endpoint(endpoint, token)


async def check_endpoint(endpoint: Endpoint, token: str | None) -> Finding:
    where = endpoint.path if endpoint.scheme == "unix" else str(endpoint)
    try:
        await _ping(endpoint, token)
    except ProviderUnavailable:
        return Finding(check="provider", level="fail", what=f"nobody answers at {where}", mend="offbook serve")
    except ProviderRefused as error:
        mend = "set OFFBOOK_TOKEN to a token that it knows" if error.document.get("status") == 401 else None
        return Finding(check="provider", level="fail", what=error.detail, mend=mend or "see the provider's log")
    except ProviderError as error:
        return Finding(check="provider", level="fail", what=error.detail, mend="see the provider's log")
    return Finding(check="provider", level="ok", what=f"answers at {where}")


def check_lock(home: Home, *, is_answering: bool) -> Finding:
    if is_answering:  # asking for the lock could get in the way of a provider that starts just now
        return Finding(check="lock", level="ok", what="held by the provider")
    holder = lock_holder(home)
    if holder is not None:
        mend = f"it hangs or is starting: see its log, or end it (kill {holder})"
        return Finding(
            check="lock", level="fail", what=f"process {holder} owns the folder, without answering", mend=mend
        )
    if home.socket.exists():
        mend = "`offbook doctor --fix` removes it; so does the next `offbook serve`"
        return Finding(check="lock", level="warn", what=f"{home.socket} is stale: nobody listens on it", mend=mend)
    return Finding(check="lock", level="ok", what="free")


async def check_port(home: Home, settings: Settings) -> Finding:
    """Over TCP, with the owner's token."""
    server = settings.server
    if not server.port:
        return Finding(check="port", level="ok", what="not asked for: the socket only")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)  # noqa: S104 - any address is ours, too
    where = Endpoint(scheme="https" if server.tls_cert else "http", host=host, port=server.port)
    is_default = server.port == Settings().server.port
    mend = "was it started with another --port, or before the setting changed? If so, all is well; else start it again"
    try:
        await _ping(where, read_private(home.token).decode(errors="replace").strip(), trusting=server.tls_cert)
    except ProviderRefused as error:
        if is_default:
            return _other_port_hint(f"another provider has {where}")
        mend = f"another provider may listen there: look with `ss -ltnp 'sport = :{server.port}'`"
        return Finding(
            check="port", level="warn", what=f"{where} refuses this folder's token: {error.detail}", mend=mend
        )
    except (ProviderError, SettingsError, OSError):
        if is_default:
            return _other_port_hint(f"nobody answers at {where}")
        return Finding(check="port", level="warn", what=f"nobody answers at {where}", mend=mend)
    return Finding(check="port", level="ok", what=f"answers at {where}")


def _other_port_hint(what: str) -> Finding:
    """Nobody chose that port here: the provider was told another one, or none, in another shell."""
    return Finding(check="port", level="ok", what=f"the socket only, or another port ({what})")


async def _ping(endpoint: Endpoint, token: str | None, *, trusting: str | None = None) -> None:
    tls = None if trusting is None else _context(trusting)
    async with Transport(endpoint, token=token, timeout_seconds=ANSWER_SECONDS, tls=tls) as transport:
        content_of(await transport.get("/v1/ping"))


def _context(certificate: str) -> ssl.SSLContext:
    """Trusts the provider's own certificate, whoever signed it and whatever name it is for, and no other."""
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
