"""The content of a message of ChatGPT, by its `content_type`, as text or as blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from offbook.portability.wires import dictionaries, text_or_none

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
