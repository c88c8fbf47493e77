"""Looking everywhere for what was forgotten: the log, all that is kept beside it, the index, and every file, byte by
byte."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from offbook.erasures import FORGOTTEN, ForgetReceipt, Probe, Residue
from offbook.lifecycle.erasure import folded, texts_of
from offbook.lifecycle.probes import Prober
from offbook.protocols import Blobs, Store
from offbook.types import Scope
from offbook.worker.forgetting.by_place import left_by_place
from offbook.worker.forgetting.elsewhere import Says
from offbook.worker.forgetting.meant import Said, pages_of, places_in

if TYPE_CHECKING:
    from offbook.worker.indexes import Indexes

TEXT_SUFFIXES = (".md", ".json", ".jsonl")
LARGEST_TEXT_BYTES = 8 * 1024 * 1024
"""Of a file that is read as text; a larger one is only looked through byte by byte."""
NOT_LOOKED_INTO = frozenset({"models"})
"""Holds what was downloaded."""
MOST_NAMED = 100
FOLLOW_SECONDS = 5.0


class Sought(NamedTuple):
    """What is looked for, or what of it was found."""

    probes: set[Probe]
    phrases: set[str]

    def __bool__(self) -> bool:
        return bool(self.probes or self.phrases)


class Searching:
    def __init__(self, store: Store, blobs: Blobs, indexes: Indexes, folder: Path, *, key: bytes) -> None:
        self._store = store
        self._blobs = blobs
        self._indexes = indexes
        self._folder = folder
        self._prober = Prober(key)

    async def strays(self, agent_id: str, probes: Sequence[Probe]) -> list[tuple[str, int]]:
        """Rows beside the log that hold it, but for summaries."""
        is_in = self._prober.finder(probes)
        found = []
        async for kept in self._store.kept_texts(agent_id):
            if kept.table != "summary_texts" and await asyncio.to_thread(is_in, kept.text):
                found.append((kept.table, kept.row))
        return found

    async def search(
        self,
        agent_id: str,
        receipt: ForgetReceipt,
        phrases: Sequence[str],
        *,
        with_log: bool = True,
        elsewhere: frozenset[str] = frozenset(),
        says: Says | None = None,
    ) -> tuple[list[Residue], dict[str, int]]:
        """`elsewhere`: folders that others look through. `says`: of whoever goes on looking: it knows again what
        it was asked before."""
        residue: list[Residue] = []
        searched: dict[str, int] = {}
        says = says or self.says(receipt.probes, phrases)
        if with_log:
            await self._search_log(agent_id, says, residue, searched)
        await self._search_spans(agent_id, receipt, residue)
        residue += await left_by_place(self._store, receipt)
        async for kept in self._store.kept_texts(agent_id):
            searched[kept.table] = searched.get(kept.table, 0) + 1
            if await asyncio.to_thread(says, kept.text):
                residue.append(Residue(where=kept.name, what="its text"))
        await self._search_index(agent_id, receipt, residue, searched)
        residue += await self._in_files(agent_id, Sought(set(receipt.probes), set(phrases)), elsewhere, searched)
        return residue[:MOST_NAMED], searched

    async def _in_files(
        self, agent_id: str, wanted: Sought, elsewhere: frozenset[str], searched: dict[str, int]
    ) -> list[Residue]:
        """Files hold everybody's words: only of what is found there, others are asked whether it is theirs."""
        found = await asyncio.to_thread(self._search_files, wanted, elsewhere, searched)
        sought = Sought(set(), set())
        for _, heard in found:
            sought.probes.update(heard.probes)
            sought.phrases.update(heard.phrases)
        await self._leave_out_others(agent_id, sought)
        return [
            Residue(where=name, what="its bytes" if heard.phrases & sought.phrases else "its text")
            for name, heard in found
            if heard.phrases & sought.phrases or heard.probes & sought.probes
        ]

    def says(self, probes: Sequence[Probe], phrases: Sequence[str]) -> Says:
        """Tells whether a text says any of it."""
        is_in = self._prober.finder(probes)
        wanted = [folded(phrase) for phrase in phrases]

        def says(text: str) -> bool:
            said = folded(text) if wanted else ""
            return any(phrase in said for phrase in wanted) or is_in(text)

        return says

    async def _leave_out_others(self, agent_id: str, sought: Sought) -> None:
        """Take away what other agents say, too: nobody may learn of another's words by asking for them. Grows with
        what they have said, but is over as soon as all of it is theirs."""

        hears = self._hearer(sought)

        def leave_out(texts: Iterable[str]) -> bool:
            for text in texts:
                heard = hears(text)
                sought.probes.difference_update(heard.probes)
                sought.phrases.difference_update(heard.phrases)
            return bool(sought)

        for other in set(await self._store.agents()) - {agent_id} if sought else ():
            async for page in pages_of(self._store, self._blobs, other):
                if not await asyncio.to_thread(leave_out, [text for _, said in page for text in texts_of(said)]):
                    return
            async for kept in self._store.kept_texts(other):
                if not await asyncio.to_thread(leave_out, [kept.text]):
                    return

    def _hearer(self, sought: Sought) -> Callable[[str], Sought]:
        """Tells what a text says of it."""
        probed = self._prober.hearer(sought.probes)
        phrases = {phrase: folded(phrase) for phrase in sought.phrases}

        def hears(text: str) -> Sought:
            said = folded(text) if phrases else ""
            return Sought(probed(text), {phrase for phrase, wanted in phrases.items() if wanted in said})

        return hears

    async def _search_log(self, agent_id: str, says: Says, residue: list[Residue], searched: dict[str, int]) -> None:
        async for page in pages_of(self._store, self._blobs, agent_id):
            searched["messages"] = searched.get("messages", 0) + len(page)
            residue += await asyncio.to_thread(_in_page, page, says)

    async def _search_spans(self, agent_id: str, receipt: ForgetReceipt, residue: list[Residue]) -> None:
        for span in receipt.spans:
            scope = Scope(agent_id=agent_id, session_id=span.session_id)
            after = span.first_seq - 1
            while after < span.last_seq:
                logged = await self._store.messages(scope, after_seq=after, limit=min(500, span.last_seq - after))
                if not logged:
                    break
                residue += [
                    Residue(where=f"message {one.seq} of {span.session_id}", what="it was not forgotten")
                    for one in logged
                    if one.entry.noise != FORGOTTEN
                ]
                after = logged[-1].seq

    async def _search_index(
        self, agent_id: str, receipt: ForgetReceipt, residue: list[Residue], searched: dict[str, int]
    ) -> None:
        """Rows of the index and vectors of the store at the places that were forgotten."""
        places = await places_in(self._store, agent_id, receipt.spans)
        async with self._indexes.following(agent_id, seconds=FOLLOW_SECONDS) as (index, _):
            searched["index entries"] = index.rows.count
            left = int((index.rows.find(places) >= 0).sum()) if places else 0
            residue += [Residue(where="the search index", what="an entry")] * left
        forgotten = set(places)
        for model in await self._store.vector_models(agent_id):
            after = 0
            while vectors := await self._store.vectors(agent_id, model, after=after):
                searched["vectors"] = searched.get("vectors", 0) + len(vectors)
                residue += [Residue(where="a vector", what=model) for one in vectors if one.place in forgotten]
                after = vectors[-1].number

    def _search_files(
        self, sought: Sought, elsewhere: frozenset[str], searched: dict[str, int]
    ) -> list[tuple[str, Sought]]:
        """The files in which something was found, and what it was."""
        found: list[tuple[str, Sought]] = []
        forms = [(form, phrase) for phrase in sorted(sought.phrases) for form in sorted(_as_bytes(phrase))]
        hears = self._hearer(sought)
        for path in _files(self._folder, without=NOT_LOOKED_INTO | elsewhere):
            searched["files"] = searched.get("files", 0) + 1
            heard = _found_in(path, forms, hears)
            if heard:
                found.append((path.relative_to(self._folder).as_posix(), heard))
        return found


