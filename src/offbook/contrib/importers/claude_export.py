"""The data export of claude.ai: conversations.json, in which each message names its parent.

The shape is that of real exports of 2025 and 2026, as public parsers and a published JSON schema have it: `text` holds
placeholders where a message is more than text, so the blocks of `content` go before it; no message names its model; an
edited question or a reply asked for again is a second child of one parent, and no leaf is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready, by_time
from offbook.client.history.files import (
    bounded,
    decoded,
    dictionaries,
    dictionary,
    digest_of,
    ready,
    text_or_none,
    time_of,
    without_blanks,
)
from offbook.client.history.formats import FORMATS, Owner
from offbook.contrib.importers.documents import Element, find_elements, heads

ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
ROOT = "00000000-0000-4000-8000-000000000000"
BRANCH = "a version that was edited or asked for again; the branch with the newest message is taken"
GIVE = FORMATS["claude"].give
NOT_TAKEN = {
    "users.json": ("lists of users", "they say who holds the account, not what was said"),
    "projects.json": (
        "lists of projects",
        "descriptions and documents, not conversations; import them as Markdown files",
    ),
    "memories.json": ("lists of memories", "Claude made them from the conversations; Offbook makes its own"),
}
_Alike = dict[str, list[str]]
"""Conversations without ids that begin alike: by their keys the digests of what is said in them."""
_KEPT_FIELDS = ("type", "text", "thinking", "id", "name", "input", "tool_use_id", "content", "is_error")


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    elements, others = find_elements(path, report, give=GIVE)
    for name in others:
        report.leave(*NOT_TAKEN.get(name, ("other files of the export", "only conversations are taken from it")))
    taken: dict[str, tuple[datetime | None, Conversation]] = {}
    unnamed: dict[str, _Alike] = {}
    for element, head in heads(path, elements, field="chat_messages", kind=list, report=report, give=GIVE):
        if not head["chat_messages"]:
            report.leave("empty conversations", "nothing is said in them")
            continue
        key = _key(head, unnamed)
        if key is None:
            continue
        reading = partial(_messages, element, key, report)
        conversation = Conversation(owner(key), key, memoryview(element.raw).nbytes, reading)
        begun_at = time_of(head.get("created_at"))
        report.note_time(head.get("created_at"), begun_at)
        taken[key] = (begun_at, conversation)
    return by_time(taken.values())


def _key(head: dict[str, Any], unnamed: dict[str, _Alike]) -> str | None:
    """By its id. Where neither it nor a message has one, by when and how it begins: the next export may hold more of
    it. Else by all that is said: so were those always known whose messages have ids. None where one that is taken
    already says all of it."""
    named, said = text_or_none(head.get("uuid")), head["chat_messages"]
    has_ids = any(text_or_none(each.get("uuid")) for each in dictionaries(said))
    whole = bounded(f"claude:{named or digest_of(*map(str, said))}")
    if named is not None or has_ids or not head.get("created_at"):
        return whole
    begun = f"claude:{digest_of(str(head['created_at']), str(said[0]))}"
    alike = unnamed.setdefault(begun, {})
    digests = [digest_of(str(each)) for each in said]
    same = next((key for key, taken in alike.items() if _goes_on(taken, digests)), None)
    if same is not None and len(alike[same]) > len(digests):
        return None
    key = same or (whole if alike else begun)  # two may begin alike
    alike[key] = digests
    return key


def _goes_on(one: list[str], other: list[str]) -> bool:
    """Whether one is the other, or the beginning of it: two exports of one conversation."""
    return all(mine == theirs for mine, theirs in zip(one, other, strict=False))


def _messages(element: Element, key: str, report: ImportReport, damaged: Damaged) -> Iterator[Ready]:
    whole = dictionary(decoded(element.raw))
    said = dictionaries(whole["chat_messages"])
    for _ in range(len(whole["chat_messages"]) - len(said)):
        damaged(Damage(element.where, "a message that is no object"))
    shown = _shown(said, text_or_none(whole.get("current_leaf_message_uuid")))
    if len(shown) < len(said):
        report.leave("messages on other branches", BRANCH, len(said) - len(shown))
    if text_or_none(whole.get("summary")):
        report.leave("summaries of conversations", "Offbook makes its own from the messages")
    first = {"title": text_or_none(whole.get("name"))}
    at = time_of(whole.get("created_at"))
    for number, message in enumerate(shown, 1):
        said_at = time_of(message.get("created_at"))
        report.note_time(message.get("created_at"), said_at)
        at = said_at or at
        message_id = text_or_none(message.get("uuid")) or digest_of(key, str(number))
        where = f"{element.where} message {message_id}"
        role = ROLES.get(str(message.get("sender")))
        if role is None:
            damaged(Damage(where, f"its sender is {message.get('sender')!r}"))
            continue
        for one in _messages_in(message_id, role, message, at, where, first, report):
            yield one
            first = {}


def _messages_in(
    message_id: str,
    role: str,
    message: dict[str, Any],
    at: datetime | None,
    where: str,
    first: dict[str, Any],
    report: ImportReport,
) -> Iterator[Ready]:
    """The message, and after it each text that was attached to it: whoever hands over a document does not say it."""
    content = _content(message, report)
    attachments = [
        each for each in dictionaries(message.get("attachments")) if text_or_none(each.get("extracted_content"))
    ]
    files = [name for each in dictionaries(message.get("files")) if (name := text_or_none(each.get("file_name")))]
    if files:
        report.leave("files", "the export names them and does not hold them", len(files))
    if content:
        yield ready(message_id, role, content, at=at, where=where, meta=first | {"files": files})
    elif not attachments:
        report.leave("empty messages", "nothing is said in them")
    for number, each in enumerate(attachments):
        name = text_or_none(each.get("file_name")) or "pasted text"
        yield ready(
            f"{message_id}:attachment:{number}",
            role,
            each["extracted_content"],
            at=at,
            where=f"{where} attachment {number}",
            labels={"origin": f"file:{name}"},
            meta=(first if not content and number == 0 else {}) | {"attachedTo": message_id, "fileName": name},
        )


def _content(message: dict[str, Any], report: ImportReport) -> str | list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for block in dictionaries(message.get("content")):
        kind = block.get("type")
        if kind in ("text", "thinking", "tool_use", "tool_result"):
            blocks.append({name: block[name] for name in _KEPT_FIELDS if block.get(name) is not None})
        else:
            report.leave(f"blocks of kind {str(kind)[:60]}", "bookkeeping of claude.ai")
    return without_blanks(blocks) or text_or_none(message.get("text")) or ""


def _shown(said: list[dict[str, Any]], leaf: str | None) -> list[dict[str, Any]]:
    """From the root to the leaf. All of them, in their order, where the way up is not whole, as in older exports."""
    by_id = {each["uuid"]: each for each in said if isinstance(each.get("uuid"), str)}
    if len(by_id) < len(said):
        return said
    if leaf not in by_id:
        newest = [(str(each.get("created_at") or ""), number) for number, each in enumerate(said)]
        leaf = said[max(newest)[1]]["uuid"] if newest else None
    path: dict[str, dict[str, Any]] = {}
    step: Any = leaf
    while isinstance(step, str) and step in by_id and step not in path:
        path[step] = by_id[step]
        step = by_id[step].get("parent_message_uuid")
    return list(reversed(path.values())) if step == ROOT else said
