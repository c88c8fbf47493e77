"""What the writers of a trial send: told by a seed, so that the log can be compared with it afterwards."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

from benchmarks.exchange import request
from benchmarks.texts import KILOBYTE, LARGE_CHARS, text
from offbook.model.types import Scope

Kind = Literal["single", "batch", "large", "large batch"]
KINDS: tuple[Kind, ...] = ("single", "batch", "large", "large batch")
LARGEST_BATCH = 40
_FILLER = text("trial", LARGE_CHARS)


class Planned(NamedTuple):
    """One request of one writer. Ordinals count what that writer sends, for the capture claim."""

    writer: str
    scope: Scope
    kind: Kind
    ids: tuple[str, ...]
    chars: int
    last_ordinal: int

    @property
    def name(self) -> str:
        return f"{self.kind} of {self.writer} ({self.ids[0]} to {self.ids[-1]})"

    def bytes(self) -> bytes:
        messages = [{"id": id_, "role": "user", "content": content_of(id_, self.chars)} for id_ in self.ids]
        owner = {"sessionId": self.scope.session_id, "agentId": self.scope.agent_id}
        given = {"message": messages[0]} if self.kind in ("single", "large") else {"messages": messages}
        first = self.last_ordinal - len(self.ids) + 1
        claim = f"client={self.writer}; first={first}; last={self.last_ordinal}; sent={self.last_ordinal}"
        return request("onMessage", {**owner, **given}, headers=f"offbook-capture: {claim}\r\n")


class Acknowledgement(NamedTuple):
    planned: Planned
    accepted: int
    duplicates: int
    first_seq: int
    last_seq: int


def content_of(id_: str, chars: int) -> str:
    return f"{id_} {_FILLER[: chars - len(id_) - 1]}"


class Planner:
    """Makes one writer's requests, of the `kinds` that are wanted just now."""

    def __init__(self, writer: str, scope: Scope, *, seed: int, repeated_share: float = 0.0) -> None:
        self.writer = writer
        self.scope = scope
        self.kinds: tuple[Kind, ...] = KINDS
        self._chance = random.Random(f"{seed} {writer}")
        self._repeated_share = repeated_share
        self._messages = 0
        self._ordinals = 0
        self._small_ids: list[str] = []

    def next(self) -> Planned:
        kind = self._chance.choice(self.kinds)
        size = {"batch": self._chance.randint(2, LARGEST_BATCH), "large batch": 3}.get(kind, 1)
        chars = LARGE_CHARS if kind.startswith("large") else KILOBYTE
        ids = [*self._repeated(kind, size), *(self._new_id(kind) for _ in range(size))]
        self._ordinals += len(ids)
        return Planned(self.writer, self.scope, kind, tuple(ids), chars, self._ordinals)

    def _new_id(self, kind: Kind) -> str:
        self._messages += 1
        id_ = f"{self.writer}-{self._messages:06}"
        if not kind.startswith("large"):
            self._small_ids.append(id_)
        return id_

    def _repeated(self, kind: Kind, size: int) -> list[str]:
        """Some a host sends again, in one batch with new ones: a retry after a lost answer, cut differently."""
        if kind != "batch" or self._chance.random() >= self._repeated_share:
            return []
        return self._small_ids[-size:]
