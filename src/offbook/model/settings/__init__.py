"""Every setting there is: its name, type, bounds, default and description.

The names are camelCase and dotted (`memory.compaction.threshold`), as in the documents that people come
from. Later wins: defaults, `config.toml` of the data folder, the environment, flags. What `config.toml`
says of one agent in `[agents.NAME]` wins over all of these for that agent, because it is the narrower word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from offbook.model.errors import SettingsError
from offbook.model.home import SHARED_HOME
from offbook.model.keys import SECRET_VARIABLES
from offbook.model.settings.sections import (
    Anchors,
    Archive,
    Backup,
    Compaction,
    ContextBudget,
    Count,
    Embedding,
    Encryption,
    InjectionBudget,
    Lessons,
    Log,
    Maintenance,
    MemoryProvider,
    Name,
    Outbox,
    Positive,
    Redaction,
    Rerank,
    Search,
    Server,
    SessionSilence,
    Share,
    StoreSettings,
    Summarizer,
    TokenBudget,
    TopicTracking,
    Ttl,
    TurnSettings,
    Wiki,
)
from offbook.model.settings.sources import Catalogue, Given, Reading, dotted, read_toml, unknown
from offbook.model.settings.values import as_text, replaced, shown, without_password
from offbook.model.types import MAX_AGENT_BYTES, Value

CONFIG_FILE = "config.toml"
RESERVED_VARIABLES = frozenset(
    {"OFFBOOK_HOME", "OFFBOOK_TOKEN", "OFFBOOK_SOCKET", "OFFBOOK_AGENT", "OFFBOOK_CLIENT", "OFFBOOK_URL", SHARED_HOME}
    | SECRET_VARIABLES
)
SHORT_NAMES = {"port": "server.port"}
PROVIDER_WIDE_GROUPS = frozenset(
    {"server", "store", "log", "embedding", "summarizer", "rerank", "maintenance", "backup", "encryption"}
)
"""One process, one port, one store, one log and one model serve all agents, so no agent has its own."""

MACHINE_GROUPS = frozenset({"server", "store", "log", "maintenance", "backup", "encryption"})
"""How this machine serves: no concern of an agent's."""


class Settings(Value, frozen=True):
    """What the provider goes by. `for_agent` gives what it goes by for one agent."""

    enabled: Annotated[bool, Meta(description="The master switch: off, nothing is recorded, injected or swapped.")] = (
        True
    )
    default_agent: Annotated[Name, Meta(description="The agent of commands that name none.")] = "main"
    cross_search_enabled: Annotated[bool, Meta(description="Search the memory of other agents too.")] = False
    store_only: Annotated[bool, Meta(description="Store everything, inject nothing.")] = False
    min_score: Annotated[
        Share,
        Meta(description="Least cosine similarity of what comes to mind, where `search.qualifies` goes by it (A2)."),
    ] = 0.4
    prune_threshold: Annotated[Positive, Meta(description="Hot chunks above which the oldest go cold.")] = 500
    prune_keep: Annotated[Count, Meta(description="Newest hot chunks that stay then.")] = 400

    chunk_tokens: Annotated[Positive, Meta(description="Least tokens that make an L1 summary.")] = 6000
    summary_target_tokens: Annotated[Positive, Meta(description="Tokens a summary aims at.")] = 2000
    merge_threshold: Annotated[
        int, Meta(ge=2, description="Summaries of one level that merge into one of the next.")
    ] = 6
    pruning_boundary_tokens: Annotated[
        Count, Meta(description="Newest tokens of an active session that are not summarised.")
    ] = 30_000
    worker_interval: Annotated[
        timedelta,
        Meta(description="How often the worker looks for work.", extra={"at_least": timedelta(seconds=1)}),
    ] = timedelta(minutes=5)
    max_levels: Annotated[int, Meta(ge=1, le=9, description="Levels of summaries.")] = 3
    summary_files: Annotated[
        bool, Meta(description="Write summaries to files as well, under summaries in the data folder.")
    ] = True
    model: Annotated[str | None, Meta(description="Model that summarises; null is the agent's own.")] = None
    injection_budget: InjectionBudget = InjectionBudget()

    memory: MemoryProvider = MemoryProvider()
    context_budget: ContextBudget = ContextBudget()
    anchors: Anchors = Anchors()
    topic_tracking: TopicTracking = TopicTracking()
    compaction: Compaction = Compaction()
    archive: Archive = Archive()
    embedding: Embedding = Embedding()
    search: Search = Search()
    rerank: Rerank = Rerank()
    summarizer: Summarizer = Summarizer()
    session: SessionSilence = SessionSilence()
    token_budget: TokenBudget = TokenBudget()
    turn: TurnSettings = TurnSettings()
    ttl: Ttl = Ttl()
    wiki: Wiki = Wiki()
    lessons: Lessons = Lessons()

    maintenance: Maintenance = Maintenance()
    backup: Backup = Backup()
    encryption: Encryption = Encryption()
    server: Server = Server()
    store: StoreSettings = StoreSettings()
    log: Log = Log()
    outbox: Outbox = Outbox()
    redaction: Redaction = Redaction()

    agents: dict[str, Settings] = msgspec.field(default_factory=dict)
    """Whole settings, already merged, of the agents that have some of their own."""

    def for_agent(self, agent_id: str) -> Settings:
        return self.agents.get(agent_id, self)


