"""What was counted, as a table, as failures to read, and as the findings of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.memory.public import MOST_SHARE
from benchmarks.memory.scoring import Check, Measure
from benchmarks.memory.turns import Seen
from benchmarks.results import Bar, Cell


class Figure(NamedTuple):
    """How often it counted."""

    measure: Measure
    counted: int
    of: int

    @property
    def share(self) -> float:
        return self.counted / self.of if self.of else 0.0

    @property
    def is_met(self) -> bool | None:
        return self.measure.is_met(self.share) if self.of else None

    @property
    def bar(self) -> str:
        if self.measure.bar is None:
            return ""
        return f"{'≤' if self.measure.is_fault else '≥'} {self.measure.bar:.0%}"

    @property
    def shown(self) -> str:
        return f"{self.counted} of {self.of} ({self.share:.0%})"


def figures(checks: Sequence[Check]) -> list[Figure]:
    """One for each measure, in the order in which they were made."""
    by_measure: dict[Measure, list[Check]] = {}
    for check in checks:
        by_measure.setdefault(check.measure, []).append(check)
    return [Figure(measure, sum(one.counts for one in some), len(some)) for measure, some in by_measure.items()]


def by_language(checks: Sequence[Check]) -> list[dict[str, Cell]]:
    """Of the measures that have a bar."""
    languages = sorted({check.item.lang for check in checks}, key=lambda lang: (lang != "en", lang))
    rows: list[dict[str, Cell]] = []
    for figure in figures([check for check in checks if check.measure.bar is not None]):
        row: dict[str, Cell] = {"measure": figure.measure.name}
        for lang in languages:
            some = [one for one in checks if one.measure == figure.measure and one.item.lang == lang]
            row[lang] = f"{sum(one.counts for one in some)}/{len(some)}" if some else ""
        rows.append(row)
    return rows


def bars(found: Sequence[Figure]) -> list[Bar]:
    return [Bar(one.measure.name, one.bar, one.shown, one.is_met) for one in found if one.measure.bar is not None]


def show(console: Console, found: Sequence[Figure], languages: Sequence[Mapping[str, Cell]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("measure", "figure", "bar", ""):
        table.add_column(column)
    for one in found:
        verdict = {True: "[green]met[/]", False: "[red]NOT MET[/]", None: ""}[one.is_met]
        table.add_row(one.measure.name, one.shown, one.bar, verdict)
    console.print(table)
    if languages:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in languages[0]:
            table.add_column(column)
        for row in languages:
            table.add_row(*(str(value) for value in row.values()))
        console.print(table)


def show_failures(console: Console, checks: Sequence[Check], seen: Mapping[str, Seen], most: int) -> None:
    """What misses a bar, `most` of each measure, with the turn as the model reads it."""
    for figure in figures([check for check in checks if check.measure.bar is not None]):
        bad = [one for one in checks if one.measure == figure.measure and one.is_bad]
        console.print(f"\n[bold]{escape(figure.measure.name)}[/]: {len(bad)} fail", highlight=False)
        for check in bad[:most]:
            console.print(
                f"\n[bold]{check.item.id}[/] ({check.item.lang}) {escape(check.why)}", highlight=False, soft_wrap=True
            )
            console.print(f"  prompt: {escape(check.item.prompt)}", highlight=False, soft_wrap=True)
            text = "\n".join(f"  | {line}" for line in seen[check.item.id].text.strip().splitlines())
            console.print(escape(text), highlight=False, soft_wrap=True)


def show_public(console: Console, public: Mapping[str, float]) -> None:
    for name, value in public.items():
        shown = f"{value:,.0f}" if isinstance(value, int) else f"{value:.1%}"
        bar = f"  (bar: ≤ {MOST_SHARE:.0%})" if name.startswith("… most of") else ""
        console.print(f"{name}: {shown}{bar}", highlight=False)


def as_document(checks: Sequence[Check], seen: Mapping[str, Seen], public: Mapping[str, float]) -> dict[str, Any]:
    """All that was found, to be compared with another run's."""
    return {
        "figures": [
            {"measure": one.measure.name, "counted": one.counted, "of": one.of, "bar": one.bar, "is_met": one.is_met}
            for one in figures(checks)
        ],
        "by_language": by_language(checks),
        "public": dict(public),
        "checks": [
            {
                "measure": one.measure.name,
                "item": one.item.id,
                "counts": one.counts,
                "why": one.why if one.is_bad else "",
            }
            for one in checks
        ],
        "turns": {name: {"memory": one.turn.memory, "recall": one.turn.recall} for name, one in seen.items()},
    }
