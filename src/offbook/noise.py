"""PLACEHOLDER until the real module lands; overwrite me."""
from offbook.types import Message


def noise_kind(message: Message) -> str | None: return None
