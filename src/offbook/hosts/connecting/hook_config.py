"""Our hooks among those of Claude Code or Codex: `hooks.<event>[n].hooks[m]`, in the same shape for both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from offbook.hosts.connecting.json_config import Draft
from offbook.hosts.connecting.server import HOOK_SECONDS, is_our_hook
from offbook.hosts.openclaw.editing import value_at


def add_hooks(draft: Draft, events: tuple[str, ...], host: str, command: str) -> None:
    """Behind those of others: Codex knows a hook that it was told to trust by its number."""
    for event in events:
        ours = list(_ours(draft.config, event, host, command))
        for group, hook in ours:
            draft.put(("hooks", event, group, "hooks", hook, "command"), command)
        if not ours:
            groups = value_at(draft.config, ("hooks", event))
            at = len(groups) if isinstance(groups, list) else 0
            handler = {"type": "command", "command": command, "timeout": HOOK_SECONDS}
            draft.put(("hooks", event, at), {"hooks": [handler]})


def remove_hooks(draft: Draft, host: str) -> None:
    """Ours, under whatever event they stand."""
    events = value_at(draft.config, ("hooks",))
    for event in list(events) if isinstance(events, dict) else []:
        for group, hook in reversed(list(_ours(draft.config, event, host))):
            path = ("hooks", event, group, "hooks")
            draft.take((*path, hook))
            if value_at(draft.config, path) == []:
                draft.take(path[:-1])
        if value_at(events, (event,)):  # an empty list of somebody's own is not for us to take
            draft.prune(("hooks", event))


def our_hooks(config: Any, host: str) -> tuple[tuple[str, ...], str]:
    """The events under which ours stand, and how the first of them is called."""
    events = value_at(config, ("hooks",))
    found = {
        event: value_at(config, ("hooks", event, group, "hooks", hook, "command"))
        for event in (events if isinstance(events, dict) else {})
        for group, hook in _ours(config, event, host)
    }
    return tuple(found), str(next(iter(found.values()), ""))


def _ours(config: Any, event: str, host: str, command: str | None = None) -> Iterator[tuple[int, int]]:
    """`command`: how we are called now, which may be by any name."""
    groups = value_at(config, ("hooks", event))
    for group, found in enumerate(groups if isinstance(groups, list) else []):
        hooks = found.get("hooks") if isinstance(found, dict) else None
        for number, hook in enumerate(hooks if isinstance(hooks, list) else []):
            called = hook.get("command") if isinstance(hook, dict) else None
            if is_our_hook(called, host) or (called is not None and called == command):
                yield group, number
