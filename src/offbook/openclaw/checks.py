"""Is the host configured so that turns go through Offbook, and which copies of the plugin does it have?"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from offbook.api.doctor.finding import Finding
from offbook.client.config_files.editing import MISSING, dotted, value_at, written
from offbook.client.config_files.editing import Path as ConfigPath
from offbook.client.history.databases import connected, is_in_use
from offbook.model.errors import NotFound
from offbook.openclaw.changes import ENTRY, INJECTION, LEVELS, MEMORY_PLUGIN, PLUGIN, PRECHECK, Level

CONVERSATION: ConfigPath = (*ENTRY, "hooks", "allowConversationAccess")
ENGINE_SLOT: ConfigPath = ("plugins", "slots", "contextEngine")
MEMORY_SLOT: ConfigPath = ("plugins", "slots", "memory")
MEMORY_ENTRY: ConfigPath = ("plugins", "entries", MEMORY_PLUGIN)


def setting(path: ConfigPath, value: Any) -> str:
    """The command that sets it; what it writes is that line of the file."""
    return f"openclaw config set {dotted(path)} {shlex.quote(value if isinstance(value, str) else written(value))}"


def level_of(config: dict[str, Any]) -> Level:
    """As the plugin reads it: `enabled` and `storeOnly` are the older plugin's names."""
    given = value_at(config, (*ENTRY, "config"))
    if not isinstance(given, dict) or given.get("enabled") is False:
        return "off"
    if given.get("storeOnly") is True:
        return "capture"
    return next((level for level in LEVELS if level == given.get("level")), "off")


def check_level(config: dict[str, Any]) -> Finding:
    level = level_of(config)
    given = value_at(config, (*ENTRY, "config", "level"))
    if given not in (MISSING, *LEVELS):
        what = f"{dotted((*ENTRY, 'config', 'level'))} is {given!r}: the host refuses the file"
        return Finding(check="level", level="fail", what=what, mend="offbook openclaw setup --level capture")
    if level == "off":
        mend = "offbook openclaw setup --level capture (or recall, or hot-swap)"
        return Finding(check="level", level="fail", what="off: nothing is recorded, nothing is recalled", mend=mend)
    return Finding(check="level", level="ok", what=level)


def check_enabled(config: dict[str, Any]) -> Finding:
    """Every way in which the host keeps a plugin out."""
    plugins = value_at(config, ("plugins",))
    plugins = plugins if isinstance(plugins, dict) else {}
    faults: list[tuple[str, str]] = []
    if plugins.get("enabled") is False:
        faults.append(("plugins.enabled is false: no plugin loads", setting(("plugins", "enabled"), True)))
    if PLUGIN in _names(plugins, "deny"):
        faults.append((f"plugins.deny names {PLUGIN}", f"take {PLUGIN!r} out of plugins.deny"))
    allowed = _names(plugins, "allow")
    if allowed and PLUGIN not in allowed:
        faults.append((f"plugins.allow does not name {PLUGIN}", setting(("plugins", "allow"), [*allowed, PLUGIN])))
    enabled = value_at(config, (*ENTRY, "enabled"))
    if enabled is not True:
        what = f"{dotted((*ENTRY, 'enabled'))} is {'missing' if enabled is MISSING else written(enabled)}"
        faults.append((what, setting((*ENTRY, "enabled"), True)))
    if faults:
        what, mend = ("\n".join(parts) for parts in zip(*faults, strict=True))
        return Finding(check="plugin", level="fail", what=what, mend=mend.replace("\n", "; "))
    return Finding(check="plugin", level="ok", what="enabled and allowed")


def _names(plugins: dict[str, Any], key: str) -> list[Any]:
    names = plugins.get(key)
    return names if isinstance(names, list) else []


def check_files(copies: list[Copy]) -> Finding:
    """Does the host find the plugin, once, and is it built?"""
    ours = {copy.folder: copy for copy in copies if copy.plugin == PLUGIN}
    if not ours:
        mend = "offbook openclaw setup, with --plugin DIR where the plugin is not beside Offbook"
        what = "neither installed nor in plugins.load.paths: the host cannot find it"
        return Finding(check="files", level="fail", what=what, mend=mend)
    for folder, copy in ours.items():
        if copy.is_gone:
            what = f"{folder} is gone: the host goes on without the plugin, and only warns"
            mend = "offbook openclaw setup, which writes where the plugin is now"
            return Finding(check="files", level="fail", what=what, mend=mend)
        if not copy.is_built:
            mend = f"npm run build in {folder}, or install a released plugin"
            return Finding(check="files", level="fail", what=f"{folder / BUILT} is not there", mend=mend)
    if len(ours) > 1:
        mend = "keep one: take the others out of plugins.load.paths, or `openclaw plugins uninstall offbook`"
        what = "the host finds more than one copy: " + ", ".join(map(str, ours))
        return Finding(check="files", level="warn", what=what, mend=mend)
    (copy,) = ours.values()
    how = "installed" if copy.written is None else "loaded from"
    return Finding(check="files", level="ok", what=f"{how} {copy.folder}")


