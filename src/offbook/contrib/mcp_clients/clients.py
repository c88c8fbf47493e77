"""The clients that can be connected: where each has its configuration, and how it names a server.

Sources: code.claude.com/docs/en/mcp and /hooks, modelcontextprotocol.io (Claude Desktop), developers.openai.com/codex
(config, hooks), cursor.com/docs/context/mcp, code.visualstudio.com/docs (MCP configuration), docs.windsurf.com,
geminicli.com/docs (settings).
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

from offbook.model.errors import InvalidInput
from offbook.model.types import Value

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


# ── Offbook as a client calls it ──
# Its MCP server, and its hooks. Nothing secret is part of either.


NAME = "offbook"
ARGUMENTS = ["mcp"]
SETTINGS = {"--home": "OFFBOOK_HOME", "--url": "OFFBOOK_URL", "--agent": "OFFBOOK_AGENT"}
"""The options of both `offbook mcp` and `offbook hook`, and the variables that say the same."""
HOOK_SECONDS = 10
"""How long a host waits for a hook before it goes on without it. One takes well under a second."""


class Server(Value, frozen=True):
    """`home`, `url`, `agent`: only where they are not what `offbook` takes by itself."""

    command: str = "offbook"
    home: str | None = None
    url: str | None = None
    agent: str | None = None

    def entry(self, *, names_type: bool) -> dict[str, Any]:
        named = {"OFFBOOK_HOME": self.home, "OFFBOOK_URL": self.url, "OFFBOOK_AGENT": self.agent}
        env = {name: value for name, value in named.items() if value is not None}
        typed = {"type": "stdio"} if names_type else {}
        return {**typed, "command": self.command, "args": list(ARGUMENTS)} | ({"env": env} if env else {})

    def taking_over(self, entry: Any) -> Server:
        """With what our entry says already, where nothing else is said now: the hooks must ask for the same memory as
        the tools. A provider that went with another folder is not taken over."""
        env, args = (entry.get("env"), entry.get("args")) if isinstance(entry, dict) else (None, None)
        said = {name: text for name, text in env.items() if isinstance(text, str)} if isinstance(env, dict) else {}
        for option, words in _arguments(args if isinstance(args, list) else []):
            if option is not None:
                said[SETTINGS[option]] = _value(words)
        home, url, agent = (said.get(name) or None for name in SETTINGS.values())
        is_elsewhere = self.home is not None and self.home != home
        return Server(
            command=self.command,
            home=self.home or home,
            url=self.url or (None if is_elsewhere else url),
            agent=self.agent or agent,
        )

    def hook(self, host: str) -> str:
        """The command line of a hook."""
        named = (("--home", self.home), ("--url", self.url), ("--agent", self.agent))
        options = [text for name, value in named if value is not None for text in (name, value)]
        return shlex.join([self.command, "hook", host, *options])


def is_our_entry(entry: Any, command: str | None = None) -> bool:
    """`command`: how we are called now, which may be by any name."""
    if not isinstance(entry, dict):
        return False
    called, args = entry.get("command"), entry.get("args")
    is_called = _is_offbook(called) or (command is not None and called == command)
    return is_called and isinstance(args, list) and args[:1] == ARGUMENTS


def checked_entry(known: Any, where: str, command: str | None = None) -> dict[str, Any]:
    """What stands under our name, where it is ours. Raises InvalidInput."""
    if not is_our_entry(known, command):
        raise InvalidInput(
            f"{where} does not call `offbook mcp`: it is not ours, take it away by hand, or give it another name"
        )
    found: dict[str, Any] = known
    return found


def renewed(known: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Our entry as it is to be. What somebody added to it stays, arguments and variables, too. Raises InvalidInput."""
    env = known.get("env", {})
    if not isinstance(env, dict):
        raise InvalidInput(f"env of {NAME} holds no variables: mend that first")
    settings: dict[str, str] = entry.get("env", {})
    args: list[Any] = list(ARGUMENTS)
    as_options: set[str] = set()
    for option, words in _arguments(known["args"][len(ARGUMENTS) :]):
        wanted = None if option is None else settings.get(SETTINGS[option])
        if option is None or _value(words) == wanted:
            args += words
        elif wanted is not None:
            args += [option, wanted]
        if option is not None and wanted is not None:
            as_options.add(SETTINGS[option])
    as_variables = {name: text for name, text in settings.items() if name not in as_options}
    gone = set(SETTINGS.values()) - set(as_variables)
    env = {name: text for name, text in env.items() if name not in gone} | as_variables
    rest = {name: value for name, value in {**known, **entry, "args": args}.items() if name != "env" or name in known}
    return rest | ({"env": env} if env or "env" in known else {})


def _arguments(args: list[Any]) -> Iterator[tuple[str | None, list[Any]]]:
    """Each of our options, in the one word or the two that it has, and every other argument."""
    words = iter(args)
    for word in words:
        option, equals, _ = word.partition("=") if isinstance(word, str) else ("", "", "")
        if option not in SETTINGS:
            yield None, [word]
        else:
            yield option, [word] if equals else [word, *itertools.islice(words, 1)]


def _value(words: list[Any]) -> str:
    return str(words[1]) if len(words) > 1 else str(words[0]).partition("=")[2]


def is_our_hook(command: Any, host: str) -> bool:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    return len(words) > 2 and _is_offbook(words[0]) and words[1:3] == ["hook", host]


def _is_offbook(command: Any) -> bool:
    return isinstance(command, str) and PurePath(command.replace("\\", "/")).name in ("offbook", "offbook.exe")
