"""Backups: made beside writes, refused when damaged, put back whole."""

from __future__ import annotations

import asyncio
import gzip
import io
import shutil
import stat
import subprocess
import sys
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from offbook.api import embedded
from offbook.api.memory import Memory
from offbook.model.errors import InvalidInput, OffbookError, StoreError, StoreOwned, StoreTooNew
from offbook.model.home import Home, Lock
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import LogLine, Message
from offbook.transfer.backup import (
    BackupDamaged,
    UnfinishedRestore,
    check_archive,
    making,
    read_manifest,
    restore,
    resume,
    write_backup,
)
from offbook.transfer.backup.archive import pack

Members = list[tuple[tarfile.TarInfo, bytes]]
LARGE = "a large part " * 5_500


def open_memory(folder: Path) -> AbstractAsyncContextManager[Memory]:
    """Without the model, which would be put into the folder meanwhile."""
    return embedded.open_memory(folder, settings=Settings(embedding=Embedding(model="none")))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory and its backup, which tests copy."""
    folder = tmp_path_factory.mktemp("made")

    async def make() -> None:
        async with open_memory(folder / "home") as memory:
            for number in range(20):
                await memory.on_message(memory.scope("chat"), [Message(role="user", content=f"message {number}")])
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=LARGE)])
            await memory.on_message(memory.scope("notes", "second"), [Message(role="user", content=LARGE)])
        await write_backup(Home(folder / "home"), folder / "made.tar.gz")

    asyncio.run(make())
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(made / "home", tmp_path / "home"))


@pytest.fixture
def archive(made: Path, home: Home, tmp_path: Path) -> Path:
    return Path(shutil.copy2(made / "made.tar.gz", tmp_path))


async def log_of(folder: Path, session: str = "chat", agent: str = "main") -> list[LogLine]:
    async with open_memory(folder) as memory:
        return (await memory.log(memory.scope(session, agent), limit=1_000)).messages


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ── making ──


async def test_a_backup_holds_the_log_the_large_parts_and_nothing_else(home: Home, tmp_path: Path) -> None:
    home.owner_token()
    home.outboxes.mkdir()
    (home.blobs / "unfinished.tmp").write_bytes(b"x")
    manifest = await write_backup(home, tmp_path / "made.tar.gz")
    with tarfile.open(tmp_path / "made.tar.gz") as made:
        names = made.getnames()
    assert names[:2] == ["manifest.json", "offbook.db"]
    assert len(names) == 4
    assert all(name.startswith("blobs/") for name in names[2:])
    assert {agent.agent_id: agent.messages for agent in manifest.agents} == {"main": 21, "second": 1}
    assert (manifest.messages, manifest.missing) == (22, [])


def test_only_the_owner_can_read_it_and_nothing_is_left_beside_it(made: Path) -> None:
    assert stat.S_IMODE((made / "made.tar.gz").stat().st_mode) == 0o600
    assert sorted(path.name for path in made.iterdir()) == ["home", "made.tar.gz"]


async def test_a_backup_while_messages_arrive_is_one_moment(home: Home, tmp_path: Path) -> None:
    async with open_memory(home.folder) as memory:
        is_over = False

        async def keep_writing() -> int:
            number = 0
            while not is_over:
                await memory.on_message(memory.scope("busy"), [Message(role="user", content=f"{number} {LARGE}")])
                number += 1
            return number

        writing = asyncio.create_task(keep_writing())
        for number in range(3):
            await write_backup(home, tmp_path / f"{number}.tar.gz")
        is_over = True
        written = await writing
    assert written > 3
    for number in range(3):
        restored = await restore(tmp_path / f"{number}.tar.gz", Home(tmp_path / f"new {number}"))
        assert (restored.faults, restored.manifest.missing) == ([], [])
        found = await log_of(tmp_path / f"new {number}", "busy")
        assert [str(line.message.content).split()[0] for line in found] == [str(each) for each in range(len(found))]


async def test_a_file_that_is_there_is_not_replaced(home: Home, archive: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(InvalidInput, match="another name"):
        await write_backup(home, archive)
    assert archive.read_bytes() == before


async def test_nothing_to_back_up_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing to back up"):
        await write_backup(Home(tmp_path / "none"), tmp_path / "made.tar.gz")
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_is_not_there_is_told(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        await write_backup(home, tmp_path / "missing" / "made.tar.gz")


async def test_a_damaged_large_part_is_left_out_and_named(home: Home, tmp_path: Path) -> None:
    damaged = next(path for path in sorted(home.blobs.rglob("*")) if path.is_file())
    damaged.write_bytes(b"not what it was")
    manifest = await write_backup(home, tmp_path / "made.tar.gz")
    assert manifest.missing == [str(damaged.relative_to(home.folder))]
    assert (await restore(tmp_path / "made.tar.gz", Home(tmp_path / "new"))).faults == []


# ── restoring ──


async def test_what_is_restored_is_what_was_backed_up(home: Home, archive: Path, tmp_path: Path) -> None:
    restored = await restore(archive, Home(tmp_path / "new"))
    assert restored.faults == []
    assert restored.moved_to is None
    assert await log_of(tmp_path / "new") == await log_of(home.folder)
    assert await log_of(tmp_path / "new", "notes", "second") == await log_of(home.folder, "notes", "second")


async def test_what_is_restored_is_the_owners_alone(archive: Path, tmp_path: Path) -> None:
    await restore(archive, Home(tmp_path / "new"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    assert modes == {0o600, 0o700}


async def test_data_is_not_replaced_unless_told_and_then_kept_aside(home: Home, archive: Path) -> None:
    async with open_memory(home.folder) as memory:
        await memory.on_message(memory.scope("chat"), [Message(role="user", content="after the backup")])
    before = contents_of(home.folder)
    with pytest.raises(InvalidInput, match="--force"):
        await restore(archive, home)
    assert contents_of(home.folder) == before
    restored = await restore(archive, home, force=True)
    assert restored.moved_to is not None
    kept = contents_of(Path(restored.moved_to))
    assert {name: before[name] for name in kept} == kept
    assert "offbook.db" in kept
    assert len(await log_of(home.folder)) == 21


async def test_tokens_and_settings_stay_where_they_are(home: Home, archive: Path) -> None:
    token = home.owner_token()
    home.config.write_text("minScore = 0.5\n")
    await restore(archive, home, force=True)
    assert (home.owner_token(), home.config.read_text()) == (token, "minScore = 0.5\n")


async def test_a_folder_that_a_provider_owns_is_left_alone(home: Home, archive: Path) -> None:
    lock = Lock(home)
    before = contents_of(home.folder)
    with pytest.raises(StoreOwned, match="stop it"):
        await restore(archive, home, force=True)
    lock.release()
    assert contents_of(home.folder) == before


async def test_a_backup_of_a_tampered_log_is_restored_and_its_faults_told(home: Home, tmp_path: Path) -> None:
    connection = apsw.Connection(str(home.database))
    connection.execute("UPDATE messages SET content = '\"forged\"' WHERE seq = 4")
    connection.close()
    await write_backup(home, tmp_path / "made.tar.gz")
    restored = await restore(tmp_path / "made.tar.gz", Home(tmp_path / "new"))
    assert [fault.seq for fault in restored.faults] == [4]


# ── what is no backup of ours ──


def rewritten(archive: Path, change: Callable[[Members], Any]) -> Path:
    """The archive with its members changed by somebody who knows tar."""
    with tarfile.open(archive) as source:
        members = [(member, source.extractfile(member).read()) for member in source]  # type: ignore[union-attr]
    change(members)
    altered = archive.with_name("altered.tar.gz")
    with tarfile.open(altered, "w:gz") as target:
        for member, content in members:
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    return altered


def with_manifest(members: Members, **fields: Any) -> None:
    member, content = members[0]
    members[0] = member, msgspec.json.encode(msgspec.json.decode(content) | fields)


def change_a_byte_of_the_log(members: Members) -> None:
    member, content = members[1]
    members[1] = member, content[:5_000] + bytes([content[5_000] ^ 1]) + content[5_001:]


def change_a_large_part(members: Members) -> None:
    members[2] = members[2][0], members[2][1].replace(b"large", b"small")


def add_a_file(members: Members, name: str, kind: bytes = tarfile.REGTYPE, links_to: str = "") -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, links_to
    members.append((member, b""))


def name_a_file_outside(members: Members) -> None:
    manifest = msgspec.json.decode(members[0][1])
    manifest["files"].append({"name": "../outside", "sha256": "0" * 64, "bytes": 0})
    members[0] = members[0][0], msgspec.json.encode(manifest)
    add_a_file(members, "../outside")


def turn_the_log_into_a_link(members: Members) -> None:
    members[1][0].type, members[1][0].linkname = tarfile.SYMTYPE, "/etc/passwd"
    members[1] = members[1][0], b""


CHANGES: dict[str, Callable[[Members], Any]] = {
    "a byte of the log": change_a_byte_of_the_log,
    "a large part": change_a_large_part,
    "a large part is missing": lambda members: members.pop(),
    "the log is missing": lambda members: members.pop(1),
    "the manifest is missing": lambda members: members.pop(0),
    "the manifest is not first": lambda members: members.reverse(),
    "a member twice": lambda members: members.append(members[1]),
    "a foreign file": lambda members: add_a_file(members, "token"),
    "a path that leads out": lambda members: add_a_file(members, "../../escaped"),
    "an absolute path": lambda members: add_a_file(members, "/tmp/escaped"),
    "a path that leads out and is in the manifest": name_a_file_outside,
    "a link": lambda members: add_a_file(members, "blobs/link", tarfile.SYMTYPE, "/etc/passwd"),
    "the log as a link": turn_the_log_into_a_link,
    "a device": lambda members: add_a_file(members, "blobs/device", tarfile.CHRTYPE),
    "no files": lambda members: with_manifest(members, files=[]),
    "an unknown field": lambda members: with_manifest(members, surprise=1),
    "a wrong type": lambda members: with_manifest(members, agents="none"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_an_altered_backup_is_refused_and_nothing_is_touched(
    change: Callable[[Members], Any], archive: Path, tmp_path: Path
) -> None:
    altered = rewritten(archive, change)
    shutil.rmtree(tmp_path / "home")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BackupDamaged):
        await restore(altered, Home(tmp_path / "new"))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kept", [0, 5, 200, 0.5, -1, -8, -9])
async def test_a_backup_that_was_cut_off_is_refused(kept: float, archive: Path, tmp_path: Path) -> None:
    content = archive.read_bytes()
    end = int(len(content) * kept) if isinstance(kept, float) else kept
    archive.write_bytes(content[:end])
    with pytest.raises(BackupDamaged):
        await restore(archive, Home(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"not a backup", gzip.compress(b"nor this"), gzip.compress(b"\0" * 10_240)],
    ids=["empty", "text", "packed text", "packed zeros"],
)
async def test_what_is_no_backup_at_all_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BackupDamaged):
        await restore(tmp_path / "file", Home(tmp_path / "new"))


@pytest.mark.parametrize(
    "fields", [{"format": 2}, {"format": 2, "files": "elsewhere"}, {"schemaVersion": 999}], ids=str
)
async def test_a_backup_of_a_newer_offbook_is_refused_as_such(
    fields: dict[str, Any], archive: Path, tmp_path: Path
) -> None:
    newer = rewritten(archive, lambda members: with_manifest(members, **fields))
    with pytest.raises(StoreTooNew, match="upgrade Offbook"):
        await restore(newer, Home(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


async def test_every_error_says_what_to_do(archive: Path) -> None:
    altered = rewritten(archive, change_a_byte_of_the_log)
    with pytest.raises(OffbookError, match="take another backup"):
        check_archive(altered)
    assert read_manifest(archive) == check_archive(archive)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_huge_header_is_refused_before_it_is_read(kind: bytes, is_first: bool, archive: Path) -> None:
    huge = tarfile.TarInfo("x")
    huge.type, huge.size = kind, 40_000_000
    forged = archive.with_name("forged.tar.gz")
    with tarfile.open(archive) as source:
        manifest = source.next()
        end = manifest.offset_data + -(-manifest.size // 512) * 512  # type: ignore[union-attr]
    with gzip.open(forged, "wb", compresslevel=1) as target:
        target.write(b"" if is_first else gzip.decompress(archive.read_bytes())[:end])
        target.write(huge.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(40):
            target.write(b"\0" * 1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(BackupDamaged, match="header is larger"):
            check_archive(forged)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("step", ["copying", "packing", "checking"])
async def test_a_backup_that_is_cancelled_leaves_nothing(
    step: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack_late(*arguments: Any) -> None:
        time.sleep(0.2)
        pack(*arguments)

    @contextmanager
    def progress(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
        if description == step:
            asyncio.get_running_loop().call_later(0.05, backup.cancel)
        yield lambda steps: time.sleep(0.05)

    monkeypatch.setattr(making, "pack", pack_late)
    backup = asyncio.create_task(write_backup(home, tmp_path / "made.tar.gz", progress=progress))
    with pytest.raises(asyncio.CancelledError):
        await backup
    await asyncio.sleep(0.5)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


# ── restores that break off ──

BREAK_OFF = """
import asyncio, os, shutil, sys
from pathlib import Path
from offbook.transfer.backup import restore
from offbook.api.embedded import open_memory
from offbook.model.home import Home
from offbook.model.types import Message