LARGEST_STRING = 2**53 - 1
"""More characters than any request has."""


def without_plain_copies(settings: Settings) -> Settings:
    """What an encrypted data folder goes by: no copies for people to read, but where they are wanted knowingly."""
    if settings.encryption.plain_copies:
        return settings
    return msgspec.structs.replace(
        settings,
        summary_files=False,
        wiki=msgspec.structs.replace(settings.wiki, enabled=False),
        agents={agent_id: without_plain_copies(own) for agent_id, own in settings.agents.items()},
    )


def for_nodes(settings: Settings) -> Settings:
    """What one of several nodes goes by: nothing of an agent's is in its data folder alone, since another node may have
    the agent next."""
    return msgspec.structs.replace(
        settings,
        summary_files=False,
        wiki=msgspec.structs.replace(settings.wiki, enabled=False),
        store=msgspec.structs.replace(settings.store, externalise_chars=LARGEST_STRING),
        agents={agent_id: for_nodes(own) for agent_id, own in settings.agents.items()},
    )


class Row(NamedTuple):
    name: str
    value: Any
    origin: str
    description: str


class LoadedSettings(Value, frozen=True):
    """Settings, and who gave each of them."""

    settings: Settings
    origins: dict[str, str] = msgspec.field(default_factory=dict)
    """Of what is not a default, by name; `agents.NAME.` before what one agent has of its own."""

    def origin_of(self, name: str) -> str:
        """`default`, `file <path>`, `environment OFFBOOK_…` or `flag --…`."""
        if name in self.origins:
            return self.origins[name]
        setting = catalogue().find(name.split("."))
        if setting is None:
            raise SettingsError(unknown(name, catalogue().nearest_name(name)))
        return self.origins.get(setting.name, "default")

    def __iter__(self) -> Iterator[Row]:
        """Every setting, then what agents have of their own."""
        for setting in catalogue():
            origin = self.origins.get(setting.name, "default")
            yield Row(setting.name, without_password(setting.value_in(self.settings)), origin, setting.description)
        for agent_id, settings in self.settings.agents.items():
            for setting in catalogue():
                name = _prefix(agent_id) + setting.name
                if name in self.origins:
                    value = without_password(setting.value_in(settings))
                    yield Row(name, value, self.origins[name], setting.description)


@cache
def catalogue() -> Catalogue:
    """Every setting, for the loader, `offbook config` and the reference page."""
    return Catalogue(Settings, short_names=SHORT_NAMES, reserved=RESERVED_VARIABLES)


def as_document(settings: Settings) -> dict[str, Any]:
    """What a host is told of the settings: nested, durations as text; without how this machine serves them."""
    document: dict[str, Any] = {}
    for setting in catalogue():
        *groups, name = setting.name.split(".")
        if groups and groups[0] in MACHINE_GROUPS:
            continue
        value = setting.value_in(settings)
        inner = document
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[name] = as_text(value) if isinstance(value, timedelta) else value
    return document


