"""Forgetting, through all of a memory: what came of a message goes with it, and nothing else does."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.forget import erase as erasing
from offbook.forget import residue
from offbook.forget.forgetting import Forgetting
from offbook.forget.probes import Prober
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite import purge
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreBusy
from offbook.model.home import Home
from offbook.model.lesson import LessonDraft
from offbook.model.memory_entry import Supersession
from offbook.model.receipt import FORGOTTEN_TEXT, ForgetReceipt, Selection
from offbook.model.settings import Settings
from offbook.model.settings.sections import Redaction
from offbook.model.summary import SourceSpan
from offbook.model.types import EMBEDDED, AuditDraft, Message, now
from tests.unit.projections.doubles import WordsJudge
from tests.unit.small_memory import SMALL, assistant, caught_up, exchange, talk, user

FACT = "the vault code is zanzibar 7741"
WORD = "zanzibar"
EVENT = AuditDraft(verb="test", actor="test")
LARGE = "a long tale of ships and harbours and nets that dry in the sun; " * 5_000


@asynccontextmanager
async def opened(folder: Path, **fields: Any) -> AsyncIterator[tuple[Memory, SqliteStore]]:
    settings = msgspec.structs.replace(Settings(), **{**SMALL, **fields})
    async with open_parts(Home(folder), settings) as parts:
        yield parts


def files_with(folder: Path, word: str = WORD) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


async def kept_with(store: SqliteStore, agent_id: str = "main") -> list[str]:
    return [one.name async for one in store.kept_texts(agent_id) if WORD in one.text]


async def faults(memory_home: Path, store: SqliteStore) -> list[object]:
    return [fault async for fault in verify(store, "main", blobs=BlobFiles(Home(memory_home).blobs))]


async def told(memory: Memory, exchanges: int = 60, at: int = 30) -> None:
    """A long talk in which the fact is said once."""
    await talk(memory, at)
    await memory.on_message(memory.scope("chat"), [user(f"Remember that {FACT}, and tell nobody.", id="secret")])
    await talk(memory, exchanges - at, first=at)
    await caught_up(memory)


def assert_gone(receipt: ForgetReceipt) -> None:
    assert receipt.residue == []
    assert receipt.signature
    assert receipt.unfinished is None
    assert WORD not in msgspec.json.encode(receipt).decode()


# ── by lineage ──


async def test_summaries_of_every_level_are_written_again_without_it(tmp_path: Path) -> None:
    async with opened(tmp_path, summary_target_tokens=110) as (memory, store):
        for number in range(60):
            told_so = number in (20, 40)  # a rule is worth telling, where there is room for a few lines
            fact = f"Never ship anything to {WORD} harbour {number} on a Friday, because its customs office is closed."
            said = [user(fact), assistant(f"I noted the rule for {WORD}: {fact}")] if told_so else exchange(number)
            await memory.on_message(memory.scope("chat"), said)
        await caught_up(memory)
        before = {one.id: one for one in await store.summaries("main", limit=1_000)}
        levels = {one.draft.level for one in before.values() if WORD in one.draft.text}
        assert levels == {1, 2, 3}  # it was worth telling, so that its going proves something
        receipt = await memory.forget("main", matching=WORD)
        assert_gone(receipt)
        assert receipt.reached.messages == 4
        assert receipt.reached.summaries >= 5
        after = {one.id: one for one in await store.summaries("main", limit=1_000)}
        assert after.keys() >= before.keys()
        for id_, one in before.items():
            assert WORD not in after[id_].draft.text + after[id_].draft.brief
            assert after[id_].draft.spans == one.draft.spans
            if all(not span.first_seq <= seq <= span.last_seq for span in one.draft.spans for seq in (41, 42, 81, 82)):
                assert after[id_].draft == one.draft
        assert await kept_with(store) == []
        assert await faults(tmp_path, store) == []
        await caught_up(memory)
    assert files_with(tmp_path) == []


async def test_a_summary_that_says_it_without_standing_for_it_is_written_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        await told(memory, exchanges=40, at=30)
        first = await store.summary("main", "L1-0001")
        assert first is not None
        assert first.draft.spans[0].last_seq < 61
        by_model = msgspec.structs.replace(
            first.draft, text=f"They agreed early that {FACT}.", rank=[0], brief=FACT, summarizer="a-model"
        )
        again = AuditDraft(verb="summarize", actor="test", details={"again": True})
        written = await store.add_summary("main", by_model, again)
        assert WORD in written.draft.text
        receipt = await memory.forget("main", matching=WORD)
        assert_gone(receipt)
        left = await store.summary("main", "L1-0001")
        assert left is not None
        assert WORD not in left.draft.text + left.draft.brief
        assert left.draft.text.strip()
    assert files_with(tmp_path) == []


async def test_contexts_turns_notes_and_lessons_go_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        await told(memory)
        scope = memory.scope("chat")
        await memory.swap(scope, used_tokens=190_000, context_window=200_000, force=True)
        await memory.prepare_turn(scope, "what is the vault code, do you remember?")
        (place,) = await store.places(scope, [61])
        (other,) = await store.places(scope, [3])
        for number, places in enumerate(([place], [other])):
            lesson = LessonDraft(
                text=f"Lesson {number}: {FACT}.",
                key=f"k{number}",
                kind="fact",
                confidence=1.0,
                first_seen=now(),
                last_seen=now(),
                times=1,
                places=places,
            )
            await store.keep_lessons("main", [lesson], replaced={}, event=EVENT)
        assert len(await kept_with(store)) >= 4
        receipt = await memory.forget("main", matching=FACT)
        assert_gone(receipt)
        assert receipt.reached.lessons >= 2
        assert receipt.reached.contexts >= 1
        assert await kept_with(store) == []
        turn = await memory.prepare_turn(scope, "what is the vault code, do you remember?")
        context = await memory.get_compressed_context(scope, 1_000_000)
        assert WORD not in turn.memory + turn.recall + context.text
        assert (await memory.recall(scope, f"vault code {WORD}", limit=50)).entries is not None
        assert all(WORD not in each.text for each in (await memory.recall(scope, WORD, limit=50)).entries)
        await caught_up(memory)
        assert await kept_with(store) == []
        assert await faults(tmp_path, store) == []
    assert files_with(tmp_path) == []


async def test_that_files_are_gone_is_on_the_disk_before_it_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(residue, "sync_folder", lambda folder: synced.append(folder.name))
    async with opened(tmp_path) as (memory, _):
        await told(memory, 12, 2)
        await memory.maintain("main")
        assert_gone(await memory.forget("main", matching=WORD))
    assert {"L1", "summaries", "wiki", "index"} <= set(synced)


async def test_why_a_session_ended_goes_too(tmp_path: Path) -> None:
    """In words it is in no audit event, which nothing could change any more."""
    async with opened(tmp_path) as (memory, store):
        await memory.on_message(memory.scope("chat"), [user(f"Remember that {FACT}.")])
        await memory.session_end(memory.scope("chat"), reason=f"because {FACT}")
        await caught_up(memory)
        receipt = await memory.forget("main", matching=FACT)
        assert_gone(receipt)
        session = await store.session(memory.scope("chat"))
        assert session is not None
        assert session.ended_at is not None
        assert session.end_reason is None


async def test_a_sign_is_no_word(tmp_path: Path) -> None:
    """C is not C++: what only shares the letter stays, and is no residue."""
    async with opened(tmp_path) as (memory, store):
        said = [user("I always want vitamin C with my breakfast."), user("I know C++.")]
        await memory.on_message(memory.scope("chat"), said)
        await caught_up(memory)
        await memory.maintain("main", tasks=["lessons"])
        (lesson,) = await store.lessons("main")
        await memory.judge_lesson("main", lesson.id, "accept")
        receipt = await memory.forget("main", matching="C++")
        assert_gone(receipt)
        assert (receipt.reached.messages, receipt.reached.lessons) == (1, 0)
        assert [(one.id, one.status) for one in await store.lessons("main")] == [(lesson.id, "accepted")]


@pytest.mark.parametrize(
    ("wanted", "block"),
    [
        ("4111111111111111", {"type": "tool-call", "id": "k", "name": "pay", "arguments": {"card": 4111111111111111}}),
        ("John Q Public", {"type": "tool-result", "toolCallId": "k", "content": {"John Q Public": "owner"}}),
        ("12 Harbour Street", {"type": "odd", "v": {"12 Harbour Street": 1}}),
        (
            "Café Straße 9",
            {"type": "tool-call", "id": "k", "name": "map", "arguments": '{"at": "Caf\\u00e9 Stra\\u00dfe 9"}'},
        ),
        ("Café Straße 9", {"type": "text", "text": "Meet me: **Café**, *Straße* 9."}),
    ],
)
async def test_whatever_shows_it_says_it(tmp_path: Path, wanted: str, block: dict[str, Any]) -> None:
    """Numbers, keys, arguments that came as text: recall shows them, so they are forgotten, and found where not."""
    async with opened(tmp_path) as (memory, _):
        for agent in ("main", "other"):
            await memory.on_message(memory.scope("chat", agent), [Message(role="assistant", content=[block])])
        await caught_up(memory)
        assert (await memory.recall(memory.scope("chat"), wanted)).entries
        foretold = await memory.forget("main", matching=wanted, dry_run=True)
        assert foretold.reached.messages == 1
        receipt = await memory.forget("other", matching=wanted)
        assert_gone(receipt)
        assert (await memory.recall(memory.scope("chat", "other"), wanted)).entries == []
        receipt = await memory.forget("main", matching=wanted)
        assert_gone(receipt)
        assert files_with(tmp_path, wanted) == []
        await memory.on_message(memory.scope("chat"), [Message(role="assistant", content=[block])])
        again = await memory.verify_forgotten(receipt, matching=wanted)
        assert any("message 2" in one.where for one in again.residue), again.residue


async def test_what_is_said_meanwhile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as (memory, store):
        await memory.on_message(memory.scope("chat"), [user(f"Remember that {FACT}.")])
        await caught_up(memory)
        erase = store.erase

        async def erased(*args: Any) -> Any:
            done = await erase(*args)
            await memory.on_message(memory.scope("late"), [user(f"As I said: {FACT.upper()}.")])
            return done

        monkeypatch.setattr(store, "erase", erased)
        receipt = await memory.forget("main", matching=FACT)
        assert [one.where for one in receipt.residue] == ["message 1 of late"]


async def test_what_could_not_be_finished_is_finished_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as (memory, store):
        await memory.on_message(memory.scope("chat"), [user(f"Remember that {FACT}.")])
        await caught_up(memory)
        purge = store.purge

        async def busy() -> None:
            raise StoreBusy("somebody reads")

        monkeypatch.setattr(store, "purge", busy)
        with pytest.raises(StoreBusy):
            await memory.forget("main", matching=FACT)
        monkeypatch.setattr(store, "purge", purge)
        (run,) = (await memory.maintain("main", tasks=["forgetting"])).runs
        assert run.did == {"finished": 1}
        ((_, receipt),) = await store.receipts("main")
        assert_gone(receipt)
        (run,) = (await memory.maintain("main", tasks=["forgetting"])).runs
        assert run.did == {}


async def test_a_large_part_goes_unless_a_message_that_stays_has_it_too(tmp_path: Path) -> None:
    def blocks(*texts: str) -> Any:
        return [{"type": "text", "text": text} for text in texts]

    own = f"{FACT} " + LARGE[::-1]
    async with opened(tmp_path) as (memory, store):
        scope = memory.scope("chat")
        await memory.on_message(scope, [Message(role="user", content=blocks(own, LARGE))])
        await memory.on_message(scope, [Message(role="user", content=blocks("again:", LARGE))])
        await caught_up(memory)
        stored = len(list(Home(tmp_path).blobs.rglob("*")))
        receipt = await memory.forget("main", matching=FACT)
        assert_gone(receipt)
        assert (receipt.reached.messages, receipt.reached.large_parts) == (1, 1)
        assert len([path for path in Home(tmp_path).blobs.rglob("*") if path.is_file()]) == 1 < stored
        span = SourceSpan(session_id="chat", first_seq=1, last_seq=2)
        first, second = (await memory.expand("main", span=span)).messages
        assert first.message.content == FORGOTTEN_TEXT
        assert second.message.content == blocks("again:", LARGE)
        assert await faults(tmp_path, store) == []
    assert files_with(tmp_path) == []


async def test_a_large_part_that_was_said_again_before_it_was_dropped_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as (memory, store):
        await memory.on_message(memory.scope("before"), [user(LARGE)])
        with monkeypatch.context() as patched:
            patched.setattr(store, "purge", failing)
            with pytest.raises(RuntimeError):
                await memory.forget("main", session_id="before")
        await memory.on_message(memory.scope("after"), [user(LARGE)])
        (run,) = (await memory.maintain("main", tasks=["forgetting"])).runs
        assert run.did == {"finished": 1}
        (line,) = (await memory.log(memory.scope("after"))).messages
        assert line.message.content == LARGE
        assert await faults(tmp_path, store) == []


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_large_part_waits_for_a_message_on_its_way_into_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    monkeypatch.setattr(erasing, "HELD_SECONDS", 0.01)
    async with opened(tmp_path) as (memory, store):
        await memory.on_message(memory.scope("before"), [user(LARGE)])
        is_on_its_way, was_tried, append, drop = asyncio.Event(), asyncio.Event(), store.append, BlobFiles.drop

        async def slow(*given: Any, **named: Any) -> Any:
            is_on_its_way.set()
            await was_tried.wait()
            if not is_taken:
                raise StoreBusy("send it again")
            return await append(*given, **named)

        async def tried(*given: Any) -> list[str]:
            held = await drop(*given)
            was_tried.set()
            return held

        monkeypatch.setattr(store, "append", slow)
        monkeypatch.setattr(BlobFiles, "drop", tried)
        sending = asyncio.create_task(memory.on_message(memory.scope("after"), [user(LARGE)]))
        await is_on_its_way.wait()
        await memory.forget("main", session_id="before")
        await asyncio.wait([sending])
        assert (sending.exception() is None) == is_taken
        lines = (await memory.log(memory.scope("after"))).messages
        assert [line.message.content for line in lines] == [LARGE] * is_taken
        assert len([path for path in Home(tmp_path).blobs.rglob("*") if path.is_file()]) == is_taken
        assert await faults(tmp_path, store) == []


async def test_a_large_part_that_is_held_for_long_is_left_to_maintenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "HELD_SECONDS", 0.0)
    async with opened(tmp_path) as (memory, _):
        await memory.on_message(memory.scope("before"), [user(LARGE)])
        async with memory._intake.entries(memory.scope("after"), [user(LARGE)]):
            with pytest.raises(StoreBusy, match="the next maintenance does the rest"):
                await memory.forget("main", session_id="before")
        (run,) = (await memory.maintain("main", tasks=["forgetting"])).runs
        assert run.did == {"finished": 1}
        assert not [path for path in Home(tmp_path).blobs.rglob("*") if path.is_file()]


async def test_pages_of_summaries_go_also_where_no_files_are_wanted_any_more(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"summary_target_tokens": 110}
    async with opened(tmp_path, **fields) as (memory, _):
        for number in range(40):
            said = f"Decision {number}: we always ship from {WORD} port {number} on E{number}."
            await memory.on_message(memory.scope("chat"), [user(said)])
        await caught_up(memory)
    pages = [path for path in Home(tmp_path).summaries.rglob("*.md") if WORD in path.read_text()]
    assert len(pages) > 1
    async with opened(tmp_path, **fields, summary_files=False) as (memory, _):
        assert_gone(await memory.forget("main", matching=WORD))
    assert not any(path.exists() for path in pages)


async def test_entries_and_sessions_are_forgotten_as_they_are_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        await talk(memory, 3, session="one")
        await talk(memory, 3, session="two")
        await caught_up(memory)
        entries = (await memory.recall(memory.scope("one"), "E1001", reach="session")).entries
        named = await memory.forget("main", entry_ids=[entries[0].id])
        assert [span.session_id for span in named.spans] == ["one"]
        assert named.reached.messages == 1
        whole = await memory.forget("main", session_id="two")
        assert [(span.session_id, span.first_seq, span.last_seq) for span in whole.spans] == [("two", 1, 6)]
        log = await memory.log(memory.scope("one"))
        assert [line.message.content == FORGOTTEN_TEXT for line in log.messages].count(True) == 1
        assert await faults(tmp_path, store) == []


async def test_what_gave_way_to_it_gives_way_to_what_came_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words_judge: WordsJudge
) -> None:
    """Where the links went with the one between them."""
    async with opened(tmp_path) as (memory, store):
        scope = memory.scope("chat")
        with monkeypatch.context() as unlinked:
            unlinked.setattr(words_judge, "replaces", lambda pairs: [0.0] * len(pairs))
            for text in (
                "We meet on Friday.",
                "The weekly meeting is now on Monday.",
                "It is Tuesday now that we meet.",
            ):
                await memory.on_message(scope, [user(text)])
            await caught_up(memory)
        first, between, last = await store.places(scope, [1, 2, 3])
        assert await store.supersessions("main", [first, between, last]) == []
        chain = [
            Supersession(old_place=old, new_place=new, kind="correction", at=now())
            for old, new in ((first, between), (between, last))
        ]
        await store.supersede("main", chain, EVENT)
        assert_gone(await memory.forget("main", matching="Monday"))
        links = await store.supersessions("main", [first, between, last])
        assert [(link.old_place, link.new_place) for link in links] == [(first, last)]


async def test_only_what_may_say_it_is_read_word_by_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the words are known, no stretch of anything else needs a digest."""
    async with opened(tmp_path) as (memory, _):
        await told(memory)
        digested: list[bytes] = []
        digest = Prober._digest
        monkeypatch.setattr(Prober, "_digest", lambda self, window: digested.append(window) or digest(self, window))
        receipt = await memory.forget("main", matching=FACT)
        assert_gone(receipt)
        assert len(set(digested)) == len(receipt.probes)
        digested.clear()
        assert (await memory.verify_forgotten(receipt)).residue == []
        assert len(set(digested)) > 10 * len(receipt.probes)


