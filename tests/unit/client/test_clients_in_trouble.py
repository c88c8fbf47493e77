"""Clients among signals, neighbours, other endpoints and processes that run out of something."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.client import courier, delivery, outboxes
from offbook.client import delivery as deliveries
from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.client.loop_thread import LoopThread
from offbook.client.outbox import Outbox
from offbook.client.outbox_folder import OutboxFolder
from offbook.client.outboxes import deliver_outboxes
from offbook.client.segment import Segment
from tests.unit.client.fake_provider import FORBIDDEN, FakeProvider

INTERNAL = {"type": "urn:offbook:problem:internal", "title": "A bug.", "status": 500, "retryable": False}


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OFFBOOK_URL", "OFFBOOK_SOCKET", "OFFBOOK_TOKEN", "OFFBOOK_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OFFBOOK_HOME", str(tmp_path))


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    with FakeProvider(socket=tmp_path / "offbook.sock") as provider:
        yield provider


def eventually(holds: Callable[[], object], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def leave_behind(home: Path, folder: str, session_id: str, **options: Any) -> None:
    outbox = Outbox(home / "outbox" / folder, max_bytes=10**6, **options)
    for number in range(3):
        message = msgspec.json.encode({"role": "user", "content": f"old {number}", "id": f"{folder}:{number}"})
        outbox.append(b'{"sessionId":"%b","message":%b}' % (session_id.encode(), message))
    outbox.close()


OLD = ["old 0", "old 1", "old 2"]

# ── the thread ──


def test_a_process_out_of_descriptors_delivers_once_it_has_some(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_event_loop = asyncio.new_event_loop
    refusals: list[int] = []

    def refuse() -> asyncio.AbstractEventLoop:
        if threading.current_thread().name == "offbook-delivery" and len(refusals) < 3:
            refusals.append(1)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return new_event_loop()

    monkeypatch.setattr(asyncio.events, "new_event_loop", refuse)
    with Client() as client:
        client.record("s", ("user", "one"))
        assert eventually(lambda: len(refusals) == 3)
        assert client.flush(10)
    assert provider.texts("s") == ["one"]


def test_a_read_that_fails_delays_delivery_and_costs_nothing(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Segment._read
    failures: list[int] = []

    def fail_at_first(segment: Segment, offset: int, size: int) -> bytes:
        if len(failures) < 3:
            failures.append(1)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(segment, offset, size)

    with Client() as client:
        monkeypatch.setattr(Segment, "_read", fail_at_first)
        client.record("s", ("user", "one"))
        assert client.flush(10)
        assert client.outbox_status()["damaged"] == 0
    assert len(failures) == 3
    assert provider.texts("s") == ["one"]


def test_what_is_in_memory_only_outlives_the_client(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    away = FakeProvider(socket=tmp_path / "later.sock")
    client = Client(f"unix://{away.socket}", home=tmp_path / "file")
    client.record("s", ("user", "one"))
    client.close(timeout_seconds=0.1)
    with away, Client(f"unix://{away.socket}", home=tmp_path / "file") as client:
        client.record("s", ("user", "two"))
        assert client.flush(10)
    assert away.texts("s") == ["one", "two"]


def test_memory_is_left_soon_after_there_is_room_again(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client() as client:
        client.record("s", ("user", "one"))
        assert client.flush(10)
        with monkeypatch.context() as patch:
            append = Segment.append

            def full(segment: Segment, line: bytes) -> None:
                if not segment.is_in_memory:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                append(segment, line)

            patch.setattr(Segment, "append", full)
            client.record("s", ("user", "two"))
        assert client.flush(10)
        provider.delay_seconds = 0.3
        client.record("s", ("user", "three"))
        assert client.outbox_status()["in_memory_bytes"] == 0


def test_a_signal_handler_may_record(tmp_path: Path) -> None:
    code = """
import faulthandler, os, signal
from offbook.client.blocking import Client
faulthandler.dump_traceback_later(100, exit=True)
client = Client()
handled = []
depth = 0
client.record("s", ("user", "first"))
def handle(*_):
    global depth
    if depth >= 20:  # a signal may come while another is handled: as long as its thread waits, again and again
        return
    depth += 1
    handled.append(1)
    client.record("s", ("user", "from the handler"))
    depth -= 1
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
main = 1
while len(handled) < 1_000:
    client.record("s", ("user", "main"))
    main += 1
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one more may be on its way
status = client.outbox_status()
print(main + len(handled) - status["waiting"], status["invalid"], status["dropped"], flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "0", "0"], done.stderr


# ── refusals ──


