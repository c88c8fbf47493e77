"""Settings: their names and defaults, where they come from, and what is said when one is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from offbook.model.errors import SettingsError
from offbook.model.settings import PROVIDER_WIDE_GROUPS, RESERVED_VARIABLES, LoadedSettings, Settings, catalogue, load
from offbook.model.settings.sources import snake
from offbook.model.settings.values import LONGEST_DURATION, Setting, as_text, duration

ALL = list(catalogue())
BY_NAME = {setting.name: setting for setting in ALL}
PER_AGENT = [setting for setting in ALL if setting.attributes[0] not in PROVIDER_WIDE_GROUPS]
BOUND_TO_ANOTHER = {
    "pruneKeep",
    "pruneThreshold",
    "session.interruptedGap",
    "session.newSessionGap",
    "server.tlsCert",
    "server.tlsKey",
}
FREE = [setting for setting in ALL if setting.name not in BOUND_TO_ANOTHER]
COMPANIONS = {"server.tlsCert": "server.tlsKey", "server.tlsKey": "server.tlsCert"}

DOCUMENTED: dict[str, Any] = {
    "enabled": True,
    "defaultAgent": "main",
    "crossSearchEnabled": False,
    "storeOnly": False,
    "minScore": 0.4,
    "pruneThreshold": 500,
    "pruneKeep": 400,
    "chunkTokens": 6000,
    "summaryTargetTokens": 2000,
    "mergeThreshold": 6,
    "pruningBoundaryTokens": 30000,
    "workerInterval": timedelta(minutes=5),
    "maxLevels": 3,
    "summaryFiles": True,
    "model": None,
    "injectionBudget.L3": 30000,
    "injectionBudget.L2": 30000,
    "injectionBudget.L1": 30000,
    "memory.provider": "offbook",
    "memory.endpoint": "http://localhost:8770",
    "memory.compaction.strategy": "builtin",
    "memory.compaction.threshold": 0.85,
    "memory.compaction.targetSize": 0.40,
    "contextBudget.contextBudgetRatio": 0.65,
    "contextBudget.recentTurnsAlwaysFull": 5,
    "contextBudget.recentTurnCharLimit": 3000,
    "contextBudget.midTurnCharLimit": 1500,
    "contextBudget.olderTurnCharLimit": 500,
    "contextBudget.memoryShare": 0.06,
    "anchors.enabled": True,
    "anchors.maxAge": timedelta(milliseconds=7200000),
    "anchors.maxCount": 15,
    "anchors.keywords.identity": ("who am i", "what am i", "my name", "i am"),
    "anchors.keywords.contradiction": ("but", "however", "contradict", "conflict"),
    "anchors.keywords.tension": ("problem", "issue", "challenge", "confused", "stuck"),
    "topicTracking.enabled": True,
    "topicTracking.windowSize": 6,
    "topicTracking.fixationThreshold": 3,
    "topicTracking.decayFactor": 0.5,
    "topicTracking.minWordLength": 5,
    "compaction.threshold": 0.80,
    "compaction.fallbackMessages": 20,
    "compaction.taskAwareCompaction": True,
    "archive.archiveDir": "archive",
    "archive.retentionDays": None,
    "archive.batchIndexDelay": timedelta(milliseconds=100),
    "embedding.model": "Xenova/all-MiniLM-L6-v2",
    "embedding.dimensions": 384,
    "embedding.endpoint": None,
    "embedding.apiKeyVariable": "OPENAI_API_KEY",
    "embedding.threads": 1,
    "search.recencyHalfLifeDays": 14,
    "search.recencyWeight": 0.15,
    "search.limit": 30,
    "search.keep": 5,
    "search.qualifies": "probability",
    "search.minProbability": 0.12,
    "search.fallback": "gap",
    "search.deadline": timedelta(milliseconds=300),
    "rerank.reader": None,
    "rerank.endpoint": None,
    "rerank.apiKeyVariable": "RERANK_API_KEY",
    "rerank.deadline": timedelta(seconds=20),
    "rerank.candidates": 50,
    "summarizer.order": ("extractive",),
    "summarizer.endpoint": "http://127.0.0.1:11434/v1",
    "summarizer.apiKeyVariable": "OPENAI_API_KEY",
    "summarizer.anthropicEndpoint": "https://api.anthropic.com",
    "summarizer.anthropicKeyVariable": "ANTHROPIC_API_KEY",
    "summarizer.contextTokens": 128_000,
    "summarizer.timeout": timedelta(minutes=2),
    "summarizer.attempts": 3,
    "summarizer.maxTokensPerDay": 5_000_000,
    "summarizer.maxDollarsPerDay": 1.0,
    "summarizer.dollarsPerMillionInput": 0.0,
    "summarizer.dollarsPerMillionCached": 0.0,
    "summarizer.dollarsPerMillionOutput": 0.0,
    "summarizer.threads": 1,
    "session.interruptedGap": timedelta(milliseconds=7200000),
    "session.newSessionGap": timedelta(milliseconds=21600000),
    "tokenBudget.contextWindow": 200000,
    "tokenBudget.safetyMarginTokens": 12000,
    "tokenBudget.budgetShare": 0.2,
    "tokenBudget.minBudgetTokens": 2000,
    "turn.deadline": timedelta(milliseconds=250),
    "ttl.baseHours": 6,
    "ttl.bumpHours": 2,
    "ttl.maxHours": 48,
    "wiki.enabled": True,
    "wiki.coldPages": True,
    "lessons.enabled": True,
    "lessons.minConfidence": 0.6,
    "lessons.maxInjected": 40,
    "maintenance.interval": timedelta(minutes=5),
    "maintenance.ownProcess": True,
    "backup.everyHours": None,
    "backup.keep": 7,
    "encryption.plainCopies": False,
    "server.host": "127.0.0.1",
    "server.port": 8770,
    "server.tlsCert": None,
    "server.tlsKey": None,
    "server.maxRequestBytes": 16777216,
    "server.maxBufferedBytes": 268435456,
    "server.allowedHosts": (),
    "server.keepAliveSeconds": 300,
    "store.externaliseChars": 65536,
    "store.readers": 2,
    "store.maxQueuedWrites": 10000,
    "store.url": None,
    "store.nodeUrl": None,
    "store.lease": timedelta(seconds=15),
    "log.level": "info",
    "log.format": "auto",
    "outbox.maxBytes": 268435456,
    "redaction.enabled": True,
    "redaction.personalNumbers": False,
}


def config(home: Path, text: str) -> Path:
    path = home / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def nested(path: tuple[str, ...], value: object) -> dict[str, Any]:
    first, *rest = path
    return {first: nested(tuple(rest), value) if rest else value}


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(one)
    for key, value in other.items():
        both[key] = merged(both[key], value) if isinstance(both.get(key), dict) else value
    return both


def as_toml(value: object) -> object:
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    return list(value) if isinstance(value, tuple) else value


def other_value(setting: Setting) -> Any:
    """A value that is right and is not the default."""
    match setting.kind, setting.default:
        case inspect.LiteralType(values=values), default:
            return next(value for value in values if value != default)
        case inspect.VarTupleType(), _:
            return ("one", "two words")
        case _, None:
            return 90 if isinstance(setting.kind, inspect.IntType) else "something"
        case _, bool(default):
            return not default
        case _, int(default):
            return default + 1
        case _, float(default):
            return default / 2
        case _, timedelta() as default:
            return default + timedelta(seconds=1, milliseconds=5)
        case _, str(default):
            return default + "-other"
    raise AssertionError(setting.name)


def with_companion(setting: Setting) -> list[Setting]:
    companion = COMPANIONS.get(setting.name)
    return [setting] if companion is None else [setting, BY_NAME[companion]]


def problems(home: Path, *, environ: Mapping[str, str] = {}, flags: Mapping[str, object] = {}) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(home, environ=environ, flags=flags)
    return caught.value.detail.split("\n")


def values_of(setting: Setting) -> st.SearchStrategy[Any]:
    match setting.kind:
        case inspect.BoolType():
            values: st.SearchStrategy[Any] = st.booleans()
        case inspect.IntType(ge=low, le=high):
            values = st.integers(low, high or 2**63 - 1)
        case inspect.FloatType(ge=low, le=high):
            values = st.floats(low, high, allow_nan=False, allow_infinity=False)
        case inspect.TimeDeltaType():
            values = st.timedeltas(max(setting.at_least, timedelta()), LONGEST_DURATION)
        case inspect.LiteralType(values=choices):
            values = st.sampled_from(choices)
        case inspect.VarTupleType():
            values = st.lists(plain_text()).map(tuple)
        case _:
            values = plain_text()
    return st.none() | values if setting.is_optional else values


def plain_text() -> st.SearchStrategy[str]:
    """Text that the environment keeps as it is: no comma, no space at an end, no word for nothing."""
    words = st.text("abcxyz059äñ/:._- ", min_size=1, max_size=20).map(str.strip)
    return words.filter(lambda text: text not in {"", "null", "none"})


# ── names and defaults ────────────────────────────────────────────────────────────────────────


def test_names_and_defaults_are_the_documents() -> None:
    assert {setting.name: setting.value_in(Settings()) for setting in ALL} == DOCUMENTED


def test_a_data_folder_without_a_file_has_the_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path, environ={})
    assert loaded.settings == Settings()
    assert {row.origin for row in loaded} == {"default"}


def test_loading_writes_nothing(tmp_path: Path) -> None:
    load(tmp_path / "nowhere", environ={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_each_setting_is_described_and_its_default_is_right(setting: Setting) -> None:
    assert setting.description.endswith(".")
    assert "\n" not in setting.description
    assert setting.checked(as_text(setting.default), is_text=True) == setting.default
    assert tuple(map(snake, setting.name.split("."))) == setting.attributes


def test_no_variable_stands_for_two_things() -> None:
    variables = [setting.environment_name for setting in ALL]
    assert len(set(variables)) == len(variables)
    assert not RESERVED_VARIABLES & set(variables)
    assert "OFFBOOK_PORT" not in variables


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("minScore", "OFFBOOK_MIN_SCORE"),
        ("memory.compaction.threshold", "OFFBOOK_MEMORY_COMPACTION_THRESHOLD"),
        ("server.maxRequestBytes", "OFFBOOK_SERVER_MAX_REQUEST_BYTES"),
        ("injectionBudget.L3", "OFFBOOK_INJECTION_BUDGET_L3"),
    ],
)
def test_variables_are_named_after_settings(name: str, variable: str) -> None:
    assert BY_NAME[name].environment_name == variable


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Settings().min_score = 1.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Settings().server.port = 1  # type: ignore[misc]


def test_the_wire_names_are_the_documents() -> None:
    wire = msgspec.to_builtins(Settings())
    assert wire["injectionBudget"] == {"L3": 30000, "L2": 30000, "L1": 30000}
    assert wire["contextBudget"]["recentTurnsAlwaysFull"] == 5


# ── each name, through each source ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spelling", ["camelCase", "snake_case"])
@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_file(setting: Setting, spelling: str, tmp_path: Path) -> None:
    table: dict[str, Any] = {}
    for each in with_companion(setting):
        path = tuple(each.name.split(".")) if spelling == "camelCase" else each.attributes
        table = merged(table, nested(path, as_toml(other_value(each))))
    path_of_file = config(tmp_path, tomli_w.dumps(table))
    loaded = load(tmp_path, environ={})
    assert setting.value_in(loaded.settings) == other_value(setting)
    assert loaded.origin_of(setting.name) == f"file {path_of_file}"


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_environment(setting: Setting, tmp_path: Path) -> None:
    environ = {each.environment_name: as_text(other_value(each)) for each in with_companion(setting)}
    loaded = load(tmp_path, environ=environ)
    assert setting.value_in(loaded.settings) == other_value(setting)
    assert loaded.origin_of(setting.name) == f"environment {setting.environment_name}"


@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_flag(setting: Setting, is_text: bool, tmp_path: Path) -> None:
    flags = {
        each.name: as_text(other_value(each)) if is_text else other_value(each) for each in with_companion(setting)
    }
    loaded = load(tmp_path, environ={}, flags=flags)
    assert setting.value_in(loaded.settings) == other_value(setting)
    assert loaded.origin_of(setting.name) == f"flag --{setting.name}"


@pytest.mark.parametrize("setting", PER_AGENT, ids=lambda setting: setting.name)
def test_agent_table(setting: Setting, tmp_path: Path) -> None:
    path = ("agents", "reviewer", *setting.name.split("."))
    config(tmp_path, tomli_w.dumps(nested(path, as_toml(other_value(setting)))))
    settings = load(tmp_path, environ={}).settings
    assert setting.value_in(settings.for_agent("reviewer")) == other_value(setting)
    assert setting.value_in(settings) == setting.default


@given(st.data())
def test_later_sources_win(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(FREE), min_size=1, max_size=6, unique_by=lambda s: s.name))
    table: dict[str, Any] = {}
    environ: dict[str, str] = {}
    flags: dict[str, object] = {}
    expected: dict[str, tuple[Any, str]] = {}
    for setting in chosen:
        name = setting.name
        expected[name] = (setting.default, "default")
        if data.draw(st.booleans(), label=f"{name} in the file"):
            value = data.draw(values_of(setting))
            written = "null" if value is None else as_text(value) if isinstance(value, timedelta) else as_toml(value)
            table = merged(table, nested(tuple(name.split(".")), written))
            expected[name] = (value, "file")
        if data.draw(st.booleans(), label=f"{name} in the environment"):
            value = data.draw(values_of(setting))
            environ[setting.environment_name] = as_text(value)
            expected[name] = (value, f"environment {setting.environment_name}")
        if data.draw(st.booleans(), label=f"{name} as a flag"):
            value = data.draw(values_of(setting))
            is_text = value is None or data.draw(st.booleans())
            flags[name] = as_text(value) if is_text else value
            expected[name] = (value, f"flag --{name}")
    with tempfile.TemporaryDirectory() as folder:
        config(Path(folder), tomli_w.dumps(table))
        loaded = load(Path(folder), environ=environ, flags=flags)
    for setting in ALL:
        value, origin = expected.get(setting.name, (setting.default, "default"))
        assert setting.value_in(loaded.settings) == value
        assert loaded.origin_of(setting.name).startswith(origin)


# ── the file ──────────────────────────────────────────────────────────────────────────────────


def test_both_spellings_of_a_key_are_refused(tmp_path: Path) -> None:
    path = config(tmp_path, "minScore = 0.5\nmin_score = 0.5\n")
    assert problems(tmp_path) == [f"file {path}: minScore and min_score are the same name; keep one"]


def test_both_spellings_of_a_table_are_refused(tmp_path: Path) -> None:
    path = config(tmp_path, "[topicTracking]\nwindowSize = 3\n[topic_tracking]\ndecayFactor = 0.1\n")
    assert problems(tmp_path) == [f"file {path}: topicTracking and topic_tracking are the same name; keep one"]


def test_spellings_may_differ_between_levels(tmp_path: Path) -> None:
    config(tmp_path, "[topicTracking]\nwindow_size = 3\n[injection_budget]\nl3 = 7\nL2 = 8\n")
    settings = load(tmp_path, environ={}).settings
    assert (settings.topic_tracking.window_size, settings.injection_budget.l3, settings.injection_budget.l2) == (
        3,
        7,
        8,
    )


@pytest.mark.parametrize("key", ["MinScore", "MIN_SCORE", "minscore", '"min-score"'])
def test_other_spellings_are_not_ours(key: str, tmp_path: Path) -> None:
    config(tmp_path, f"{key} = 0.5\n")
    assert "did you mean minScore?" in problems(tmp_path)[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("minScore = 0.5\npruneKeep = = 3\n", 2),
        ("minScore = 0.5\nminScore = 0.6\n", 2),
        ("minScore = 0.5\n[server\n", 2),
        ('a = 1\nb = """\n\nunfinished', 4),
    ],
)
def test_a_syntax_error_names_file_and_line(text: str, line: int, tmp_path: Path) -> None:
    path = config(tmp_path, text)
    (problem,) = problems(tmp_path)
    assert problem.startswith(f"file {path}, line {line}: ")
    assert "(at " not in problem


