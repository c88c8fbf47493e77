"""That sessions have ended: one small file each in the data folder, until the provider has heard of it.

An end is told behind the messages it is the end of. Where those wait in the outbox, so does the file, and whoever
empties the outbox next (a hook of any session, `offbook flush`) tells it. Told twice it is the same end.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from offbook.client.clients import Client
from offbook.client.courier import concerns_messages
from offbook.client.endpoint import Endpoint
from offbook.client.outboxes import folders_that_wait, is_addressed_to, waiting_in
from offbook.client.recorder import encoded
from offbook.model.errors import ProviderError, ProviderRefused
from offbook.model.private_files import make_private, write_private
from offbook.model.types import Value

_SUFFIX = ".end"


class End(Value, frozen=True):
    """`endpoint`: whom it is meant for. `body`: as it goes over the wire."""

    endpoint: str
    body: dict[str, Any]


class Ends:
    """Those of one host, in the folder `hooks/<host>` of a data folder."""

    def __init__(self, home: Path, host: str) -> None:
        self._home = home
        self._host = host
        self._folder = home / "hooks" / host

    def keep(self, client: Client, session_id: str, reason: str | None) -> None:
        """Raises OSError."""
        named = {"sessionId": session_id, "agentId": client.agent_id, "reason": reason}
        body = {name: value for name, value in named.items() if value is not None}
        for folder in (self._folder.parent, self._folder):
            make_private(folder)
        write_private(
            self._file(client, session_id), encoded({"endpoint": str(client.endpoint), "body": body}).decode()
        )

    def drop(self, client: Client, session_id: str) -> None:
        """The session goes on."""
        with suppress(OSError):
            self._file(client, session_id).unlink()

    def tell(
        self, client: Client, *, seconds: float, endpoint: Endpoint | None = None, own: Collection[str] = ()
    ) -> int:
        """How many the provider has heard of. With `endpoint` (and `own`, its other names) only what is meant for it;
        none while messages wait behind which they would have to come. Raises OSError."""
        until, delivered = time.monotonic() + seconds, 0
        for path, end in self._waiting(endpoint, own):
            if time.monotonic() > until:
                break
            try:
                client.call("hooks/session-end", end.body)
                delivered += 1
            except ProviderRefused as refusal:
                if not concerns_messages(refusal):
                    continue  # it may be for an agent that this token is not for
            except ProviderError:
                break
            path.unlink(missing_ok=True)
        return delivered

    def _waiting(self, endpoint: Endpoint | None, own: Collection[str]) -> Iterator[tuple[Path, End]]:
        paths = sorted(self._folder.glob(f"*{_SUFFIX}"))
        if not paths or any(map(waiting_in, folders_that_wait(self._home, self._host, endpoint, own))):
            return
        for path in paths:
            with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):  # such a file goes with its age
                end = msgspec.json.decode(path.read_bytes(), type=End)
                if endpoint is None or is_addressed_to(endpoint, end.endpoint, own):
                    yield path, end

    def _file(self, client: Client, session_id: str) -> Path:
        # As with places: two hooks may record a session, each for an agent of its own.
        named = "\0".join((str(client.endpoint), client.agent_id or "", session_id))
        return self._folder / (sha256(named.encode(errors="replace")).hexdigest()[:32] + _SUFFIX)


def hosts_with_ends(home: Path) -> list[str]:
    """Of which hosts there are any."""
    return sorted({path.parent.name for path in (home / "hooks").glob(f"*/*{_SUFFIX}")})