@pytest.mark.parametrize("document", [INTERNAL, FORBIDDEN])
def test_trouble_of_the_provider_rejects_nothing(provider: FakeProvider, document: dict[str, Any]) -> None:
    provider.plan.extend([document] * 4)
    with Client() as client:
        client.record("s", ("user", "one"))
        assert client.flush(10)
        assert client.outbox_status()["rejected"] == 0
    assert provider.texts("s") == ["one"]


def test_what_was_rejected_can_be_sent_again(provider: FakeProvider, tmp_path: Path) -> None:
    provider.refused_text = "poison"
    with Client(client="host") as client:
        client.record("agent:anna:main", ("user", "poison 1"))
        client.record("s", ("user", "fine"))
        client.record("s", ("user", "poison 2"), agent_id="bert")
        assert not client.flush(10)
    rejected = tmp_path / "outbox" / "host" / "rejected.jsonl"
    assert deliver_outboxes(tmp_path, provider.url)["outboxes"] == []
    assert deliver_outboxes(tmp_path, provider.url, with_rejected=True)["rejected"] == 2
    assert len(rejected.read_bytes().splitlines()) == 2
    with rejected.open("ab") as file:
        file.write(b"not ours\n")
    provider.refused_text = None
    report = deliver_outboxes(tmp_path, provider.url, with_rejected=True)
    assert (report["resent"], report["delivered"], report["rejected"]) == (2, 2, 0)
    assert provider.texts("agent:anna:main") == ["poison 1"]
    assert provider.texts("s", "bert") == ["poison 2"]
    assert rejected.read_bytes() == b"not ours\n"


