"""What a model found in a stretch: one call gives the summary, the lessons, and what takes the place of what."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import Lessons, Summarizer
from offbook.model.summary import Usage
from offbook.models.protocols import Prompt, Written
from offbook.projections.lesson_corrections import LEARNER
from tests.unit.small_memory import SMALL, assistant, caught_up, user

TABS = "I prefer tabs over spaces in the parser."
SPACES = "Scrap that: spaces it is in the parser, as everybody else has them."
SUMMARY = "They told me how the parser is to be indented, and I took note of it."
Answer = Callable[[Prompt], str]


class Model:
    """A summarizer at the edge: what it is asked it answers with what the test says."""

    name = fingerprint = "model"
    context_tokens = 100_000

    def __init__(self, *answers: str | Answer) -> None:
        self.answers = list(answers)
        self.prompts: list[Prompt] = []

    def dollars_for(self, usage: Usage) -> float:
        return 0.0

    def write(self, prompt: Prompt) -> Written:
        self.prompts.append(prompt)
        answer = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        return Written(text=answer if isinstance(answer, str) else answer(prompt), usage=Usage(output_tokens=10))

    def close(self) -> None: ...


def answer(*statements: dict[str, Any], summary: str = SUMMARY) -> str:
    return json.dumps({"summary": summary, "statements": list(statements)})


def statement(text: str, quote: str, line: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "preference", "text": text, "quote": quote, "lines": [line], "lasting": True, **fields}


TABS_FOUND = statement("They prefer tabs over spaces in the parser.", "tabs over spaces", 1, about="the parser")


def opened(folder: Path, model: Model, **fields: Any) -> Any:
    settings = msgspec.structs.replace(Settings(), **{**SMALL, "summarizer": Summarizer(order=("openai:m",)), **fields})
    return open_parts(Home(folder), settings)


def use(memory: Memory, model: Model) -> None:
    memory._background._writer._opening = lambda *_, **__: model  # type: ignore[assignment]


async def said(memory: Memory, session: str, text: str) -> None:
    scope = memory.scope(session)
    await memory.on_message(scope, [user(text), assistant("I took note of it, and I will indent the parser so.")])
    await memory.session_end(scope)
    await caught_up(memory)


async def lessons_of(memory: Memory, store: SqliteStore) -> dict[str, tuple[str, bool]]:
    await memory.maintain("main")
    await caught_up(memory)
    found = await store.lessons("main", limit=100)
    return {one.text: (one.learnt_by, one.replaced_by is None) for one in found}


async def test_one_call_gives_summary_and_lessons(tmp_path: Path) -> None:
    model = Model(answer(TABS_FOUND, {**TABS_FOUND, "text": "They own a yacht.", "quote": "yacht"}))
    async with opened(tmp_path, model) as (memory, store):
        use(memory, model)
        await said(memory, "chat", TABS)
        (summary,) = await store.summaries("main")
        assert (summary.draft.text, summary.draft.summarizer) == (SUMMARY, "model")
        holding = {text: by for text, (by, holds) in (await lessons_of(memory, store)).items() if holds}
        assert holding == {"They prefer tabs over spaces in the parser.": "model"}, "it takes the quotation's place"
        assert len(model.prompts) == 1
        asked = "\n".join(str(message.content) for message in model.prompts[0].messages)
        assert "[1] " + TABS in asked
        (view,) = (await memory.summaries("main")).summaries
        told = (view.instructions or "").split("\n")
        assert len(told) > 10
        open_ones = [line for line in told if "about … tokens" in line]
        assert [line for line in told if line not in asked] == open_ones, "what it was asked, but for the length"


async def test_done_again_it_is_not_paid_for_and_changes_nothing(tmp_path: Path) -> None:
    model = Model(answer(TABS_FOUND))
    async with opened(tmp_path, model) as (memory, store):
        use(memory, model)
        await said(memory, "chat", TABS)
        before = await lessons_of(memory, store)
        async with memory._background.runner.apart("main"):
            for projection in memory._background.projections:
                await projection.rebuild("main")
        memory._background.runner.notify_agent("main")
        await caught_up(memory)
        assert await lessons_of(memory, store) == before
        assert len(model.prompts) == 1


async def test_what_it_replaces_gives_way_in_lessons_and_messages(tmp_path: Path) -> None:
    def second(prompt: Prompt) -> str:
        (known,) = [
            line.split(":")[0]
            for message in prompt.messages
            for line in str(message.content).splitlines()
            if line.startswith("lesson-") and "tabs over spaces" in line
        ]
        spaces = statement("They want spaces in the parser, as everybody else.", "spaces it is", 1, replaces=[known])
        return answer({**spaces, "lasting": False, "kind": "decision"})

    model = Model(answer(TABS_FOUND), second)
    async with opened(tmp_path, model) as (memory, store):
        use(memory, model)
        await said(memory, "monday", TABS)
        await lessons_of(memory, store)
        await said(memory, "tuesday", SPACES)
        holding = [text for text, (_, holds) in (await lessons_of(memory, store)).items() if holds]
        assert holding == ["They want spaces in the parser, as everybody else."]
        messages = (await store.arrivals("main", after_event=0)).messages
        links = await store.supersessions("main", [one.place for one in messages])
        assert [(one.old_place, one.new_place) for one in links] == [(messages[0].place, messages[2].place)]
        events = [event.actor for event in (await memory.audit("main", limit=100)).events if event.verb == "supersede"]
        assert events == [LEARNER]


async def test_a_summary_that_is_none_falls_back_to_quoting(tmp_path: Path) -> None:
    model = Model('{"statements": []}')
    async with opened(tmp_path, model) as (memory, store):
        use(memory, model)
        await said(memory, "chat", TABS)
        (summary,) = await store.summaries("main")
        assert summary.draft.summarizer == "extractive"
        assert TABS in summary.draft.text


async def test_who_wants_no_lessons_gets_none(tmp_path: Path) -> None:
    model = Model(answer(TABS_FOUND))
    async with opened(tmp_path, model, lessons=Lessons(enabled=False)) as (memory, store):
        use(memory, model)
        await said(memory, "chat", TABS)
        assert await lessons_of(memory, store) == {}
