"""What said one word has no others to be known by: it is looked for where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from offbook.api.memory import Memory
from offbook.forget.residue import Places
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.lesson import LessonDraft
from offbook.model.receipt import ForgetReceipt, ForgottenSpan
from offbook.model.types import AuditDraft, now
from offbook.search.words import entry_id
from tests.unit.forget.test_forgetting import opened
from tests.unit.small_memory import caught_up, talk, user

EVENT = AuditDraft(verb="test", actor="test")


async def forgotten(memory: Memory, store: SqliteStore) -> tuple[ForgetReceipt, int]:
    """One word in a long talk, by its id."""
    await talk(memory, 20)
    await memory.on_message(memory.scope("chat"), [user("Zanzibar")])
    await talk(memory, 20, first=20)
    await caught_up(memory)
    (place,) = await store.places(memory.scope("chat"), [41])
    return await memory.forget("main", entry_ids=[entry_id(place)]), place


def changed(folder: Path, statement: str, *values: Any) -> None:
    connection = apsw.Connection(str(Home(folder).database))
    try:
        connection.execute(statement, values)
        assert connection.changes() > 0
    finally:
        connection.close()


async def test_it_is_gone_and_verifying_says_how_it_looked(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        receipt, _ = await forgotten(memory, store)
        assert (receipt.probes, receipt.wordless, receipt.residue) == ([], 1, [])
        assert receipt.reached.summaries > 0
        check = await memory.verify_forgotten(receipt)
        assert (check.is_genuine, check.residue, check.wordless) == (True, [], 1)
        await memory.on_message(memory.scope("chat"), [user("Zanzibar")])
        assert (await memory.verify_forgotten(receipt)).residue == []  # said since, and not what was forgotten


async def test_what_has_words_of_its_own_is_not_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        said = [
            "Zanzibar",
            "the vault code is zanzibar 7741",
            "See you later",
            "Well: see you later then",
            "\U0001f30a",
        ]
        await memory.on_message(memory.scope("chat"), [user(text) for text in said])
        await caught_up(memory)
        places = await store.places(memory.scope("chat"), [1, 2, 3, 5])
        would = await memory.forget("main", entry_ids=[entry_id(place) for place in places], dry_run=True)
        assert would.wordless == 3
        would = await memory.forget("main", matching="zanzibar", dry_run=True)
        assert would.wordless == 0
        would = await memory.forget("main", matching="zanzi", dry_run=True)
        assert would.wordless == 1  # `zanzi` is no word of it


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE messages SET noise = NULL, content = '\"Zanzibar\"' WHERE noise = 'forgotten'", "message 41 of chat"),
        ("UPDATE summaries SET made_at = 0 WHERE level = 1 AND first_seq <= 41 AND last_seq >= 41", "summary L1-"),
    ],
)
async def test_what_is_back_at_its_place_is_told(statement: str, told: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        receipt, _ = await forgotten(memory, store)
        changed(tmp_path, statement)
        residue = (await memory.verify_forgotten(receipt)).residue
        assert residue
        assert all(one.where.startswith(told) for one in residue)


async def test_a_lesson_that_came_of_it_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        receipt, place = await forgotten(memory, store)
        (other,) = await store.places(memory.scope("chat"), [3])
        fields: dict[str, Any] = {
            "kind": "fact",
            "confidence": 1.0,
            "first_seen": now(),
            "last_seen": now(),
            "times": 1,
        }
        lesson = LessonDraft(text="The island is warm.", key="k", places=[other], **fields)
        await store.keep_lessons("main", [lesson], replaced={}, event=EVENT)
        (number,) = [one.id for one in await store.lessons("main") if one.text == lesson.text]
        assert (await memory.verify_forgotten(receipt)).residue == []
        changed(tmp_path, "UPDATE lesson_sources SET place = ? WHERE place = ?", place, other)
        residue = (await memory.verify_forgotten(receipt)).residue
        assert [(one.where, one.what) for one in residue] == [(number, "it came of it")]


def test_stretches_meet_or_do_not() -> None:
    spans = [ForgottenSpan(session_id="a", first_seq=first, last_seq=last) for first, last in ((3, 5), (9, 9))]
    places = Places(spans)
    met = {(first, last) for first in range(1, 12) for last in range(first, 12) if places.has("a", first, last)}
    gone = {3, 4, 5, 9}
    assert met == {(a, b) for a in range(1, 12) for b in range(a, 12) if gone & set(range(a, b + 1))}
    assert not places.has("b", 1, 100)