def test_a_file_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'minScore = 0.5\ndefaultAgent = "\xff"\n')
    assert problems(tmp_path) == [f"file {path}, line 2: not UTF-8"]


def test_a_number_too_long_to_read(tmp_path: Path) -> None:
    path = config(tmp_path, f"pruneKeep = {'9' * 5000}\n")
    (problem,) = problems(tmp_path)
    assert problem.startswith(f"file {path}: ")


def test_a_byte_order_mark_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbfminScore = 0.5\r\n")
    assert load(tmp_path, environ={}).settings.min_score == 0.5


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    assert problems(tmp_path) == [f"file {tmp_path / 'config.toml'}: cannot be read: Is a directory"]


@pytest.mark.parametrize("text", ["server = 3", "server = []", "[[server]]\nport = 1"])
def test_a_group_is_a_table(text: str, tmp_path: Path) -> None:
    config(tmp_path, text)
    (problem,) = problems(tmp_path)
    assert problem.endswith(": expected a table of settings")


def test_an_empty_group_says_nothing(tmp_path: Path) -> None:
    config(tmp_path, "[server]\n[agents.main]\n")
    loaded = load(tmp_path, environ={})
    assert loaded.settings.server == Settings().server
    assert loaded.settings.for_agent("main") == Settings()


# ── the environment ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value"),
    [(word, True) for word in ("true", "1", "yes", "on", "TRUE", " Yes ")]
    + [(word, False) for word in ("false", "0", "no", "off", "False")],
)
def test_truth_in_words(text: str, value: bool, tmp_path: Path) -> None:
    assert load(tmp_path, environ={"OFFBOOK_STORE_ONLY": text}).settings.store_only is value


