"""Summaries as files to be read: an index and a page for each, in a folder of their agent.

They are derived, and nothing reads them back but whoever finds out what is missing. A page is written as soon as its
summary is kept, the index every few seconds and when the agent's work is done. What a crash or a broom took is
written again at the next start, found by names alone: no text is read for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog

from offbook.log.store import Store
from offbook.model.errors import StoreError
from offbook.model.home import encoded_name
from offbook.model.plain_names import is_digits, is_hex
from offbook.model.private_files import make_private, write_private
from offbook.model.settings import Settings
from offbook.model.summary import SourceSpan, Summary, summary_id, view_of
from offbook.model.types import Value, now
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.threads import to_the_end

INDEX = "index.json"
INDEX_SECONDS = 5.0
"""Between two writings of an index while summaries are made one after the other: it is written whole."""
PAGES_AT_A_TIME = 20
NOT_IN_METADATA = ("text", "losses", "parent")

log = structlog.get_logger("offbook.projections")


class IndexedSummary(Value, frozen=True):
    """A line of the index."""

    id: str
    level: int
    file: str
    sources: list[str]
    spans: list[SourceSpan]
    first_at: datetime
    last_at: datetime
    source_tokens: int
    tokens: int
    summarizer: str
    parent: str | None = None


class SummaryIndex(Value, frozen=True):
    agent_id: str
    updated_at: datetime
    summaries: list[IndexedSummary]


Lines = dict[str, IndexedSummary]
"""By id."""


# ── what is written where ─────────────────────────────────────────────────────────────────────


def agent_folder(agent_id: str) -> str:
    """The agent's name, percent-encoded: safe on every file system, and of one agent only."""
    return encoded_name(agent_id)


def file_of(id_: str) -> str:
    level, _, number = id_.partition("-")
    return f"{level}/{number}.md"


def page_of(summary: Summary) -> str:
    """What is known of the summary, as a comment, then its text. Session keys are the host's words, so everything
    that could end a comment is escaped, as JSON allows."""
    known: dict[str, Any] = {"agentId": summary.agent_id, **msgspec.to_builtins(view_of(summary))}
    for name in NOT_IN_METADATA:
        known.pop(name, None)
    document = msgspec.json.format(msgspec.json.encode(known)).decode()
    for mark, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("--", "\\u002d\\u002d")):
        document = document.replace(mark, escaped)
    return f"<!--\n{document}\n-->\n\n{summary.draft.text}\n"


def line_of(summary: Summary) -> IndexedSummary:
    draft = summary.draft
    return IndexedSummary(
        id=summary.id,
        level=draft.level,
        file=file_of(summary.id),
        sources=draft.sources,
        spans=draft.spans,
        first_at=draft.first_at,
        last_at=draft.last_at,
        source_tokens=draft.source_tokens,
        tokens=draft.tokens,
        summarizer=draft.summarizer,
        parent=summary.parent,
    )


def index_text(index: SummaryIndex) -> str:
    """A line for each summary."""
    head = msgspec.json.encode(msgspec.structs.replace(index, summaries=[])).decode()
    lines = ",\n".join(msgspec.json.encode(line).decode() for line in index.summaries)
    return f"{head.removesuffix(']}')}\n{lines}\n]}}\n"


def joined(lines: Iterable[IndexedSummary], news: Lines, counts: Mapping[int, int]) -> list[IndexedSummary]:
    """The index with its news, in order, without what the store does not have."""
    found = {line.id: line for line in lines} | news
    known = set(ids_of(counts))
    ours = [line for line in found.values() if line.id in known]
    parents = {line.id: line.parent for line in ours if line.parent in known}
    parents |= {source: line.id for line in ours for source in line.sources}
    merged = [msgspec.structs.replace(line, parent=parents.get(line.id)) for line in ours]
    return sorted(merged, key=lambda line: (line.level, int(line.id.partition("-")[2])))


def ids_of(counts: Mapping[int, int]) -> list[str]:
    """Numbers of a level are 1, 2, 3, … without gaps."""
    return [summary_id(level, number) for level, count in sorted(counts.items()) for number in range(1, count + 1)]


def is_same(line: IndexedSummary, other: IndexedSummary) -> bool:
    """But for the summary that merges it: that may have come since."""
    return msgspec.structs.replace(line, parent=None) == msgspec.structs.replace(other, parent=None)


# ── on the disk, in threads ───────────────────────────────────────────────────────────────────


def read_index(folder: Path) -> list[IndexedSummary]:
    """Nothing where there is none, or none of ours: then it is made anew."""
    try:
        return msgspec.json.decode((folder / INDEX).read_bytes(), type=SummaryIndex).summaries
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return []


