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

from offbook.forget.probes import Prober
from offbook.log.erasure import folded, texts_of
from offbook.log.store import Blobs, Store
from offbook.model.receipt import FORGOTTEN, ForgetReceipt, Probe, Residue
from offbook.model.types import Scope
from offbook.worker.forgetting.by_place import left_by_place
from offbook.worker.forgetting.elsewhere import Says
from offbook.worker.forgetting.meant import Known, Said, pages_of, places_in

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


Hears = Callable[[str], Sought]
"""Tells what a text says of it."""


class Searching:
    def __init__(self, store: Store, blobs: Blobs, indexes: Indexes, folder: Path, *, key: bytes) -> None:
        self._store = store
        self._blobs = blobs
        self._indexes = indexes
        self._folder = folder
        self._prober = Prober(key)

    async def strays(self, agent_id: str, probes: Sequence[Probe], known: Known) -> list[tuple[str, int]]:
        """Rows beside the log that hold it, but for summaries."""
        is_in = self._prober.finder(probes, known.probed)
        found = []
        async for kept in self._store.kept_texts(agent_id):
            if kept.table != "summary_texts" and await asyncio.to_thread(is_in, kept.text):
                found.append((kept.table, kept.row))
        return found

    async def search(
        self,
        agent_id: str,
        receipt: ForgetReceipt,
        known: Known,
        *,
        with_log: bool = True,
        elsewhere: frozenset[str] = frozenset(),
        says: Says | None = None,
    ) -> tuple[list[Residue], dict[str, int]]:
        """`elsewhere`: folders that others look through. `says`: of whoever goes on looking: it knows again what
        it was asked before."""
        residue: list[Residue] = []
        searched: dict[str, int] = {}
        says = says or self.says(receipt.probes, known)
        if with_log:
            await self._search_log(agent_id, says, residue, searched)
        await self._search_spans(agent_id, receipt, residue)
        residue += await left_by_place(self._store, receipt)
        async for kept in self._store.kept_texts(agent_id):
            searched[kept.table] = searched.get(kept.table, 0) + 1
            if await asyncio.to_thread(says, kept.text):
                residue.append(Residue(where=kept.name, what="its text"))
        await self._search_index(agent_id, receipt, residue, searched)
        residue += await self._in_files(agent_id, receipt.probes, known, elsewhere, searched)
        return residue[:MOST_NAMED], searched

    async def _in_files(
        self,
        agent_id: str,
        probes: Sequence[Probe],
        known: Known,
        elsewhere: frozenset[str],
        searched: dict[str, int],
    ) -> list[Residue]:
        """Files hold everybody's words: only of what is found there, others are asked whether it is theirs."""
        wanted = Sought(set(probes), set(known.phrases))
        hears = self._hearer(wanted, known)
        found = await asyncio.to_thread(self._search_files, wanted, hears, elsewhere, searched)
        sought = Sought(set(), set())
        for _, heard in found:
            sought.probes.update(heard.probes)
            sought.phrases.update(heard.phrases)
        await self._leave_out_others(agent_id, sought, known)
        return [
            Residue(where=name, what="its bytes" if heard.phrases & sought.phrases else "its text")
            for name, heard in found
            if heard.phrases & sought.phrases or heard.probes & sought.probes
        ]

    def says(self, probes: Sequence[Probe], known: Known) -> Says:
        """Tells whether a text says any of it."""
        is_in = self._prober.finder(probes, known.probed)
        wanted = [folded(phrase) for phrase in known.phrases]

        def says(text: str) -> bool:
            said = folded(text) if wanted else ""
            return any(phrase in said for phrase in wanted) or is_in(text)

        return says

    async def _leave_out_others(self, agent_id: str, sought: Sought, known: Known) -> None:
        """Take away what other agents say, too: nobody may learn of another's words by asking for them. Grows with
        what they have said, but is over as soon as all of it is theirs."""

        hears = self._hearer(sought, known)

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

    def _hearer(self, sought: Sought, known: Known) -> Hears:
        probed = self._prober.hearer(sought.probes, known.probed)
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
        self, sought: Sought, hears: Hears, elsewhere: frozenset[str], searched: dict[str, int]
    ) -> list[tuple[str, Sought]]:
        """The files in which something was found, and what it was."""
        found: list[tuple[str, Sought]] = []
        forms = [(form, phrase) for phrase in sorted(sought.phrases) for form in sorted(_as_bytes(phrase))]
        for path in _files(self._folder, without=NOT_LOOKED_INTO | elsewhere):
            searched["files"] = searched.get("files", 0) + 1
            heard = _found_in(path, forms, hears)
            if heard:
                found.append((Path(path).relative_to(self._folder).as_posix(), heard))
        return found


def _in_page(page: Sequence[Said], says: Says) -> list[Residue]:
    return [
        Residue(where=f"message {placed.logged.seq} of {placed.session_id}", what="its text")
        for placed, message in page
        if any(says(text) for text in texts_of(message))
    ]


def _files(folder: str | Path, *, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """Each that is one itself, and leads nowhere else. As plain names: a wiki has as many as there are messages."""
    try:
        with os.scandir(folder) as entries:
            there = list(entries)
    except OSError:
        return  # gone meanwhile
    for one in there:
        if one.is_file(follow_symlinks=False):
            yield one.path
        elif one.is_dir(follow_symlinks=False) and one.name not in without:
            yield from _files(one.path)


def _as_bytes(phrase: str) -> set[bytes]:
    """As a file may have it: as it is, and as JSON writes it with and without other letters escaped."""
    plain = json.dumps(phrase, ensure_ascii=False)[1:-1]
    return {form.encode() for form in (phrase, plain, json.dumps(phrase)[1:-1])}


def _found_in(path: str, forms: Sequence[tuple[bytes, str]], heard: Hears) -> Sought:
    nothing = Sought(set(), set())
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - one of very many
            size = os.fstat(file.fileno()).st_size
            if not size:
                return nothing
            if size > LARGEST_TEXT_BYTES:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                    return Sought(set(), {phrase for form, phrase in forms if mapped.find(form) >= 0})
            data = file.readall()
        found = {phrase for form, phrase in forms if form in data}
        if not path.endswith(TEXT_SUFFIXES):
            return Sought(set(), found)
        read = heard(data.decode(errors="replace"))
        return Sought(read.probes, read.phrases | found)
    except (OSError, ValueError):
        return nothing  # gone meanwhile, or not to be mapped
