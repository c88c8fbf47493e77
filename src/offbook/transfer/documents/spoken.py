"""What of a message goes into a format that holds texts of users and assistants, and nothing else."""

from __future__ import annotations

from collections import Counter
from uuid import UUID, uuid5

from offbook.client.history.conversations import LeftOut
from offbook.model.content import FILE_TYPES, IMAGE_TYPES, REASONING_TYPES, block_text, is_call, is_result, text_of
from offbook.model.receipt import FORGOTTEN
from offbook.model.types import Block
from offbook.transfer.documents.summaries_folder_reader import ORIGIN
from offbook.transfer.provider_export import ExportedMessage

NO_PLACE = "the format has no place for them"
_NAMESPACE = UUID("6f1c2f0e-5a0b-5c6e-9d0b-0ff0b00c0001")
"""Of the ids of messages that have none; another one would give all of them other ids."""


class LeftOutCounts:
    """What is not written, counted by kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def leave(self, what: str, why: str = NO_PLACE, count: int = 1) -> None:
        self._counts[what, why] += count

    def described(self) -> list[LeftOut]:
        return [LeftOut(what=what, why=why, count=count) for (what, why), count in sorted(self._counts.items())]


def spoken(exported: ExportedMessage, leaving: LeftOutCounts, *, has_pins: bool = False) -> str | None:
    """The text of a message that is written; None for one that is not. What goes with it is counted as left.
    `has_pins`: the format says what is pinned."""
    message = exported.message
    if exported.noise == FORGOTTEN:
        leaving.leave("forgotten messages", "nothing is left of what they said")
        return None
    if message.origin == ORIGIN:
        leaving.leave("imported summaries", "nobody said them: `--format summaries` writes them back")
        return None
    if message.role not in ("user", "assistant"):
        leaving.leave(f"messages of role {message.role}")
        return None
    blocks = [] if isinstance(message.content, str) else message.content
    parts = [kind for block in blocks if (kind := _kind(block)) is not None]
    for kind in parts:
        leaving.leave(kind)
    text = text_of(message.content)
    if not text:
        if not parts:
            leaving.leave("messages without text", "there is nothing in them")
        return None
    if exported.pinned and not has_pins:
        leaving.leave("pins")
    if message.name or message.model or message.origin or message.meta or message.tool_call_id:
        leaving.leave("details of messages (name, model, origin, meta)")
    return text


def _kind(block: Block) -> str | None:
    """What a block is that is no text."""
    if block_text(block) is not None:
        return None
    if is_call(block):
        return "tool calls"
    if is_result(block):
        return "tool results"
    kind = block.get("type")
    if isinstance(kind, str) and kind in IMAGE_TYPES | FILE_TYPES:
        return "images and files"
    return "thoughts" if isinstance(kind, str) and kind in REASONING_TYPES else "other parts of messages"


def id_of(agent_id: str, exported: ExportedMessage) -> str:
    """The message's own id, else one that is the same each time."""
    if exported.message.id is not None:
        return exported.message.id
    return str(uuid5(_NAMESPACE, f"{len(agent_id)}:{agent_id}:{exported.seq}:{exported.session_id}"))