def check_permissions(config: dict[str, Any]) -> list[Finding]:
    """Without these the host blocks the plugin's hooks, and tells its log only."""
    level = level_of(config)
    findings: list[Finding] = []
    if value_at(config, CONVERSATION) is not True:
        what = f"{dotted(CONVERSATION)} is not true: the host keeps turns from the plugin"
        findings.append(Finding(check="permissions", level="fail", what=what, mend=setting(CONVERSATION, True)))
    if level in ("recall", "hot-swap") and value_at(config, INJECTION) is False:
        what = f"{dotted(INJECTION)} is false: what comes to mind never reaches the model"
        findings.append(Finding(check="permissions", level="fail", what=what, mend=setting(INJECTION, True)))
    return findings or [Finding(check="permissions", level="ok", what="the plugin may see turns")]


def check_slot(config: dict[str, Any]) -> Finding:
    """Who has the context: us at hot-swap, and only then."""
    level, holder = level_of(config), value_at(config, ENGINE_SLOT)
    plugin_report = "the host's own" if holder in (MISSING, None, "", "legacy") else repr(holder)
    if level == "hot-swap" and holder != PLUGIN:
        what = f"{dotted(ENGINE_SLOT)} is {plugin_report}: contexts are made without Offbook"
        return Finding(check="slot", level="fail", what=what, mend=setting(ENGINE_SLOT, PLUGIN))
    if level != "hot-swap" and holder == PLUGIN:
        mend = f"openclaw config unset {dotted(ENGINE_SLOT)}, or offbook openclaw setup --level hot-swap"
        what = f"{dotted(ENGINE_SLOT)} is {plugin_report}, but at level {level} the plugin has no engine"
        return Finding(check="slot", level="fail", what=what, mend=mend)
    if level == "hot-swap" and value_at(config, PRECHECK) is not True:
        what = f"{dotted(PRECHECK)} is not true: a turn whose tools bring more than the window holds is refused"
        return Finding(check="slot", level="warn", what=what, mend=setting(PRECHECK, True))
    return Finding(
        check="slot", level="ok", what="Offbook" if holder == PLUGIN else f"{plugin_report}, as level {level} wants it"
    )


def check_memory_slot(config: dict[str, Any], copies: list[Copy]) -> list[Finding]:
    """Where the second plugin is set up: does it answer for the host's memory?"""
    entry, holder = value_at(config, MEMORY_ENTRY), value_at(config, MEMORY_SLOT)
    is_enabled = isinstance(entry, dict) and entry.get("enabled") is True
    if not is_enabled and holder != MEMORY_PLUGIN:
        return []
    allowed = _names(config["plugins"], "allow")
    faults: list[tuple[str, str]] = []
    if holder != MEMORY_PLUGIN:
        plugin_report = "the host's own" if holder in (MISSING, None, "") else repr(holder)
        what = f"{dotted(MEMORY_SLOT)} is {plugin_report}: memory_search and memory_get are answered without Offbook"
        faults.append((what, f"{setting(MEMORY_SLOT, MEMORY_PLUGIN)}, or offbook openclaw setup … --no-memory-slot"))
    if not is_enabled:
        path = (*MEMORY_ENTRY, "enabled")
        faults.append((f"{dotted(path)} is not true, but the memory slot is its own", setting(path, True)))
    if allowed and MEMORY_PLUGIN not in allowed:
        mend = setting(("plugins", "allow"), [*allowed, MEMORY_PLUGIN])
        faults.append((f"plugins.allow does not name {MEMORY_PLUGIN}", mend))
    if MEMORY_PLUGIN in _names(config["plugins"], "deny"):
        faults.append((f"plugins.deny names {MEMORY_PLUGIN}", f"take {MEMORY_PLUGIN!r} out of plugins.deny"))
    if not any(copy.plugin == MEMORY_PLUGIN for copy in copies):
        what = f"no path of plugins.load.paths leads to {MEMORY_PLUGIN}: the host cannot find it"
        faults.append((what, "offbook openclaw setup … --memory-slot"))
    if faults:
        what, mend = ("\n".join(parts) for parts in zip(*faults, strict=True))
        return [Finding(check="memory slot", level="fail", what=what, mend=mend.replace("\n", "; "))]
    return [Finding(check="memory slot", level="ok", what="Offbook")]


# ── Where our plugin is ──
# In the host's hands, in a folder that it loads from, or beside this package.


MANIFEST = "openclaw.plugin.json"
BUILT = Path("dist", "index.js")
MEMORY_FOLDER = "memory-slot"
_PACKAGE = Path(__file__).parents[1]
_IN_PACKAGE = ("offbook", "hosts", "openclaw", "plugin")
"""Configurations of hosts name this folder, so it stays where it was, whatever becomes of the modules around it."""
_BESIDE = (_PACKAGE.parent.joinpath(*_IN_PACKAGE), _PACKAGE.parents[1] / "plugins" / "openclaw")
"""In the package that was installed (`setup.py` puts it there), or in a checkout."""


