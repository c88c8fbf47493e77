"""What people use: `AsyncClient`, and `Client` for those who block."""

from __future__ import annotations

from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.client.endpoint import Endpoint
from offbook.client.outboxes import deliver_outboxes
from offbook.client.recorder import MessageLike

__all__ = ["AsyncClient", "Client", "Endpoint", "MessageLike", "deliver_outboxes"]
