"""Structured logs: every line has an `action`. Pretty on a terminal, JSON elsewhere; always to stderr."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections import deque
from typing import Literal, TextIO, cast

import structlog

LogFormat = Literal["auto", "json", "console"]

MOST_LINES = 10_000
MOST_CHARACTERS = 8_000_000
"""Lines that wait to be written, and their text: a line can quote a path as long as a request's head."""
FLUSH_SECONDS = 0.5
"""At exit, for what is still unwritten: nobody may be reading it."""

log = structlog.get_logger("offbook.logs")


class Outlet:
    """A stream that neither waits nor fails: a pipe nobody reads, or a full disk, must not hold up a request.

    A thread writes. What it cannot keep up with is dropped and counted.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: deque[str] = deque()
        self._characters = 0
        self._dropped = 0
        self._is_writing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> int:
        with self._changed:
            if len(self._lines) >= MOST_LINES or self._characters + len(text) > MOST_CHARACTERS:
                self._dropped += 1
                return len(text)
            self._lines.append(text)
            self._characters += len(text)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_on, name="offbook-log", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Nothing: a line is written when it can be."""

    def drain(self, seconds: float) -> None:
        """Wait until everything is written, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lines and not self._is_writing, seconds)

    def _write_on(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines)
                self._is_writing = True
                line = self._lines.popleft()
                self._characters -= len(line)
            is_written = self._try_to_write(line)
            with self._changed:
                self._dropped += not is_written
                dropped = self._dropped if is_written and not self._lines else 0
                self._dropped -= dropped
            if dropped:
                log.error("lines were lost: nobody took them in time", action="log.drop", lines=dropped)

    def _try_to_write(self, line: str) -> bool:
        try:
            write_through(self._stream, line)
        except (AttributeError, OSError, ValueError):  # None where the process was started without a stderr
            return False
        return True


class Forwarded(logging.Handler):
    """What libraries log, asyncio among them, goes the same way: their own would wait for the stream."""

    def emit(self, record: logging.LogRecord) -> None:
        tell = log.error if record.levelno >= logging.ERROR else log.warning
        tell(record.getMessage(), action="library.log", library=record.name, exc_info=record.exc_info or None)


def write_through(stream: TextIO, text: str) -> None:
    """Past the stream's own buffer where we can: a thread stuck in it would fail the interpreter's exit."""
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):
        stream.write(text)
        stream.flush()
        return
    unwritten = memoryview(text.encode(errors="backslashreplace"))
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def configure_logs(level: str, log_format: LogFormat) -> None:
    is_pretty = log_format == "console" or (log_format == "auto" and is_terminal(sys.stderr))
    renderer: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer() if is_pretty else structlog.processors.JSONRenderer()
    )
    outlet = Outlet(sys.stderr)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, outlet)),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    if not any(isinstance(handler, Forwarded) for handler in root.handlers):
        root.addHandler(Forwarded(logging.WARNING))
    atexit.register(outlet.drain, FLUSH_SECONDS)
