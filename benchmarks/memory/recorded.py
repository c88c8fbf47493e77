"""What a large model makes of our own conversations: its answers were recorded, and are replayed through the real
endpoint code, so that quality with a model can be measured without one.

    python -m benchmarks.memory.recorded                                  # replay, and measure beside no model
    python -m benchmarks.memory.recorded --record FOLDER --only w1-1      # ask anew

Recording waits for somebody to answer: for each call FOLDER gets `w1-1-03.request.json`, exactly what was sent, and the
text of the answer is expected in `w1-1-03.answer.txt` beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import logging
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import structlog

from benchmarks.memory.facts_standing import Told, message_of
from benchmarks.quality.data import A_TURN, Conversation
from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.log.store import Store
from offbook.model.home import Home
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import Supersession
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding, Summarizer, TurnSettings
from offbook.model.summary import Summary
from offbook.search.words import STOP_WORDS, terms

RECORDINGS = Path(__file__).parent / "recordings.jsonl.gz"
OWN = Path(__file__).parent / "conversations.json.gz"
"""Six of our own: with their questions, and the answers."""
CONVERSATIONS = ("a1-1", "w1-1", "w1-2", "m1-1", "m1-2", "m1-3")
"""An assistant, agent work with tools, German, Chinese, Spanish and English."""
MODEL = "recorded"
FACT_WORDS = 6
ANSWER_SECONDS = 1_200.0
POLL_SECONDS = 0.05


class Recording(msgspec.Struct, frozen=True, rename="camel"):
    """One call: what was sent to the endpoint, and what came back."""

    conversation: str
    number: int
    request: dict[str, Any]
    response: dict[str, Any]


class Made(NamedTuple):
    """What came of a conversation."""

    summaries: list[Summary]
    lessons: list[Lesson]
    links: list[Supersession]
    page: str


def recordings() -> dict[tuple[str, int], Recording]:
    with gzip.open(RECORDINGS) as file:
        read = [msgspec.json.decode(line, type=Recording) for line in file]
    return {(one.conversation, one.number): one for one in read}


def conversations() -> dict[str, Told]:
    with gzip.open(OWN) as file:
        return {one.id: one for one in msgspec.json.decode(file.read(), type=list[Told])}


# ── the endpoint ──────────────────────────────────────────────────────────────────────────────


class Replay:
    """Answers the calls about one conversation in their order, as they were answered once."""

    def __init__(self, conversation: str, known: Mapping[tuple[str, int], Recording]) -> None:
        self.conversation = conversation
        self.asked = 0
        self._known = known

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        one = self._known[self.conversation, self.asked]
        text = one.response["choices"][0]["message"]["content"]
        now = {said: name for name, said in known_in(request).items()}
        # Lessons may have other numbers by now: what was meant is known by its words.
        for name, said in sorted(known_in(one.request).items(), reverse=True):
            text = text.replace(f'"{name}"', f'"{now.get(said, "gone")}"')
        return _response(request, text)


def known_in(request: dict[str, Any]) -> dict[str, str]:
    """The lessons that a prompt shows, by name."""
    lines = [line for message in request["messages"] for line in message["content"].splitlines()]
    return dict(line.split(": ", 1) for line in lines if line.startswith("lesson-") and ": " in line)


class Record(Replay):
    """Waits until somebody has answered."""

    def __init__(self, conversation: str, folder: Path) -> None:
        super().__init__(conversation, {})
        self._folder = folder

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        name = self._folder / f"{self.conversation}-{self.asked:02}"
        name.with_suffix(".request.json").write_bytes(msgspec.json.format(msgspec.json.encode(request)))
        until = time.monotonic() + ANSWER_SECONDS
        while not (answered := name.with_suffix(".answer.txt")).exists():
            if time.monotonic() > until:
                raise TimeoutError(f"nobody answered {name}")
            time.sleep(POLL_SECONDS)
        time.sleep(POLL_SECONDS)
        response = _response(request, answered.read_text())
        recording = Recording(self.conversation, self.asked, request, response)
        name.with_suffix(".recording.json").write_bytes(msgspec.json.encode(recording))
        return response


def _response(request: dict[str, Any], text: str) -> dict[str, Any]:
    """As chat completions answer. The tokens are those of about four characters each."""
    read = sum(len(message["content"]) for message in request["messages"]) // 4
    usage = {"prompt_tokens": read, "completion_tokens": len(text) // 4, "total_tokens": read + len(text) // 4}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {
        "id": f"chatcmpl-{abs(hash(text)) % 10**12}",
        "object": "chat.completion",
        "created": 1_794_000_000,
        "model": MODEL,
        "choices": [choice],
        "usage": usage,
    }


@contextmanager
def serving(replay: Replay) -> Iterator[str]:
    """The endpoint's address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))
            try:
                status, body = 200, msgspec.json.encode(replay.answer(request))
            except (KeyError, TimeoutError) as error:
                status, body = 503, msgspec.json.encode({"error": {"message": f"no recording: {error}"}})
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


