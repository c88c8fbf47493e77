"""What can be watched, read from the source: lines of the log, metrics, and what a hot swap session tells.

Read by `ast`, so that no list has to be kept and nothing has to happen for a line to be found. What is known only as it
runs (`f"worker.{what}"`, `%s`) is shown as `…`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

from docs.generate.shapes import code, table

import offbook
from offbook.client.swap_question import EventKind, SwapEvent, SwapStats

INTRODUCTION = """
Four kinds of things that happen can be seen from outside. What verbs did is in the [audit chain](audit.md), durable and
verifiable. The other three are here: what a [hot swap session](../how-to/hot-swap.md) tells its agent, what the log on
stderr says, and what is counted for Prometheus. [Watch over it](../how-to/monitoring.md) says which deserve an alarm.
"""
SWAPS = """
`HotSwapSession.events` holds the newest thousand; `BlockingHotSwapSession.events` the same. Sizes are those of slot A
by our estimate of tokens.
"""
KIND_MEANINGS: dict[str, str] = {
    "started": "the session began with what the provider had of it; or it had nothing",
    "swapped": "slot B took the place of slot A",
    "kept": "the provider saw no need; `reason` is its own",
    "away": "nobody answered; the agent went on with slot A",
    "slow": "no answer within the deadline; it is used between the next two messages, if it comes",
    "refused": "the provider answered with an error",
    "wrong": "the answer was looked at and not used; `reason` says what was wrong with it",
    "compacted": "the window was full and the agent helped itself, with its own compaction or the newest messages",
}
FIELD_MEANINGS: dict[str, str] = {
    "kind": "one of the above",
    "at": "when, UTC",
    "reason": "why, in words; empty where there is nothing to say",
    "generation": "of the context in use from then on; it grows by one with each swap",
    "tokens_before": "what slot A took before",
    "tokens_after": "and after",
    "messages_before": "how many messages it had before",
    "messages_after": "and after",
    "swaps": "how often slot B was taken",
    "compactions": "how often the agent had to do without",
    "fallbacks": "how often the agent went on with what it had, by kind",
    "waited_ms": "what the agent has waited for the provider, in all",
    "used_tokens": "what the next prompt takes: what the model's provider last counted, and our estimate since",
    "last_ledger": "what the last swap kept and what it left out; `None` before the first",
}
LOG = """
`offbook serve` writes to stderr: one JSON object a line, or columns on a terminal (`log.format`), from `log.level` up.
Every line has `action`, `event` (what it says), `level`, `timestamp` and the fields named here. `…` is known only as it
runs. It holds no messages; a refusal may quote the value at fault. An `exception` is an `error` with its traceback.
"""
LIBRARY = """
Clients, the store and the models use Python's `logging`, so that a program that embeds them decides what is shown. In
the daemon they come as `library.log`, from `warning` up, with the logger's name in `library`.
"""
METRICS = "`GET /metrics`, with the token over TCP. Counters begin at 0 with each start."

LEVELS = ("debug", "info", "warning", "error", "exception")
METRIC_KINDS = {
    "Counter": "counter",
    "CounterMetricFamily": "counter",
    "Gauge": "gauge",
    "GaugeMetricFamily": "gauge",
    "Histogram": "histogram",
}
UNKNOWN = "…"


class LogLine(NamedTuple):
    action: str
    """Empty where it goes through Python's `logging`."""
    levels: str
    says: str
    fields: tuple[str, ...]
    module: str


class MetricLine(NamedTuple):
    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def events_parts() -> list[str]:
    lines = every_log_line()
    return [
        INTRODUCTION,
        "## Swaps",
        SWAPS,
        table(["kind", ""], [[code(kind), KIND_MEANINGS[kind]] for kind in get_args(EventKind)]),
        "### SwapEvent",
        _fields(SwapEvent),
        "### SwapStats",
        "`HotSwapSession.stats`, at any time.",
        _fields(SwapStats),
        "## Log",
        LOG,
        table(
            ["action", "level", "says", "fields", "in"],
            [
                [code(each.action), each.levels, each.says, ", ".join(map(code, each.fields)), code(each.module)]
                for each in lines
                if each.action
            ],
        ),
        "### Lines of the library",
        LIBRARY,
        table(
            ["says", "level", "in"],
            [[each.says, each.levels, code(each.module)] for each in lines if not each.action],
        ),
        "## Metrics",
        METRICS,
        table(
            ["metric", "kind", "by", ""],
            [[code(each.name), each.kind, ", ".join(map(code, each.labels)), each.help] for each in every_metric()],
        ),
    ]