def _in_page(page: Sequence[Said], says: Says) -> list[Residue]:
    return [
        Residue(where=f"message {placed.logged.seq} of {placed.session_id}", what="its text")
        for placed, message in page
        if any(says(text) for text in texts_of(message))
    ]


def _files(folder: Path, *, without: frozenset[str]) -> Iterator[Path]:
    for above, folders, names in os.walk(folder):
        if Path(above) == folder:
            folders[:] = [name for name in folders if name not in without]
        for name in names:
            path = Path(above, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _as_bytes(phrase: str) -> set[bytes]:
    """As a file may have it: as it is, and as JSON writes it with and without other letters escaped."""
    plain = json.dumps(phrase, ensure_ascii=False)[1:-1]
    return {form.encode() for form in (phrase, plain, json.dumps(phrase)[1:-1])}


def _found_in(path: Path, forms: Sequence[tuple[bytes, str]], heard: Callable[[str], Sought]) -> Sought:
    nothing = Sought(set(), set())
    try:
        size = path.stat().st_size
        if not size:
            return nothing
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = {phrase for form, phrase in forms if data.find(form) >= 0}
            if path.suffix not in TEXT_SUFFIXES or size > LARGEST_TEXT_BYTES:
                return Sought(set(), found)
            read = heard(data[:].decode(errors="replace"))
            return Sought(read.probes, read.phrases | found)
    except (OSError, ValueError):
        return nothing  # gone meanwhile, or not to be mapped
