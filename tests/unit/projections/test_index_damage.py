"""A search index whose files were damaged under it is made anew from the log, by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offbook.model.errors import OffbookError
from offbook.search.index.records import IndexDamaged
from offbook.search.index.text import TextIndex
from tests.unit.small_memory import caught_up, small_memory, talk, user


class PanicException(BaseException):
    """As tantivy's, which no module has."""


class Panics:
    num_docs = 1

    def __getattr__(self, name: str) -> Any:
        raise PanicException("assertion failed: end <= orig_range.end")


async def test_who_searches_is_told_to_ask_again_and_then_finds(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        scope = await talk(memory, 3)
        await memory.on_message(scope, [user("My sailing boat is called Marigold.")])
        await caught_up(memory)
        index = memory._background.recall._indexes.peek("main")
        assert index is not None
        index.text._searcher = Panics()
        with pytest.raises(IndexDamaged) as refused:
            await memory.recall(scope, "What is my sailing boat called?")
        assert refused.value.retryable
        assert refused.value.status == 503
        await caught_up(memory)
        found = await memory.recall(scope, "What is my sailing boat called?")
        assert any("Marigold" in entry.text for entry in found.entries)


async def test_what_cannot_be_written_any_more_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_memory(tmp_path) as memory:
        scope = await talk(memory, 3)
        await caught_up(memory)
        whole, panicked = TextIndex._open_writer, []

        def panics_once(self: TextIndex) -> Any:
            if panicked:
                return whole(self)
            panicked.append(True)
            raise PanicException("no segment")

        monkeypatch.setattr(TextIndex, "_open_writer", panics_once)
        await memory.on_message(scope, [user("My sailing boat is called Marigold.")])
        await caught_up(memory)
        try:
            found = await memory.recall(scope, "What is my sailing boat called?")
        except OffbookError:
            found = await memory.recall(scope, "What is my sailing boat called?")
        assert panicked
        assert any("Marigold" in entry.text for entry in found.entries)
