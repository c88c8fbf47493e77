"""The hot swap sessions of a host that has many conversations, each begun when it is first needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.model.errors import OffbookError

MOST_SESSIONS = 1_000
"""Held at a time. One that was let go begins again with what the provider has of it."""


class Sessions:
    """For any thread; `options` are those of `HotSwapSession`."""

    def __init__(self, memory: Client, options: dict[str, Any], most: int = MOST_SESSIONS) -> None:
        self._memory = memory
        self._options = options
        self._most = most
        self._held: OrderedDict[str, _Begun] = OrderedDict()
        self._changing = threading.Lock()

    def of(self, session_id: str) -> BlockingHotSwapSession:
        let_go = None
        with self._changing:
            begun = self._held.get(session_id)
            if begun is None:
                begun = _Begun(BlockingHotSwapSession(self._memory, session_id, **self._options))
                self._held[session_id] = begun
                let_go = self._held.popitem(last=False)[1] if len(self._held) > self._most else None
            self._held.move_to_end(session_id)
        if let_go is not None:
            let_go.session.close()
        return begun.get()


class _Begun:
    """A session that has begun when it is got: what is added before that would be taken for new."""

    def __init__(self, session: BlockingHotSwapSession) -> None:
        self.session = session
        self._has_begun = False
        self._beginning = threading.Lock()  # its own: a provider that is slow holds up no other conversation

    def get(self) -> BlockingHotSwapSession:
        with self._beginning:
            if not self._has_begun:
                self.session.start()
                self._has_begun = True
        return self.session


# ── What a module of this package says where its framework is not installed ──


class MissingExtra(OffbookError, ImportError):
    """A framework is not installed."""


def missing(framework: str, extra: str, error: ImportError) -> MissingExtra:
    return MissingExtra(f"{framework} is not installed ({error}): run `pip install 'offbook[{extra}]'`")