def test_what_was_rejected_into_several_files_comes_back_in_order_whenever_it_is_killed(
    provider: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offbook.client.outbox_folder.REJECTED_MAX_BYTES", 300)
    provider.refused_text = "poison"
    with Client(client="host") as client:
        for number in range(6):
            client.record("s", ("user", f"poison {number}"))
        assert not client.flush(10)
    folder = tmp_path / "outbox" / "host"
    assert len(list(folder.glob("rejected*.jsonl"))) > 2
    provider.refused_text = None
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", interrupted)
        with pytest.raises(KeyboardInterrupt):
            deliver_outboxes(tmp_path, provider.url, with_rejected=True)
    assert deliver_outboxes(tmp_path, provider.url, with_rejected=True)["waiting"] == 0
    assert provider.texts("s") == [f"poison {number}" for number in range(6)]
    assert list(folder.glob("rejected*")) == []


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_what_cannot_be_put_back_on_disk_stays_where_it_was(
    provider: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.refused_text = "poison"
    with Client(client="host") as client:
        client.record("s", ("user", "poison"))
        assert not client.flush(10)
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "sync", lambda self: False)
        report = deliver_outboxes(tmp_path, provider.url, with_rejected=True)
        assert "cannot be written" in report["last_error"]
    assert b"poison" in (tmp_path / "outbox" / "host" / "rejected.leaving").read_bytes()
    provider.refused_text = None
    assert deliver_outboxes(tmp_path, provider.url, with_rejected=True)["waiting"] == 0
    assert provider.texts("s") == ["poison"]


def test_a_refused_message_waits_until_there_is_room_to_keep_it(
    provider: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_full = True
    real = OutboxFolder.set_aside

    def set_aside(self: OutboxFolder, *arguments: Any) -> Path:
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, *arguments)

    monkeypatch.setattr(OutboxFolder, "set_aside", set_aside)
    provider.refused_text = "poison"
    with Client(client="host") as client:
        client.record("s", ("user", "poison"))
        client.record("s", ("user", "fine"))
        assert eventually(lambda: "No space" in str(client.outbox_status()["last_error"]))
        status = client.outbox_status()
        assert (status["waiting"], status["rejected"]) == (2, 0)
        is_full = False
        assert not client.flush(10)
        status = client.outbox_status()
        assert (status["waiting"], status["delivered"], status["rejected"]) == (0, 1, 1)
    assert b"poison" in (tmp_path / "outbox" / "host" / "rejected.jsonl").read_bytes()
    assert provider.texts("s") == ["fine"]


# ── an agent that the token is not for ──


def said_by_two(client: Client, numbers: range) -> None:
    for number in numbers:
        client.record("s", ("user", f"message {number}"), agent_id="bob" if number % 3 == 0 else "ann")


def texts_of(agent: str, numbers: range) -> list[str]:
    return [f"message {number}" for number in numbers if (number % 3 == 0) == (agent == "bob")]


def sent_for(provider: FakeProvider, agent: str) -> list[str]:
    return [
        message["content"]
        for request in provider.requests
        if request.verb == "onMessage" and request.body.get("agentId") == agent
        for message in request.body["messages"]
    ]


def test_a_message_that_the_token_may_not_write_holds_up_no_other_agent(
    provider: FakeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.forbidden_agents = frozenset({"bob"})
    with Client(client="host") as client, caplog.at_level(logging.WARNING, "offbook.client"):
        said_by_two(client, range(30))
        assert eventually(lambda: provider.texts("s", "ann") == texts_of("ann", range(30)))
        said_by_two(client, range(30, 60))
        assert eventually(lambda: provider.texts("s", "ann") == texts_of("ann", range(60)))
        assert eventually(lambda: client.outbox_status()["waiting"] == 20)
        status = client.outbox_status()
        assert (status["delivered"], status["rejected"], status["dropped"]) == (40, 0, 0)
        assert "other agents" in status["last_error"]
    assert len([message for message in caplog.messages if "messages wait" in message]) == 1
    with Client(client="host") as client:  # as after a restart, and still not allowed
        client.record("s", ("user", "message 61"), agent_id="ann")
        assert eventually(lambda: provider.texts("s", "ann") == [*texts_of("ann", range(60)), "message 61"])
        provider.forbidden_agents = frozenset()
        assert client.flush(10)
    assert provider.texts("s", "bob") == texts_of("bob", range(60))
    assert sent_for(provider, "ann") == provider.texts("s", "ann")  # none twice
    claimed = [
        claim for claim, sent in zip(provider.claims(), provider.requests, strict=True) if sent.body["agentId"] == "ann"
    ]
    assert [int(claim["first"]) for claim in claimed[1:]] == [int(claim["last"]) + 1 for claim in claimed[:-1]]


def test_where_the_token_is_for_nobody_everything_waits(provider: FakeProvider, tmp_path: Path) -> None:
    provider.forbidden_agents = frozenset({"ann", "bob"})
    with Client(client="host") as client:
        said_by_two(client, range(12))
        assert not client.settle(10)
    report = deliver_outboxes(tmp_path, provider.url)
    assert (report["delivered"], report["rejected"], report["waiting"]) == (0, 0, 12)
    assert "other agents" in report["last_error"]
    provider.forbidden_agents = frozenset()
    assert deliver_outboxes(tmp_path, provider.url)["delivered"] == 12
    assert provider.texts("s", "ann") == texts_of("ann", range(12))


def test_an_agent_that_is_held_for_long_makes_way_and_loses_nothing(
    provider: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "HELD_BYTES", 4_000)
    provider.forbidden_agents = frozenset({"bob"})
    with Client(client="host") as client:
        said_by_two(client, range(300))
        assert eventually(lambda: provider.texts("s", "ann") == texts_of("ann", range(300)))
        client.record("s", ("user", "message 301"), agent_id="ann")
        assert eventually(lambda: provider.texts("s", "ann")[-1] == "message 301")
        assert eventually(lambda: client.outbox_status()["waiting_bytes"] < 5_000)
        assert eventually(lambda: sum(client.outbox_status()[name] for name in ("waiting", "rejected")) == 100)
        assert client.outbox_status()["rejected"] > 0
        assert client.outbox_status()["waiting"] > 0
    provider.forbidden_agents = frozenset()
    report = deliver_outboxes(tmp_path, provider.url, with_rejected=True)
    assert (report["waiting"], report["rejected"]) == (0, 0)
    assert sorted(provider.texts("s", "bob")) == sorted(texts_of("bob", range(300)))
    assert sent_for(provider, "ann") == [*texts_of("ann", range(300)), "message 301"]


def test_what_names_an_agent_that_cannot_be_is_kept_for_whoever_looks(provider: FakeProvider, tmp_path: Path) -> None:
    """The provider refuses it; until then it goes the way of all others, and no other waits for it."""
    provider.refused_text = "poison"
    with Client(client="host") as client:
        client.record(f"agent:{'p' * 129}:main", ("user", "poison"))
        client.record("s", ("user", "fine"))
        assert not client.flush(10)
        status = client.outbox_status()
    assert (status["delivered"], status["rejected"], status["invalid"]) == (1, 1, 0)
    assert deliver_outboxes(tmp_path, provider.url, with_rejected=True)["resent"] == 1


def test_record_never_raises_whatever_the_host_hands_in() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise OSError("not even this")

    class Lazy(Mapping[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise Unspeakable

        def __iter__(self) -> Iterator[str]:
            return iter(("role", "content"))

        def __len__(self) -> int:
            return 2

        def __contains__(self, name: object) -> bool:
            return True

    with Client() as client:
        client.record("s", Lazy())
        assert client.outbox_status()["invalid"] == 1


# ── neighbours ──


def test_what_an_ended_neighbour_left_goes_first(provider: FakeProvider, tmp_path: Path) -> None:
    leave_behind(tmp_path, "host~2", "s", endpoint=provider.url)
    with Client(client="host") as client:
        client.record("s", ("user", "new"))
        assert client.flush(10)
    assert provider.texts("s") == [*OLD, "new"]


def test_a_neighbour_that_ends_later_is_noticed(
    provider: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "LOOK_AGAIN_SECONDS", 0.05)
    with Client(client="host") as client:
        client.record("s", ("user", "new"))
        assert client.flush(10)
        leave_behind(tmp_path, "host~2", "late", endpoint=provider.url)
        assert eventually(lambda: provider.texts("late") == OLD)


def test_what_was_meant_for_another_endpoint_is_not_delivered_here(
    provider: FakeProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outboxes._reported.clear()
    leave_behind(tmp_path, "host", "other", endpoint="unix:///elsewhere")
    leave_behind(tmp_path, "host~3", "other", endpoint="unix:///elsewhere")
    with caplog.at_level(logging.WARNING, "offbook.client"):
        for _ in range(2):
            with Client(client="host") as client:
                client.record("s", ("user", "mine"))
                assert client.flush(10)
                assert client.outbox_status()["folder"] == str(tmp_path / "outbox" / "host~2")
    assert provider.texts("other") == []
    assert provider.texts("s") == ["mine", "mine"]
    assert len([message for message in caplog.messages if "unix:///elsewhere" in message]) == 2
    report = deliver_outboxes(tmp_path, provider.url, with_rejected=True)
    assert (report["delivered"], report["waiting"], report["outboxes"]) == (0, 0, [])
    assert report["elsewhere"] == [
        {"folder": str(tmp_path / "outbox" / name), "endpoint": "unix:///elsewhere", "waiting": 3}
        for name in ("host", "host~3")
    ]
    assert provider.texts("other") == []
    report = deliver_outboxes(tmp_path, provider.url, everything=True)
    assert (report["delivered"], report["elsewhere"]) == (6, [])
    assert len(provider.texts("other")) == 6


def test_a_socket_is_the_same_by_whatever_name_its_folder_goes(provider: FakeProvider, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    leave_behind(tmp_path, "host", "s", endpoint=f"unix://{tmp_path}/link/{Path(provider.url).name}")
    assert deliver_outboxes(tmp_path, provider.url)["delivered"] == 3
    leave_behind(tmp_path, "host", "s", endpoint="http://127.0.0.1:9")
    assert deliver_outboxes(tmp_path, provider.url)["delivered"] == 0
    assert deliver_outboxes(tmp_path, provider.url, own={"http://127.0.0.1:9"})["delivered"] == 3


def test_a_second_outbox_opened_from_within_is_not_kept(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_outbox = outboxes.open_outbox
    second: list[Outbox] = []
    with Client(client="host") as client:

        def reenter(*arguments: Any, **options: Any) -> Outbox:
            monkeypatch.setattr(deliveries, "open_outbox", open_outbox)
            client.record("s", ("user", "from within"))
            second.append(open_outbox(*arguments, **options))
            return second[0]

        monkeypatch.setattr(deliveries, "open_outbox", reenter)
        client.record("s", ("user", "from without"))
        assert second[0].is_closed
        assert client.flush(10)
    assert provider.texts("s") == ["from within", "from without"]


# ── the rest ──


def test_closing_frees_the_threads_that_wait(provider: FakeProvider) -> None:
    provider.delay_seconds = 20.0
    client = Client(timeout_seconds=30.0)
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            client.ping()
        except CancelledError as error:
            ended.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert eventually(lambda: provider.requests)
    client.close()
    thread.join(120)
    assert [type(error) for error in ended] == [CancelledError]


def test_a_loop_thread_that_cannot_start_can_start_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer() -> int:
        return 42

    loop_thread = LoopThread()

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        refused = answer()
        with pytest.raises(RuntimeError):
            loop_thread.run(refused)
        refused.close()
    assert loop_thread.run(answer()) == 42
    loop_thread.close()


def test_the_agent_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_AGENT", "anna")
    assert (Client().agent_id, AsyncClient().agent_id) == ("anna", "anna")
    assert Client(agent_id="bert").agent_id == "bert"
