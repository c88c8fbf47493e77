"""A request and an answer, whole, as the surfaces pass them on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple

from offbook.api.wire import encode_answer
from offbook.model.errors import AgentMoved, OffbookError, StoreBusy, Unauthorized

JSON = b"application/json"
PROBLEM_JSON = b"application/problem+json"
RETRY_AFTER_SECONDS = 1
"""Of who is told that we are busy."""


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[bytes, bytes]
    body: bytes

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Answer(NamedTuple):
    status: int
    body: bytes
    content_type: bytes = JSON
    extra_headers: bytes = b""
    """Whole header lines, each with its line end."""
    pieces: AsyncGenerator[bytes, None] | None = None
    """What comes after the body, as it comes; the connection ends with it."""


def problem_answer(error: OffbookError, extra_headers: bytes = b"") -> Answer:
    if isinstance(error, Unauthorized):  # RFC 9110 asks for it
        extra_headers += b"www-authenticate: Bearer\r\n"
    problem = error.problem()
    if isinstance(error, StoreBusy | AgentMoved):
        extra_headers += b"retry-after: %d\r\n" % RETRY_AFTER_SECONDS
    return Answer(problem["status"], encode_answer(problem), PROBLEM_JSON, extra_headers)
