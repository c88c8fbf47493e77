"""ChatGPT's data export. Its conversations are trees: an edited question or a reply asked for again is a branch, and
`current_node` is the leaf of the branch that is shown.

The shape is that of real exports as several public parsers describe them (an analysis of 1,475 conversations of
December 2024 among them): most messages have no `create_time`, and exports since early 2026 hold several files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
)
from offbook.client.history.formats import FORMATS, Owner
from offbook.contrib.importers.documents import Element, find_elements, heads

# ── The content of a message of ChatGPT, by its `content_type`, as text or as blocks ──

Leave = Callable[..., None]

_SET_UP = frozenset({"user_editable_context", "model_editable_context"})
_MEDIA = {
    "image_asset_pointer": "pictures",
    "audio_asset_pointer": "recordings",
    "video_container_asset_pointer": "recordings",
    "real_time_user_audio_video_asset_pointer": "recordings",
}
WHY_NO_MEDIA = "only a reference stands in the conversation; what was said about it is taken"
WHY_NO_SET_UP = "custom instructions, which stand in every conversation anew; keep them in a Markdown file instead"


def content_of(content: dict[str, Any], leave: Leave) -> str | list[dict[str, Any]] | None:
    """None for what is left out, which `leave` is told; empty where nothing is said."""
    kind = content.get("content_type")
    if kind in _SET_UP:
        leave("custom instructions", WHY_NO_SET_UP)
        return None
    if kind == "reasoning_recap":
        leave("notes of how long ChatGPT thought", "they say nothing of what it thought")
        return None
    if kind == "thoughts":
        return _thoughts(content)
    if isinstance(content.get("parts"), list):
        return "\n".join(filter(None, (_part(part, leave) for part in content["parts"])))
    if kind == "tether_quote":
        return _lines(content, "title", "url", "text")
    if kind == "tether_browsing_display":
        return text_or_none(content.get("result")) or text_or_none(content.get("summary")) or ""
    if kind == "system_error":
        return _lines(content, "name", "text")
    text = _lines(content, "title", "url", "text") if kind == "sonic_webpage" else content.get("text")
    if text_or_none(text):
        return str(text)
    if kind not in ("text", "code", "execution_output", None):
        leave(f"contents of kind {str(kind)[:60]}", "there is no text in them")
        return None
    return ""


def _part(part: Any, leave: Leave) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    if text_or_none(part.get("text")):  # an audio transcription, and what newer exports wrap a text in
        return str(part["text"])
    kind = part.get("content_type")
    leave(_MEDIA.get(kind, "parts without a text") if isinstance(kind, str) else "parts without a text", WHY_NO_MEDIA)
    return ""


def _thoughts(content: dict[str, Any]) -> list[dict[str, Any]]:
    thoughts = [_lines(each, "summary", "content") for each in dictionaries(content.get("thoughts"))]
    return [{"type": "thinking", "thinking": thought} for thought in thoughts if thought]


def _lines(content: dict[str, Any], *names: str) -> str:
    return "\n".join(str(content[name]) for name in names if text_or_none(content.get(name)))


ROLES = frozenset({"user", "assistant", "system", "tool"})
BRANCH = "a version that was edited or asked for again; the branch that ChatGPT shows is taken"
HIDDEN = "ChatGPT hides it from the conversation: what it was set up with, or told itself"
GIVE = FORMATS["chatgpt"].give
NO_NODE = "not a message of ChatGPT: it is no object"
BESIDE = "only conversations are taken from the export"


class _Node(NamedTuple):
    parent: str | None
    message: dict[str, Any] | None


class _Tree(NamedTuple):
    title: str | None
    begun_at: datetime | None
    nodes: dict[str, _Node]
    current: str | None


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    elements, others = find_elements(path, report, give=GIVE)
    images = sum(bool(re.search(r"\.(?:png|jpe?g|webp|gif|dat|wav|mp4|pdf)$", name, re.IGNORECASE)) for name in others)
    if images:
        report.leave("pictures, recordings and files beside the conversations", BESIDE, images)
    if len(others) > images:
        report.leave("other files of the export", BESIDE, len(others) - images)
    taken: dict[str, tuple[datetime | None, Conversation]] = {}
    for element, head in heads(path, elements, field="mapping", kind=dict, report=report, give=GIVE):
        named = text_or_none(head.get("conversation_id")) or text_or_none(head.get("id"))
        key = bounded(f"chatgpt:{named or digest_of(*sorted(head['mapping']))}")
        size = memoryview(element.raw).nbytes
        reading = partial(_messages, element, report)
        begun_at = time_of(head.get("create_time"))
        report.note_time(head.get("create_time"), begun_at)
        taken[key] = (begun_at, Conversation(owner(key), key, size, reading))
    return by_time(taken.values())


def _messages(element: Element, report: ImportReport, damaged: Damaged) -> Iterator[Ready]:
    tree = _tree(
        dictionary(decoded(element.raw)), lambda name: damaged(Damage(f"{element.where} message {name}", NO_NODE))
    )
    path = _shown(tree)
    report_branches = sum(node.message is not None for node in tree.nodes.values()) - len(path)
    if report_branches > 0:
        report.leave("messages on other branches", BRANCH, report_branches)
    title, at = tree.title, tree.begun_at
    calls: set[str] = set()
    for node_id in path:
        node = tree.nodes[node_id]
        message = dictionary(node.message)
        where = f"{element.where} message {node_id}"
        said_at = time_of(message.get("create_time"))
        report.note_time(message.get("create_time"), said_at)
        at = said_at or at  # most have none: not before the one that they follow
        try:
            found = _wire(node_id, node, message, calls, report.leave)
        except (TypeError, ValueError) as error:
            damaged(Damage(where, f"not a message of ChatGPT: {error}"))
            continue
        if found is None:
            continue
        role, content, labels, meta = found
        yield ready(node_id, role, content, at=at, where=where, labels=labels, meta={"title": title} | meta)
        title = None


def _tree(conversation: dict[str, Any], no_node: Callable[[str], None]) -> _Tree:
    """`no_node` is told what stands in the place of a message and is none."""
    nodes: dict[str, _Node] = {}
    for name, node in conversation["mapping"].items():
        message = node.get("message") if isinstance(node, dict) else None
        if not isinstance(node, dict) or not isinstance(message, dict | None):
            no_node(name)
        if isinstance(node, dict):
            nodes[name] = _Node(text_or_none(node.get("parent")), message if isinstance(message, dict) else None)
    begun_at = time_of(conversation.get("create_time"))
    return _Tree(
        text_or_none(conversation.get("title")), begun_at, nodes, text_or_none(conversation.get("current_node"))
    )


def _shown(tree: _Tree) -> list[str]:
    """From the root to the leaf that is shown, those that hold a message. Where no leaf is named, the newest one."""
    leaf = tree.current if tree.current in tree.nodes else _newest_leaf(tree)
    path: dict[str, None] = {}
    while leaf is not None and leaf in tree.nodes and leaf not in path:  # a loop ends the way up
        path[leaf] = None
        leaf = tree.nodes[leaf].parent
    return [name for name in reversed(path) if tree.nodes[name].message is not None]


def _newest_leaf(tree: _Tree) -> str | None:
    parents = {node.parent for node in tree.nodes.values()}
    leaves = [name for name in tree.nodes if name not in parents]

    def said_at(name: str) -> float:
        at = time_of(dictionary(tree.nodes[name].message).get("create_time"))
        return at.timestamp() if at else 0.0

    return max(leaves, key=said_at, default=None)


_Found = tuple[str, str | list[dict[str, Any]], dict[str, Any], dict[str, Any]]


def _wire(node_id: str, node: _Node, message: dict[str, Any], calls: set[str], leave: Leave) -> _Found | None:
    author, metadata = dictionary(message.get("author")), dictionary(message.get("metadata"))
    role = author.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise ValueError(f"its author is {role!r}")
    if metadata.get("is_visually_hidden_from_conversation") is True:
        leave("hidden messages", HIDDEN)
        return None
    content = content_of(dictionary(message.get("content")), leave)
    if content is None:
        return None
    if not content:
        leave("empty messages", "nothing is said in them")
        return None
    labels: dict[str, Any] = {"model": metadata.get("model_slug") if role == "assistant" else None}
    recipient = text_or_none(message.get("recipient")) or "all"
    if role == "assistant" and recipient != "all" and isinstance(content, str):
        calls.add(node_id)
        content = [{"type": "tool-call", "id": node_id, "name": recipient, "arguments": content}]
    if role == "tool":
        labels |= {"name": author.get("name"), "toolCallId": node.parent if node.parent in calls else None}
    files = [each.get("name") for each in dictionaries(metadata.get("attachments"))]
    if files:
        leave("attached files", "the export holds them apart from what was said about them", len(files))
    return role, content, labels, {"attachments": [name for name in files if isinstance(name, str)]}
