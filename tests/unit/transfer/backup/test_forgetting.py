"""What is forgotten goes from backups, and from what a restore moved aside; nothing else does."""

from __future__ import annotations

import asyncio
import shutil
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from offbook.api.embedded import open_memory, open_parts
from offbook.api.memory import Memory
from offbook.forget.erase import Eraser
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreBusy
from offbook.model.home import Home
from offbook.model.receipt import ForgetReceipt
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message
from offbook.search.words import entry_id
from offbook.transfer.backup import note_backup, restore, write_backup

SETTINGS = Settings(embedding=Embedding(model="none"))
SECRET = "the red door opens with 7731"
NAME = "offbook-20261115-120000.tar.gz"


async def told(home: Home, *texts: str, session: str = "chat") -> None:
    async with open_parts(home, SETTINGS) as (memory, _):
        await memory.on_message(memory.scope(session), [Message(role="user", content=text) for text in texts])


async def forgotten(home: Home, matching: str = "red door") -> ForgetReceipt:
    async with open_memory(home.folder, settings=SETTINGS) as memory:
        return await memory.forget("main", matching=matching, reason="")


async def forget(home: Home) -> int:
    receipt = await forgotten(home)
    assert receipt.residue == []
    return receipt.reached.backups


async def left(home: Home, receipt: ForgetReceipt, matching: str | None = None) -> list[tuple[str, str]]:
    """What a verification finds, but for the bytes of files."""
    async with open_memory(home.folder, settings=SETTINGS) as memory:
        check = await memory.verify_forgotten(receipt, matching=matching)
        assert check.is_genuine
        return [(one.where, one.what) for one in check.residue if one.what != "its bytes"]


def unpacked(archive: Path) -> bytes:
    return zlib.decompress(archive.read_bytes(), wbits=31)