def _fields(shape: type[SwapEvent] | type[SwapStats]) -> str:
    # A text, or a `ForwardRef` of it: that depends on the version of Python.
    kinds = {name: str(getattr(kind, "__forward_arg__", kind)) for name, kind in shape.__annotations__.items()}
    return table(["field", "is", ""], [[code(name), code(kinds[name]), FIELD_MEANINGS[name]] for name in kinds])


# ── the source ──


@cache
def every_log_line() -> tuple[LogLine, ...]:
    return tuple(sorted(line for module, source in _sources("ogger(") for line in log_lines(source, module)))


@cache
def every_metric() -> tuple[MetricLine, ...]:
    return tuple(sorted(line for _, source in _sources("prometheus_client") for line in metric_lines(source)))


def _sources(word: str) -> Iterator[tuple[str, str]]:
    """Modules that hold this word: to make a tree of every one takes seconds."""
    package = Path(offbook.__file__).parent
    for path in sorted(package.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if word in source:
            yield ".".join(path.relative_to(package).with_suffix("").parts), source


def log_lines(source: str, module: str) -> set[LogLine]:
    """Every line that the module may log; the same one said at two places is one."""
    tree = ast.parse(source)
    structured = _loggers(tree, "get_logger")
    plain = _loggers(tree, "getLogger")
    chosen = _chosen_levels(tree, structured | plain)
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=level)) if level in LEVELS:
                levels = level
            case ast.Call(func=ast.Name(id=function)) if function in chosen:
                name, levels = chosen[function]
            case _:
                continue
        if name in structured:
            found.add(_structured(node, levels, module))
        elif name in plain:
            found.add(LogLine("", levels, _words(node.args[0]), (), module))
    return found


def _structured(call: ast.Call, levels: str, module: str) -> LogLine:
    given = {each.arg: each.value for each in call.keywords if each.arg is not None}
    is_open = any(each.arg is None for each in call.keywords)
    fields = [name for name in given if name not in ("action", "exc_info")] + [UNKNOWN] * is_open
    action = given.get("action")
    if action is None:
        raise ValueError(f"a line of the log without an action in {module}: {ast.unparse(call)}")
    return LogLine(_words(action), levels, _words(call.args[0]), tuple(fields), module)


def _loggers(tree: ast.Module, maker: str) -> set[str]:
    """Names of the module that stand for a logger, made by `structlog.get_logger` or `logging.getLogger`."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if isinstance(node.value.func, ast.Attribute) and node.value.func.attr == maker
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _chosen_levels(tree: ast.Module, loggers: set[str]) -> dict[str, tuple[str, str]]:
    """`tell = log.error if … else log.warning`: the name, with its logger and its levels."""
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.IfExp(
                    body=ast.Attribute(value=ast.Name(id=logger), attr=first), orelse=ast.Attribute(attr=second)
                ),
            ) if logger in loggers and {first, second} <= {*LEVELS}:
                found[name] = (logger, f"{second} or {first}")
            case _:
                pass
    return found


def metric_lines(source: str) -> set[MetricLine]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=maker), args=[ast.Constant(value=str(name)), help_, *rest]) if (
                maker in METRIC_KINDS
            ):
                kind = METRIC_KINDS[maker]
                labels = [*rest, *(each.value for each in node.keywords if each.arg in ("labels", "labelnames"))]
                shown = f"{name.removesuffix('_total')}_total" if kind == "counter" else name
                found.add(MetricLine(shown, kind, tuple(_strings(labels)), _words(help_)))
            case _:
                pass
    return found


def _strings(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes[:1]:
        if isinstance(node, ast.List | ast.Tuple):
            yield from map(_words, node.elts)


def _words(node: ast.expr) -> str:
    """A text as far as the source has it."""
    match node:
        case ast.Constant(value=str(text)):
            return re.sub(r"%[sdrf]", UNKNOWN, text)
        case ast.JoinedStr(values=values):
            return "".join(map(_words, values))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _words(left) + _words(right)
        case _:
            return UNKNOWN
