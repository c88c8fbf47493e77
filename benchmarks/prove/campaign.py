"""What a campaign tried and found, kept for the page that tells of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.machine import Machine, machine
from benchmarks.results import Cell

FOLDER = Path(__file__).parents[1] / "results" / "prove"


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign gives back: how much it did, and what was wrong."""

    size: str
    """In words, with its unit: as large as it was run."""
    seed: int | None
    figures: dict[str, Cell]
    wrong: list[str]
    matrix: list[dict[str, Cell]] = []
    """One row a verb, where it has one."""
    legend: list[str] = []
    """What to know in order to read the figures and the matrix."""


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    command: str
    took_seconds: float
    machine: Machine
    tried: Tried


def carried_out(name: str, title: str, command: str, run: Callable[[], Tried]) -> Campaign:
    where = machine(Path.cwd())
    started = time.monotonic()
    tried = run()
    seconds = round(time.monotonic() - started, 1)
    return Campaign(name=name, title=title, command=command, took_seconds=seconds, machine=where, tried=tried)


def keep(campaign: Campaign) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{campaign.name}.json"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(campaign)) + b"\n")
    unfinished.replace(path)


def kept(name: str, folder: Path = FOLDER) -> Campaign | None:
    """None where it was never run."""
    path = folder / f"{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=Campaign) if path.exists() else None
