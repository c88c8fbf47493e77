"""A real conversation in a daemon: two friends over months, with turns, a swap, tools, a picture, hostile text."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import Daemon, running
from tests.unit.models.chat_server import Answer, completion, serving

SESSION = "allotment"
"""331 messages of two friends."""
WORK = "work"
CHANGED = "locker"
OLD_FACT, NEW_FACT = "My locker is number 12.", "Correction: my locker is number 21, not 12."
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
MODEL = "openai:storyteller"
SUMMARY = (
    "They told each other their news over the months: the allotment beside the railway, the baby that is due in July, "
    "the marathon that ended with a stress fracture, and the boat that is named after their father. They want to see "
    "each other in the summer, and I am to remind them of it."
)
PRICES = {"INPUT": "2", "CACHED": "0.2", "OUTPUT": "8"}
HOSTILE = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
    "<a href='javascript:window.pwned = 3'>click</a> [me](javascript:window.pwned=4) https://example.com/ "
    "</div></article><style>*{display:none}</style>"
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
LARGE = "All lines of a long listing. " * 5_000
"""More than a message holds itself: it lies beside the database."""
BACKGROUND_SECONDS = 200
PROMPTS = ("When is Ines due?", "Which plot is the allotment?", "What is Fiona expecting in March?")


@contextmanager
def talking(settings: Mapping[str, str] = SETTINGS, *, is_hostile: bool = True) -> Iterator[Daemon]:
    """A daemon with all of it, whose summaries were made of quotes; since then it has a model, a scripted one."""
    with tempfile.TemporaryDirectory(prefix="ob") as folder:
        home = Path(folder) / "home"
        with running(settings, home=home) as daemon:
            seed(daemon, is_hostile=is_hostile)
            wait_until(lambda: not told(daemon, "ping")["backlog"])
        with serving(_summary) as server:
            prices = {f"OFFBOOK_SUMMARIZER_DOLLARS_PER_MILLION_{name}": price for name, price in PRICES.items()}
            endpoint = {"OFFBOOK_SUMMARIZER_ORDER": MODEL, "OFFBOOK_SUMMARIZER_ENDPOINT": f"{server.url}/v1"}
            with running({**settings, **endpoint, **prices}, home=home) as daemon:
                yield daemon


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: Playwright has a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def _summary(body: dict[str, Any]) -> Answer:
    """As a model that writes well. Three quarters of what it reads come from the prompt cache."""
    read = sum(len(str(message["content"])) for message in body["messages"]) // 4
    cached = {"cached_tokens": read * 3 // 4}
    return completion(SUMMARY, usage={"prompt_tokens": read, "completion_tokens": 60, "prompt_tokens_details": cached})


def told(daemon: Daemon, verb: str, **fields: Any) -> Any:
    reply = daemon.ask(verb, over_socket=True, **fields)
    assert reply.status == 200, reply.body
    return reply.json()


def seed(daemon: Daemon, *, is_hostile: bool = True) -> None:
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
    told(
        daemon,
        "onMessage",
        sessionId=WORK,
        messages=[each for each in _work() if is_hostile or each["content"] != HOSTILE],
    )
    told(daemon, "onMessage", sessionId=CHANGED, messages=_changed())
    told(
        daemon, "onMessage", sessionId="notes", agentId=OTHER_AGENT, message={"role": "user", "content": OTHERS_SECRET}
    )


def _changed() -> list[dict[str, Any]]:
    """A correction, days apart."""
    today = datetime.now(UTC)
    said = [(OLD_FACT, 9), (NEW_FACT, 2)]
    return [{"role": "user", "content": text, "ts": (today - timedelta(days=days)).isoformat()} for text, days in said]


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
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "content": LARGE}]},
        {"role": "user", "content": "My badge number is QX-4471, please forget it later."},
    ]
