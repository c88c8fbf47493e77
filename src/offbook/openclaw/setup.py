"""`offbook openclaw setup`, up to the moment where somebody has to agree."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from offbook.client.config_files.editing import MISSING, edited, parse, value_at
from offbook.client.config_files.file import ConfigFile, backups_of, diff, hindrance, replace_file, thin_out
from offbook.client.endpoint import Endpoint, default_token
from offbook.model.errors import InvalidInput, NotFound, OffbookError, SettingsError
from offbook.model.home import Home
from offbook.model.private_files import write_private
from offbook.model.settings import load
from offbook.openclaw.changes import ENTRY, INJECTION, MEMORY_PLUGIN, PLUGIN, PRECHECK, SLOTS, Plan, Wishes, planned
from offbook.openclaw.checks import chosen_folder, installed_copy, level_of, loaded_copies, memory_folder
from offbook.openclaw.places import named_path, state_folder
from offbook.openclaw.writer import (
    PresentWriter,
    ProviderFile,
    Writer,
    chosen_writer,
    lines_by_hand,
    notes_on,
    present_writer,
    provider_file,
)

_READ_ONLY = ("OPENCLAW_CONFIG_READONLY", "OPENCLAW_NIX_MODE")


@dataclass(frozen=True)
class Prepared:
    """`text` is what the file would hold; the same as it holds where nothing is to do, or something is in the way."""

    file: ConfigFile
    plan: Plan
    text: str
    provider: ProviderFile | None = None
    """Offbook's own settings, where the answer to who writes the memory goes, too."""
    writer: Writer | None = None
    """Who is to write the memory from now on, where that is said."""
    present: PresentWriter | None = None
    """Who writes the memory: as it is, or as it will be with the answer; None where nobody can say."""

    @property
    def is_changed(self) -> bool:
        return bool(self.plan.changes) or (self.provider is not None and self.provider.is_changed)

    def diff(self, *, context: int = 2) -> list[str]:
        """For people to see: without secrets."""
        return diff(self.file, self.text, context=context)


def prepare(
    path: Path,
    state: Path,
    wishes: Wishes,
    environ: Mapping[str, str],
    *,
    plugin: str | None = None,
    memory_slot: bool | None = None,
    writer: Writer | None = None,
) -> Prepared:
    """`plugin`: the folder that was named. `writer`: who is to write the memory; None leaves it as it is. Raises
    InvalidInput, NotFound, SettingsError, OSError."""
    file = read(path)
    config = resolved(file.config, file.path.parent)
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} comes to no object, with what it includes: mend that first")
    loaded = loaded_copies(config, file.path.parent)
    installed = installed_copy(state) if plugin is None else None
    is_loaded = any(copy.plugin == PLUGIN for copy in loaded)
    if wishes.level == "off":
        wishes = replace(wishes, plugin_folder=None if installed is not None and not is_loaded else "")
    elif installed is None or is_loaded:
        wishes = replace(wishes, plugin_folder=chosen_folder(plugin, loaded))
    if memory_slot is None and any(copy.plugin == MEMORY_PLUGIN and copy.is_gone for copy in loaded):
        memory_slot = True  # it was wanted, and its path has to be written anew
    if memory_slot is False:
        wishes = replace(wishes, memory_folder=MISSING)
    elif memory_slot and wishes.level != "off":
        named = wishes.plugin_folder
        folder = installed.folder if installed is not None else Path(named or "").expanduser()
        wishes = replace(wishes, memory_folder=memory_folder(file.path.parent / folder))
    if writer is not None:
        wishes = replace(wishes, host_model=writer.kind == "host")
    before = _before(file.path)
    wishes = replace(
        wishes, slots_before=before.slots, injection_before=before.injection, precheck_before=before.precheck
    )
    our_paths = {copy.written: copy.plugin for copy in loaded if copy.written is not None}
    plan = planned(config, wishes, our_paths, file.config)
    if plan.changes and (why := hindrance(file.path)) is not None:
        plan.obstacles.append(why)
    for variable in _READ_ONLY:
        if plan.changes and environ.get(variable) == "1":
            plan.obstacles.append(f"{variable}=1 says that the file is not to be written: change it where it is made")
    provider, present = _of_provider(plan, config, writer, environ)
    text = file.text if plan.obstacles else edited(file.text, plan.edits)
    return Prepared(file, plan, text, provider, writer, present)


