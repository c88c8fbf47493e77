"""Lessons over HTTP, and both clients, a real daemon. What was learnt is planted before it starts, so that these tests
do not depend on what the rules learn."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offbook.api.embedded import open_memory
from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.model.errors import ProviderRefused
from offbook.model.lesson import LESSONS_SESSION, LessonDraft
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding, Lessons
from offbook.model.types import AuditDraft, Message, now
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, assert_problem, running
from tests.contract.test_http import assert_as_documented, validator

AGENTS = ("blocking", "async", "http", "audited")
SAID = ("I like black tea best.", "We decided to sail on Friday.", "The cat is called Ada.")


async def plant(home: Path) -> None:
    settings = Settings(embedding=Embedding(model="none"), lessons=Lessons(enabled=False))
    async with open_memory(home, settings=settings, environ={}) as memory:
        for agent_id in AGENTS:
            scope = memory.scope("chat", agent_id)
            await memory.on_message(scope, [Message(role="user", content=text) for text in SAID])
            drafts = [
                LessonDraft(
                    kind=kind,
                    text=text,
                    key=text,
                    confidence=0.5,
                    first_seen=now(),
                    last_seen=now(),
                    times=1,
                    places=await memory._store.places(scope, [seq]),
                )
                for seq, (kind, text) in enumerate(zip(("preference", "decision", "fact"), SAID, strict=True), 1)
            ]
            event = AuditDraft(verb="learn", actor="offbook")
            await memory._store.keep_lessons(agent_id, drafts, replaced={}, event=event)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    folder = Path(tempfile.mkdtemp(prefix="ob"))
    asyncio.run(plant(folder / "home"))
    with running(WITHOUT_MODEL | {"OFFBOOK_LESSONS_ENABLED": "false"}, home=folder / "home") as started:
        yield started
    shutil.rmtree(folder, ignore_errors=True)


def test_the_blocking_client_judges_lessons(daemon: Daemon) -> None:
    with Client(str(daemon.socket_endpoint), agent_id="blocking", home=daemon.home) as client:
        page = client.lessons(limit=2)
        assert [lesson.text for lesson in page.lessons] == [SAID[2], SAID[1]]
        assert (page.counts, page.next) == ({"learnt": 3}, "lesson-0002")
        assert [lesson.text for lesson in client.lessons(before=page.next).lessons] == [SAID[0]]
        assert [lesson.id for lesson in client.lessons(kind="decision", status="learnt").lessons] == ["lesson-0002"]
        assert client.judge_lesson("lesson-0002", "accept").status == "accepted"
        edited = client.judge_lesson("lesson-0001", "edit", "I like green tea best.")
        assert (edited.learnt_text, edited.sources[-1].session_id) == (SAID[0], LESSONS_SESSION)
        assert client.judge_lesson("lesson-0003", "reject").status == "rejected"
        judged = client.lessons(status=("accepted", "edited"))
        assert [lesson.id for lesson in judged.lessons] == ["lesson-0002", "lesson-0001"]
        found = client.recall("new", "Which tea do I like best?")
        assert found.entries[0].text == "I like green tea best."
        with pytest.raises(ProviderRefused, match="no lesson"):
            client.judge_lesson("lesson-0009", "accept")


async def test_the_async_client_judges_lessons(daemon: Daemon) -> None:
    async with AsyncClient(str(daemon.tcp_endpoint), token=daemon.token, home=daemon.home) as client:
        page = await client.lessons(agent_id="async")
        assert [lesson.text for lesson in page.lessons] == [*reversed(SAID)]
        edited = await client.judge_lesson("lesson-0003", "edit", "The cat is called Eve. 你好 👋", agent_id="async")
        assert (edited.agent_id, edited.status, edited.text) == ("async", "edited", "The cat is called Eve. 你好 👋")
        assert (await client.lessons(agent_id="nobody")).lessons == []


def test_every_answer_is_as_documented(daemon: Daemon) -> None:
    judge = {"agentId": "http", "lessonId": "lesson-0001"}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("lessons", {"agentId": "http"}),
        ("lessons", {"agentId": "http", "status": "learnt", "limit": 1}),
        ("lessons/judge", judge | {"verdict": "edit", "text": "Green tea."}),
        ("lessons/judge", judge | {"verdict": "edit", "text": "Green tea."}),
        ("lessons/judge", judge | {"verdict": "accept"}),
        ("lessons/judge", judge | {"verdict": "reject"}),
        ("lessons", {"agentId": "http", "status": ["rejected"], "kind": "preference"}),
    ]
    for verb, fields in asked:
        assert_as_documented(verb, daemon.ask(verb, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "edit"},
        {"verdict": "edit", "text": ""},
        {"verdict": "edit", "text": " \u3000"},
        {"verdict": "edit", "text": "x" * 2_001},
        {"verdict": "accept", "text": "x"},
        {"verdict": "praise"},
        {"verdict": "accept", "lessonId": "lesson-1"},
        {"verdict": "accept", "lessonId": "lesson-0001\n"},
        {"verdict": "accept", "lessonId": "../x"},
        {"lessonId": "lesson-0001"},
    ],
)
def test_what_cannot_be_meant_is_refused(daemon: Daemon, fields: dict[str, Any]) -> None:
    before = daemon.ask("lessons", agentId="http").json()
    reply = daemon.ask("lessons/judge", **{"agentId": "http", "lessonId": "lesson-0002"} | fields)
    validator("lessons/judge", 422).validate(assert_problem(reply, 422))
    assert daemon.ask("lessons", agentId="http").json() == before


@pytest.mark.parametrize(
    "fields", [{"status": []}, {"status": ["forgotten"]}, {"kind": "rumour"}, {"limit": 0}, {"limit": 101}]
)
def test_what_no_lesson_is_cannot_be_asked_for(daemon: Daemon, fields: dict[str, Any]) -> None:
    assert_problem(daemon.ask("lessons", agentId="http", **fields), 422)


def test_each_leaves_one_event_under_its_name(daemon: Daemon) -> None:
    verbs = ("lessons", "lessons/judge")
    judge = {"agentId": "audited", "lessonId": "lesson-0001"}
    for verb, fields in (
        ("lessons", {"agentId": "audited"}),
        ("lessons/judge", judge | {"verdict": "accept"}),
        ("lessons/judge", judge | {"verdict": "accept"}),
        ("lessons/judge", judge | {"verdict": "edit", "text": "Green tea."}),
        ("lessons/judge", judge | {"verdict": "edit", "text": "Green tea."}),
    ):
        before = daemon.ask("audit", agentId="audited").json()["head"]["seq"]
        assert daemon.ask(verb, **fields).status == 200
        report = daemon.ask("audit", agentId="audited", since=before).json()
        assert [event["verb"] for event in report["events"] if event["verb"] in verbs] == [verb]
        assert report["verified"]
        assert "Green" not in str(report["events"])
