"""How the site is laid out: as the repository is, so that every link holds in both.

`docs/how-to/forget.md` is `docs/how-to/forget.html` there, and the README is the first page. What lies outside `docs`
is published where a page links to it. The navigation is `docs/index.md`: one list, for readers of either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FIRST_PAGE = "README.md"
INDEX = "docs/index.md"
PUBLISHED = {".md", ".svg", ".json", ".css"}

_LINK = re.compile(r"\[([^]]*)]\(([^)\s]+)\)")
_BLOCK = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
_LIST_AFTER_LINE = re.compile(r"^(?![-*+] |[|#>\s]|\d+\. )(.+)\n(?=[-*+] |1\. )", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs["toc"]["slugify"] = anchor_of
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    repository = Path(config.config_file_path).parent
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for path in sorted(published(repository)):
        files.append(File.generated(config, path.relative_to(repository).as_posix(), abs_src_path=str(path)))
    config.nav = navigation((repository / INDEX).read_text(encoding="utf-8"))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """A list may follow a line of prose, as it may where the repository is read; Markdown's first rules want a gap."""
    parts = _BLOCK.split(markdown)  # prose, block, prose, …
    parts[::2] = [_LIST_AFTER_LINE.sub(r"\1\n\n", prose) for prose in parts[::2]]
    return "".join(parts)


def on_page_content(html: str, **_: object) -> str:
    """`a \\| b` in a table is an escaped bar, in code too; Markdown's own tables show the backslash there."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def published(repository: Path) -> set[Path]:
    """The README, `docs`, and whatever they lead to, however far."""
    docs = repository / "docs"
    waiting = [repository / FIRST_PAGE, *(path for path in docs.rglob("*") if path.suffix in PUBLISHED)]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        if path.suffix == ".md":
            waiting += (path.parent.joinpath(link).resolve() for link in _relative(path.read_text(encoding="utf-8")))
    return found


def navigation(index: str) -> list[dict[str, Any]]:
    """The pages that the index names, under its headings, by the words it names them with."""
    sections: dict[str, list[dict[str, str]]] = {}
    rows = sections.setdefault("", [])
    for line in _BLOCK.sub("", index).splitlines():
        if line.startswith("## "):
            rows = sections.setdefault(line.removeprefix("## ").strip(), [])
        rows += ({_plain(label): _from_docs(link)} for label, link in _LINK.findall(line) if link.endswith(".md"))
    before = sections.pop("")
    last = [{"Changelog": "CHANGELOG.md"}, {"For the next engineer": "AGENTS.md"}]
    return [
        {"Offbook": FIRST_PAGE},
        {"Documentation": INDEX},
        *before,
        *({title: pages} for title, pages in sections.items() if pages),
        {"The project": last},
    ]


def anchor_of(title: str, separator: str) -> str:
    """As the usual hosts of repositories make them, so that one link holds in both. (Markdown's own joins `a - b`.)"""
    kept = re.sub(r"[^\w\- ]", "", unicodedata.normalize("NFC", title).strip().lower())
    return kept.replace(" ", separator)


def _relative(text: str) -> Iterator[str]:
    links: Iterable[str] = (link for _, link in _LINK.findall(_BLOCK.sub("", text)))
    for link in links:
        path = link.partition("#")[0]
        if path and not re.match(r"[a-z]+:", path):
            yield path


def _plain(label: str) -> str:
    label = label.replace("`", "")
    return label[:1].upper() + label[1:]


def _from_docs(link: str) -> str:
    return link.removeprefix("../") if link.startswith("../") else f"docs/{link}"
