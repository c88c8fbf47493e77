"""Writes the methods of the clients: those of `AsyncClient` from the table of verbs, and those of `Client` from
`AsyncClient`. `make docs` runs it, and a test compares what is there.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from offbook.api.agent_requests import HostUsage
from offbook.api.fields import OfSession, snake
from offbook.api.verbs import VERBS, Verb
from offbook.model import answers
from offbook.model.lesson import LessonKind, LessonStatus, Verdict
from offbook.model.memory_entry import Depth, Reach
from offbook.model.record import Record
from offbook.model.summary import Usage

BY_HAND = frozenset({"ping", "onMessage", "expand", "forget/verify", "hooks/pre-compaction"})
"""Verbs whose method does more than ask: `AsyncClient` has them."""
AS_DICTIONARIES = frozenset({"log", "status", "audit"})
"""Answers that are given as they came, with whatever a newer provider adds."""
DEFAULTS = {("forget", "reason"): ""}
"""Fields that the wire asks for and a method does not."""
NAMES: tuple[tuple[Any, str, str], ...] = (
    (Reach, "Reach", "offbook.model.memory_entry"),
    (Depth, "Depth", "offbook.model.memory_entry"),
    (LessonKind, "LessonKind", "offbook.model.lesson"),
    (LessonStatus, "LessonStatus", "offbook.model.lesson"),
    (Verdict, "Verdict", "offbook.model.lesson"),
    (Record, "Record", "offbook.model.record"),
    (HostUsage, Usage.__name__, Usage.__module__),
)
"""Types that are written by a name which they do not have themselves."""
LINE_LENGTH = 120
HEADER = '''"""{title}

