"""Offbook: the memory that every serious AI agent runs on.

from offbook import Client

with Client() as memory:                                   # a running daemon, over its socket
    memory.record("chat", ("user", "My cat is called Ada."))  # returns at once, delivered in the background

from offbook import AsyncClient, open_memory               # the same, async; or without a daemon
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name; `typing` would be nearly all of what this import costs
if TYPE_CHECKING:
    from offbook.api.embedded import open_memory
    from offbook.api.memory import Memory
    from offbook.client.async_client import AsyncClient
    from offbook.client.blocking import Client
    from offbook.client.blocking_hot_swap import BlockingHotSwapSession
    from offbook.client.hot_swap import HotSwapSession
    from offbook.client.placement import placed
    from offbook.model.errors import OffbookError
    from offbook.model.types import CompressedContext, Message, Receipt, Scope

    __version__: str

__all__ = [
    "AsyncClient",
    "BlockingHotSwapSession",
    "Client",
    "CompressedContext",
    "HotSwapSession",
    "Memory",
    "Message",
    "OffbookError",
    "Receipt",
    "Scope",
    "__version__",
    "open_memory",
    "placed",
]

_HOMES = {
    "AsyncClient": "offbook.client.async_client",
    "BlockingHotSwapSession": "offbook.client.blocking_hot_swap",
    "Client": "offbook.client.blocking",
    "CompressedContext": "offbook.model.types",
    "HotSwapSession": "offbook.client.hot_swap",
    "Memory": "offbook.api.memory",
    "Message": "offbook.model.types",
    "OffbookError": "offbook.model.errors",
    "Receipt": "offbook.model.types",
    "Scope": "offbook.model.types",
    "open_memory": "offbook.api.embedded",
    "placed": "offbook.client.placement",
}


def __getattr__(name: str) -> object:
    """Loaded when first used: `import offbook` costs next to nothing."""
    from importlib import import_module

    if name == "__version__":
        return import_module("offbook.model.version").VERSION
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'offbook' has no attribute {name!r}")
