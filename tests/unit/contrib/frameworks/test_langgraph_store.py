"""A store whose provider is late, or whose items change while it is asked."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from offbook import Client
from offbook.contrib.frameworks import langgraph_store
from offbook.contrib.frameworks.langgraph_store import OffbookStore, session_of
from offbook.model.errors import ProviderError, ProviderUnavailable
from offbook.model.memory_entry import MemoryEntry, Recollection
from offbook.model.types import Message

AT, KEY = ("a", "b"), "k"


class FakeClient:
    """A client and its provider in one: what is recorded has arrived. `before` is what happens before an answer."""

    def __init__(self) -> None:
        self.lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.before: dict[str, Callable[[], Any]] = {}
        self.asked: list[str] = []
        self.is_settled = True
        self.received = 0
        self.forgets: int | None = 0

    def _answering(self, verb: str) -> None:
        self.asked.append(verb)
        self.before.pop(verb, lambda: None)()

    def record(self, session_id: str, message: Message, *, agent_id: str | None = None) -> None:
        line = {"seq": len(self.lines[session_id]) + 1, "message": msgspec.to_builtins(message)}
        self.received += 1
        at = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=self.received)
        self.lines[session_id].append({**line, "receivedAt": at.isoformat()})

    def settle(self, timeout_seconds: float = 5.0) -> bool:
        self._answering("settle")
        return self.is_settled

    def log(self, session_id: str, after_seq: int, limit: int, *, newest: bool, agent_id: str | None) -> dict[str, Any]:
        lines = self.lines[session_id][after_seq:]
        page = lines[-limit:] if newest else lines[:limit]
        self._answering("value" if newest else "names")  # what comes meanwhile is not in it
        return {"messages": page}

    def recall(self, session_id: str, query: str, *, limit: int, scope: str, agent_id: str | None) -> Recollection:
        """What has the word, the older the better; in conversations it is said first."""
        self._answering(f"recall {scope}")
        sessions = [session_id] if scope == "session" else ["chat", *sorted(self.lines.keys() - {"chat"})]
        hits = [one for one in sessions for line in self.lines[one] if query in str(line["message"]["content"])]
        entries = [hit_in(one, 1.0 - at / 1_000) for at, one in enumerate(hits[:limit])]
        return Recollection(entries=entries, took_ms=1.0, degraded=[])

    def forget(self, *, session_id: str, reason: str, agent_id: str | None) -> None:
        self._answering("forget")
        for line in self.lines[session_id]:
            line["message"].update(content="[forgotten]", meta=None)
        if self.forgets is not None:
            self.forgets += 1

    def status(self, agent_id: str | None) -> dict[str, Any]:
        self._answering("status")
        return {} if self.forgets is None else {"forgets": self.forgets}


def hit_in(session_id: str, score: float) -> MemoryEntry:
    return cast(MemoryEntry, SimpleNamespace(session_id=session_id, score=score))


def store_of(memory: FakeClient) -> OffbookStore:
    return OffbookStore(cast(Client, memory))


def value_of(store: OffbookStore) -> dict[str, Any] | None:
    item = store.get(AT, KEY)
    return item.value if item is not None else None


def test_a_put_waits_for_no_read() -> None:
    memory = FakeClient()
    store = store_of(memory)
    is_reading, goes_on = threading.Event(), threading.Event()

    def hang() -> None:
        is_reading.set()
        goes_on.wait(600)

    def put() -> None:
        store.put(AT, KEY, {"n": 1})
        asyncio.run(store.aput(AT, KEY, {"n": 2}))

    memory.before["settle"] = hang
    reading, putting = threading.Thread(target=lambda: store.get(AT, "other")), threading.Thread(target=put)
    reading.start()
    assert is_reading.wait(120)
    putting.start()
    putting.join(120)
    is_put = not putting.is_alive()
    goes_on.set()
    reading.join(120)
    putting.join(120)
    assert is_put
    assert value_of(store) == {"n": 2}


def test_after_trouble_nothing_is_asked_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FakeClient()
    store_of(memory).put(AT, KEY, {"n": 1})
    store = store_of(memory)
    memory.is_settled = False
    assert value_of(store) is None
    assert store.search(("a",), query="anything") == []
    assert store.search(("a",)) == []
    assert memory.asked == ["settle"]
    memory.is_settled = True
    store._rest_until = 0.0
    assert value_of(store) == {"n": 1}
    monkeypatch.setattr(langgraph_store, "REST_SECONDS", 0.0)
    memory.before["settle"] = lambda: (_ for _ in ()).throw(ProviderUnavailable("nobody answers"))
    assert value_of(store) == {"n": 1}
    assert value_of(store) == {"n": 1}
    assert memory.asked.count("settle") == 4


@pytest.mark.parametrize("verb", ["settle", "names", "value"])
def test_what_is_put_during_a_read_is_newer_than_its_answer(verb: str) -> None:
    memory = FakeClient()
    store, other = store_of(memory), store_of(memory)
    other.put(AT, KEY, {"n": 1})
    memory.before[verb] = lambda: store.put(AT, KEY, {"n": 2})
    assert value_of(store) == {"n": 2}
    assert value_of(store) == {"n": 2}
    assert value_of(other) == {"n": 2}


def test_what_another_deletes_after_a_put_is_gone() -> None:
    memory = FakeClient()
    store, other = store_of(memory), store_of(memory)

    def put_and_delete() -> None:
        store.put(AT, KEY, {"n": 1})
        other.delete(AT, KEY)

    memory.before["settle"] = put_and_delete
    store.get(AT, "other")
    assert value_of(store) is None


def test_what_is_put_while_its_item_is_deleted_stays() -> None:
    memory = FakeClient()
    store = store_of(memory)
    store.put(AT, KEY, {"n": 1})
    memory.before["forget"] = lambda: store.put(AT, KEY, {"n": 2})
    store.delete(AT, KEY)
    assert value_of(store) == {"n": 2}
    assert value_of(store_of(memory)) == {"n": 2}


# ── what is forgotten elsewhere ──


def forget_elsewhere(memory: FakeClient, key: str) -> None:
    memory.forget(session_id=session_of("langgraph-store", (AT, key)), reason="by hand", agent_id=None)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("items", [1, langgraph_store.MOST_READ_AGAIN, 3 * langgraph_store.MOST_READ_AGAIN])
def test_what_was_forgotten_elsewhere_is_not_given(items: int, counts: bool) -> None:
    memory = FakeClient()
    memory.forgets = 0 if counts else None
    store = store_of(memory)
    for number in range(items):
        store.put(AT, f"k{number}", {"text": "a boat"})
    keys = {f"k{number}" for number in range(items)}
    for query in (None, "boat"):
        assert {item.key for item in store.search(("a",), query=query, limit=items)} == keys
        forget_elsewhere(memory, gone := min(keys))
        keys.discard(gone)
        assert {item.key for item in store.search(("a",), query=query, limit=items)} == keys
        assert store.get(AT, gone) is None
        store.put(AT, gone, {"text": "a boat again"})
        keys.add(gone)
    store.get(AT, gone)
    forget_elsewhere(memory, gone)
    assert store.get(AT, gone) is None


def test_the_newest_value_was_forgotten_and_recall_finds_an_older_one() -> None:
    memory = FakeClient()
    store = store_of(memory)
    store.put(AT, KEY, {"text": "a boat"})
    store.put(AT, KEY, {"text": "a secret boat"})
    assert keys_of(store) == {KEY}
    memory.lines[session_of("langgraph-store", (AT, KEY))][-1]["message"].update(content="[forgotten]", meta=None)
    assert keys_of(store) == set()


def test_a_page_without_the_forgotten_is_as_long_as_it_was() -> None:
    memory = FakeClient()
    store = store_of(memory)
    for number in range(6):
        store.put(AT, f"k{number}", {"text": "a boat"})
    store.search(("a",))
    forget_elsewhere(memory, "k1")
    assert [item.key for item in store.search(("a",), limit=3)] == ["k0", "k2", "k3"]


def test_many_are_not_read_again_where_nothing_was_forgotten() -> None:
    memory = FakeClient()
    store = store_of(memory)
    for number in range(100):
        store.put(AT, f"k{number}", {"text": "a boat"})
    assert len(store.search(("a",), limit=100)) == 100
    memory.asked.clear()
    assert len(store.search(("a",), limit=100)) == 100
    assert "value" not in memory.asked
    forget_elsewhere(memory, "k7")
    assert len(store.search(("a",), limit=100)) == 99


@pytest.mark.parametrize("error", [ProviderUnavailable("nobody answers"), ProviderError("not now")])
@pytest.mark.parametrize("verb", ["value", "status"])
def test_what_cannot_be_read_again_is_given_as_it_is_known(verb: str, error: ProviderError) -> None:
    memory = FakeClient()
    store = store_of(memory)
    for number in range(20):
        store.put(AT, f"k{number}", {"text": "a boat"})
    store.search(("a",), limit=20)
    store._forgets = None

    def refuse() -> None:
        raise error

    memory.before[verb] = refuse
    assert len(store.search(("a",), limit=20)) == 20


# ── a search beyond what one recall tells ──


def much_said(times: int) -> FakeClient:
    memory = FakeClient()
    for number in range(times):
        memory.record("chat", Message(role="user", content=f"boat {number}"))
    return memory


def keys_of(store: OffbookStore, **options: Any) -> set[str]:
    return {item.key for item in store.search(("a",), query="boat", **options)}


@pytest.mark.parametrize("said", [0, langgraph_store.FEW_RECALLED, langgraph_store.MOST_RECALLED - 1, 500])
def test_items_are_found_however_much_was_said_of_it(said: int) -> None:
    memory = much_said(said)
    writer = store_of(memory)
    for key, text in (("k1", "a boat"), ("k2", "a cart"), ("k3", "boat and cart")):
        writer.put(AT, key, {"text": text})
    for store in (writer, store_of(memory)):
        assert keys_of(store) == {"k1", "k3"}
        assert keys_of(store, filter={"text": "a boat"}) == {"k1"}
        assert store.search(("other",), query="boat") == []
        assert all(item.score is not None for item in store.search(("a",), query="boat"))


def test_where_recall_told_all_no_item_is_asked_for_by_itself() -> None:
    memory = much_said(langgraph_store.FEW_RECALLED - 2)
    store = store_of(memory)
    store.put(AT, "k1", {"text": "a boat"})
    store.put(AT, "k2", {"text": "a cart"})
    assert keys_of(store) == {"k1"}
    assert "recall session" not in memory.asked


def test_a_search_asks_for_so_many_items_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_store, "MOST_ASKED", 3)
    memory = much_said(200)
    store = store_of(memory)
    for number in range(9):
        store.put(AT, f"k{number}", {"text": "a boat"})
    assert keys_of(store) == {"k6", "k7", "k8"}
    assert memory.asked.count("recall session") == 3


def test_a_search_in_a_new_process_reads_no_more_than_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_store, "MOST_ASKED", 3)
    memory = much_said(200)
    writer = store_of(memory)
    for number in range(40):
        writer.put(AT, f"k{number:02}", {"text": "a boat"})
    writer.put(AT, "k00", {"text": "a newer boat"})
    writer.put(("other",), "k", {"text": "a boat"})
    writer.delete(AT, "k39")
    memory.asked.clear()
    store = store_of(memory)
    assert keys_of(store) == {"k00", "k38", "k37"}
    assert memory.asked.count("value") == 3
    assert memory.asked.count("recall session") == 3


def test_items_known_not_to_fit_take_no_place_among_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_store, "MOST_ASKED", 3)
    memory = much_said(200)
    store = store_of(memory)
    for number in range(9):
        store.put(AT, f"k{number}", {"text": "a boat", "is_old": number < 2})
    store.search(("a",))
    assert keys_of(store, filter={"is_old": True}) == {"k0", "k1"}


def test_what_was_found_before_the_trouble_is_the_answer() -> None:
    memory = much_said(langgraph_store.MOST_RECALLED - 1)
    store = store_of(memory)
    for number in range(3):
        store.put(AT, f"k{number}", {"text": "a boat"})

    def gone() -> None:
        raise ProviderUnavailable("nobody answers")

    memory.before["recall session"] = gone
    assert keys_of(store) == {"k0"}