crashed, archive, cut_off = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
rename, left = Path.rename, 0

def status_of(work):
    child = os.fork()
    if not child:
        asyncio.run(work())
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

async def crash():
    async with open_memory(crashed) as memory:
        await memory.on_message(memory.scope("chat"), [Message(role="user", content="in the write-ahead log only")])
        os._exit(9)

def rename_until(path, target):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
    return rename(path, target)

assert status_of(crash) == 9
assert (crashed / "offbook.db-wal").stat().st_size
Path.rename = rename_until
for folder in cut_off.iterdir():
    for left in (1, 2, 3, 4):
        home = Path(shutil.copytree(crashed, folder / str(left)))
        assert status_of(lambda: restore(archive, Home(home), force=True)) == 9
"""


@pytest.fixture(scope="module")
def broken_off(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By what comes after and by the number of the rename: a provider that crashed with messages in its write-ahead
    log, then a restore that was cut off there. Each in a process that ends so; all of them forked from one."""
    folder = tmp_path_factory.mktemp("broken off")
    for what_follows in ("finished", "undone"):
        (folder / what_follows).mkdir()
    crashed = shutil.copytree(made / "home", tmp_path_factory.mktemp("crashed") / "home")
    script = [sys.executable, "-c", BREAK_OFF, str(crashed), str(made / "made.tar.gz"), str(folder)]
    subprocess.run(script, timeout=120, check=True)
    return folder


