"""Changes to a configuration that are meant, and what is in their way; nothing is written yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from offbook.client.config_files.editing import MISSING, Edit, Missing, Path, applied, dotted, value_at
from offbook.model.errors import InvalidInput

_KINDS: dict[type, str] = {dict: "object", list: "list"}


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
    """As the host reads it, with what it includes."""
    file: dict[str, Any] | None = None
    """As the one file has it that can be written, where that is less."""
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

    def is_elsewhere(self, path: Path) -> bool:
        """Whether it comes from another file, which is not ours to change."""
        own = [value_at(self.config if self.file is None else self.file, path[:length]) for length in range(len(path))]
        return any(isinstance(one, dict) and "$include" in one for one in own)

    def _change(self, path: Path, before: Any, after: Any, why: str) -> None:
        for length in range(len(path)):
            own = value_at(self.config if self.file is None else self.file, path[:length])
            holder = value_at(self.config, path[:length])
            if isinstance(own, dict) and "$include" in own:
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


# ── The plugin's tools for agents whose tool profile shuts out what it does not name (`tools.alsoAllow`) ──


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


# ── A configuration and what is wished of it ──
# Which changes that takes, and no other.


Level = Literal["off", "capture", "recall", "hot-swap"]
LEVELS: tuple[Level, ...] = ("off", "capture", "recall", "hot-swap")
PLUGIN = "offbook"
MEMORY_PLUGIN = "offbook-memory"
ENTRY: Path = ("plugins", "entries", PLUGIN)
INJECTION: Path = (*ENTRY, "hooks", "allowPromptInjection")
PRECHECK: Path = ("agents", "defaults", "compaction", "midTurnPrecheck", "enabled")
MCP_SERVER: Path = ("mcp", "servers", PLUGIN)
SLOTS = {"contextEngine": PLUGIN, "memory": MEMORY_PLUGIN}
FREE_SLOTS = {"contextEngine": ("legacy", ""), "memory": ("none", "memory-core", "")}
"""What the host's own parts are called in a slot: to replace these takes nothing from another plugin."""


@dataclass(frozen=True)
class Wishes:
    """None: as it is. MISSING: as the plugin has it by itself. `plugin_folder` None: the host has it installed."""

    level: Level
    plugin_folder: str | None = None
    home: str | Missing | None = None
    endpoint: str | Missing | None = None
    command: str | None = None
    start_daemon: bool | None = None
    host_model: bool | None = None
    memory_folder: str | Missing | None = None
    mcp_command: str | None = None
    take_slot: bool = False
    slots_before: Mapping[str, Any] = field(default_factory=dict)
    """Who had a slot before us, where that is known; MISSING where nobody was named."""
    injection_before: Any = None
    """What allowPromptInjection was before a level of ours needed it; None where that is not known."""
    precheck_before: Any = None
    """The same of midTurnPrecheck."""


def planned(
    config: dict[str, Any], wishes: Wishes, our_paths: Mapping[str, str], file: dict[str, Any] | None = None
) -> Plan:
    """`our_paths`: those of `plugins.load.paths` that lead to a plugin of ours, as written there, and its name.

    `file` has the `$include`s that are resolved in `config`.
    """
    plan = Plan(config, file)
    if wishes.level == "off":
        _undo(plan, wishes, our_paths)
    else:
        _let_in(plan, wishes, our_paths)
        _grant(plan, wishes)
        _configure(plan, wishes)
        _precheck(plan, wishes)
        _engine_slot(plan, wishes)
        allow_tools(plan)
        if isinstance(wishes.memory_folder, str):
            _memory_slot(plan, wishes, wishes.memory_folder, our_paths)
        elif wishes.memory_folder is MISSING:
            _undo_memory_slot(plan, wishes, our_paths)
        if wishes.mcp_command is not None:
            _serve_tools(plan, wishes.mcp_command)
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
        plan.put(INJECTION, True, "so that what comes to mind reaches the model")
    elif value_at(plan.config, INJECTION) is True and wishes.injection_before is MISSING:
        plan.take(INJECTION, "this level puts nothing into a request")
    elif value_at(plan.config, INJECTION) is True and wishes.injection_before is False:
        plan.put(INJECTION, False, "as it was before")


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
        if isinstance(value, Missing):
            plan.take((*settings, name), f"{why}: the usual one")
        elif value is not None:
            plan.put((*settings, name), value, why)
    _lend_models(plan, wishes)


def _lend_models(plan: Plan, wishes: Wishes) -> None:
    """With several agents the host lets a plugin use each one's model only where that is said."""
    override: Path = (*ENTRY, "llm", "allowAgentIdOverride")
    if wishes.host_model and len(_agents(plan.config)) > 1:
        plan.put(override, True, "so that each agent's memory is written by its own model")
    elif wishes.host_model is False and value_at(plan.config, override) is not MISSING:
        plan.take(override, "no agent's model is asked")
        plan.prune(override[:-1])


def _agents(config: dict[str, Any]) -> list[Any]:
    listed, named = (value_at(config, ("agents", part)) for part in ("list", "entries"))
    return [*(listed if isinstance(listed, list) else ()), *(named if isinstance(named, dict) else ())]


