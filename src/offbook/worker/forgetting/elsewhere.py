"""Where else what was said lies: files beside the store that forgetting has to reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from offbook.model.receipt import ForgottenSpan, Residue
from offbook.worker.forgetting.meant import Meant
from offbook.worker.wiki.running import Wiki

Says = Callable[[str], bool]


class Wanted(NamedTuple):
    """What is to go, or should be gone."""

    spans: Sequence[ForgottenSpan]
    says: Says
    """Whether a text says any of it."""
    meant: Meant | None = None
    """How it was named, where that is still known; some of it may be there only."""
    lessons: Sequence[str] = ()


class Elsewhere(Protocol):
    """Files beside the store that hold what was said: pages, backups, outboxes."""

    name: str
    """The field of `Reached` that counts them."""
    folder: str | None
    """That of the data folder which it looks through by itself, line by line, knowing whose each is."""

    async def count(self, agent_id: str, wanted: Wanted) -> int: ...

    async def erase(self, agent_id: str, wanted: Wanted) -> int: ...

    def outside(self, agent_id: str) -> list[str]:
        """Where more of it may lie and cannot be reached."""

    async def search(self, agent_id: str, wanted: Wanted) -> list[Residue]:
        """What is left there, where a search of the data folder's files does not find it."""


class Pages:
    """Those of the wiki."""

    name = "pages"
    folder: str | None = None

    def __init__(self, wiki: Wiki) -> None:
        self._wiki = wiki

    async def count(self, agent_id: str, wanted: Wanted) -> int:
        if not _has_words(wanted):
            return 0
        pages = await self._wiki.pages_holding(agent_id, wanted.spans, wanted.lessons)
        return pages + await self._wiki.pages_saying(agent_id, wanted.says, beside=wanted.lessons)

    async def erase(self, agent_id: str, wanted: Wanted) -> int:
        """Pages of what is gone, and whatever else of it a person wrote into pages of lessons that stay."""
        if not _has_words(wanted):
            return 0
        is_held = wanted.spans or wanted.lessons
        pages = await self._wiki.forgotten(agent_id, wanted.spans, wanted.lessons) if is_held else 0
        return pages + await self._wiki.pages_saying(agent_id, wanted.says, is_removed=True)

    def outside(self, _agent_id: str) -> list[str]:
        return []

    async def search(self, _agent_id: str, _wanted: Wanted) -> list[Residue]:
        return []


def _has_words(wanted: Wanted) -> bool:
    """Also where no message says it."""
    return bool(wanted.spans or wanted.lessons or (wanted.meant is not None and wanted.meant.matching))