async def test_other_memory_is_as_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, _):
        await told(memory, exchanges=40, at=20)
        await memory.on_message(memory.scope("chat", "other"), [user(f"Mine: {FACT}.")])
        await caught_up(memory)
        before = [line.message for line in (await memory.log(memory.scope("chat"), limit=1_000)).messages]
        theirs = await memory.get_compressed_context(memory.scope("chat", "other"), 10_000)
        would = await memory.forget("main", matching=WORD, dry_run=True)
        assert would.dry_run
        assert [line.message for line in (await memory.log(memory.scope("chat"), limit=1_000)).messages] == before
        assert_gone(await memory.forget("main", matching=WORD))
        after = [line.message for line in (await memory.log(memory.scope("chat"), limit=1_000)).messages]
        assert [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [40]
        assert await memory.get_compressed_context(memory.scope("chat", "other"), 10_000) == theirs
        await memory.on_message(memory.scope("chat"), [user(f"Remember that {FACT}, and tell nobody.", id="secret")])
        assert [line.message for line in (await memory.log(memory.scope("chat"), limit=1_000)).messages] == after


async def beside_a_lesson(memory: Memory, folder: Path, *own: str) -> Path:
    """The page of a lesson that has nothing to do with it, with lines of a person's own."""
    await memory.on_message(memory.scope("aunt"), [user("Our staging server Otto runs in Bern.")])
    await caught_up(memory)
    await memory.maintain("main", tasks=["lessons", "wiki"])
    (page,) = folder.glob("wiki/main/lessons/lesson-0001.md")
    page.write_text(page.read_text().replace("status: ", "\n".join([*own, "status: "])))
    return page


async def test_what_a_person_wrote_beside_a_lesson_goes_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, _):
        page = await beside_a_lesson(memory, tmp_path, 'aliases: ["Vault Code 7741"]', "tags: [family]")
        await memory.on_message(memory.scope("chat"), [user("The vault code 7741 is not for telling.")])
        await caught_up(memory)
        foreseen = await memory.forget("main", matching="vault code 7741", dry_run=True)
        receipt = await memory.forget("main", matching="vault code 7741")
        assert_gone(receipt)
        assert receipt.reached.pages == foreseen.reached.pages
        for _ in range(2):
            assert "Vault" not in page.read_text()
            assert "Otto" in page.read_text()
            assert "tags: [family]" in page.read_text()
            await memory.maintain("main", tasks=["lessons", "wiki"])