Made by `make docs`. Change what it is made from, not this file.
"""'''


def generated() -> dict[str, str]:
    """Every file of this folder that is made, by its name."""
    return {
        "agent_verb_methods.py": agent_methods(),
        "verb_methods.py": session_methods(),
        "blocking_methods.py": blocking_methods(),
    }


# ── of the table of verbs ──


def agent_methods() -> str:
    used: set[tuple[str, str]] = {("offbook.client.asking", "Asking")}
    title = "The verbs about an agent as methods, for asyncio."
    return _module(title, used, "class AgentVerbMethods(Asking):\n" + _methods(used, of_session=False))


def session_methods() -> str:
    used: set[tuple[str, str]] = {("offbook.client.agent_verb_methods", "AgentVerbMethods")}
    title = "The verbs about a session as methods, for asyncio, beside those about an agent."
    return _module(title, used, "class VerbMethods(AgentVerbMethods):\n" + _methods(used, of_session=True))


def _methods(used: set[tuple[str, str]], *, of_session: bool) -> str:
    verbs = [verb for verb in VERBS.values() if verb.name not in BY_HAND]
    meant = [verb for verb in verbs if issubclass(verb.request, OfSession) == of_session]
    return "\n\n".join(_verb_method(verb, used) for verb in meant)


def _verb_method(verb: Verb, used: set[tuple[str, str]]) -> str:
    hints = get_type_hints(verb.request)
    first, rest, sent = ["self"], list[str](), list[str]()
    for field in msgspec.structs.fields(verb.request):
        name, default = snake(field.encode_name), DEFAULTS.get((verb.name, field.name), field.default)
        written = f"{name}: {_type(hints[field.name], used)}"
        is_required = default is msgspec.NODEFAULT
        written = written if is_required else f"{written} = {default!r}"
        (first if is_required or field.name in verb.positional else rest).append(written)
        if name not in ("session_id", "agent_id"):
            is_left_out = not field.required and (default is False or default == "")
            sent.append(f"{field.encode_name}={name} or None" if is_left_out else f"{field.encode_name}={name}")
    rest.sort(key=lambda parameter: parameter.startswith("agent_id:"))
    session = "session_id" if "session_id" in hints else "None"
    parameters = [*first, *(["*", *rest] if rest else [])]
    return (
        f"    async def {verb.method}({', '.join(parameters)}) -> {_returned(verb, used)}:\n"
        f"{_docstring(verb)}\n"
        f"        body = self._of({', '.join([session, 'agent_id', *sent])})\n"
        f"        {_asked(verb, used)}\n"
    )


def _asked(verb: Verb, used: set[tuple[str, str]]) -> str:
    if verb.answer is answers.Done:
        return f'await self.call("{verb.name}", body)'
    if NoneType in get_args(verb.answer):
        return f'return await self._ask_maybe("{verb.name}", body, {_type(get_args(verb.answer)[0], used)})'
    kind = "dict[str, Any]" if verb.name in AS_DICTIONARIES else _type(verb.answer, used)
    waiting = ""
    if "wait_ms" in verb.request.__struct_fields__:
        waiting = ", extra_seconds=wait_ms / 1000"
    elif verb.is_slow:
        used.add(("offbook.client.asking", "PATIENCE_SECONDS"))
        waiting = ", extra_seconds=PATIENCE_SECONDS"
    asked = f'await self._ask("{verb.name}", body, {kind}{waiting})'
    return f"return ({asked}).{verb.result}" if verb.result else f"return {asked}"


def _returned(verb: Verb, used: set[tuple[str, str]]) -> str:
    if verb.answer is answers.Done:
        return "None"
    if verb.name in AS_DICTIONARIES:
        used.add(("typing", "Any"))
        return "dict[str, Any]"
    returned = _type(get_type_hints(verb.answer)[verb.result] if verb.result else verb.answer, used)
    return returned.replace("Sequence[", "list[")


def _type(kind: Any, used: set[tuple[str, str]]) -> str:
    """As it is written in a signature; what is to be imported for it goes into `used`."""
    for known, name, module in NAMES:
        if kind == known:
            used.add((module, name))
            return name
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return " | ".join(_type(each, used) for each in get_args(kind))
    if origin is Literal:
        raise TypeError(f"{kind} has no name here: add it to NAMES")
    if origin is list:
        used.add(("collections.abc", "Sequence"))
        return f"Sequence[{_type(get_args(kind)[0], used)}]"
    if origin is dict:
        return f"dict[{', '.join(_type(each, used) for each in get_args(kind))}]"
    if kind is Any or kind is datetime:
        used.add((kind.__module__, kind.__name__))
        return "Any" if kind is Any else "datetime | str"
    if kind is NoneType:
        return "None"
    if kind.__module__ != "builtins":
        used.add((kind.__module__, kind.__name__))
    return str(kind.__name__)


def _docstring(verb: Verb) -> str:
    """That of the request, its fields by their names here."""
    text = re.sub(r"`[a-z]+[A-Z]\w*`", lambda match: snake(match[0]), inspect.getdoc(verb.request) or "")
    paragraphs = [textwrap.fill(each, LINE_LENGTH - 8 - 6) for each in text.split("\n\n")]
    end = '\n"""' if len(paragraphs) > 1 else '"""'
    return textwrap.indent('"""' + "\n\n".join(paragraphs) + end, " " * 8)


# ── of the class for asyncio ──


def blocking_methods() -> str:
    """Each method is that of the class for asyncio, run on the loop of a thread."""
    from offbook.client.async_client import AsyncClient

    names = dict.fromkeys(each for base in reversed(AsyncClient.__mro__) for each in vars(base))
    lines = []
    used = {("offbook.client.async_client", "AsyncClient"), ("offbook.client.loop_thread", "OnLoop")}
    for name in names:
        if not name.startswith("_"):
            how = "blocking" if inspect.iscoroutinefunction(getattr(AsyncClient, name)) else "passed_on"
            used.add(("offbook.client.loop_thread", how))
            lines.append(f"    {name} = {how}(AsyncClient.{name})")
    written = "class ClientMethods(OnLoop):\n" + "\n".join(lines)
    return _module("The methods of `AsyncClient`, for callers that block.", used, written)


# ── a file ──


def _module(title: str, used: set[tuple[str, str]], body: str) -> str:
    """As `ruff` would have it."""
    imports = [f"from {module} import {name}" for module, name in sorted(used)]
    head = [HEADER.format(title=title), "", "from __future__ import annotations", "", *imports, "", ""]
    text = "\n".join(head) + body + "\n"
    for command in (["check", "--select", "I", "--fix", "--config", 'src = ["src"]'], ["format"]):
        options = ["--isolated", "--quiet", "--config", f"line-length = {LINE_LENGTH}", "-"]
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *options], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text
