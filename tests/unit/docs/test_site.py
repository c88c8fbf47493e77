"""The documentation as a site: it is built as `make site` builds it, and every link in it is followed."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from mkdocs.__main__ import cli

from tests.places import REPOSITORY

DOCS = REPOSITORY / "docs"


def loaded(path: Path) -> ModuleType:
    """The site's own module, which belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


layout = loaded(DOCS / "site" / "layout.py")


def build(folder: Path, site: Path) -> Result:
    """As `python -m mkdocs build --strict` in that folder."""
    with contextlib.chdir(folder):
        return CliRunner().invoke(cli, ["build", "--strict", "--site-dir", str(site)])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(REPOSITORY, folder)
    assert done.exit_code == 0, done.output
    return folder


class Read(HTMLParser):
    """What a page leads to, what it takes from elsewhere, and the places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.menu: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        self.links += (given[name] for name in ("href", "src", "srcset") if name in given)
        if tag != "a":
            self.fetched += (given[name] for name in ("href", "src", "srcset") if name in given)
        if tag == "a" and "reference internal" in given.get("class", ""):
            self.menu.append(given["href"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Read]:
    return {path: Read(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


# ── what was built ──


def test_every_link_and_anchor_of_the_site_leads_somewhere(site: Path, pages: dict[Path, Read]) -> None:
    assert len(pages) > 50
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            start = site if parts.path.startswith("/") else path.parent
            target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            where = pages[target].places if target in pages else set()
            if not target.is_relative_to(site) or not target.is_file():
                lost.append(f"{path.relative_to(site)}: {link}")
            elif parts.fragment and unquote(parts.fragment) not in where:
                lost.append(f"{path.relative_to(site)}: {link} has no such place")
    assert lost == []


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[Path, Read]) -> None:
    assert [link for page in pages.values() for link in page.fetched if urlsplit(link).netloc] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_page_of_the_documentation_is_in_the_navigation(site: Path, pages: dict[Path, Read]) -> None:
    first = site / "index.html"
    in_menu = {(site / link.partition("#")[0]).resolve() for link in pages[first].menu}
    written = {site / page.relative_to(REPOSITORY).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert len(written) > 50
    assert written <= in_menu


def test_the_openapi_document_is_served_as_it_is(site: Path) -> None:
    path = Path("docs/reference/openapi.json")
    assert (site / path).read_bytes() == (REPOSITORY / path).read_bytes()


def test_the_site_does_not_name_the_machine_it_was_built_on(site: Path) -> None:
    for path in site.rglob("*"):
        if path.suffix in {".html", ".json", ".xml", ".css"}:
            assert str(REPOSITORY) not in path.read_text(encoding="utf-8"), path


def test_a_list_after_a_line_of_prose_is_a_list(pages: dict[Path, Read]) -> None:
    for path in pages:
        text = re.sub(r"<pre>.*?</pre>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for paragraph in re.findall(r"<p>(.*?)</p>", text, re.DOTALL):
            assert not re.search(r"^(- |\| )", paragraph, re.MULTILINE), f"{path.name}: {paragraph}"


def test_a_bar_in_a_cell_is_shown_without_what_escapes_it(site: Path) -> None:
    cells = re.findall(r"<td\b.*?</td>", (site / "docs/reference/events.html").read_text(encoding="utf-8"), re.DOTALL)
    assert any("Ledger | None" in cell for cell in cells)
    assert not any("\\|" in cell for cell in cells)


# ── what must not be built ──


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[gone](how-to/gone.md)", "how-to/gone.md"),
        ("[no such place](tutorial.md#nowhere)", "#nowhere"),
        ("[outside](../nowhere.md)", "nowhere.md"),
        ("", "orphan.md"),
    ],
)
def test_a_broken_link_or_a_page_nobody_leads_to_is_refused(tmp_path: Path, line: str, told: str) -> None:
    site = tmp_path / "docs" / "site"
    site.mkdir(parents=True)
    for name in ("layout.py", "site.css"):
        (site / name).write_bytes((DOCS / "site" / name).read_bytes())
    for name in ("README.md", "AGENTS.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("# One\n\n[changes](CHANGELOG.md), [the house](AGENTS.md)\n", encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_bytes((REPOSITORY / "mkdocs.yml").read_bytes())
    (tmp_path / "docs" / "tutorial.md").write_text("# Tutorial\n", encoding="utf-8")
    index = tmp_path / "docs" / "index.md"
    index.write_text("# Documentation\n\n[tutorial](tutorial.md)\n", encoding="utf-8")
    sound = build(tmp_path, tmp_path / "out")
    assert sound.exit_code == 0, sound.output
    if line:
        index.write_text(f"# Documentation\n\n[tutorial](tutorial.md)\n\n{line}\n", encoding="utf-8")
    else:
        (tmp_path / "docs" / "orphan.md").write_text("# Orphan\n", encoding="utf-8")
    broken = build(tmp_path, tmp_path / "out")
    assert broken.exit_code != 0
    assert told in broken.output


# ── the index, which is the navigation ──


@pytest.mark.parametrize(
    ("folder", "heading"),
    [
        ("how-to", "How to"),
        ("reference", "Reference"),
        ("explanation", "Explanation"),
        ("decisions", "Decisions"),
    ],
)
def test_every_page_stands_in_the_index_under_the_heading_of_its_kind(folder: str, heading: str) -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    linked = re.findall(rf"\]\(({folder}/[^)#]+\.md)\)", sections[heading])
    assert sorted(linked) == sorted(f"{folder}/{path.name}" for path in (DOCS / folder).glob("*.md"))


def test_the_navigation_is_what_the_index_says() -> None:
    index = (
        "# Documentation\n\n**Learn it:** the [tutorial](tutorial.md), ten minutes.\n\n## How to\n\n"
        "- [Use `it`](how-to/use.md)\n\n```sh\n[not this](how-to/code.md)\n```\n\n## Reference\n\n"
        "- [Verbs](reference/verbs.md), and [OpenAPI](reference/openapi.json)\n- [Benchmarks](../benchmarks/RESULTS.md)\n"
    )
    assert layout.navigation(index)[2:-1] == [
        {"Tutorial": "docs/tutorial.md"},
        {"How to": [{"Use it": "docs/how-to/use.md"}]},
        {"Reference": [{"Verbs": "docs/reference/verbs.md"}, {"Benchmarks": "benchmarks/RESULTS.md"}]},
    ]


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("Slots and generations", "slots-and-generations"),
        ("POST /v1/hooks/session-start", "post-v1hookssession-start"),
        ("prompt_prefix", "prompt_prefix"),
        ("One – and two", "one--and-two"),
        ("记忆, 你好", "记忆-你好"),
    ],
)
def test_an_anchor_is_the_one_that_the_repository_shows(title: str, anchor: str) -> None:
    assert layout.anchor_of(title, "-") == anchor


@given(st.lists(st.sampled_from(["prose", "**Why.**", "- one", "1. one", "```sh", "```", "| a |", "", "    - deep"])))
def test_only_gaps_are_added_and_none_within_code(lines: list[str]) -> None:
    text = "\n".join(lines)
    made = layout.on_page_markdown(text)
    blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert [line for line in made.split("\n") if line] == [line for line in lines if line]
    assert blocks.findall(made) == blocks.findall(text)
    assert layout.on_page_markdown(made) == made
