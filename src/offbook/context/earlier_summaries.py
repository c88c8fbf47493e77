"""Which of its earlier memories an agent is shown while it writes the next. Pure; no model, no store.

No stretch is shown at two levels. And what is shown only grows from one call to the next, for as long as possible,
because providers charge a tenth for a beginning that they have just read: finer memories stay until a whole step of
them has gathered, and then all of these give way at once to what merged them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from offbook.model.summary import Summary
from offbook.model.types import Value

USUAL_TARGET_TOKENS = 2_000
"""As the setting `summaryTargetTokens` is by default."""
OVER_TARGET = 1.1
"""Room is counted in memories of this times their target: by what they are meant to be and not by what they are, or
each of another size would change what is shown."""
LEVEL_SHARE = 0.7
"""Of the room that is left, what each level but the coarsest gets, the finest first (benchmarks/prompt_prefix.py)."""
KEPT_SHARE = 0.15
"""Of a level's room, what stays filled when the rest gives way: little, as what stays has to be read anew then."""
MERGED_AT_ONCE = 6
"""They are asked about where they stand, so at least as many stay; and they give way together."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Remembered(Value, frozen=True):
    """A summary as the model that writes the next one sees it."""

    id: str
    level: int
    text: str
    tokens: int
    order: int
    """Rises with the time at which it was made, over all levels."""
    sources: tuple[str, ...] = ()
    """Ids of the summaries that it merges."""

    @property
    def number(self) -> int:
        return _number(self.id)


class Window(NamedTuple):
    """Of a level, the newest `kept` are shown, and up to `step - 1` more."""

    kept: int
    step: int

    def hidden_through(self, newest: int) -> int:
        """The number of the last one that is not shown any more. It changes once in `step` memories."""
        return self.step * ((newest - self.kept) // self.step) if newest >= self.kept else 0


def remembered(summary: Summary) -> Remembered:
    return Remembered(
        id=summary.id,
        level=summary.draft.level,
        text=summary.draft.text,
        tokens=summary.draft.tokens,
        order=(summary.made_at - _EPOCH) // _MICROSECOND,
        sources=tuple(summary.draft.sources),
    )


def visible(
    memories: Sequence[Remembered],
    max_tokens: int,
    *,
    target_tokens: int = USUAL_TARGET_TOKENS,
    merging: Collection[str] = (),
) -> list[Remembered]:
    """What is shown, the coarsest first, the oldest first within a level: at most `max_tokens`, nothing twice.

    Where there is room for it, it stands for all that `memories` stand for; else the oldest of a level are left out.
    It goes by the numbers of the memories and not by how many are given, so who has thousands gives the newest 100 of
    each level and those that none merges. `merging` are ids that are shown as they are: they are to be merged now.
    """
    known = {memory.id: memory for memory in memories}
    room = int(max_tokens / (target_tokens * OVER_TARGET))
    settled = _given_way_to(_by_level(memories), room)
    given_way = {source for memory_id in settled for source in known[memory_id].sources}
    shown = [
        memory
        for memory in memories
        if memory.id not in given_way
        and (memory.id in settled or not any(source in known for source in memory.sources))
    ]
    shown = _with_whole(_without_oldest(shown, room), known, merging)
    return _fitting(coarse_first(shown), max_tokens, merging)


def coarse_first(memories: Iterable[Remembered]) -> list[Remembered]:
    return sorted(memories, key=lambda memory: (-memory.level, memory.number))


def _by_level(memories: Sequence[Remembered]) -> dict[int, list[Remembered]]:
    found: dict[int, list[Remembered]] = {}
    for memory in sorted(memories, key=lambda memory: memory.number):
        found.setdefault(memory.level, []).append(memory)
    return found


def _rooms(room: int, level: int) -> tuple[int, int]:
    """Of the room for so many memories, what the level gets, and what it and the finer ones leave."""
    own = 0
    for _ in range(level):
        own = round(room * LEVEL_SHARE)
        room -= own
    return own, room


def _window(room: int) -> Window:
    kept = max(1, min(max(MERGED_AT_ONCE, round(room * KEPT_SHARE)), room - MERGED_AT_ONCE + 1))
    return Window(kept, MERGED_AT_ONCE * max(1, (room - kept + 1) // MERGED_AT_ONCE))


def _given_way_to(levels: Mapping[int, Sequence[Remembered]], room: int) -> set[str]:
    """The memories whose sources have given way to them, whether they have given way themselves or not.

    What gives way is decided anew only when a memory of level 1 fills a step, from what there was at that moment:
    what is merged in between waits for the next.
    """
    finest = levels.get(1, ())
    window = _window(_rooms(room, 1)[0])
    hidden = window.hidden_through(finest[-1].number) if finest else 0
    filled_at = next((memory.order for memory in finest if memory.number >= hidden + window.kept), 0)
    settled: set[str] = set()
    unsettled = {memory.id for memory in finest if memory.number > hidden}
    for level in range(2, max(levels, default=0) + 1):
        made = [
            memory
            for memory in levels.get(level, ())
            if memory.order < filled_at
            and all(source not in unsettled and _number(source) <= hidden for source in memory.sources)
        ]
        settled.update(memory.id for memory in made)
        unsettled = {memory.id for memory in levels.get(level, ()) if memory.id not in settled}
        hidden = _window(_rooms(room, level)[0]).hidden_through(made[-1].number) if made else 0
    return settled


def _without_oldest(shown: Sequence[Remembered], room: int) -> list[Remembered]:
    """Nothing merges the coarsest, and where there is next to no room others wait long for what merges them: so those
    that are too many go, the oldest first, and in steps as well."""
    newest: dict[int, int] = {}
    for memory in shown:
        newest[memory.level] = max(memory.number, newest.get(memory.level, 0))
    top = max(newest, default=0)
    hidden: dict[int, int] = {}
    for level, number in newest.items():
        own, left = _rooms(room, level)
        window = _window(own)
        if level == top:
            hidden[level] = _leaving(own + left, number)
        elif own < window.kept + window.step - 1:
            hidden[level] = _leaving(own, number)
    return [memory for memory in shown if memory.number > hidden.get(memory.level, 0)]


def _leaving(room: int, newest: int) -> int:
    """The number of the last that goes where there is room for so many."""
    kept = max(1, room // 2)
    return Window(kept, room - kept + 1).hidden_through(newest) if room > 0 else newest


def _with_whole(
    shown: Sequence[Remembered], known: Mapping[str, Remembered], whole: Collection[str]
) -> list[Remembered]:
    """With these as they are, and without what they were made of and what was made of them."""
    if not whole:
        return list(shown)
    wanted = {memory_id for memory_id in whole if memory_id in known}
    below = _made_of(wanted, known)
    return [known[memory_id] for memory_id in wanted] + [
        memory
        for memory in shown
        if memory.id not in wanted and memory.id not in below and not wanted & _made_of({memory.id}, known)
    ]


def _made_of(ids: set[str], known: Mapping[str, Remembered]) -> set[str]:
    found: set[str] = set()
    waiting = [*ids]
    while waiting:
        memory = known.get(waiting.pop())
        fresh = [source for source in memory.sources if source not in found] if memory else []
        found.update(fresh)
        waiting += fresh
    return found


def _fitting(shown: Sequence[Remembered], max_tokens: int, whole: Collection[str]) -> list[Remembered]:
    """The last word on the budget, where memories that none merges are too many: the oldest go."""
    excess = sum(memory.tokens for memory in shown) - max_tokens
    kept = []
    for memory in shown:
        if excess > 0 and memory.id not in whole:
            excess -= memory.tokens
        else:
            kept.append(memory)
    return kept


def _number(memory_id: str) -> int:
    """`L2-0007` is the seventh of its level."""
    return int(memory_id.rpartition("-")[2])
