"""Whatever somebody does to the file, verification names the place and goes on with the rest."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from offbook.api.doctor.record import check_store
from offbook.api.embedded import open_memory
from offbook.cli.root import root
from offbook.log import verification, verified_chain
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreCorrupt
from offbook.model.home import Home
from offbook.model.types import AuditEvent, Fault, Message, Scope

CHAT = Scope(agent_id="main", session_id="chat")
LARGE = "a large word " * 20_000
NOT_UTF8 = "CAST(x'22ff22' AS TEXT)"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight messages of one session in four events; the eighth has a large part."""
    folder = tmp_path_factory.mktemp("made") / "home"

    async def make() -> None:
        async with open_memory(folder) as memory:
            for number in range(3):
                texts = (f"the first of event {number}", f"the second of event {number}")
                await memory.on_message(memory.scope("chat"), [Message(role="user", content=text) for text in texts])
            blocks = [{"type": "text", "text": LARGE}, {"type": "text", "text": "and a small one"}]
            last = [Message(role="user", content="the seventh"), Message(role="user", content=blocks, meta={"a": 1})]
            await memory.on_message(memory.scope("chat"), last)

    asyncio.run(make())
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(made, tmp_path / "home"))


def tamper(home: Home, *statements: str) -> None:
    connection = apsw.Connection(str(home.database))
    for statement in statements:
        connection.execute(statement)
    connection.close()


async def faults_of(home: Home) -> list[Fault]:
    store = SqliteStore(home.database, read_only=True, snapshot=True)
    try:
        return [fault async for fault in verify(store, "main", blobs=BlobFiles(home.blobs))]
    finally:
        await store.close()


def places(faults: Iterable[Fault]) -> set[tuple[str | None, str | None, int | None]]:
    return {(fault.agent_id, fault.session_id, fault.seq) for fault in faults}


async def test_what_is_as_it_was_written_has_no_faults(home: Home) -> None:
    assert await faults_of(home) == []


# ── what cannot be read ──

UNREADABLE_MESSAGES = [
    "content = 'not json'",
    "content = '7'",
    f"content = {NOT_UTF8}",
    f"name = {NOT_UTF8}",
    "meta = '[]'",
    "meta = '{\"a\": ' || replace(hex(zeroblob(100000)), '0', '[')",
    "blobs = '[1]'",
    'redactions = \'{"a": "b"}\'',
    "ts = 9223372036854775807",
    "received_at = -9223372036854775807",
]


@pytest.mark.parametrize("change", UNREADABLE_MESSAGES)
async def test_a_message_that_cannot_be_read_is_located_and_the_rest_is_verified(home: Home, change: str) -> None:
    tamper(home, f"UPDATE messages SET {change} WHERE seq = 3", "UPDATE messages SET role = 'tool' WHERE seq = 6")
    faults = await faults_of(home)
    assert [(fault.session_id, fault.seq) for fault in faults] == [("chat", 3), ("chat", 6)]
    assert "message cannot be read" in faults[0].what


@pytest.mark.parametrize("change", UNREADABLE_MESSAGES)
async def test_reading_a_damaged_message_says_which_it_is(home: Home, change: str) -> None:
    tamper(home, f"UPDATE messages SET {change} WHERE seq = 3")
    store = SqliteStore(home.database, read_only=True)
    for reading in (store.messages(CHAT), store.messages_before(CHAT, before_seq=5)):
        with pytest.raises(StoreCorrupt, match="message 3 of session 'chat' of agent 'main' cannot be read"):
            await reading
    assert len(await store.messages(CHAT, after_seq=3)) == 5
    await store.close()


@pytest.mark.parametrize("content", ['["\\ud800"]', '{"a": 123456789012345678901234567890}'])
async def test_what_cannot_be_hashed_is_located(home: Home, content: str) -> None:
    tamper(home, f"UPDATE messages SET content = '[{{\"x\": {content}}}]' WHERE seq = 3")
    assert places(await faults_of(home)) == {("main", "chat", 3)}


