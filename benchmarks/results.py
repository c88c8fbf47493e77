"""What a benchmark found, and how it is kept and shown."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.machine import Machine

Cell = str | float | int | None

FOLDER = Path(__file__).with_name("results")
PAGE = Path(__file__).with_name("RESULTS.md")


class Bar(msgspec.Struct, frozen=True):
    """A promise and what came of it. `is_met` is None where there was only something to report."""

    what: str
    limit: str
    measured: str
    is_met: bool | None

    @property
    def verdict(self) -> str:
        return {True: "met", False: "NOT MET", None: "reported"}[self.is_met]


class Section(msgspec.Struct, frozen=True):
    """A further table."""

    title: str
    rows: list[dict[str, Cell]]


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark's figures: rows of equal columns, the bars they are held against, and what to know of them."""

    bars: list[Bar]
    rows: list[dict[str, Cell]]
    sections: list[Section] = []
    notes: list[str] = []


class Result(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    is_quick: bool
    took_seconds: float
    machine: Machine
    findings: Findings

    @property
    def is_missed(self) -> bool:
        return any(bar.is_met is False for bar in self.findings.bars)


def keep(result: Result) -> None:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{result.name}.json"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    unfinished.replace(path)


def kept(names: list[str]) -> list[Result]:
    """In the order of `names`; those never run are left out."""
    paths = [FOLDER / f"{name}.json" for name in names]
    return [msgspec.json.decode(path.read_bytes(), type=Result) for path in paths if path.exists()]


def write_page(results: list[Result]) -> None:
    PAGE.write_text(page(results))


# ── for people ────────────────────────────────────────────────────────────────────────────────


def page(results: list[Result]) -> str:
    lines = [
        "# Results",
        "",
        "Written by `make bench` from `results/*.json`. The machine is shared and noisy: ratios were taken within one",
        "run, alternating, and CPU time stands beside wall time.",
        "",
        *_table(["benchmark", "bar", "limit", "measured", ""], _overview(results)),
    ]
    for result in results:
        lines += ["", f"## {result.name}", "", f"{result.title}.", ""]
        lines += _rows(result.findings.rows)
        for section in result.findings.sections:
            lines += ["", f"{section.title}:", "", *_rows(section.rows)]
        lines += [""] * bool(result.findings.notes)
        lines += [f"- {note}" for note in result.findings.notes]
        lines += ["", f"<sub>{_place(result)}</sub>"]
    return "\n".join(lines) + "\n"


def _overview(results: list[Result]) -> list[list[str]]:
    return [
        [f"[{result.name}](#{result.name})", bar.what, bar.limit, bar.measured, _marked(bar)]
        for result in results
        for bar in result.findings.bars
    ]


def _marked(bar: Bar) -> str:
    return f"**{bar.verdict}**" if bar.is_met is False else bar.verdict


def _place(result: Result) -> str:
    where = result.machine
    return (
        f"{where.date}, {where.cores} cores ({where.processor}), {where.memory_gb:g} GB, {where.system}, "
        f"{where.file_system}, Python {where.python}, SQLite {where.sqlite}, Offbook {where.offbook}, "
        f"load {where.load_before:g} before, a million empty turns {where.python_loop_ms:g} ms, "
        f"took {result.took_seconds:.0f} s{', quick' * result.is_quick}"
    )


def _rows(rows: list[dict[str, Cell]]) -> list[str]:
    return _table(list(rows[0]), [[shown(value) for value in row.values()] for row in rows]) if rows else []


def _table(columns: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]


def show(console: Console, result: Result) -> None:
    _show_rows(console, result.findings.rows)
    for section in result.findings.sections:
        console.print(f"\n  {section.title}", highlight=False)
        _show_rows(console, section.rows)
    for bar in result.findings.bars:
        colour = {True: "green", False: "red bold", None: "cyan"}[bar.is_met]
        console.print(f"  {bar.what}: {bar.measured} (bar: {bar.limit}) [{colour}]{bar.verdict}[/]", highlight=False)
    for note in result.findings.notes:
        console.print(f"  [dim]{note}[/]", highlight=False)


def _show_rows(console: Console, rows: list[dict[str, Cell]]) -> None:
    if rows:
        table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
        for column, value in rows[0].items():
            table.add_column(column, justify="left" if isinstance(value, str) else "right")
        for row in rows:
            table.add_row(*(shown(value) for value in row.values()))
        console.print(table)


def shown(value: Cell) -> str:
    """Three figures that count; more would be noise."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
