"""The wiki follows what is remembered: with a real store, on a real disk."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from offbook.log.blobs import BlobFiles
from offbook.log.sql import ledger
from offbook.log.sqlite.store import SqliteStore
from offbook.log.tiers import OFFLOADED
from offbook.model.errors import InvalidInput, StoreCorrupt, StoreError
from offbook.model.large_parts import externalise
from offbook.model.lesson import LESSONS_SESSION, LessonDraft, Verdict
from offbook.model.receipt import FORGOTTEN, ForgetReceipt, ForgottenSpan, Reached
from offbook.model.settings import Settings
from offbook.model.settings.sections import Ttl
from offbook.model.settings.sections import Wiki as WikiSettings
from offbook.model.types import AuditDraft, Entry, Message, Scope, SessionGaps, now
from offbook.projections.base import Batch
from offbook.projections.runner import added
from offbook.projections.wiki import cold as wiki_cold
from offbook.projections.wiki import files as wiki_files
from offbook.projections.wiki import lessons as wiki_lessons
from offbook.projections.wiki import logs as wiki_logs
from offbook.projections.wiki import projection as wiki_projection
from offbook.projections.wiki import state as wiki_state
from offbook.projections.wiki.projection import BROKEN, Wiki
from tests.unit.projections.conftest import CHAT, EVENT, add, places_of
from tests.unit.projections.wiki.reading import broken_links, read

OTHER = Scope(agent_id="main", session_id="agent:main:[x](y) #`<b>`")
DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEVER_COLD = Ttl(base_hours=1000.0, max_hours=1000.0)
COLD_AT_ONCE = Ttl(base_hours=0.0, max_hours=0.0)
Pages = dict[str, bytes]


class House:
    """A store, and the wiki of it. A new `wiki()` is a new process."""

    def __init__(self, store: SqliteStore, blobs: BlobFiles, folder: Path) -> None:
        self.store = store
        self.blobs = blobs
        self.folder = folder / "wiki"
        self.state = folder / "wiki-state"
        self.settings = msgspec.structs.replace(Settings(), ttl=NEVER_COLD)
        self.judged: list[tuple[str, Verdict, str | None]] = []

    def wiki(self) -> Wiki:
        return Wiki(self.store, self.blobs, self.settings, self.folder, self.state, self.judge)

    async def judge(self, agent_id: str, lesson_id: str, verdict: Verdict, text: str | None) -> None:
        self.judged.append((lesson_id, verdict, text))
        lesson, places = await self.store.lesson(agent_id, lesson_id), list[int]()
        assert lesson is not None
        if verdict == "edit":
            assert text is not None
            lesson = msgspec.structs.replace(lesson, status="edited", text=text)
            await add(self.store, on_day(text, 9), scope=Scope(agent_id=agent_id, session_id=LESSONS_SESSION))
            places = (await places_of(self.store))[-1:]
        else:
            lesson = msgspec.structs.replace(lesson, status="accepted" if verdict == "accept" else "rejected")
        await self.store.judge_lesson(agent_id, lesson, places, EVENT)

    async def settle(self, wiki: Wiki | None = None, agent_id: str = "main") -> Counter[str]:
        wiki, did = wiki or self.wiki(), Counter[str]()
        for _ in range(200):
            piece = await wiki.advance(Batch(agent_id))
            did.update(piece.did)
            if piece.is_done:
                return did
        raise AssertionError("it is never done")

    def pages(self) -> Pages:
        return {
            str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
        }

    def stamps(self) -> dict[str, tuple[int, int]]:
        found = {str(path.relative_to(self.folder)): path.stat() for path in self.folder.rglob("*.md")}
        return {name: (status.st_mtime_ns, status.st_ino) for name, status in found.items()}

    def page(self, name: str) -> Path:
        return self.folder / "main" / name

    def log(self, day: str, part: str = "") -> Path:
        return self.page(f"sources/session-logs/session-main-{day}{part}.md")

    def cold(self) -> list[str]:
        return sorted(path.name for path in self.page("sources/swap").glob("*"))

    def with_settings(self, **fields: Any) -> None:
        self.settings = msgspec.structs.replace(self.settings, **fields)


@pytest.fixture
def house(store: SqliteStore, blobs: BlobFiles, tmp_path: Path) -> House:
    return House(store, blobs, tmp_path)


def on_day(text: str, days: int = 0, **fields: Any) -> Message:
    return Message(**({"role": "user", "content": text, "ts": DAY + timedelta(days=days)} | fields))


async def talk(store: SqliteStore) -> None:
    await add(store, on_day("Good morning! 你好 🙂"), on_day("```\n# out\n```", role="assistant"))
    await add(store, on_day("<script>alert(1)</script> [x](y)", name="A*d*a"), scope=OTHER)
    await add(store, on_day("And the next day.", 1), on_day("\x00\x1b[31m", 1, role="tool", tool_call_id="c1"))
    await add(store, on_day("Back.", 1), scope=OTHER)


async def learn(store: SqliteStore, text: str = "Ada likes tea.", key: str = "tea", **fields: Any) -> str:
    places = await places_of(store)
    given: dict[str, Any] = {"kind": "preference", "confidence": 0.8, "first_seen": DAY, "last_seen": DAY, "times": 1}
    draft = LessonDraft(**(given | {"text": text, "key": key, "places": places[:2]} | fields))
    return (await store.keep_lessons("main", [draft], replaced={}, event=EVENT))[0].id


# ── what is written ──


async def test_everything_that_was_said_is_there_and_every_link_leads_somewhere(house: House) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await talk(house.store)
    await learn(house.store)
    await add(house.store, "Hello", scope=Scope(agent_id="a/b CON", session_id="x"))
    wiki = house.wiki()
    assert await house.settle(wiki) == {"session logs": 2, "cold pages": 6, "lessons": 1}
    await house.settle(wiki, "a/b CON")
    assert broken_links(house.folder) == []
    assert read((house.folder / "index.md").read_text()).links == [
        "a%252Fb%2520%2543%254F%254E/index.md",
        "main/index.md",
    ]
    first = read(house.log("2026-03-01").read_text())
    assert first.fences == ["Good morning! 你好 🙂\n", "```\n# out\n```\n", "<script>alert(1)</script> [x](y)\n"]
    assert first.headings[1:4] == ["Session chat", "s1-1", "s1-2"]
    assert "A*d*a" in first.texts[3]
    assert read(house.log("2026-03-02").read_text()).fences[1] == "[result of c1] ␀␛[31m\n"
    lesson = read(house.page("lessons/lesson-0001.md").read_text())
    assert lesson.links[0] == "../sources/session-logs/session-main-2026-03-01.md#s1-1"
    assert all(page.endswith(b"\n") for page in house.pages().values())


async def test_whatever_an_agent_is_called_its_pages_are_inside_and_found(house: House) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    agents = ["../x", "CON", "con", "nul.", "测试 🙂", "index.md", "x" * 128, ".git", "a\nb", "Main", "main"]
    wiki = house.wiki()
    for agent in agents:
        await add(house.store, on_day("Hello."), scope=Scope(agent_id=agent, session_id="../../s"))
        await house.settle(wiki, agent)
    assert broken_links(house.folder) == []
    folders = [path.name for path in house.folder.iterdir() if path.is_dir()]
    assert len({name.casefold() for name in folders}) == len(agents)
    assert sorted(path.name for path in house.folder.parent.iterdir() if path.is_dir()) == ["wiki", "wiki-state"]


async def test_what_did_not_change_is_not_written_again(house: House) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await talk(house.store)
    await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    before = house.stamps()
    assert await house.settle(wiki) == {}
    assert await house.settle() == {}
    assert house.stamps() == before
    await add(house.store, on_day("News.", 1))
    assert await house.settle(wiki) == {"session logs": 1, "cold pages": 1}
    changed = {name for name, stamp in house.stamps().items() if before.get(name) != stamp}
    assert changed == {
        "main/index.md",
        "main/sources/session-logs/session-main-2026-03-02.md",
        "main/sources/swap/m100000005.md",
    }


@pytest.mark.parametrize("lost", ["wiki", "wiki-state", "both"])
async def test_made_anew_it_is_the_same(house: House, lost: str, tmp_path: Path) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    wiki = house.wiki()
    for number in range(3):  # message by message
        await talk(house.store)
        await house.settle(wiki)
        await learn(house.store, f"Ada likes tea {number}.", f"tea{number}")
    await house.settle(wiki)
    before = house.pages()
    for name in ("wiki", "wiki-state"):
        if lost in (name, "both"):
            shutil.rmtree(tmp_path / name)
    await house.settle(wiki if lost == "wiki" else None)
    assert house.pages() == before
    assert house.judged == []


async def test_what_arrives_late_comes_into_its_old_day(house: House) -> None:
    await talk(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    await add(house.store, on_day("Tomorrow.", 2))
    await add(house.store, on_day("Forgot to say.", 0))
    assert await house.settle(wiki) == {"session logs": 2}
    assert "Forgot to say.\n" in read(house.log("2026-03-01").read_text()).fences
    assert broken_links(house.folder) == []


async def test_a_long_day_has_parts_that_stay_as_they_are(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiki_state, "MOST_MESSAGES_OF_A_PAGE", 3)
    monkeypatch.setattr(wiki_state, "MOST_BYTES_OF_A_PAGE", 10_000)
    house.with_settings(ttl=COLD_AT_ONCE)
    wiki = house.wiki()
    for number in range(4):
        await add(house.store, on_day(f"a{number}"))
        await add(house.store, on_day(f"b{number}"), scope=OTHER)
        await house.settle(wiki)
    await add(house.store, on_day("long " * 2000), on_day("after"))
    await house.settle(wiki)
    parts = [house.log("2026-03-01", part).read_text() for part in ("", "-2", "-3", "-4", "-5")]
    assert [len(read(part).fences) for part in parts] == [3, 3, 2, 1, 1]
    assert broken_links(house.folder) == []
    await learn(house.store, places=[(await places_of(house.store))[-1]])
    await house.settle(wiki)
    links = read(house.page("lessons/lesson-0001.md").read_text()).links
    assert links == ["../sources/session-logs/session-main-2026-03-01-5.md#s1-6"]
    before = house.pages()
    shutil.rmtree(house.folder)
    shutil.rmtree(house.state)
    await house.settle()
    assert house.pages() == before


async def test_a_piece_is_bounded_and_the_pieces_come_to_an_end(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiki_logs, "MESSAGES_AT_A_TIME", 10)
    for number in range(12):
        await add(house.store, *(on_day(f"{number} {each}", number) for each in range(5)))
    wiki = house.wiki()
    piece = await wiki.advance(Batch("main"))
    assert not piece.is_done
    assert not house.folder.exists() or len(house.pages()) <= 4
    assert await house.settle(wiki) == {"session logs": 12}
    assert broken_links(house.folder) == []


async def test_a_large_text_is_referred_to_and_a_smaller_one_shown(house: House, blobs: BlobFiles) -> None:
    small, large = "small " * 500, "large " * 20_000
    for text in (small, large):
        content, moved = externalise(text, 1000)
        for _, data in moved:
            await blobs.put("main", data)
        entry = Entry(message=Message(role="user", content=content, ts=DAY), blobs=[ref for ref, _ in moved])
        await house.store.append(
            CHAT, [entry], AuditDraft(verb="onMessage", actor="t", session_id="chat"), gaps=SessionGaps()
        )
    await house.settle()
    page = read(house.log("2026-03-01").read_text())
    assert page.fences[0] == small + "\n"
    assert page.fences[2] == "offbook expand --agent main --session chat --from 2 --json\n"
    assert len(page.fences[1]) < 1000
    assert "Not in this page: 120,000 characters. The whole message:" in page.texts


async def test_a_damaged_message_keeps_none_of_the_others_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await talk(house.store)

    async def refused(*args: object, **kwargs: object) -> None:
        raise StoreCorrupt("damaged")

    monkeypatch.setattr(house.store, "messages", refused)
    await house.settle()
    assert len(read(house.log("2026-03-01").read_text()).fences) == 3


# ── what goes wrong ──


class Killed(BaseException):
    """The process ends here."""


async def test_killed_between_any_two_files_it_ends_the_same(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await talk(house.store)
    await learn(house.store)
    await house.settle()
    whole = house.pages()
    shutil.rmtree(house.folder)
    shutil.rmtree(house.state)
    written = wiki_files.write_private
    left = 0

    def dies(path: Path, text: str, **options: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            path.with_name(f".{path.name}.0123abcd").write_text(text[: len(text) // 2])
            raise Killed
        written(path, text, **options)

    monkeypatch.setattr(wiki_files, "write_private", dies)
    monkeypatch.setattr(wiki_state, "write_private", dies)
    for allowed in range(100):
        left = allowed % 5
        try:
            await house.settle()
        except Killed:
            continue
        break
    left = 1000
    await house.settle()
    assert house.pages() == whole
    assert house.judged == []


async def test_files_of_others_stay(house: House) -> None:
    await talk(house.store)
    others = ["main/notes.md", "main/lessons/lesson-0099.md", "main/sources/swap/mine.md", ".obsidian/app.json"]
    others += ["main/sources/session-logs/session-main-notes.md", "main/sources/session-logs/.mine.md.swp"]
    for name in others:
        (house.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (house.folder / name).write_text("# mine\n")
    await house.settle()
    shutil.rmtree(house.state)
    await learn(house.store)
    await house.settle()
    assert all((house.folder / name).read_text() == "# mine\n" for name in others)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe", b'{"agentId":"other"}'])
async def test_a_damaged_state_is_made_anew(house: House, damage: bytes) -> None:
    await talk(house.store)
    await house.settle()
    before = house.pages()
    (house.state / "main.json").write_bytes(damage)
    stray = house.log("1999-01-01")
    stray.write_text("of another store")
    await house.settle()
    assert house.pages() == before


async def test_the_wiki_of_another_store_is_made_anew(house: House, tmp_path: Path) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await talk(house.store)
    await talk(house.store)
    await learn(house.store)
    await house.settle()
    other = SqliteStore(tmp_path / "other.db")
    await add(other, on_day("Something else.", 5))
    house.store = other
    await house.settle()
    names = sorted(house.pages())
    await other.close()
    assert names == [
        "index.md",
        "main/index.md",
        "main/lessons/index.md",
        "main/sources/session-logs/session-main-2026-03-06.md",
        "main/sources/swap/m100000001.md",
    ]


async def test_a_removed_page_is_written_again(house: House) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await talk(house.store)
    await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    before = house.pages()
    house.log("2026-03-01").unlink()
    house.page("lessons/lesson-0001.md").unlink()
    house.page("sources/swap/m100000001.md").unlink()
    assert await house.settle(wiki) == {"session logs": 1, "lessons": 1, "cold pages": 1}
    assert house.pages() == before


async def test_a_folder_that_cannot_be_written_is_told_and_tried_again(house: House) -> None:
    await talk(house.store)
    house.folder.write_text("in the way")
    wiki = house.wiki()
    for _ in range(2):
        with pytest.raises(StoreError, match="make room or mend its permissions"):
            await house.settle(wiki)
    house.folder.unlink()
    await house.settle(wiki)
    assert broken_links(house.folder) == []
    assert len(read(house.log("2026-03-01").read_text()).fences) == 3


async def test_where_it_is_off_nothing_is_written(house: House) -> None:
    await talk(house.store)
    house.with_settings(wiki=WikiSettings(enabled=False))
    assert await house.settle() == {}
    assert not house.folder.exists()
    house.with_settings(wiki=WikiSettings(cold_pages=False), ttl=COLD_AT_ONCE)
    assert await house.settle() == {"session logs": 2}
    assert not house.cold()


async def test_pages_are_for_their_owner_only(house: House) -> None:
    await talk(house.store)
    await house.settle()
    for path in [house.folder, *house.folder.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


# ── what has gone cold ──


async def test_what_is_not_cold_has_no_page_until_it_is(house: House) -> None:
    await talk(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    assert house.cold() == []
    await house.store.set_agent_note("main", OFFLOADED, now().isoformat(), None)
    await add(house.store, "Later.")
    await house.settle(wiki)
    assert len(house.cold()) == 6
    house.with_settings(ttl=COLD_AT_ONCE)
    await house.settle()
    assert len(house.cold()) == 7


async def test_what_is_pinned_has_no_page_as_long_as_it_is(house: House) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await talk(house.store)
    places = await places_of(house.store)
    await house.store.pin("main", places[:2], pinned=True, event=EVENT)
    wiki = house.wiki()
    await house.settle(wiki)
    assert len(house.cold()) == 4
    await house.store.pin("main", places[:1], pinned=False, event=EVENT)
    await house.store.pin("main", places[3:4], pinned=True, event=EVENT)
    await house.settle(wiki)
    assert house.cold() == sorted(f"m{place:x}.md" for place in places if place not in (places[1], places[3]))
    before = house.pages()
    shutil.rmtree(house.folder)
    shutil.rmtree(house.state)
    await house.settle()
    assert house.pages() == before
    await house.store.pin("main", places, pinned=False, event=EVENT)
    await house.settle()
    assert len(house.cold()) == 6


async def test_what_was_recalled_lately_goes_cold_later(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.with_settings(ttl=Ttl(base_hours=0.0, bump_hours=10.0, max_hours=40.0))
    await talk(house.store)
    places = await places_of(house.store)
    await house.store.recalled("main", places[:1], EVENT)
    wiki, found = house.wiki(), []
    for hours in (39, 45, 51):
        later = now() + timedelta(hours=hours)
        monkeypatch.setattr(wiki_cold, "now", lambda at=later: at)
        await house.settle(wiki)
        found.append(len(house.cold()))
    assert found == [0, 5, 6]


async def test_one_from_the_future_keeps_those_after_it_from_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "now", lambda: now() + timedelta(days=1))
        await add(house.store, "From the future.")
    await add(house.store, "From now.")
    await house.settle()
    assert house.cold() == ["m100000002.md"]


async def test_what_arrives_while_cold_pages_are_written_has_its_page_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await talk(house.store)

    async def offloaded(*args: object) -> None:
        await add(house.store, "Meanwhile.")

    wiki = house.wiki()
    monkeypatch.setattr(wiki_cold, "offloaded_through", offloaded)
    await wiki.advance(Batch("main"))
    assert len(house.cold()) == 6
    monkeypatch.undo()
    await house.settle(wiki)
    assert len(house.cold()) == 7
    assert broken_links(house.folder) == []


async def test_a_clock_that_jumps_does_no_harm(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.with_settings(ttl=Ttl(base_hours=1.0, bump_hours=1.0, max_hours=1.0))
    await talk(house.store)
    wiki, found = house.wiki(), []
    for hours in (-5, 0, 100, -5):
        later = now() + timedelta(hours=hours)
        monkeypatch.setattr(wiki_cold, "now", lambda at=later: at)
        await house.settle(wiki)
        found.append(len(house.cold()))
    assert found == [0, 0, 6, 6]


# ── lessons, and what a person makes of them ──


async def edited_page(house: House, change: Callable[[str], str], name: str = "lesson-0001") -> Path:
    page = house.page(f"lessons/{name}.md")
    page.write_text(change(page.read_text()))
    return page


async def test_an_edit_is_taken_and_used(house: House) -> None:
    await talk(house.store)
    id_ = await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    page = await edited_page(house, lambda text: text.replace("Ada likes tea.", "Ada likes *green* tea, cold."))
    did = await house.settle(wiki)
    assert did == {"lessons": 2, "edits taken": 1, "session logs": 1}
    assert house.judged == [(id_, "edit", "Ada likes *green* tea, cold.")]
    lesson = await house.store.lesson("main", id_)
    assert lesson is not None
    assert (lesson.text, lesson.status) == ("Ada likes *green* tea, cold.", "edited")
    assert "status: edited" in page.read_text()
    assert "Ada likes \\*green\\* tea, cold." in page.read_text()
    assert "green" in house.page("lessons/index.md").read_text()
    assert read(page.read_text()).links[-1] == "../sources/session-logs/session-main-2026-03-10.md#s3-1"
    assert broken_links(house.folder) == []
    assert await house.settle() == {}


async def test_an_edit_is_taken_by_the_next_process_too(house: House) -> None:
    await talk(house.store)
    id_ = await learn(house.store)
    await house.settle()
    await edited_page(house, lambda text: text.replace("tea", "coffee"))
    await house.settle()
    await house.settle()
    assert house.judged == [(id_, "edit", "Ada likes coffee.")]


async def test_a_person_wins_over_what_was_learnt_meanwhile(house: House) -> None:
    await talk(house.store)
    id_ = await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    await edited_page(house, lambda text: text.replace("tea", "coffee"))
    await learn(house.store, "Ada likes black tea.", times=4)
    await house.settle(wiki)
    assert house.judged == [(id_, "edit", "Ada likes coffee.")]
    await learn(house.store, "Ada likes no tea.", "other")
    await learn(house.store, "Ada likes white tea.", times=5)
    await house.settle(wiki)
    assert "coffee" in house.page("lessons/lesson-0001.md").read_text()
    assert len(house.judged) == 1


async def test_a_newer_version_of_ours_is_written_and_no_edit(house: House) -> None:
    await talk(house.store)
    await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    await learn(house.store, "Ada likes black tea.", times=4)
    assert await house.settle(wiki) == {"lessons": 1}
    assert "black" in house.page("lessons/lesson-0001.md").read_text()
    assert house.judged == []


async def test_killed_before_the_page_was_written_our_words_are_not_a_persons(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(house.store)
    await learn(house.store)
    await house.settle()
    await learn(house.store, "Ada likes black tea.", times=4)
    written = wiki_state.write_private

    def dies_after_the_page(path: Path, text: str, **options: Any) -> None:
        page = house.page("lessons/lesson-0001.md")
        if "black" in page.read_text():
            raise Killed
        written(path, text, **options)

    monkeypatch.setattr(wiki_state, "write_private", dies_after_the_page)
    with pytest.raises(Killed):
        await house.settle()
    monkeypatch.setattr(wiki_state, "write_private", written)
    await learn(house.store, "Ada likes white tea.", times=5)
    await house.settle()
    assert house.judged == []
    assert "white" in house.page("lessons/lesson-0001.md").read_text()


async def test_a_status_is_taken(house: House) -> None:
    await talk(house.store)
    first, second = await learn(house.store), await learn(house.store, "Bo likes rum.", "rum")
    wiki = house.wiki()
    await house.settle(wiki)
    await edited_page(house, lambda text: text.replace("status: learnt", "status: accepted"))
    await edited_page(house, lambda text: text.replace("status: learnt", "status: rejected"), "lesson-0002")
    assert (await house.settle(wiki))["edits taken"] == 2
    assert sorted(house.judged) == [(first, "accept", None), (second, "reject", None)]
    assert "Rejected" in read(house.page("lessons/index.md").read_text()).headings
    assert broken_links(house.folder) == []


async def test_another_kind_is_told_and_the_status_is_taken_when_it_is_written_back(house: House) -> None:
    await talk(house.store)
    first = await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    kind = "kind: preference"
    page = await edited_page(house, lambda text: text.replace("learnt\n", "accepted\n", 1).replace(kind, "kind: guess"))
    with structlog.testing.capture_logs() as logs:
        await house.settle(wiki)
        (named,) = (await wiki.advance(Batch("main"))).waits or []
    assert "its `kind` says 'guess'" in named
    assert [line["page"] for line in logs if line.get("action") == "wiki.broken"] == ["lesson-0001.md"]
    assert "kind: guess" in page.read_text()
    assert house.judged == []
    await edited_page(house, lambda text: text.replace("kind: guess", kind))
    assert (await house.settle(wiki))["edits taken"] == 1
    assert house.judged == [(first, "accept", None)]
    assert (await wiki.advance(Batch("main"))).waits == []


async def test_words_below_the_sources_stay_and_are_named_until_they_are_above(house: House) -> None:
    await talk(house.store)
    id_ = await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    note = "Ask Ada about oolong.\n"
    page = await edited_page(house, lambda text: f"{text}\n{note}")
    await learn(house.store, "Ada likes black tea.", times=4)
    await house.settle(wiki)
    assert page.read_text().endswith(note)
    (named,) = (await wiki.advance(Batch("main"))).waits or []
    assert "write it above that heading" in named
    assert house.judged == []
    await edited_page(house, lambda text: text.removesuffix(note).replace("## Sources", f"{note}\n## Sources"))
    assert (await house.settle(wiki))["edits taken"] == 1
    assert house.judged == [(id_, "edit", "Ada likes tea.\n\nAsk Ada about oolong.")]
    assert "oolong" in page.read_text()


async def test_tags_of_a_persons_own_stay_in_a_page_that_is_written_again(house: House) -> None:
    await talk(house.store)
    await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    tags = "tags:\n  - tea\n"
    page = await edited_page(house, lambda text: text.replace("---\n\n", f"{tags}---\n\n", 1))
    assert await house.settle(wiki) == {}
    await learn(house.store, "Ada likes black tea.", times=4)
    assert await house.settle(wiki) == {"lessons": 1}
    assert "black" in page.read_text()
    assert tags in page.read_text()
    await edited_page(house, lambda text: text.replace("black", "white"))
    assert (await house.settle(wiki))["edits taken"] == 1
    assert tags in page.read_text()
    assert await house.settle() == {}


async def test_a_broken_page_is_left_alone_and_told_once(house: House) -> None:
    await talk(house.store)
    await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    broken = await edited_page(house, lambda text: text.replace("id: ", "id = "))
    was = broken.read_text()
    await learn(house.store, "Ada likes black tea.", times=4)
    with structlog.testing.capture_logs() as logs:
        await house.settle(wiki)
        await house.settle(wiki)
    assert broken.read_text() == was
    assert [line["page"] for line in logs if line.get("action") == "wiki.broken"] == ["lesson-0001.md"]
    broken.write_bytes(b"---\n\xff\n---\n")
    await house.settle(wiki)
    assert broken.read_bytes() == b"---\n\xff\n---\n"
    broken.unlink()
    await house.settle(wiki)
    assert "black" in broken.read_text()
    assert house.judged == []


async def test_broken_pages_are_named_until_they_are_mended(house: House) -> None:
    await talk(house.store)
    await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    page = await edited_page(house, lambda text: text.replace("id: ", "id = "))
    (named,) = (await wiki.advance(Batch("main"))).waits or []
    assert named.startswith(f"{page.relative_to(house.folder.parent).as_posix()}: its front matter")
    page.unlink()
    assert (await wiki.advance(Batch("main"))).waits == []


async def test_edits_are_taken_at_once_where_they_are_asked_for(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiki_lessons, "LESSONS_AT_A_TIME", 1)
    await talk(house.store)
    first, second = await learn(house.store), await learn(house.store, "Bo likes rum.", "rum")
    wiki = house.wiki()
    assert await wiki.take_edits("main") == 0
    assert not house.folder.exists()
    await house.settle(wiki)
    await edited_page(house, lambda text: text.replace("tea", "coffee"))
    await edited_page(house, lambda text: text.replace("status: learnt", "status: rejected"), "lesson-0002")
    assert await wiki.take_edits("main") == 2
    assert {(id_, verdict) for id_, verdict, _ in house.judged} == {(first, "edit"), (second, "reject")}
    assert await wiki.take_edits("main") == 0


async def test_an_edit_that_is_refused_stays_in_the_page(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await talk(house.store)
    await learn(house.store)
    await house.settle()

    async def refused(*args: object) -> None:
        raise InvalidInput("too long")

    monkeypatch.setattr(house, "judge", refused)
    page = await edited_page(house, lambda text: text.replace("tea", "coffee"))
    with structlog.testing.capture_logs() as logs:
        await house.settle()
    assert "coffee" in page.read_text()
    assert "too long" in str([line["detail"] for line in logs if line.get("action") == "wiki.broken"])


async def test_an_edit_made_while_we_write_is_not_lost(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await talk(house.store)
    await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    await learn(house.store, "Ada likes black tea.", times=4)
    page, saved = house.page("lessons/lesson-0001.md"), wiki._save

    async def meanwhile(known: Any) -> None:
        page.write_text(page.read_text().replace("Ada likes tea.", "Ada likes coffee."))
        await saved(known)

    monkeypatch.setattr(wiki, "_save", meanwhile)
    await wiki.advance(Batch("main"))
    assert "coffee" in page.read_text()
    monkeypatch.setattr(wiki, "_save", saved)
    await house.settle(wiki)
    assert [text for _, _, text in house.judged] == ["Ada likes coffee."]


async def test_many_lessons_are_gone_through_in_pieces(house: House) -> None:
    await talk(house.store)
    for number in range(205):
        await learn(house.store, f"Fact {number}.", f"f{number}", kind="fact")
    wiki = house.wiki()
    assert (await house.settle(wiki))["lessons"] == 205
    assert broken_links(house.folder) == []
    assert "205 lessons" in house.page("index.md").read_text()


@pytest.mark.parametrize("content", [b"# mine\n", b"\xff\xfe mine", b"like ours"])
async def test_a_page_of_somebodys_own_is_moved_aside_for_a_lesson(house: House, content: bytes) -> None:
    await talk(house.store)
    first = await learn(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    if content == b"like ours":
        ours = house.page(f"lessons/{first}.md").read_text()
        content = ours.replace(first, "lesson-0002").replace("Ada", "Bob").encode()
    mine = house.page("lessons/lesson-0002.md")
    mine.write_bytes(content)
    house.page("lessons/lesson-0002.own.md").write_text("an older one")
    await house.settle(wiki)
    assert mine.read_bytes() == content
    await learn(house.store, "Ada has a cat.", "cat")
    with structlog.testing.capture_logs() as logs:
        await house.settle(wiki)
        await house.settle(wiki)
    assert "Ada has a cat." in mine.read_text()
    assert house.page("lessons/lesson-0002.own-2.md").read_bytes() == content
    assert house.page("lessons/lesson-0002.own.md").read_text() == "an older one"
    told = [line["detail"] for line in logs if line.get("action") == "wiki.aside"]
    assert len(told) == 1
    assert "lesson-0002.own-2.md" in told[0]
    assert house.judged == []


async def test_pages_of_ours_are_not_moved_aside_where_the_state_is_lost(house: House) -> None:
    await talk(house.store)
    await learn(house.store)
    await house.settle()
    shutil.rmtree(house.state)
    await learn(house.store, "Ada likes black tea.", times=4)
    await house.settle()
    assert sorted(path.name for path in house.page("lessons").iterdir()) == ["index.md", "lesson-0001.md"]
    assert "black" in house.page("lessons/lesson-0001.md").read_text()


async def test_pages_not_understood_are_counted_as_long_as_they_are_there(house: House) -> None:
    await talk(house.store)
    await learn(house.store)
    await learn(house.store, "Ada has a cat.", "cat")
    wiki = house.wiki()
    assert BROKEN not in await house.settle(wiki)
    first, second = (house.page(f"lessons/lesson-000{number}.md") for number in (1, 2))
    first.write_text(first.read_text().replace("status: learnt", "status: acepted"))
    second.write_text("<<<<<<< mine\n" + second.read_text())
    assert [(await wiki.advance(Batch("main"))).did for _ in range(2)] == [{BROKEN: 2}, {BROKEN: 2}]
    assert (await house.wiki().advance(Batch("main"))).did == {BROKEN: 2}
    second.unlink()
    assert (await wiki.advance(Batch("main"))).did == {BROKEN: 1, "lessons": 1}
    first.unlink()
    assert (await wiki.advance(Batch("main"))).did == {BROKEN: 0, "lessons": 1}
    assert (await wiki.advance(Batch("main"))).did == {}
    assert added({BROKEN: 2, "lessons": 1}, {BROKEN: 1, "lessons": 1}) == {BROKEN: 1, "lessons": 2}


async def test_the_newest_sessions_are_those_last_spoken_in_not_those_last_imported(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiki_projection, "NEWEST_SESSIONS", 20)
    await add(house.store, on_day("new", 3), scope=Scope(agent_id="main", session_id="new"))
    await add(house.store, on_day("later", 3, ts=DAY + timedelta(days=3, hours=1)), scope=CHAT)
    for number in range(25):
        await add(house.store, on_day("old", -number), scope=Scope(agent_id="main", session_id=f"old{number:02}"))
    await house.settle()
    text = house.page("index.md").read_text()
    names = ["chat", "new", *(f"old{number:02}" for number in range(18))]
    at = [text.find(f"[{name}]") for name in names]
    assert at == sorted(at)
    assert at[0] > 0
    assert "old18" not in text


async def test_what_was_written_to_lessons_is_no_newest_session(house: House) -> None:
    await add(house.store, on_day("a talk", 1), scope=CHAT)
    await add(house.store, on_day("an edit", 2), scope=Scope(agent_id="main", session_id=LESSONS_SESSION))
    await house.settle()
    text = house.page("index.md").read_text()
    assert "[chat]" in text
    assert LESSONS_SESSION not in text


# ── what is forgotten ──


async def forget(house: House, places: list[int]) -> list[str]:
    lineage = await house.store.lineage("main", places)
    receipt = ForgetReceipt(
        id="f1",
        agent_id="main",
        at=now(),
        by="test",
        reason="",
        dry_run=False,
        how="entryIds",
        reached=Reached(),
        spans=[],
        probes=[],
        outside=[],
        residue=[],
    )
    await house.store.erase("main", lineage, {}, receipt, EVENT)
    return lineage.lessons


async def test_what_is_forgotten_goes_from_every_page_at_once(house: House) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await add(house.store, on_day("My code is kumquat."), on_day("Noted."))
    await talk(house.store)
    places = await places_of(house.store)
    await learn(house.store, "The code is kumquat.", "code", kind="fact", places=places[:1])
    await learn(house.store, "Ada likes tea.", "tea", places=places[2:3])
    wiki = house.wiki()
    await house.settle(wiki)
    unfinished = house.page("sources/swap/.m100000001.md.0123abcd")
    unfinished.write_text("kumquat")
    spans = [ForgottenSpan(session_id="chat", first_seq=1, last_seq=1)]
    assert await wiki.pages_holding("main", spans) == 2
    assert await house.wiki().pages_holding("main", spans) == 2
    assert await house.wiki().pages_holding("main", spans, ["lesson-0001", "lesson-0009", "../x"]) == 3
    lessons = await forget(house, places[:1])
    assert lessons == ["lesson-0001"]
    assert await wiki.forgotten("main", spans, lessons) == 3
    assert not [name for name, page in house.pages().items() if b"kumquat" in page]
    assert b"kumquat" not in b"".join(path.read_bytes() for path in house.state.iterdir())
    assert read(house.log("2026-03-01").read_text()).fences[:2] == ["[forgotten]\n", "Noted.\n"]
    assert broken_links(house.folder) == []
    after = house.pages()
    assert await house.settle(wiki) == {}
    assert house.pages() == after
    shutil.rmtree(house.folder)
    shutil.rmtree(house.state)
    await house.settle()
    assert house.pages() == after


@pytest.mark.parametrize("lost", [True, False])
async def test_it_is_forgotten_also_where_the_wiki_is_off_now_or_its_state_lost(house: House, lost: bool) -> None:
    house.with_settings(ttl=COLD_AT_ONCE)
    await add(house.store, on_day("My code is kumquat."), on_day("Noted."))
    await house.settle()
    house.with_settings(wiki=WikiSettings(enabled=False))
    if lost:
        shutil.rmtree(house.state)
    await forget(house, (await places_of(house.store))[:1])
    await house.wiki().forgotten("main", [ForgottenSpan(session_id="chat", first_seq=1, last_seq=1)], [])
    assert not [name for name, page in house.pages().items() if b"kumquat" in page]


async def test_where_there_is_no_wiki_nothing_is_made_by_forgetting(house: House) -> None:
    await talk(house.store)
    spans = [ForgottenSpan(session_id="chat", first_seq=1, last_seq=9)]
    assert await house.wiki().forgotten("main", spans, ["lesson-0001", "../x"]) == 0
    assert await house.wiki().pages_holding("main", spans) == 0
    assert not house.folder.exists()


async def test_what_a_person_wrote_beside_a_lesson_is_forgotten_where_it_says_it(house: House) -> None:
    def says(text: str) -> bool:
        return "kumquat" in text

    assert await house.wiki().pages_saying("main", says, is_removed=True) == 0
    assert not house.folder.exists()
    await talk(house.store)
    for key in ("tea", "rum", "gin"):
        await learn(house.store, f"Ada likes {key}.", key)
    wiki = house.wiki()
    await house.settle(wiki)
    first, second, third = sorted(house.page("lessons").glob("lesson-*.md"))
    for page in (first, second, third):
        page.write_text(page.read_text().replace("---\n\n", "tags: [kumquat]\naliases: [Ada]\n---\n\n", 1))
    third.write_text(third.read_text().replace("---\n", "", 1))  # theirs to mend
    second.write_text(second.read_text() + "below the sources\n")
    mine = house.page("lessons/kumquat.md")
    mine.write_text("kumquat")
    was = {page: page.read_text() for page in (first, second, third, mine)}
    house.with_settings(wiki=WikiSettings(enabled=False))
    assert await wiki.pages_saying("main", says) == 2
    assert await wiki.pages_saying("main", says, beside=["lesson-0002"]) == 1
    assert {page: page.read_text() for page in was} == was
    assert await house.wiki().pages_saying("main", says, is_removed=True) == 2
    without = {page: was[page].replace("tags: [kumquat]\n", "") for page in (first, second)}
    assert {page: page.read_text() for page in was} == was | without
    assert await wiki.pages_saying("main", says, is_removed=True) == 0


async def test_noise_is_shown_as_such(house: House) -> None:
    await add(house.store, on_day("HEARTBEAT_OK"), noise="heartbeat")
    await add(house.store, on_day("[forgotten]"), noise=FORGOTTEN)
    house.with_settings(ttl=COLD_AT_ONCE)
    await house.settle()
    assert "noise: heartbeat" in house.log("2026-03-01").read_text()
    assert house.cold() == ["m100000001.md"]
    assert os.sep not in house.cold()[0]
