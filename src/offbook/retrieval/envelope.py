"""What a host, a channel or a reply wraps around the words of a message. Stripped from queries, never from the log."""

from __future__ import annotations

import re

LONGEST_WHOLE_FENCE_CHARS = 400
FENCE_HEAD_CHARS = 200
FENCE_TAIL_CHARS = 100
MOST_HEADERS = 8

# `[Telegram Ada id:123 2026-01-02 10:00]`, `[Tue 2026-01-02 10:00 UTC]`, `[message_id: 7]`, `[from: Ada]`: something in
# brackets that holds a date, a time, an id or the name of a channel.
_HEADER = re.compile(
    r"\s*\[(?:(?:telegram|discord|slack|whatsapp|signal|imessage|matrix|teams|e-?mail|sms|irc|line|wechat|feishu|lark|"
    r"google\s*chat|mattermost|webchat)\b|[^\]\n]{0,160}?(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\bid:|message_id|"
    r"\b(?:from|to|reply_to|chat|thread|channel|replying\s+to)\s*:))[^\]\n]{0,200}\][ \t]*:?",
    re.IGNORECASE,
)
_ID_LINE = re.compile(
    r"^[ \t]*\[(?:message_id|reply_to|thread_id|chat_id|media attached)[^\]\n]{0,200}\][ \t]*$", re.M | re.I
)
_SYSTEM_LINE = re.compile(r"^[ \t]*system:[ \t]*\[[^\]\n]{1,80}\][ \t]*", re.M | re.I)
_WHOLE_SYSTEM_LINE = re.compile(r"^[ \t]*system:[ \t]*\[[^\]\n]{1,80}\][^\n]*$", re.M | re.I)
_HOST_BLOCK = re.compile(
    r"<(system-reminder|system_reminder|relevant-memories|relevant_memories|environment_details|environment_context|"
    r"recalled-memory|memory-context)\b[^<>]{0,200}>.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"(?:</|(?<!\w)<)[A-Za-z][\w:.-]{0,40}(?:\s[^<>\n]{0,300})?/?>")
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*$", re.M)
_FENCE = re.compile(r"```[^`]*(?:`{1,2}(?!`)[^`]*)*```")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def unwrapped(text: str) -> str:
    """The words of a message without what is wrapped around them. What is nothing but wrapping stays as it is."""
    said = text
    if "```" in said:
        said = _FENCE.sub(lambda fence: _short(fence[0]), said)
    if "<" in said:
        said = _or_as_it_was(_TAG.sub(" ", _HOST_BLOCK.sub(" ", said)), said)
    if "[" in said:
        said = _without_headers(said)
    if ">" in said:
        said = _or_as_it_was(_QUOTED_LINE.sub("", said), said)
    return _BLANK_LINES.sub("\n", said).strip() or text.strip()


def _without_headers(said: str) -> str:
    said = _ID_LINE.sub("", said)
    said = _or_as_it_was(_WHOLE_SYSTEM_LINE.sub("", said), _SYSTEM_LINE.sub("", said))
    at = 0
    for _ in range(MOST_HEADERS):
        header = _HEADER.match(said, at)
        if header is None:
            break
        at = header.end()
    return _or_as_it_was(said[at:], said)


def _short(fence: str) -> str:
    if len(fence) <= LONGEST_WHOLE_FENCE_CHARS:
        return fence
    return f"{fence[:FENCE_HEAD_CHARS]}\n…\n{fence[-FENCE_TAIL_CHARS:]}"


def _or_as_it_was(said: str, before: str) -> str:
    return said if said.strip() else before