@pytest.mark.parametrize(
    ("text", "value"),
    [("", ()), (" ", ()), ("a", ("a",)), ("a, b ,c", ("a", "b", "c")), ("a,,b,", ("a", "b"))],
)
def test_lists_are_separated_by_commas(text: str, value: tuple[str, ...], tmp_path: Path) -> None:
    assert load(tmp_path, environ={"OFFBOOK_SERVER_ALLOWED_HOSTS": text}).settings.server.allowed_hosts == value


@pytest.mark.parametrize("text", ["", "null", "none", "None", "NULL"])
def test_nothing_in_words(text: str, tmp_path: Path) -> None:
    config(tmp_path, 'model = "m"\n[archive]\nretentionDays = 90\n')
    environ = {"OFFBOOK_MODEL": text, "OFFBOOK_ARCHIVE_RETENTION_DAYS": text}
    settings = load(tmp_path, environ=environ).settings
    assert (settings.model, settings.archive.retention_days) == (None, None)


def test_an_agent_can_have_nothing_where_all_have_something(tmp_path: Path) -> None:
    config(tmp_path, '[archive]\nretentionDays = 90\n[agents.a.archive]\nretentionDays = "none"\n')
    settings = load(tmp_path, environ={}).settings
    assert (settings.archive.retention_days, settings.for_agent("a").archive.retention_days) == (90, None)


