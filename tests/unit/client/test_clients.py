from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.client import courier as courier_module
from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.client.courier import batches, concerns_messages
from offbook.client.delivery import LONGEST_PAUSE_SECONDS, pause_seconds
from offbook.client.outbox import Outbox
from offbook.client.outboxes import deliver_outboxes
from offbook.client.recorder import outgoing, without_surrogates
from offbook.client.segment import Queued
from offbook.model.errors import InvalidInput, ProviderRefused, ProviderUnavailable
from offbook.model.types import Message
from tests.unit.client.fake_provider import BUSY, DROP, HANG_UP, UNAUTHORIZED, WRONG_SHAPE, FakeProvider


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OFFBOOK_URL", "OFFBOOK_SOCKET", "OFFBOOK_TOKEN", "OFFBOOK_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OFFBOOK_HOME", str(tmp_path))


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    with FakeProvider(socket=tmp_path / "offbook.sock") as provider:
        yield provider


@pytest.fixture
def away(tmp_path: Path) -> FakeProvider:
    """One that is not running yet."""
    return FakeProvider(socket=tmp_path / "offbook.sock")


def texts_from(start: int, stop: int) -> list[str]:
    return [f"message {number}" for number in range(start, stop)]


def record_all(client: Client | AsyncClient, texts: list[str], session_id: str = "s", **options: Any) -> None:
    for text in texts:
        client.record(session_id, ("user", text), **options)


