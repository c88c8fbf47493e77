"""What is new in a transcript, recorded. Whatever happens in between, nothing is lost and nothing stored twice.

A message goes to the outbox, on disk for good, before the place is kept: a hook that is killed, or a machine that loses
its power, leaves messages that the next one reads again, under the same ids. The ids are those of `offbook import`, so
that neither doubles what the other stored.
"""

from __future__ import annotations

from typing import NamedTuple

from offbook.client.clients import Client
from offbook.hosts.coding.agents import Session
from offbook.hosts.coding.places import Places
from offbook.hosts.coding.tail import lines_behind
from offbook.portability.conversations import Damage, Ready

BYTES_AT_ONCE = 8 * 1024 * 1024
"""Of a transcript, in one call: what a hook reads in well under a second. What is left is read by the next."""


class Captured(NamedTuple):
    """`is_kept` False: the outbox took no more, and the same lines are read again the next time."""

    messages: int = 0
    damaged: int = 0
    is_kept: bool = True


def capture(
    client: Client,
    session: Session,
    places: Places,
    *,
    limit_bytes: int = BYTES_AT_ONCE,
    patience_seconds: float = 0.2,
) -> Captured:
    """Raises ReadByAnother, OSError."""
    if session.transcript is None or session.told is None:
        return Captured()
    with places.held(session.transcript, patience_seconds=patience_seconds):
        begun = place = places.of(session.transcript)
        messages = damaged = 0
        for line, behind in lines_behind(session.transcript, begun, limit_bytes):
            place = behind
            told = line if line is None or isinstance(line, Damage) else session.told(line)
            if isinstance(told, Ready):
                client.record(session.key, told.wire)
                messages += 1
            damaged += isinstance(told, Damage)
        is_kept = not messages or _is_kept(client, messages)
        if is_kept and place != begun:
            places.keep(session.transcript, place)
    return Captured(messages, damaged, is_kept)


def _is_kept(client: Client, messages: int) -> bool:
    """Whether the outbox has them on disk for good, every one, or the provider has them."""
    if client.outbox_status()["invalid"] >= messages:  # all of them: it is not the messages
        return False
    return client.sync() or (client.settle(1.0) and client.sync())
