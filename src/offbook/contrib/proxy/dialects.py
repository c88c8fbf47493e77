"""The APIs whose requests get memory: how each is asked, and how it answers. All else of the proxy knows one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from offbook.contrib.proxy.answers import AnswerReader, Reader
from offbook.contrib.proxy.requests import Request, read_request
from offbook.contrib.proxy.responses_api import ResponsesReader, read_responses_request


class Dialect(NamedTuple):
    path: bytes
    """Beneath that of the API's base URL."""
    read_request: Callable[[bytes], Request | None]
    reader: type[Reader]


CHAT = Dialect(b"/chat/completions", read_request, AnswerReader)
RESPONSES = Dialect(b"/responses", read_responses_request, ResponsesReader)
DIALECTS = (CHAT, RESPONSES)