def told_origins(origins: Mapping[str, str], agent_id: str) -> dict[str, str]:
    """Who gave what of `as_document` is not a default, for one agent: what is its own comes before what is everybody's.
    Of a file and a flag it is told that they are one, without a path."""
    told: dict[str, str] = {}
    for setting in catalogue():
        origin = origins.get(_prefix(agent_id) + setting.name) or origins.get(setting.name)
        if origin is not None and setting.name.split(".")[0] not in MACHINE_GROUPS:
            told[setting.name] = CONFIG_FILE if origin.startswith("file ") else origin
    return told


def load(
    home: Path, *, environ: Mapping[str, str], flags: Mapping[str, object] = MappingProxyType({})
) -> LoadedSettings:
    """The settings of the data folder `home`. SettingsError tells all that is wrong, one line each."""
    problems: list[str] = []
    path = home / CONFIG_FILE
    try:
        table = read_toml(path)
    except SettingsError as error:
        problems.append(error.detail)
        table = {}
    agent_tables = table.pop("agents", {})

    overall = Reading(catalogue(), problems)
    overall.read_table(table, f"file {path}")
    overall.read_environment(environ)
    overall.read_flags(flags)
    by_agent = dict(_read_agents(agent_tables, f"file {path}", problems))

    settings = _with(Settings(), overall.given)
    agents = {agent_id: _with(settings, own.given) for agent_id, own in by_agent.items()}
    problems.extend(_contradictions(settings, overall))
    for agent_id, own in by_agent.items():
        problems.extend(_contradictions(agents[agent_id], overall, own))
    if problems:
        raise SettingsError("\n".join(problems))

    origins = {
        reading.prefix + name: given.origin
        for reading in (overall, *by_agent.values())
        for name, given in reading.given.items()
    }
    return LoadedSettings(settings=msgspec.structs.replace(settings, agents=agents), origins=origins)


def _read_agents(tables: object, origin: str, problems: list[str]) -> Iterator[tuple[str, Reading]]:
    if not isinstance(tables, dict):
        problems.append(f"{origin}: agents = {shown(tables)}: expected a table for each agent")
        return
    for agent_id, table in tables.items():
        name = dotted(("agents", agent_id))
        if not isinstance(table, dict):
            problems.append(f"{origin}: {name} = {shown(table)}: expected a table of settings")
        elif not 0 < len(agent_id.encode()) <= MAX_AGENT_BYTES:
            problems.append(f"{origin}: {name}: expected an agent's name of 1 to {MAX_AGENT_BYTES} bytes")
        else:
            reading = Reading(catalogue(), problems, prefix=_prefix(agent_id), shared_groups=PROVIDER_WIDE_GROUPS)
            reading.read_table(table, origin)
            yield agent_id, reading


def _prefix(agent_id: str) -> str:
    return dotted(("agents", agent_id)) + "."


def _with(settings: Settings, given: Mapping[str, Given]) -> Settings:
    for setting in catalogue():
        if setting.name in given:
            settings = replaced(settings, setting, given[setting.name].value)
    return settings


def _broken_rules(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Two settings that are each right and cannot stand together, and what must hold between them."""
    if settings.prune_keep > settings.prune_threshold:
        yield "pruneKeep", "pruneThreshold", "must be at most"
    if settings.session.new_session_gap < settings.session.interrupted_gap:
        yield "session.newSessionGap", "session.interruptedGap", "must be at least"
    if (settings.server.tls_cert is None) != (settings.server.tls_key is None):
        yield "server.tlsCert", "server.tlsKey", "must come with"


def _contradictions(settings: Settings, overall: Reading, own: Reading | None = None) -> Iterator[str]:
    readings = [overall] if own is None else [own, overall]
    for one, other, rule in _broken_rules(settings):
        if not any(name in readings[0].given for name in (one, other)):
            continue  # already told of the settings that all agents share
        if any(name in reading.refused for reading in readings for name in (one, other)):
            continue  # what was meant is not known
        names = " and ".join(_format_setting(name, settings, readings) for name in (one, other))
        yield f"{readings[0].prefix}{one} {rule} {other}: {names}"


def _format_setting(name: str, settings: Settings, readings: Iterable[Reading]) -> str:
    setting = catalogue().find(name.split("."))
    assert setting is not None
    origin = next((reading.given[name].origin for reading in readings if name in reading.given), "default")
    return f"{name} = {as_text(setting.value_in(settings))} ({origin})"