async def test_what_only_a_person_wrote_beside_a_lesson_goes_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, _):
        page = await beside_a_lesson(memory, tmp_path, f"aliases: [{FACT}]")
        assert (await memory.forget("main", matching=WORD, dry_run=True)).reached.pages == 1
        receipt = await memory.forget("main", matching=WORD)
        assert_gone(receipt)
        assert receipt.reached.pages == 1
        assert "aliases" not in page.read_text()


# ── what breaks in, and off ──


async def test_what_a_person_wrote_beside_a_lesson_goes_also_where_it_broke_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as (memory, store):
        page = await beside_a_lesson(memory, tmp_path, f"aliases: [{WORD}]")
        await memory.on_message(memory.scope("chat"), [user(f"Remember that {FACT}.")])
        await caught_up(memory)
        with monkeypatch.context() as patched:
            patched.setattr(Forgetting, "_finish", failing)
            with pytest.raises(RuntimeError):
                await memory.forget("main", matching=WORD)
        assert WORD in page.read_text()
    async with opened(tmp_path) as (memory, store):
        async with asyncio.timeout(60):
            while not (receipt := (await store.receipts("main"))[0][1]).signature:
                await asyncio.sleep(0.05)
        assert_gone(receipt)
        assert WORD not in page.read_text()
    assert files_with(tmp_path) == []


