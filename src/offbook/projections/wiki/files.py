"""The files of a wiki: written only where they changed, at once or not at all; what others put there stays."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from offbook.model.home import safe_name
from offbook.model.plain_names import is_hex
from offbook.model.private_files import write_private
from offbook.projections.wiki.day_page import is_cold_file, is_log_file
from offbook.projections.wiki.lesson_page import is_lesson_file
from offbook.projections.wiki.own_fields import BrokenPage

INDEX = "index.md"
SUBJECT_FOLDERS = ("people", "projects", "topics")


class AgentFolder:
    """Where the pages of one agent are."""

    def __init__(self, wiki: Path, agent_id: str) -> None:
        self.agent_id = agent_id
        self.wiki = wiki
        self.folder = wiki / safe_name(agent_id)
        self.index = self.folder / INDEX
        self.logs = self.folder / "sources" / "session-logs"
        self.swap = self.folder / "sources" / "swap"
        self.lessons = self.folder / "lessons"
        self.subjects = [self.folder / name for name in SUBJECT_FOLDERS]

    def logs_there(self) -> set[str]:
        return {name for name in names_in(self.logs) if is_log_file(self.agent_id, name)}

    def cold_there(self) -> set[str]:
        return {name for name in names_in(self.swap) if is_cold_file(name)}

    def lessons_there(self) -> set[str]:
        return {name for name in names_in(self.lessons) if is_lesson_file(name)}

    def subjects_there(self) -> set[str]:
        """All pages in the folders of subjects, ours or not, as folder and name without the ending."""
        found = [(folder.name, name) for folder in self.subjects if folder.is_dir() for name in names_in(folder)]
        return {f"{folder}/{name[:-3]}" for folder, name in found if name.endswith(".md") and not name.startswith(".")}

    def page_of_subject(self, page_id: str) -> Path:
        return self.folder / f"{page_id}.md"

    def page_of_lesson(self, name: str) -> str:
        """As it is called in the data folder."""
        return (self.lessons / name).relative_to(self.wiki.parent).as_posix()

    def sweep(self) -> None:
        """Remove what a kill left unfinished: `write_private` writes `.page.md.0123abcd` first."""
        for folder in (self.wiki, self.folder, self.logs, self.swap, self.lessons, *self.subjects):
            for name in names_in(folder):
                page, _, mark = name.removeprefix(".").rpartition(".")
                is_unfinished = name.startswith(".") and page.endswith(".md") and is_hex(mark, 8)
                if is_unfinished and (folder in self.subjects or self._is_ours(page)):
                    (folder / name).unlink(missing_ok=True)

    def clear(self) -> int:
        """Remove the pages of the log, of whichever store they are: they are made anew. Returns how many."""
        self.sweep()
        found = [self.logs / name for name in self.logs_there()] + [self.swap / name for name in self.cold_there()]
        return removed(found)

    def _is_ours(self, name: str) -> bool:
        return name == INDEX or is_log_file(self.agent_id, name) or is_cold_file(name) or is_lesson_file(name)


def written(path: Path, text: str, stop: Path) -> bool:
    """Whether it had to be written: a page that says so already is left as it is. New folders, below `stop`, are for
    their owner only; those that are there keep the modes they have."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == text.encode():
            return False
    make_folder(path.parent, stop)
    write_private(path, text, is_durable=False)
    return True


def removed(paths: Iterable[Path]) -> int:
    count = 0
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            count += 1
    return count


def read_text(path: Path) -> str | None:
    """None where there is nothing: an empty file is what a power cut leaves."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise BrokenPage("it is not UTF-8") from None
    return text if text.strip() else None


def names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except FileNotFoundError:
        return []


def make_folder(folder: Path, stop: Path) -> None:
    if folder != stop and not folder.parent.is_dir():
        make_folder(folder.parent, stop)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
