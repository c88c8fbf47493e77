"""The plugin's tools for agents whose tool profile shuts out what it does not name (`tools.alsoAllow`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from offbook.client.config_files.editing import Path, dotted, value_at
from offbook.openclaw.plan import Plan

TOOLS = ("swap_status", "swap_dashboard", "swap_promote", "swap_cross", "memory_recall", "memory_expand")
"""Those that the plugin registers."""
COVERING = frozenset({"*", "offbook", "group:plugins"})
"""Any of these lets all of them in."""
OPEN_PROFILE = "full"


def allow_tools(plan: Plan) -> None:
    """Where a profile is chosen, name our tools beside it. A list of one's own (`allow`) is not ours to change."""
    for place, tools in _sections(plan.config):
        if tools.get("profile") in (None, "", OPEN_PROFILE):
            continue
        allowed = tools.get("allow")
        if isinstance(allowed, list) and allowed:
            if not COVERING & _names(allowed) and not set(TOOLS) <= _names(allowed):
                where = dotted((*place, "allow"))
                plan.notes.append(
                    f"{where} is a list of your own: add {', '.join(TOOLS)} where the agent is to have them"
                )
            continue
        if not COVERING & _names(plan.items((*place, "alsoAllow"))):
            for tool in TOOLS:
                plan.add_item((*place, "alsoAllow"), tool, "a tool profile lets in only what it names")


def disallow_tools(plan: Plan) -> None:
    for place, _ in _sections(plan.config):
        also: Path = (*place, "alsoAllow")
        if isinstance(value_at(plan.config, also), list) and set(TOOLS) & _names(plan.items(also)):
            for tool in TOOLS:
                plan.take_item(also, tool, "undone")
            if not plan.items(also):
                plan.take(also, "nothing is left in it")


def _sections(config: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """`tools` of all agents, and of each."""
    places: list[Path] = [("tools",)]
    listed, named = (value_at(config, ("agents", part)) for part in ("list", "entries"))
    places += [("agents", "list", number, "tools") for number in range(len(listed) if isinstance(listed, list) else 0)]
    places += [("agents", "entries", name, "tools") for name in (named if isinstance(named, dict) else ())]
    for place in places:
        tools = value_at(config, place)
        if isinstance(tools, dict):
            yield place, tools


def _names(items: list[Any]) -> set[str]:
    return {item for item in items if isinstance(item, str)}