def test_port_has_a_short_name(tmp_path: Path) -> None:
    by_environment = load(tmp_path, environ={"OFFBOOK_PORT": "0"})
    assert by_environment.settings.server.port == 0
    assert by_environment.origin_of("server.port") == "environment OFFBOOK_PORT"
    by_flag = load(tmp_path, environ={"OFFBOOK_PORT": "0"}, flags={"port": 9000})
    assert by_flag.settings.server.port == 9000
    assert by_flag.origin_of("server.port") == "flag --port"


def test_one_setting_under_two_names_is_refused(tmp_path: Path) -> None:
    environ = {"OFFBOOK_PORT": "1", "OFFBOOK_SERVER_PORT": "2"}
    flags = {"minScore": 0.1, "min_score": 0.2}
    assert problems(tmp_path, environ=environ, flags=flags) == [
        "environment: OFFBOOK_PORT and OFFBOOK_SERVER_PORT are both server.port; keep one",
        "flag --min_score: --minScore is the same setting, minScore; keep one",
    ]


def test_reserved_and_foreign_variables_are_left_alone(tmp_path: Path) -> None:
    environ = dict.fromkeys(RESERVED_VARIABLES, "x") | {"PATH": "/bin", "OFFBOOKS": "x"}
    assert load(tmp_path, environ=environ).settings == Settings()