def write_index(folder: Path, agent_id: str, news: Lines, counts: Mapping[int, int]) -> None:
    _make_folders(folder)
    index = SummaryIndex(agent_id=agent_id, updated_at=now(), summaries=joined(read_index(folder), news, counts))
    write_private(folder / INDEX, index_text(index), is_durable=False)


def write_pages(folder: Path, summaries: Sequence[Summary]) -> None:
    for summary in summaries:
        path = folder / file_of(summary.id)
        _make_folders(folder, path.parent)
        write_private(path, page_of(summary), is_durable=False)


def _read_page(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def swept(folder: Path, known: set[str]) -> set[str]:
    """The pages there are, of these files. Others of ours are removed: what a crash left unfinished, and pages of a
    store that was here before. Whatever else somebody put there stays."""
    found = set()
    for path in folder.glob("L[1-9]/*"):
        name = f"{path.parent.name}/{path.name}"
        if name in known and path.stat().st_size:  # an empty one is what a power cut leaves
            found.add(name)
        elif _is_ours(path.name):
            path.unlink(missing_ok=True)
    for path in folder.glob(f".{INDEX}.*"):
        path.unlink(missing_ok=True)
    return found


def our_files(summaries: Path) -> list[Path]:
    """The pages and indexes of all agents, and what a crash left unfinished of them."""
    pages = [path for path in summaries.glob("*/L[1-9]/*") if _is_ours(path.name)]
    return [*pages, *summaries.glob(f"*/{INDEX}"), *summaries.glob(f"*/.{INDEX}.*")]


def _make_folders(folder: Path, *inner: Path) -> None:
    for each in (folder.parent, folder, *inner):
        make_private(each)


# ── when ──────────────────────────────────────────────────────────────────────────────────────


class AgentFiles:
    """How far the files of one agent are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.news: Lines = {}
        """Not in the index yet."""
        self.stale: set[str] = set()
        """Ids whose page is not what the store has."""
        self.lacking: list[str] | None = None
        """Ids of summaries that have no page or no line; None where that was not looked at yet."""
        self.is_index_due = False
        self.indexed_at = 0.0
        self.has_failed = False
        self.is_told = False


class SummaryFiles:
    name = "summary_files"

    def __init__(
        self, store: Store, settings: Settings, folder: Path, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._settings = settings
        self._folder = folder
        self._monotonic = monotonic
        self._agents: dict[str, AgentFiles] = {}

    # ── as a projection ──

    async def advance(self, batch: Batch) -> Progress:
        return Progress(is_done=await self.run(batch.agent_id))

    async def forget(self, erased: Erased) -> Removal:
        """Also where no files are wanted any more: the pages may be there from before."""
        if erased.is_dry_run:
            return Removal({"summary_files": len(erased.summaries)})
        for id_ in erased.summaries:
            await self._remove(erased.agent_id, id_)
            if (summary := await self._store.summary(erased.agent_id, id_)) is not None:
                await self.kept(summary)
        await self.run(erased.agent_id)
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        files = self._files(agent_id)
        del self._agents[agent_id]
        await to_the_end(swept, files.folder, set())
        await to_the_end((files.folder / INDEX).unlink, missing_ok=True)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Pages that are missing or do not say what the summary says. They are written again by `offbook compress`."""
        if erased is not None or not self._is_wanted(agent_id):
            return []  # files are looked through byte by byte
        folder, found = self._files(agent_id).folder, list[Finding]()
        for id_ in ids_of(await self._store.summary_counts(agent_id)):
            summary = await self._store.summary(agent_id, id_)
            read = await to_the_end(_read_page, folder / file_of(id_))
            if summary is not None and read != page_of(summary):
                what = "its page is missing" if read is None else "its page says something else"
                found.append(Finding(f"summary {id_}", what))
        return found

    # ── what whoever writes summaries asks of it ──

    async def outdated(self, agent_id: str, id_: str) -> None:
        """The summary is about to be replaced. Without its page it is seen to be missing, whatever happens next."""
        if self._is_wanted(agent_id):
            await self._remove(agent_id, id_)

    async def _remove(self, agent_id: str, id_: str) -> None:
        files = self._files(agent_id)
        files.stale.add(id_)
        try:
            await to_the_end((files.folder / file_of(id_)).unlink, missing_ok=True)
        except OSError as error:
            self._note_failure(agent_id, files, error)

    async def kept(self, summary: Summary) -> None:
        """Its page, at once."""
        agent_id = summary.agent_id
        if not self._is_wanted(agent_id):
            return
        files = self._files(agent_id)
        files.stale.add(summary.id)
        try:
            await to_the_end(write_pages, files.folder, [summary])
            self._note(files, [summary])
            if files.lacking is None:
                await self._look(agent_id, files)
            if self._monotonic() - files.indexed_at >= INDEX_SECONDS:
                await self._index(agent_id, files)
        except OSError as error:
            self._note_failure(agent_id, files, error)

    def lacks(self, agent_id: str, ids: Iterable[str]) -> None:
        """These came from elsewhere: their pages are for the next `run`, which is never beside an erasure."""
        files = self._files(agent_id)
        files.stale.update(ids)
        files.lacking, files.has_failed = None, False

    async def run(self, agent_id: str) -> bool:
        """A piece of what is left to write; True where nothing is, or nothing can be now."""
        files = self._files(agent_id)
        if files.has_failed or not self._is_wanted(agent_id):
            return True
        try:
            if files.lacking is None:
                await self._look(agent_id, files)
            is_done = await self._fill(agent_id, files)
            if files.is_index_due and (is_done or self._monotonic() - files.indexed_at >= INDEX_SECONDS):
                await self._index(agent_id, files)
        except OSError as error:
            self._note_failure(agent_id, files, error)
            return True
        return is_done

    def _is_wanted(self, agent_id: str) -> bool:
        return self._settings.for_agent(agent_id).summary_files

    def _files(self, agent_id: str) -> AgentFiles:
        if agent_id not in self._agents:
            self._agents[agent_id] = AgentFiles(self._folder / agent_folder(agent_id))
        return self._agents[agent_id]

    async def _look(self, agent_id: str, files: AgentFiles) -> None:
        """What is missing, by numbers and names. The newest of each level is compared with its line: so another store
        in the place of the one before is noticed."""
        counts = await self._store.summary_counts(agent_id)
        ids = ids_of(counts)
        there = await to_the_end(swept, files.folder, {file_of(id_) for id_ in ids})
        read = await to_the_end(read_index, files.folder)
        lines = {line.id: line for line in read} | files.news
        for level in counts:
            for newest in await self._store.summaries(agent_id, level=level, limit=1):
                if newest.id in lines and not is_same(lines[newest.id], line_of(newest)):
                    lines = dict(files.news)
        files.lacking = [id_ for id_ in ids if id_ not in lines or id_ in files.stale or file_of(id_) not in there]
        files.is_index_due |= not {line.id for line in read} <= set(ids)

    async def _fill(self, agent_id: str, files: AgentFiles) -> bool:
        """Some of the pages that are missing; True where none is."""
        lacking = files.lacking or []
        page, files.lacking = lacking[:PAGES_AT_A_TIME], lacking[PAGES_AT_A_TIME:]
        found = []
        for id_ in page:
            try:
                summary = await self._store.summary(agent_id, id_)
            except StoreError as error:
                log.warning("no page", action="summaries.page", agent=agent_id, summary=id_, detail=error.detail)
            else:
                found += [summary] if summary is not None else []
        if found:
            await to_the_end(write_pages, files.folder, found)
            self._note(files, found)
        return not files.lacking

    async def _index(self, agent_id: str, files: AgentFiles) -> None:
        news = dict(files.news)
        counts = await self._store.summary_counts(agent_id)
        await to_the_end(write_index, files.folder, agent_id, news, counts)
        files.news = {id_: line for id_, line in files.news.items() if news.get(id_) is not line}
        files.is_index_due = bool(files.news)
        files.indexed_at = self._monotonic()
        files.is_told = False

    def _note(self, files: AgentFiles, summaries: Sequence[Summary]) -> None:
        files.news |= {summary.id: line_of(summary) for summary in summaries}
        files.stale -= {summary.id for summary in summaries}
        files.is_index_due = True
        files.has_failed = False

    def _note_failure(self, agent_id: str, files: AgentFiles, error: OSError) -> None:
        """Told once, until it works again; what is missing is looked for then."""
        if not files.is_told:
            log.warning(
                "summaries are not written to files",
                action="summaries.fail",
                agent=agent_id,
                detail=f"{files.folder} cannot be written ({error}): make room or mend its permissions; the summaries "
                "are in the store all the same, and their files follow once it is possible again",
            )
        files.is_told = files.has_failed = True
        files.lacking = None


def _is_ours(name: str) -> bool:
    """A page, or an unfinished one: `0007.md`, `.0007.md.0123abcd`."""
    is_unfinished = name.startswith(".") and is_hex(name[-8:], 8) and name[-9:-8] == "."
    page = name[1:-9] if is_unfinished else name
    return page.endswith(".md") and is_digits(page.removesuffix(".md"), least=4)
