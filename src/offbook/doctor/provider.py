"""The provider: does it answer, and who has the folder if it does not."""

from __future__ import annotations

import ssl

from offbook.client.answers import content_of
from offbook.client.endpoint import Endpoint
from offbook.client.transport import Transport
from offbook.doctor.finding import Finding
from offbook.doctor.folder import lock_holder
from offbook.errors import ProviderError, ProviderRefused, ProviderUnavailable
from offbook.home import Home
from offbook.settings import Settings

ANSWER_SECONDS = 5.0


async def check_socket(home: Home) -> Finding:
    try:
        await _ping(Endpoint(scheme="unix", path=str(home.socket)), None)
    except ProviderUnavailable:
        what = f"nobody answers at {home.socket}"
        return Finding(check="provider", level="fail", what=what, mend="offbook serve")
    except ProviderError as error:
        return Finding(check="provider", level="fail", what=error.detail, mend="see the provider's log")
    return Finding(check="provider", level="ok", what=f"answers at {home.socket}")


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
    mend = "was it started with another --port, or before the setting changed? If so, all is well; else start it again"
    try:
        await _ping(where, home.token.read_text().strip(), trusting=server.tls_cert)
    except ProviderRefused as error:
        mend = f"another provider may listen there: look with `ss -ltnp 'sport = :{server.port}'`"
        return Finding(
            check="port", level="warn", what=f"{where} refuses this folder's token: {error.detail}", mend=mend
        )
    except (ProviderError, OSError):
        return Finding(check="port", level="warn", what=f"nobody answers at {where}", mend=mend)
    return Finding(check="port", level="ok", what=f"answers at {where}")


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
