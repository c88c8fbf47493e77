"""`offbook topics`: what they keep returning to, what is fresh, what they have left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from offbook.cli.verb_command import verb_command

if TYPE_CHECKING:
    from offbook.model.turn import TopicList

EPILOG = """\b
Examples:
  offbook topics
  offbook topics researcher
  offbook topics --session chat
  offbook topics --json | jq -r '.topics[] | select(.isFixated) | .label'

\b
● marks what they keep returning to. `lately` counts the turns of the window
that speak of it, `ever` all that did; freshness is full in the turn that
speaks of it, and less with each that does not.
`offbook config` has the window and what makes a return: topicTracking.
"""


@verb_command("topics", epilog=EPILOG, positional=["agent_id"])
def command(found: TopicList, *, session_id: str | None, **_: Any) -> None:
    """Show what an agent and its people talk about: what they keep returning to, what is fresh, what has gone stale."""
    from offbook.cli.continuity import show_topics, tell_none

    if found.topics:
        show_topics(found.topics)
    else:
        tell_none("topics", session_id)
