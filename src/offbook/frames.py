"""PLACEHOLDER until the real module lands; overwrite me."""
from typing import Literal

from offbook.types import Message


def frame(text: str, *, kind: Literal["memory", "recall"], key: bytes) -> str: return text
def strip_message(message: Message, key: bytes) -> tuple[Message, int]: return message, 0
