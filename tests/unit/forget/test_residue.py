"""What counts as left of something that was forgotten, and what was never a word of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.forget import residue
from offbook.forget.selection import Known
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import NotFound
from offbook.model.home import Home
from offbook.model.lesson import LessonDraft
from offbook.model.receipt import Unfinished
from offbook.model.settings import Settings
from offbook.model.types import AuditDraft, now
from offbook.statements.reading import key_of
from tests.unit.small_memory import SMALL, caught_up, exchange, user

BEGAN = datetime(2026, 1, 31, 12, 0, 0, 123_000, UTC)
SESSION = "agent:main:telegram:dm:4711"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Memory, SqliteStore]]:
    async with open_parts(Home(folder), msgspec.structs.replace(Settings(), **SMALL)) as parts:
        yield parts


def host_meta(at: datetime, number: int) -> dict[str, Any]:
    """As programs write it beside a message: when it was, and by which names they find it again."""
    return {
        "createdAt": at.isoformat().replace("+00:00", "Z"),
        "updatedAt": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "sessionKey": SESSION,
        "runId": f"run-{number}-of-4711",
        "score": "0.731",
    }


async def test_a_time_or_an_id_beside_a_message_is_not_what_is_left_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, _):
        for number in range(12):
            at = BEGAN + timedelta(minutes=number)
            said = [msgspec.structs.replace(one, ts=at, meta=host_meta(at, number)) for one in exchange(number)]
            await memory.on_message(memory.scope(SESSION), said)
        await caught_up(memory)
        await memory.maintain("main")
        receipt = await memory.forget("main", session_id=SESSION)
        assert receipt.reached.messages == 24
        assert receipt.residue == []
        assert receipt.probes
        await caught_up(memory)
        await memory.maintain("main")
        assert (await memory.verify_forgotten(receipt)).residue == []


async def test_a_date_in_prose_is_known_by_the_sentence_around_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, _):
        scope = memory.scope("chat")
        await memory.on_message(scope, [user("my wedding is on 2027-05-03 in Graz"), user("the soup was good today")])
        receipt = await memory.forget("main", matching="in Graz")
        assert receipt.residue == []
        assert receipt.wordless == 0
        (tmp_path / "note.md").write_text("They said: My wedding is on 2027-05-03.\n")
        check = await memory.verify_forgotten(receipt)
        assert [one.where for one in check.residue] == ["note.md"]


async def test_receipts_of_rule_and_of_what_broke_off_can_be_had(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        scope = memory.scope("chat")
        await memory.on_message(
            scope, [user("the ferry leaves at nine from the pier"), user("the soup was good today")]
        )
        first = await memory.forget("main", matching="ferry", reason="moved")
        await memory.forget("main", matching="soup was")
        (second, number), *_ = [(one, number) for number, one in await store.receipts("main") if one.id != first.id]
        broken_off = msgspec.structs.replace(
            second, signature="", unfinished=Unfinished(summaries=[], lessons=[], parts=[])
        )
        await store.set_receipt("main", number, broken_off)
        kept = await memory.forget_receipts("main")
        assert [(one.id, one.is_finished, one.reason) for one in kept] == [
            (second.id, False, ""),
            (first.id, True, "moved"),
        ]
        assert await memory.forget_receipt("main", first.id) == first
        with pytest.raises(NotFound, match="broke off"):
            await memory.forget_receipt("main", second.id)
    async with opened(tmp_path) as (memory, _):
        await caught_up(memory)
        async with asyncio.timeout(120):
            while not all(one.is_finished for one in await memory.forget_receipts("main")):
                await asyncio.sleep(0.05)
        check = await memory.verify_forgotten(await memory.forget_receipt("main", second.id))
        assert (check.is_genuine, check.residue) == (True, [])
        with pytest.raises(NotFound, match="--receipts"):
            await memory.forget_receipt("main", "forget-none")


async def test_a_dry_run_counts_the_pages_of_lessons_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        scope = memory.scope("chat")
        await memory.on_message(
            scope, [user("the ferry leaves at nine from the pier"), user("the soup was good today")]
        )
        lesson = LessonDraft(
            text="The ferry leaves at nine from the pier.",
            key=key_of("The ferry leaves at nine from the pier."),  # the sentence is quoted under this key, too
            kind="fact",
            confidence=1.0,
            first_seen=now(),
            last_seen=now(),
            times=1,
            places=await store.places(scope, [1]),
        )
        await store.keep_lessons("main", [lesson], replaced={}, event=AuditDraft(verb="test", actor="test"))
        await memory.maintain("main")
        would = await memory.forget("main", matching="ferry", dry_run=True)
        done = await memory.forget("main", matching="ferry")
        assert would.reached.pages == done.reached.pages == 2


async def test_every_file_is_looked_through_but_for_those_a_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residue, "LARGEST_TEXT_BYTES", 10_000)
    home, outside = tmp_path / "home", tmp_path / "outside"
    async with opened(home) as (memory, _):
        await memory.on_message(memory.scope("chat"), [user("The red ferry leaves at nine from the old pier.")])
        await caught_up(memory)
        receipt = await memory.forget("main", matching="The red ferry leaves at nine")
        assert receipt.residue == []
        outside.mkdir()
        (outside / "note.md").write_text("The red ferry leaves at nine from the old pier.")
        (home / "linked.md").symlink_to(outside / "note.md")
        (home / "linked").symlink_to(outside)
        (home / "models").mkdir(exist_ok=True)
        (home / "models" / "note.md").write_text("The red ferry leaves at nine from the old pier.")
        assert (await memory.verify_forgotten(receipt, matching="red ferry leaves")).residue == []
        deep = home / "some" / "folder" / "models"
        deep.mkdir(parents=True)
        (deep / "words.md").write_text("of The Red\nFerry leaves at nine.")
        (deep / "bytes.bin").write_bytes(b"\x00\xffred ferry leaves\x00")
        (deep / "large.md").write_text("x" * 20_000 + "red ferry leaves")
        (deep / "empty.md").touch()
        found = await memory.verify_forgotten(receipt, matching="red ferry leaves")
        assert {one.where for one in found.residue} == {
            f"some/folder/models/{name}" for name in ("words.md", "bytes.bin", "large.md")
        }


async def test_a_text_is_folded_once_for_all_that_is_sought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as (_, store):
        searching = residue.ResidueSearch(store, None, None, tmp_path, key=b"k" * 32)  # type: ignore[arg-type]
        says = searching.says([], Known([f"phrase number {number}" for number in range(200)]))
        folded: list[str] = []
        monkeypatch.setattr(residue, "folded", lambda text: folded.append(text) or text.lower())
        assert says("here is PHRASE number 199")
        assert not says("here is none of them")
        assert len(folded) == 2
