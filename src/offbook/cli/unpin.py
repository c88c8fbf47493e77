"""`offbook unpin`: let what was pinned age again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from offbook.cli.pin import selecting, tell
from offbook.cli.verb_command import verb_command

if TYPE_CHECKING:
    from offbook.model.memory_entry import Pinned

EPILOG = """\b
Examples:
  offbook unpin m100000001
  offbook unpin --keyword "wifi password"
  offbook unpin --session house-rules
"""


@verb_command("unpin", epilog=EPILOG, positional=["entry_ids"], asking=selecting)
def command(changed: Pinned, **_: Any) -> None:
    """Let pinned entries age again: those named, those that hold a keyword, those of a session."""
    tell(changed, "unpinned")
