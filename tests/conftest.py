"""Examples have no deadline and may take their time: speed belongs in benchmarks, and machines are busy. Whether many
are filtered out is chance.

Half as many as usual, where a test does not say how many: CI has thirty minutes. `--hypothesis-profile=thorough` for more.

Logs are shown with plain tracebacks: rich ones, which structlog draws by itself, take a second each.
"""

from __future__ import annotations

import structlog
from hypothesis import HealthCheck, settings

UNHURRIED = [HealthCheck.too_slow, HealthCheck.filter_too_much]
settings.register_profile("offbook", deadline=None, suppress_health_check=UNHURRIED, max_examples=50)
settings.register_profile("thorough", settings.get_profile("offbook"), max_examples=500)
settings.load_profile("offbook")

_plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _plain])