async def test_a_backup_loses_it_and_keeps_the_rest(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Good morning to everybody here.", SECRET, "The blue door is always open.")
    home.backups.mkdir()
    await write_backup(home, home.backups / NAME)
    assert SECRET.encode() in unpacked(home.backups / NAME)
    assert await forget(home) == 1
    assert SECRET.encode() not in unpacked(home.backups / NAME)
    other = Home(tmp_path / "other")
    assert (await restore(home.backups / NAME, other)).faults == []
    store = SqliteStore(other.database, read_only=True)
    try:
        assert [fault async for fault in verify(store, "main")] == []
        arrivals = await store.arrivals("main", after_event=0)
        texts = [placed.logged.message.content for placed in arrivals.messages]
    finally:
        await store.close()
    assert texts == ["Good morning to everybody here.", "[forgotten]", "The blue door is always open."]


async def test_a_backup_of_another_history_is_left_as_it_is(tmp_path: Path) -> None:
    """The same session and number are another message there."""
    home, other = Home(tmp_path / "home"), Home(tmp_path / "other")
    await told(other, "This is another history altogether.", "And the same number is this.")
    home.backups.mkdir(parents=True)
    await write_backup(other, home.backups / NAME)
    before = (home.backups / NAME).read_bytes()
    await told(home, "Good morning to everybody here.", SECRET)
    assert await forget(home) == 0
    assert (home.backups / NAME).read_bytes() == before


async def test_what_a_restore_moved_aside_loses_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Good morning to everybody here.", SECRET)
    await write_backup(home, tmp_path / "out.tar.gz")
    await restore(tmp_path / "out.tar.gz", home, force=True)
    (aside,) = home.folder.glob("before-restore-*")
    assert SECRET.encode() in (aside / "offbook.db").read_bytes()
    assert await forget(home) == 1
    assert not [path for path in home.folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


async def test_a_shortened_log_that_was_moved_aside_loses_it_too(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Good morning to everybody here.", SECRET)
    shutil.copy(home.database, tmp_path / "older.db")
    await write_backup(home, tmp_path / "out.tar.gz")
    await told(home, "One more.")
    shutil.move(tmp_path / "older.db", home.database)  # its head tells of more
    await restore(tmp_path / "out.tar.gz", home, force=True)
    assert await forget(home) == 1
    assert not [path for path in home.folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


async def test_a_log_that_is_gone_is_restored_without_force(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Good morning to everybody here.")
    await write_backup(home, tmp_path / "out.tar.gz")
    home.database.unlink()
    shutil.rmtree(home.blobs, ignore_errors=True)
    await restore(tmp_path / "out.tar.gz", home, force=False)
    await told(home, "And on it goes.")


# ── verifying ──


async def test_a_verification_looks_into_backups_and_copies_that_were_left(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Good morning to everybody here.", SECRET)
    kept, elsewhere = tmp_path / "kept.tar.gz", tmp_path / "disk" / "elsewhere.tar.gz"
    manifest = await write_backup(home, kept)
    receipt = await forgotten(home)
    assert await left(home, receipt) == []

    home.backups.mkdir()
    elsewhere.parent.mkdir()
    for place in (home.backups / NAME, elsewhere):  # put back by hand
        shutil.copy(kept, place)
    note_backup(home, elsewhere, manifest)
    copies = [home.folder / "before-restore-20261115-120000-000000", home.folder / ".restore-x"]
    copies += [home.backups / ".offbook-backup-x" / "unpacked", elsewhere.parent / ".offbook-backup-y"]
    await restore(kept, Home(tmp_path / "other"))
    for copy in copies:
        copy.mkdir(parents=True)
        shutil.copy(tmp_path / "other" / "offbook.db", copy)
    holding = {f"the backup {home.backups / NAME}", f"the backup {elsewhere}", *(f"{c / 'offbook.db'}" for c in copies)}
    for matching in (None, "red door"):
        found = await left(home, receipt, matching)
        assert {where for where, _ in found} == holding
        assert {what for _, what in found} == {"the text of message 2 of chat"}
    assert sorted(path.name for path in home.backups.iterdir()) == [".offbook-backup-x", "known.json", NAME]


async def test_one_word_is_found_by_its_row_and_who_else_said_it_is_not(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Yes", "The blue door is always open.", "Yes")
    kept = tmp_path / "kept.tar.gz"
    await write_backup(home, kept)
    async with open_memory(home.folder, settings=SETTINGS) as memory:
        receipt = await memory.forget("main", entry_ids=[entry_id((1 << 32) + 3)])
    assert [(span.session_id, span.first_seq) for span in receipt.spans] == [("chat", 3)]
    assert (receipt.probes, receipt.wordless, await left(home, receipt)) == ([], 1, [])
    home.backups.mkdir()
    shutil.copy(kept, home.backups / NAME)  # put back by hand
    assert await left(home, receipt) == [(f"the backup {home.backups / NAME}", "the text of message 3 of chat")]


async def test_what_cannot_be_looked_through_is_said(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Good morning to everybody here.", SECRET)
    receipt = await forgotten(home)
    manifest = await write_backup(home, tmp_path / "cut.tar.gz")
    note_backup(home, tmp_path / "cut.tar.gz", manifest)
    whole = (tmp_path / "cut.tar.gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[:-100])
    (home.backups / NAME).write_bytes(b"no archive at all")
    aside = home.folder / "before-restore-1"
    aside.mkdir()
    (aside / "offbook.db").write_bytes(b"not a database" * 1000)
    found = await left(home, receipt)
    assert {where for where, _ in found} == {
        f"the backup {tmp_path / 'cut.tar.gz'}",
        f"the backup {home.backups / NAME}",
        str(aside / "offbook.db"),
    }
    assert all(what.startswith("not looked through: ") for _, what in found)


# ── what was left by one that was killed ──


async def test_copies_that_were_left_go_when_something_is_forgotten(tmp_path: Path) -> None:
    home, elsewhere = Home(tmp_path / "home"), tmp_path / "disk" / "out.tar.gz"
    await told(home, SECRET)
    elsewhere.parent.mkdir()
    note_backup(home, elsewhere, await write_backup(home, elsewhere))
    copies = [home.backups / ".offbook-backup-x", elsewhere.parent / ".offbook-backup-y", home.folder / ".restore-z"]
    for copy in copies:
        (copy / "unpacked").mkdir(parents=True)
        (copy / ".offbook-owner").write_text("1\n")  # not locked: its process is gone
        shutil.copy(home.database, copy / "unpacked")
    assert await forget(home) == 1
    assert [copy for copy in copies if copy.exists()] == []


# ── what is in a backup only ──


async def test_what_only_a_backup_says_goes_from_it(tmp_path: Path) -> None:
    """The log was set back to before it was said."""
    home, other = Home(tmp_path / "home"), Home(tmp_path / "other")
    await told(home, "Good morning to everybody here.")
    await write_backup(home, tmp_path / "before.tar.gz")
    await restore(tmp_path / "before.tar.gz", other)
    await told(other, SECRET, "The blue door is always open.")
    home.backups.mkdir()
    await write_backup(other, home.backups / NAME)

    async with open_memory(home.folder, settings=SETTINGS) as memory:
        would = await memory.forget("main", matching="RED  door", reason="", dry_run=True)
        assert (would.reached.messages, would.reached.backups) == (0, 1)
        assert SECRET.encode() in unpacked(home.backups / NAME)
        nobodys = await memory.forget("main", matching="a purple window", reason="")
        assert (nobodys.reached.backups, nobodys.signature) == (0, "")
        receipt = await memory.forget("main", matching="RED  door", reason="")
        assert (receipt.reached.messages, receipt.reached.backups, receipt.residue) == (0, 1, [])
        assert (await memory.verify_forgotten(receipt)).residue == []
    held = unpacked(home.backups / NAME)
    assert SECRET.encode() not in held
    assert b"The blue door" in held


async def test_more_of_it_in_a_backup_goes_with_what_the_log_has(tmp_path: Path) -> None:
    home, other = Home(tmp_path / "home"), Home(tmp_path / "other")
    await told(home, SECRET)
    await write_backup(home, tmp_path / "before.tar.gz")
    await restore(tmp_path / "before.tar.gz", other)
    await told(other, "Once more: the red door, and heliotrope is its colour.")
    home.backups.mkdir()
    await write_backup(other, home.backups / NAME)
    assert await forget(home) == 1
    assert b"heliotrope" not in unpacked(home.backups / NAME)


@asynccontextmanager
async def broken_off(home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Memory, SqliteStore]]:
    """What the log has of it is also in a backup, and more of it; the log is done, and nothing else."""
    other = Home(home.folder.with_name("other"))
    await told(home, SECRET)
    await write_backup(home, home.folder.with_name("before.tar.gz"))
    await restore(home.folder.with_name("before.tar.gz"), other)
    await told(other, "Paint every red door heliotrope!", f"I said that {SECRET}, oleander.")
    home.backups.mkdir()
    await write_backup(other, home.backups / NAME)

    async def busy(*_: object) -> None:
        raise StoreBusy("it breaks off")

    async with open_parts(home, SETTINGS) as (memory, store):
        with monkeypatch.context() as patched:
            patched.setattr(Eraser, "drop_parts", busy)
            with pytest.raises(StoreBusy):
                await memory.forget("main", matching="red door")
        yield memory, store


async def test_what_is_finished_later_takes_as_much_out_of_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    async with broken_off(home, monkeypatch) as (memory, store):
        await memory.maintain("main", tasks=["forgetting"])
        ((_, receipt),) = await store.receipts("main")
        assert (receipt.unfinished, receipt.reached.backups, receipt.residue) == (None, 1, [])
    assert not any(word in unpacked(home.backups / NAME) for word in (SECRET.encode(), b"heliotrope", b"oleander"))


async def test_what_is_finished_at_the_next_start_tells_what_a_backup_still_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How it was named is lost by then: the rows go, and who else says it is told, not taken."""
    home = Home(tmp_path / "home")
    async with broken_off(home, monkeypatch):
        pass
    async with open_parts(home, SETTINGS) as (memory, store):
        async with asyncio.timeout(60):
            while not (receipt := (await store.receipts("main"))[0][1]).signature:
                await asyncio.sleep(0.05)
        assert (receipt.unfinished, receipt.reached.backups) == (None, 1)
        assert [(one.where, one.what) for one in receipt.residue] == [
            (f"the backup {home.backups / NAME}", f"the text of message {seq} of chat") for seq in (2, 3)
        ]
        again = await memory.forget("main", matching="red door")
        assert (again.reached.backups, again.residue) == (1, [])
    assert not any(word in unpacked(home.backups / NAME) for word in (SECRET.encode(), b"heliotrope", b"oleander"))


async def test_what_a_backup_keeps_beside_its_log_goes_too(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, "Good morning to everybody here.")
    async with open_parts(home, SETTINGS) as (memory, _):
        await memory.session_end(memory.scope("chat"), reason="gone through the red door")
    home.backups.mkdir()
    await write_backup(home, home.backups / NAME)
    assert b"the red door" in unpacked(home.backups / NAME)
    live = apsw.Connection(str(home.database))
    live.execute("UPDATE marks SET reason = NULL")
    live.close()
    await forgotten(home)
    assert b"the red door" not in unpacked(home.backups / NAME).replace(b'reason":"gone through the red door', b"")


# ── damaged ones ──


async def test_a_damaged_backup_keeps_no_other_back_and_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    await told(home, SECRET)
    home.backups.mkdir()
    damaged = home.backups / "offbook-20261114-120000.tar.gz"
    cut = home.backups / "offbook-20261114-130000.tar.gz"
    for place in (damaged, cut, home.backups / NAME):
        await write_backup(home, place)
    damaged.write_bytes(b"\0" + damaged.read_bytes()[1:])
    cut.write_bytes(cut.read_bytes()[:-100])
    receipt = await forgotten(home)
    assert SECRET.encode() not in unpacked(home.backups / NAME)
    assert [where for where in receipt.outside if str(damaged) in where]
    (missed,) = receipt.residue
    assert missed.where == "backups"
    assert str(cut) in missed.what
