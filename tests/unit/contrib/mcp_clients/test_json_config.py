from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.client.config_files.editing import parse
from offbook.contrib.mcp_clients.clients import Server, is_our_hook
from offbook.contrib.mcp_clients.configs import Draft, add_hooks, add_server, remove_hooks, remove_server
from offbook.model.errors import InvalidInput

SERVER = Server(command="/opt/off book/bin/offbook", home="/数据/🐈")
EVENTS = ("SessionStart", "Stop")
COMMENTED = """{
  // my servers
  "mcpServers": {
    "other": { "command": "npx", "args": ["-y", "x"] }, // keep
  },
  "theme": "dark"
}
"""


def connected(text: str) -> str:
    draft = Draft(text)
    add_server(draft, ("mcpServers",), SERVER.entry(names_type=True))
    add_hooks(draft, EVENTS, "claude-code", SERVER.hook("claude-code"))
    return draft.text if draft.is_changed else text


def disconnected(text: str) -> str:
    draft = Draft(text)
    remove_server(draft, ("mcpServers",))
    remove_hooks(draft, "claude-code")
    return draft.text if draft.is_changed else text


def test_comments_and_what_others_have_stays() -> None:
    text = connected(COMMENTED)
    assert "// my servers" in text
    assert "// keep" in text
    config = parse(text).value
    assert config["mcpServers"]["other"] == {"command": "npx", "args": ["-y", "x"]}
    assert config["mcpServers"]["offbook"] == {
        "type": "stdio",
        "command": "/opt/off book/bin/offbook",
        "args": ["mcp"],
        "env": {"OFFBOOK_HOME": "/数据/🐈"},
    }
    [group] = config["hooks"]["Stop"]
    assert is_our_hook(group["hooks"][0]["command"], "claude-code")
    assert connected(text) == text
    assert parse(disconnected(text)).value == parse(COMMENTED).value
    assert "// my servers" in disconnected(text)


def test_an_empty_file_is_an_empty_object() -> None:
    assert json.loads(connected(""))["mcpServers"]["offbook"]["args"] == ["mcp"]
    assert json.loads(disconnected(connected("{}"))) == {}


def test_what_somebody_added_to_our_entry_stays_and_the_rest_is_brought_up_to_date() -> None:
    mine = {"command": "old/offbook", "args": ["mcp"], "env": {"LANG": "C"}, "disabled": True}
    config = json.loads(connected(json.dumps({"mcpServers": {"offbook": mine}})))
    entry = config["mcpServers"]["offbook"]
    assert entry["disabled"] is True
    assert entry["env"] == {"LANG": "C", "OFFBOOK_HOME": "/数据/🐈"}
    assert entry["command"] == "/opt/off book/bin/offbook"


def test_an_older_hook_of_ours_is_changed_in_place() -> None:
    theirs = {"type": "command", "command": "say done"}
    ours = {"type": "command", "command": "offbook hook claude-code", "timeout": 3}
    text = connected(json.dumps({"hooks": {"Stop": [{"matcher": "x", "hooks": [theirs, ours]}]}}))
    [group] = json.loads(text)["hooks"]["Stop"]
    assert group["hooks"][0] == theirs
    assert group["hooks"][1] == ours | {"command": SERVER.hook("claude-code")}
    [group] = json.loads(disconnected(text))["hooks"]["Stop"]
    assert group == {"matcher": "x", "hooks": [theirs]}
    assert "SessionStart" not in json.loads(disconnected(text))["hooks"]


def test_another_server_under_our_name_is_not_taken_away() -> None:
    with pytest.raises(InvalidInput, match="not ours"):
        disconnected('{"mcpServers": {"offbook": {"command": "node", "args": ["mcp"]}}}')


@pytest.mark.parametrize("theirs", [{"url": "https://a.example/mcp"}, {"command": "node", "args": ["mcp"]}, {}, None])
def test_another_server_under_our_name_is_not_mixed_with_ours(theirs: Any) -> None:
    with pytest.raises(InvalidInput, match="another name"):
        connected(json.dumps({"mcpServers": {"offbook": theirs}}))


def test_arguments_of_somebodys_own_stay_and_ours_are_changed_where_they_stand() -> None:
    mine = {"command": "offbook", "args": ["mcp", "--home=/old", "--x", "--agent", "a"], "env": {"OFFBOOK_URL": "u"}}
    entry = json.loads(connected(json.dumps({"mcpServers": {"offbook": mine}})))["mcpServers"]["offbook"]
    assert entry["args"] == ["mcp", "--home", "/数据/🐈", "--x"]
    assert entry["env"] == {}


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": []}', '{"hooks": {"Stop": {}}}', '{"hooks": 1}', "{"])
def test_what_is_broken_is_told(text: str) -> None:
    with pytest.raises(InvalidInput):
        connected(text)


names = st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | names,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, min_size=1, max_size=2),
    max_leaves=4,
)
configs = st.dictionaries(names, values, max_size=3)


@settings(deadline=None)
@given(configs, configs, st.sampled_from([None, 2]))
def test_there_and_back_is_the_same(others: dict[str, Any], servers: dict[str, Any], indent: int | None) -> None:
    config = {**others, **({"mcpServers": servers} if servers else {})}
    if "offbook" in servers or not isinstance(config.get("hooks", {}), dict):
        return
    text = json.dumps(config, indent=indent)
    there = connected(text)
    assert connected(there) == there
    assert json.loads(disconnected(there)) == config
