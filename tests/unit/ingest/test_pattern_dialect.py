"""No group is repeated possessively: up to Python 3.11.4 such a pattern may miss what it should find, and a secret stays
(https://github.com/python/cpython/issues/106052). An atomic group around it says the same: `(?>(?:…)*)`."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import offbook

PACKAGE = Path(offbook.__file__).parent
POSSESSIVE_GROUP = re.compile(r"\)(?:[*?+]|\{{1,2}[0-9]*,?[0-9]*\}{1,2})\+")


def strings_of(path: Path) -> list[str]:
    if path.suffix != ".py":
        return path.read_text().splitlines()
    with tokenize.open(path) as file:
        return [token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.STRING]


def test_no_group_is_possessive() -> None:
    paths = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("data/*.txt")]
    found = [
        f"{path.name}: {text[:80]}" for path in paths for text in strings_of(path) if POSSESSIVE_GROUP.search(text)
    ]
    assert found == []


def test_one_would_be_found() -> None:
    assert POSSESSIVE_GROUP.search(r"(?:a|b){2,}+")
    assert POSSESSIVE_GROUP.search(r"(?:a|b)*+")
    assert not POSSESSIVE_GROUP.search(r"(?>(?:a|b){2,})[ab]*+")
