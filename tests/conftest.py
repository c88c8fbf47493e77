"""Examples have no deadline and may take their time: speed belongs in benchmarks, and machines are busy. Whether many
are filtered out is chance.

A quarter as many as usual, where a test does not say how many: other ones in every run, and `make prove` tries 500 of each
(`--hypothesis-profile=thorough`).

Folders that tests make are not writable by a group, whatever the machine says: a provider refuses to start in such.

Ctrl-C is heard, also where a shell started the tests in the background: what they start inherits it.

Logs are shown with plain tracebacks: rich ones, which structlog draws by itself, take a second each.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

os.umask(0o022)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
UNHURRIED = [HealthCheck.too_slow, HealthCheck.filter_too_much]
settings.register_profile("offbook", deadline=None, suppress_health_check=UNHURRIED, max_examples=25)
settings.register_profile("thorough", settings.get_profile("offbook"), max_examples=500)
settings.load_profile("offbook")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
    """The one that fuzzes needs schemathesis's plugin; no other waits for it to be loaded."""
    if file_path.name == "test_fuzz.py":
        parent.config.pluginmanager.import_plugin("schemathesis.pytest.plugin")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def pytest_sessionfinish() -> None:
    """Processes that pytest starts end without their `atexit`."""
    if server := sys.modules.get("tests.postgres_server"):
        server.remove_server()


_plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _plain])
