"""Offbook as a client calls it: its MCP server, and its hooks. Nothing secret is part of either."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from offbook.model.errors import InvalidInput
from offbook.model.types import Value

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