def eventually(holds: Callable[[], object], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


# ── verbs ──


async def test_every_verb_asks_for_what_the_contract_says(provider: FakeProvider) -> None:
    async with AsyncClient(agent_id="main") as client:
        assert (await client.ping())["ok"]
        receipt = await client.on_message("s", ("user", "one"))
        assert (receipt.accepted, receipt.first_seq, receipt.last_seq) == (1, 1, 1)
        receipt = await client.on_message(
            "s", {"role": "user", "content": "two"}, Message(role="user", content="three")
        )
        assert (receipt.accepted, receipt.last_seq) == (2, 3)
        context = await client.get_compressed_context("s", 500)
        assert (context.covers.last_seq, context.max_chars) == (3, 500)
        assert context.messages[0].content == "one"
        assert await client.session_start("new") is None
        started = await client.session_start("s", max_chars=77, parent_session_id="agent:main:boss")
        assert started is not None
        assert started.max_chars == 77
        assert await client.pre_compaction("s", [("user", "x"), ("assistant", "y")]) == 2
        assert await client.pre_compaction("s") == 0
        await client.post_compaction("s", new_context=[{"role": "user", "content": "x"}])
        await client.session_end("s", reason="idle")
        assert (await client.status())["body"] == {"agentId": "main"}
        assert (await client.status("other"))["body"] == {"agentId": "other"}
        assert (await client.audit(session_id="s", limit=3))["body"] == {
            "agentId": "main",
            "sessionId": "s",
            "limit": 3,
        }
        assert (await client.log("s", after_seq=2, wait_ms=5))["body"] == {
            "agentId": "main",
            "sessionId": "s",
            "afterSeq": 2,
            "limit": 100,
            "waitMs": 5,
        }
        await client.on_message("s", Message(role="user", content="four", id="4"))
        assert await client.missing("s", ("5", "4", "6")) == ["5", "6"]
        assert await client.missing("s", ["4"], agent_id="other") == ["4"]
        assert (await client.call("status", {"agentId": "x"}))["verb"] == "status"
    starts = [request.body for request in provider.requests if request.verb == "hooks/session-start"]
    assert starts == [
        {"agentId": "main", "sessionId": "new"},
        {"agentId": "main", "sessionId": "s", "maxChars": 77, "parentSessionId": "agent:main:boss"},
    ]
    asked = {request.verb: request.body for request in provider.requests}
    assert asked["hooks/session-end"] == {"agentId": "main", "sessionId": "s", "reason": "idle"}
    assert set(asked["hooks/post-compaction"]) == {"agentId", "sessionId", "newContext"}


def test_the_blocking_client_is_the_same_client(provider: FakeProvider) -> None:
    with Client(agent_id="main") as client:
        assert client.ping()["ok"]
        assert client.on_message("s", ("user", "one")).accepted == 1
        assert client.get_compressed_context("s", 500).covers.last_seq == 1
        assert client.session_start("new", parent_session_id="boss") is None
        assert provider.requests[-1].body == {"agentId": "main", "sessionId": "new", "parentSessionId": "boss"}
        client.on_message("s", Message(role="user", content="two", id="2"))
        assert client.missing("s", ["1", "2"]) == ["1"]
        assert client.pre_compaction("s", [("user", "x")]) == 1
        client.post_compaction("s")
        client.session_end("s")
        assert client.status()["verb"] == "status"
        assert client.audit()["verb"] == "audit"
        assert client.log("s")["verb"] == "log"
        assert client.call("ping")["ok"]
        with pytest.raises(ProviderRefused, match="no such verb"):
            client.call("nonsense")


def test_the_twins_have_the_same_methods() -> None:
    def signatures(kind: type) -> dict[str, list[tuple[str, Any, Any]]]:
        return {
            name: [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if (not name.startswith("_") or name == "__init__")
        }

    assert signatures(Client) == signatures(AsyncClient)


async def test_a_verb_says_who_is_away_and_what_to_do(away: FakeProvider) -> None:
    async with AsyncClient() as client:
        with pytest.raises(ProviderUnavailable, match="offbook serve"):
            await client.ping()


async def test_a_message_sent_twice_by_the_transport_is_stored_once(provider: FakeProvider) -> None:
    async with AsyncClient() as client:
        await client.on_message("s", ("user", "one"))
        provider.plan.append(DROP)
        receipt = await client.on_message("s", ("user", "two"))
    assert (receipt.accepted, receipt.duplicates) == (0, 1)
    assert provider.texts("s") == ["one", "two"]


async def test_answers_of_a_newer_provider_are_understood(provider: FakeProvider) -> None:
    provider.extra_fields = {"newField": {"a": 1}}
    async with AsyncClient() as client:
        assert (await client.on_message("s", ("user", "one"))).accepted == 1
        assert (await client.get_compressed_context("s", 10)).parts[0].last_seq == 1


def test_tcp_with_the_token_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with FakeProvider(token="secret") as provider:
        with Client(provider.url) as client:
            assert client.ping()["ok"]
            client.record("s", ("user", "hello"))
            assert client.flush(10)
        assert provider.texts("s") == ["hello"]
        with Client(provider.url, token="wrong") as client, pytest.raises(ProviderRefused, match="token"):
            client.ping()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", "a;b", "é", "x" * 65, ".hidden"])
def test_a_client_name_is_a_plain_word(name: str) -> None:
    with pytest.raises(InvalidInput):
        Client(client=name)


def test_an_empty_token_is_not_the_owners(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the token is empty"):
        Client(token="", home=tmp_path)


def test_importing_the_client_loads_nothing_heavy() -> None:
    code = "import sys, offbook.client.blocking; print(sorted({'apsw','uvicorn','structlog','rich','click','uvloop'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ── recording ──


def test_what_is_recorded_arrives_in_order_with_id_and_time(provider: FakeProvider) -> None:
    before = datetime.now(UTC)
    with Client(client="host") as client:
        record_all(client, texts_from(0, 500))
        assert client.flush(10)
        status = client.outbox_status()
    assert provider.texts("s") == texts_from(0, 500)
    stored = provider.sessions["", "s"]
    assert len({message["id"] for message in stored}) == 500
    assert all(message["id"].startswith(status["client"] + ":") for message in stored)
    assert before <= datetime.fromisoformat(stored[0]["ts"]) <= datetime.now(UTC)
    assert (status["waiting"], status["delivered"], status["dropped"], status["rejected"]) == (0, 500, 0, 0)
    assert status["last_error"] is None


def test_id_time_and_fields_of_the_host_are_kept(provider: FakeProvider) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    with Client() as client:
        client.record("s", Message(role="user", content="a", id="mine", ts=moment, meta={"k": [1]}))
        client.record("s", {"role": "user", "content": [{"type": "text", "text": "b"}], "id": None, "toolCallId": "t"})
        assert client.flush(10)
    first, second = provider.sessions["", "s"]
    assert first == {"role": "user", "content": "a", "id": "mine", "ts": "2026-01-02T00:00:00Z", "meta": {"k": [1]}}
    assert (second["content"], second["toolCallId"]) == ([{"type": "text", "text": "b"}], "t")
    assert second["id"]


def test_agents_are_named_by_argument_by_client_or_by_key(provider: FakeProvider) -> None:
    with Client(client="one") as client:
        client.record("agent:anna:main", ("user", "by key"))
        client.record("s", ("user", "by argument"), agent_id="anna")
        client.record("s", ("user", "by default"))
        assert client.flush(10)
        client_id = client.outbox_status()["client"]
    with Client(client="two", agent_id="anna") as client:
        client.record("s", ("user", "by client"))
        assert client.flush(10)
    assert provider.texts("s", "anna") == ["by argument", "by client"]
    assert provider.texts("agent:anna:main") == ["by key"]
    named = [claim for claim in provider.claims() if claim["client"] == client_id]
    assert [(claim["first"], claim["last"]) for claim in named] == [("1", "1"), ("2", "2")]
    assert [claim["client"] for claim in provider.claims() if "~" in claim["client"]] == [f"{client_id}~default"]


async def test_recording_needs_no_event_loop_of_its_own(provider: FakeProvider) -> None:
    async with AsyncClient() as client:
        record_all(client, texts_from(0, 50))
        assert await client.flush(10)
    assert provider.texts("s") == texts_from(0, 50)


def test_threads_record_together(provider: FakeProvider) -> None:
    with Client() as client:
        threads = [
            threading.Thread(target=record_all, args=(client, texts_from(0, 100), f"s{number}")) for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.flush(20)
    for number in range(8):
        assert provider.texts(f"s{number}") == texts_from(0, 100)


def test_two_clients_of_one_process_share_one_outbox_and_one_thread(provider: FakeProvider) -> None:
    with Client(client="same") as one:
        with Client(client="same") as two:
            one.record("s", ("user", "one"))
            two.record("s", ("user", "two"))
            assert two.flush(10)
            names = [thread.name for thread in threading.enumerate()]
            assert names.count("offbook-delivery") == 1
        one.record("s", ("user", "three"))
        assert one.flush(10)
    assert provider.texts("s") == ["one", "two", "three"]
    assert eventually(lambda: "offbook-delivery" not in [thread.name for thread in threading.enumerate()])


NONSENSE: list[tuple[Any, Any]] = [
    ("s", None),
    ("s", 42),
    ("s", "just text"),
    ("s", {}),
    ("s", {"role": "user"}),
    ("s", ("user",)),
    ("s", {"role": "user", "content": object()}),
    ("s", {"role": "user", "content": {(1, 2): 3}}),
    (None, ("user", "x")),
    (b"s", ("user", "x")),
]


def test_what_is_no_message_is_counted_and_logged_once_and_never_raises(
    provider: FakeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    with Client() as client, caplog.at_level(logging.WARNING, "offbook.client"):
        for session_id, message in NONSENSE * 3:
            client.record(session_id, message)
        endless: dict[str, Any] = {"role": "user"}
        endless["content"] = endless
        client.record("s", endless)
        client.record("s", ("user", "fine"), agent_id=7)  # type: ignore[arg-type]
        client.record("s", ("user", "fine"))
        assert client.flush(10)
        assert client.outbox_status()["invalid"] == 3 * len(NONSENSE) + 2
    assert provider.texts("s") == ["fine"]
    assert len(caplog.messages) == len(set(caplog.messages)) <= len(NONSENSE) + 2


def test_a_lone_surrogate_becomes_a_replacement_character(provider: FakeProvider) -> None:
    with Client() as client:
        client.record("s\ud800", ("user", "a\udcffb"), agent_id="ag\ud800")
        client.record("s", {"role": "user", "content": [{"type": "text", "text": "\ud83d\ude00 \ud83d", "k\ud800": 1}]})
        client.record("s", Message(role="user", content="\udfff"))
        assert client.flush(10)
        assert client.outbox_status()["invalid"] == 0
    assert provider.texts("s\ufffd", "ag\ufffd") == ["a\ufffdb"]
    assert provider.texts("s") == [[{"type": "text", "text": "😀 \ufffd", "k\ufffd": 1}], "\ufffd"]


def test_surrogates_are_left_out_at_every_depth() -> None:
    assert without_surrogates({"a": ["\ud800", ("b", 1)], "\udc00": None}) == {
        "a": ["\ufffd", ["b", 1]],
        "\ufffd": None,
    }


def test_an_outgoing_message_keeps_what_it_has() -> None:
    made = outgoing({"role": "user", "content": "", "id": "x", "ts": "2026-01-01T00:00:00Z"})
    assert msgspec.json.decode(made.completed("other")) == {
        "role": "user",
        "content": "",
        "id": "x",
        "ts": "2026-01-01T00:00:00Z",
    }


# ── a provider that is away, slow or wrong ──


def test_everything_arrives_in_order_when_the_provider_comes_back(away: FakeProvider) -> None:
    with Client() as client:
        record_all(client, texts_from(0, 300))
        assert not client.flush(0.2)
        status = client.outbox_status()
        assert status["waiting"] == 300
        assert eventually(lambda: "offbook serve" in (client.outbox_status()["last_error"] or ""))
        away.start()
        record_all(client, texts_from(300, 400))
        assert client.flush(10)
        away.stop()
        record_all(client, texts_from(400, 500))
        assert not client.flush(0.2)
        away.start()
        assert client.flush(10)
    away.stop()
    assert away.texts("s") == texts_from(0, 500)


def test_without_anybody_flushing_it_is_delivered_too(away: FakeProvider) -> None:
    with Client() as client:
        record_all(client, texts_from(0, 10))
        assert eventually(lambda: client.outbox_status()["last_error"])
        with away:
            assert eventually(lambda: client.outbox_status()["waiting"] == 0)
    assert away.texts("s") == texts_from(0, 10)


def test_a_lost_acknowledgement_doubles_nothing(provider: FakeProvider) -> None:
    with Client() as client:
        client.record("s", ("user", "first"))
        assert client.flush(10)
        for number in range(20):
            provider.plan.extend([DROP, DROP])
            client.record("s", ("user", f"message {number}"))
            client.record("s", ("user", f"again {number}"))
            assert client.flush(10)
        assert client.outbox_status()["delivered"] == 41
    assert provider.texts("s") == [
        "first",
        *(text for number in range(20) for text in (f"message {number}", f"again {number}")),
    ]


@pytest.mark.parametrize(
    "trouble",
    [
        BUSY,
        {**BUSY, "status": 429, "retryable": True},
        UNAUTHORIZED,
        {"type": "urn:offbook:problem:store-read-only", "title": "x", "status": 500, "retryable": False},
        {"type": "urn:offbook:problem:unknown-verb", "title": "x", "status": 404, "retryable": False},
        HANG_UP,
        b"garbage\r\n\r\n",
        b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>",
        b'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"ok":true}',
    ],
)
def test_trouble_that_is_not_the_messages_fault_makes_them_wait(provider: FakeProvider, trouble: Any) -> None:
    provider.plan.extend([trouble] * 3)
    with Client() as client:
        record_all(client, texts_from(0, 30))
        assert client.flush(10)
        assert client.outbox_status()["rejected"] == 0
    assert provider.texts("s") == texts_from(0, 30)


def test_a_refused_message_is_set_aside_and_the_others_arrive(
    provider: FakeProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider.refused_text = "poison"
    with Client(client="host") as client, caplog.at_level(logging.WARNING, "offbook.client"):
        record_all(client, ["a", "b", "poison 1", "c", "poison 2", "d"])
        assert not client.flush(10)
        assert client.flush(10)
        status = client.outbox_status()
    assert provider.texts("s") == ["a", "b", "c", "d"]
    assert (status["delivered"], status["rejected"], status["waiting"]) == (4, 2, 0)
    lines = (tmp_path / "outbox" / "host" / "rejected.jsonl").read_bytes().splitlines()
    kept = [msgspec.json.decode(line) for line in lines]
    assert [entry["record"]["message"]["content"] for entry in kept] == ["poison 1", "poison 2"]
    assert "`role`" in kept[0]["reason"]
    assert any("rejected.jsonl" in message for message in caplog.messages)


def test_a_record_that_is_not_ours_is_set_aside(provider: FakeProvider, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox" / "python", max_bytes=10**6)
    outbox.append(b'{"not":"ours"}')
    outbox.close()
    with Client() as client:
        client.record("s", ("user", "fine"))
        assert not client.flush(10)
        assert client.outbox_status()["rejected"] == 1
    assert provider.texts("s") == ["fine"]


def test_a_message_too_large_for_a_provider_that_hangs_up_does_not_block_the_rest(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier_module, "BATCH_BYTES", 1000)
    monkeypatch.setattr(courier_module, "LOSSES_OF_A_LARGE_RECORD", 3)
    provider.plan.extend([HANG_UP] * 3)
    with Client() as client:
        record_all(client, ["x" * 2000, "small"])
        assert not client.flush(10)
        assert client.outbox_status()["rejected"] == 1
    assert provider.texts("s") == ["small"]


def test_a_full_outbox_drops_counts_and_goes_on(away: FakeProvider, caplog: pytest.LogCaptureFixture) -> None:
    with (
        Client(client="small", outbox_max_bytes=5000) as client,
        caplog.at_level(logging.WARNING, "offbook.client"),
    ):
        record_all(client, texts_from(0, 100))
        status = client.outbox_status()
        assert status["dropped"] > 0
        assert status["waiting"] + status["dropped"] == 100
        assert sum("is full" in message for message in caplog.messages) == 1
        kept = status["waiting"]
        with away:
            assert client.flush(10)
            client.record("s", ("user", "after"))
            assert client.flush(10)
    assert away.texts("s") == [*texts_from(0, kept), "after"]
    assert away.claims()[-1] | {"client": ""} == {"client": "", "first": "101", "last": "101", "sent": "101"}


def test_a_slow_provider_holds_nobody_up_and_gets_nothing_twice(provider: FakeProvider) -> None:
    provider.delay_seconds = 1.0
    client = Client()
    record_all(client, texts_from(0, 3))
    client.close(timeout_seconds=0.05)
    provider.delay_seconds = 0.0
    with Client() as client:
        record_all(client, texts_from(3, 6))
        assert client.flush(10)
    assert provider.texts("s") == texts_from(0, 6)


def test_without_a_disk_it_is_delivered_from_memory(provider: FakeProvider, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with Client(provider.url, home=tmp_path / "file") as client:
        record_all(client, texts_from(0, 20))
        assert client.flush(10)
        assert client.outbox_status()["last_error"]
    assert provider.texts("s") == texts_from(0, 20)


# ── claims and batches ──


def test_claims_name_every_ordinal_once_and_in_order(provider: FakeProvider) -> None:
    with Client() as client:
        for number in range(60):
            client.record(f"s{number // 7}", ("user", str(number)), agent_id="ab"[number % 20 // 10])
        assert client.flush(10)
    for agent in "ab":
        claims = [
            claim
            for claim, request in zip(provider.claims(), provider.requests, strict=True)
            if request.body["agentId"] == agent
        ]
        through = 0
        for claim in claims:
            assert int(claim["first"]) == through + 1
            through = int(claim["last"])
            assert int(claim["sent"]) >= through
        assert through == 30
    for claim, request in zip(provider.claims(), provider.requests, strict=True):
        assert int(claim["last"]) - int(claim["first"]) + 1 == len(request.body["messages"])


def queued(ordinal: int, session_id: str, lane: str = "", lane_ordinal: int | None = None) -> Queued:
    record = b'{"sessionId":"%b","message":{"n":%d}}' % (session_id.encode(), ordinal)
    return Queued(ordinal, record, lane, ordinal if lane_ordinal is None else lane_ordinal)


def test_a_batch_is_neighbours_of_one_session_and_lane_without_a_gap() -> None:
    made = batches(
        [
            queued(1, "a"),
            queued(2, "a"),
            queued(3, "b"),
            queued(4, "a"),
            queued(6, "a"),
            queued(7, "a", "lane", 1),
            queued(8, "a", "lane", 2),
        ]
    )
    assert [[record.ordinal for record in batch.records] for batch in made] == [[1, 2], [3], [4], [6], [7, 8]]


def test_batches_are_bounded(away: FakeProvider) -> None:
    with Client() as client:
        record_all(client, texts_from(0, 450))
        with away:
            assert client.flush(10)
    assert max(len(request.body["messages"]) for request in away.requests) <= 200


@pytest.mark.parametrize(
    ("document", "concerns"),
    [
        (WRONG_SHAPE, True),
        ({"status": 413, "type": "urn:offbook:problem:too-large"}, True),
        ({"status": 418, "type": "urn:offbook:problem:too-large"}, True),
        *(({"status": status}, True) for status in (400, 409, 413, 415, 422)),
        *(({"status": status}, False) for status in (401, 403, 404, 405, 500, 501, 507)),
        ({"status": 422, "retryable": True}, False),
        ({"status": 500, "type": "urn:offbook:problem:internal"}, False),
        (BUSY, False),
        (UNAUTHORIZED, False),
        ({"status": 507, "type": "urn:offbook:problem:store-full"}, False),
        ({"status": 500, "type": "urn:offbook:problem:store-corrupt"}, False),
    ],
)
def test_whose_fault_a_refusal_is(document: dict[str, Any], concerns: bool) -> None:
    assert concerns_messages(ProviderRefused(document)) is concerns


def test_pauses_double_up_to_a_limit() -> None:
    assert [pause_seconds(failures, 0.0) for failures in (1, 2, 3)] == [0.05, 0.1, 0.2]
    assert pause_seconds(50, 0.0) == LONGEST_PAUSE_SECONDS
    assert pause_seconds(5000, 1.0) == LONGEST_PAUSE_SECONDS / 2


# ── the end of a process, and the next ──


def test_close_leaves_the_rest_for_the_next_client(away: FakeProvider) -> None:
    with Client() as client:
        record_all(client, texts_from(0, 20))
    with away, Client() as client:
        assert client.outbox_status()["waiting"] <= 20
        assert client.flush(10)
    assert away.texts("s") == texts_from(0, 20)


def test_a_closed_client_may_record_again(provider: FakeProvider) -> None:
    client = Client()
    client.record("s", ("user", "one"))
    client.close()
    client.record("s", ("user", "two"))
    client.close()
    client.close()
    assert provider.texts("s") == ["one", "two"]


def test_a_client_that_records_nothing_makes_no_folder(provider: FakeProvider, tmp_path: Path) -> None:
    with Client() as client:
        client.ping()
        assert client.flush(1)
        assert client.outbox_status()["waiting"] == 0
    assert not (tmp_path / "outbox").exists()


def run(code: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, **options)


RECORD_FOR_EVER = """
import os, sys
from offbook.client.blocking import Client
client = Client(client="host")
for number in range(10**6):
    client.record("s", ("user", f"message {number}"))
    os.write(1, b"%d\\n" % number)
"""


@pytest.mark.parametrize("is_up", [True, False])
def test_what_was_recorded_survives_kill_9_and_arrives_once(away: FakeProvider, is_up: bool) -> None:
    if is_up:
        away.start()
    with run(RECORD_FOR_EVER) as child:
        assert child.stdout is not None
        for _ in range(700):
            child.stdout.readline()
        child.kill()
        promised = 700 + len(child.stdout.read().splitlines())
    if not is_up:
        away.start()
    with Client(client="host") as client:
        assert client.flush(20)
    away.stop()
    arrived = away.texts("s")
    assert arrived == texts_from(0, len(arrived))
    assert len(arrived) in (promised, promised + 1)


def test_an_ending_process_delivers_what_it_recorded(provider: FakeProvider) -> None:
    code = """
from offbook.client.blocking import Client
client = Client(client="host")
for number in range(100):
    client.record("s", ("user", f"message {number}"))
"""
    with run(code) as child:
        assert child.wait(120) == 0
    assert provider.texts("s") == texts_from(0, 100)


def test_two_processes_of_one_client_have_an_outbox_each(provider: FakeProvider, tmp_path: Path) -> None:
    code = """
import sys
from offbook.client.blocking import Client
with Client(client="host") as client:
    for number in range(100):
        client.record(sys.argv[1], ("user", f"message {number}"))
    print("recorded", flush=True)
    sys.stdin.readline()
"""
    children = [run(code, f"s{number}", stdin=subprocess.PIPE) for number in range(3)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"recorded\n"
    for child in children:
        child.communicate(b"\n", timeout=120)
    for number in range(3):
        assert provider.texts(f"s{number}") == texts_from(0, 100)
    assert {folder.name for folder in (tmp_path / "outbox").iterdir()} == {"host", "host~2", "host~3"}


def leave_behind(home: Path, folder: str, session_id: str) -> None:
    outbox = Outbox(home / "outbox" / folder, max_bytes=10**6)
    for number in range(10):
        message = msgspec.json.encode({"role": "user", "content": f"message {number}", "id": f"{folder}:{number}"})
        outbox.append(b'{"sessionId":"%b","message":%b}' % (session_id.encode(), message))
    outbox.close()


def test_what_other_processes_of_the_client_left_is_delivered_beside(provider: FakeProvider, tmp_path: Path) -> None:
    leave_behind(tmp_path, "host~2", "two")
    leave_behind(tmp_path, "host~7", "seven")
    for name in ("hostess", "host2", "host-2", "host--7", "host~x"):
        leave_behind(tmp_path, name, "other")
    provider.plan.extend([BUSY, BUSY])
    with Client(client="host") as client:
        client.record("s", ("user", "mine"))
        assert client.flush(10)
        assert eventually(lambda: len(provider.texts("two") + provider.texts("seven")) == 20)
    assert provider.texts("seven") == texts_from(0, 10)
    assert provider.texts("other") == []


def test_deliver_outboxes_delivers_what_no_live_process_holds(provider: FakeProvider, tmp_path: Path) -> None:
    leave_behind(tmp_path, "one", "one")
    leave_behind(tmp_path, "two", "two")
    held = Outbox(tmp_path / "outbox" / "held", max_bytes=10**6)
    held.append(b'{"sessionId":"held","message":{}}')
    report = deliver_outboxes(tmp_path, provider.url)
    assert (report["delivered"], report["rejected"], report["waiting"]) == (20, 0, 0)
    assert report["busy"] == [str(tmp_path / "outbox" / "held")]
    assert provider.texts("one") == provider.texts("two") == texts_from(0, 10)
    assert deliver_outboxes(tmp_path, provider.url)["delivered"] == 0
    held.close()


def test_deliver_outboxes_says_who_is_away(tmp_path: Path) -> None:
    leave_behind(tmp_path, "one", "one")
    report = deliver_outboxes(tmp_path, f"unix://{tmp_path}/none")
    assert (report["delivered"], report["waiting"]) == (0, 10)
    assert "offbook serve" in report["last_error"]
    assert deliver_outboxes(tmp_path / "nowhere", f"unix://{tmp_path}/none")["outboxes"] == []


def in_a_fork(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return child


def ended_well(child: int) -> bool:
    codes: list[int] = []

    def is_over() -> bool:
        ended, status = os.waitpid(child, os.WNOHANG)
        codes.extend([os.waitstatus_to_exitcode(status)] if ended else [])
        return bool(codes)

    return eventually(is_over, 30) and codes == [0]


def test_a_forked_child_records_on_its_own_and_nothing_arrives_twice(away: FakeProvider, tmp_path: Path) -> None:
    client = Client(client="host")
    record_all(client, texts_from(0, 50), "parent")
    assert not client.flush(0.05)

    def work() -> bool:
        record_all(client, texts_from(0, 50), "child")
        return client.flush(20)

    child = in_a_fork(work)
    away.start()
    record_all(client, texts_from(50, 100), "parent")
    assert client.flush(10)
    assert ended_well(child)
    client.close()
    away.stop()
    assert away.texts("parent") == texts_from(0, 100)
    assert away.texts("child") == texts_from(0, 50)


def test_verbs_work_in_a_forked_child(provider: FakeProvider) -> None:
    with Client() as client:
        assert client.ping()["ok"]
        child = in_a_fork(lambda: client.ping()["ok"])
        assert ended_well(child)
        assert client.ping()["ok"]


def test_a_forked_child_that_outlives_its_parent_does_not_hold_its_outbox(tmp_path: Path, away: FakeProvider) -> None:
    code = """
import os, sys, time
from offbook.client.blocking import Client
client = Client(client="host")
client.record("s", ("user", "message 0"))
if os.fork() == 0:
    os.write(1, b"forked\\n")
time.sleep(60)
"""
    with run(code, start_new_session=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"forked\n"
        parent.kill()
        parent.wait(120)
        try:
            with away, Client(client="host") as client:
                assert client.flush(10)
                assert client.outbox_status()["folder"] == str(tmp_path / "outbox" / "host")
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert away.texts("s") == ["message 0"]


async def test_flush_waits_for_what_was_recorded_before_it(provider: FakeProvider) -> None:
    provider.delay_seconds = 0.05
    async with AsyncClient() as client:
        record_all(client, texts_from(0, 5))
        flushes = await asyncio.gather(*(client.flush(10) for _ in range(5)))
        assert flushes == [True] * 5
        assert provider.texts("s") == texts_from(0, 5)
        provider.delay_seconds = 0.5  # much longer than the flush, should the machine be busy just then
        record_all(client, ["late"])
        assert not await client.flush(0.01)


async def test_what_was_recorded_arrives_before_a_context_is_saved(provider: FakeProvider) -> None:
    """It would be saved twice otherwise: once as part of the context, once from the outbox."""
    async with AsyncClient() as memory:
        memory.record("chat", ("user", "We decided to use Postgres."))
        await memory.pre_compaction("chat", [("user", "We decided to use Postgres.")])
        assert [request.verb for request in provider.requests] == ["onMessage", "hooks/pre-compaction"]
