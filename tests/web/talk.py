"""A real conversation in a daemon: two friends over months, with turns, a swap, tools, a picture, hostile text."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import Daemon

SESSION = "allotment"
"""331 messages of two friends."""
WORK = "work"
OTHER_AGENT = "researcher"
OTHERS_SECRET = "The password hint of the researcher is Zebrafish."
WINDOW = 6_000
SETTINGS = {
    "OFFBOOK_EMBEDDING_MODEL": "none",
    "OFFBOOK_CHUNK_TOKENS": "500",
    "OFFBOOK_SUMMARY_TARGET_TOKENS": "150",
    "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "800",
    "OFFBOOK_MERGE_THRESHOLD": "3",
    "OFFBOOK_WORKER_INTERVAL": "1s",
}
"""So that a conversation of this length has summaries of more than one level."""
HOSTILE = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
    "<a href='javascript:window.pwned = 3'>click</a> [me](javascript:window.pwned=4) https://example.com/ "
    "</div></article><style>*{display:none}</style>"
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
BACKGROUND_SECONDS = 200
PROMPTS = ("When is Ines due?", "Which plot is the allotment?", "What is Fiona expecting in March?")


def told(daemon: Daemon, verb: str, **fields: Any) -> Any:
    reply = daemon.ask(verb, over_socket=True, **fields)
    assert reply.status == 200, reply.body
    return reply.json()


def seed(daemon: Daemon) -> None:
    lines = json.loads(Path(__file__).with_name("conversation.json").read_text(encoding="utf-8"))
    messages = [
        {"role": role, "content": text, "id": f"m{number}", "ts": date, "name": name}
        for number, (date, role, name, text) in enumerate(lines)
    ]
    for first in range(0, len(messages), 100):
        told(daemon, "onMessage", sessionId=SESSION, messages=messages[first : first + 100])
    for prompt in PROMPTS:
        told(daemon, "prepareTurn", sessionId=SESSION, prompt=prompt)
        told(daemon, "onMessage", sessionId=SESSION, message={"role": "user", "content": prompt, "id": prompt})
    told(daemon, "compress", sessionId=SESSION)
    wait_until(lambda: "L2" in told(daemon, "status")["summaries"]["counts"])
    swap = told(daemon, "swap", sessionId=SESSION, usedTokens=5_600, contextWindow=WINDOW, force=True)
    assert swap["swapped"], swap["reason"]
    told(daemon, "onMessage", sessionId=SESSION, message={"role": "user", "content": "And after the swap we go on."})
    told(daemon, "prepareTurn", sessionId=SESSION, prompt="What is the number of my plot beside the railway?")
    told(daemon, "onMessage", sessionId=WORK, messages=_work())
    told(
        daemon, "onMessage", sessionId="notes", agentId=OTHER_AGENT, message={"role": "user", "content": OTHERS_SECRET}
    )


def wait_until(is_true: Callable[[], bool]) -> None:
    """For what is made in the background."""
    deadline = time.monotonic() + BACKGROUND_SECONDS
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _work() -> list[dict[str, Any]]:
    call = {"type": "tool-call", "id": "c1", "name": "shell", "arguments": {"command": "pytest -q"}}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    return [
        {
            "role": "user",
            "content": "We decided to use Postgres 16 for the ledger. Always run the tests on the replica.",
        },
        {"role": "assistant", "content": [{"type": "text", "text": "I run the tests."}, call]},
        {
            "role": "tool",
            "toolCallId": "c1",
            "content": [{"type": "tool-result", "toolCallId": "c1", "content": "412 ok"}],
        },
        {"role": "user", "content": [{"type": "text", "text": "This is what I see."}, picture]},
        {"role": "user", "content": HOSTILE},
        {"role": "user", "content": "My badge number is QX-4471, please forget it later."},
    ]
