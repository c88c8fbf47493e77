"""A port for a process that is about to start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

_chance = random.SystemRandom()
"""Two processes that test beside each other may have seeded the usual one alike."""


def free_port() -> int:
    """Below those that the machine gives to connections: it is taken only when the process has started."""
    while True:
        port = _chance.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
