"""The prompt a client offers to its user: what an agent needs on starting.

A turn has little time, set for hosts whose user waits for every answer; a user who chose a prompt can wait longer. So
what was late is asked for once more, by when what was slow the first time is often ready, and what it is going to be
about is looked for by `recall`, which nobody hurries, where the turn brings nothing to mind. What is missing after
that is told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from offbook.api.mcp import answer_text
from offbook.api.mcp.asking import CONTEXT_CHARS, Memory
from offbook.model.errors import NotFound, WrongShape

BEGINNING = "mcp:handover"
"""The session that asks where none is to be gone on with: nothing is ever said in it, so that all is told that a new
conversation opens with."""
NOTHING_YET = "Offbook remembers nothing of earlier conversations yet."
FIND_THE_REST = "memory_recall may find what is missing here."


class Argument(NamedTuple):
    name: str
    description: str


class Prompt(NamedTuple):
    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]


HANDOVER = Prompt(
    "handover",
    "Hand over",
    "What is remembered, for an agent that starts: what was going on, what was learnt, what matters now.",
    (
        Argument("about", "What it is going to be about; what is remembered of that is added."),
        Argument("sessionId", "A conversation to go on with; it is added, what is older summarised."),
    ),
)


async def handed_over(name: str, given: dict[str, str], memory: Memory) -> str:
    """The text of the prompt. What a turn is prepared with is passed on as it is: it says of itself what it is."""
    if name != HANDOVER.name:
        raise NotFound(f"there is no prompt {name!r}: use {HANDOVER.name}")
    known = {argument.name for argument in HANDOVER.arguments}
    if unknown := sorted(given.keys() - known):
        raise WrongShape(f"`{unknown[0]}` is not an argument of {name}: use {' and '.join(sorted(known))}")
    session_id, about = given.get("sessionId"), given.get("about", "")
    asking = session_id or BEGINNING
    turn = await _turn(asking, about, memory)
    missing = answer_text.missing(turn)
    sections = [turn.get("memory", ""), turn.get("recall", "")]
    if session_id:
        going_on = memory.owned({"sessionId": session_id, "maxChars": CONTEXT_CHARS})
        context = await memory.ask("getCompressedContext", going_on)
        sections.insert(1, await answer_text.format_context(context))
    # Late, or too short for a turn to search for.
    if about.strip() and not turn.get("entries") and (missing or not turn.get("recall")):
        found = await memory.ask("recall", memory.owned({"sessionId": asking, "query": about}))
        sections.append(answer_text.recalled(found) if found.get("entries") else "")
    shown = [*filter(None, sections)]
    if not shown:
        kept = (await memory.ask("status", memory.owned({}))).get("counts", {}).get("messages", 0)
        if not kept:
            return NOTHING_YET
        shown = [
            f"Nothing of earlier conversations is here. Offbook keeps {answer_text.counted(kept, 'message')} of them."
        ]
    is_all = any(sections) and not missing
    return "\n\n".join(shown if is_all else [*shown, *missing, FIND_THE_REST])


async def _turn(session_id: str, about: str, memory: Memory) -> dict[str, Any]:
    """The turn that misses least, of two where the first misses anything."""
    # A preview: the section of a turn stays the same until a swap, and a client that only asks for a prompt has none.
    asked = memory.owned({"sessionId": session_id, "prompt": about, "preview": True})
    first: dict[str, Any] = await memory.ask("prepareTurn", asked)
    if not answer_text.missing(first):
        return first
    return min(first, await memory.ask("prepareTurn", asked), key=_lack)


def _lack(turn: dict[str, Any]) -> tuple[bool, int]:
    # Not by the number of notes: one that says that the session was late stands for everything.
    return bool(answer_text.missing(turn)), -len(turn.get("memory", "")) - len(turn.get("recall", ""))
