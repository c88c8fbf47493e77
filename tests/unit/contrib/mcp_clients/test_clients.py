from __future__ import annotations

from pathlib import Path

import pytest

from offbook.cli.connect import NAMES
from offbook.contrib.mcp_clients.clients import CLIENTS, Platform, config_path, hooks_path

USER = Path("/home/ann")


@pytest.mark.parametrize(
    ("name", "platform", "environ", "expected"),
    [
        ("claude-code", "linux", {}, "/home/ann/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("codex", "darwin", {}, "/home/ann/.codex/config.toml"),
        ("codex", "linux", {"CODEX_HOME": "/x"}, "/x/config.toml"),
        ("cursor", "linux", {}, "/home/ann/.cursor/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/y"}, "/y/Code/User/mcp.json"),
        ("vscode", "darwin", {}, "/home/ann/Library/Application Support/Code/User/mcp.json"),
        ("claude-desktop", "linux", {}, "/home/ann/.config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
    ],
)
def test_where_a_client_has_its_file(name: str, platform: Platform, environ: dict[str, str], expected: str) -> None:
    assert config_path(CLIENTS[name], platform, environ, USER) == Path(expected)


def test_a_folder_with_braces_is_a_folder() -> None:
    assert config_path(CLIENTS["codex"], "linux", {"CODEX_HOME": "/{x}"}, USER) == Path("/{x}/config.toml")


@pytest.mark.parametrize(
    ("name", "config", "environ", "expected"),
    [
        ("claude-code", "/home/ann/.claude.json", {}, "/home/ann/.claude/settings.json"),
        ("claude-code", "/src/app/.mcp.json", {"CLAUDE_CONFIG_DIR": "/c"}, "/src/app/.claude/settings.json"),
        ("claude-code", "/c/.claude.json", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        ("codex", "/x/config.toml", {}, "/x/hooks.json"),
    ],
)
def test_where_the_hooks_go(name: str, config: str, environ: dict[str, str], expected: str) -> None:
    assert hooks_path(name, Path(config), environ) == Path(expected)


def test_the_command_knows_every_client() -> None:
    assert set(NAMES) == set(CLIENTS)
