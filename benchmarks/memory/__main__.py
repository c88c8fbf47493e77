"""`python -m benchmarks.memory`: what a memory tells in a turn, on sets of conversations, and which bars it meets."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import structlog
from rich.console import Console

from benchmarks.memory import installed_models, measured
from benchmarks.memory.evidence import told_evidence
from benchmarks.memory.items import NAMES, SETS, load
from benchmarks.memory.public import public_figures
from benchmarks.memory.report import as_document, by_language, figures, show, show_failures, show_public
from benchmarks.memory.turns import tell
from benchmarks.provider import working_folder
from benchmarks.quality.vectors import remembered_vectors
from benchmarks.run import Skipped

DATA = Path(__file__).parents[3] / "shared" / "data"


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    started = time.monotonic()
    models = None if given.no_embeddings else installed_models()
    if models is None and not given.no_embeddings:
        tell("no embedding model is installed (`offbook model install`, or set OFFBOOK_HOME): by text alone")
    has_model = models is not None
    vectors: AbstractContextManager[Any] = remembered_vectors(given.cache, models) if models else nullcontext()
    public: dict[str, float] = {}
    with working_folder(given.folder) as folder, vectors:
        try:
            sets = {name: load(given.sets, name) for name in given.only or NAMES}
            checks, turns = measured(sets, folder / "sets", has_model=has_model)
            if given.also_public:
                public = public_figures(given.data, folder / "public", has_model=has_model)
            if given.also_evidence:
                public |= told_evidence(given.data, folder / "evidence")
        except Skipped as why:
            console.print(f"[yellow]skipped: {why}[/]", highlight=False)
            return 2
    found = figures(checks)
    if given.show:
        show_failures(console, checks, turns, given.show)
    show(console, found, by_language(checks))
    show_public(console, public)
    took = time.monotonic() - started
    console.print(f"{'with' if has_model else 'without'} the embedding model, {took:.0f} s", highlight=False)
    if given.json:
        document = as_document(checks, turns, public) | {"has_model": has_model, "took_seconds": round(took, 1)}
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
    return int(any(one.is_met is False for one in found))


def _parser() -> argparse.ArgumentParser:
    temporary = Path(tempfile.gettempdir())
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--only", action="append", choices=NAMES, help="this set; repeatable")
    parser.add_argument("--sets", type=Path, default=SETS, metavar="FOLDER", help="where the sets are")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found to FILE")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="N failures of each bar, with their turns")
    parser.add_argument("--no-embeddings", action="store_true", help="without the embedding model")
    parser.add_argument("--also-public", action="store_true", help="silence, share and cuts on the development data")
    parser.add_argument(
        "--also-evidence", action="store_true", help="what turns tell of what the public questions go back to (20 min)"
    )
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="the development data")
    parser.add_argument("--folder", type=Path, default=temporary, help="work in here (default: %(default)s)")
    parser.add_argument(
        "--cache",
        type=Path,
        default=temporary / "offbook-benchmarks",
        metavar="FOLDER",
        help="keep vectors here between runs (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
