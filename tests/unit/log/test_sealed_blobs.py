"""Large parts of an encrypted data folder: sealed by agent, named by no digest of theirs, gone with their key."""

from __future__ import annotations

import asyncio
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from offbook.log.blobs import BlobFiles
from offbook.model.errors import KeyNeeded, StoreCorrupt
from offbook.model.keys import KEYS_FILE, KEYS_FOLDER
from tests.unit.encrypted_home import WORD, encrypted, saying

DATA = WORD.encode() * 10_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    encrypted(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def blobs(home: Path) -> BlobFiles:
    return BlobFiles(home / "blobs")


async def nobody() -> list[str]:
    return []


async def test_it_is_read_back_and_on_the_disk_it_is_neither_words_nor_digest(home: Path, blobs: BlobFiles) -> None:
    digest = await blobs.put("main", DATA)
    assert digest == sha256(DATA).hexdigest()
    assert await blobs.get("main", digest) == DATA
    assert saying(home) == []
    names = [path.name for path in home.rglob("*")]
    assert digest not in names
    assert sha256(b"main").hexdigest()[:32] not in names


async def test_the_same_twice_is_one_file_and_of_two_agents_two(home: Path, blobs: BlobFiles) -> None:
    digests = [await blobs.put(agent, DATA) for agent in ("main", "main", "second")]
    assert len(set(digests)) == 1
    assert len({blobs.path_of(agent, digests[0]).name for agent in ("main", "second")}) == 2
    files = [path for path in (home / "blobs").rglob("*") if path.is_file()]
    assert len(files) == 2


async def test_the_first_ones_of_an_agent_at_once_have_one_key(blobs: BlobFiles) -> None:
    data = [bytes([number]) * 1_000 for number in range(16)]
    digests = await asyncio.gather(*(blobs.put("main", each) for each in data))
    assert [await blobs.get("main", digest) for digest in digests] == data


async def test_what_was_altered_or_exchanged_is_refused(blobs: BlobFiles) -> None:
    one, other = await blobs.put("main", DATA), await blobs.put("main", DATA + b"2")
    shutil.copy(blobs.path_of("main", one), blobs.path_of("main", other))
    with pytest.raises(StoreCorrupt, match="cannot be opened"):
        await blobs.get("main", other)


async def test_damage_is_mended_by_what_is_said_again(blobs: BlobFiles) -> None:
    digest = await blobs.put("main", DATA)
    blobs.path_of("main", digest).write_bytes(b"damaged")
    await blobs.put("main", DATA)
    assert await blobs.get("main", digest) == DATA


async def test_the_key_goes_with_the_last_of_them_and_older_copies_stay_closed(home: Path, blobs: BlobFiles) -> None:
    one, other = await blobs.put("main", DATA), await blobs.put("main", DATA + b"2")
    shutil.copytree(home / "blobs", home.parent / "older")
    older = blobs.path_of("main", other)
    assert await blobs.drop("main", [one], nobody) == []
    assert len(list((home / KEYS_FOLDER).iterdir())) == 1, "another one still needs it"
    assert await blobs.drop("main", [other], nobody) == []
    assert list((home / KEYS_FOLDER).iterdir()) == []
    shutil.rmtree(home / "blobs")
    shutil.copytree(home.parent / "older", home / "blobs")
    assert older.exists()
    with pytest.raises(StoreCorrupt):
        await blobs.get("main", other)
    assert await blobs.put("main", DATA) == one
    assert await blobs.get("main", one) == DATA


async def test_without_its_keys_file_it_goes_on_sealed(home: Path, blobs: BlobFiles) -> None:
    blobs.sweep()  # as whoever opens the folder does
    (home / KEYS_FILE).unlink()
    digest = await blobs.put("main", DATA)
    assert saying(home) == []
    assert await blobs.get("main", digest) == DATA
    with pytest.raises(KeyNeeded):
        BlobFiles(home / "blobs").sweep()


async def test_a_key_that_somebody_is_about_to_use_stays(home: Path, blobs: BlobFiles) -> None:
    digest = await blobs.put("main", DATA)
    with blobs.holding("main", ["of another one"]):
        assert await blobs.drop("main", [digest], nobody) == []
        assert len(list((home / KEYS_FOLDER).iterdir())) == 1
