"""Large strings of a message, moved out of its content and put back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from offbook.model.content import (
    BEGINNING_CHARS,
    LOST_PART,
    Path,
    decoded_bytes,
    is_binary_path,
    media_type_of,
    replace,
    strings,
)
from offbook.model.sentences import ends
from offbook.model.types import BlobRef, Content


def externalise(
    content: Content, over_chars: int, binary_over_chars: int = 2048
) -> tuple[Content, list[tuple[BlobRef, bytes]]]:
    """Move every longer string out; a stand-in that says so stays. Undone by `internalise`."""
    moved: list[tuple[BlobRef, bytes]] = []
    stand_ins: dict[Path, str] = {}
    for path, text in strings(content):
        if len(text) <= min(over_chars, binary_over_chars):
            continue
        is_binary = is_binary_path(content, path)
        if len(text) <= (binary_over_chars if is_binary else over_chars):
            continue
        data = text.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).hexdigest()
        reference = BlobRef(path=list(path), sha256=digest, chars=len(text), bytes=len(data), is_binary=is_binary)
        moved.append((reference, data))
        stand_ins[path] = _binary_stand_in(text, digest) if is_binary else _text_stand_in(text, digest)
    return (replace(content, stand_ins) if moved else content), moved


def internalise(content: Content, refs: list[BlobRef], data_by_sha256: Mapping[str, bytes]) -> Content:
    """Put back what `externalise` moved out. Where the data is not given, the stand-in stays."""
    texts = {
        tuple(ref.path): data_by_sha256[ref.sha256].decode("utf-8", "surrogatepass")
        for ref in refs
        if ref.sha256 in data_by_sha256
    }
    restored: Content = replace(content, texts) if texts else content
    return restored


def told_lost(content: Content, lost: Sequence[BlobRef]) -> Content:
    """The stand-ins of what cannot be read back say so."""
    paths = {tuple(ref.path) for ref in lost}
    told = {path: text.replace("…]", f"…{LOST_PART}]", 1) for path, text in strings(content) if path in paths}
    without: Content = replace(content, told) if told else content
    return without


def beginning(text: str, max_chars: int) -> str:
    """The first characters of a text, ending at a sentence, else at a word, if one ends in the second half."""
    if len(text) <= max_chars:
        return text
    head = text[:max_chars]
    last = max((end for end in ends(text[: max_chars + 1]) if end <= max_chars), default=0)
    if last > max_chars // 2:
        return head[:last].rstrip()
    words, *cut_word = head.rsplit(None, 1) or [head]
    return (words if cut_word and len(words) > max_chars // 2 else head).rstrip()


def _text_stand_in(text: str, digest: str) -> str:
    shown = beginning(text, BEGINNING_CHARS)
    return f"[{len(text):,} characters kept outside the log, sha256 {digest[:12]}…] The beginning: {shown}"


def _binary_stand_in(text: str, digest: str) -> str:
    media_type = media_type_of(text)
    label = f"{media_type}, " if media_type else ""
    return f"[{label}{decoded_bytes(text):,} bytes kept outside the log, sha256 {digest[:12]}…]"
