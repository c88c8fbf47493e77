"""A configuration and what is wished of it: which changes that takes, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from offbook.errors import InvalidInput
from offbook.hosts.openclaw.editing import MISSING, Edit, Path, applied, value_at

Level = Literal["off", "capture", "recall", "hot-swap"]
LEVELS: tuple[Level, ...] = ("off", "capture", "recall", "hot-swap")
PLUGIN = "offbook"
MEMORY_PLUGIN = "offbook-memory"
ENTRY: Path = ("plugins", "entries", PLUGIN)
SLOTS = {"contextEngine": PLUGIN, "memory": MEMORY_PLUGIN}
FREE_SLOTS = {"contextEngine": ("legacy", ""), "memory": ("none", "memory-core", "")}
"""What the host's own parts are called in a slot: to replace these takes nothing from another plugin."""

_KINDS: dict[type, str] = {dict: "object", list: "list"}


@dataclass(frozen=True)
class Wishes:
    """None: as it is. `plugin_folder` None: the host has the plugin installed."""

    level: Level
    plugin_folder: str | None = None
    home: str | None = None
    endpoint: str | None = None
    command: str | None = None
    start_daemon: bool | None = None
    host_model: bool | None = None
    memory_folder: str | None = None
    mcp_command: str | None = None
    take_slot: bool = False
    slots_before: Mapping[str, Any] = field(default_factory=dict)
    """Who had a slot before us, where that is known; MISSING where nobody was named."""


@dataclass(frozen=True)
class Change:
    path: Path
    before: Any
    after: Any
    why: str

    @property
    def name(self) -> str:
        """`plugins.load.paths[0]`, as the host writes it."""
        return dotted(self.path)


@dataclass
class Plan:
    """`obstacles` keep it from being carried out; `notes` are worth knowing."""

    config: dict[str, Any]
    changes: list[Change] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def edits(self) -> list[Edit]:
        return [Edit(change.path, change.after) for change in self.changes]

    def put(self, path: Path, value: Any, why: str) -> None:
        before = value_at(self.config, path)
        if before is MISSING or type(before) is not type(value) or before != value:
            self._change(path, before, value, why)

    def take(self, path: Path, why: str) -> None:
        before = value_at(self.config, path)
        if before is not MISSING:
            self._change(path, before, MISSING, why)

    def add_item(self, path: Path, item: str, why: str) -> None:
        items = self.items(path)
        if item not in items:
            self._change((*path, len(items)), MISSING, item, why)

    def take_item(self, path: Path, item: str, why: str) -> None:
        items = self.items(path)
        if item in items:
            self._change((*path, items.index(item)), item, MISSING, why)

    def items(self, path: Path) -> list[Any]:
        found = value_at(self.config, path)
        if found is not MISSING and not isinstance(found, list):
            raise InvalidInput(f"{dotted(path)} is no list: mend that first (`openclaw config validate`)")
        return list(found) if isinstance(found, list) else []

    def prune(self, path: Path) -> None:
        """What is empty now, from there up to the root's members, was there for us only."""
        while path and value_at(self.config, path) in ({}, []):
            self.take(path, "nothing is left in it")
            path = path[:-1]

    def _change(self, path: Path, before: Any, after: Any, why: str) -> None:
        for length in range(len(path)):
            holder = value_at(self.config, path[:length])
            if isinstance(holder, dict) and "$include" in holder:
                where = dotted(path[:length]) or "all of it"
                self._stop(f"{where} comes from another file ($include): change it there, by hand")
            kind = list if isinstance(path[length], int) else dict
            if holder is not MISSING and not isinstance(holder, kind):
                where = dotted(path[:length])
                raise InvalidInput(f"{where} is no {_KINDS[kind]}: mend that first (`openclaw config validate`)")
        self.config = applied(self.config, Edit(path, after))
        self.changes.append(Change(path, before, after, why))

    def _stop(self, why: str) -> None:
        if why not in self.obstacles:
            self.obstacles.append(why)


def dotted(path: Path) -> str:
    text = ""
    for name in path:
        text += f"[{name}]" if isinstance(name, int) else f".{name}" if text else name
    return text


def planned(config: dict[str, Any], wishes: Wishes, our_paths: Mapping[str, str]) -> Plan:
    """`our_paths`: those of `plugins.load.paths` that lead to a plugin of ours, as written there, and its name."""
    plan = Plan(config)
    if wishes.level == "off":
        _undo(plan, wishes, our_paths)
    else:
        _let_in(plan, wishes, our_paths)
        _grant(plan, wishes)
        _configure(plan, wishes)
        _engine_slot(plan, wishes)
        if wishes.memory_folder is not None:
            _memory_slot(plan, wishes, wishes.memory_folder)
        if wishes.mcp_command is not None:
            server = {"command": wishes.mcp_command, "args": ["mcp"]}
            plan.put(("mcp", "servers", PLUGIN), server, "tools for agents over MCP")
    return plan


def _let_in(plan: Plan, wishes: Wishes, our_paths: Mapping[str, str]) -> None:
    if value_at(plan.config, ("plugins", "enabled")) is False:
        plan.put(("plugins", "enabled"), True, "plugins are off as a whole")
        plan.notes.append("plugins.enabled was false: every other plugin that is set up there loads now, too")
    _allow(plan, PLUGIN)
    if wishes.plugin_folder is None:
        return
    paths: Path = ("plugins", "load", "paths")
    if wishes.plugin_folder not in our_paths:
        plan.add_item(paths, wishes.plugin_folder, "where the plugin is")
    for other, plugin in our_paths.items():
        if plugin == PLUGIN and other != wishes.plugin_folder:
            plan.take_item(paths, other, "another copy of the plugin")


