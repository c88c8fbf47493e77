"""The clients that can be connected: where each has its configuration, and how it names a server.

Sources: code.claude.com/docs/en/mcp and /hooks, modelcontextprotocol.io (Claude Desktop), developers.openai.com/codex
(config, hooks), cursor.com/docs/context/mcp, code.visualstudio.com/docs (MCP configuration), docs.windsurf.com,
geminicli.com/docs (settings).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Platform = Literal["linux", "darwin", "win32"]
Notation = Literal["json", "toml"]

_CODEX_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact")
_CLAUDE_EVENTS = (*_CODEX_EVENTS, "SubagentStop", "SessionEnd")


class Client(NamedTuple):
    """`places`: the file on each platform. `servers`: where in it the servers stand. `events`: the hooks that capture
    its sessions, none where it has none. `then`: what makes it take the change; `and_hooks`: more of it, where its
    sessions are captured."""

    title: str
    places: dict[Platform, str]
    servers: tuple[str, ...] = ("mcpServers",)
    notation: Notation = "json"
    names_type: bool = False
    """Whether an entry says that it is of type stdio."""
    events: tuple[str, ...] = ()
    then: str = ""
    and_hooks: str = ""


def _everywhere(place: str) -> dict[Platform, str]:
    return {"linux": place, "darwin": place, "win32": place}


def _by_platform(below: str) -> dict[Platform, str]:
    return {
        "linux": f"{{config}}/{below}",
        "darwin": f"~/Library/Application Support/{below}",
        "win32": f"{{appdata}}/{below}",
    }


CLIENTS: dict[str, Client] = {
    "claude-code": Client(
        "Claude Code",
        _everywhere("{claude}/.claude.json"),
        names_type=True,
        events=_CLAUDE_EVENTS,
        then="a session that starts from now on has it: look with /mcp",
        and_hooks=" and /hooks",
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        _by_platform("Claude/claude_desktop_config.json"),
        then="quit Claude Desktop and start it again",
    ),
    "codex": Client(
        "Codex",
        _everywhere("{codex}/config.toml"),
        servers=("mcp_servers",),
        notation="toml",
        events=_CODEX_EVENTS,
        then="start codex and look with /mcp",
    ),
    "cursor": Client("Cursor", _everywhere("~/.cursor/mcp.json"), then="Cursor shows it in its settings, under MCP"),
    "vscode": Client(
        "VS Code",
        _by_platform("Code/User/mcp.json"),
        servers=("servers",),
        names_type=True,
        then="start it with `MCP: List Servers` in the command palette",
    ),
    "windsurf": Client(
        "Windsurf", _everywhere("~/.codeium/windsurf/mcp_config.json"), then="refresh the MCP servers in Cascade"
    ),
    "gemini": Client("Gemini CLI", _everywhere("~/.gemini/settings.json"), then="start gemini and look with /mcp"),
}

FOLDERS = frozenset(
    (".claude", ".codeium", ".codex", ".config", ".cursor", ".gemini", "Claude", "Code", "User", "windsurf")
)
"""Those that clients have their files in, by their names: no other is ours to take away, empty as it may be."""


def config_path(client: Client, platform: Platform, environ: Mapping[str, str], user: Path) -> Path:
    """The client's file for all projects of a user, whose folder is `user`."""
    named = {
        "config": environ.get("XDG_CONFIG_HOME") or str(user / ".config"),
        "appdata": environ.get("APPDATA") or str(user / "AppData" / "Roaming"),
        "claude": environ.get("CLAUDE_CONFIG_DIR") or str(user),
        "codex": environ.get("CODEX_HOME") or str(user / ".codex"),
    }
    place = client.places[platform].format_map(named)
    return user / place[2:] if place.startswith("~/") else Path(place)


def hooks_path(name: str, config: Path, environ: Mapping[str, str]) -> Path:
    """The file with the hooks that goes with a client's configuration, that of a project as well."""
    if name == "codex":
        return config.with_name("hooks.json")
    own = environ.get("CLAUDE_CONFIG_DIR")
    if own and config.parent == Path(own):
        return config.with_name("settings.json")
    return config.parent / ".claude" / "settings.json"
