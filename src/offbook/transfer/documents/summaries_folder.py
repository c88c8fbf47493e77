"""Summaries, as the hierarchical memory plugin keeps them: `summaries/index.json` and a page for each.

Those that came from such a folder go back as they were. Our own follow them in number; those that stand only for
imported ones are left out, for they would come back as memories of memories.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.files import decoded, dictionaries, dictionary, iso, moment_of
from offbook.client.history.formats import FORMATS, Owner
from offbook.model.content import text_of
from offbook.model.plain_names import is_digits
from offbook.model.summary import SummaryView
from offbook.transfer.documents.archive_days import replace_file
from offbook.transfer.provider_export import ORIGIN, Exported, ExportedMessage, LeftOutCounts, Written, id_of

FOLDER = "summaries"
EMPTY = "there is no text in them"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEVELS = ("L1", "L2", "L3")
"""Those that the plugin knows, and lists also where they are empty."""

Entry = dict[str, Any]
Name = tuple[str, str]
"""A level and a number."""


class _Imported(NamedTuple):
    entries: dict[Name, Entry]
    folder: dict[str, Any]
    """What its index said of all of them together."""
    sessions: set[str]


def write(exported: Exported, folder: Path) -> Written:
    """`folder/summaries/index.json`, `folder/summaries/L1/0001.md` and so on."""
    target = folder / FOLDER
    leaving = LeftOutCounts()
    imported = _write_imported(exported, target, leaving)
    own = _write_own(exported, target, imported, leaving)
    entries = _merged(imported.entries) | own
    index = _index(exported.agent_id, imported, entries, own)
    replace_file(target / INDEX, [json.dumps(index, ensure_ascii=False, indent=2).encode()])
    return Written(files=len(entries) + 1, records=len(entries), left_out=leaving.described())


# ── what came from such a folder ──────────────────────────────────────────────────────────────


def _write_imported(exported: Exported, target: Path, leaving: LeftOutCounts) -> _Imported:
    imported = _Imported({}, {}, set())
    for each in exported.messages():
        meta = each.message.meta or {}
        entry = meta.get("summary")
        if each.message.origin != ORIGIN or not isinstance(entry, dict):
            leaving.leave("messages", "the format holds what is made of them")
            continue
        imported.sessions.add(each.session_id)
        name = _name(each)
        if name is None or name in imported.entries:
            leaving.leave("imported summaries", "another has their name" if name else "their names are no file's")
            continue
        imported.entries[name] = {**entry, "id": entry.get("id", name[1]), "level": entry.get("level", name[0])}
        if isinstance(meta.get("index"), dict):
            imported.folder.clear()
            imported.folder.update(meta["index"])
        comment = meta.get("comment")
        head = comment if isinstance(comment, str) else _head(entry)
        _write_page(target, name, head, text_of(each.message.content))
    return imported


def _name(each: ExportedMessage) -> Name | None:
    """From its id, which whoever records a message may choose: so nothing but what is safe as the name of a file."""
    level, _, number = (each.message.id or "").partition("-")
    return (level, number) if level in LEVEL_NAMES and is_digits(number) else None


def _merged(entries: Mapping[Name, Entry]) -> dict[Name, Entry]:
    """With what each was merged into, also where that came with a later import."""
    parents: dict[Name, str] = {}
    for (level, number), entry in entries.items():
        sources = entry.get("sourceIds")
        for source in sources if isinstance(sources, list) and level != "L1" else []:
            parents[_level_below(level), str(source)] = number
    return {
        name: {**entry, "mergedInto": parents[name]} if entry.get("mergedInto") is None and name in parents else entry
        for name, entry in entries.items()
    }


# ── our own ───────────────────────────────────────────────────────────────────────────────────


def _write_own(exported: Exported, target: Path, imported: _Imported, leaving: LeftOutCounts) -> dict[Name, Entry]:
    numbers = _numbers(exported, imported)
    ids = _source_ids(exported, numbers)
    entries: dict[Name, Entry] = {}
    for view in exported.summaries():
        name = numbers.get(view.id)
        if name is None:
            why = "they stand only for imported ones, which are written as they were" if view.text.strip() else EMPTY
            leaving.leave("summaries", why)
            continue
        entries[name] = entry = _entry(view, name, numbers, ids)
        _write_page(target, name, _head(entry), view.text)
    return entries


def _numbers(exported: Exported, imported: _Imported) -> dict[str, Name]:
    """By id. They follow the imported ones of their level."""
    before: dict[str, int] = defaultdict(int)
    for level, number in imported.entries:
        before[level] = max(before[level], int(number))
    found = {}
    for view in exported.summaries():
        if view.text.strip() and not all(span.session_id in imported.sessions for span in view.spans):
            level, _, number = view.id.partition("-")
            found[view.id] = (level, f"{int(number) + before[level]:04}")
    return found


def _source_ids(exported: Exported, numbers: Mapping[str, Name]) -> dict[tuple[str, int], str]:
    """Ids of messages by session and seq, of the sessions that summaries of the first level are made of."""
    firsts = (view for view in exported.summaries() if view.level == 1 and view.id in numbers)
    sessions = {span.session_id for view in firsts for span in view.spans}
    if not sessions:
        return {}  # a log is long to read
    return {
        (each.session_id, each.seq): id_of(exported.agent_id, each)
        for each in exported.messages()
        if each.session_id in sessions
    }


def _entry(view: SummaryView, name: Name, numbers: Mapping[str, Name], ids: Mapping[tuple[str, int], str]) -> Entry:
    level, number = name
    if view.level == 1:
        places = [(span.session_id, seq) for span in view.spans for seq in range(span.first_seq, span.last_seq + 1)]
        sources = [ids[place] for place in places if place in ids]
    else:
        sources = [numbers[source][1] for source in view.sources if source in numbers]
    entry: Entry = {
        "id": number,
        "level": level,
        "createdAt": _milliseconds(view.made_at),
        "tokenEstimate": view.tokens,
        "sourceLevel": _level_below(level),
        "sourceIds": sources,
    }
    sessions = {span.session_id for span in view.spans}
    if view.level == 1 and len(sessions) == 1:
        entry["sourceSessionId"] = view.spans[0].session_id
    entry["mergedInto"] = numbers[view.parent][1] if view.parent is not None and view.parent in numbers else None
    # The plugin passes over these two. Read again, they say when what is told here happened.
    return {**entry, "firstAt": _milliseconds(view.first_at), "lastAt": _milliseconds(view.last_at)}


# ── files ─────────────────────────────────────────────────────────────────────────────────────


def _head(entry: Entry) -> str:
    """The comment at the head of a page. What could end it is escaped, or left to the index."""
    lines = []
    for name, value in entry.items():
        if name == "mergedInto":
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        shown = shown if isinstance(value, str) else shown.replace(">", "\\u003e")
        if ">" not in shown and shown.isprintable():
            lines.append(f"  {name}: {shown}\n")
    return f"<!--\n{''.join(lines)}-->\n\n"


def _write_page(target: Path, name: Name, head: str, text: str) -> None:
    level, number = name
    replace_file(target / level / f"{number}.md", [f"{head}{text}".encode()])


def _index(
    agent_id: str, imported: _Imported, entries: Mapping[Name, Entry], own: Mapping[Name, Entry]
) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "version": 1,
        "agentId": agent_id,
        "lastSummarizedEntryId": None,
        "lastSummarizedSessionId": None,
        "levels": {},
        "worker": {"lastRunAt": None, "lastRunDurationMs": None, "lastError": None},
    }
    index = imported.folder | {name: value for name, value in empty.items() if name not in imported.folder}
    newest = max((name for name in own if name[0] == "L1"), key=_order, default=None)
    if newest is not None and own[newest]["sourceIds"]:
        index["lastSummarizedEntryId"] = own[newest]["sourceIds"][-1]
        index["lastSummarizedSessionId"] = own[newest].get("sourceSessionId")
    names: Sequence[str] = sorted({*LEVELS, *dictionary(index["levels"]), *(level for level, _ in entries)})
    index["levels"] = {
        level: [entries[name] for name in sorted(entries, key=_order) if name[0] == level] for level in names
    }
    return index


def _order(name: Name) -> tuple[str, int, str]:
    level, number = name
    return level, int(number), number


def _level_below(level: str) -> str:
    return f"L{int(level[1:]) - 1}"


def _milliseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


# ── The `summaries/` of the hierarchical memory plugin ──
# An index, and a page for each summary in the folder of its level.
# What they were made of is not there, so each becomes a message of its own: what the agent remembers. All that the
# folder says of a summary goes with it, so that `writing.summaries_folder` can write it back as it was.


INDEX = "index.json"
LEVEL_NAMES = tuple(f"L{level}" for level in range(1, 10))
HEAD = re.compile(r"\ufeff?(?:<!--(.*?)-->[\r\n]*)?", re.DOTALL)
"""Of every page: empty where it has neither a comment nor the mark that some editors put first."""
_TIMES = ("lastAt", "createdAt", "madeAt")
NUMBERS = ("createdAt", "tokenEstimate", "firstAt", "lastAt")
"""What a comment says in digits."""
PLACES = (".", "summaries", "memory/summaries")
"""Where the folder lies under that of an agent."""


class Page(NamedTuple):
    file: Path
    level: str
    number: str
    entry: dict[str, Any]
    at: datetime
    size_bytes: int


class Pages(NamedTuple):
    folder: dict[str, Any]
    """What the index says of all of them together."""
    pages: list[Page]


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    folder = next((path / place for place in PLACES if _is_one(path / place)), None)
    if folder is None:
        report.cannot_read(str(path), f"holds no summaries: {FORMATS['summaries'].give}")
        return []
    index = _read_index(folder, report)
    agent_id = owner(f"agent:{index['agentId']}:") if isinstance(index.get("agentId"), str) else owner("")
    found = Pages(without_summaries(index), _pages(folder, index, report))
    size_bytes = sum(page.size_bytes for page in found.pages)
    if not found.pages:
        return []
    return [Conversation(agent_id, f"summaries:{agent_id}", size_bytes, partial(_messages, found))]


def _is_one(folder: Path) -> bool:
    return (folder / INDEX).is_file() or (folder / "L1").is_dir()


def _read_index(folder: Path, report: ImportReport) -> dict[str, Any]:
    try:
        index = decoded((folder / INDEX).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        report.cannot_read(str(folder / INDEX), f"cannot be read, so the pages speak for themselves: {error}")
        return {}
    return dictionary(index)


def without_summaries(index: dict[str, Any]) -> dict[str, Any]:
    levels: dict[str, Any] = {name: [] for name in dictionary(index.get("levels"))}
    return {name: levels if name == "levels" else value for name, value in index.items() if name != "summaries"}


def _entries(index: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """What the index says of each summary, by level and number."""
    found = {}
    for level, entries in dictionary(index.get("levels")).items():
        for entry in dictionaries(entries):
            found[level, str(entry.get("id"))] = entry
    return found


def _pages(folder: Path, index: dict[str, Any], report: ImportReport) -> list[Page]:
    entries = _entries(index)
    pages = []
    for file in sorted(folder.glob("L*/*.md")):
        level, number = file.parent.name, file.stem
        if file.name.startswith(".") or level not in LEVEL_NAMES or not is_digits(number):
            report.leave("files", "not named as a summary is: L1/0001.md")
            continue
        page = _page(file, level, number, entries.pop((level, number), None), report)
        if isinstance(page, Damage):
            report.cannot_read(page.where, page.reason)
        else:
            pages.append(page)
    for level, number in entries:
        report.problem(f"{folder / level / number}.md", f"{INDEX} names it, and it is not there")
        report.leave("summaries", "their pages are missing")
    return sorted(pages, key=lambda page: (page.at, page.level, page.number))


def _page(file: Path, level: str, number: str, entry: dict[str, Any] | None, report: ImportReport) -> Page | Damage:
    try:
        text = file.read_bytes().decode(errors="replace")
        status = file.stat()
    except OSError as error:
        return Damage(str(file), f"cannot be read: {error}")
    commented = _commented(_read_head(text)[1] or "")
    known = dict(entry) if entry is not None else {**commented, "id": number, "level": level}
    said = {**commented, **known}
    times = {name: moment_of(said.get(name)) for name in _TIMES}
    for name, time in times.items():
        report.note_time(said.get(name), time)
    at = next((time for time in times.values() if time is not None), None)
    return Page(file, level, number, known, at or datetime.fromtimestamp(int(status.st_mtime), UTC), status.st_size)


def _read_head(text: str) -> re.Match[str]:
    found = HEAD.match(text)
    assert found is not None  # it matches nothing, too
    return found


def _commented(comment: str) -> dict[str, Any]:
    """`name: value` in each line, as the plugin writes it, or an object, as Offbook does."""
    if comment.lstrip().startswith("{"):
        try:
            return dictionary(decoded(comment))
        except (ValueError, RecursionError):
            return {}
    found: dict[str, Any] = {}
    for line in comment.splitlines():
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        found[name] = value
        if name == "sourceIds" or name in NUMBERS:
            try:
                found[name] = decoded(value)
            except (ValueError, RecursionError):
                found[name] = [] if name == "sourceIds" else None
    return found


def _messages(found: Pages, damaged: Damaged) -> Iterator[Ready]:
    for page in found.pages:
        try:
            text = page.file.read_bytes().decode(errors="replace")
        except OSError as error:
            damaged(Damage(str(page.file), f"cannot be read: {error}"))
            continue
        comment = _read_head(text)[0]
        content = text.removeprefix(comment)
        if not content.strip():
            damaged(Damage(str(page.file), "has no text"))
            continue
        meta = {"summary": page.entry, "comment": comment, "index": found.folder}
        wire = {
            "id": f"{page.level}-{page.number}",
            "role": "assistant",
            "content": content,
            "ts": iso(page.at),
            "origin": ORIGIN,
            "meta": meta,
        }
        yield Ready(wire, page.at, page.size_bytes, str(page.file))