def _allow(plan: Plan, plugin: str) -> None:
    plan.take_item(("plugins", "deny"), plugin, "a plugin that is denied never loads")
    allow: Path = ("plugins", "allow")
    if plan.items(allow):
        plan.add_item(allow, plugin, "only listed plugins load")
    elif value_at(plan.config, allow) == []:  # one name in it would shut out all others, so that is not for us to do
        plan.notes.append("plugins.allow is an empty list: if the plugin does not load, remove that list")


def _grant(plan: Plan, wishes: Wishes) -> None:
    plan.put((*ENTRY, "enabled"), True, "the plugin is on")
    plan.put((*ENTRY, "hooks", "allowConversationAccess"), True, "without it the host keeps turns from the plugin")
    if wishes.level in ("recall", "hot-swap"):
        plan.put((*ENTRY, "hooks", "allowPromptInjection"), True, "so that what comes to mind reaches the model")


def _configure(plan: Plan, wishes: Wishes) -> None:
    settings: Path = (*ENTRY, "config")
    plan.put((*settings, "level"), wishes.level, "the level asked for")
    if value_at(plan.config, (*settings, "enabled")) is False:
        plan.take((*settings, "enabled"), "it would turn the level off")
    if value_at(plan.config, (*settings, "storeOnly")) is True:
        plan.take((*settings, "storeOnly"), "it would hold the level at capture")
    wished = {
        "home": (wishes.home, "Offbook's data folder"),
        "endpoint": (wishes.endpoint, "where the provider answers"),
        "startDaemon": (wishes.start_daemon, "whether the plugin starts `offbook serve`"),
        "command": (wishes.command, "how the host calls Offbook"),
        "hostModel": (wishes.host_model, "whether the host's model writes summaries"),
    }
    for name, (value, why) in wished.items():
        if value is not None:
            plan.put((*settings, name), value, why)


def _engine_slot(plan: Plan, wishes: Wishes) -> None:
    slot: Path = ("plugins", "slots", "contextEngine")
    holder = value_at(plan.config, slot)
    if wishes.level == "hot-swap":
        _take_slot(plan, wishes, "contextEngine", PLUGIN)
    elif holder == PLUGIN:
        _give_back(plan, "contextEngine", wishes.slots_before)


def _memory_slot(plan: Plan, wishes: Wishes, folder: str) -> None:
    _allow(plan, MEMORY_PLUGIN)
    plan.add_item(("plugins", "load", "paths"), folder, "where the memory plugin is")
    plan.put(("plugins", "entries", MEMORY_PLUGIN, "enabled"), True, "the memory plugin is on")
    _take_slot(plan, wishes, "memory", MEMORY_PLUGIN)


def _take_slot(plan: Plan, wishes: Wishes, slot: str, plugin: str) -> None:
    path: Path = ("plugins", "slots", slot)
    holder = value_at(plan.config, path)
    if holder not in (MISSING, None, plugin, *FREE_SLOTS[slot]) and not wishes.take_slot:
        plan.obstacles.append(f"{dotted(path)} is {holder!r}, another plugin's: --take-slot gives it to {plugin}")
        return
    plan.put(path, plugin, f"which plugin has the {slot} slot")


def _undo(plan: Plan, wishes: Wishes, our_paths: Mapping[str, str]) -> None:
    why = "undone"
    for slot, plugin in SLOTS.items():
        if value_at(plan.config, ("plugins", "slots", slot)) == plugin:
            _give_back(plan, slot, wishes.slots_before)
    for path in our_paths:
        plan.take_item(("plugins", "load", "paths"), path, why)
        plan.prune(("plugins", "load", "paths"))
    if wishes.plugin_folder is None and value_at(plan.config, ENTRY) is not MISSING:
        plan.put(ENTRY, {"enabled": False}, "the plugin is off")
        plan.notes.append("the plugin itself is still installed: `openclaw plugins uninstall offbook` removes it")
    for plugin in (PLUGIN, MEMORY_PLUGIN):
        if plugin == MEMORY_PLUGIN or wishes.plugin_folder is not None:
            plan.take(("plugins", "entries", plugin), why)
        _disallow(plan, plugin)
    plan.prune(("plugins", "entries"))
    server = value_at(plan.config, ("mcp", "servers", PLUGIN))
    if isinstance(server, dict) and server.get("args") == ["mcp"]:
        plan.take(("mcp", "servers", PLUGIN), why)
        plan.prune(("mcp", "servers"))


def _give_back(plan: Plan, slot: str, before: Mapping[str, Any]) -> None:
    path: Path = ("plugins", "slots", slot)
    if before.get(slot, MISSING) is not MISSING:
        plan.put(path, before[slot], "as it was before")
        return
    plan.take(path, "undone")
    plan.prune(path[:-1])
    if slot not in before:
        plan.notes.append(f"{dotted(path)} is the host's default now: no backup says what it was before")


def _disallow(plan: Plan, plugin: str) -> None:
    allowed = plan.items(("plugins", "allow"))
    if plugin not in allowed:
        return
    if set(allowed) <= {plugin}:
        plan.notes.append(f"plugins.allow keeps {plugin!r}: an empty list would let every plugin in")
        return
    plan.take_item(("plugins", "allow"), plugin, "undone")
