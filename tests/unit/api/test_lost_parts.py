"""One large part that is lost costs only itself: every reader says what is missing, and gives all the rest."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from offbook.api.doctor.record import check_store
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.content import LOST_PART
from offbook.model.home import Home
from offbook.model.record import MessageRecord
from offbook.model.summary import SourceSpan
from offbook.model.types import Message
from offbook.transfer.backup import write_backup
from tests.unit.small_memory import small_memory, talk, user

GONE = "The gone story of the lighthouse. " + "its lamp turned " * 8_000
KEPT = "The kept story of the harbour. " + "its boats came " * 8_000
IMAGE = "iVBORw0KGgo" + "A" * 8_000


def _missing(path: Path) -> None:
    path.unlink()


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1_000])


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE = [_missing, _truncated, _flipped, _folder]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "home"
    asyncio.run(_make(folder))
    return folder


async def _make(folder: Path) -> None:
    async with small_memory(folder) as memory:
        scope = await talk(memory, 3)
        both = [{"type": "text", "text": GONE}, {"type": "text", "text": KEPT}]
        await memory.on_message(scope, [Message(role="user", content=both)])
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
        await memory.on_message(scope, [Message(role="user", content=[image]), user("The last word was said here.")])
        await memory.maintain("main")


@pytest.fixture(params=DAMAGE)
def home(made: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Home:
    damage: Callable[[Path], None] = request.param
    home = Home(shutil.copytree(made, tmp_path / "home"))
    for derived in (home.wiki, home.wiki_state, home.indexes):
        shutil.rmtree(derived)
    for text in (GONE, IMAGE):
        damage(BlobFiles(home.blobs).path_of("main", sha256(text.encode()).hexdigest()))
    return home


async def test_every_reader_gives_all_but_what_is_lost(home: Home) -> None:
    async with small_memory(home.folder) as memory:
        scope = memory.scope("chat")
        log = (await memory.log(scope, limit=100)).messages
        assert [line.seq for line in log] == list(range(1, 10))
        first, second = log[6].message.content
        assert first["text"].startswith(f"[{len(GONE):,} characters kept outside the log, sha256 ")  # type: ignore[index]
        assert LOST_PART in first["text"]  # type: ignore[index]
        assert "The gone story of the lighthouse." in first["text"]  # type: ignore[index]
        assert second["text"] == KEPT  # type: ignore[index]
        assert LOST_PART in log[7].message.content[0]["source"]["data"]  # type: ignore[index]
        missing = [part for line in log for part in line.missing_parts]
        assert [part.sha256 for part in missing] == [sha256(text.encode()).hexdigest() for text in (GONE, IMAGE)]
        assert [part.chars for part in missing] == [len(GONE), len(IMAGE)]

        expanded = await memory.expand("main", span=SourceSpan(session_id="chat", first_seq=5, last_seq=9))
        assert [line.message for line in expanded.messages] == [line.message for line in log[4:]]
        assert [len(line.missing_parts) for line in expanded.messages] == [0, 0, 1, 1, 0]

        records = [each for each in (await memory.export("main")).records if isinstance(each, MessageRecord)]
        assert [each.message for each in records] == [line.message for line in log]
        assert sum(len(each.missing_parts) for each in records) == 2

        recalled = await memory.recall(scope, "the lighthouse and the harbour")
        assert any("harbour" in entry.text for entry in recalled.entries)
        context = await memory.get_compressed_context(scope, max_chars=40_000)
        assert "The last word was said here." in str(context)
        assert await memory.swap(scope, used_tokens=9_000, context_window=10_000, force=True) is not None
        assert not (await memory.replay(scope, log[-1].received_at)).is_exact
        assert all(run.error is None for run in (await memory.maintain("main")).runs)
        pages = [page.read_text() for page in home.wiki.rglob("*.md")]
        assert any("The last word was said here." in page for page in pages)


async def test_the_damage_is_told_as_damage(home: Home, tmp_path: Path) -> None:
    store = SqliteStore(home.database, read_only=True, snapshot=True)
    try:
        faults = [fault async for fault in verify(store, "main", blobs=BlobFiles(home.blobs))]
    finally:
        await store.close()
    assert [(fault.session_id, fault.seq) for fault in faults] == [("chat", 7), ("chat", 8)]
    findings = {finding.check: finding for finding in await check_store(home)}
    assert findings["references"].level == findings["audit"].level == "fail"
    assert "2 of 3" in findings["references"].what
    manifest = await write_backup(home, tmp_path / "copy.tar.gz")
    assert len(manifest.missing) == 2
    assert manifest.messages == 9
