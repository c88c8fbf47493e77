"""A port for a process that is about to start."""

from __future__ import annotations

import random
import socket
from collections import deque
from contextlib import suppress

_chance = random.SystemRandom()
"""Two processes that test beside each other may have seeded the usual one alike."""
_claims: deque[socket.socket] = deque(maxlen=200)
"""A process that was given a port may take it only after seconds: until then nobody else here is given it. Claimed by the UDP
port of the same number, which nothing else wants and which is free again when the tests end."""


def free_port() -> int:
    """Below those that the machine gives to connections."""
    while True:
        port = _chance.randrange(20_000, 32_000)
        claim = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as probe, suppress(OSError):
            claim.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
            _claims.append(claim)
            return port
        claim.close()