def test_a_flag_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    loaded = load(tmp_path, environ={"OFFBOOK_PORT": "1"}, flags={"port": None, "log.level": None})
    assert (loaded.settings.server.port, loaded.origin_of("log.level")) == (1, "default")


# ── durations ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (300000, timedelta(minutes=5)),
        (0.5, timedelta(microseconds=500)),
        ("300000", timedelta(minutes=5)),
        ("5m", timedelta(minutes=5)),
        (" 5 m ", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("30s", timedelta(seconds=30)),
        ("1d", timedelta(days=1)),
        ("250ms", timedelta(milliseconds=250)),
        ("1.5h", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("0", timedelta()),
    ],
)
def test_durations(raw: object, expected: timedelta) -> None:
    assert duration(raw) == expected


@pytest.mark.parametrize(
    "raw",
    ["", "m", "5", "5x", "-5m", "5m!", "5 minutes", "1e3", "9" * 400, "9" * 300 + "d", True, None, [], 1e300, "nan"],
)
def test_what_is_no_duration(raw: object, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, flags={"workerInterval": raw if raw is not None else ()})
    assert problem.endswith('expected a duration of at least 1s: milliseconds, or text such as "5m"')


@pytest.mark.parametrize("written", ["-1", "nan", "inf", "12:30:00", "true", '"101y"', '"40000d"'])
def test_what_is_no_duration_in_a_file(written: str, tmp_path: Path) -> None:
    config(tmp_path, f"[session]\nnewSessionGap = {written}\n")
    (problem,) = problems(tmp_path)
    assert problem.endswith('expected a duration: milliseconds, or text such as "5m"')


@given(st.timedeltas(timedelta(), LONGEST_DURATION))
def test_a_duration_as_text_is_the_same_duration(value: timedelta) -> None:
    assert duration(as_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(minutes=5), "5m"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(), "0ms"),
        (timedelta(microseconds=1500), "1.500ms"),
        (None, "null"),
        (True, "true"),
        (14.0, "14"),
        (0.4, "0.4"),
        (8770, "8770"),
        (("a", "b c"), "a,b c"),
        ("main", "main"),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert as_text(value) == text


# ── agents ────────────────────────────────────────────────────────────────────────────────────

