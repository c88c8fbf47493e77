"""The deliveries of this process: one per destination, shared by its clients."""

from __future__ import annotations

import atexit
import os
import threading
from concurrent.futures import CancelledError, Future
from contextlib import suppress

from offbook.client.delivery import CLOSE_FLUSH_SECONDS, Delivery, Destination
from offbook.client.outboxes import open_outbox

_deliveries: dict[Destination, Delivery] = {}
_deliveries_lock = threading.RLock()
_inherited: list[Delivery] = []


def join_delivery(destination: Destination, user: object) -> Delivery:
    """The delivery of this process for `destination`, opened if need be. Raises OutboxBusy."""
    with _deliveries_lock:
        delivery = _deliveries.get(destination)
        if delivery is not None and delivery.outbox.is_closed:
            del _deliveries[destination]
            delivery = None
        if delivery is None:
            outbox = open_outbox(
                destination.home, destination.client, endpoint=destination.endpoint, max_bytes=destination.max_bytes
            )
            # A signal handler that records may have opened one while this thread was at it.
            delivery = _deliveries.setdefault(destination, Delivery(destination, outbox))
            if delivery.outbox is not outbox:
                outbox.close()
        delivery.users.add(id(user))
        return delivery


def leave_delivery(delivery: Delivery, user: object) -> Future[None] | None:
    """The last one to leave closes it, or the end of the process as long as something is in memory only."""
    with _deliveries_lock:
        delivery.users.discard(id(user))
        if delivery.users or (delivery.outbox.waiting and delivery.outbox.in_memory_bytes):
            return None
        for destination in [known for known, each in _deliveries.items() if each is delivery]:
            del _deliveries[destination]
    return delivery.close()


def _close_all() -> None:
    with _deliveries_lock:
        deliveries = list(_deliveries.values())
        _deliveries.clear()
    flushes = [delivery.flush(gives_up_early=True) for delivery in deliveries]
    for delivery, flush in zip(deliveries, flushes, strict=True):
        with suppress(TimeoutError, CancelledError):
            flush.result(CLOSE_FLUSH_SECONDS)
        with suppress(TimeoutError):
            delivery.close().result(CLOSE_FLUSH_SECONDS)


def _forget_after_fork() -> None:
    """In a forked child the threads are gone, and the outboxes, the parent's, are closed already."""
    global _deliveries_lock  # noqa: PLW0603 - another thread of the parent may have held it
    _deliveries_lock = threading.RLock()
    # Kept, so that nothing of the parent's event loop is finalised here: it would reach into the parent's.
    _inherited.extend(_deliveries.values())
    _deliveries.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_after_fork)
