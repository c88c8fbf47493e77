"""The verbs of recall, embedded: no daemon, a real store, the real model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.ingest.frames import frame
from offbook.model.errors import WrongShape
from offbook.model.memory_entry import Reach, Recollection, Supersession
from offbook.model.settings import Settings
from offbook.model.types import EMBEDDED, AuditDraft, Caller, Message, now
from offbook.projections.indexes import Indexes
from offbook.search.index import text as saying
from offbook.search.index.agent_index import CHECKPOINT, FORMAT
from offbook.search.words import terms

pytestmark = pytest.mark.usefixtures("one_model")

TODAY = now()
DAY = timedelta(days=1)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path, environ={"OFFBOOK_SEARCH_DEADLINE": "20s"}) as opened:
        yield opened


def user(text: str, **fields: object) -> Message:
    return Message(role="user", content=text, **fields)  # type: ignore[arg-type]


def assistant(text: str, **fields: object) -> Message:
    return Message(role="assistant", content=text, **fields)  # type: ignore[arg-type]


async def say(memory: Memory, session: str, *messages: Message | str, agent: str = "main") -> None:
    said = [user(message) if isinstance(message, str) else message for message in messages]
    await memory.on_message(memory.scope(session, agent), said)


async def embedded(memory: Memory) -> None:
    """Until everything has its vectors."""
    async with asyncio.timeout(60):
        while (await memory.ping()).backlog or (await memory.status("main")).backlog:
            await asyncio.sleep(0.05)


async def indexed(memory: Memory) -> None:
    """Until every word is in the index."""
    async with asyncio.timeout(120):
        while any("still being indexed" in note for note in (await ask(memory, "anything")).degraded):
            await asyncio.sleep(0.05)


async def link(memory: Memory, session: str, old: int, new: int, kind: str) -> None:
    """Note that one message of a session gives way to another."""
    scope = memory.scope(session)
    old_place, new_place = await memory._store.places(scope, [old, new])
    event = AuditDraft(verb="supersede", actor="offbook", session_id=session)
    known = Supersession(old_place=old_place, new_place=new_place, kind=kind, at=now())
    assert await memory._store.supersede("main", [known], event) == 1


async def ask(
    memory: Memory, query: str, *, session: str = "now", agent: str = "main", **fields: object
) -> Recollection:
    return await memory.recall(memory.scope(session, agent), query, **fields)  # type: ignore[arg-type]


async def texts(memory: Memory, query: str, **fields: object) -> list[str]:
    return [entry.text for entry in (await ask(memory, query, **fields)).entries]  # type: ignore[arg-type]


async def events(memory: Memory, agent: str = "main") -> list[str]:
    return [event.verb for event in (await memory.audit(agent, limit=1_000)).events]


# ── finding ──


async def test_what_was_said_in_one_session_is_found_in_another_at_once(memory: Memory) -> None:
    await say(memory, "monday", "The spare key is under the blue pot.", "It rained all day long.")
    found = await ask(memory, "Where is the spare key?", session="friday")
    entry = found.entries[0]
    assert entry.text == "The spare key is under the blue pot."
    assert (entry.session_id, entry.agent_id, entry.origin, entry.tier) == ("monday", "main", "user", "hot")
    assert (entry.span.first_seq, entry.span.last_seq) == (1, 1)
    assert "text" in entry.found_by
    assert 0 < entry.score < 1


async def test_by_meaning_what_shares_no_word_is_found(memory: Memory) -> None:
    await say(memory, "a", "My dog is a small terrier.", "The train leaves at nine.", "I bake bread on Sundays.")
    await embedded(memory)
    found = await ask(memory, "Which pet do I own?")
    assert found.entries[0].text == "My dog is a small terrier."
    assert "meaning" in found.entries[0].found_by
    assert found.degraded == []


async def test_what_is_not_embedded_yet_is_told(memory: Memory, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        Settings(), embedding=msgspec.structs.replace(Settings().embedding, model="none")
    )
    async with open_memory(tmp_path / "other", settings=settings) as without:
        await say(without, "a", "The spare key is under the blue pot.")
        found = await ask(without, "Where is the spare key?")
        assert found.entries[0].text == "The spare key is under the blue pot."
        assert [note.partition(":")[0] for note in found.degraded] == ["embeddings"]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("我的猫叫小白，它喜欢吃鱼。", "我的猫叫什么？"),
        ("私の犬の名前はハチです。", "犬の名前は何ですか？"),
        ("제 고양이 이름은 나비입니다.", "고양이 이름이 뭐예요?"),
        ("اسم قطتي لولو وهي تحب السمك.", "ما اسم قطتي؟"),
        ("Мою собаку зовут Белка.", "Как зовут мою собаку?"),
        ("Das Boot 小船 hat €500 gekostet 🚤", "小船"),
        ("Das Boot 小船 hat €500 gekostet 🚤", "🚤"),
        ("Der Schlüssel liegt bei Frau Müller.", "Wo ist der Schlüssel?"),
    ],
)
async def test_every_language_is_found_at_once_and_after_embedding(memory: Memory, said: str, asked: str) -> None:
    await say(
        memory, "a", "The weather is fine today.", "今日はいい天気ですね。", "I bake bread.", said, "Noted, thanks."
    )
    assert said in await texts(memory, asked, limit=3)
    await embedded(memory)
    assert (await texts(memory, asked))[0] == said


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("昨天我们去了里斯本看海。", "海"),
        ("私の犬の名前はハチです。", "犬"),
        ("ปีนี้มีปูเยอะ", "ปู"),
        ("어제 물을 많이 마셨어요.", "물"),
    ],
)
async def test_a_word_of_one_letter_is_found_at_once_and_after_embedding(memory: Memory, said: str, asked: str) -> None:
    english = [
        f"The {thing} stands in the old garden." for thing in ("shed", "bench", "table", "ladder", "cart", "well")
    ]
    await say(memory, "a", said, *english)
    assert (await texts(memory, asked, limit=3))[0] == said
    await embedded(memory)
    found = await ask(memory, asked, limit=3, explain=True)
    assert (found.entries[0].text, "text" in found.entries[0].found_by) == (said, True)
    assert found.explained is not None
    assert found.explained.looked_for[0] == asked
    assert (await memory.pin("main", keyword=asked)).changed == 1


async def test_an_index_of_another_format_is_made_anew_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(saying, "indexed_terms", terms)  # as format 2 read them
        async with open_memory(tmp_path, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as old:
            await say(old, "a", "昨天我们去了里斯本看海。", "I bake bread on Sundays.")
            assert (await texts(old, "bread"))[0] == "I bake bread on Sundays."
    (checkpoint,) = tmp_path.rglob(CHECKPOINT)
    written = checkpoint.read_text()
    assert f'"format":{FORMAT}' in written
    checkpoint.write_text(written.replace(f'"format":{FORMAT}', f'"format":{FORMAT - 1}'))
    async with open_memory(tmp_path, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as new:
        assert (await texts(new, "海"))[0] == "昨天我们去了里斯本看海。"
    assert f'"format":{FORMAT}' in checkpoint.read_text()


async def test_what_stands_for_a_large_part_is_not_searched(memory: Memory) -> None:
    await say(memory, "a", "The harbour master is Ophelia Quint. " + "word soup and noise; " * 50_000, "I bake bread.")
    found = await ask(memory, "sha256 characters", explain=True)
    assert found.explained is not None
    assert found.explained.looked_for == []
    assert (await memory.pin("main", keyword="sha256")).changed == 0


async def test_a_message_of_a_megabyte_is_found_by_how_it_begins(memory: Memory) -> None:
    await say(memory, "a", "The harbour master is Ophelia Quint. " + "word soup and noise; " * 50_000, "I bake bread.")
    for _ in range(2):
        entry = (await ask(memory, "Who is the harbour master?")).entries[0]
        assert "Ophelia Quint" in entry.text
        assert len(entry.text) < 1_000
        await embedded(memory)


CODE = "The password is xylograph quokka40000."


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The weather was neither good nor bad. " * 1_060 + CODE, "quokka40000"),
        ("The weather was neither good nor bad. " * 1_060 + CODE, "What is the password?"),
        ("word soup and noise; " * 50_000 + CODE + " And more of it." * 100, "quokka40000"),
    ],
)
async def test_words_are_found_and_shown_wherever_they_stand_in_a_long_message(
    tmp_path: Path, text: str, query: str
) -> None:
    async with open_memory(tmp_path, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as memory:
        await say(memory, "a", "I bake bread on Sundays.", text, "My niece was sick on the ferry.")
        await indexed(memory)
        for _ in range(2):
            entry = (await ask(memory, query)).entries[0]
            assert CODE in entry.text
            assert len(entry.text) < 1_000
            await memory.reindex("main")
            await indexed(memory)


@pytest.mark.parametrize("chars", [5_000, 70_000, 1_000_000])
async def test_behind_a_queue_every_word_of_the_newest_messages_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chars: int
) -> None:
    async def never_ends(*_: object) -> bool:
        await asyncio.Event().wait()
        return False

    async with open_memory(tmp_path, environ={"OFFBOOK_EMBEDDING_MODEL": "none"}) as memory:
        with monkeypatch.context() as behind:
            behind.setattr(Indexes, "_take", never_ends)
            long = ("The weather was neither good nor bad. " * (chars // 38))[: chars - len(CODE)] + CODE
            await say(memory, "a", *("word soup and noise; " * 20 for _ in range(99)), long)
            found = await ask(memory, "quokka40000")
            assert [CODE in entry.text for entry in found.entries] == [True]
            assert any("still being indexed" in note for note in found.degraded)


async def test_a_fresh_message_is_found_among_many_that_are_embedded(memory: Memory) -> None:
    await say(
        memory, "a", *(f"Recipe {number}: bread with {number} spoons of flour and water." for number in range(60))
    )
    await embedded(memory)
    await say(memory, "b", "My grandmother's recipe for bread needs cardamom.")
    assert "My grandmother's recipe for bread needs cardamom." in await texts(memory, "Which recipe needs cardamom?")


RECIPE = "My carbonara recipe: guanciale, four yolks, pecorino, no cream."


async def test_ten_questions_and_nine_denials_do_not_hide_the_recipe(memory: Memory) -> None:
    await say(memory, "start", RECIPE, assistant("Thanks, I will remember that recipe."))
    for turn in range(10):
        await say(memory, f"s{turn}", "Do you remember my recipe?")
        if turn < 9:
            await say(memory, f"s{turn}", assistant("I'm sorry, I don't have any record of your recipe."))
    assert (await texts(memory, "Do you remember my recipe?"))[0] == RECIPE
    await embedded(memory)
    assert (await texts(memory, "Do you remember my recipe?"))[0] == RECIPE


# ── how far ──


async def test_scope_session_agent_and_all(memory: Memory) -> None:
    await say(memory, "here", "The ferry to the island leaves from the old pier.")
    await say(memory, "there", "My niece was sick on the ferry.")
    await say(memory, "here", "Their ferry is a different one.", agent="other")
    sessions: dict[Reach, set[str]] = {}
    for reach in ("session", "agent", "all"):
        found = await ask(memory, "ferry", session="here", reach=reach)
        assert {entry.agent_id for entry in found.entries} == {"main"}
        sessions[reach] = {entry.session_id for entry in found.entries}
    assert sessions == {"session": {"here"}, "agent": {"here", "there"}, "all": {"here", "there"}}
    assert await texts(memory, "ferry", session="nowhere", reach="session") == []
    nothing = await ask(memory, "ferry", session="nowhere", reach="session")
    assert any("scope: agent" in note for note in nothing.degraded)


async def test_a_session_shows_nothing_of_another_even_where_that_corrects_it(memory: Memory) -> None:
    await say(memory, "old", "My favourite colour is green.")
    await say(memory, "new", "My favourite colour is now blue.")
    await embedded(memory)
    for history in (False, True):
        found = await ask(memory, "favourite colour", session="old", reach="session", include_superseded=history)
        assert {entry.session_id for entry in found.entries} <= {"old"}


async def test_two_agents_with_one_session_name_never_see_each_other(memory: Memory) -> None:
    await say(memory, "chat", "The code of the safe is a secret of Ada.", agent="ada")
    await say(memory, "chat", "The code of the safe is a secret of Bea.", agent="bea")
    for agent, own in (("ada", "Ada"), ("bea", "Bea")):
        for reach in ("session", "agent", "all"):
            found = await ask(memory, "code of the safe", session="chat", agent=agent, reach=reach)
            assert [entry.text[-4:-1] for entry in found.entries] == [own]


async def test_the_limit_is_kept(memory: Memory) -> None:
    await say(memory, "a", *(f"Boat {number} lies in harbour {number * 7}." for number in range(30)))
    for limit in (1, 5, 20):
        found = await ask(memory, "boat in the harbour", limit=limit)
        assert len(found.entries) == limit
        scores = [entry.score for entry in found.entries]
        assert scores == sorted(scores, reverse=True)


# ── time ──


async def test_at_knows_nothing_later(memory: Memory) -> None:
    await say(memory, "a", user("The ferry is called Aurora.", ts=TODAY - 9 * DAY))
    await say(memory, "a", user("My niece painted the ferry red.", ts=TODAY - 2 * DAY))
    assert await texts(memory, "ferry", at=TODAY - 10 * DAY) == []
    assert await texts(memory, "ferry", at=TODAY - 5 * DAY) == ["The ferry is called Aurora."]
    assert len(await texts(memory, "ferry", at=TODAY)) == 2
    assert len(await texts(memory, "ferry", at=(TODAY - DAY).replace(tzinfo=None))) == 2


async def test_a_day_named_in_the_question_is_looked_at(memory: Memory) -> None:
    tuesday = TODAY - timedelta(days=(TODAY.weekday() - 1) % 7 or 7)
    tuesday = tuesday.replace(hour=12, minute=0)
    for days, text in ((14, "We looked at boats."), (3, "We looked at houses."), (-1, "We looked at cars.")):
        await say(memory, f"s{days}", user(text, ts=min(tuesday - days * DAY, TODAY)))
    await say(memory, "tuesday", user("We planned the garden and the new fence.", ts=tuesday))
    for _ in range(2):
        found = await ask(memory, "What did we talk about last Tuesday?", explain=True)
        assert found.entries[0].text == "We planned the garden and the new fence."
        assert "time" in found.entries[0].found_by
        assert found.explained is not None
        assert found.explained.times
        await embedded(memory)


# ── what holds now ──


async def test_a_new_value_is_shown_for_the_old_one_and_says_so(memory: Memory) -> None:
    await say(memory, "a", user("My favourite colour is green.", ts=TODAY - 9 * DAY))
    await say(memory, "b", user("My favourite colour is now blue.", ts=TODAY - 2 * DAY))
    await embedded(memory)
    entries = (await ask(memory, "What is my favourite colour?")).entries
    assert entries[0].text == "My favourite colour is now blue."
    assert entries[0].why is not None
    assert [one.text for one in entries[0].why.replaces] == ["My favourite colour is green."]
    assert "My favourite colour is green." not in [entry.text for entry in entries]
    history = (await ask(memory, "What is my favourite colour?", include_superseded=True)).entries
    old = next(entry for entry in history if "green" in entry.text)
    assert old.superseded_by == entries[0].id
    then = (await ask(memory, "What is my favourite colour?", at=TODAY - 5 * DAY)).entries
    assert [(entry.text, entry.superseded_by) for entry in then] == [("My favourite colour is green.", None)]


@pytest.mark.parametrize(
    ("said", "correction", "asked"),
    [
        (
            "The meeting is on Wednesday.",
            "Actually, the meeting is on Thursday, not Wednesday.",
            "When is the meeting?",
        ),
        (
            "The meeting with Tom is on Wednesday.",
            "Actually, the meeting is on Thursday, not Wednesday.",
            "When is the meeting with Tom?",
        ),
        ("My birthday is on 5 May.", "Sorry, I meant my birthday is on 6 May.", "When is my birthday?"),
    ],
)
async def test_a_correction_stands_for_what_it_corrects(memory: Memory, said: str, correction: str, asked: str) -> None:
    await say(memory, "a", said, assistant("I wrote it down."), correction, "I bake bread on Sundays.")
    await embedded(memory)
    await link(memory, "a", 1, 3, "correction")
    entry = (await ask(memory, asked)).entries[0]
    assert entry.text == correction
    assert entry.why is not None
    assert [one.text for one in entry.why.replaces] == [said]


async def test_what_may_be_about_the_same_stays_and_names_what_was_said_since(memory: Memory) -> None:
    await say(memory, "a", "My favourite colour is green.", "I like blue walls best these days.")
    await embedded(memory)
    await link(memory, "a", 1, 2, "since")
    found = {entry.text: entry for entry in (await ask(memory, "What is my favourite colour?")).entries}
    earlier, since = found["My favourite colour is green."], found["I like blue walls best these days."]
    assert (earlier.followed_by, earlier.superseded_by) == (since.id, None)
    assert since.why is None or since.why.replaces == []


async def test_what_was_taken_back_is_not_shown(memory: Memory) -> None:
    trip = "I am planning a trip to Lisbon in May with my sister."
    await say(memory, "a", trip, assistant("Lovely."), "The Lisbon trip is off.")
    await embedded(memory)
    assert trip in await texts(memory, "Lisbon trip")
    await link(memory, "a", 1, 3, "retract")
    assert trip not in await texts(memory, "Lisbon trip")
    assert trip in await texts(memory, "Lisbon trip", include_superseded=True)


# ── what is never shown ──


async def test_noise_and_our_own_frames_are_never_recalled(memory: Memory) -> None:
    shown = frame("They told you: the walrus is called Ada.", kind="recall", key=memory._intake._frame_key)
    await say(memory, "a", "[cron:nightly] feed the walrus", f"{shown}\nWhat is it called?", "The walrus likes fish.")
    for _ in range(2):
        found = await texts(memory, "walrus", limit=50)
        assert found[0] == "The walrus likes fish."
        assert not any("cron" in text or "Ada" in text for text in found)
        await embedded(memory)


TOLD = "You are Ada, a walrus keeper in Tromsø."


async def test_what_the_host_told_the_agent_is_recalled_by_who_asks(memory: Memory) -> None:
    await say(memory, "a", Message(role="system", content=TOLD), "I bake bread on Sundays.")
    for _ in range(2):
        entry = (await ask(memory, "walrus keeper")).entries[0]
        assert (entry.text, entry.origin) == (TOLD, "system")
        await embedded(memory)
    assert (await memory.pin("main", keyword="walrus")).changed == 0


async def test_what_the_host_told_another_agent_is_not_recalled(memory: Memory) -> None:
    for agent in ("main", "other"):
        await memory.cross(agent, enabled=True)
    there = memory.scope("b", "other")
    await memory.on_message(there, [Message(role="system", content=TOLD), user("The walrus is called Bo.")])
    found = await memory.recall(memory.scope("a"), "walrus keeper", reach="all")
    assert [entry.text for entry in found.entries] == ["The walrus is called Bo."]


@pytest.mark.parametrize("origin", [None, "user"])
async def test_what_the_host_told_the_agent_comes_to_no_mind_by_itself(memory: Memory, origin: str | None) -> None:
    told = Message(role="system", content=TOLD, origin=origin)
    await say(memory, "a", told, "I bake bread on Sundays.", assistant("Noted: bread on Sundays."))
    for _ in range(2):
        for prompt in ("Who is the walrus keeper in Tromsø?", "Do you remember the walrus keeper?", "zxqv wvut jjkq"):
            turn = await memory.prepare_turn(memory.scope("now"), prompt)
            enriched = await memory.enrich(memory.scope("now"), prompt)
            assert "walrus keeper in" not in f"{turn.memory}{turn.recall}{enriched.text}"
            assert all(entry.text != TOLD for entry in turn.entries)
        await embedded(memory)


async def test_secrets_are_redacted_in_what_is_shown(memory: Memory) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    await say(memory, "a", f"My cloud key is {secret}, keep it safe.")
    found = await texts(memory, "cloud key")
    assert found == ["My cloud key is [redacted:aws-key], keep it safe."]
    explained = await ask(memory, f"is {secret} my key?", explain=True)
    assert secret not in msgspec.json.encode(explained).decode()


# ── queries nobody expects ──


@pytest.mark.parametrize("query", ["!!! ??? ...", "the of and", "\u200b\u200b", "🏳️‍🌈" * 20, "\x00", "a" * 100_000])
async def test_a_query_without_words_finds_little_and_breaks_nothing(memory: Memory, query: str) -> None:
    await say(memory, "a", "The ferry is called Aurora.", "I bake bread.")
    for _ in range(2):
        assert len((await ask(memory, query)).entries) <= 5
        await embedded(memory)
    assert (await memory.audit("main")).verified


async def test_a_long_query_is_read_at_both_ends(memory: Memory) -> None:
    await say(memory, "a", "The ferry is called Aurora.", "I bake bread.", "My niece sings.")
    padding = "Nothing in particular was said here. " * 3_000
    found = await ask(memory, f"{padding} What is the ferry called?")
    assert found.entries[0].text == "The ferry is called Aurora."


async def test_an_empty_query_and_half_a_character_are_refused(memory: Memory) -> None:
    for query in ("", "  \n"):
        with pytest.raises(WrongShape, match="empty"):
            await ask(memory, query)
    with pytest.raises(WrongShape, match="surrogate"):
        await ask(memory, "half \ud800 of it")
    with pytest.raises(WrongShape, match="surrogate"):
        await memory.pin("main", keyword="\udfff")
    assert await events(memory) == ["audit"]


async def test_an_empty_memory_answers(memory: Memory) -> None:
    found = await ask(memory, "anything?", explain=True)
    assert found.entries == []
    assert found.explained is not None


# ── across agents ──


async def both_know_ferries(memory: Memory) -> None:
    await say(memory, "a", "The ferry is called Aurora.", agent="ada")
    await say(memory, "b", "My niece was sick on the ferry.", agent="bea")


async def owners(memory: Memory, agent: str, by: Caller = EMBEDDED) -> set[str]:
    return {entry.agent_id for entry in (await ask(memory, "ferry", agent=agent, reach="all", by=by)).entries}


async def test_agents_are_closed_until_both_have_opened(memory: Memory) -> None:
    await both_know_ferries(memory)
    assert (await memory.cross("ada")).enabled is False
    closed = await ask(memory, "ferry", agent="ada", reach="all")
    assert any("switched off" in note for note in closed.degraded)
    await memory.cross("ada", enabled=True)
    assert await owners(memory, "ada") == {"ada"}
    assert await owners(memory, "bea") == {"bea"}
    assert (await memory.cross("bea", enabled=True)).agents == ["ada"]
    assert await owners(memory, "ada") == {"ada", "bea"}
    assert await owners(memory, "bea") == {"ada", "bea"}
    # Opened is not shown: only `all` looks there.
    assert {entry.agent_id for entry in (await ask(memory, "ferry", agent="ada")).entries} == {"ada"}
    await memory.cross("bea", enabled=False)
    assert await owners(memory, "ada") == {"ada"}
    assert await owners(memory, "bea") == {"bea"}


async def test_another_agents_answer_is_not_buried_under_ones_own_chatter(memory: Memory) -> None:
    """Scores are measured against an agent's own memory: one of three thousand means another than one of one."""
    chatter = [f"The launch of boat {number} on the lake went well, said word for word." for number in range(50)]
    await say(memory, "a", *chatter)
    await say(memory, "b", "The launch code word is Marigold.", agent="other")
    for agent in ("main", "other"):
        await memory.cross(agent, enabled=True)
    for _ in range(2):  # by words, then by meaning too
        found = (await ask(memory, "what is the launch code word?", reach="all", limit=3)).entries
        assert (found[0].agent_id, found[0].text) == ("other", "The launch code word is Marigold.")
        assert [entry.score for entry in found] == sorted((entry.score for entry in found), reverse=True)
        await embedded(memory)


