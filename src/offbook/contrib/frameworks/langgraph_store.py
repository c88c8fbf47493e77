"""A `BaseStore` of LangGraph whose items are memory.

An item is a session of the agent's, in which each `put` is one message: so `search` with a query is `recall`, what is
put also comes to mind in conversations, `delete` forgets for good, and an older value stays in the log. Which items
there are says another session, by names only; it is followed, and values are read when they are asked for. What was
read before is read again before it is given, unless nothing was forgotten since: elsewhere, the names do not say so.

`put` never waits, for no read either: it is in the outbox. Where the provider is away, or late beyond five seconds and
the client's `timeout_seconds`, the store answers with what this process has put and read, newest first, says so in the
log, and asks nothing for a while.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)
from langgraph.store.memory import InMemoryStore

from offbook.client.blocking import Client
from offbook.client.messages import message_of
from offbook.client.recorder import encoded
from offbook.model.errors import ProviderError, ProviderUnavailable, WrongShape
from offbook.model.memory_entry import Reach
from offbook.model.types import MAX_KEY_BYTES, Message

# ── A value of a LangGraph store as a message of ours and back, and the session of an item ──

Name = tuple[tuple[str, ...], str]
"""A namespace and a key."""
MARK = "langgraph"
PIECE_CHARS = 32_000
"""Of a long value: what is longer than `store.externaliseChars` is not in the log itself."""


def message_of_value(namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> Message:
    """Raises WrongShape where the value is not JSON: it could not be given back."""
    heading = f"Noted as {key} of {', '.join(namespace)}:"
    try:
        text = encoded(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongShape(f"the value of {key!r} is not JSON: {error}") from None
    pieces = [heading, *(text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))]
    blocks = [{"type": "text", "text": piece} for piece in pieces]
    return message_of({"role": "assistant", "content": blocks, "meta": {MARK: {"key": key}}})


def value_in(message: Message) -> dict[str, Any] | None:
    """None for one that was forgotten."""
    if isinstance(message.content, str):
        return None
    text = "".join(block["text"] for block in message.content[1:])
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:  # a secret was cut out of it, and more than the secret
        return {"text": text}
    return value if isinstance(value, dict) else {"text": text}


def session_of(store: str, name: Name) -> str:
    parts = "/".join(quote(part, safe="") for part in (*name[0], name[1]))
    session_id = f"{store}/{parts}"
    if len(session_id.encode()) <= MAX_KEY_BYTES:
        return session_id
    return f"{store}/sha256/{hashlib.sha256(parts.encode()).hexdigest()}"


MOST_RECALLED = 100
"""All that one recall tells."""
FEW_RECALLED = 30
"""So few are all there are: recall looks at twice as many before it leaves any out (`retrieval.candidates`)."""
MOST_ASKED = 50
"""Items that one search asks for by themselves, each with a recall of its own and read before, if it was not yet: the
newest of those it could."""
MOST_READ_AGAIN = 10
"""Items that are read again for an answer, about as long as it takes to ask whether anything was forgotten: where there
are more, that is asked first."""
PAGE = 1_000
REST_SECONDS = 5.0  # after a read that nobody answered
log = logging.getLogger("offbook.integrations")


class OffbookStore(BaseStore):
    """For any thread, and from asyncio. `name` tells stores of one agent apart. Values are JSON. A TTL is refused:
    nothing here is forgotten by itself. `index` means nothing: all of a value can be found.

    `search` with a query gives what recall finds, which may be fewer than `limit`: among the agent's best hundred hits,
    conversations and all, and beyond them among the fifty newest items below the prefix that may fit the filter.

    A namespace whose items were all forgotten elsewhere is listed until they are asked for."""

    def __init__(self, memory: Client, *, name: str = "langgraph-store", agent_id: str | None = None) -> None:
        self._memory = memory
        self._names_session = name
        self._agent_id = agent_id
        self._held = InMemoryStore()  # what is known here, and the answers to what needs no recall
        self._sessions: dict[str, Name] = {}
        self._names: dict[Name, None] = {}  # the items there are, the newest last
        self._unread: set[Name] = set()
        self._fresh: set[Name] = set()  # read for the answer that is being made; only while `_reading` is held
        self._read_since: set[Name] = set()  # while the agent had forgotten so often; as `_fresh` is
        self._forgets: int | None = None
        self._last_seq = 0
        self._rest_until = 0.0
        self._writes = 0
        self._written: dict[Name, int] = {}  # which write of this store's was the last of an item
        self._changing = threading.RLock()  # what is above, and never while the provider is asked
        self._reading = threading.Lock()  # one read at a time, however long: an older answer comes before a newer one

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._done(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        if all(isinstance(op, PutOp) and op.value is not None for op in ops):
            return self.batch(ops)  # on no thread: reads that wait may have them all
        return await asyncio.to_thread(self.batch, ops)

    def _done(self, op: Op) -> Result:
        validate_op_namespace(op)
        if isinstance(op, PutOp):
            (self._delete if op.value is None else self._put)(op)
            return None
        with self._reading:
            return self._found(op)

    def _found(self, op: Op) -> Result:
        with self._changing:
            began = self._writes  # what is written from here on is newer than what is about to be read
        self._fresh.clear()
        is_current = self._follow(began)
        if isinstance(op, GetOp):
            with self._changing:
                is_known = (op.namespace, op.key) in self._names
            self._read_those([(op.namespace, op.key)] if is_known else [], began)
        elif isinstance(op, SearchOp):
            if op.query and is_current:
                return self._recalled(op, began)
            self._read(op.namespace_prefix, began)
            asked = op._replace(query=None)
            return self._current(lambda: self._searched(asked), began)
        elif isinstance(op, ListNamespacesOp):
            self._read((), began)
        with self._changing:
            return self._held.batch([op])[0]

    # ── what is written ──

    def _put(self, op: PutOp) -> None:
        name = (op.namespace, op.key)
        said = message_of_value(op.namespace, op.key, dict(op.value or {}))
        with self._changing:
            self._memory.record(self._session_of(name), said, agent_id=self._agent_id)
            self._write(name, "kept", value_in(said))

    def _delete(self, op: PutOp) -> None:
        name = (op.namespace, op.key)
        with self._changing:
            write = self._write(name, "deleted", None)
        if not self._memory.settle():
            raise ProviderUnavailable(
                f"the item {op.key!r} is no longer given, but not yet forgotten: nobody answers; see "
                "`offbook status`, and delete it again"
            )
        self._memory.forget(session_id=self._session_of(name), reason="deleted", agent_id=self._agent_id)
        with self._changing:
            newer = self._held.get(*name) if self._written[name] != write else None
        if newer is not None:  # put meanwhile, by another thread: it may have been forgotten with the rest
            self._put(PutOp(*name, newer.value))

    def _write(self, name: Name, what: str, value: dict[str, Any] | None) -> int:
        meta = {MARK: {"namespace": list(name[0]), "key": name[1], "what": what}}
        noted = Message(role="system", content=f"{what}: {'/'.join(name[0])}/{name[1]}", meta=meta)
        self._memory.record(self._names_session, noted, agent_id=self._agent_id)
        self._unread.discard(name)
        self._note(name, is_kept=value is not None)
        self._held.batch([PutOp(*name, value)])
        self._writes += 1
        self._written[name] = self._writes
        return self._writes

    def _note(self, name: Name, *, is_kept: bool) -> None:
        self._names.pop(name, None)
        if is_kept:
            self._names[name] = None

    # ── what is read ──

    def _follow(self, began: int) -> bool:
        """Which items others have put and deleted. False where that cannot be known now."""
        if self._is_resting:
            return False
        try:
            if not self._memory.settle():  # what is on its way from here is newer than what would be read
                raise ProviderUnavailable("what was put has not arrived")
            while lines := self._lines(self._names_session, self._last_seq, PAGE):
                with self._changing:
                    for line in lines:
                        self._take(line["message"], began)
                        self._last_seq = line["seq"]
        except ProviderError as error:
            self._warn(error)
            return False
        return True

    def _take(self, noted: dict[str, Any], began: int) -> None:
        mark = (noted.get("meta") or {}).get(MARK)
        if mark is None:  # forgotten
            return
        name = (tuple(mark["namespace"]), mark["key"])
        self._session_of(name)
        if mark["what"] == "kept" or self._written.get(name, 0) > began:  # what came last is known when it is read
            self._unread.add(name)
            self._note(name, is_kept=True)
        else:
            self._unread.discard(name)
            self._note(name, is_kept=False)
            self._held.batch([PutOp(*name, None)])

    def _read(self, prefix: tuple[str, ...], began: int) -> None:
        with self._changing:
            below = [name for name in self._unread if name[0][: len(prefix)] == prefix]
        if len(below) > MOST_READ_AGAIN and self._forgets is None:  # else all would be read again the next time
            self._count_forgets()
        self._read_those(below, began)

    def _current(self, look: Callable[[], list[SearchItem]], began: int) -> list[SearchItem]:
        """What `look` finds, once nothing in it can have been forgotten before this was asked."""
        while True:
            found = look()
            older = [name for name in map(_name_of, found) if name not in self._fresh]
            if len(older) > MOST_READ_AGAIN:
                self._count_forgets()
                older = [name for name in older if name not in self._read_since]
            if not older or not self._read_those(older, began):
                return found

    def _count_forgets(self) -> None:
        try:
            forgets = None if self._is_resting else self._memory.status(self._agent_id).get("forgets")
        except ProviderError as error:
            self._warn(error)
            forgets = None
        if forgets is None or forgets != self._forgets:
            self._read_since.clear()
        self._forgets = forgets

    def _read_those(self, names: list[Name], began: int) -> bool:
        """False where they could not be read."""
        if self._is_resting:
            return False
        try:
            for name in names:
                lines = self._lines(self._session_of(name), 0, 1, newest=True)
                with self._changing:
                    if self._written.get(name, 0) <= began:
                        self._hold(name, lines[0] if lines else None)
                        self._unread.discard(name)
                self._fresh.add(name)
                self._read_since.add(name)
        except ProviderError as error:
            self._warn(error)
            return False
        return True

    @property
    def _is_resting(self) -> bool:
        return time.monotonic() < self._rest_until

    def _warn(self, error: ProviderError) -> None:
        if isinstance(error, ProviderUnavailable):  # one that refuses something may do better the next time
            self._rest_until = time.monotonic() + REST_SECONDS
        log.warning("the store answers with what this process knows: %s", error)

    def _hold(self, name: Name, line: dict[str, Any] | None) -> None:
        value = value_in(msgspec.convert(line["message"], Message)) if line is not None else None
        self._held.batch([PutOp(*name, value)])
        if line is None or value is None:
            return
        item = self._held.get(*name)
        if isinstance(item, Item):  # the time it was put, not the time it was read
            item.updated_at = item.created_at = _time_of(line["message"].get("ts") or line["receivedAt"])

    def _recalled(self, op: SearchOp, began: int) -> list[SearchItem]:
        """What recall finds of the items, best first; what it does not find is no answer. It cannot be asked for items
        alone: where so much was found that items may have been left out, those are asked for one by one."""
        scores: dict[Name, float] = {}
        try:
            is_all = self._ask(op, self._names_session, "agent", scores) < FEW_RECALLED
        except ProviderError as error:
            self._warn(error)
            return self._searched(op._replace(query=None))
        with self._changing:
            unread = [name for name in scores if name in self._unread]
        self._read_those(unread, began)
        if not is_all and len(self._below(op).keys() & scores.keys()) < op.offset + op.limit:
            self._ask_newest(op, scores, began)
        return self._current(lambda: self._best(op, scores), began)

    def _best(self, op: SearchOp, scores: dict[Name, float]) -> list[SearchItem]:
        items = self._below(op)
        best = sorted((name for name in scores if name in items), key=lambda name: -scores[name])
        for name in best:
            items[name].score = scores[name]
        return [items[name] for name in best[op.offset : op.offset + op.limit]]

    def _ask_newest(self, op: SearchOp, scores: dict[Name, float], began: int) -> None:
        prefix, items = op.namespace_prefix, self._below(op)
        with self._changing:
            below = [name for name in reversed(self._names) if name[0][: len(prefix)] == prefix and name not in scores]
            newest = [name for name in below if name in self._unread or name in items][:MOST_ASKED]
            unread = [name for name in newest if name in self._unread]
        self._read_those(unread, began)
        items = self._below(op)
        try:
            for name in newest:
                if name in items:
                    self._ask(op, self._session_of(name), "session", scores)
        except ProviderError as error:  # what was found so far is an answer
            self._warn(error)

    def _ask(self, op: SearchOp, session_id: str, scope: Reach, scores: dict[Name, float]) -> int:
        """How many there were; those that are items are in `scores`. What is everywhere said has one measure, so scores
        of one session stand beside those of all."""
        agent_id = self._agent_id
        found = self._memory.recall(session_id, op.query or "", limit=MOST_RECALLED, scope=scope, agent_id=agent_id)
        for entry in found.entries:
            name = self._sessions.get(entry.session_id)
            if name is not None and entry.score >= 0:
                scores[name] = max(entry.score, scores.get(name, 0.0))
        return len(found.entries)

    def _below(self, op: SearchOp) -> dict[Name, SearchItem]:
        every = op._replace(query=None, offset=0, limit=max(1, len(self._sessions)))
        return {_name_of(one): one for one in self._searched(every)}

    def _searched(self, op: SearchOp) -> list[SearchItem]:
        with self._changing:
            found = self._held.batch([op])[0]
        return [one for one in found if isinstance(one, SearchItem)] if isinstance(found, list) else []

    def _lines(self, session_id: str, after_seq: int, limit: int, *, newest: bool = False) -> list[dict[str, Any]]:
        page = self._memory.log(session_id, after_seq, limit, newest=newest, agent_id=self._agent_id)
        return list(page["messages"])

    def _session_of(self, name: Name) -> str:
        session_id = session_of(self._names_session, name)
        self._sessions[session_id] = name
        return session_id


def _name_of(item: Item) -> Name:
    return tuple(item.namespace), item.key


def _time_of(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
