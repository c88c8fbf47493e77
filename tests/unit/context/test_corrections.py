"""What was corrected is read once for each link, told without it, and not kept of what was forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from offbook.api.memory import Memory
from offbook.context import corrections as module
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.types import AuditDraft, now
from tests.unit.small_memory import caught_up, small_memory, user

EVENT = AuditDraft(verb="supersede", actor="test")


async def linked(memory: Memory, old: int, new: int) -> None:
    places = await memory._store.places(memory.scope("chat"), [old, new])
    link = Supersession(old_place=places[0], new_place=places[1], kind="correction", at=now())
    await memory._store.supersede("main", [link], EVENT)


async def test_each_link_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = module.corrected_by

    def noting(link: Supersession, old: PlacedMessage, new: PlacedMessage) -> object:
        read.append(str(old.logged.message.content))
        return whole(link, old, new)

    monkeypatch.setattr(module, "corrected_by", noting)
    async with small_memory(tmp_path) as memory:
        texts = ["The boat is moored at pier four.", "Pier nine has the boat by now.", "Lunch is served at one."]
        await memory.on_message(memory.scope("chat"), [user(text) for text in (*texts, "From May on we eat at two.")])
        await caught_up(memory)
        corrections = memory._background.reader.corrections
        await linked(memory, 1, 2)
        assert texts[0] in await corrections.outdated("main")
        await linked(memory, 3, 4)
        assert {texts[0], texts[2]} <= (await corrections.outdated("main")).keys()
        assert (read.count(texts[0]), read.count(texts[2])) == (1, 1)
        await memory.forget("main", matching="pier four")
        assert texts[0] not in await corrections.outdated("main")
        assert texts[0] not in str(vars(corrections))