def _engine_slot(plan: Plan, wishes: Wishes) -> None:
    slot: Path = ("plugins", "slots", "contextEngine")
    holder = value_at(plan.config, slot)
    if wishes.level == "hot-swap":
        _take_slot(plan, wishes, "contextEngine", PLUGIN)
    elif holder == PLUGIN:
        _give_back(plan, "contextEngine", wishes.slots_before)


def _precheck(plan: Plan, wishes: Wishes) -> None:
    """Else the host sends whatever a turn's tools have brought, until the model refuses it."""
    held, engine = (value_at(plan.config, path) for path in (PRECHECK, ("plugins", "slots", "contextEngine")))
    if plan.is_elsewhere(PRECHECK):
        if wishes.level == "hot-swap" and held is MISSING:
            plan.notes.append(f"{dotted(PRECHECK)} is not set: where its file is, set it to true by hand")
    elif wishes.level == "hot-swap" and held is MISSING:
        plan.put(PRECHECK, True, "so that room is made within a turn whose tools fill the window")
    elif wishes.level != "hot-swap" and engine == PLUGIN and held is True and wishes.precheck_before in (MISSING, None):
        plan.take(PRECHECK, "undone")
        plan.prune(PRECHECK[:-1])


def _memory_slot(plan: Plan, wishes: Wishes, folder: str, our_paths: Mapping[str, str]) -> None:
    _allow(plan, MEMORY_PLUGIN)
    paths: Path = ("plugins", "load", "paths")
    plan.add_item(paths, folder, "where the memory plugin is")
    for other, plugin in our_paths.items():
        if plugin == MEMORY_PLUGIN and other != folder:
            plan.take_item(paths, other, "another copy of the memory plugin")
    plan.put(("plugins", "entries", MEMORY_PLUGIN, "enabled"), True, "the memory plugin is on")
    _take_slot(plan, wishes, "memory", MEMORY_PLUGIN)


def _take_slot(plan: Plan, wishes: Wishes, slot: str, plugin: str) -> None:
    path: Path = ("plugins", "slots", slot)
    holder = value_at(plan.config, path)
    if holder not in (MISSING, None, plugin, *FREE_SLOTS[slot]) and not wishes.take_slot:
        plan.obstacles.append(f"{dotted(path)} is {holder!r}, another plugin's: --take-slot gives it to {plugin}")
        return
    plan.put(path, plugin, f"which plugin has the {slot} slot")


def _serve_tools(plan: Plan, command: str) -> None:
    """`offbook mcp`, asking the provider that the plugin asks."""
    arguments = ["mcp"]
    for option, name in (("--home", "home"), ("--url", "endpoint")):
        value = value_at(plan.config, (*ENTRY, "config", name))
        arguments += [option, value] if isinstance(value, str) else []
    plan.put(MCP_SERVER, {"command": command, "args": arguments}, "tools for agents over MCP")


def _undo(plan: Plan, wishes: Wishes, our_paths: Mapping[str, str]) -> None:
    why = "undone"
    _precheck(plan, wishes)
    if value_at(plan.config, ("plugins", "slots", "contextEngine")) == PLUGIN:
        _give_back(plan, "contextEngine", wishes.slots_before)
    _undo_memory_slot(plan, wishes, our_paths)
    disallow_tools(plan)
    _unload(plan, PLUGIN, our_paths)
    if wishes.plugin_folder is None and value_at(plan.config, ENTRY) is not MISSING:
        plan.put(ENTRY, {"enabled": False}, "the plugin is off")
        plan.notes.append("the plugin itself is still installed: `openclaw plugins uninstall offbook` removes it")
    elif value_at(plan.config, ENTRY) is not MISSING:
        plan.take(ENTRY, why)
        plan.prune(ENTRY[:-1])
    _disallow(plan, PLUGIN)
    server = value_at(plan.config, MCP_SERVER)
    arguments = server.get("args") if isinstance(server, dict) else None
    if isinstance(arguments, list) and arguments[:1] == ["mcp"]:
        plan.take(MCP_SERVER, why)
        plan.prune(MCP_SERVER[:-1])


def _undo_memory_slot(plan: Plan, wishes: Wishes, our_paths: Mapping[str, str]) -> None:
    entry: Path = ("plugins", "entries", MEMORY_PLUGIN)
    if value_at(plan.config, ("plugins", "slots", "memory")) == MEMORY_PLUGIN:
        _give_back(plan, "memory", wishes.slots_before)
    _unload(plan, MEMORY_PLUGIN, our_paths)
    if value_at(plan.config, entry) is not MISSING:  # else what is empty there is somebody else's
        plan.take(entry, "undone")
        plan.prune(entry[:-1])
    _disallow(plan, MEMORY_PLUGIN)


def _unload(plan: Plan, plugin: str, our_paths: Mapping[str, str]) -> None:
    paths: Path = ("plugins", "load", "paths")
    for path in [path for path, name in our_paths.items() if name == plugin]:
        plan.take_item(paths, path, "undone")
        plan.prune(paths)


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