@pytest.mark.parametrize("at_rename", [1, 2, 3, 4])
async def test_a_restore_that_is_cut_off_is_finished_and_loses_nothing(
    at_rename: int, broken_off: Path, archive: Path
) -> None:
    home = Home(broken_off / "finished" / str(at_rename))
    with pytest.raises(StoreError, match="offbook restore --resume --home"):
        await log_of(home.folder)
    with pytest.raises(UnfinishedRestore, match="offbook restore --resume --home"):
        await restore(archive, home, force=True)
    with pytest.raises(UnfinishedRestore):
        await write_backup(home, archive.with_name("another.tar.gz"))
    restored = await resume(home)
    assert restored is not None
    assert (restored.faults, restored.manifest.messages) == ([], 22)
    assert len(await log_of(home.folder)) == 21
    assert not (Path(str(restored.moved_to)) / "offbook.db-wal").exists()
    before = await log_of(Path(str(restored.moved_to)))
    assert before[-1].message.content == "in the write-ahead log only"
    assert not list(home.folder.glob(".restore-*"))
    assert not (home.folder / "restore.json").exists()
    with pytest.raises(InvalidInput, match="nothing to finish"):
        await resume(home)


@pytest.mark.parametrize("at_rename", [1, 2, 3, 4])
async def test_a_restore_that_cannot_be_finished_is_undone(at_rename: int, broken_off: Path) -> None:
    home = Home(broken_off / "undone" / str(at_rename))
    (unpacked,) = home.folder.glob(".restore-*")
    shutil.rmtree(unpacked)
    assert await resume(home) is None
    assert (await log_of(home.folder))[-1].message.content == "in the write-ahead log only"
    assert not list(home.folder.glob("before-restore-*"))


@pytest.mark.parametrize("at_rename", [1, 2, 3, 4])
async def test_a_restore_that_fails_while_files_move_leaves_all_as_it_was(
    at_rename: int, home: Home, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rename, left = contents_of(home.folder), Path.rename, [at_rename]

    def failing(path: Path, target: Path) -> Path:
        left[0] -= 1
        if not left[0]:
            raise PermissionError(13, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(InvalidInput, match="Permission denied"):
        await restore(archive, home, force=True)
    assert contents_of(home.folder) | {"offbook.lock": b""} == before | {"offbook.lock": b""}


async def test_what_cannot_be_undone_either_says_how_to_finish_it(
    home: Home, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, left = Path.rename, [2]

    def failing(path: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] <= 0:
            raise PermissionError(13, "Permission denied")
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", failing)
        with pytest.raises(UnfinishedRestore, match="offbook restore --resume"):
            await restore(archive, home, force=True)
    assert (await resume(home)) is not None
    assert len(await log_of(home.folder)) == 21
