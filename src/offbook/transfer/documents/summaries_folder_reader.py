"""The `summaries/` of the hierarchical memory plugin: an index, and a page for each summary in the folder of its level.

What they were made of is not there, so each becomes a message of its own: what the agent remembers. All that the
folder says of a summary goes with it, so that `writing.summaries_folder` can write it back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.fields import decoded, dictionaries, dictionary, iso, moment_of
from offbook.client.history.formats import FORMATS, Owner
from offbook.model.plain_names import is_digits

INDEX = "index.json"
ORIGIN = "memory:summaries"
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
        report.unreadable += 1
        report.problem(str(path), f"holds no summaries: {FORMATS['summaries'].give}")
        return []
    index = _index(folder, report)
    agent_id = owner(f"agent:{index['agentId']}:") if isinstance(index.get("agentId"), str) else owner("")
    found = Pages(without_summaries(index), _pages(folder, index, report))
    size_bytes = sum(page.size_bytes for page in found.pages)
    if not found.pages:
        return []
    return [Conversation(agent_id, f"summaries:{agent_id}", size_bytes, partial(_messages, found))]


def _is_one(folder: Path) -> bool:
    return (folder / INDEX).is_file() or (folder / "L1").is_dir()


def _index(folder: Path, report: ImportReport) -> dict[str, Any]:
    try:
        index = decoded((folder / INDEX).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        report.unreadable += 1
        report.problem(str(folder / INDEX), f"cannot be read, so the pages speak for themselves: {error}")
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
            report.unreadable += 1
            report.problem(page.where, page.reason)
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
    commented = _commented(_head(text)[1] or "")
    known = dict(entry) if entry is not None else {**commented, "id": number, "level": level}
    said = {**commented, **known}
    times = {name: moment_of(said.get(name)) for name in _TIMES}
    for name, time in times.items():
        report.note_time(said.get(name), time)
    at = next((time for time in times.values() if time is not None), None)
    return Page(file, level, number, known, at or datetime.fromtimestamp(int(status.st_mtime), UTC), status.st_size)


def _head(text: str) -> re.Match[str]:
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
        comment = _head(text)[0]
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