async def test_what_broke_off_after_the_log_is_finished_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as (memory, store):
        await told(memory)
        with monkeypatch.context() as patched:
            patched.setattr(Forgetting, "_finish", failing)
            with pytest.raises(RuntimeError):
                await memory.forget("main", matching=WORD)
        ((_, half),) = await store.receipts("main")
        assert half.unfinished is not None
        assert half.signature == ""
    async with opened(tmp_path) as (memory, store):
        async with asyncio.timeout(60):
            while not (receipt := (await store.receipts("main"))[0][1]).signature:
                await asyncio.sleep(0.05)
        assert_gone(receipt)
        check = await memory.verify_forgotten(receipt, matching=WORD)
        assert (check.is_genuine, check.residue) == (True, [])
        assert await faults(tmp_path, store) == []
        await caught_up(memory)
    assert files_with(tmp_path) == []


@pytest.mark.parametrize("how", [{"matching": WORD}, {"session_id": "chat"}])
async def test_what_was_said_again_before_the_next_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, str]
) -> None:
    async with opened(tmp_path) as (memory, _):
        await memory.on_message(memory.scope("chat"), [user(f"Remember that {FACT}.")])
        with monkeypatch.context() as patched:
            patched.setattr(Forgetting, "_finish", failing)
            with pytest.raises(RuntimeError):
                await memory.forget("main", **how)
        await memory.on_message(memory.scope("again"), [user(f"I said that {FACT}.")])
    async with opened(tmp_path) as (_, store):
        async with asyncio.timeout(60):
            while not (receipt := (await store.receipts("main"))[0][1]).signature:
                await asyncio.sleep(0.05)
    # Where one session was meant, another may say the same.
    assert [one.where for one in receipt.residue] == ["message 1 of again"] * ("matching" in how)