def _of_provider(
    plan: Plan, config: dict[str, Any], writer: Writer | None, environ: Mapping[str, str]
) -> tuple[ProviderFile | None, PresentWriter | None]:
    """Its file as it would be, where it is on this machine, and who writes. Notes and obstacles go to the plan."""
    if level_of(plan.config) == "off":
        return None, None
    reached = reached_by(plan.config, environ)
    if reached.endpoint.scheme != "unix" and not reached.endpoint.is_loopback:
        if writer is not None:
            lines = lines_by_hand(writer).replace("\n", " / ")
            plan.notes.append(f"the provider {reached.endpoint} is elsewhere: put into its config.toml: {lines}")
        return None, None
    home = Home(reached.home)
    try:
        loaded = load(home.folder, environ=environ)
    except SettingsError as error:
        (plan.notes if writer is None else plan.obstacles).append(error.detail)
        return None, None
    if writer is None:
        return None, present_writer(config, loaded.settings)
    plan.notes += notes_on(writer, loaded.settings, loaded.origin_of("summarizer.order"))
    provider = provider_file(home.config, writer)
    if provider.is_changed and provider.before is not None and (why := hindrance(home.config)) is not None:
        plan.obstacles.append(why)
    return provider, chosen_writer(writer)


def write(prepared: Prepared, at: datetime) -> list[Path]:
    """Returns the backups. Raises OffbookError, OSError."""
    backups = []
    if prepared.plan.changes:
        backups.append(replace_file(prepared.file, prepared.text, at))
        thin_out(prepared.file.path, _before(prepared.file.path).told_by)
    provider = prepared.provider
    if provider is not None and provider.is_changed:
        if provider.before is None:
            Home(provider.path.parent, may_be_shared=True).prepare()  # its provider sees to that
            write_private(provider.path, provider.after)
        else:
            backups.append(replace_file(ConfigFile(provider.path, provider.before, {}), provider.after, at))
            thin_out(provider.path, set())
    return backups


@dataclass
class _Before:
    """What stood there when we had not written it: from the backups, and from which of them."""

    slots: dict[str, Any] = field(default_factory=dict)
    injection: Any = None
    precheck: Any = None
    told_by: set[Path] = field(default_factory=set)


def _before(path: Path) -> _Before:
    found = _Before()
    for backup, config in backups(path):
        for slot, plugin in SLOTS.items():
            holder = value_at(config, ("plugins", "slots", slot))
            if holder != plugin and slot not in found.slots:
                found.slots[slot] = holder
                found.told_by.add(backup)
        if found.injection is None and level_of(config) not in ("recall", "hot-swap"):
            found.injection = value_at(config, INJECTION)
            found.told_by.add(backup)
        if found.precheck is None and level_of(config) != "hot-swap":
            found.precheck = value_at(config, PRECHECK)
            found.told_by.add(backup)
    return found


def next_steps(prepared: Prepared, doctor: str) -> list[str]:
    """What to do after it is written. `doctor`: how to call the one that looks at this very host."""
    if value_at(prepared.plan.config, ("gateway", "reload", "mode")) == "off":
        take = "gateway.reload.mode is off, so run: openclaw gateway restart"
    else:
        take = "a running gateway takes it by itself, within seconds; if it does not: openclaw gateway restart"
    steps = [take, "check the file with: openclaw config validate"] if prepared.plan.changes else []
    if prepared.provider is not None and prepared.provider.is_changed:
        steps.append("start Offbook again, if it runs: it reads config.toml when it starts")
        if prepared.writer is not None and prepared.writer.kind != "none":
            steps.append(
                "what was summarised before: `offbook compress --again --dry-run` says what a better text costs"
            )
    if value_at(prepared.plan.config, (*ENTRY, "enabled")) is True:
        steps.append(f"then say something to an agent, and: {doctor}")
    return steps


# ── The commands that a report names: whoever copies one must reach the provider and the host ──


@dataclass(frozen=True)
class Commands:
    serve: str = "offbook serve"
    import_all: str = "offbook import openclaw"


