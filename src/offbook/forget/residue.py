"""Looking everywhere for what was forgotten: the log, all that is kept beside it, the index, and every file, byte by
byte."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from offbook.forget.probes import Prober
from offbook.forget.selection import Known, Said, pages_of
from offbook.log.erasure import folded, texts_of
from offbook.log.store import Blobs, Store
from offbook.model.private_files import sync_folder
from offbook.model.receipt import FORGOTTEN, ForgetReceipt, ForgottenSpan, Probe, Residue
from offbook.model.summary import SourceSpan
from offbook.model.types import Scope
from offbook.projections.base import Erased, Projection, Says

TEXT_SUFFIXES = (".md", ".json", ".jsonl")
LARGEST_TEXT_BYTES = 8 * 1024 * 1024
"""Of a file that is read as text; a larger one is only looked through byte by byte."""
NOT_LOOKED_INTO = frozenset({"models"})
"""Holds what was downloaded."""
REWRITTEN = ("index", "summaries", "wiki", "wiki-state")
"""Folders of what is derived: written without waiting for the disk, since it can be made again."""
MOST_NAMED = 100
PAGE = 200


class Sought(NamedTuple):
    """What is looked for, or what of it was found."""

    probes: set[Probe]
    phrases: set[str]

    def __bool__(self) -> bool:
        return bool(self.probes or self.phrases)


Hears = Callable[[str], Sought]
"""Tells what a text says of it."""


class ResidueSearch:
    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        projections: Sequence[Projection],
        folder: Path,
        *,
        key: bytes,
        index_rows: Callable[[str], int] = lambda agent_id: 0,
    ) -> None:
        """`index_rows`: how many entries an agent's search index has, to say what was looked through."""
        self._index_rows = index_rows
        self._store = store
        self._blobs = blobs
        self._projections = projections
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
        receipt: ForgetReceipt,
        erased: Erased,
        known: Known,
        *,
        with_log: bool = True,
        elsewhere: frozenset[str] = frozenset(),
    ) -> tuple[list[Residue], dict[str, int]]:
        """`elsewhere`: folders that others look through."""
        agent_id, says = erased.agent_id, erased.says
        residue: list[Residue] = []
        searched: dict[str, int] = {}
        if with_log:
            await self._search_log(agent_id, says, residue, searched)
        await self._search_spans(agent_id, receipt, residue)
        residue += await left_by_place(self._store, receipt)
        async for kept in self._store.kept_texts(agent_id):
            searched[kept.table] = searched.get(kept.table, 0) + 1
            if await asyncio.to_thread(says, kept.text):
                residue.append(Residue(where=kept.name, what="its text"))
        searched["index entries"] = self._index_rows(agent_id)
        if vectors := sum((await self._store.vector_models(agent_id)).values()):
            searched["vectors"] = vectors
        for projection in self._projections:
            found = await projection.check(agent_id, erased)
            residue += [Residue(where=one.where, what=one.what) for one in found]
        residue += await self._in_files(agent_id, receipt.probes, known, elsewhere, searched)
        return residue[:MOST_NAMED], searched

    async def sync_folders(self) -> None:
        """Have it on the disk that files are gone or replaced, before that is signed: else a power cut brings them
        back."""
        await asyncio.to_thread(self._sync_folders)

    def _sync_folders(self) -> None:
        for top in REWRITTEN:
            for folder, _, _ in os.walk(self._folder / top):
                with suppress(FileNotFoundError):
                    sync_folder(Path(folder))

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
        found += await self._in_store_files(wanted, searched)
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

    async def _in_store_files(self, wanted: Sought, searched: dict[str, int]) -> list[tuple[str, Sought]]:
        forms = dict(_forms(wanted))
        there = await self._store.found_in_files(forms)
        searched["files"] = searched.get("files", 0) + 1
        return [(name, Sought(set(), {forms[form] for form in found})) for name, found in there.items()]

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

    def _search_files(
        self, sought: Sought, hears: Hears, elsewhere: frozenset[str], searched: dict[str, int]
    ) -> list[tuple[str, Sought]]:
        """The files in which something was found, and what it was."""
        found: list[tuple[str, Sought]] = []
        forms, own = _forms(sought), {str(self._folder / name) for name in self._store.own_files}
        for path in _files(self._folder, without=NOT_LOOKED_INTO | elsewhere):
            if path in own:
                continue
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


def _forms(sought: Sought) -> list[tuple[bytes, str]]:
    return [(form, phrase) for phrase in sorted(sought.phrases) for form in sorted(_as_bytes(phrase))]


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


# ── where it was, not by its words: what said one word has no others to be known by ──


class Places:
    """Stretches of sessions, asked often."""

    def __init__(self, spans: Iterable[ForgottenSpan]) -> None:
        self._of_session: dict[str, list[ForgottenSpan]] = {}
        for span in spans:
            self._of_session.setdefault(span.session_id, []).append(span)

    def has(self, session_id: str, first_seq: int, last_seq: int) -> bool:
        """Whether any message from the first to the last is one of them."""
        return any(
            span.first_seq <= last_seq and first_seq <= span.last_seq for span in self._of_session.get(session_id, ())
        )

    def has_any(self, spans: Sequence[SourceSpan]) -> bool:
        return any(self.has(span.session_id, span.first_seq, span.last_seq) for span in spans)


async def left_by_place(store: Store, receipt: ForgetReceipt) -> list[Residue]:
    """Summaries that stand for it and were written before it was forgotten, and lessons that came of it. Grows with
    the number of both."""
    places = Places(receipt.spans)
    return [*await _summaries(store, receipt, places), *await _lessons(store, receipt.agent_id, places)]


async def _summaries(store: Store, receipt: ForgetReceipt, places: Places) -> list[Residue]:
    left: list[Residue] = []
    after: str | None = None
    while page := await store.summaries_after(receipt.agent_id, after=after, limit=PAGE):
        after = page[-1].id
        left += [
            Residue(where=f"summary {one.id}", what="it stands for it, and was written before it was forgotten")
            for one in page
            if one.made_at < receipt.at and places.has_any(one.draft.spans)
        ]
    return left


async def _lessons(store: Store, agent_id: str, places: Places) -> list[Residue]:
    left: list[Residue] = []
    before: str | None = None
    while page := await store.lessons(agent_id, before=before, limit=PAGE):
        before = page[-1].id
        left += [
            Residue(where=one.id, what="it came of it")
            for one in page
            if any(places.has(source.session_id, source.seq, source.seq) for source in one.sources)
        ]
    return left
