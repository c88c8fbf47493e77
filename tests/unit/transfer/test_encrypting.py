"""An existing data folder is encrypted and decrypted: the same memory, and nothing of it to be read without the key."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tarfile
import traceback
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from structlog.testing import capture_logs

from offbook.api.doctor.encryption import check_encryption
from offbook.api.doctor.record import check_store
from offbook.api.embedded import open_memory, open_parts
from offbook.api.memory_index import close_memory_index, open_memory_index
from offbook.cli.root import root
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.connection import raw_key
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import InvalidInput, KeyNeeded, StoreCorrupt, StoreError, StoreOwned
from offbook.model.home import Home, Lock
from offbook.model.keys import (
    KEY_FILE,
    KEYS_FILE,
    KEYS_FOLDER,
    NEW_PASSPHRASE,
    PASSPHRASE,
    Secret,
    key_file_secret,
    new_keys,
)
from offbook.model.sealed_folder import seal_folder
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message, Scope
from offbook.projections.indexes import folder_name
from offbook.projections.wiki.lesson_page import Written
from offbook.projections.wiki.lesson_page import digest as statement_digest
from offbook.projections.wiki.ours import our_pages
from offbook.projections.wiki.state import WikiState
from offbook.transfer import encrypting
from offbook.transfer.backup import (
    check_archive,
    erase_in_backup,
    known_backups,
    restore,
    rotate,
    salvage_folder,
    salvaging,
    write_backup,
)
from offbook.transfer.backup.forgetting import unpacked
from offbook.transfer.backup.restoring import data_of
from offbook.transfer.encrypting import Encrypted, decrypt, encrypt
from offbook.transfer.plain_copies import REPLACED, still_plain
from tests.unit.encrypted_home import WORD, encrypted, forget_keys, saying
from tests.unit.small_memory import small_memory

LARGE = f"a large part of {WORD} " * 5_000
PAGE = 4096


async def fill(folder: Path) -> None:
    async with small_memory(folder) as memory:
        for text in (f"I live in {WORD}.", LARGE, "And I like tea."):
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=text)])
        await memory.on_message(memory.scope("notes", "second"), [Message(role="user", content=f"a {WORD} note")])
        await memory.maintain("main")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "home"
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(made, tmp_path / "home"))


def secret(home: Home) -> Secret:
    return key_file_secret(home.folder.parent / "key", home.folder, may_make=True)


def sealed(home: Home) -> Encrypted:
    return asyncio.run(encrypt(home, lambda: secret(home)))


def memory_of(home: Home) -> list[Any]:
    """All that is in it: every message whole, and the head of every chain. Asserts that they verify."""
    return asyncio.run(_memory_of(home))


async def _memory_of(home: Home) -> list[Any]:
    store, blobs = SqliteStore(home.database, read_only=True), BlobFiles(home.blobs)
    found: list[Any] = []
    try:
        for agent_id in await store.agents():
            assert [fault async for fault in verify(store, agent_id, blobs=blobs)] == []
            found.append((agent_id, await store.audit_head(agent_id)))
            for session in await store.sessions(agent_id):
                scope = Scope(agent_id=agent_id, session_id=session.session_id)
                found += [(one.seq, one.hash, one.entry) for one in await store.messages(scope)]
    finally:
        await store.close()
    return found


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# ── there and back ──


def test_there_and_back_it_is_the_same_memory(home: Home) -> None:
    before = memory_of(home)
    assert saying(home.folder), "it is in plain text at first"
    done = sealed(home)
    assert (done.is_encrypted, done.messages, done.large_parts, done.still_plain) == (True, 4, 1, [])
    assert saying(home.folder) == []
    assert memory_of(home) == before
    done = asyncio.run(decrypt(home))
    assert (done.is_encrypted, done.messages) == (False, 4)
    assert memory_of(home) == before
    assert not any(KEYS_FOLDER in name for name in files(home.folder))
    with pytest.raises(InvalidInput, match="is not encrypted"):
        asyncio.run(decrypt(home))


def test_a_stolen_folder_cannot_be_opened(home: Home, tmp_path: Path) -> None:
    sealed(home)
    (tmp_path / "key").unlink()
    forget_keys()
    for look in (lambda: memory_of(home), lambda: asyncio.run(fill(home.folder)), lambda: BlobFiles(home.blobs).keys):
        with pytest.raises(KeyNeeded):
            look()
    (home.folder / KEYS_FILE).unlink()
    with pytest.raises(KeyNeeded, match=r"keys\.json is missing"):
        memory_of(home)
    assert [found.level for found in check_encryption(home)] == ["fail"]
    shutil.rmtree(home.folder / KEYS_FOLDER)
    home.sealed_index.unlink(missing_ok=True)
    with pytest.raises(Exception, match="not a database"):
        memory_of(home)


def test_a_plain_database_put_in_its_place_is_refused(home: Home, made: Path) -> None:
    sealed(home)
    shutil.copy(made / "offbook.db", home.database)
    with pytest.raises(Exception, match="not a database"):
        memory_of(home)


def test_nothing_is_done_while_a_provider_runs_or_with_half_a_memory(home: Home) -> None:
    lock = Lock(home)
    with pytest.raises(StoreOwned):
        sealed(home)
    lock.release()
    home.database.unlink()
    with pytest.raises(InvalidInput, match="no log"):
        sealed(home)
    assert not home.is_encrypted


def test_a_new_folder_is_encrypted_from_the_beginning(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    assert sealed(home).is_encrypted
    asyncio.run(fill(home.folder))
    assert saying(home.folder) == []
    assert memory_of(home)


def test_what_stays_plain_is_told(home: Home) -> None:
    home.backups.mkdir()
    asyncio.run(write_backup(home, home.backups / "offbook-20260101-000000.tar.gz"))
    (home.outboxes / "cli").mkdir(parents=True)
    (home.outboxes / "cli" / "1.jsonl").write_text("{}")
    done = sealed(home)
    assert [Path(path).name for path in done.still_plain] == ["offbook-20260101-000000.tar.gz", "outbox"]
    levels = {(found.level, found.check) for found in check_encryption(home)}
    assert levels == {("ok", "encryption"), ("warn", "encryption")}


def test_copies_for_people_are_written_only_where_that_is_wanted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(home)

    async def speak() -> None:
        environ = {KEY_FILE: str(home.folder.parent / "key"), "OFFBOOK_EMBEDDING_MODEL": "none", **more}
        async with open_memory(home.folder, environ=environ) as memory:
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=f"Remember: {WORD} is home.")])
            await memory.maintain("main")

    more: dict[str, str] = {}
    asyncio.run(speak())
    assert saying(home.folder) == []
    more["OFFBOOK_ENCRYPTION_PLAIN_COPIES"] = "true"
    asyncio.run(speak())
    assert any(name.startswith("wiki/") for name in saying(home.folder))
    assert any(Path(path).is_relative_to(home.wiki) for path in still_plain(home))


def test_the_index_is_sealed_while_nobody_runs(home: Home) -> None:
    sealed(home)
    asyncio.run(fill(home.folder))
    assert home.sealed_index.exists()
    assert not home.indexes.exists()
    assert saying(home.folder) == []
    snapshot = home.sealed_index.read_bytes()
    open_memory_index(home)
    assert not home.sealed_index.exists(), "it would hold what is forgotten from now on"
    kept = {str(path.relative_to(home.indexes)) for path in home.indexes.rglob("*")}
    assert {f"{folder_name('main')}/checkpoint.json", folder_name("second")} <= kept
    close_memory_index(home)
    home.sealed_index.write_bytes(snapshot[:-100])
    open_memory_index(home)
    assert not home.indexes.exists(), "what was altered is not taken"
    asyncio.run(fill(home.folder))
    assert still_plain(home) == []


# ── nothing of anybody's is lost ──


def test_what_somebody_put_into_the_wiki_stays_and_is_told(home: Home) -> None:
    log_page = next(home.wiki.glob("main/sources/session-logs/*.md"))
    edited = home.wiki / "main" / "index.md"
    edited.write_text(edited.read_text() + "by hand\n")
    os.utime(edited, (2e9, 2e9))
    own = {home.wiki / ".git" / "objects" / "1", home.wiki / "my-notes.md", home.wiki / "main" / "people" / "ada.md"}
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    done = sealed(home)
    assert not log_page.exists()
    assert {path for path in home.wiki.rglob("*") if path.is_file()} == own | {edited}
    assert all(path.read_text() == "mine" for path in own)
    named = {str(path) for path in (own | {edited, home.wiki / ".git"}) if ".git/" not in str(path)}
    assert set(done.still_plain) == named
    asyncio.run(decrypt(home))
    assert {path for path in home.wiki.rglob("*") if path.is_file()} == own | {edited}


def test_pages_of_ours_are_those_that_nobody_changed(tmp_path: Path) -> None:
    wiki, states = tmp_path / "wiki", tmp_path / "wiki-state"
    state = WikiState(agent_id="main", subject_pages={"people/ada": "ada", "people/bob": "bob"})
    statements = {"lesson-0001": "as it was", "lesson-0002": "edited", "lesson-0003": "with a field"}
    state.lessons = {id_: [Written(digest=statement_digest("as it was"), status="learnt")] for id_ in statements}
    state.lessons["lesson-0003"] = [Written(digest=statement_digest("with a field"), status="learnt")]
    pages = {
        f"lessons/{id_}.md": f"---\nid: {id_}\nstatus: learnt\n{'tags: x' if 'field' in text else 'times: 1'}\n---\n\n{text}\n"
        for id_, text in statements.items()
    }
    pages["people/ada.md"] = "---\nid: people/ada\nkind: person\nname: Ada\n---\n\n# Ada\n"
    pages["people/bob.md"] = "my own Bob"
    for name, text in pages.items():
        (wiki / "main" / name).parent.mkdir(parents=True, exist_ok=True)
        (wiki / "main" / name).write_text(text)
    states.mkdir()
    (states / "main.json").write_bytes(msgspec.json.encode(state))
    ours = {str(path.relative_to(wiki / "main")) for path in our_pages(wiki, states)}
    assert ours == {"lessons/lesson-0001.md", "people/ada.md"}
    (states / "main.json").write_text("{}")
    assert our_pages(wiki, states) == []


def test_a_large_part_that_cannot_be_read_stops_it_before_anything_is_changed(home: Home) -> None:
    part = next(path for path in home.blobs.rglob("*") if path.is_file())
    whole = part.read_bytes()
    part.write_bytes(b"damaged")
    before = files(home.folder)
    with pytest.raises(StoreCorrupt, match=f"1 large parts cannot be read.*{part.name}.*Nothing was changed"):
        sealed(home)
    assert files(home.folder) == before
    assert part.read_bytes() == b"damaged"
    part.write_bytes(whole)
    sealed(home)
    away = shutil.move(home.folder / KEYS_FOLDER, home.folder.parent / "away")
    before = files(home.folder)
    with pytest.raises(StoreCorrupt, match="cannot be read"):
        asyncio.run(decrypt(home))
    assert files(home.folder) == before
    shutil.move(away, home.folder / KEYS_FOLDER)
    assert asyncio.run(decrypt(home)).large_parts == 1


@pytest.mark.parametrize("aside", [f"{REPLACED}1", ".restore-1"])
@pytest.mark.parametrize("turn", ["encrypt", "decrypt"])
def test_what_may_be_the_only_log_is_not_overwritten(home: Home, aside: str, turn: str) -> None:
    folder = home.folder / aside
    folder.mkdir()
    for name in ("offbook.db", "offbook.head", "blobs"):
        shutil.move(home.folder / name, folder / name)
    (home.folder / "offbook.db-wal").unlink(missing_ok=True)
    (home.folder / "offbook.db-shm").unlink(missing_ok=True)
    before = files(folder)
    with pytest.raises(
        InvalidInput, match="there may be one in" if turn == "encrypt" or "before" in aside else "is not"
    ):
        sealed(home) if turn == "encrypt" else asyncio.run(decrypt(home))
    assert not home.is_encrypted
    new_keys(home.folder, secret(home))
    with pytest.raises(InvalidInput, match="there may be one in"):
        sealed(home) if turn == "encrypt" else asyncio.run(decrypt(home))
    assert files(folder) == before


def test_a_log_that_was_begun_meanwhile_does_not_take_the_place_of_the_one_before(home: Home) -> None:
    folder = home.folder / f"{REPLACED}1"
    folder.mkdir()
    for name in data_of(home):
        shutil.move(home.folder / name, folder / name)
    shutil.rmtree(home.indexes)
    new_keys(home.folder, secret(home))
    SqliteStore(home.database)._close()
    before = files(folder)
    with pytest.raises(InvalidInput, match="is another one than that in"):
        sealed(home)
    assert files(folder) == before


def test_a_snapshot_of_hard_links_stays_whole(home: Home, tmp_path: Path) -> None:
    shutil.copytree(home.folder, tmp_path / "snapshot", copy_function=os.link)
    done = sealed(home)
    assert done.only_unlinked > 0
    assert memory_of(Home(tmp_path / "snapshot"))


def test_every_plain_copy_of_the_log_is_told(home: Home, made: Path, tmp_path: Path) -> None:
    sealed(home)
    copies = [
        home.folder / name for name in ("damaged-1/offbook.db", "log.bak", "backups/.offbook-backup-1/offbook.db")
    ]
    for path in copies:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / "offbook.db", path)
    assert set(still_plain(home)) == {str(path) for path in copies}


def test_a_folder_that_leads_elsewhere_is_refused(home: Home, tmp_path: Path) -> None:
    shutil.move(home.blobs, tmp_path / "elsewhere")
    home.blobs.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match=r"blobs in .* leads elsewhere"):
        sealed(home)
    assert not home.is_encrypted


def test_an_error_of_the_copy_does_not_tell_the_key(home: Home, tmp_path: Path) -> None:
    keys = new_keys(tmp_path, secret(home))
    with pytest.raises(StoreError) as caught:
        encrypting._copy_database(home.database, tmp_path / "no" / "folder.db", keys)
    told = "".join(traceback.format_exception(caught.value))
    assert "could not be copied" in told
    assert raw_key(keys) not in told


# ── killed ──


def killed_at(step: int, work: Any) -> bool:
    """Run it in a process of its own, which is killed at its nth change of a name. False: it came to its end."""
    child = os.fork()
    if not child:
        left = step

        def count(event: str, _arguments: object) -> None:
            nonlocal left
            if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("is_back", [False, True])
def test_killed_at_any_step_it_loses_nothing_and_goes_on(made: Path, tmp_path: Path, is_back: bool) -> None:
    """Each change of a name is a step: before it, in what was copied; at it, in the exchange; after it, in what goes.
    Every third of them is tried: each takes a copy of the folder, and all of them would take minutes."""
    first = Home(shutil.copytree(made, tmp_path / "first" / "home"))
    for folder in (first.wiki, first.indexes):  # as many files are as many steps
        shutil.rmtree(folder)
    (first.summaries / "main" / "L1").mkdir(parents=True, exist_ok=True)
    (first.summaries / "main" / "L1" / "0001.md").write_text(WORD)
    before = memory_of(first)
    if is_back:
        sealed(first)
    step, states = 0, set()
    while True:
        folder = tmp_path / str(step)
        home = Home(shutil.copytree(first.folder, folder / "home"))
        if is_back:
            shutil.copy(tmp_path / "first" / "key", folder / "key")

        def turn(home: Home = home) -> Encrypted:
            return asyncio.run(decrypt(home)) if is_back else sealed(home)

        was_killed = killed_at(step, turn)
        states.add((home.is_encrypted, home.unfinished_restore.exists()))
        if was_killed:
            if not home.unfinished_restore.exists():
                assert memory_of(home) == before, f"at step {step}"
            turn()
        assert home.is_encrypted != is_back
        assert memory_of(home) == before, f"at step {step}"
        assert is_back or saying(home.folder) == [], f"at step {step}"
        assert [*home.folder.glob(".restore-*"), *home.folder.glob("before-*")] == []
        shutil.rmtree(folder)
        if not was_killed:
            break
        step += 3
    assert states >= {(is_back, False), (not is_back, False)}, "it was killed before and after the exchange"
    assert any(is_unfinished for _, is_unfinished in states), "and in it"


# ── backups ──


def test_a_backup_is_sealed_and_opens_with_the_same_key(home: Home, tmp_path: Path) -> None:
    sealed(home)
    archive = tmp_path / "b.tar.gz"
    manifest = asyncio.run(write_backup(home, archive))
    assert any(file.name.startswith("keys/") for file in manifest.files)
    assert saying(tmp_path, "second") == [], "nor is it told whose it is"
    assert check_archive(archive) == manifest
    other = Home(tmp_path / "other")
    restored = asyncio.run(restore(archive, other))
    assert restored.faults == []
    assert other.is_encrypted
    assert memory_of(other) == memory_of(home)
    assert saying(other.folder) == []
    shutil.move(tmp_path / "key", tmp_path / "elsewhere")
    forget_keys()
    with pytest.raises(KeyNeeded, match="cannot be read"):
        asyncio.run(restore(archive, Home(tmp_path / "third")))
    assert not (tmp_path / "third").exists()


def test_a_plain_backup_does_not_take_the_place_of_an_encrypted_memory(home: Home, tmp_path: Path) -> None:
    asyncio.run(write_backup(home, tmp_path / "plain.tar.gz"))
    sealed(home)
    with pytest.raises(InvalidInput, match="is not encrypted"):
        asyncio.run(restore(tmp_path / "plain.tar.gz", home, force=True))
    asyncio.run(write_backup(home, tmp_path / "sealed.tar.gz"))
    restored = asyncio.run(restore(tmp_path / "sealed.tar.gz", home, force=True))
    assert restored.moved_to is not None
    assert memory_of(Home(Path(restored.moved_to))) == memory_of(home)
    assert saying(home.folder) == []


def test_the_key_of_what_is_erased_in_a_backup_goes_from_it_too(home: Home, tmp_path: Path) -> None:
    sealed(home)
    archive = tmp_path / "b.tar.gz"
    asyncio.run(write_backup(home, archive))

    async def drop(database: Path, blobs: Path) -> int:
        from offbook.transfer.backup import blob_references

        store, parts = SqliteStore(database), BlobFiles(blobs)
        try:
            found = [reference async for reference in blob_references(store)]
        finally:
            await store.close()
        for agent_id, digest in found:
            await parts.drop(agent_id, [digest], _nobody)
        return len(found)

    assert asyncio.run(erase_in_backup(archive, drop))
    manifest = check_archive(archive)
    assert [file.name for file in manifest.files] == ["offbook.db"]
    assert len(manifest.missing) == 1


async def _nobody() -> list[str]:
    return []


# ── damage and forgetting ──


def test_a_damaged_encrypted_log_is_salvaged(home: Home) -> None:
    sealed(home)
    before = memory_of(home)
    with home.database.open("r+b") as file:
        file.seek((home.database.stat().st_size // PAGE - 1) * PAGE)
        file.write(bytes(PAGE))
    salvaged, aside = asyncio.run(salvage_folder(home, ["main", "second"]))
    assert salvaged.messages == 4
    assert {agent for agent, _ in (each for each in before if len(each) == 2)} == {"main", "second"}
    assert (aside / "offbook.db").exists()
    assert saying(home.folder) == []
    assert [found.level for found in asyncio.run(check_store(home)) if found.check == "audit"] == ["ok"]


def test_a_damaged_first_page_costs_only_that_page(home: Home) -> None:
    async def speak() -> None:
        async with small_memory(home.folder) as memory:  # more than a page holds, and not to be compressed
            words = Message(role="user", content=os.urandom(20_000).hex())
            await memory.on_message(memory.scope("chat"), [words])

    asyncio.run(speak())
    sealed(home)
    with home.database.open("r+b") as file:
        file.write(os.urandom(PAGE))
    salvaged, _ = asyncio.run(salvage_folder(home, ["main", "second"]))
    assert (salvaged.messages, sum(each.messages for each in salvaged.agents)) == (5, 0)
    assert saying(home.folder) == []


def test_without_a_folder_in_memory_a_salvage_says_so_and_overwrites(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(home)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("offbook.model.memory_folder._memory", lambda: (tmp_path / "temporary", False))
    overwritten: list[bytes] = []
    monkeypatch.setattr(salvaging, "shred", lambda path: overwritten.append(path.read_bytes()))
    with home.database.open("r+b") as file:
        file.seek((home.database.stat().st_size // PAGE - 1) * PAGE)
        file.write(bytes(PAGE))
    with capture_logs() as told:
        asyncio.run(salvage_folder(home, ["main", "second"]))
    assert [WORD.encode() in data for data in overwritten] == [True]
    assert [one["action"] for one in told if one["log_level"] == "warning"] == ["encryption.salvage"]


def test_a_damaged_key_of_an_agent_does_not_keep_the_rest_from_a_backup(home: Home, tmp_path: Path) -> None:
    sealed(home)
    key = next((home.folder / KEYS_FOLDER).glob("*.key"))
    key.write_text("damaged")
    manifest = asyncio.run(write_backup(home, tmp_path / "b.tar.gz"))
    assert len(manifest.missing) == 1
    assert asyncio.run(restore(tmp_path / "b.tar.gz", Home(tmp_path / "other"))).manifest == manifest


def test_killed_while_the_index_is_opened_it_is_opened_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(home)
    asyncio.run(fill(home.folder))

    def half(_path: Path, folder: Path) -> None:
        (folder / "half").write_text("of it")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("offbook.api.memory_index.unseal_folder", half)
        with pytest.raises(KeyboardInterrupt):
            open_memory_index(home)
    open_memory_index(home)
    assert (home.indexes / folder_name("main") / "checkpoint.json").exists()
    assert not (home.indexes / "half").exists()
    assert not home.sealed_index.exists()
    close_memory_index(home)


def test_an_index_that_cannot_be_sealed_is_told_and_leaves_memory(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(home)
    asyncio.run(fill(home.folder))
    open_memory_index(home)

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("offbook.api.memory_index.seal_folder", full)
    with capture_logs() as told:
        close_memory_index(home)
    assert [one["event"] for one in told] == ["index not kept"]
    assert not home.indexes.exists()


def test_an_index_that_another_key_sealed_is_not_taken(home: Home, tmp_path: Path) -> None:
    sealed(home)
    asyncio.run(fill(home.folder))
    other = encrypted(tmp_path / "other")
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "file").write_text("planted")
    for is_sealed in (True, False):
        home.sealed_index.unlink()
        if is_sealed:
            seal_folder(tmp_path / "planted", home.sealed_index, other)
        else:
            with tarfile.open(home.sealed_index, "w:gz") as archive:
                archive.add(tmp_path / "planted", arcname=".")
        open_memory_index(home)
        assert not home.indexes.exists()
        asyncio.run(fill(home.folder))


def test_what_is_forgotten_is_looked_for_behind_the_encryption(home: Home) -> None:
    sealed(home)

    async def look() -> tuple[dict[str, set[bytes]], dict[str, set[bytes]], list[Any]]:
        async with open_parts(home, Settings(embedding=Embedding(model="none"))) as (memory, store):
            before = await store.found_in_files([WORD.encode()])
            await rotate(home, 7)
            receipts = [await memory.forget(agent, matching=WORD, reason="") for agent in ("main", "second")]
            return before, await store.found_in_files([WORD.encode()]), [one.residue for one in receipts]

    async def in_backup() -> tuple[dict[str, set[bytes]], list[Path]]:
        async with unpacked(Path(known_backups(home)[0].path)) as copy:
            store = SqliteStore(copy.database, read_only=True)
            try:
                return await store.found_in_files([WORD.encode()]), list((copy.folder / KEYS_FOLDER).glob("*"))
            finally:
                await store.close()

    before, after, residue = asyncio.run(look())
    assert before == {"offbook.db": {WORD.encode()}}
    assert after == {}
    assert residue == [[], []]
    assert asyncio.run(in_backup()) == ({}, [])
    assert list((home.folder / KEYS_FOLDER).iterdir()) == [], "the last large part took its key with it"


# ── commands ──


def run(home: Home, *arguments: str, **environ: str) -> Result:
    given = {"OFFBOOK_HOME": str(home.folder), **environ}
    return CliRunner().invoke(root, list(arguments), env=given)


def test_commands_with_a_passphrase(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.model.keys.SCRYPT_N", 2**12)
    first, second = "correct horse battery", "another staple altogether"
    refused = run(home, "encrypt", **{PASSPHRASE: "short"})
    assert (refused.exit_code, "12 characters" in refused.output) == (1, True)
    nobody_asked = run(home, "encrypt")
    assert (nobody_asked.exit_code, PASSPHRASE in nobody_asked.output) == (1, True)
    assert not home.is_encrypted
    done = json.loads(run(home, "encrypt", "--json", **{PASSPHRASE: first}).stdout)
    assert (done["isEncrypted"], done["messages"], done["stillPlain"]) == (True, 4, [])
    forget_keys()
    wrong = run(home, "audit", "--verify", "--json", **{PASSPHRASE: second})
    assert (wrong.exit_code, json.loads(wrong.stdout)["type"]) == (1, "urn:offbook:problem:key-needed")
    assert run(home, "audit", "--verify", **{PASSPHRASE: first}).exit_code == 0
    forget_keys()
    changed = run(home, "encrypt", "--change-passphrase", **{PASSPHRASE: first, NEW_PASSPHRASE: second})
    assert changed.exit_code == 0, changed.output
    forget_keys()
    assert run(home, "audit", "--verify", **{PASSPHRASE: first}).exit_code == 1
    assert run(home, "audit", "--verify", **{PASSPHRASE: second}).exit_code == 0
    back = run(home, "decrypt", **{PASSPHRASE: second})
    assert (back.exit_code, "in plain text" in back.output) == (0, True)
    assert all(word not in back.output for word in (first, second))
    assert memory_of(home)
