"""Structured logs: every line has an `action`. Pretty on a terminal, JSON elsewhere; always to stderr."""

from __future__ import annotations

import logging
import sys
from typing import Literal, TextIO, cast

import structlog

LogFormat = Literal["auto", "json", "console"]


class Unfailing:
    """A stream whose failures stay with it: a log on a full disk or a closed pipe must not fail a request."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            return 0

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return


def configure_logs(level: str, log_format: LogFormat) -> None:
    is_pretty = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    renderer: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer() if is_pretty else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, Unfailing(sys.stderr))),
        cache_logger_on_first_use=False,
    )
