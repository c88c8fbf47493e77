"""Summaries, as the hierarchical memory plugin keeps them: `summaries/index.json` and a page for each.

Those that came from such a folder go back as they were. Our own follow them in number; those that stand only for
imported ones are left out, for they would come back as memories of memories.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.history.fields import dictionary
from offbook.model.content import text_of
from offbook.model.plain_names import is_digits
from offbook.model.summary import SummaryView
from offbook.transfer.documents.archive_days import replace_file
from offbook.transfer.documents.spoken import LeftOutCounts, id_of
from offbook.transfer.documents.summaries_folder_reader import INDEX, LEVEL_NAMES, ORIGIN
from offbook.transfer.provider_export import Exported, ExportedMessage, Written

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
