"""`offbook anchors`: what must not be lost from sight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from offbook.cli.verb_command import verb_command

if TYPE_CHECKING:
    from offbook.model.turn import AnchorList

EPILOG = """\b
Examples:
  offbook anchors
  offbook anchors researcher
  offbook anchors --session chat
  offbook anchors --json | jq -r '.anchors[] | select(.kind == "tension") | .text'

\b
identity       who they are
contradiction  what does not fit with what was said before
tension        what is unresolved

\b
How long one is fresh, and how many are kept: `offbook config`, anchors.
"""


@verb_command("anchors", epilog=EPILOG, positional=["agent_id"])
def command(found: AnchorList, *, session_id: str | None, **_: Any) -> None:
    """Show what an agent must not lose from sight: who they are, what does not fit together, what is unresolved."""
    from offbook.cli.continuity import show_anchors, tell_none

    if found.anchors:
        show_anchors(found.anchors)
    else:
        tell_none("anchors", session_id)
