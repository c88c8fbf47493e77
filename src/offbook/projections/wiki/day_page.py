"""What was said on a day, by session, as a page: each message under a heading that a link can lead to.

The headings have nothing but small letters, digits and hyphens, so the heading is its own anchor, on Git hosts as in
Obsidian.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from offbook.model.content import render
from offbook.model.home import safe_name
from offbook.model.receipt import FORGOTTEN, FORGOTTEN_TEXT
from offbook.model.types import LoggedMessage, Message, Value
from offbook.projections.wiki.markdown import clean, fenced, front_matter, link, one_line, yaml_value
from offbook.search.words import place_named

LARGEST_INLINE_BYTES = 65_536
"""Of a text that lies outside the log; a larger one is referred to."""
MOST_MESSAGES_OF_A_PAGE = 2000
MOST_BYTES_OF_A_PAGE = 1_000_000
"""About; editors stay quick with that."""
HEAD_BYTES = 100
"""Of what stands around a text, about."""
LONGEST_NAME_CHARS = 200
UNREADABLE_TEXT = "[cannot be read: `offbook doctor` tells of it]"


class LargePart(Value, frozen=True):
    """A text or a file that is not in the page."""

    chars: int
    bytes: int
    is_binary: bool = False


class Shown(Value, frozen=True):
    """A message as pages show it."""

    session: int
    """The store's number of it."""
    session_id: str
    seq: int
    role: str
    text: str
    at: datetime | None = None
    """None where it cannot be read."""
    name: str | None = None
    id: str | None = None
    """The host's."""
    noise: str | None = None
    large: list[LargePart] = msgspec.field(default_factory=list)


# ── names ─────────────────────────────────────────────────────────────────────────────────────


def anchor(session: int, seq: int) -> str:
    return f"s{session}-{seq}"


def log_file(agent_id: str, day: str, part: int) -> str:
    """The first part of a day has no number."""
    return f"session-{safe_name(agent_id)}-{day}{f'-{part}' if part > 1 else ''}.md"


def is_log_file(agent_id: str, name: str) -> bool:
    """Whether we gave that name."""
    pattern = rf"session-{re.escape(safe_name(agent_id))}-\d{{4}}-\d\d-\d\d(?:-\d+)?\.md"
    return re.fullmatch(pattern, name) is not None


def said_at(logged: LoggedMessage) -> datetime:
    """When it was said, as far as is known: in UTC."""
    return (logged.message.ts or logged.received_at).astimezone(UTC)


def day_of(logged: LoggedMessage) -> str:
    return said_at(logged).date().isoformat()


# ── messages ──────────────────────────────────────────────────────────────────────────────────


def shown(session: int, session_id: str, logged: LoggedMessage, whole: Message | None = None) -> Shown:
    """`whole` is the message with those of its large texts that are small enough. Of one that was forgotten nothing is
    shown but its place."""
    message = logged.message
    place = {"session": session, "session_id": session_id, "seq": logged.seq, "at": said_at(logged)}
    if logged.entry.noise == FORGOTTEN:
        return Shown(**place, role=message.role, text=FORGOTTEN_TEXT, noise=FORGOTTEN)  # type: ignore[arg-type]
    large = [
        LargePart(chars=ref.chars, bytes=ref.bytes, is_binary=ref.is_binary)
        for ref in logged.entry.blobs
        if ref.is_binary or ref.bytes > LARGEST_INLINE_BYTES
    ]
    return Shown(
        **place,  # type: ignore[arg-type]
        role=message.role,
        text=render(whole or message),
        name=message.name,
        id=message.id,
        noise=logged.entry.noise,
        large=large,
    )


def page_bytes(logged: LoggedMessage) -> int:
    """How much of a page it takes, about."""
    inline = sum(ref.bytes for ref in logged.entry.blobs if not ref.is_binary and ref.bytes <= LARGEST_INLINE_BYTES)
    return HEAD_BYTES + len(render(logged.message).encode("utf-8", "replace")) + inline


def block_of(agent_id: str, message: Shown) -> str:
    """The text in a fence, and where the rest of it is."""
    return "\n\n".join([fenced(message.text), *_outside(agent_id, message)])


def _outside(agent_id: str, message: Shown) -> Iterator[str]:
    if not message.large:
        return
    parts = [f"{part.bytes:,} bytes" if part.is_binary else f"{part.chars:,} characters" for part in message.large]
    yield f"Not in this page: {', '.join(parts)}. The whole message:"
    named = f"--agent {shlex.quote(agent_id)} --session {shlex.quote(message.session_id)}"
    yield fenced(f"offbook expand {named} --from {message.seq} --json", "sh")


def _message(agent_id: str, message: Shown) -> str:
    facts = [f"**{message.role}**"]
    if message.name:
        facts.append(one_line(message.name, LONGEST_NAME_CHARS))
    if message.at is not None:
        facts.append(f"{message.at:%Y-%m-%d %H:%M:%S} UTC")
    if message.noise and message.noise != FORGOTTEN:
        facts.append(f"noise: {one_line(message.noise, LONGEST_NAME_CHARS)}")
    head = f"### {anchor(message.session, message.seq)}\n\n{' · '.join(facts)}"
    return f"{head}\n\n{block_of(agent_id, message)}\n"


# ── pages ─────────────────────────────────────────────────────────────────────────────────────


def day_page(
    agent_id: str, day: str, part: int, messages: Sequence[Shown], titles: Mapping[int, str] | None = None
) -> str:
    """The messages by session, in the order they were written there. Nothing here changes but with them, and with what
    the sessions are called, by their numbers."""
    fields = {"agent": yaml_value(clean(agent_id)), "date": day} | ({"part": str(part)} if part > 1 else {})
    title = f"# {one_line(agent_id, LONGEST_NAME_CHARS)}, {day}{f', part {part}' if part > 1 else ''}\n"
    ways = [link("Index", "../../index.md")]
    if part > 1:
        ways.append(link("Before", log_file(agent_id, day, part - 1)))
    blocks = [front_matter(fields), title, " · ".join(ways) + "\n", *_sessions(agent_id, messages, titles or {})]
    return "\n".join(blocks)


def _sessions(agent_id: str, messages: Iterable[Shown], titles: Mapping[int, str]) -> Iterator[str]:
    session = None
    for message in sorted(messages, key=lambda each: (each.session, each.seq)):
        if message.session != session:
            session = message.session
            title = f": {one_line(found, LONGEST_NAME_CHARS)}" if (found := titles.get(session)) else ""
            yield f"## Session {one_line(message.session_id, LONGEST_NAME_CHARS)}{title}\n"
        yield _message(agent_id, message)


# ── A message that has gone cold, as a page of its own: what is known of it, then what was sai ──


def cold_file(entry_id: str) -> str:
    return f"{entry_id}.md"


def is_cold_file(name: str) -> bool:
    """Whether we gave that name."""
    return name.endswith(".md") and place_named(name.removesuffix(".md")) is not None


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