TWO_AGENTS = """
minScore = 0.5
[ttl]
baseHours = 12
[agents.main]
min_score = 0.6
[agents.main.ttl]
maxHours = 24
[agents."a b.c".memory.compaction]
strategy = "hot-swap"
"""


def test_an_agent_has_what_all_have_but_for_its_own(tmp_path: Path) -> None:
    config(tmp_path, TWO_AGENTS)
    settings = load(tmp_path, environ={}).settings
    main = settings.for_agent("main")
    assert (main.min_score, main.ttl.base_hours, main.ttl.max_hours) == (0.6, 12, 24)
    other = settings.for_agent("a b.c")
    assert (other.min_score, other.memory.compaction.strategy) == (0.5, "hot-swap")
    assert (settings.min_score, settings.ttl.max_hours) == (0.5, 48)


def test_an_agent_without_its_own_has_the_same_object(tmp_path: Path) -> None:
    config(tmp_path, TWO_AGENTS)
    settings = load(tmp_path, environ={}).settings
    assert settings.for_agent("stranger") is settings
    assert settings.for_agent("main") is settings.for_agent("main")
    assert settings.for_agent("main").for_agent("a b.c") is settings.for_agent("main")


def test_the_word_for_one_agent_wins_over_the_word_for_all(tmp_path: Path) -> None:
    config(tmp_path, TWO_AGENTS)
    settings = load(tmp_path, environ={"OFFBOOK_MIN_SCORE": "0.7"}, flags={"ttl.maxHours": 30}).settings
    assert settings.for_agent("main").min_score == 0.6
    assert settings.for_agent("main").ttl.max_hours == 24
    assert settings.for_agent("a b.c").min_score == 0.7
    assert settings.for_agent("a b.c").ttl.max_hours == 30


@pytest.mark.parametrize("group", sorted(PROVIDER_WIDE_GROUPS))
def test_what_holds_for_the_provider_is_no_agents_own(group: str, tmp_path: Path) -> None:
    path = config(tmp_path, f"[agents.main.{group}]\nport = 1\n")
    assert problems(tmp_path) == [
        f"file {path}: agents.main.{group} cannot be set for one agent; it holds for the whole provider"
    ]


def test_agents_are_tables_with_names(tmp_path: Path) -> None:
    path = config(tmp_path, "agents = 3\n")
    assert problems(tmp_path) == [f"file {path}: agents = 3: expected a table for each agent"]
    config(tmp_path, f'[agents]\nmain = 3\n"" = {{}}\n{"x" * 129} = {{}}\n')
    assert problems(tmp_path) == [
        f"file {path}: agents.main = 3: expected a table of settings",
        f'file {path}: agents."": expected an agent\'s name of 1 to 128 bytes',
        f"file {path}: agents.{'x' * 129}: expected an agent's name of 1 to 128 bytes",
    ]


def test_an_agents_mistakes_name_the_agent(tmp_path: Path) -> None:
    path = config(tmp_path, "[agents.main]\nminScor = 1\nminScore = 2\n")
    assert problems(tmp_path) == [
        f"file {path}: unknown setting agents.main.minScor; did you mean agents.main.minScore?",
        f"file {path}: agents.main.minScore = 2: expected a number from 0 to 1",
    ]


# ── what is shown ─────────────────────────────────────────────────────────────────────────────


def test_rows_are_every_setting_and_then_the_agents_own(tmp_path: Path) -> None:
    path = config(tmp_path, TWO_AGENTS)
    loaded = load(tmp_path, environ={"OFFBOOK_MIN_SCORE": "0.7"})
    rows = list(loaded)
    assert [row.name for row in rows[: len(ALL)]] == [setting.name for setting in ALL]
    assert [(row.name, row.value, row.origin) for row in rows[len(ALL) :]] == [
        ("agents.main.minScore", 0.6, f"file {path}"),
        ("agents.main.ttl.maxHours", 24, f"file {path}"),
        ('agents."a b.c".memory.compaction.strategy', "hot-swap", f"file {path}"),
    ]
    name, value, origin, description = next(row for row in rows if row.name == "minScore")
    assert (name, value, origin) == ("minScore", 0.7, "environment OFFBOOK_MIN_SCORE")
    assert description == "Least cosine similarity of what comes to mind, where `search.qualifies` goes by it (A2)."
    assert loaded.origin_of("agents.main.minScore") == f"file {path}"


def test_the_origin_is_found_by_either_spelling() -> None:
    loaded = LoadedSettings(settings=Settings(), origins={"minScore": "flag --minScore"})
    assert loaded.origin_of("min_score") == "flag --minScore"
    assert loaded.origin_of("topic_tracking.windowSize") == "default"
    with pytest.raises(SettingsError, match=r"^unknown setting minScor; did you mean minScore\?$"):
        loaded.origin_of("minScor")


