"""Every setting and variable that the documentation tells a reader to write is one there is, with a value it takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from offbook.model.errors import SettingsError
from offbook.model.settings import RESERVED_VARIABLES, SHORT_NAMES, catalogue, load
from tests.places import REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(block[1], id=f"{page.name}:{page.read_text(encoding='utf-8').count(chr(10), 0, block.start()) + 1}")
    for page in PAGES
    for block in re.finditer(r"^ *```toml\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
]
OF_OTHERS = {"notify", "mcp_servers"}
"""Tables of Codex, whose file is TOML as well."""


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_settings_is_one_that_a_provider_takes(tmp_path: Path, block: str) -> None:
    if OF_OTHERS.isdisjoint(tomllib.loads(block)):
        (tmp_path / "config.toml").write_text(block, encoding="utf-8")
        assert load(tmp_path, environ={}).origins


def test_there_are_blocks_and_a_wrong_one_would_be_told(tmp_path: Path) -> None:
    assert len(BLOCKS) > 8
    (tmp_path / "config.toml").write_text("[server]\nprot = 8770\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"server\.prot"):
        load(tmp_path, environ={})


def test_every_variable_that_is_named_is_read() -> None:
    known = {setting.environment_name for setting in catalogue()} | set(RESERVED_VARIABLES)
    known |= {f"OFFBOOK_{short.upper()}" for short in SHORT_NAMES}
    named = {
        (page.name, variable)
        for page in PAGES
        for variable in re.findall(r"\bOFFBOOK_[A-Z0-9_]+(?<!_)\b", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert {(page, variable) for page, variable in named if variable not in known} == set()
