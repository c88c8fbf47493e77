"""What the requests of the verbs are made of: whose memory is meant, and the kinds of fields that several take."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from offbook.ingest.scope import resolve_agent, resolve_scope
from offbook.model.types import AgentId, Message, Scope, SessionId, Value
from offbook.search.words import ENTRY_ID

MOST_MESSAGES = 1_000
"""In one request: a batch is a convenience, not a bulk load."""
MOST_MESSAGES_OF_A_CONTEXT = 10_000
LARGEST_INTEGER = 2**53 - 1
"""The largest whole number every JSON implementation keeps."""

LONGEST_QUERY = 1_000_000
"""A whole message may be the query; how much of it is read is bounded elsewhere."""
NOT_BLANK = r"[^\s\u001c-\u001f\u0085]"
"""What Python takes for blank is more than what a JSON schema does."""
MOST_ENTRIES = 100
MOST_TASKS = 100

EntryId = Annotated[str, Meta(max_length=64, extra_json_schema={"pattern": ENTRY_ID})]
"""What is none is refused with a word on where to find one."""
SummaryId = Annotated[str, Meta(pattern=r"^L[1-9]-[0-9]{4,15}$(?!\n)", description="As in `L1-0003`.")]
LessonId = Annotated[str, Meta(pattern=r"^lesson-[0-9]{4,15}$(?!\n)", description="As in `lesson-0003`.")]
SourceId = Annotated[
    str,
    Meta(
        pattern=r"^(L[1-9]|lesson)-[0-9]{4,15}$(?!\n)",
        description="Of a summary or a lesson, as in `L1-0003` or `lesson-0003`.",
    ),
]
MaxChars = Annotated[int, Meta(ge=1, le=LARGEST_INTEGER, description="The context is at most this many characters.")]
Messages = Annotated[list[Message], Meta(min_length=1, max_length=MOST_MESSAGES)]
JobTokens = Annotated[int, Meta(ge=0, le=1_000_000_000)]
"""More than any model reads; what all jobs used is summed up."""
LONGEST_WAIT_SECONDS = 60
WaitMs = Annotated[int, Meta(ge=0, le=LONGEST_WAIT_SECONDS * 1_000)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
Query = Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY, extra_json_schema={"pattern": NOT_BLANK})]
Matching = Annotated[str, Meta(min_length=1, max_length=10_000)]
Reason = Annotated[str, Meta(max_length=512)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
"""Of a job or a receipt."""


def snake(name: str) -> str:
    """As Python writes a name of the wire."""
    return re.sub(r"[-A-Z]", lambda match: "_" + match[0].strip("-").lower(), name)


def described(description: str) -> Meta:
    """What a field is, in the words that the reference, the plugin's types, MCP and `--help` show."""
    return Meta(description=description)


class Request(Value, frozen=True):
    """What a verb takes. Its method on `Memory` is given the owner first, then `arguments` by their names."""

    def owner(self, default_agent: str) -> Scope | str | None:
        """The session or the agent whose memory is meant; None for a verb about none."""
        return None

    def arguments(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


class OfAgent(Request, frozen=True):
    agent_id: AgentId | None = None

    def owner(self, default_agent: str) -> str:
        return resolve_agent(getattr(self, "session_id", None), self.agent_id, default_agent)

    def arguments(self) -> dict[str, Any]:
        given = msgspec.structs.asdict(self)
        del given["agent_id"]
        return given


class OfSession(Request, frozen=True):
    session_id: SessionId
    agent_id: AgentId | None = None

    def owner(self, default_agent: str) -> Scope:
        return resolve_scope(self.session_id, self.agent_id, default_agent)

    def arguments(self) -> dict[str, Any]:
        given = msgspec.structs.asdict(self)
        del given["session_id"], given["agent_id"]
        return given
