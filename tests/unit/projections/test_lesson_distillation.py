"""Lessons that a model finds: once for each stretch, within what it may cost, and only what the messages bear out."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from offbook.log.sqlite.store import SqliteStore
from offbook.model.content import text_of
from offbook.model.errors import ModelUnavailable
from offbook.model.lesson import Lesson
from offbook.model.settings import Settings
from offbook.model.summary import SourceSpan, SummaryDraft
from offbook.model.types import AuditDraft, Message
from offbook.projections import lesson_distillation as distilling
from offbook.projections.base import Batch
from offbook.projections.lesson_distillation import (
    MOST_OF_THE_PAST,
    MOST_TRIES,
    SPANS,
    TRY_COUNTS_AFTER,
    DistillationCursor,
)
from offbook.projections.lessons import LessonProjection
from tests.unit.projections.conftest import add
from tests.unit.projections.test_lessons import DAY, on
from tests.unit.projections.test_summary_writer import Model, World

NOTHING = "There is nothing here that lasts."


def answer(*lessons: tuple[str, str, list[int]]) -> str:
    return "\n".join(json.dumps({"kind": kind, "text": text, "seqs": seqs}) for kind, text, seqs in lessons)


async def summarised(store: SqliteStore, first: int, last: int) -> None:
    draft = SummaryDraft(
        level=1,
        spans=[SourceSpan(session_id="chat", first_seq=first, last_seq=last)],
        text="We talked.",
        rank=[0],
        brief="",
        source_messages=last - first + 1,
        source_tokens=1,
        tokens=3,
        first_at=DAY,
        last_at=DAY,
        summarizer="extractive",
        prompt_version="1",
        fingerprint="",
    )
    await store.add_summary("main", draft, AuditDraft(verb="compress", actor="test"))


class Pupil:
    """Learning with models, over a real store."""

    def __init__(self, store: SqliteStore, folder: Path, *models: Model, **fields: object) -> None:
        self.store = store
        self.world = World(store, folder, *models, **fields)
        self.learning = LessonProjection(store, Settings(), None, self.world.writer)

    async def run(self) -> list[Lesson]:
        for _ in range(100):
            if (await self.learning.advance(Batch("main"))).is_done:
                return sorted(await self.store.lessons("main"), key=lambda one: one.id)
        raise AssertionError("never done")

    async def asked(self) -> DistillationCursor:
        note = await self.store.agent_note("main", SPANS)
        return msgspec.json.decode(note or "{}", type=DistillationCursor)


@pytest.fixture
async def talked(store: SqliteStore) -> SqliteStore:
    await add(
        store,
        on(1, "Anna from the Kestrel team will take over the parser next to her other work."),
        on(1, "Good to know.", role="assistant"),
        on(2, "I prefer tabs over spaces."),
        on(2, "Tabs it is.", role="assistant"),
    )
    await summarised(store, 1, 4)
    return store


ANNA = ("fact", "Anna from the Kestrel team takes over the parser.", [1])


async def test_a_stretch_is_asked_about_once(talked: SqliteStore, tmp_path: Path) -> None:
    model = Model("good", answer(ANNA))
    pupil = Pupil(talked, tmp_path, model)
    rules, found = await pupil.run()
    assert (rules.learnt_by, found.learnt_by) == ("rules", "good")
    assert (found.text, found.kind, [one.seq for one in found.sources]) == (ANNA[1], "fact", [1])
    assert found.confidence == 0.7
    assert "[1] they: Anna from the Kestrel team" in text_of(model.prompts[0].messages[0].content)
    assert await pupil.run() == [rules, found]
    assert len(model.prompts) == 1
    assert (await talked.spent("main")).dollars == 0.25, "what it cost is in the ledger"


async def test_what_the_rules_have_read_is_not_counted_twice(talked: SqliteStore, tmp_path: Path) -> None:
    model = Model("good", answer(("preference", "They prefer tabs over spaces.", [3])))
    (one,) = await Pupil(talked, tmp_path, model).run()
    assert (one.times, one.learnt_by) == (1, "rules")


async def test_what_the_messages_do_not_bear_out_is_dropped(talked: SqliteStore, tmp_path: Path) -> None:
    model = Model(
        "bold",
        answer(
            ("fact", "Berta will marry in June at the seaside.", [1]), ("fact", ANNA[1], [9]), ("rumour", ANNA[1], [1])
        ),
    )
    assert [one.learnt_by for one in await Pupil(talked, tmp_path, model).run()] == ["rules"]


async def test_stopped_before_it_was_noted_the_answer_is_not_paid_for_again(
    talked: SqliteStore, tmp_path: Path
) -> None:
    model = Model("good", answer(ANNA))
    pupil = Pupil(talked, tmp_path, model)
    before = await pupil.run()
    await talked.set_agent_note("main", SPANS, '{"through": 0}', None)
    assert await pupil.run() == before
    assert len(model.prompts) == 1


async def test_nothing_found_is_an_answer(talked: SqliteStore, tmp_path: Path) -> None:
    pupil = Pupil(talked, tmp_path, Model("good", NOTHING))
    assert [one.learnt_by for one in await pupil.run()] == ["rules"]
    assert await pupil.asked() == DistillationCursor(through=1)
    assert pupil.world.writer.troubles() == {}


async def test_a_model_that_cannot_be_reached_is_asked_later_and_then_let_be(
    talked: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = DAY
    monkeypatch.setattr(distilling, "now", lambda: at)
    pupil = Pupil(talked, tmp_path, Model("away", ModelUnavailable("not there")))
    for tries in range(1, MOST_TRIES):
        for _ in range(3):
            assert [one.learnt_by for one in await pupil.run()] == ["rules"]
            assert await pupil.asked() == DistillationCursor(through=0, tries=tries, tried_at=at), (
                "soon after, it does not count"
            )
        at += TRY_COUNTS_AFTER
    await pupil.run()
    assert await pupil.asked() == DistillationCursor(through=1)


async def test_a_model_that_comes_back_misses_nothing(talked: SqliteStore, tmp_path: Path) -> None:
    model = Model("away", ModelUnavailable("not there"), answer(ANNA))
    pupil = Pupil(talked, tmp_path, model)
    assert len(await pupil.run()) == 1
    pupil.world.seconds += 10_000
    assert len(await pupil.run()) == 2


async def test_without_a_model_nobody_is_asked(talked: SqliteStore, tmp_path: Path) -> None:
    pupil = Pupil(talked, tmp_path)
    assert len(await pupil.run()) == 1
    assert await talked.agent_note("main", SPANS) is None


async def test_of_a_long_past_only_the_newest_is_asked_about(store: SqliteStore, tmp_path: Path) -> None:
    count = MOST_OF_THE_PAST + 5
    await add(store, *[Message(role="user", content=f"Message of no weight, number {at}.") for at in range(count)])
    for seq in range(1, count + 1):
        await summarised(store, seq, seq)
    model = Model("good", NOTHING)
    await Pupil(store, tmp_path, model).run()
    assert len(model.prompts) == MOST_OF_THE_PAST


async def test_a_note_that_cannot_be_read_begins_anew(talked: SqliteStore, tmp_path: Path) -> None:
    pupil = Pupil(talked, tmp_path, Model("good", answer(ANNA)))
    await talked.set_agent_note("main", SPANS, "{", None)
    assert len(await pupil.run()) == 2