def commands(home: Path, endpoint: Endpoint, state: Path, environ: Mapping[str, str]) -> Commands:
    """With every option whose usual value is another one than what the plugin uses."""
    options = ["offbook"]
    if home != usual_home() or environ.get("OFFBOOK_HOME"):  # the variable would lead elsewhere
        options += ["--home", str(home)]
    serve = shlex.join([*options, "serve"])
    importing = [*options, "import", "openclaw"]
    if endpoint != socket_of(home):
        serve += f" (it has to answer at {endpoint})"
        importing += ["--url", str(endpoint)]
    if state != state_folder(environ):
        importing += ["--state", str(state)]
    return Commands(serve, shlex.join(importing))


# ── The host's configuration file ──
# Where it is, and what it says.


CONFIG_VARIABLE = "OPENCLAW_CONFIG_PATH"


def config_path(environ: Mapping[str, str]) -> Path:
    """OPENCLAW_CONFIG_PATH, else openclaw.json in the state folder."""
    return named_path(environ, CONFIG_VARIABLE) or state_folder(environ) / "openclaw.json"


def read(path: Path) -> ConfigFile:
    """Raises NotFound or InvalidInput; an OSError where it cannot be opened."""
    real = path.resolve()
    try:
        text = real.read_bytes().decode()
    except FileNotFoundError:
        raise NotFound(
            f"there is no {path}: name the file with --config, or the folder it is in with --state; "
            "where OpenClaw has none yet, `openclaw onboard` writes it"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8: {error}") from None
    try:
        config = parse(text).value
    except InvalidInput as error:
        raise InvalidInput(f"{path}, {error.detail}") from None
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} holds no object")
    return ConfigFile(real, text, config)


def backups(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What the file said before our changes to it, the newest first."""
    for backup in backups_of(path):
        with suppress(OSError, OffbookError):
            yield backup, read(backup).config


# ── A configuration in several files, put together as the host does it. For reading only ──

_DEEPEST = 10
"""The host's own limit."""


def resolved(config: Any, folder: Path, depth: int = 0) -> Any:
    """Every `$include` replaced: files are merged in order, and what stands beside them wins. Raises InvalidInput."""
    if isinstance(config, list):
        return [resolved(item, folder, depth) for item in config]
    if not isinstance(config, dict):
        return config
    beside = {name: resolved(value, folder, depth) for name, value in config.items() if name != "$include"}
    if "$include" not in config:
        return beside
    if depth >= _DEEPEST:
        raise InvalidInput("$include is nested too deep")
    names = config["$include"] if isinstance(config["$include"], list) else [config["$include"]]
    merged: Any = {}
    for name in names:
        merged = _merged(merged, _included(folder / str(name), depth + 1))
    return _merged(merged, beside) if beside else merged


def _included(path: Path, depth: int) -> Any:
    try:
        return resolved(parse(path.read_text(encoding="utf-8")).value, path.parent, depth)
    except (OSError, UnicodeDecodeError, OffbookError) as error:
        raise InvalidInput(f"{path} is included and cannot be read: {error}") from None


def _merged(under: Any, over: Any) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        return under | {name: _merged(under.get(name, {}), value) for name, value in over.items()}
    return over


# ── Which provider the plugin asks, as its own settings in the host's configuration say ──


@dataclass(frozen=True)
class Reached:
    """Where the plugin looks for the provider, the token it shows, and the data folder: as its own settings say."""

    endpoint: Endpoint
    token: str | None
    home: Path


def usual_home() -> Path:
    return Path("~/.offbook").expanduser()


def socket_of(home: Path) -> Endpoint:
    return Endpoint(scheme="unix", path=str(home / "offbook.sock"))


def reached_by(config: dict[str, Any], environ: Mapping[str, str]) -> Reached:
    """Raises InvalidInput for an endpoint that is none."""
    given = value_at(config, (*ENTRY, "config"))
    given = given if isinstance(given, dict) else {}

    def text(name: str) -> str | None:
        value = given.get(name)
        return value.strip() if isinstance(value, str) and value.strip() else None

    home = Path(text("home") or environ.get("OFFBOOK_HOME") or "~/.offbook").expanduser()
    named = text("endpoint") or environ.get("OFFBOOK_URL")
    endpoint = Endpoint.parse(named) if named else socket_of(home)
    token_file = Path(text("tokenFile") or home / "token").expanduser()
    try:
        token: str | None = token_file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        token = default_token(endpoint, {**environ, "OFFBOOK_HOME": str(home)})
    return Reached(endpoint, token, home)
