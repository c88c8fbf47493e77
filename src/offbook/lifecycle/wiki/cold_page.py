"""A message that has gone cold, as a page of its own: what is known of it, then what was said (A10)."""

from __future__ import annotations

import re

from offbook.lifecycle.wiki.escaping import front_matter, link, yaml_value
from offbook.lifecycle.wiki.session_log import Shown, anchor, block_of

_COLD_FILE = re.compile(r"m[1-9a-f][0-9a-f]{0,15}\.md")


def cold_file(entry_id: str) -> str:
    return f"{entry_id}.md"


def is_cold_file(name: str) -> bool:
    """Whether we gave that name."""
    return _COLD_FILE.fullmatch(name) is not None


def cold_page(agent_id: str, entry_id: str, message: Shown, log_file: str) -> str:
    """`entry_id` is what recall calls it, `log_file` the page of the day that holds it."""
    path, place = f"../session-logs/{log_file}", anchor(message.session, message.seq)
    fields = {
        "id": entry_id,
        "role": yaml_value(message.role),
        "session": yaml_value(message.session_id),
        "seq": str(message.seq),
        "ts": f"{message.at:%Y-%m-%dT%H:%M:%SZ}" if message.at else "",
        "name": yaml_value(message.name) if message.name else "",
        "messageId": yaml_value(message.id) if message.id else "",
        "noise": yaml_value(message.noise) if message.noise else "",
        "logRef": yaml_value(f"{path}#{place}"),
    }
    known = front_matter({name: value for name, value in fields.items() if value})
    return f"{known}\n{block_of(agent_id, message)}\n\n{link('In its session log', path, place)}\n"