# ── what is wrong ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("minScor", "minScore"),
        ("minimumScore", "minScore"),
        ("port", "server.port"),
        ("maxRequestBytes", "server.maxRequestBytes"),
        ("memroy.provider", "memory.provider"),
        ("server.prot", "server.port"),
        ("memory.threshold", "memory.compaction.threshold"),
        ("compaction.strategy", "memory.compaction.strategy"),
        ("injectionBudget.L4", "injectionBudget.L3"),
        ("server_port", "server.port"),
        ("keywords.identity", "anchors.keywords.identity"),
        ("retention_days", "archive.retentionDays"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_name(wrong: str, right: str, tmp_path: Path) -> None:
    path = config(tmp_path, f"{wrong} = 1\n")
    assert problems(tmp_path) == [f"file {path}: unknown setting {wrong}; did you mean {right}?"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("OFFBOOK_MIN_SCOR", "OFFBOOK_MIN_SCORE"),
        ("OFFBOOK_min_score", "OFFBOOK_MIN_SCORE"),
        ("OFFBOOK_MAX_REQUEST_BYTES", "OFFBOOK_SERVER_MAX_REQUEST_BYTES"),
        ("OFFBOOK_COMPACTION_STRATEGY", "OFFBOOK_MEMORY_COMPACTION_STRATEGY"),
        ("OFFBOOK_LEVEL", "OFFBOOK_LOG_LEVEL"),
        ("OFFBOOK_TOKENS", "OFFBOOK_TOKEN"),
        ("OFFBOOK_HOM", "OFFBOOK_HOME"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(wrong: str, right: str, tmp_path: Path) -> None:
    assert problems(tmp_path, environ={wrong: "1"}) == [f"environment: unknown setting {wrong}; did you mean {right}?"]


def test_an_unknown_flag_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    assert problems(tmp_path, flags={"log.levle": "info"}) == [
        "flag --log.levle: unknown setting log.levle; did you mean log.level?"
    ]


def test_nothing_is_guessed_where_nothing_is_near(tmp_path: Path) -> None:
    path = config(tmp_path, '"x\\ny" = 1\n')
    assert problems(tmp_path) == [f'file {path}: unknown setting "x\\ny"']


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("enabled", "1", "true or false"),
        ("enabled", '"true"', "true or false"),
        ("minScore", "1.01", "a number from 0 to 1"),
        ("minScore", "nan", "a number from 0 to 1"),
        ("minScore", '"0.5"', "a number from 0 to 1"),
        ("minScore", "true", "a number from 0 to 1"),
        ("minScore", "{}", "a number from 0 to 1"),
        ("minScore", "{value = 1}", "a number from 0 to 1"),
        ("ttl.maxHours", "inf", "a number of at least 0"),
        ("pruneKeep", "-1", "a whole number of at least 0"),
        ("pruneKeep", "1.5", "a whole number of at least 0"),
        ("pruneKeep", "1979-05-27", "a whole number of at least 0"),
        ("outbox.maxBytes", str(2**63), "a whole number of at least 0"),
        ("server.port", "65536", "a whole number from 0 to 65535"),
        ("server.maxRequestBytes", "1023", "a whole number of at least 1024"),
        ("defaultAgent", '""', "text that is not empty"),
        ("defaultAgent", "3", "text that is not empty"),
        ("model", "3", "text, or null"),
        ("archive.retentionDays", "0", "a whole number of at least 1, or null"),
        ("memory.compaction.strategy", '"hotswap"', "one of builtin, hot-swap"),
        ("server.allowedHosts", '"a,b"', "a list of texts"),
        ("server.allowedHosts", "[1]", "a list of texts"),
        ("anchors.keywords.identity", '[""]', "a list of texts"),
        ("workerInterval", "999", 'a duration of at least 1s: milliseconds, or text such as "5m"'),
    ],
)
def test_an_ill_typed_value_is_refused(name: str, written: str, expected: str, tmp_path: Path) -> None:
    path = config(tmp_path, f"{name} = {written}\n")
    (problem,) = problems(tmp_path)
    assert problem.startswith(f"file {path}: {name} = ")
    assert problem.endswith(f": expected {expected}")


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("OFFBOOK_ENABLED", "maybe"),
        ("OFFBOOK_ENABLED", ""),
        ("OFFBOOK_PRUNE_KEEP", "many"),
        ("OFFBOOK_PRUNE_KEEP", "1.5"),
        ("OFFBOOK_PRUNE_KEEP", "9" * 5000),
        ("OFFBOOK_MIN_SCORE", "nan"),
        ("OFFBOOK_TTL_MAX_HOURS", "inf"),
        ("OFFBOOK_DEFAULT_AGENT", ""),
        ("OFFBOOK_LOG_LEVEL", "INFO"),
    ],
)
def test_an_ill_typed_variable_is_refused(variable: str, text: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, environ={variable: text})
    assert problem.startswith(f"environment {variable}: ")
    assert len(problem) < 250