@pytest.mark.parametrize("change", ["details = 'not json'", "details = '[]'", f"verb = {NOT_UTF8}", "at = 1 << 62"])
async def test_an_event_that_cannot_be_read_is_located_and_the_rest_is_verified(home: Home, change: str) -> None:
    tamper(home, f"UPDATE audit SET {change} WHERE seq = 2", "UPDATE audit SET actor = 'Mallory' WHERE seq = 4")
    faults = await faults_of(home)
    assert "audit event cannot be read" in faults[0].what
    assert {("main", None, 2), ("main", None, 4)} <= places(faults)
    assert not any("missing" in fault.what or "continue" in fault.what for fault in faults)


@pytest.mark.parametrize("change", ["details = 'not json'", f"actor = {NOT_UTF8}", "at = 1 << 62"])
async def test_reading_a_damaged_event_says_which_it_is(home: Home, change: str) -> None:
    tamper(home, f"UPDATE audit SET {change} WHERE seq = 2")
    store = SqliteStore(home.database, read_only=True)
    for reading in (store.audit_events("main"), store.newest_audit_events("main", session_id="chat")):
        with pytest.raises(StoreCorrupt, match="audit event 2 of agent 'main' cannot be read"):
            await reading
    rows = await store.examined_audit_events("main")
    assert [isinstance(row, AuditEvent) for row in rows] == [True, False, True, True]
    await store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE agents SET counts = 'not json'",
        f"UPDATE agents SET noted_hash = {NOT_UTF8}",
        "UPDATE sessions SET started_at = 1 << 62",
        f"UPDATE sessions SET key = {NOT_UTF8}",
        f"UPDATE audit SET hash = {NOT_UTF8} WHERE seq = 4",
    ],
)
async def test_no_damage_stops_it(home: Home, damage: str) -> None:
    tamper(home, damage)
    faults = await faults_of(home)
    assert any("cannot be read" in fault.what for fault in faults)


@pytest.mark.parametrize(
    ("read", "damage"),
    [
        (lambda store: store.session(CHAT), "UPDATE sessions SET started_at = 1 << 62"),
        (lambda store: store.sessions("main"), "UPDATE sessions SET started_at = 1 << 62"),
        (lambda store: store.marks(CHAT), "UPDATE marks SET at = 1 << 62"),
        (lambda store: store.counts("main"), "UPDATE agents SET counts = '[]'"),
        (lambda store: store.noted_audit_head("main"), f"UPDATE agents SET noted_hash = {NOT_UTF8}"),
        (lambda store: store.audit_head("main"), f"UPDATE audit SET hash = {NOT_UTF8}"),
        (lambda store: store.agents(), f"INSERT INTO agents (name, noted_hash) VALUES ({NOT_UTF8}, '')"),
        (lambda store: store.installation_key(), "DELETE FROM installation"),
    ],
)
async def test_every_read_says_what_is_damaged(home: Home, read, damage: str) -> None:  # type: ignore[no-untyped-def]
    tamper(home, damage)
    store = SqliteStore(home.database, read_only=True)
    with pytest.raises(StoreCorrupt, match="cannot be read"):
        await read(store)
    await store.close()


# ── what an event says it stored ──


@pytest.mark.parametrize(
    "change",
    [
        "json_remove(details, '$.firstSeq')",
        "json_remove(details, '$.hash')",
        "json_set(details, '$.lastSeq', 4000000000)",
        "json_set(details, '$.lastSeq', 9000000000000000000)",
        "json_set(details, '$.firstSeq', -5)",
        "json_set(details, '$.firstSeq', 'three')",
        "json_set(details, '$.accepted', 'many')",
        "json_set(details, '$.redactions', 3)",
    ],
)
async def test_an_event_with_altered_details_is_located(home: Home, change: str) -> None:
    tamper(home, f"UPDATE audit SET details = {change} WHERE seq = 2")
    assert places(await faults_of(home)) == {("main", None, 2)}


