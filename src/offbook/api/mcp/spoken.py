"""What was said word for word, as a model may read it: no more of a message than fits, and harmless.

A message of megabytes would fill the context of whoever asked for it, as text and as structure. The verb has no way to
go on within one message, so what was left out is counted, and the command that shows all of it is named.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from offbook.api.mcp.harmless import NAMES, harmless, harmless_json
from offbook.context.tail import SEPARATOR, shown
from offbook.model.content import render
from offbook.model.plain_names import is_plain_name
from offbook.model.types import Message

Json = dict[str, Any]

MESSAGE_CHARS = 20_000
"""Of one message, in the text and in the structure."""
ESSENTIAL = ("role", "content", "id", "ts")
"""Fields of a message that stay where the others are too large."""
_SAME_TO_EVERY_SHELL = "_.:@/+-"


class Spoken(NamedTuple):
    """A message, for whoever reads and for whoever computes."""

    text: str
    structure: Json


def spoken(line: Json, agent_id: str | None) -> Spoken:
    """A line of the log as `expand` gives it; `agent_id` is whose it is, where that was said."""
    message = line["message"]
    content = message["content"]
    all_of_it = render(Message(role=message["role"], content=content))
    said = harmless(all_of_it[:MESSAGE_CHARS])
    command = f"offbook expand --session {_word(line.get('sessionId'), 'SESSION')} --from {line['seq']}"
    command += f" --agent {_word(agent_id, 'AGENT')}" if agent_id is not None else ""

    head = f"#{line['seq']} {minute(message.get('ts') or line['receivedAt'])} {message['role']}:"
    lines = [head, *(f"> {each}" for each in said.splitlines() or [""])]
    if len(all_of_it) > MESSAGE_CHARS:
        more = len(all_of_it) - MESSAGE_CHARS
        lines.append(f"(… and {more:,} characters more. On the command line `{command}` shows all of it.)")

    kept = message if _chars(_without_content(message)) <= MESSAGE_CHARS else _essential(message)
    is_short = _chars(content) <= MESSAGE_CHARS
    shown_content = harmless_json(content) if is_short and not isinstance(content, str) else said
    structure = {
        **harmless_json({name: value for name, value in line.items() if name != "message"}, NAMES),
        "message": {**harmless_json(_without_content(kept)), "content": shown_content},
    }
    left_out = _chars(message) - _chars({**kept, "content": content if is_short else all_of_it[:MESSAGE_CHARS]})
    if left_out:
        structure["cut"] = {"characters": left_out, "whole": command}
    return Spoken("\n".join(lines), structure)


def conversation(answer: Json) -> str:
    """The text of a compressed context. Who speaks is written as we write it, and bracketed where a message only says
    so: that takes the messages, of which the text is made."""
    text = answer.get("text", "")
    texts: list[str] = []
    at = 0
    for each in answer.get("messages", []):
        try:
            message = msgspec.convert(each, Message)
        except msgspec.ValidationError:  # of a newer provider
            return harmless(text)
        whole, words = shown(message), render(message)
        if text.startswith(whole, at):
            texts.append(f"{_speaker(message)}: {harmless(words)}")
            at += len(whole)
        elif text.startswith(words, at):  # our own summary
            texts.append(harmless(words))
            at += len(words)
        else:
            return harmless(text)
        at += len(SEPARATOR)
    return SEPARATOR.join(texts) if at == len(text) + len(SEPARATOR) else harmless(text)


def minute(moment: str) -> str:
    """`2026-10-03 14:02 UTC` of an ISO time; the wire's times are UTC."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def _speaker(message: Message) -> str:
    name = " ".join(harmless(message.name or "").split())
    return f"{message.role} ({name})" if name else message.role


def _without_content(message: Json) -> Json:
    return {name: value for name, value in message.items() if name != "content"}


def _essential(message: Json) -> Json:
    return {name: message[name] for name in ESSENTIAL if name in message}


def _chars(value: Any) -> int:
    """How much there is to read in nested JSON; a number counts as one."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return len(value) + sum(map(_chars, value))
    if isinstance(value, dict):
        return sum(len(key) + _chars(each) for key, each in value.items())
    return 1


def _word(name: str | None, stand_in: str) -> str:
    """A name as a word of a command; what a shell could take for something else is not written out."""
    is_plain = name is not None and is_plain_name(name, also=_SAME_TO_EVERY_SHELL, first="_", most_chars=200)
    return name if name is not None and is_plain else stand_in
