"""How a browser comes to speak for a token without ever seeing it.

`offbook ui` asks for a code, which stands in the fragment of a link: a browser sends that to nobody. The page exchanges
it, once, for a session, which it shows as a bearer token. A session is no cookie, so no other page can make a browser
send it, and no other port of this machine is shown it. It is signed rather than kept: it outlives a restart of the
provider, and ends with its time or with the token that it was made for.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import sha256

from offbook.model.errors import Unauthorized
from offbook.model.home import TOKEN_PREFIX, token_digest
from offbook.model.types import Caller

CODE_SECONDS = 300.0
"""For a link that is copied from a remote shell by hand."""
SESSION_SECONDS = 24 * 3600
MOST_CODES = 100
PREFIX = TOKEN_PREFIX + "web_"
DIGEST_CHARS = 64


class SignIn:
    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.digest(key, b"sessions of the web page", "sha256")
        self._clock = clock
        self._codes: dict[str, tuple[str, float]] = {}

    def new_code(self, caller: Caller, callers: Mapping[str, Caller]) -> str:
        """For who may come in as `caller`: the code opens what that token opens."""
        # Whoever opened the socket is the owner, too.
        wanted = [digest for digest, each in callers.items() if each.agents == caller.agents]
        named = [digest for digest in wanted if callers[digest].name == caller.name]
        code = secrets.token_urlsafe(32)
        now = self._clock()
        self._codes = {each: made for each, made in self._codes.items() if made[1] > now}
        while len(self._codes) >= MOST_CODES:
            del self._codes[next(iter(self._codes))]
        self._codes[token_digest(code)] = ((named or wanted)[0], now + CODE_SECONDS)
        return code

    def redeem(self, code: str) -> tuple[str, str]:
        """The session for a code, once, and the digest of the token that it stands for."""
        digest, ends = self._codes.pop(token_digest(code), ("", 0.0))
        if ends < self._clock():
            raise Unauthorized("this link was used already, or is older than five minutes: run `offbook ui` again")
        return self.session(digest), digest

    def session(self, digest: str) -> str:
        """It cannot be prolonged: whoever got hold of it has it no longer than its owner."""
        payload = f"{digest}{int(self._clock()) + SESSION_SECONDS}".encode()
        signed = payload + b"." + hmac.digest(self._key, payload, "sha256")
        return PREFIX + base64.urlsafe_b64encode(signed).decode().rstrip("=")

    def session_of(self, token: str) -> str | None:
        """The digest of the token that a session stands for; None where it is none, or its time is over."""
        digest, seconds = self._read(token)
        return digest if seconds > 0 else None

    def seconds_left(self, token: str) -> int:
        return max(0, int(self._read(token)[1]))

    def _read(self, token: str) -> tuple[str, float]:
        """The digest, and for how long; nothing where it is no session."""
        nothing = "", 0.0
        if not token.startswith(PREFIX):
            return nothing
        try:
            padded = token.removeprefix(PREFIX)
            signed = base64.urlsafe_b64decode(padded + "=" * (-len(padded) % 4))
        except (binascii.Error, ValueError):
            return nothing
        payload, signature = signed[: -sha256().digest_size - 1], signed[-sha256().digest_size :]
        if not hmac.compare_digest(signature, hmac.digest(self._key, payload, "sha256")):
            return nothing
        digest, ends = payload[:DIGEST_CHARS].decode("latin-1"), payload[DIGEST_CHARS:]
        return (digest, int(ends) - self._clock()) if ends.isdigit() else nothing
