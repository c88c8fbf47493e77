"""What is shipped is what the sources say, small, and by nobody else."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.web.tools import STATIC, WEB, build

MOST_COMPRESSED_BYTES = 60_000
LONGEST_SOURCE = 300


def test_the_files_in_the_package_are_those_that_are_built_from_the_sources(tmp_path: Path) -> None:
    build(tmp_path / "static")
    built = {path.name: path.read_bytes() for path in (tmp_path / "static").iterdir()}
    shipped = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert sorted(built) == sorted(shipped)
    assert [name for name in built if built[name] != shipped[name]] == [], "run `make web`"


def test_the_page_is_small_and_fetches_nothing_from_elsewhere() -> None:
    shipped = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert sum(len(gzip.compress(each, 9)) for each in shipped.values()) < MOST_COMPRESSED_BYTES
    for name in ("page.js", "page.css", "index.html"):
        addresses = [word for word in shipped[name].decode().split('"') if word.startswith(("http:", "https:", "//"))]
        assert [each for each in addresses if not each.startswith("http://www.w3.org/")] == []


def test_no_source_of_the_page_is_longer_than_a_person_reads() -> None:
    sources = [path for path in (WEB / "src").rglob("*.ts*") if path.name != "wire.ts"]
    assert len(sources) > 20
    assert [path.name for path in sources if len(path.read_text().splitlines()) > LONGEST_SOURCE] == []


def test_nothing_in_the_sources_writes_html() -> None:
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")
    for path in (WEB / "src").rglob("*.ts*"):
        text = path.read_text()
        assert [word for word in forbidden if word in text] == [], path
