"""How near the estimate of tokens comes to what real tokenizers count."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks import results
from benchmarks.facts_kept import load
from benchmarks.quality.data import SETS
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run, Skipped
from offbook.models.tokens import estimate_tokens

TITLE = "The estimate of tokens against cl100k_base, o200k_base and Claude's published vocabulary"

LIMIT = 0.10
"""Of the mean of the three: in all, and of a stretch on average."""
HELD = ("English", "code", "Chinese")
MIN_CHARS, MAX_CHARS = 300, 2_000
SEED = 17
INSTALL_SECONDS = 240
TIMED_ROUNDS = 30

ROOT = Path(__file__).parents[1]
TOKENIZERS = Path(__file__).with_name("token_counts")
FROZEN = ROOT / "tests" / "data" / "token_counts.json"

Counts = dict[str, int]
Row = dict[str, Cell]


def measure(run: Run) -> Findings:
    folder = _installed(run)
    kinds = _kinds(run, folder / "node_modules")
    stretches = {kind: _drawn(texts, run.choose(20, 100)) for kind, texts in kinds.items()}
    for text, kind in _frozen():
        stretches.setdefault(kind, []).append(text)
    texts = [text for kind in stretches.values() for text in kind]
    counted = iter(_counted(folder, texts))
    figures = {kind: [(estimate_tokens(text), next(counted)) for text in texts] for kind, texts in stretches.items()}
    return _findings(run, figures, texts)


# ── what is counted ───────────────────────────────────────────────────────────────────────────


def _kinds(run: Run, packages: Path) -> dict[tuple[str, str], list[str]]:
    """Texts by kind. None of them was fitted to: the weights know neither these packages nor this repository."""
    chats = {
        ("English", f"chat ({name})"): [
            "\n".join(f"{turn.speaker}: {turn.text}" for turn in session.turns)
            for told in load(run.data, name)
            for session in told.sessions
        ]
        for name in SETS
    }
    return {
        **chats,
        ("English", "documentation, here"): _read((ROOT / "docs").rglob("*.md")),
        ("code", "Python, here"): _read((ROOT / "src").rglob("*.py")),
        ("code", "Python, xml and concurrent"): _read(
            path for name in ("xml", "concurrent") for path in Path(sysconfig.get_path("stdlib"), name).glob("*/*.py")
        ),
        ("code", "JavaScript (koa, knex)"): _read(
            path for name in ("koa", "knex") for path in (packages / name).rglob("*.js")
        ),
        ("code", "TypeScript (hono, knex)"): _read(
            path for name in ("hono", "knex") for path in (packages / name).rglob("*.d.ts")
        ),
        ("code", "JSON, here"): _read([ROOT / "docs" / "reference" / "openapi.json", *results.FOLDER.glob("*.json")]),
        ("Chinese", "comments of TypeScript"): _read((packages / "miniprogram-api-typings" / "types").rglob("*.d.ts")),
    }


def _read(paths: Iterable[Path]) -> list[str]:
    return [path.read_text("utf-8", "replace") for path in sorted(paths)]


def _drawn(texts: Sequence[str], count: int) -> list[str]:
    """Stretches of whole lines, from anywhere, the same in every run."""
    chance = random.Random(SEED)
    long_enough = [text for text in texts if len(text) > MIN_CHARS]
    drawn: list[str] = []
    for _ in range(count):
        text = chance.choice(long_enough)
        begin = text.rfind("\n", 0, chance.randrange(len(text) - MIN_CHARS) + 1) + 1
        drawn.append(text[begin : begin + chance.randint(MIN_CHARS, MAX_CHARS)])
    return drawn


def _frozen() -> list[tuple[str, tuple[str, str]]]:
    """What the unit test holds the estimate to, counted anew."""
    names = {name.lower(): name for name in HELD}
    return [
        (one["text"], (names[one["kind"]], "frozen for the tests")) for one in json.loads(FROZEN.read_text())["texts"]
    ]


# ── real tokenizers ───────────────────────────────────────────────────────────────────────────


def _installed(run: Run) -> Path:
    """A folder with the packages, kept between runs."""
    if not (shutil.which("node") and shutil.which("npm")):
        raise Skipped("the tokenizers are JavaScript: node and npm are not here")
    folder = run.cache / "tokenizers"
    wanted = (TOKENIZERS / "package.json").read_text()
    there = folder / "package.json"
    done = folder / "installed"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(TOKENIZERS / "count.mjs", folder)
    if not done.exists() or there.read_text() != wanted:
        run.say("installing the tokenizers")
        there.write_text(wanted)
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        try:
            subprocess.run(command, cwd=folder, timeout=INSTALL_SECONDS, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as why:
            raise Skipped(f"npm could not install the tokenizers: {why}") from why
        done.touch()
    return folder


def _counted(folder: Path, texts: Sequence[str]) -> list[Counts]:
    lines = "\n".join(json.dumps(text) for text in texts)
    counted = subprocess.run(
        ["node", "count.mjs"], cwd=folder, input=lines, capture_output=True, text=True, check=True
    ).stdout
    return [json.loads(line) for line in counted.splitlines()]


# ── figures ───────────────────────────────────────────────────────────────────────────────────


def _findings(run: Run, figures: dict[tuple[str, str], list[tuple[int, Counts]]], texts: Sequence[str]) -> Findings:
    by_language = {
        held: [pair for (language, _), pairs in figures.items() if language == held for pair in pairs] for held in HELD
    }
    bars = []
    for held, pairs in by_language.items():
        bias, error = _bias(pairs), fmean(_errors(pairs))
        bars.append(Bar(f"{held}, in all", "within 10 %", f"{bias - 1:+.1%}", abs(bias - 1) <= LIMIT))
        bars.append(Bar(f"{held}, a stretch on average", "≤ 10 %", f"{error:.1%}", error <= LIMIT))
    return Findings(
        bars=bars,
        rows=[_row(language, kind, pairs) for (language, kind), pairs in figures.items()]
        + [_row(held, "all", pairs) for held, pairs in by_language.items()],
        sections=[
            Section(
                "Mean error of a stretch against each tokenizer, %",
                [
                    {"text": held} | {name: 100 * fmean(_errors(pairs, name)) for name in pairs[0][1]}
                    for held, pairs in by_language.items()
                ],
            ),
            Section("Time", [{"characters": sum(map(len, texts)), "CPU ns a character": _nanoseconds(texts)}]),
        ],
        notes=[
            f"Stretches of {MIN_CHARS:,} to {MAX_CHARS:,} characters. The error is against the mean of the three "
            "tokenizers; the bias is the total of the estimates by the total counted, 1 being equal.",
            "The weights were fitted to other texts: other packages, other conversations. What to count was chosen "
            "with an eye on LoCoMo, RealMem, koa, knex and hono; the rest was not looked at for that.",
        ],
    )


def _row(language: str, kind: str, pairs: Sequence[tuple[int, Counts]]) -> Row:
    errors = _errors(pairs)
    return {
        "text": language,
        "kind": kind,
        "stretches": len(pairs),
        "mean error, %": 100 * fmean(errors),
        "worst, %": 100 * max(errors),
        "bias": _bias(pairs),
        **{f"bias to {name}": _bias(pairs, name) for name in pairs[0][1]},
    }


def _real(counts: Counts, name: str | None) -> float:
    return counts[name] if name else fmean(counts.values())


def _errors(pairs: Sequence[tuple[int, Counts]], name: str | None = None) -> list[float]:
    return [abs(estimate / _real(counts, name) - 1) for estimate, counts in pairs]


def _bias(pairs: Sequence[tuple[int, Counts]], name: str | None = None) -> float:
    return sum(estimate for estimate, _ in pairs) / sum(_real(counts, name) for _, counts in pairs)


def _nanoseconds(texts: Sequence[str]) -> float:
    taken = []
    for _ in range(TIMED_ROUNDS):
        started = time.process_time_ns()
        for text in texts:
            estimate_tokens(text)
        taken.append(time.process_time_ns() - started)
    return min(taken) / sum(map(len, texts))