@pytest.mark.parametrize(
    "text",
    ["pruneKeep = 501\n", "pruneThreshold = 399\n", "pruneKeep = 2\npruneThreshold = 1\n"],
)
def test_what_is_kept_is_at_most_the_threshold(text: str, tmp_path: Path) -> None:
    config(tmp_path, text)
    (problem,) = problems(tmp_path)
    assert problem.startswith("pruneKeep must be at most pruneThreshold: pruneKeep = ")


def test_contradictions_say_who_gave_what(tmp_path: Path) -> None:
    path = config(tmp_path, "[session]\nnewSessionGap = '1h'\n[server]\ntlsCert = 'cert.pem'\n")
    assert problems(tmp_path, environ={"OFFBOOK_PRUNE_KEEP": "600"}) == [
        "pruneKeep must be at most pruneThreshold:"
        " pruneKeep = 600 (environment OFFBOOK_PRUNE_KEEP) and pruneThreshold = 500 (default)",
        "session.newSessionGap must be at least session.interruptedGap:"
        f" session.newSessionGap = 1h (file {path}) and session.interruptedGap = 2h (default)",
        "server.tlsCert must come with server.tlsKey:"
        f" server.tlsCert = cert.pem (file {path}) and server.tlsKey = null (default)",
    ]


def test_an_agents_contradictions_are_told_once_and_of_that_agent(tmp_path: Path) -> None:
    path = config(tmp_path, "[agents.good]\nminScore = 0.1\n[agents.bad]\npruneThreshold = 300\n")
    assert problems(tmp_path, environ={"OFFBOOK_PRUNE_KEEP": "350"}) == [
        "agents.bad.pruneKeep must be at most pruneThreshold:"
        f" pruneKeep = 350 (environment OFFBOOK_PRUNE_KEEP) and pruneThreshold = 300 (file {path})"
    ]
    config(tmp_path, "pruneKeep = 600\n[agents.good]\nminScore = 0.1\n")
    assert len(problems(tmp_path)) == 1


def test_no_contradiction_is_made_of_a_value_that_was_refused(tmp_path: Path) -> None:
    config(tmp_path, "pruneKeep = 600\npruneThreshold = 'many'\n")
    (problem,) = problems(tmp_path)
    assert "pruneThreshold = 'many'" in problem


def test_limits_that_may_be_equal_or_apart(tmp_path: Path) -> None:
    config(
        tmp_path,
        "pruneKeep = 9\npruneThreshold = 9\n[session]\ninterruptedGap = 1\nnewSessionGap = 1\n"
        "[compaction]\nthreshold = 0.9\n[server]\ntlsCert = 'c'\ntlsKey = 'k'\n",
    )
    assert load(tmp_path, environ={}).settings.compaction.threshold == 0.9


def test_all_problems_are_told_together_one_line_each(tmp_path: Path) -> None:
    path = config(tmp_path, "minScor = 1\npruneKeep = 600\n[server]\nport = 70000\n[agents.a]\nstoreOnly = 1\n")
    environ = {"OFFBOOK_MIN_SCORE": "high", "OFFBOOK_NONSENSE_XYZZY": "1"}
    assert problems(tmp_path, environ=environ, flags={"port": "a\nb"}) == [
        f"file {path}: unknown setting minScor; did you mean minScore?",
        f"file {path}: server.port = 70000: expected a whole number from 0 to 65535",
        "environment OFFBOOK_MIN_SCORE: minScore = 'high': expected a number from 0 to 1",
        "environment: unknown setting OFFBOOK_NONSENSE_XYZZY",
        "flag --port: server.port = 'a\\nb': expected a whole number from 0 to 65535",
        f"file {path}: agents.a.storeOnly = 1: expected true or false",
        f"pruneKeep must be at most pruneThreshold: pruneKeep = 600 (file {path}) and pruneThreshold = 500 (default)",
    ]


def test_a_broken_file_does_not_hide_the_other_problems(tmp_path: Path) -> None:
    config(tmp_path, "= 3\n")
    first, second = problems(tmp_path, environ={"OFFBOOK_MIN_SCORE": "high"})
    assert "line 1" in first
    assert second.startswith("environment OFFBOOK_MIN_SCORE: ")


# ── the data folder ───────────────────────────────────────────────────────────────────────────
