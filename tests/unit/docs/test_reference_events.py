from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from docs.generate.events import (
    FIELD_MEANINGS,
    KIND_MEANINGS,
    LEVELS,
    LogLine,
    MetricLine,
    events_parts,
    every_log_line,
    every_metric,
    log_lines,
    metric_lines,
)
from prometheus_client.parser import text_string_to_metric_families

import offbook
from offbook.api.metrics import Metrics
from offbook.client.swap_question import EventKind, SwapEvent, SwapStats
from offbook.model.status import TaskHealth
from offbook.model.types import now
from tests.places import REPOSITORY

PACKAGE = Path(offbook.__file__).parent
MONITORING = REPOSITORY / "docs" / "how-to" / "monitoring.md"


@pytest.fixture(scope="module")
def page() -> str:
    return "\n\n".join(events_parts())


# ── nothing is left out ──


def test_every_kind_and_field_of_a_swap_is_told(page: str) -> None:
    assert set(KIND_MEANINGS) == set(get_args(EventKind))
    assert set(FIELD_MEANINGS) == {*SwapEvent._fields, *SwapStats._fields}
    for name in (*KIND_MEANINGS, *FIELD_MEANINGS):
        assert f"| `{name}` |" in page


def test_every_line_of_the_log_in_the_source_is_told(page: str) -> None:
    """Counted in another way than the page is made: by words, not by the syntax tree."""
    actions = set()
    for path in PACKAGE.rglob("*.py"):
        actions |= set(re.findall(r"\baction=\"([a-z_]+\.[a-z_.]+)\"", path.read_text(encoding="utf-8")))
    assert len(actions) > 40
    assert actions <= {line.action for line in every_log_line()}
    assert all(f"\n| `{action}` |" in page for action in actions)


def test_every_logger_is_a_name_of_its_module_so_that_its_lines_are_found() -> None:
    makers = re.compile(r"^(.*)\b(?:get_logger|getLogger)\((.*)\)", re.MULTILINE)
    for path in PACKAGE.rglob("*.py"):
        if path.name == "reference_events.py":
            continue
        source = path.read_text(encoding="utf-8")
        for before, name in makers.findall(source):
            is_root = name == ""
            assert is_root or re.fullmatch(r"\w+ = (?:structlog|logging)\.", before), f"{path}: {before}"


def test_every_metric_that_a_provider_shows_is_told_with_its_labels() -> None:
    health = TaskHealth(task="backup", runs=1, failures=0, did={}, last_success=now())
    metrics = Metrics("1.0", lambda: 0, maintenance=lambda: [health], failures=dict)
    metrics.answered("ping", 200, 0.1)
    shown = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if not name.endswith("_created"):
            shown[name] = (family.type, labels, family.documentation)
    told = {each.name: (each.kind, set(each.labels), each.help) for each in every_metric()}
    assert shown.keys() <= told.keys()
    assert {name: told[name] for name in shown} == shown


def test_what_the_how_to_tells_to_watch_exists() -> None:
    text = MONITORING.read_text(encoding="utf-8")
    actions, metrics = {line.action for line in every_log_line()}, {each.name for each in every_metric()}
    families = {action.partition(".")[0] for action in actions}
    named = {each for each in re.findall(r"`([a-z_]+\.[a-z_…]+)`", text) if each.partition(".")[0] in families}
    assert len(named) > 8
    assert named <= actions
    assert set(re.findall(r"`(offbook_[a-z_]+)`", text)) <= metrics


# ── how the source is read ──


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ('log.info("listening", action="a.start", url=1)', {LogLine("a.start", "info", "listening", ("url",), "m")}),
        ('log.error("x", action=f"w.{what}", **more)', {LogLine("w.…", "error", "x", ("…",), "m")}),
        ('plain.warning("%s waits: %d", a, b)', {LogLine("", "warning", "… waits: …", (), "m")}),
        ('plain.error("a" + text)', {LogLine("", "error", "a…", (), "m")}),
        (
            'tell = log.error if bad else log.warning\n    tell(text(), action="l.log", exc_info=True)',
            {LogLine("l.log", "warning or error", "…", (), "m")},
        ),
        ('other.info("nobody logs this", action="no")', set()),
        ('log.bind(action="no")', set()),
        ("\"log.info('a text', action=1)\"", set()),
    ],
)
def test_a_line_is_found_as_it_is_said(call: str, lines: set[LogLine]) -> None:
    source = f'log = structlog.get_logger("x")\nplain = logging.getLogger("y")\n\ndef f():\n    {call}\n'
    assert log_lines(source, "m") == lines


@pytest.mark.parametrize("level", LEVELS)
def test_a_line_without_an_action_is_refused(level: str) -> None:
    with pytest.raises(ValueError, match="without an action in m"):
        log_lines(f'log = structlog.get_logger("x")\nlog.{level}("nameless")\n', "m")


def test_a_metric_is_found_with_its_labels_wherever_these_stand() -> None:
    source = """
Counter("offbook_a", "As.", ["by"], registry=r)
Gauge("offbook_b", "Bs.", labelnames=("x", "y"))
CounterMetricFamily("offbook_c_total", "Cs.", labels=["task"])
GaugeMetricFamily("offbook_d", "Ds.", value=1)
collections.Counter("no metric", "this")
"""
    assert metric_lines(source) == {
        MetricLine("offbook_a_total", "counter", ("by",), "As."),
        MetricLine("offbook_b", "gauge", ("x", "y"), "Bs."),
        MetricLine("offbook_c_total", "counter", ("task",), "Cs."),
        MetricLine("offbook_d", "gauge", (), "Ds."),
    }
