from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.contrib.mcp_clients.clients import Server
from offbook.contrib.mcp_clients.configs import with_server, without_server
from offbook.model.errors import InvalidInput

SERVER = Server(command="/opt/offbook", home='/数据/"🐈"\\x', agent="coder")
ENTRY = SERVER.entry(names_type=False)
CONFIG = """# mine
model = "gpt-5"  # the good one

[mcp_servers.other]
command = "npx"
args = [
  "-y", # yes
]

# about projects
[projects."/src/app"]
trust_level = "trusted"
"""


def added(text: str) -> str:
    return with_server(text, "mcp_servers", ENTRY)


def removed(text: str) -> str:
    return without_server(text, "mcp_servers")


def test_the_rest_stays_to_the_byte() -> None:
    text = added(CONFIG)
    assert text.startswith(CONFIG)
    assert tomllib.loads(text)["mcp_servers"]["offbook"] == ENTRY
    assert added(text) == text
    assert removed(text) == CONFIG


def test_a_table_in_the_middle_goes_without_its_neighbours() -> None:
    table = '[mcp_servers.offbook]\ncommand = "offbook"\nargs = ["mcp"]\n\n[mcp_servers.offbook.env]\nX = "1"\n'
    text = CONFIG.replace("# about projects", f"{table}\n# about projects")
    assert removed(text) == CONFIG


def test_an_older_entry_is_changed_and_what_was_added_to_it_stays() -> None:
    text = added(CONFIG + '\n[mcp_servers.offbook]\nenabled = false # for now\ncommand = "offbook"\nargs = ["mcp"]\n')
    entry = tomllib.loads(text)["mcp_servers"]["offbook"]
    assert entry == {**ENTRY, "enabled": False}
    assert "# for now" in text


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        'mcp_servers.offbook = { command = "offbook", args = ["mcp", "old"] }\n',
        "mcp_servers = 3\n",
        "[mcp_servers]\noffbook = 3\n",
        "not toml",
        "[[mcp_servers]]\nx = 1\n",
    ],
)
def test_what_cannot_be_edited_safely_is_told(text: str) -> None:
    with pytest.raises(InvalidInput):
        added(text)


def test_a_header_within_a_text_is_no_header() -> None:
    text = 'notes = """\n[mcp_servers.offbook]\n[x]\n"""\nlist = [\n["a"],\n]\n'
    assert removed(added(text)) == text


def test_another_server_under_our_name_is_not_taken_away() -> None:
    with pytest.raises(InvalidInput, match="not ours"):
        removed('[mcp_servers.offbook]\ncommand = "node"\nargs = ["mcp"]\n')


def test_another_server_under_our_name_is_not_mixed_with_ours() -> None:
    for theirs in ('url = "https://a.example/mcp"', 'command = "node"\nargs = ["mcp"]'):
        with pytest.raises(InvalidInput, match="another name"):
            added(f"[mcp_servers.offbook]\n{theirs}\n")


def test_comments_behind_our_table_stay() -> None:
    note = "\n# mine, too\n\n# 我的\n"
    assert removed(added(CONFIG) + note) == CONFIG + note
    assert removed(added("") + "# mine") == "# mine"


tables = st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.text(max_size=8), max_size=3)


@settings(deadline=None)
@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), tables, max_size=3), st.sampled_from(["\n", "\r\n"])
)
def test_there_and_back_is_the_same(config: dict[str, dict[str, str]], end: str) -> None:
    text = "".join(
        f"[{name}]{end}"
        + "".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}{end}"
            for key, value in table.items()
            if "\x7f" not in value
        )
        for name, table in config.items()
    )
    there = added(text)
    assert tomllib.loads(there)["mcp_servers"]["offbook"] == ENTRY
    assert added(there) == there
    assert removed(there) == text
