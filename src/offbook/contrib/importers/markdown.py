"""Memory that is kept as Markdown files: MEMORY.md, CLAUDE.md, a folder of daily notes, any folder of notes.

A note is known by its file, its headings and its text. So after an edit only what is new is added, and what was taken
out of a file stays in the log: a log is of what was once noted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.fields import bounded, digest_of, ready, time_of
from offbook.client.history.files import LINKS, Why, files_under
from offbook.client.history.formats import FORMATS, Owner
from offbook.contrib.importers.markdown_notes import Note, notes
from offbook.contrib.importers.own_pages import HEAD_CHARS, is_own_page
from offbook.model.files import open_regular

ORIGIN = "memory:markdown"
SUFFIXES = (".md", ".markdown")
NAMED_SUFFIXES = (*SUFFIXES, ".txt")
"""Of a file that is named itself."""
OWN = "Offbook wrote them from what it remembers; a lesson is edited in the wiki itself"
NOT_NOTED = "about the page, and no note in it"
LARGEST_BYTES = 64 * 1024 * 1024
_PACKAGES = frozenset({"node_modules", "__pycache__"})
_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    folder = path if path.is_dir() else path.parent
    files = list(_files(path, report)) if path.is_dir() else [path]
    if not files:
        report.unreadable += 1
        report.problem(str(path), f"holds no Markdown file: {FORMATS['markdown'].give}")
    found = []
    for each in files:
        name = each.relative_to(folder).as_posix()
        if not path.is_dir() and not name.lower().endswith(NAMED_SUFFIXES):
            report.unreadable += 1
            report.problem(
                name, f"no Markdown by its name: {', '.join(NAMED_SUFFIXES)} are read; rename it if it is some"
            )
            continue
        if _is_own(each):
            report.leave("pages of Offbook's own", OWN)
            continue
        key = bounded(f"markdown:{name}".encode(errors="replace").decode())
        try:
            size = each.stat().st_size
        except OSError as error:
            report.unreadable += 1
            report.problem(name, f"cannot be read: {error}")
            continue
        found.append(Conversation(owner(key), key, size, partial(_messages, each, name, report)))
    return found


def _files(folder: Path, report: ImportReport) -> Iterator[Path]:
    for path in files_under(folder, report, _why_not):
        if path.is_symlink():
            report.leave(*LINKS)
        elif path.name.lower().endswith(SUFFIXES):
            yield path
        else:
            report.leave("files that are no Markdown", "only .md and .markdown files are read from a folder")


def _why_not(folder: str) -> Why | None:
    """Few of these hold notes, and nobody wants those of a program's packages; who does gives the folder itself."""
    if folder.startswith("."):
        return "hidden folders", "programs keep their own in them: give one itself if it holds notes"
    return ("folders of packages", "they hold no notes") if folder in _PACKAGES else None


def _is_own(path: Path) -> bool:
    try:
        with open_regular(path) as source:
            return is_own_page(source.read(HEAD_CHARS).decode(errors="replace"))
    except OSError:
        return False  # it is told where it is read


def _messages(path: Path, name: str, report: ImportReport, damaged: Damaged) -> Iterator[Ready]:
    try:
        with open_regular(path) as source:
            data = source.read(LARGEST_BYTES + 1)
            changed_at = os.fstat(source.fileno()).st_mtime
        if len(data) > LARGEST_BYTES:
            raise ValueError(f"larger than {LARGEST_BYTES:,} bytes: split it")
        text = data.decode()
    except UnicodeDecodeError as error:
        damaged(Damage(name, f"not UTF-8 at byte {error.start:,}: save it as UTF-8", is_whole=True))
        return
    except (OSError, ValueError) as error:
        damaged(Damage(name, f"cannot be read: {error}", is_whole=True))
        return
    seen: set[str] = set()
    for note in notes(text, lambda what: report.leave(what, NOT_NOTED)):
        message_id = digest_of(name, *note.headings, note.text)
        if message_id in seen:
            continue
        title = note.headings[0] if note.headings and not seen else None
        meta = {"file": name, "headings": list(note.headings), "line": note.line, "title": title}
        seen.add(message_id)
        at = _noted_at(note, name) or time_of(changed_at)
        where = f"{name} line {note.line}"
        yield ready(message_id, "user", _format_note(note), at=at, where=where, labels={"origin": ORIGIN}, meta=meta)


def _format_note(note: Note) -> str:
    """A note that is found alone must still say what it is about."""
    if not note.headings:
        return note.text
    between = "\n" if "\n" in note.text else " "
    return f"{' › '.join(note.headings)}:{between}{note.text}"


def _noted_at(note: Note, name: str) -> datetime | None:
    """The day that the nearest heading names, or the file. Noon: that day in nearly every zone."""
    for text in (*reversed(note.headings), Path(name).stem):
        day = _DAY.search(text)
        if day is None:
            continue
        try:
            return time_of(datetime.fromisoformat(day[0]).replace(hour=12, tzinfo=UTC).isoformat())
        except ValueError:
            continue
    return None
