"""Copies of what was said that are no projection of the log: backups, outboxes. Forgetting has to reach them, too."""

from __future__ import annotations

from typing import Protocol

from offbook.model.receipt import Residue
from offbook.projections.base import Erased, Removal


class ExternalCopy(Protocol):
    name: str
    """The field of `Reached` that counts them."""
    folder: str | None
    """That of the data folder which it looks through by itself, line by line, knowing whose each is."""

    async def forget(self, erased: Erased) -> Removal: ...

    def outside(self, agent_id: str) -> list[str]:
        """Where more of it may lie and cannot be reached."""

    async def search(self, erased: Erased) -> list[Residue]:
        """What is left there, where a search of the data folder's files does not find it."""
