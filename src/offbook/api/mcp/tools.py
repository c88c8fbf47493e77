"""The tools: what a model is told of each, the verb it asks, and the answer as text and as structure.

Words of others are harmless in both: `harmless` says why a structure promises no exact characters.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from offbook.api.mcp import answer_text, arguments
from offbook.api.mcp.asking import Memory
from offbook.api.mcp.harmless import NAMES, harmless_json
from offbook.api.mcp.resources import LONGEST_NUMBER
from offbook.api.mcp.spoken import conversation, spoken
from offbook.ingest.frames import A_RECORD
from offbook.model.errors import InvalidInput, NotFound, OffbookError, ProviderRefused, WrongShape
from offbook.model.plain_names import level_and_number, number_behind

Json = dict[str, Any]


class Request(NamedTuple):
    verb: str
    body: Json


class ToolAnswer(NamedTuple):
    """What a tool answers: `text` for whoever reads, `structure` for whoever computes."""

    text: str
    structure: Json
    is_error: bool = False


class Tool(NamedTuple):
    title: str
    description: str
    takes: type[arguments.Arguments]
    request: Callable[[Any, Memory], Request]
    tell: Callable[[Json, Any, Request], ToolAnswer]
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = True


# ── from arguments to a verb ──────────────────────────────────────────────────────────────────


def _recall(given: Any, memory: Memory) -> Request:
    return Request("recall", memory.within(arguments.sent(given)))


def _record(given: Any, memory: Memory) -> Request:
    # With an id of its own it is stored once, should the way to the provider break and be tried again.
    message = {"role": given.role, "content": given.content, "id": given.id or f"mcp:{os.urandom(16).hex()}"}
    return Request("onMessage", memory.within({**arguments.sent(given, "role", "content", "id"), "message": message}))


def _context(given: Any, memory: Memory) -> Request:
    return Request("getCompressedContext", memory.within(arguments.sent(given)))


def _expand(given: Any, memory: Memory) -> Request:
    body = memory.owned(arguments.sent(given, "sessionId", "firstSeq", "lastSeq"))
    if (given.first_seq is None) == (given.summary_id is None):
        raise WrongShape(
            "say what is meant: either `summaryId`, or `firstSeq` (with `sessionId` for another session, and with "
            "`lastSeq` for more than one message)"
        )
    if given.first_seq is not None:
        last_seq = given.first_seq if given.last_seq is None else given.last_seq
        if last_seq < given.first_seq:
            raise WrongShape(f"`lastSeq` {last_seq} is before `firstSeq` {given.first_seq}: give the earlier one first")
        session_id = given.session_id or memory.session_id
        body["span"] = {"sessionId": session_id, "firstSeq": given.first_seq, "lastSeq": last_seq}
    elif given.summary_id is not None:
        body["summaryId"] = _source_id(given.summary_id)
    return Request("expand", body)


def _source_id(given: str) -> str:
    """As it is shown; in other letters it is meant just the same."""
    if number_behind("lesson-", given.lower(), most=LONGEST_NUMBER) is not None:
        return given.lower()
    if level_and_number(given.upper(), most=LONGEST_NUMBER) is None:
        raise WrongShape(
            f"`summaryId` is {given!r}, which is no id such as L1-0003 or lesson-0007: the resource "
            "offbook://summaries lists the summaries"
        )
    return given.upper()


def _pin(given: Any, memory: Memory) -> Request:
    # No session is filled in here, nor in `_forget`: it would mean all of that session.
    return Request("unpin" if given.unpin else "pin", memory.owned(arguments.sent(given, "unpin")))


def _forget(given: Any, memory: Memory) -> Request:
    if given.confirm and not given.reason.strip():
        raise WrongShape("`reason` is missing: with `confirm` say why, it is kept in the record")
    body = arguments.sent(given, "confirm")
    return Request("forget", memory.owned({**body, "dryRun": not given.confirm}))


def _status(given: Any, memory: Memory) -> Request:
    return Request("status", memory.owned(arguments.sent(given)))


# ── the table ─────────────────────────────────────────────────────────────────────────────────

TOOLS: dict[str, Tool] = {
    "memory_recall": Tool(
        "Recall",
        "Find what was said before, in this conversation or in any earlier one, and when. Use it whenever the answer "
        "may depend on something said earlier, and before saying that you do not know.",
        arguments.Recall,
        _recall,
        lambda answer, *_: ToolAnswer(answer_text.recalled(answer), _of_record(harmless_json(answer, NAMES))),
        is_read_only=True,
    ),
    "memory_record": Tool(
        "Record",
        "Store something that was said, so that it can be recalled in any later conversation: a fact, a decision, a "
        "preference, a correction. It is on disk when this returns.",
        arguments.Record,
        _record,
        lambda answer, _, request: _recorded(answer, request.body),
        is_idempotent=False,
    ),
    "memory_context": Tool(
        "Context",
        "A whole conversation in a given number of characters: summaries of what is older, the newest word for word.",
        arguments.Context,
        _context,
        lambda answer, *_: _in_context(answer),
        is_read_only=True,
    ),
    "memory_expand": Tool(
        "Expand",
        "The messages behind a summary or a lesson, or messages firstSeq to lastSeq of a session, word for word; of "
        "one that is very long, its beginning.",
        arguments.Expand,
        _expand,
        lambda answer, _, request: _expanded(answer, request.body),
        is_read_only=True,
    ),
    "memory_pin": Tool(
        "Pin",
        "Keep entries from ever fading: those of entryIds, all of a session, or all that hold a keyword. With unpin, "
        "let them age again.",
        arguments.Pin,
        _pin,
        lambda answer, given, _: ToolAnswer(answer_text.pinned(answer, is_unpinned=given.unpin), answer),
    ),
    "memory_forget": Tool(
        "Forget",
        "Forget messages for good, with everything that came of them: those of entryIds, all of a session, or all that "
        "hold a text; exactly one of the three. Without confirm nothing is erased and the answer says what would go.",
        arguments.Forget,
        _forget,
        lambda answer, *_: ToolAnswer(answer_text.forgotten(answer), answer),
        is_destructive=True,
    ),
    "memory_status": Tool(
        "Status",
        "What is stored of an agent, and whether anything went missing.",
        arguments.Status,
        _status,
        lambda answer, *_: ToolAnswer(answer_text.status(answer), answer),
        is_read_only=True,
    ),
}


async def called(name: str, given: Json, memory: Memory) -> ToolAnswer:
    """What a tool answers. Whatever the provider refuses is an answer too: the model reads what to do next."""
    try:
        tool = TOOLS.get(name)
        if tool is None:
            raise NotFound(f"there is no tool {name!r}: use one of {', '.join(TOOLS)}")
        meant = arguments.read(tool.takes, given)
        request = tool.request(meant, memory)
        answer = await memory.ask(request.verb, request.body)
        # Much that was said takes long to read; whoever else is served meanwhile does not wait for that.
        return await asyncio.to_thread(tool.tell, answer, meant, request)
    except UnicodeEncodeError:
        return refused(InvalidInput("the arguments hold half of a character (a lone surrogate): send valid Unicode"))
    except OffbookError as error:
        return refused(error)


def refused(error: OffbookError) -> ToolAnswer:
    problem = error.document if isinstance(error, ProviderRefused) else error.problem()
    return ToolAnswer(problem.get("detail") or error.detail, problem, is_error=True)


def _of_record(answer: Json) -> Json:
    """Some clients show a model the structure instead of the text. And by these words it is known for what it is when a
    transcript with it is captured."""
    return {"what": A_RECORD, **answer}


def _in_context(answer: Json) -> ToolAnswer:
    said = conversation(answer)
    # The messages are the text once more.
    rest = {name: value for name, value in answer.items() if name not in ("messages", "text")}
    structure = {**harmless_json(rest, NAMES), **({"text": said} if "text" in answer else {})}
    return ToolAnswer(answer_text.context(answer, said), _of_record(structure))


def _expanded(answer: Json, body: Json) -> ToolAnswer:
    lines = [spoken(line, body.get("agentId")) for line in answer.get("messages", [])]
    rest = {name: value for name, value in answer.items() if name != "messages"}
    structure = {**harmless_json(rest, NAMES), "messages": [line.structure for line in lines]}
    return ToolAnswer(answer_text.expanded(answer, [line.text for line in lines]), _of_record(structure))


def _recorded(answer: Json, body: Json) -> ToolAnswer:
    """Where it went: the model may want to name the session or the id again."""
    structure = {**answer, "id": body["message"]["id"], "sessionId": body["sessionId"]}
    return ToolAnswer(answer_text.recorded(structure), structure, is_error=bool(answer.get("conflicts")))
