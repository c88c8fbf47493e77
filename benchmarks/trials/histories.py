"""What hosts send, at random and the same for the same seed: tool pairs in every dialect, and all that goes wrong with
them; huge turns, empty ones, noise, texts of many scripts.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

from benchmarks.texts import text
from offbook.model.types import Message

PNG = base64.b64encode(b"\x89PNG" + bytes(600)).decode()
NOISE = (
    "[OpenClaw heartbeat poll]",
    "HEARTBEAT_OK",
    "Let me look at that.",
    "[cron:daily] Tell me the weather.",
    "NO_REPLY",
    "ok",
)
SCRIPTS = (
    "Größe 42 in Malmö, für €1,200 — Straße 7.",
    "我们决定在星期二发布版本 2.4，预算是 12,000 元。",
    "今日の会議は午後三時からです。資料は後で送ります。",
    "الاجتماع يوم الثلاثاء الساعة 17:30 في لشبونة.",
    "Мы переехали в Лиссабон 3 мая 2031 года.",
    "👩‍👩‍👧 moved to 🇵🇹, e\u0301clair, \u202eright to left\u202c, zero\u200bwidth",
    "line\u2028separator, tab\t, bell\x07, nothing\x00here\r\n",
)
BLANK = ("", "  \n", "\u200b", "\n\n")
HUGE_CHARS = (3_000, 8_000, 8_000, 90_000)
POOL_CHARS = 20_000
TOOLS = ("exec", "read_file", "multi_tool_use.parallel", "search")
DIALECTS = ("openclaw", "anthropic", "responses", "server", "ours", "chat")
TROUBLES = ("none", "none", "none", "lost call", "lost result", "twice", "late", "between", "wrong id", "no id")
IDS = ("a", "b", "call_0", "functions.exec:0", "call_x|fc_y", "toolu_" + "9" * 50, "a b", "größe")
"""Some hosts give the same ids again and again."""

Steps = Literal["say", "ask", "swap", "end", "start", "again", "pause"]


class Step(NamedTuple):
    """One thing that happens. `tasks`: what each of several tasks says at the same time, in requests."""

    kind: Steps
    tasks: list[list[list[Message]]] = []  # noqa: RUF012
    number: int = 0
    """Characters or tokens asked for."""


class History(NamedTuple):
    seed: int
    session_id: str
    has_ids: bool
    steps: list[Step]


def history_of(seed: int) -> History:
    chance = random.Random(f"history {seed}")
    has_ids = chance.random() < 0.9
    numbered = _numbered if has_ids else (lambda message, number: message)
    steps: list[Step] = []
    count = 0
    for _ in range(chance.choice((1, 1, 2, 2, 3, 4))):
        kinds = ("say", "say", "again") if has_ids and count else ("say",)
        kind = chance.choice(kinds)
        if kind == "say":
            tasks = chance.choice((1, 1, 2, 3)) if has_ids else 1
            said = [talk(chance, chance.choice((0, 1, 1, 1, 2, 2, 3, 8))) for _ in range(tasks)]
            ready = []
            for messages in said:
                ready.append(_requests(chance, [numbered(one, count + at) for at, one in enumerate(messages)]))
                count += len(messages)
            steps.append(Step("say", [task for task in ready if task]))
        else:
            steps.append(Step("again"))
        steps += _between(chance)
    return History(seed, f"session-{seed}", has_ids, steps)


def talk(chance: random.Random, exchanges: int) -> list[Message]:
    """Exchanges one after the other, with or without tools."""
    messages: list[Message] = []
    for number in range(exchanges):
        messages.append(_plain(chance, "user"))
        if chance.random() < 0.5:
            for _ in range(chance.choice((1, 1, 2, 5))):
                messages += tool_exchange(chance, f"call-{chance.randrange(10**9)}-{number}")
        if chance.random() < 0.9:
            messages.append(_plain(chance, "assistant"))
        if chance.random() < 0.05:
            messages.append(_plain(chance, "system"))
        if chance.random() < 0.05:
            messages.append(_odd(chance))
    return messages


# ── texts ─────────────────────────────────────────────────────────────────────────────────────


def words(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.05:
        return chance.choice(BLANK)
    if kind < 0.12:
        return chance.choice(NOISE)
    if kind < 0.25:
        return " ".join(chance.choices(SCRIPTS, k=chance.choice((1, 1, 3))))
    if kind < 0.256:
        chars = chance.choice(HUGE_CHARS)
        return (_said(chance, 5_000) * (chars // 5_000 + 1))[:chars]
    if kind < 0.26:
        return chance.choice("𝔘記x\n") * chance.randint(1_000, 5_000)
    said = _said(chance, chance.choice((12, 40, 80, 120, 200, 400)))
    return said if chance.random() < 0.8 else f"{said} Ticket OPS-{chance.randrange(10**6)} is due on 3 May 2031."


def _said(chance: random.Random, chars: int) -> str:
    first = chance.randrange(POOL_CHARS - chars)
    return _pool()[first : first + chars]


@cache
def _pool() -> str:
    """One long talk, of which each message is a piece: making each anew would take longer than everything else."""
    return "".join(text(f"pool {number}", 4_000) for number in range(POOL_CHARS // 4_000))


def _plain(chance: random.Random, role: Any) -> Message:
    said: Any = words(chance)
    kind = chance.random()
    if kind < 0.15:
        said = [{"type": chance.choice(("text", "input_text", "output_text")), "text": said}, *_beside(chance, role)]
    elif kind < 0.18:
        said = []
    name = chance.choice((None, None, None, "Ada", "Zoë")) if role == "user" else None
    meta = {"channel": "x"} if chance.random() < 0.05 else None
    return Message(role=role, content=said, name=name, meta=meta)


def _beside(chance: random.Random, role: str) -> list[dict[str, Any]]:
    """What stands beside a text: an image of the user's, reasoning of the model's."""
    if chance.random() < 0.5:
        return []
    if role == "assistant":
        return [{"type": "thinking", "thinking": words(chance), "signature": "c2ln"}]
    return [
        chance.choice(
            (
                {"type": "image", "data": PNG, "mimeType": "image/png"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": words(chance)}},
                {"type": "hologram", "layers": [{"z": 1}]},
            )
        )
    ]


def _odd(chance: random.Random) -> Message:
    """What nobody should send."""
    call, result = pair(chance, chance.choice(DIALECTS[:-1]), chance.choice(("", "a", "never")))
    return chance.choice(
        (
            Message(role="tool", content=words(chance)),
            Message(role="tool", content=words(chance), tool_call_id="never called"),
            Message(role="user", content=[call]),
            Message(role="assistant", content=[result]),
            Message(role="assistant", content=[call, result, call]),
            Message(role="system", content=[result]),
            Message(role="assistant", content=words(chance), meta={"tool_calls": [7]}),
            Message(role="assistant", content=[{"tool_calls": [{"id": "n1", "function": {"name": "ls"}}]}]),
            Message(role="user", content="data:image/png;base64," + PNG),
        )
    )


# ── tools ─────────────────────────────────────────────────────────────────────────────────────


def tool_exchange(chance: random.Random, prefix: str) -> list[Message]:
    """Some calls and their results, in one dialect, with something wrong now and then."""
    dialect = chance.choice(DIALECTS)
    is_unique = chance.random() < 0.8
    ids = [f"{prefix}-{number}" if is_unique else chance.choice(IDS) for number in range(chance.choice((1, 1, 2, 3)))]
    if dialect == "chat":
        calls = [_chat_call(chance, id) for id in ids]
        made = [Message(role="assistant", content=words(chance), meta={"tool_calls": calls})]
        answers = [Message(role="tool", content=words(chance), tool_call_id=id) for id in ids]
    else:
        pairs = [pair(chance, dialect, id) for id in ids]
        made, answers = _in_messages(chance, ids, pairs)
    if chance.random() < 0.3:
        chance.shuffle(answers)
    return _troubled(chance, made, answers)


def pair(chance: random.Random, dialect: str, id: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    name, given = chance.choice(TOOLS), {"path": "/tmp/" + chance.choice("abc"), "deep": [1, {"b": None}]}
    value: Any = words(chance)
    if chance.random() < 0.4:
        value = [{"type": "text", "text": value}]
    match dialect:
        case "openclaw":
            call = {"type": "toolCall", "id": id, "name": name, "arguments": given, "thoughtSignature": "c2ln"}
            return call, {"type": "toolResult", "toolCallId": id, "content": value, "isError": False}
        case "anthropic":
            call = {"type": "tool_use", "id": id, "name": name, "input": given}
            return call, {"type": "tool_result", "tool_use_id": id, "content": value}
        case "responses":
            call = {"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": json.dumps(given)}
            return call, {"type": "function_call_output", "call_id": id, "output": value}
        case "server":
            call = {"type": "server_tool_use", "id": id, "name": name, "input": given}
            return call, {"type": "web_search_tool_result", "tool_use_id": id, "content": value}
    call = {"type": "tool-call", "id": id, "name": name, "arguments": given}
    return call, {"type": "tool-result", "toolCallId": id, "content": value}


def _chat_call(chance: random.Random, id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": chance.choice(TOOLS), "arguments": '{"path": "/"}'}}


def _in_messages(
    chance: random.Random, ids: list[str], pairs: list[tuple[dict[str, Any], dict[str, Any]]]
) -> tuple[list[Message], list[Message]]:
    calls, results = [call for call, _ in pairs], [result for _, result in pairs]
    before = [{"type": "text", "text": words(chance)}] if chance.random() < 0.3 else []
    made = (
        [Message(role="assistant", content=[*before, *calls])]
        if chance.random() < 0.7
        else [Message(role="assistant", content=[call]) for call in calls]
    )
    match chance.choice(("tool", "block of a tool", "one by one", "at once", "with the call")):
        case "tool":
            return made, [Message(role="tool", content=words(chance), tool_call_id=id) for id in ids]
        case "block of a tool":
            answers = zip(ids, results, strict=True)
            return made, [Message(role="tool", content=[result], tool_call_id=id) for id, result in answers]
        case "one by one":
            return made, [Message(role="user", content=[result]) for result in results]
        case "at once":
            return made, [Message(role="user", content=[*results, {"type": "text", "text": words(chance)}])]
    both = [block for one in pairs for block in one]
    return [], [Message(role="assistant", content=both)]


def _troubled(chance: random.Random, made: list[Message], answers: list[Message]) -> list[Message]:
    row = [*made, *answers]
    at = chance.randrange(len(row))
    match chance.choice(TROUBLES):
        case "lost call" if made:
            return row[1:]
        case "lost result":
            return row[:-1]
        case "twice":
            return [*row[: at + 1], row[at], *row[at + 1 :]]
        case "late":
            return [*row[:-1], _plain(chance, "user"), _plain(chance, "assistant"), row[-1]]
        case "between":
            return [*row[:at], _plain(chance, "user"), *row[at:]]
        case "wrong id":
            return [*row, Message(role="tool", content=words(chance), tool_call_id="nobody asked")]
        case "no id":
            return [*row, Message(role="tool", content=words(chance))]
    return row


# ── what happens ──────────────────────────────────────────────────────────────────────────────


def _numbered(message: Message, number: int) -> Message:
    return Message(
        role=message.role,
        content=message.content,
        id=f"m{number}",
        name=message.name,
        tool_call_id=message.tool_call_id,
        meta=message.meta,
    )


def _requests(chance: random.Random, messages: list[Message]) -> list[list[Message]]:
    requests = []
    while messages:
        size = chance.choice((1, 1, 2, 3, 10))
        requests.append(messages[:size])
        messages = messages[size:]
    return requests


def _between(chance: random.Random) -> list[Step]:
    made: dict[str, Callable[[], list[Step]]] = {
        "nothing": lambda: [],
        "pause": lambda: [Step("pause")],
        "ask": lambda: [Step("ask", number=sized(chance))],
        "swap": lambda: [Step("swap", number=chance.choice((10, 60, 300, 1_500, 8_000, 60_000)))],
        "end": lambda: [Step("end"), Step("pause")] if chance.random() < 0.5 else [Step("end")],
        "restart": lambda: [Step("end"), Step("pause"), Step("start", number=sized(chance))],
        "start": lambda: [Step("start", number=sized(chance))],
    }
    chosen = chance.choices(list(made), weights=(1, 3, 2, 4, 1, 1, 1), k=chance.choice((1, 2, 3)))
    return [step for kind in chosen for step in made[kind]()]


def sized(chance: random.Random) -> int:
    """So many characters: next to nothing, little, much, more than there is."""
    low, high = chance.choice(((1, 60), (60, 250), (250, 1_000), (1_000, 4_000), (4_000, 20_000), (20_000, 10**6)))
    return chance.randint(low, high)
