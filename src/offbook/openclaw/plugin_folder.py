"""Where our plugin is: in the host's hands, in a folder that it loads from, or beside this package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from offbook.client.config_files.editing import value_at
from offbook.client.history.databases import connected, is_in_use
from offbook.model.errors import NotFound
from offbook.openclaw.changes import MEMORY_PLUGIN, PLUGIN

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
    for written in paths if isinstance(paths, list) else []:
        if not isinstance(written, str):
            continue
        path = (config_folder / Path(written).expanduser()).resolve()
        name = plugin_in(path)
        if name in (PLUGIN, MEMORY_PLUGIN):
            found.append(Copy(name, path if path.is_dir() else path.parent, written))
        elif _is_gone(path) and (shipped := _shipped_as(path)) is not None:
            found.append(Copy(shipped, path, written))
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
