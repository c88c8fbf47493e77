"""Pages as a reader of Markdown sees them: CommonMark, as Git hosts and Obsidian read it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---\n(?:.*\n)*?---\n")


class Read(NamedTuple):
    headings: list[str]
    links: list[str]
    fences: list[str]
    html: list[str]
    texts: list[str]
    blocks: list[str]


def read(page: str) -> Read:
    """What is in the page, below its front matter."""
    found = Read([], [], [], [], [], [])
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(_FRONT_MATTER.sub("", page))
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.nesting >= 0 and token.level == 0:
            found.blocks.append(token.type)
        if token.type == "fence":
            found.fences.append(token.content)
        elif token.type == "html_block":
            found.html.append(token.content)
        elif token.type == "inline":
            text = _inline(token, found)
            (found.headings if before is not None and before.type == "heading_open" else found.texts).append(text)
    return found


def _inline(token: Token, found: Read) -> str:
    text = ""
    for child in token.children or []:
        if child.type == "link_open":
            found.links.append(str(child.attrs["href"]))
        elif child.type in ("html_inline", "image"):
            found.html.append(child.content or child.type)
        elif child.type in ("softbreak", "hardbreak"):
            text += "\n"
        elif child.type not in ("link_close", "strong_open", "strong_close"):
            assert child.type in ("text", "text_special", "code_inline"), child.type
            text += child.content
    return text


def broken_links(wiki: Path) -> list[str]:
    """Every link of a wiki whose file or heading is not there."""
    pages = {path.resolve(): read(path.read_text()) for path in wiki.rglob("*.md") if path.is_file()}
    broken = []
    for path, page in pages.items():
        for href in page.links:
            target, _, anchor = href.partition("#")
            found = pages.get((path.parent / unquote(target)).resolve())
            if found is None or (anchor and anchor not in found.headings):
                broken.append(f"{path.relative_to(wiki.resolve())}: {href}")
    return broken