@pytest.mark.parametrize("last_seq", [4_000_000_000, 2**62])
async def test_a_forged_event_that_claims_any_number_of_messages_is_no_long_walk(
    home: Home, last_seq: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where its own hash was made to fit."""
    monkeypatch.setattr(verified_chain, "event_hash", lambda event: event.hash)
    details = f"json_set(details, '$.lastSeq', {last_seq}, '$.accepted', {last_seq} - 2)"
    tamper(home, f"UPDATE audit SET details = {details} WHERE seq = 2")
    faults = await faults_of(home)
    assert any(f"messages 9 to {last_seq} are missing" in fault.what for fault in faults)
    assert len(faults) < 6


async def test_messages_of_an_altered_event_are_still_looked_at(home: Home) -> None:
    tamper(
        home,
        "UPDATE audit SET actor = 'Mallory' WHERE seq IN (2, 4)",
        "UPDATE messages SET role = 'tool' WHERE seq IN (3, 7)",
    )
    assert places(await faults_of(home)) == {
        ("main", None, 2),
        ("main", "chat", 3),
        ("main", None, 4),
        ("main", "chat", 7),
    }


async def test_pages_are_small_and_steps_over_a_bad_row(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    read = SqliteStore.examined_messages

    async def noting(self: SqliteStore, scope: Scope, *, after_seq: int = 0, limit: int = 100):  # type: ignore[no-untyped-def]
        limits.append(limit)
        return await read(self, scope, after_seq=after_seq, limit=limit)

    monkeypatch.setattr(SqliteStore, "examined_messages", noting)
    monkeypatch.setattr(verification, "MESSAGES_AT_A_TIME", 3)
    tamper(home, "UPDATE messages SET content = 'not json' WHERE seq = 3", "DELETE FROM messages WHERE seq = 5")
    assert places(await faults_of(home)) == {("main", "chat", 3), ("main", "chat", 5)}
    assert max(limits) == 3
    monkeypatch.setattr(verification, "MESSAGES_COMPARED_AT_A_TIME", 1)
    assert places(await faults_of(home)) == {("main", "chat", 3), ("main", "chat", 5)}


# ── what is not in the hash, and can be had from what is ──


@pytest.mark.parametrize("seq", [3, 8])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("fingerprint = zeroblob(16)", "fingerprint"),
        ("chars = chars + 1", "noted with"),
        ("chars_through = chars_through + 1", "up to this message"),
        ("chars = chars + 1, chars_through = chars_through + 1", "noted with"),
    ],
)
async def test_what_is_derived_is_had_anew(home: Home, seq: int, change: str, told: str) -> None:
    tamper(home, f"UPDATE messages SET {change} WHERE seq = {seq}")
    faults = await faults_of(home)
    assert places(faults) == {("main", "chat", seq)}
    assert told in faults[0].what


async def test_a_message_under_another_number_is_located(home: Home) -> None:
    tamper(home, "UPDATE messages SET seq = 4000 WHERE seq = 3")
    assert places(await faults_of(home)) == {("main", "chat", 3)}


@pytest.mark.parametrize("counts", ["json_set(counts, '$.messages', 7)", "json_set(counts, '$.noise', 9)", "'{}'"])
async def test_noted_counts_are_those_of_the_chain(home: Home, counts: str) -> None:
    tamper(home, f"UPDATE agents SET counts = {counts}")
    (fault,) = await faults_of(home)
    assert "counts" in fault.what
    assert (fault.agent_id, fault.seq) == ("main", 4)


async def test_counts_noted_with_no_event_are_noticed(home: Home) -> None:
    tamper(home, f"UPDATE agents SET noted_seq = 0, noted_hash = '{'0' * 64}'")
    (fault,) = await faults_of(home)
    assert "counts are noted" in fault.what


# ── large parts ──


@pytest.mark.parametrize("content", [None, b"", LARGE.replace("word", "worm").encode()])
async def test_a_large_part_that_is_gone_or_altered_is_located(home: Home, content: bytes | None) -> None:
    (path,) = (path for path in home.blobs.rglob("*") if path.is_file())
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    (fault,) = await faults_of(home)
    assert (fault.agent_id, fault.session_id, fault.seq) == ("main", "chat", 8)
    assert "large part" in fault.what
    store = SqliteStore(home.database, read_only=True)
    assert [fault async for fault in verify(store, "main")] == []
    await store.close()


# ── what was forgotten ──

EMPTIED = """content = '"[forgotten]"', noise = 'forgotten', erased = 1"""


async def forget(folder: Path, *words: str) -> None:
    async with open_memory(folder, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as memory:
        for matching in words:
            receipt = await memory.forget("main", matching=matching)
            assert receipt.reached.messages == 1


@pytest.fixture(scope="module")
def forgotten(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without its third message."""
    folder = Path(shutil.copytree(made, tmp_path_factory.mktemp("forgotten") / "home"))
    asyncio.run(forget(folder, "the first of event 1"))
    return folder


@pytest.fixture
def home_without(forgotten: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(forgotten, tmp_path / "without"))


async def test_a_message_that_was_forgotten_is_no_fault(home_without: Home) -> None:
    assert await faults_of(home_without) == []
    await forget(home_without.folder, "and a small one", "the seventh")
    assert await faults_of(home_without) == []


async def test_a_message_that_was_emptied_without_an_event_is_one(home_without: Home) -> None:
    tamper(home_without, f"UPDATE messages SET {EMPTIED} WHERE seq = 5")
    (fault,) = await faults_of(home_without)
    assert "no audit event says it was forgotten" in fault.what
    assert (fault.session_id, fault.seq) == ("chat", 5)


@pytest.mark.parametrize(
    "change",
    [
        "content = '\"I agreed to everything.\"'",
        """content = '[{"type": "text", "text": "[forgotten]"}, {"type": "text", "text": "and more"}]'""",
        "name = 'somebody'",
        """meta = '{"a": 1}'""",
        "hash = zeroblob(32)",
        "content = 'not json'",
    ],
)
async def test_what_is_left_of_a_forgotten_message_cannot_be_altered(home_without: Home, change: str) -> None:
    tamper(home_without, f"UPDATE messages SET {change} WHERE seq = 3")
    found = await faults_of(home_without)
    assert ("main", "chat", 3) in places(found) or any(fault.seq in (3, 4) for fault in found)


async def test_what_stays_beside_a_forgotten_message_is_vouched_for_as_before(home_without: Home) -> None:
    tamper(home_without, "UPDATE messages SET content = '\"another\"' WHERE seq = 4")
    assert ("main", "chat", 4) in places(await faults_of(home_without))
    tamper(home_without, "DELETE FROM messages WHERE seq = 3")
    assert any(fault.seq == 3 for fault in await faults_of(home_without))


async def test_an_event_of_forgetting_that_was_altered_vouches_for_nothing(home_without: Home) -> None:
    tamper(
        home_without,
        "UPDATE audit SET details = replace(details, '\"firstSeq\":3', '\"firstSeq\":1') WHERE verb = 'forget'",
    )
    found = await faults_of(home_without)
    assert any("no audit event says it was forgotten" in fault.what and fault.seq == 3 for fault in found)
    assert any("altered" in fault.what and fault.session_id is None for fault in found)


# ── who asks ──


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE messages SET content = 'not json' WHERE seq = 3", "session chat, #3"),
        ("UPDATE audit SET details = 'not json' WHERE seq = 3", "(agent main, #3)"),
        (f"UPDATE audit SET hash = {NOT_UTF8} WHERE seq = 4", "(agent main, #4)"),
        (None, "session chat, #8"),
    ],
)
async def test_the_command_and_the_doctor_tell(home: Home, damage: str | None, told: str) -> None:
    if damage:
        tamper(home, damage)
    else:
        (path,) = (path for path in home.blobs.rglob("*") if path.is_file())
        path.write_bytes(path.read_bytes().replace(b"word", b"worm"))
    arguments = ["audit", "--verify", "--home", str(home.folder), "--head", "0" * 64]
    result = await asyncio.to_thread(CliRunner().invoke, root, arguments)
    assert result.exit_code == 1
    assert told in result.stdout
    assert "fault" in next(finding.what for finding in await check_store(home) if finding.check == "audit")