# ── what the product makes of it ──────────────────────────────────────────────────────────────


async def made_of(told: Told, home: Path, endpoint: str | None) -> Made:
    """Session by session, each ended before the next, as they were had."""
    summarizer = Summarizer()
    if endpoint is not None:
        timeout = timedelta(seconds=ANSWER_SECONDS)
        summarizer = Summarizer(order=(f"openai:{MODEL}",), endpoint=endpoint, timeout=timeout, attempts=1)
    # What the page holds, and not how busy the machine is.
    patient = TurnSettings(deadline=timedelta(seconds=ANSWER_SECONDS))
    settings = Settings(embedding=Embedding(model="none"), summarizer=summarizer, turn=patient)
    async with open_parts(Home(home), settings) as (memory, store):
        began = Conversation(told.id, told.sessions, []).began()
        for number, (session, at) in enumerate(zip(told.sessions, began, strict=True), 1):
            scope = memory.scope(session.id, told.id)
            messages = [message_of(turn, at + place * A_TURN) for place, turn in enumerate(session.turns)]
            await memory.on_message(scope, messages)
            await memory.session_end(scope)
            await _summarised(memory, store, told.id, number)
        await memory.maintain(told.id)
        places = [one.place for one in (await store.arrivals(told.id, after_event=0, limit=100_000)).messages]
        prepared = await memory.prepare_turn(memory.scope("tomorrow", told.id), "Hello again.")
        return Made(
            summaries=[one for level in (1, 2, 3) for one in await store.summaries(told.id, level=level, limit=1_000)],
            lessons=await store.lessons(told.id, limit=1_000),
            links=await store.supersessions(told.id, places),
            page=prepared.memory,
        )


async def _summarised(memory: Memory, store: Store, agent_id: str, sessions: int) -> None:
    until = time.monotonic() + ANSWER_SECONDS
    while (await store.summary_counts(agent_id)).get(1, 0) < sessions or (await memory.ping()).backlog:
        if time.monotonic() > until:
            raise RuntimeError("it was not summarised")
        await asyncio.sleep(POLL_SECONDS)


def facts_of(told: Told) -> list[frozenset[str]]:
    """Of each message that a question needs, the rarest words in it."""
    turns = {turn.id: set(terms(turn.text)) - STOP_WORDS for session in told.sessions for turn in session.turns}
    counts = Counter(word for words in turns.values() for word in words)
    asked = {id_ for question in told.questions for id_ in question.evidence if id_ in turns}
    return [frozenset(sorted(turns[id_], key=lambda word: (counts[word], word))[:FACT_WORDS]) for id_ in sorted(asked)]


def standing(facts: Sequence[frozenset[str]], texts: Iterable[str]) -> int:
    """How many have half of their words together in one line."""
    lines = [set(terms(line)) for text in texts for line in text.split("\n")]
    return sum(any(2 * len(fact & line) >= len(fact) for line in lines) for fact in facts)


def report(told: Told, with_model: Made, without: Made) -> str:
    facts = facts_of(told)
    rows = []
    for name, made in (("with", with_model), ("without", without)):
        texts = [one.draft.text for one in made.summaries if one.draft.level == 1]
        held = [one.text for one in made.lessons if one.replaced_by is None]
        rows.append(
            f"{told.id} {name:7}: facts standing {standing(facts, texts)}/{len(facts)} in {sum(map(len, texts)):,} "
            f"characters, on the page {standing(facts, [made.page])}; lessons {len(held)}, replaced "
            f"{len(made.lessons) - len(held)}, links {len(made.links)}"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="a folder for requests and their answers")
    parser.add_argument("--only", nargs="*", default=list(CONVERSATIONS))
    parser.add_argument("--show", action="store_true", help="print the page of each")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    own = conversations()
    known = recordings() if given.record is None else {}
    for name in given.only:
        told = own[name]
        replay = Replay(name, known) if given.record is None else Record(name, given.record)
        with serving(replay) as endpoint:
            with_model = _made(told, endpoint)
        print(report(told, with_model, _made(told, None)), flush=True)
        if given.show:
            print(with_model.page, flush=True)


def _made(told: Told, endpoint: str | None) -> Made:
    with tempfile.TemporaryDirectory() as home:
        return asyncio.run(made_of(told, Path(home), endpoint))


if __name__ == "__main__":
    main()
