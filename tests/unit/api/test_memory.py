"""The verbs, embedded: no daemon, a real store."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.embedded import open_memory, open_parts
from offbook.api.http import HttpSurface
from offbook.api.memory import Memory
from offbook.api.messages import Request
from offbook.api.metrics import Metrics
from offbook.ingest.frames import frame
from offbook.log import reading
from offbook.model.errors import SettingsError, StoreOwned, WrongShape
from offbook.model.home import Home, token_digest
from offbook.model.settings import load
from offbook.model.status import CaptureClaim
from offbook.model.types import Caller, Message
from offbook.projections.base import Batch, Progress
from offbook.projections.lanes import Job

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ALICE = Caller(name="token:alice")
BOB = Caller(name="token:bob")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as opened:
        yield opened


def user(text: str, **fields: object) -> Message:
    return Message(role="user", content=text, **fields)  # type: ignore[arg-type]


async def log_of(memory: Memory, session: str = "chat") -> list[object]:
    return [line.message.content for line in (await memory.log(memory.scope(session))).messages]


async def test_a_message_goes_in_and_comes_back(memory: Memory) -> None:
    receipt = await memory.on_message(memory.scope("chat"), [user("My cat is called Ada.", id="1")])
    assert (receipt.accepted, receipt.duplicates, receipt.first_seq, receipt.last_seq) == (1, 0, 1, 1)
    assert await log_of(memory) == ["My cat is called Ada."]


async def test_switched_off_nothing_is_recorded_and_nothing_goes_missing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[agents.quiet]\nenabled = false\n")
    async with open_memory(tmp_path, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as memory:
        quiet, heard = memory.scope("chat", "quiet"), memory.scope("chat", "heard")
        for scope in (quiet, heard):
            claim = CaptureClaim(client="plugin", first=1, last=1, sent=1)
            await memory.on_message(scope, [user("My cat is called Ada. " + "x" * 100_000)], claim=claim)
            await memory.pre_compaction(scope, [user("It is grey.")])
            await memory.session_end(scope, reason="idle")
        assert len((await memory.log(heard)).messages) == 2
        assert (await memory.log(quiet)).messages == []
        assert len([path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]) == 1
        status = await memory.status("quiet")
        assert (status.counts.messages, status.counts.chars, status.capture.missing) == (0, 0, 0)
        assert await memory.session_start(quiet) is None
        swap = await memory.swap(quiet, used_tokens=90_000, context_window=100_000, force=True)
        assert (swap.swapped, "enabled is false" in swap.reason) == (False, True)
        events = (await memory.audit("quiet")).events
        assert {event.details.get("enabled") for event in events if event.verb.startswith(("on", "hooks"))} == {False}


async def test_messages_are_pinned_by_their_own_ids_in_their_session(memory: Memory) -> None:
    for session in ("chat", "other"):
        await memory.on_message(memory.scope(session), [user(f"{session} {id_}", id=id_) for id_ in "abc"])
    pinned = await memory.pin("main", session_id="chat", message_ids=["b", "nowhere", "a"])
    assert pinned.changed == 2
    assert (await memory.status("main")).pinned == 2
    assert (await memory.pin("main", session_id="chat", message_ids=["a"], pinned=False)).changed == 1
    assert (await memory.pin("main", session_id="unheard", message_ids=["a"])).changed == 0
    with pytest.raises(WrongShape, match="sessionId"):
        await memory.pin("main", message_ids=["a"])


async def test_the_agent_is_taken_from_the_key(memory: Memory) -> None:
    assert memory.scope("agent:ada:chat").agent_id == "ada"
    assert memory.scope("chat").agent_id == "main"


async def test_no_message_is_refused(memory: Memory) -> None:
    with pytest.raises(WrongShape, match="empty"):
        await memory.on_message(memory.scope("chat"), [])


async def test_a_large_message_lies_outside_the_log_and_comes_back_whole(memory: Memory, tmp_path: Path) -> None:
    text = "The beginning of a very long story. " + "é👋x" * 100_000
    await memory.on_message(memory.scope("chat"), [user(text)])
    assert await log_of(memory) == [text]
    blobs = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert [path.stat().st_mode & 0o777 for path in blobs] == [0o600]
    context = await memory.get_compressed_context(memory.scope("chat"), 2_000)
    assert "The beginning of a very long story." in context.text
    assert context.chars <= 2_000
    assert context.parts[0].kind == "summary"


async def test_a_text_outside_the_log_is_verbatim_in_a_context_with_room_for_it(memory: Memory) -> None:
    text = "word " * 20_000
    await memory.on_message(memory.scope("chat"), [user(text)])
    context = await memory.get_compressed_context(memory.scope("chat"), 200_000)
    assert context.messages[0].content == text
    assert context.parts[0].kind == "verbatim"


async def test_an_image_is_a_reference_in_a_context_and_whole_in_the_log(memory: Memory) -> None:
    picture = {"type": "image", "mediaType": "image/png", "data": "iVBORw0KGgo" + "A" * 90_000}
    await memory.on_message(memory.scope("chat"), [Message(role="user", content=[picture])])
    context = await memory.get_compressed_context(memory.scope("chat"), 1_000_000)
    assert context.chars < 500
    assert len(str(context.messages)) < 1_000
    assert await log_of(memory) == [[picture]]


async def test_secrets_are_redacted_before_they_are_stored(memory: Memory, tmp_path: Path) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    large = {"type": "tool-result", "toolCallId": "c1", "content": "x " * 50_000 + secret}
    await memory.on_message(memory.scope("chat"), [user(f"my key is {secret}, keep it safe")])
    await memory.on_message(memory.scope("chat"), [Message(role="tool", content=[large])])
    assert "[redacted:aws-key]" in str((await log_of(memory))[0])
    status = await memory.status("main")
    assert status.counts.redactions == 2
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


async def test_noise_is_kept_and_marked(memory: Memory) -> None:
    await memory.on_message(
        memory.scope("chat"), [user("[cron:nightly] run the report"), user("The report is for Ada.")]
    )
    lines = (await memory.log(memory.scope("chat"))).messages
    assert [line.noise for line in lines] == ["cron", None]
    assert (await memory.status("main")).counts.noise == 1


async def test_what_we_injected_is_not_captured_back(memory: Memory) -> None:
    shown = frame("They told you: the cat is called Ada.", kind="recall", key=memory._intake._frame_key)
    await memory.on_message(memory.scope("chat"), [user(f"{shown}\nWhat is my cat called?")])
    assert await log_of(memory) == ["What is my cat called?"]


async def test_following_a_log_waits_for_the_next_message(memory: Memory) -> None:
    scope = memory.scope("chat")
    await memory.on_message(scope, [user("the first one")])
    following = asyncio.create_task(memory.log(scope, after_seq=1, wait_seconds=30))
    await asyncio.sleep(0.05)
    assert not following.done()
    await memory.on_message(scope, [user("the second one")])
    page = await asyncio.wait_for(following, 120)
    assert [line.message.content for line in page.messages] == ["the second one"]
    assert page.last_seq == 2
    nothing = await memory.log(scope, after_seq=2, wait_seconds=0.05)
    assert (nothing.messages, nothing.last_seq) == ([], 2)


async def test_nobody_waits_for_a_provider_that_stops(memory: Memory) -> None:
    following = asyncio.create_task(memory.log(memory.scope("chat"), wait_seconds=30))
    await asyncio.sleep(0.05)
    memory.stop_waiting()
    assert (await asyncio.wait_for(following, 120)).messages == []
    assert (await asyncio.wait_for(memory.log(memory.scope("chat"), wait_seconds=30), 20)).messages == []


async def test_a_page_of_large_messages_ends_early(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES_OF_A_PAGE", 400_000)
    scope = memory.scope("chat")
    for number in range(4):
        await memory.on_message(scope, [user(f"{number} " * 85_000)])
    page = await memory.log(scope)
    assert [line.seq for line in page.messages] == [1, 2]
    assert page.last_seq == 2
    assert [line.seq for line in (await memory.log(scope, after_seq=2)).messages] == [3, 4]


async def test_the_newest_of_a_log(memory: Memory) -> None:
    scope = memory.scope("chat")
    await memory.on_message(scope, [user(f"message {number}") for number in range(1, 10)])
    page = await memory.log(scope, limit=3, newest=True)
    assert ([line.seq for line in page.messages], page.last_seq) == ([7, 8, 9], 9)
    assert [line.seq for line in (await memory.log(scope, after_seq=8, limit=3, newest=True)).messages] == [9]


async def test_the_context_of_an_unknown_session_is_empty(memory: Memory) -> None:
    context = await memory.get_compressed_context(memory.scope("nothing"), 1_000)
    assert (context.text, context.messages, context.parts) == ("", [], [])


async def test_a_context_reads_as_far_back_as_it_has_room(memory: Memory) -> None:
    scope = memory.scope("chat")
    for start in range(0, 600, 100):
        await memory.on_message(scope, [user(f"message number {number}") for number in range(start, start + 100)])
    whole = await memory.get_compressed_context(scope, 1_000_000)
    assert len(whole.messages) == 600
    assert [(part.kind, part.first_seq, part.last_seq) for part in whole.parts] == [("verbatim", 1, 600)]
    tail = await memory.get_compressed_context(scope, 5_000)
    assert tail.messages[-1].content == "message number 599"
    assert 4_500 < tail.chars <= 5_000


async def test_a_session_starts_with_what_is_known_of_it(memory: Memory) -> None:
    scope = memory.scope("chat")
    assert await memory.session_start(scope) is None
    await memory.on_message(scope, [user("My cat is called Ada.")])
    context = await memory.session_start(scope, max_chars=500)
    assert context is not None
    assert "Ada" in context.text


async def test_a_session_remembers_which_one_started_it(memory: Memory) -> None:
    new, known = memory.scope("agent:main:new"), memory.scope("agent:main:known")
    await memory.on_message(known, [user("hello there, Ada")])
    assert await memory.session_start(new, parent_session_id="agent:other:chat") is None
    assert await memory.session_start(known, parent_session_id="agent:main:new") is not None
    assert await memory.session_start(known) is not None
    await memory.on_message(new, [user("My cat is called Ada.")])
    parents = {one.session_id: one.parent_session_id for one in (await memory.status("main")).sessions}
    assert parents == {"agent:main:new": "agent:other:chat", "agent:main:known": "agent:main:new"}
    events = [event for event in (await memory.audit("main")).events if event.verb == "hooks/session-start"]
    assert [event.details["parentSessionId"] for event in events] == ["agent:other:chat", *["agent:main:new"] * 2]
    assert (await memory.status("main")).agents == ["main"]


async def test_a_name_that_was_only_asked_about_is_no_agent_that_is_told_of(memory: Memory) -> None:
    await memory.on_message(memory.scope("chat"), [user("hello there, Ada")])
    await memory.status("typo")
    await memory.cross("decided", enabled=False)
    assert (await memory.status("typo")).agents == ["decided", "main"]


@pytest.mark.parametrize("parent", ["", "a\x00b", "k" * 513, "\ud800"])
async def test_a_parent_is_a_key_as_others_are(memory: Memory, parent: str) -> None:
    with pytest.raises(WrongShape, match="parentSessionId"):
        await memory.session_start(memory.scope("chat"), parent_session_id=parent)
    assert (await memory.status("main")).sessions == []


async def test_ids_that_did_not_arrive_are_told_and_counted(memory: Memory) -> None:
    scope = memory.scope("chat")
    await memory.on_message(scope, [user("one", id="a-1"), user("two", id="a-2")])
    before = (await memory.status("main")).counts
    assert await memory.missing(scope, ["a-3", "a-1", "a-0", "a-3"], by=BOB) == ["a-3", "a-0"]
    assert await memory.missing(memory.scope("unheard of"), ["a-1"]) == ["a-1"]
    first, second = [event for event in (await memory.audit("main")).events if event.verb == "missing"]
    assert (first.actor, first.session_id, first.details) == ("token:bob", "chat", {"asked": 4, "missing": 2})
    assert (second.session_id, second.details) == ("unheard of", {"asked": 1, "missing": 1})
    status = await memory.status("main")
    assert [session.session_id for session in status.sessions] == ["chat"]
    assert msgspec.structs.replace(status.counts, audit_events=before.audit_events) == before


@pytest.mark.parametrize("ids", [[], [""], ["fine", "a\x00b"], ["k" * 513], ["\ud800"]])
async def test_what_can_be_no_id_is_refused(memory: Memory, ids: list[str]) -> None:
    with pytest.raises(WrongShape, match="`ids`"):
        await memory.missing(memory.scope("chat"), ids)


async def test_lifecycle_is_marked_with_reasons(memory: Memory) -> None:
    scope = memory.scope("chat")
    await memory.on_message(scope, [user("hello there, Ada")])
    await memory.session_end(scope, reason="daily")
    await memory.post_compaction(scope, {"text": "a summary"})
    marks = await memory._store.marks(scope)
    assert [(mark.kind, mark.reason) for mark in marks] == [
        ("first", None),
        ("end", "daily"),
        ("post-compaction", None),
    ]
    (session,) = (await memory.status("main")).sessions
    assert session.end_reason == "daily"


async def test_before_a_compaction_only_what_is_missing_is_saved(memory: Memory) -> None:
    scope = memory.scope("chat")
    known = [user("yes"), user("a question about tea"), user("yes")]
    await memory.on_message(scope, known)
    assert await memory.pre_compaction(scope, [*known, user("a new thought"), user("yes")]) == 2
    assert await memory.pre_compaction(scope, [*known, user("a new thought"), user("yes")]) == 0
    assert len(await log_of(memory)) == 5
    assert await memory.pre_compaction(scope, [user("with an id", id="7"), user("with an id", id="7")]) == 1
    assert await memory.pre_compaction(scope) == 0


async def test_a_context_saved_by_many_at_once_is_saved_once(memory: Memory) -> None:
    scope = memory.scope("chat")
    context = [user(f"thought number {number}") for number in range(5)]
    saved = await asyncio.gather(*[memory.pre_compaction(scope, context) for _ in range(4)])
    assert sorted(saved) == [0, 0, 0, 5]
    assert len(await log_of(memory)) == 5


async def test_audit_verifies_while_others_write(memory: Memory) -> None:
    async def write() -> None:
        for number in range(40):
            await memory.on_message(memory.scope("chat"), [user(f"message number {number}")])

    writing = asyncio.gather(*[write() for _ in range(4)])
    verified = [(await memory.audit("main", limit=1)).verified for _ in range(20)]
    await writing
    assert all(verified)


async def test_a_damaged_large_part_does_not_take_the_context_with_it(memory: Memory, tmp_path: Path) -> None:
    await memory.on_message(memory.scope("chat"), [user("word " * 20_000), user("and what is this about?")])
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    context = await memory.get_compressed_context(memory.scope("chat"), 200_000)
    assert "and what is this about?" in context.text


async def test_a_start_lifts_an_end(memory: Memory) -> None:
    scope = memory.scope("chat")
    await memory.on_message(scope, [user("hello there, Ada")])
    await memory.session_end(scope, reason="idle")
    await memory.session_start(scope)
    (session,) = (await memory.status("main")).sessions
    assert session.ended_at is None


async def test_every_verb_leaves_one_event(memory: Memory) -> None:
    scope = memory.scope("chat")
    verbs = {
        "onMessage": memory.on_message(scope, [user("hello there")], by=BOB),
        "getCompressedContext": memory.get_compressed_context(scope, 100, by=BOB),
        "log": memory.log(scope, by=BOB),
        "missing": memory.missing(scope, ["1"], by=BOB),
        "hooks/session-start": memory.session_start(scope, by=BOB),
        "hooks/session-end": memory.session_end(scope, by=BOB),
        "hooks/pre-compaction": memory.pre_compaction(scope, by=BOB),
        "hooks/post-compaction": memory.post_compaction(scope, by=BOB),
        "status": memory.status("main", by=BOB),
        "audit": memory.audit("main", by=BOB),
    }
    for verb in verbs.values():
        await verb
    report = await memory.audit("main", by=ALICE)
    asked = [event for event in report.events if event.actor == "token:bob"]  # not what the background did meanwhile
    assert [event.verb for event in asked] == [*verbs]
    assert "audit" in [event.verb for event in report.events if event.actor == "token:alice"]
    assert report.verified
    assert report.head.hash == report.events[-1].hash


async def test_audit_from_a_time_a_place_and_a_session(memory: Memory) -> None:
    await memory.on_message(memory.scope("a"), [user("hello there")])
    await memory.on_message(memory.scope("b"), [user("hello there")])
    by_session = await memory.audit("main", session_id="a")
    assert {event.session_id for event in by_session.events} == {"a"}
    assert [event.seq for event in (await memory.audit("main", since=1, limit=1)).events] == [2]
    assert (await memory.audit("main", since=datetime.now(UTC) + timedelta(hours=1))).events == []


async def test_status_compares_what_was_sent_with_what_arrived(memory: Memory) -> None:
    claim = CaptureClaim(client="laptop", first=3, last=3, sent=10)
    await memory.on_message(memory.scope("chat"), [user("hello there")], claim=claim)
    capture = (await memory.status("main")).capture
    assert (capture.sent, capture.received, capture.missing, capture.waiting) == (10, 1, 2, 7)


async def test_ping(memory: Memory) -> None:
    health = await memory.ping()
    async with asyncio.timeout(120):
        while health.backlog:  # until the background has looked for what was left undone
            await asyncio.sleep(0.01)
            health = await memory.ping()
    assert (health.ok, health.store, health.backlog) == (True, "sqlite", 0)


async def test_whoever_acts_for_some_agents_is_told_of_their_work_only(tmp_path: Path) -> None:
    waiting = {"ada": 2, "bea": 5}

    async def nothing(_batch: Batch) -> Progress:
        return Progress(is_idle=True)

    def those(agent_id: str | None) -> int:
        return sum(waiting.values()) if agent_id is None else waiting.get(agent_id, 0)

    environ = {"OFFBOOK_EMBEDDING_MODEL": "none", "OFFBOOK_SUMMARIZER_ORDER": "openai:a-model"}
    settings = load(tmp_path, environ=environ).settings
    job = Job("work", nothing, is_task=False, waiting=those)
    callers = {
        token_digest("ours"): Caller(name="owner"),
        token_digest("ada's"): Caller(name="token:ada", agents=frozenset({"ada"})),
    }
    async with open_parts(Home(tmp_path), settings, tasks=[job]) as (memory, _):
        surface = HttpSurface(memory, Metrics("1", lambda: 0), lambda: callers, is_socket=True, allowed_hosts=None)

        async def ask(token: str, verb: str) -> Any:
            headers = {b"authorization": f"Bearer {token}".encode()}
            answer = await surface(Request("POST", f"/v1/{verb}", headers, b'{"agentId": "ada"}' * (verb != "ping")))
            assert answer.status == 200, answer.body
            return msgspec.json.decode(answer.body)

        async with asyncio.timeout(120):
            while (await ask("ours", "ping"))[
                "backlog"
            ] != 7:  # until the background has looked for what was left undone
                await asyncio.sleep(0.01)
        assert (await ask("ada's", "ping"))["backlog"] == 2
        assert (await memory.ping()).backlog == 7
        assert "spending" in (await ask("ours", "status"))["summaries"]
        assert "spending" not in (await ask("ada's", "status"))["summaries"]


async def test_nothing_that_is_remembered_can_be_opened_by_others_whatever_the_umask(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    before = os.umask(0)
    try:
        async with open_memory(home, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as memory:
            await memory.on_message(memory.scope("chat"), [user("My cat is called Ada. " + "x" * 100_000)])
            assert (await memory.recall(memory.scope("chat"), "cat")).entries
            await memory.maintain("main")
            Home(home).owner_token()
    finally:
        os.umask(before)
    lying = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
    assert {"offbook.db", "offbook.lock", "token", "blobs", "index", "wiki"} <= lying.keys()
    assert {name: f"{mode:o}" for name, mode in lying.items() if mode & 0o077} == {}


async def test_one_process_owns_a_folder(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(StoreOwned, match="another Offbook"):
        async with open_memory(tmp_path, environ={}):
            pass
    (tmp_path / "offbook.lock").unlink()
    with pytest.raises(StoreOwned, match="another Offbook"):
        async with open_memory(tmp_path, environ={}):
            pass


async def test_no_memory_is_opened_in_a_folder_that_others_can_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(SettingsError, match="chmod go-w"):
        async with open_memory(tmp_path, environ={}):
            pass
    assert list(tmp_path.iterdir()) == []
    async with open_memory(tmp_path, environ={"OFFBOOK_SHARED_HOME": "1", "OFFBOOK_EMBEDDING_MODEL": "none"}):
        assert (tmp_path / "offbook.db").exists()