@dataclass(frozen=True)
class Copy:
    """A copy that the host finds. `written` is its path as the configuration has it, None where it is installed."""

    plugin: str
    folder: Path
    written: str | None

    @property
    def is_built(self) -> bool:
        return (self.folder / BUILT).is_file()

    @property
    def is_gone(self) -> bool:
        return _is_gone(self.folder)


def plugin_in(path: Path) -> str | None:
    """The name in the manifest of the folder, or of the folder of a file."""
    for folder in (path, path.parent, path.parent.parent):
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
        except (OSError, ValueError):
            continue
        name = manifest.get("id") if isinstance(manifest, dict) else None
        return name if isinstance(name, str) else None
    return None


def loaded_copies(config: dict[str, Any], config_folder: Path) -> list[Copy]:
    """Those that `plugins.load.paths` leads to, and those that were ours and are gone."""
    found: list[Copy] = []
    paths = value_at(config, ("plugins", "load", "paths"))
    for listed in paths if isinstance(paths, list) else []:
        if not isinstance(listed, str):
            continue
        path = (config_folder / Path(listed).expanduser()).resolve()
        name = plugin_in(path)
        if name in (PLUGIN, MEMORY_PLUGIN):
            found.append(Copy(name, path if path.is_dir() else path.parent, listed))
        elif _is_gone(path) and (shipped := _shipped_as(path)) is not None:
            found.append(Copy(shipped, path, listed))
    return found


def _is_gone(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # not for us to see, which is not to say that the host does not see it
        return False
    return False


def _shipped_as(path: Path) -> str | None:
    """Which of ours was there. The folder of an installed package goes with its environment, or with a newer Python;
    the host then goes on without the plugin, and only warns."""
    if path.parts[-len(_IN_PACKAGE) :] == _IN_PACKAGE:
        return PLUGIN
    inner = (*_IN_PACKAGE, MEMORY_FOLDER)
    return MEMORY_PLUGIN if path.parts[-len(inner) :] == inner else None


def installed_copy(state: Path) -> Copy | None:
    """What `openclaw plugins install` put in place, by its records or in the folder it installs to."""
    places = [state / "extensions" / PLUGIN]
    if recorded := _recorded(state / "state" / "openclaw.sqlite"):
        places.insert(0, recorded)
    for folder in places:
        if plugin_in(folder) == PLUGIN and (folder / MANIFEST).is_file():
            return Copy(PLUGIN, folder, None)
    return None


def _recorded(database: Path) -> Path | None:
    if not database.is_file():
        return None
    try:
        connection = connected(database, is_immutable=not is_in_use(database))
        try:
            rows = connection.execute("SELECT * FROM config_machine_state").fetchall()
        finally:
            connection.close()
        index: Any = next((json.loads(str(row[1])) for row in rows if row[0] == "plugins.installedIndex"), {})
    except (apsw.Error, OSError, ValueError, TypeError):
        return None  # a host of another time: the folder it installs to tells as well
    path = value_at(index, ("index", "installRecords", PLUGIN, "installPath"))
    return Path(path) if isinstance(path, str) else None


def chosen_folder(given: str | None, loaded: list[Copy]) -> str:
    """The path to write: the one named, else the one that is there already, else ours. Raises NotFound."""
    known = [copy.folder for copy in loaded if copy.plugin == PLUGIN and not copy.is_gone] or _BESIDE
    candidates = known if given is None else [Path(given).expanduser()]
    for candidate in candidates:
        folder = candidate.resolve()
        if plugin_in(folder) == PLUGIN and (folder / MANIFEST).is_file():
            if not (folder / BUILT).is_file():  # the host refuses its whole configuration over that
                raise NotFound(f"{folder} is not built, {BUILT} is missing: run `npm run build` there first")
            same = next((copy.written for copy in loaded if copy.folder == folder), None)
            return same or str(folder)
    if given is not None:
        raise NotFound(f"{given} holds no {MANIFEST} of {PLUGIN!r}: --plugin takes the folder of the plugin")
    raise NotFound(
        "the plugin is not beside this package: name its folder with --plugin DIR; a checkout of Offbook has it in "
        "plugins/openclaw"
    )


def memory_folder(plugin_folder: Path) -> str:
    """The second plugin, for the memory slot. Raises NotFound."""
    folder = plugin_folder / MEMORY_FOLDER
    if plugin_in(folder) != MEMORY_PLUGIN or not (folder / MANIFEST).is_file():
        raise NotFound(f"{plugin_folder} has no {MEMORY_FOLDER} folder with a plugin {MEMORY_PLUGIN!r}")
    return str(folder)