async def test_both_chains_tell_of_a_look_across(memory: Memory) -> None:
    await both_know_ferries(memory)
    for agent in ("ada", "bea"):
        await memory.cross(agent, enabled=True)
    found = await ask(memory, "ferry", agent="ada", reach="all")
    theirs = next(entry for entry in found.entries if entry.agent_id == "bea")
    for agent in ("ada", "bea"):
        report = await memory.audit(agent)
        assert report.verified
        (event,) = [event for event in report.events if event.verb == "recall"]
        assert theirs.id in event.details["entries"]
        assert event.details.get("by") == (None if agent == "ada" else "ada")
        assert "ferry" not in str(event.details)


async def test_a_bound_caller_sees_only_its_agents(memory: Memory) -> None:
    await both_know_ferries(memory)
    await say(memory, "c", "The ferry burned down.", agent="cleo")
    for agent in ("ada", "bea", "cleo"):
        await memory.cross(agent, enabled=True)
    bound = Caller(name="token:two", agents=frozenset({"ada", "bea"}))
    assert await owners(memory, "ada", by=bound) == {"ada", "bea"}
    assert (await memory.cross("ada", by=bound)).agents == ["bea"]
    assert await owners(memory, "ada") == {"ada", "bea", "cleo"}


async def test_the_setting_opens_all_and_an_agent_closes_itself(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(Settings(), cross_search_enabled=True)
    async with open_memory(tmp_path, settings=settings) as memory:
        await both_know_ferries(memory)
        assert await owners(memory, "ada") == {"ada", "bea"}
        await memory.cross("bea", enabled=False)
        assert await owners(memory, "ada") == {"ada"}


# ── pins ──


async def pinned(memory: Memory, query: str = "ferry", agent: str = "main") -> dict[str, bool]:
    return {entry.text: entry.pinned for entry in (await ask(memory, query, agent=agent, limit=50)).entries}


AURORA, NIECE = "The ferry is called Aurora.", "My niece was sick on the ferry."


async def test_pins_by_id_keyword_and_session(memory: Memory) -> None:
    await say(memory, "a", AURORA)
    await say(memory, "b", NIECE)
    names = {entry.text: entry.id for entry in (await ask(memory, "ferry")).entries}
    ways = [{"entry_ids": [names[AURORA]]}, {"keyword": "aurora"}, {"session_id": "a"}]
    ways.append({"keyword": "FERRY", "session_id": "a"})
    for way in ways:
        for _ in range(2):
            changed = await memory.pin("main", **way)  # type: ignore[arg-type]
            assert await pinned(memory) == {AURORA: True, NIECE: False}
        assert (changed.changed, changed.entry_ids) == (0, [])
        assert (await memory.status("main")).pinned == 1
        undone = await memory.pin("main", pinned=False, **way)  # type: ignore[arg-type]
        assert (undone.changed, undone.entry_ids) == (1, [names[AURORA]])
        assert await pinned(memory) == {AURORA: False, NIECE: False}
    assert (await memory.pin("main", keyword="ferry")).changed == 2
    assert (await memory.pin("main", keyword="ferry", pinned=False)).changed == 2


async def test_a_keyword_is_what_it_says_indexed_or_fresh(memory: Memory) -> None:
    await say(memory, "a", AURORA, "It is the best of all ferries.", "!!!")
    for _ in range(2):
        for keyword in ("the of", "???", " ", "walrus", "aurora walrus", "auror borealis"):
            assert (await memory.pin("main", keyword=keyword)).changed == 0, keyword
        await embedded(memory)
    long = " ".join(f"number{number}" for number in range(50))
    await say(memory, "a", f"All of these: {long}.")
    assert (await memory.pin("main", keyword=long)).changed == 1


async def test_pins_weigh_and_stay_hot(memory: Memory) -> None:
    await say(memory, "a", AURORA)
    entry = (await ask(memory, "ferry")).entries[0]
    before = (await ask(memory, "ferry")).entries[0]
    await memory.pin("main", entry_ids=[entry.id])
    after = (await ask(memory, "ferry")).entries[0]
    assert after.score > before.score
    assert after.found_by[-1] == "pin"
    later = (await ask(memory, "ferry", at=TODAY + 1_000 * DAY)).entries[0]
    assert later.tier == "hot"


async def test_another_agents_entry_is_not_pinned(memory: Memory) -> None:
    await say(memory, "a", AURORA, agent="ada")
    theirs = (await ask(memory, "ferry", agent="ada")).entries[0].id
    assert (await memory.pin("bea", entry_ids=[theirs])).changed == 0
    assert (await memory.pin("bea", keyword="ferry")).changed == 0
    assert (await memory.pin("bea", session_id="a")).changed == 0
    assert await pinned(memory, agent="ada") == {AURORA: False}


async def test_what_no_pin_can_mean_is_refused(memory: Memory) -> None:
    with pytest.raises(WrongShape, match="say what is meant"):
        await memory.pin("main")
    with pytest.raises(WrongShape, match="no entry's id"):
        await memory.pin("main", entry_ids=["m1", "nonsense"])
    assert (await memory.pin("main", entry_ids=["m1"])).changed == 0
    assert (await memory.pin("main", session_id="nowhere")).changed == 0


# ── what recall leaves behind ──


async def test_each_retrieval_counts_and_keeps_hot(memory: Memory) -> None:
    await say(memory, "a", AURORA, "I bake bread on Sundays.")
    for times in range(1, 4):
        found = await ask(memory, "What is the ferry called?", limit=1)
        assert [entry.text for entry in found.entries] == [AURORA]
        assert (await memory.status("main")).retrievals == times
    in_eight_hours = now() + timedelta(hours=8)
    tiers = {entry.text: entry.tier for entry in (await ask(memory, "ferry bread", at=in_eight_hours)).entries}
    assert tiers == {AURORA: "hot", "I bake bread on Sundays.": "warm"}


async def test_every_verb_leaves_one_event_and_the_chain_verifies(memory: Memory) -> None:
    await say(memory, "a", AURORA)
    entry = (await ask(memory, "ferry")).entries[0]
    await ask(memory, "walrus")
    await memory.pin("main", entry_ids=[entry.id])
    await memory.pin("main", entry_ids=[], pinned=False)
    await memory.cross("main")
    await memory.cross("main", enabled=True)
    await memory.reindex("main")
    report = await memory.audit("main")
    asked = [event for event in report.events if event.verb != "learn"]  # which the background does meanwhile
    assert [event.verb for event in asked] == [
        "onMessage", "recall", "recall", "pin", "unpin", "cross", "cross", "reindex", "audit",
    ]  # fmt: skip
    assert report.verified
    recalled = asked[1]
    assert (recalled.session_id, recalled.details["scope"], recalled.details["entries"]) == ("now", "agent", [entry.id])
    assert len(recalled.details["query"]) == 64


async def test_a_rebuilt_index_finds_the_same(memory: Memory) -> None:
    await say(memory, "a", AURORA, NIECE, "I bake bread.")
    await embedded(memory)
    before = [(entry.id, entry.score) for entry in (await ask(memory, "ferry")).entries]
    for embeddings in (False, True):
        await memory.reindex("main", embeddings=embeddings)
        await embedded(memory)
        after = [(entry.id, entry.score) for entry in (await ask(memory, "ferry")).entries]
        assert [name for name, _ in after] == [name for name, _ in before]


async def test_what_was_recalled_before_a_stop_is_recalled_after_it(tmp_path: Path) -> None:
    for _ in range(3):
        async with open_memory(tmp_path, environ={}) as memory:
            if not (await memory.status("main")).counts.messages:
                await say(memory, "a", AURORA, NIECE)
            assert set(await texts(memory, "ferry")) == {AURORA, NIECE}


async def test_explained_tells_how_it_came_about(memory: Memory) -> None:
    await say(memory, "a", user("My favourite colour is green."), user("My favourite colour is now blue."))
    await embedded(memory)
    found = await ask(memory, "What is my favourite colour?", explain=True)
    explained = found.explained
    assert explained is not None
    assert explained.looked_at == 2
    assert set(explained.recipes) == {"main"}
    assert explained.looked_for
    assert any("holds now" in left.why for left in explained.left_out)
    why = found.entries[0].why
    assert why is not None
    assert why.evidence
    assert (await ask(memory, "What is my favourite colour?")).explained is None


async def test_the_time_of_a_verb_is_utc_and_within_reason(memory: Memory) -> None:
    with pytest.raises(WrongShape, match="`at`"):
        await ask(memory, "ferry", at=datetime(1, 1, 1, tzinfo=UTC))


# ── what misled it once ──


async def test_a_tiny_memory_answers_by_words_before_there_are_vectors(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        Settings(), embedding=msgspec.structs.replace(Settings().embedding, model="none")
    )
    async with open_memory(tmp_path, settings=settings) as memory:
        await say(memory, "a", "My cat is called Ada.", assistant("A good name. I will remember it."))
        found = await ask(memory, "what is my cat called?")
        assert found.entries[0].text == "My cat is called Ada."
        assert "switched off" in found.degraded[0]


async def test_denials_in_the_same_session_do_not_bury_the_answer(memory: Memory) -> None:
    await say(memory, "a", "I'm allergic to peanuts.", "We go to Naxos in June.", "Forget about Naxos, we go to Milos.")
    for _ in range(5):
        await say(
            memory, "a", "Do you remember my allergy?", assistant("I don't have any information about your allergies.")
        )
    await embedded(memory)
    assert (await texts(memory, "Do you remember my allergy?"))[0] == "I'm allergic to peanuts."


async def test_what_has_nothing_to_do_with_it_is_not_shown(memory: Memory) -> None:
    await say(memory, "a", "The staging server runs on port 8080.", "Grandmother knits a green scarf.")
    await embedded(memory)
    assert await texts(memory, "which port does staging use?") == ["The staging server runs on port 8080."]


async def test_what_was_said_then_is_asked_for_by_its_time(memory: Memory) -> None:
    day = datetime(2026, 10, 5, 12, tzinfo=UTC)
    await say(memory, "a", user("The meeting with Dana is on Wednesday at noon in the library.", ts=day))
    await say(memory, "b", user("Dana is away this week, so our meeting is now on Thursday.", ts=day + 4 * DAY))
    await embedded(memory)
    assert (await texts(memory, "when is the meeting with Dana?"))[0].startswith("Dana is away this week")
    then = await ask(memory, "what did I say about the meeting with Dana on 5 October 2026?")
    assert then.entries[0].text == "The meeting with Dana is on Wednesday at noon in the library."
    assert then.entries[0].superseded_by is not None


async def test_a_correction_of_one_thing_does_not_hide_the_other(memory: Memory) -> None:
    await say(memory, "a", "My favorite color is green. My favorite food is sushi.")
    await say(memory, "b", "My favorite color is now red.")
    await embedded(memory)
    food = (await ask(memory, "what is my favorite food?")).entries
    assert food[0].text == "My favorite color is green. My favorite food is sushi."
    assert food[0].superseded_by is not None or food[0].followed_by is not None
    assert "My favorite color is now red." in await texts(memory, "what is my favorite color?")


async def test_what_was_acknowledged_is_found_behind_a_long_queue(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offbook.search.recall.FOLLOW_SECONDS", 0.0)
    monkeypatch.setattr("offbook.projections.runner.GATHER_SECONDS", 60.0)
    for batch in range(6):
        await say(memory, f"import-{batch}", *(f"Line {batch}-{line} of an old transcript." for line in range(500)))
    await say(memory, "now", "The walrus likes herring best.")
    found = await ask(memory, "what does the walrus like?")
    assert found.entries[0].text == "The walrus likes herring best."
    assert any("still being indexed" in note for note in found.degraded)
