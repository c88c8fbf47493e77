"""Which messages of a host's whole context the log does not hold yet, where they have no ids. Pure, and linear.

A context is the end of the conversation, so it is held against the end of the log, twice as long as itself
(the log may hold what the host left out). What the context holds more of than the log is new; of equal messages
the later ones. Saved once, the same context has nothing new: a retry doubles nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

LOG_FOR_EACH_GIVEN = 2


def unsaved(given: Sequence[bytes], logged: Sequence[bytes]) -> list[int]:
    """The places in `given` that are new. Both are fingerprints, oldest first; `logged` is the end of the log."""
    left = Counter(logged)
    new: list[int] = []
    for place, fingerprint in enumerate(given):
        if left[fingerprint]:
            left[fingerprint] -= 1
        else:
            new.append(place)
    return new