async def failing(*_: Any, **__: Any) -> Any:
    raise RuntimeError("as if the process had ended here")


async def test_it_goes_on_where_whoever_asked_has_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        await told(memory, exchanges=40, at=20)
        asking = asyncio.create_task(memory.forget("main", matching=WORD))
        while not await store.receipts("main"):
            await asyncio.sleep(0.005)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(60):
            while not (receipt := (await store.receipts("main"))[0][1]).signature:
                await asyncio.sleep(0.05)
        assert_gone(receipt)


async def test_messages_and_turns_go_on_meanwhile(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        await told(memory)
        scope, is_done = memory.scope("chat"), asyncio.Event()
        sent = 0

        async def speak() -> None:
            nonlocal sent
            while not is_done.is_set():
                await memory.on_message(memory.scope("beside"), exchange(1_000 + sent))
                sent += 1
                await asyncio.sleep(0.01)

        async def turn() -> None:
            while not is_done.is_set():
                await memory.prepare_turn(scope, "what is the vault code, do you remember?")
                await memory.get_compressed_context(scope, 5_000)
                await asyncio.sleep(0.01)

        speaking, turning = asyncio.create_task(speak()), asyncio.create_task(turn())
        receipt = await memory.forget("main", matching=WORD)
        is_done.set()
        await asyncio.gather(speaking, turning)
        assert_gone(receipt)
        beside = await memory.log(memory.scope("beside"), limit=1_000)
        assert len(beside.messages) == min(2 * sent, 1_000)
        await caught_up(memory)
        check = await memory.verify_forgotten(receipt, matching=WORD)
        assert check.residue == []
        assert await faults(tmp_path, store) == []
    assert files_with(tmp_path) == []


# ── by rule ──


async def test_retention_forgets_what_is_old_and_not_pinned(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        scope = memory.scope("chat")
        long_ago = now() - timedelta(days=900)
        await memory.on_message(scope, [user("It was imported.", ts=long_ago), user("Keep this.", ts=long_ago)])
        await memory.on_message(scope, [assistant("And this is new.")])
        await caught_up(memory)
        (pinned,) = await store.places(scope, [2])
        await store.pin("main", [pinned], pinned=True, event=EVENT)
        forget = memory._background.forgetting.forget
        early = await forget("main", Selection(before=now() - timedelta(days=1)), reason="", by=EMBEDDED)
        assert early.reached.messages == 0  # said long ago, but here only since today
        late = await forget("main", Selection(before=now() + timedelta(days=1)), reason="", by=EMBEDDED)
        assert late.how == "retention"
        assert [(span.first_seq, span.last_seq) for span in late.spans] == [(1, 1), (3, 3)]
        log = await memory.log(scope)
        assert [line.message.content for line in log.messages] == [FORGOTTEN_TEXT, "Keep this.", FORGOTTEN_TEXT]
        assert await store.pinned("main") == [pinned]
        assert await faults(tmp_path, store) == []


async def test_messages_with_secrets_are_forgotten_and_counted_by_kind(tmp_path: Path) -> None:
    async with opened(tmp_path, redaction=Redaction(enabled=False)) as (memory, _):
        scope = memory.scope("chat")
        await memory.on_message(scope, [user("the database password is hunter22"), user("the harbour is calm today")])
        would = await memory.forget("main", secrets=True, dry_run=True)
        assert (would.how, would.reached.messages, would.secrets) == ("secrets", 1, {"password": 1})
        receipt = await memory.forget("main", secrets=True)
        assert (receipt.secrets, receipt.residue) == ({"password": 1}, [])
        again = await memory.forget("main", secrets=True, dry_run=True)
        assert again.reached.messages == 0
        said = [line.message.content for line in (await memory.log(scope)).messages]
        assert said == [FORGOTTEN_TEXT, "the harbour is calm today"]


async def test_everything_of_an_agent_goes_and_nothing_of_another(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        mine, other = memory.scope("chat"), memory.scope("chat", "bob")
        said = [user(f"Remember: {FACT}."), assistant("I will."), user(f"{WORD} is large. {LARGE}")]
        await memory.on_message(mine, [*said, *(one for number in range(6) for one in exchange(number))])
        await memory.on_message(other, [user("Bob keeps the lighthouse.")])
        await caught_up(memory)
        would = await memory.forget("main", everything=True, dry_run=True)
        receipt = await memory.forget("main", everything=True, reason="the agent is gone")
        assert (would.how, would.reached.messages) == ("everything", 15)
        assert (receipt.reached.messages, receipt.reached.large_parts, receipt.residue) == (15, 1, [])
        await memory.on_message(mine, [user("A new beginning.")])
        await caught_up(memory)
        assert {line.message.content for line in (await memory.log(mine)).messages} == {
            FORGOTTEN_TEXT,
            "A new beginning.",
        }
        assert (await memory.recall(other, "Who keeps the lighthouse?")).entries
        assert await kept_with(store) == []
        assert await faults(tmp_path, store) == []
    assert files_with(tmp_path) == []


# ── without room ──


async def test_without_room_it_goes_from_the_log_and_the_rest_follows_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as (memory, store):
        await told(memory)
        await memory.on_message(memory.scope("other"), [user(f"{WORD} is large. {LARGE}", id="large")])
        await caught_up(memory)
        monkeypatch.setattr(purge, "WAL_FRAME_BYTES", 10**15)
        for named in ({"session_id": "other"}, {"matching": FACT}):
            receipt = await memory.forget("main", **named)
            assert receipt.unfinished is not None
            assert not receipt.signature
            assert "until there is room" in receipt.residue[0].what
        assert [path for path in Home(tmp_path).blobs.rglob("*") if path.is_file()] == []
        assert await kept_with(store) == []
        assert not (await memory.recall(memory.scope("chat"), WORD)).entries
        monkeypatch.undo()
        await memory.maintain("main", tasks=["forgetting"])
        receipts = [receipt for _, receipt in await store.receipts("main")]
        assert len(receipts) == 2
        for receipt in receipts:
            assert_gone(receipt)
        assert [name for name in files_with(tmp_path) if "outbox" not in name] == []
        assert await faults(tmp_path, store) == []


# ── the store's own files ──

TAKES_THE_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
    except OSError:
        sys.exit(7)
"""
"""The byte by which SQLite knows whether anybody has the WAL open: whoever gets it alone empties its index."""


async def test_looking_through_every_file_takes_no_lock_away(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, _):
        await told(memory, exchanges=4, at=2)
        assert_gone(await memory.forget("main", matching=FACT))
        shared = Home(tmp_path).database.with_name("offbook.db-shm")
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", TAKES_THE_LOCK, str(shared))
        assert await other.wait() == 7


async def test_what_is_left_in_the_store_s_own_files_is_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as (memory, store):
        await told(memory, exchanges=4, at=2)
        assert set(await store.found_in_files([FACT.encode(), b"never said"])) <= store.own_files
        assert {form for found in (await store.found_in_files([FACT.encode()])).values() for form in found}
        assert_gone(await memory.forget("main", matching=FACT))
        assert await store.found_in_files([FACT.encode()]) == {}
