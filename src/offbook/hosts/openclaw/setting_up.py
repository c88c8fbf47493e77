"""`offbook openclaw setup`, up to the moment where somebody has to agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from offbook.hosts.openclaw.changes import ENTRY, PLUGIN, SLOTS, Plan, Wishes, planned
from offbook.hosts.openclaw.config_file import ConfigFile, backups, diff, read
from offbook.hosts.openclaw.editing import edited, value_at
from offbook.hosts.openclaw.plugin_folder import chosen_folder, installed_copy, loaded_copies, memory_folder

_READ_ONLY = ("OPENCLAW_CONFIG_READONLY", "OPENCLAW_NIX_MODE")


@dataclass(frozen=True)
class Prepared:
    """`text` is what the file would hold; the same as it holds where nothing is to do, or something is in the way."""

    file: ConfigFile
    plan: Plan
    text: str

    @property
    def diff(self) -> list[str]:
        return diff(self.file, self.text)


def prepare(
    path: Path,
    state: Path,
    wishes: Wishes,
    environ: Mapping[str, str],
    *,
    plugin: str | None = None,
    memory_slot: bool = False,
) -> Prepared:
    """`plugin`: the folder that was named. Raises InvalidInput, NotFound, OSError."""
    file = read(path)
    loaded = loaded_copies(file.config, file.path.parent)
    installed = installed_copy(state) if plugin is None else None
    is_loaded = any(copy.plugin == PLUGIN for copy in loaded)
    if wishes.level == "off":
        wishes = replace(wishes, plugin_folder=None if installed is not None and not is_loaded else "")
    elif installed is None or is_loaded:
        wishes = replace(wishes, plugin_folder=chosen_folder(plugin, loaded))
    if memory_slot and wishes.level != "off":
        named = wishes.plugin_folder
        folder = installed.folder if installed is not None else Path(named or "").expanduser()
        wishes = replace(wishes, memory_folder=memory_folder(file.path.parent / folder))
    wishes = replace(wishes, slots_before=_slots_before(file.path))
    plan = planned(file.config, wishes, {copy.written: copy.plugin for copy in loaded if copy.written is not None})
    for variable in _READ_ONLY:
        if plan.changes and environ.get(variable) == "1":
            plan.obstacles.append(f"{variable}=1 says that the file is not to be written: change it where it is made")
    return Prepared(file, plan, file.text if plan.obstacles else edited(file.text, plan.edits))


def _slots_before(path: Path) -> dict[str, Any]:
    """Who had each slot when we last did not: from the backups."""
    found: dict[str, Any] = {}
    for config in backups(path):
        for slot, plugin in SLOTS.items():
            holder = value_at(config, ("plugins", "slots", slot))
            if holder != plugin:
                found.setdefault(slot, holder)
    return found


def next_steps(prepared: Prepared) -> list[str]:
    """What to do after it is written."""
    if value_at(prepared.file.config, ("gateway", "reload", "mode")) == "off":
        take = "gateway.reload.mode is off, so run: openclaw gateway restart"
    else:
        take = "a running gateway takes it by itself, within seconds; if it does not: openclaw gateway restart"
    steps = [take, "check the file with: openclaw config validate"]
    if value_at(prepared.plan.config, (*ENTRY, "enabled")) is True:
        steps.append("then say something to an agent, and: offbook openclaw doctor")
    return steps
