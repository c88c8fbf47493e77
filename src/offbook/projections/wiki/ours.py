"""Which pages of a wiki are ours, and as we wrote them: they can go, and are made again from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from offbook.projections.wiki.files import INDEX, AgentFolder, read_text
from offbook.projections.wiki.lesson_page import Written, digest, lesson_file, read_page
from offbook.projections.wiki.own_fields import BrokenPage
from offbook.projections.wiki.state import WikiState, read_state
from offbook.projections.wiki.subject_page import read_own

WRITTEN_WITHIN_SECONDS = 60
"""A page is written shortly before or after what is noted of it. One that changed later, somebody changed."""


class _Named(msgspec.Struct, rename="camel"):
    agent_id: str


def our_pages(wiki: Path, states: Path) -> list[Path]:
    """Pages that nothing is noted of count as somebody's own, and so do lessons and fields that were edited, and pages
    that changed since the state was noted. An older change in a page that is never read back is not to be seen."""
    found = [page for path in sorted(states.glob("*.json")) for page in _of_agent(wiki, path)]
    newest = max((path.stat().st_mtime for path in states.glob("*.json")), default=0.0)
    return [*found, *([wiki / INDEX] if _is_untouched(wiki / INDEX, newest) else [])]


def _of_agent(wiki: Path, path: Path) -> Iterator[Path]:
    try:
        state = read_state(path, msgspec.json.decode(path.read_bytes(), type=_Named).agent_id)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if state is None:
        return
    noted_at, folder = path.stat().st_mtime, AgentFolder(wiki, state.agent_id)
    for page, is_ours in _named(state, folder):
        if _is_untouched(page, noted_at) and is_ours():
            yield page


def _named(state: WikiState, folder: AgentFolder) -> Iterator[tuple[Path, Callable[[], bool]]]:
    """By its name it is ours; by what it says it may not be."""
    for page in (folder.index, folder.lessons / INDEX, *(folder.logs / name for name in state.files())):
        yield page, lambda: True
    for name in folder.cold_there():
        yield folder.swap / name, lambda: True
    for lesson_id, known in state.lessons.items():
        page = folder.lessons / lesson_file(lesson_id)
        yield page, partial(_is_lesson, page, lesson_id, known)
    for page_id in state.subject_pages:
        page = folder.page_of_subject(page_id)
        yield page, partial(_is_subject, page, page_id)


def _is_lesson(path: Path, lesson_id: str, known: Sequence[Written]) -> bool:
    try:
        page = read_page(read_text(path) or "", lesson_id)
    except BrokenPage:
        return False
    return not page.own and Written(digest=digest(page.statement), status=page.status) in known


def _is_subject(page: Path, page_id: str) -> bool:
    try:
        return not read_own(read_text(page) or "", page_id)
    except BrokenPage:
        return False


def _is_untouched(page: Path, noted_at: float) -> bool:
    return page.is_file() and not page.is_symlink() and page.stat().st_mtime <= noted_at + WRITTEN_WITHIN_SECONDS
