"""What the explanations claim is so: their example runs, and their figures are those that were measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import REPOSITORY

EXPLANATIONS = REPOSITORY / "docs" / "explanation"

_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w,]*\d)")


def read(path: str) -> str:
    return (REPOSITORY / path).read_text(encoding="utf-8")


def numbers(text: str) -> set[str]:
    return {number.rstrip(",") for number in _NUMBER.findall(text)}


def sections(text: str, *headings: str) -> str:
    found = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    return "\n".join(found[heading] for heading in headings)


@pytest.mark.parametrize(
    ("page", "headings"),
    [
        ("the-swap.md", ["Measured"]),
        ("cache-economics.md", ["Measured: a conversation", "What a swap costs", "Measured: writing summaries"]),
    ],
)
def test_every_figure_is_one_that_was_measured(page: str, headings: list[str]) -> None:
    told = sections((EXPLANATIONS / page).read_text(encoding="utf-8"), *headings)
    told = re.sub(r"about [\d,]+ to [\d,]+|\]\([^)]*\)", "", told)  # rounded, and said so; links
    known = numbers(read("benchmarks/RESULTS.md")) | numbers(read("docs/reference/figures.md"))
    settings = {"40", "6,000", "12,800"}  # `targetSize`, `chunkTokens`, and 40 % of 32,000
    assert len(numbers(told)) > 15
    assert numbers(told) - known - settings == set()


def test_the_figures_of_the_picture_are_those_of_the_results() -> None:
    results, picture = read("benchmarks/RESULTS.md"), read("docs/swap.svg")
    waited = re.search(r"^\| messages, with a swap \| \d+ \| [\d,]+ \| ([\d.]+) \|", results, re.MULTILINE)
    stopped = re.search(r"^\| by itself, first sentences \| \d+ \| [\d.,]+ \| ([\d.]+) \|", results, re.MULTILINE)
    assert waited is not None
    assert stopped is not None
    assert f"swap: {float(waited[1]):.0f} ms, measured" in picture
    assert f"{float(stopped[1]):.0f} s, reckoned" in picture


def test_the_example_of_the_cover_runs(tmp_path: Path) -> None:
    page = (EXPLANATIONS / "the-cover.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
    done = subprocess.run(
        [sys.executable, "-"],
        input=block,
        env=environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"100 messages in \d+ parts, \d+ characters\n", done.stdout)


def test_the_files_that_a_page_names_as_its_proof_are_there() -> None:
    for page in EXPLANATIONS.glob("*.md"):
        for path in re.findall(r"`(tests/[\w/]+\.py|benchmarks/[\w/]+\.py)`", page.read_text(encoding="utf-8")):
            assert (REPOSITORY / path).is_file(), f"{page.name}: {path}"
