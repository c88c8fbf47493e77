from __future__ import annotations

import asyncio
import gc
import json
import threading
from typing import Any, cast

import pytest

from offbook.client.async_client import AsyncClient
from offbook.contrib.proxy import enricher
from offbook.contrib.proxy.chat_api import Answer, Request, read_request
from offbook.contrib.proxy.conversations import Conversations
from offbook.contrib.proxy.enricher import LARGE_BYTES, Enricher
from offbook.contrib.proxy.responses_api import CHAT, RESPONSES
from offbook.contrib.proxy.swaps import Limits, size_tokens
from offbook.model.errors import ProviderUnavailable
from offbook.model.summary import Ledger, Swap
from offbook.model.turn import PreparedTurn, TurnTokens
from offbook.model.types import Message


class Memory:
    """A provider's client, in memory, that can be away, stuck or wrong."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, Message]] = []
        self.turns: list[str] = []
        self.swaps = 0
        self.forgets = 0
        self.trouble: Exception | None = None
        self.is_stuck = False
        self.known: set[str] = set()
        self.told: list[Any] = []
        self.leaves_out_the_newest = False

    def record(self, session_id: str, message: Message) -> None:
        self.recorded.append((session_id, message))

    async def _be(self) -> None:
        if self.is_stuck:
            await asyncio.sleep(60)
        if self.trouble is not None:
            raise self.trouble

    async def prepare_turn(self, session_id: str, prompt: str, **_fields: Any) -> PreparedTurn:
        await self._be()
        self.turns.append(prompt)
        tokens = TurnTokens(memory=1, recall=1, budget=9)
        return PreparedTurn(
            memory="MEMORY",
            recall="RECALL",
            tokens=tokens,
            entries=[],
            intent="plain",
            degraded=[],
            forgets=self.forgets,
        )

    async def missing(self, session_id: str, ids: list[str]) -> list[str]:
        await self._be()
        return [] if session_id in self.known else ids

    async def settle(self, seconds: float) -> bool:
        await self._be()
        return True

    async def swap(self, session_id: str, used_tokens: int, window: int) -> Swap:
        self.swaps += 1
        said = [message for owner, message in self.recorded if owner == session_id]
        shown = said[-3:-1] if self.leaves_out_the_newest else said[-2:]
        messages = [Message(role="assistant", content="SUMMARY"), *shown]
        return Swap(
            swapped=True,
            reason="due",
            generation=self.swaps,
            messages=messages,
            tokens_before=used_tokens,
            tokens_after=1,
            ledger=Ledger(),
            took_ms=0.0,
        )

    async def post_compaction(self, session_id: str, new_context: Any) -> None:
        self.told.append(new_context)


class Chat:
    """A client that sends its whole history with every request."""

    def __init__(self, window: int = 1_000_000, deadline_seconds: float = 5.0) -> None:
        self.memory = Memory()
        limits = Limits(window, 0.85)
        self.enricher = Enricher(cast(AsyncClient, self.memory), limits, deadline_seconds=deadline_seconds)
        self.history: list[dict[str, Any]] = []

    def body(self, text: str) -> bytes:
        self.history.append({"role": "user", "content": text})
        return json.dumps({"messages": self.history}).encode()

    async def say(self, text: str, reply: str, prompt_tokens: int | None = None) -> bytes:
        enriched = await self.enricher.enriched(self.body(text))
        assert enriched.exchange is not None
        message = {"role": "assistant", "content": reply}
        self.enricher.answered(enriched.exchange, Answer([message], prompt_tokens))
        await asyncio.sleep(0)  # the provider is asked whether the name is free
        self.history.append(message)
        return enriched.body

    async def sent(self, text: str, reply: str = "Yes.") -> list[Any]:
        found: list[Any] = json.loads(await self.say(text, reply))["messages"]
        return [message["content"] for message in found]


async def test_a_turn_is_put_in_its_places_and_recorded() -> None:
    chat = Chat()
    assert await chat.sent("Hi", "Hello.") == ["MEMORY", "Hi\n\nRECALL"]
    assert await chat.sent("More", "Yes.") == ["MEMORY", "Hi", "Hello.", "More\n\nRECALL"]
    assert [message.content for _, message in chat.memory.recorded] == ["Hi", "Hello.", "More", "Yes."]
    assert len({owner for owner, _ in chat.memory.recorded}) == 1
    assert len({message.id for _, message in chat.memory.recorded}) == 4


async def test_one_question_is_prepared_once_while_tools_are_at_work() -> None:
    chat = Chat()
    await chat.sent("Hi", "Hello.")
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    first = await chat.enricher.enriched(chat.body("Look it up"))
    chat.history += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "42"},
    ]
    second = await chat.enricher.enriched(json.dumps({"messages": chat.history}).encode())
    assert chat.memory.turns == ["Hi", "Look it up"]
    before, after = json.loads(first.body)["messages"], json.loads(second.body)["messages"]
    assert after[: len(before)] == before


async def test_trouble_leaves_every_byte_as_it_came_and_is_not_waited_for_again() -> None:
    troubles = ((ProviderUnavailable("nobody answers"), 1), (OSError("broken"), 1), (ValueError("nonsense"), 3))
    for trouble, times in troubles:
        chat = Chat()
        chat.memory.trouble = trouble
        body = chat.body("Hi")
        for _ in range(times):
            assert (await chat.enricher.enriched(body)).body == body
        chat.memory.trouble = None
        assert (await chat.enricher.enriched(body)).body == body  # it rests
        assert chat.memory.turns == []


async def test_what_is_said_meanwhile_is_recorded_all_the_same() -> None:
    chat = Chat()
    await chat.sent("Hi", "Hello.")
    chat.memory.trouble = ProviderUnavailable("nobody answers")
    await chat.say("More", "Yes.")
    assert [message.content for _, message in chat.memory.recorded] == ["Hi", "Hello.", "More", "Yes."]


async def test_a_stuck_provider_is_not_waited_for() -> None:
    chat = Chat(deadline_seconds=0.2)
    chat.memory.is_stuck = True
    body = chat.body("Hi")
    async with asyncio.timeout(120):
        assert (await chat.enricher.enriched(body)).body == body
        chat.memory.is_stuck = False
        assert (await chat.enricher.enriched(body)).body != body  # late once is not gone
        chat.memory.is_stuck = True
        for text in ("One", "Two", "Three"):
            assert (await chat.enricher.enriched(body := chat.body(text))).body == body
        chat.memory.is_stuck = False
        assert (await chat.enricher.enriched(body := chat.body("Four"))).body == body  # it rests


async def test_a_question_as_long_as_a_book_is_asked_by_its_beginning_and_end() -> None:
    chat = Chat()
    await chat.sent("Begin. " + "x" * 3_000_000 + " End?")
    assert len(chat.memory.turns[0]) < 200_000
    assert chat.memory.turns[0].startswith("Begin.")
    assert chat.memory.turns[0].endswith("End?")


async def test_what_cannot_be_read_passes() -> None:
    chat = Chat()
    assert await chat.enricher.enriched(b"\xff") == (b"\xff", None)


async def test_a_long_conversation_is_swapped_and_stays_so_without_a_provider() -> None:
    chat = Chat(window=200)
    text = "a word or two about parcels " * 4
    sent: list[Any] = []
    for number in range(8):
        sent = await chat.sent(f"{number} {text}", f"Answer {number}")
    assert chat.memory.swaps
    assert "SUMMARY" in sent
    assert len(sent) < len(chat.history)
    chat.memory.trouble = ProviderUnavailable("nobody answers")
    sent = await chat.sent("Are you there?")
    assert sent[0] == "SUMMARY"
    assert sent[-1] == "Are you there?"


async def test_a_context_that_lacks_the_newest_is_not_used_and_the_provider_is_told() -> None:
    chat = Chat(window=200)
    chat.memory.leaves_out_the_newest = True
    text = "a word or two about parcels " * 4
    for number in range(8):
        assert "SUMMARY" not in await chat.sent(f"{number} {text}", f"Answer {number}")
    await asyncio.sleep(0)
    assert chat.memory.swaps
    assert "newest" in chat.memory.told[0]["kept"]


async def test_what_was_forgotten_goes_from_here_too() -> None:
    chat = Chat(window=200)
    text = "a word or two about parcels " * 4
    for number in range(6):
        await chat.sent(f"{number} {text}", f"Answer {number}")
    assert "SUMMARY" in await chat.sent("Well", "Yes.")
    before = chat.memory.swaps
    chat.memory.forgets = 1
    assert "SUMMARY" not in await chat.sent("Forget it", "Done.")
    assert "SUMMARY" in await chat.sent("And now", "Yes.")
    assert chat.memory.swaps > before  # a new context, not the one with the words in it


async def test_a_history_that_the_provider_knows_goes_on_in_its_session() -> None:
    before = Chat()
    await before.sent("Hi", "Hello.")
    session_id = before.memory.recorded[0][0]
    after = Chat()
    after.history, after.memory.known = before.history, {session_id}
    await after.sent("More", "Yes.")
    assert [(owner, message.content) for owner, message in after.memory.recorded] == [
        (session_id, "More"),
        (session_id, "Yes."),
    ]


async def test_a_history_waits_for_its_name_while_nobody_can_say_whether_it_is_known() -> None:
    before = Chat()
    await before.sent("Hi", "Hello.")
    after = Chat()
    after.history = before.history
    after.memory.trouble = ProviderUnavailable("nobody answers")
    await after.say("More", "Yes.")
    await asyncio.sleep(0)
    assert after.memory.recorded == []
    await after.enricher.close()  # at a stop, twice is better than not at all
    assert [message.content for _, message in after.memory.recorded] == ["Hi", "Hello.", "More", "Yes."]


def used_tokens(chat: Chat) -> int:
    """What the next prompt is taken to have, the history alone."""
    (context,) = chat.enricher._contexts.values()
    request = read_request(json.dumps({"messages": chat.history}).encode())
    assert request is not None
    return context.meter.used(size_tokens(request.items, {}))


LONG = "a word or two about parcels " * 100


async def test_what_is_counted_of_a_request_without_memory_is_counted_once() -> None:
    chat = Chat()
    chat.memory.trouble = ProviderUnavailable("nobody answers")
    for text in (LONG, "and resting"):  # first the trouble, then the rest
        await chat.say(text, "Yes.", prompt_tokens=1_000)
        assert used_tokens(chat) < 1_200


async def test_what_is_counted_of_a_request_sent_again_is_counted_as_it_was_sent() -> None:
    chat = Chat()
    enriched = await chat.enricher.enriched(chat.body(LONG))
    assert enriched.exchange is not None
    bare = chat.enricher.sent_bare(enriched.exchange)
    assert not bare.is_enriched
    chat.enricher.answered(bare, Answer([{"role": "assistant", "content": "Yes."}], 5_000))
    chat.history.append({"role": "assistant", "content": "Yes."})
    (context,) = chat.enricher._contexts.values()
    assert context.meter.used(bare.slot_tokens) == 5_000


async def test_a_request_that_cannot_be_counted_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: Any) -> int:
        raise ValueError("nonsense")

    chat = Chat()
    monkeypatch.setattr("offbook.contrib.proxy.enricher.size_tokens", broken)
    monkeypatch.setattr("offbook.contrib.proxy.swaps.size_tokens", broken)
    body = chat.body("Hi")
    enriched = await chat.enricher.enriched(body)
    assert enriched.body == body
    assert enriched.exchange is not None
    chat.enricher.answered(enriched.exchange, Answer([{"role": "assistant", "content": "Hello."}], 1_000))
    await asyncio.sleep(0)
    assert [message.content for _, message in chat.memory.recorded] == ["Hi", "Hello."]


async def test_of_two_that_began_alike_each_has_its_own_size() -> None:
    chat = Chat()
    body = chat.body(LONG)
    kept = []
    for text in ("One.", "Two."):
        exchange = (await chat.enricher.enriched(body)).exchange
        assert exchange is not None
        kept.append((exchange, Answer([{"role": "assistant", "content": text}], 1_000)))
    for exchange, answer in kept:
        chat.enricher.answered(exchange, answer)
        context = chat.enricher._contexts[exchange.turn.conversation]
        assert context.meter.used(exchange.slot_tokens) < 1_200


async def test_a_request_that_rests_says_nothing_about_the_provider() -> None:
    chat = Chat(deadline_seconds=0.05)
    chat.memory.is_stuck = True
    async with asyncio.timeout(120):
        for text in ("One", "Two", "Three", "Resting"):
            await chat.enricher.enriched(chat.body(text))
        chat.enricher._rest._until = 0.0  # rested, and stuck all the same
        await chat.enricher.enriched(chat.body("Four"))
    chat.memory.is_stuck = False
    assert (await chat.enricher.enriched(body := chat.body("Five"))).body == body


async def test_a_swap_that_was_asked_for_before_something_was_forgotten_is_not_used() -> None:
    chat = Chat(window=200, deadline_seconds=0.2)
    text = "a word or two about parcels " * 4
    gate, ask = asyncio.Event(), chat.memory.swap

    async def slow(session_id: str, used: int, window: int) -> Swap:
        answer = await ask(session_id, used, window)
        await gate.wait()
        return answer

    setattr(chat.memory, "swap", slow)  # noqa: B010 - a method of its own for this one
    async with asyncio.timeout(120):
        while not chat.memory.swaps:
            assert "SUMMARY" not in await chat.sent(text)
        chat.memory.forgets = 1
        await chat.sent("Forget it", "Done.")
        gate.set()
        await asyncio.sleep(0)
        asked = chat.memory.swaps
        await chat.sent("And now")
    assert chat.memory.swaps == asked + 1  # another question, and not the answer to the old one


# ── several answers; conversations at the API ──


async def test_of_several_answers_the_question_and_the_chosen_one_are_recorded() -> None:
    chat = Chat()
    for number in range(3):
        enriched = await chat.enricher.enriched(chat.body(f"Question {number}"))
        assert enriched.exchange is not None
        choices = [[{"role": "assistant", "content": f"{text} {number}"}] for text in ("This", "That")]
        chat.enricher.answered(enriched.exchange, Answer((), 10, choices=choices))
        chat.history.append(choices[1][0])
    await asyncio.sleep(0)
    told = [message.content for _, message in chat.memory.recorded]
    assert told == ["Question 0", "That 0", "Question 1", "That 1", "Question 2"]
    assert len({owner for owner, _ in chat.memory.recorded}) == 1


class Responses(Chat):
    """A client that leaves its history to the API."""

    previous: str | None = None
    count = 0

    async def respond(self, given: Any, *messages: dict[str, Any]) -> list[Any]:
        body = json.dumps({"input": given, "previous_response_id": self.previous}).encode()
        enriched = await self.enricher.enriched(body, None, RESPONSES)
        assert enriched.exchange is not None
        self.count += 1
        self.previous = f"resp_{self.count}"
        self.enricher.answered(enriched.exchange, Answer(messages, 10, None, self.previous))
        await asyncio.sleep(0)
        sent = json.loads(enriched.body)["input"]
        return [item.get("content", item.get("output")) for item in sent] if isinstance(sent, list) else [sent]


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


async def test_at_the_api_memory_is_put_in_once_and_recall_with_each_question() -> None:
    client = Responses()
    assert await client.respond("Hi", answer("Hello.")) == ["MEMORY", "Hi\n\nRECALL"]
    assert await client.respond("More", answer("Yes."), answer("And yes.")) == ["More\n\nRECALL"]
    result = [{"type": "function_call_output", "call_id": "c", "output": "42"}]
    assert await client.respond(result, answer("It is 42.")) == ["42"]
    assert client.memory.turns == ["Hi", "More"]
    told = [message.content for _, message in client.memory.recorded]
    assert told == ["Hi", "Hello.", "More", "Yes.", "And yes.", "42", "It is 42."]
    assert len({owner for owner, _ in client.memory.recorded}) == 1


async def test_at_the_api_memory_that_came_too_late_is_put_in_later() -> None:
    client = Responses()
    client.memory.trouble = ValueError("once")
    assert await client.respond("Hi", answer("Hello.")) == ["Hi"]
    client.memory.trouble = None
    assert await client.respond("More", answer("Yes.")) == ["MEMORY", "More\n\nRECALL"]
    assert await client.respond("Even more", answer("Yes.")) == ["Even more\n\nRECALL"]


async def test_what_lies_at_the_api_is_not_swapped() -> None:
    client = Responses(window=200)
    text = "a word or two about parcels " * 4
    for number in range(8):
        await client.respond(f"{number} {text}", answer(f"Answer {number}"))
    assert client.memory.swaps == 0


async def test_a_question_that_was_answered_without_a_word_is_told_with_the_next() -> None:
    client = Responses()
    await client.respond("Send it")  # a tool at the API asks for leave
    assert client.memory.recorded == []
    approval = [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}]
    await client.respond(approval, answer("It is sent."))
    assert [message.content for _, message in client.memory.recorded] == ["Send it", "It is sent."]


async def test_a_history_of_items_is_swapped_with_its_thoughts() -> None:
    client = Responses(window=200)
    history: list[Any] = []
    sent: list[Any] = []
    for number in range(8):
        history.append({"role": "user", "content": f"{number} " + "a word or two about parcels " * 4})
        body = json.dumps({"input": history, "store": False}).encode()
        enriched = await client.enricher.enriched(body, None, RESPONSES)
        assert enriched.exchange is not None
        sent = json.loads(enriched.body)["input"]
        said = {"role": "assistant", "content": f"Answer {number}"}
        client.enricher.answered(enriched.exchange, Answer([said]))
        history += [{"type": "reasoning", "id": f"rs_{number}", "summary": []}, {"id": f"msg_{number}", **said}]
    assert client.memory.swaps
    assert any(item.get("content") == "SUMMARY" for item in sent)
    thoughts = [item["id"][3:] for item in sent if item.get("type") == "reasoning"]
    assert len(thoughts) < 7
    assert thoughts == [item["id"][4:] for item in sent if item.get("id", "").startswith("msg_")]


async def test_a_conversation_may_go_on_over_the_other_api() -> None:
    client = Responses()
    await client.say("Hi", "Hello.")
    part = {"type": "output_text", "text": "Hello.", "annotations": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    asked = {"role": "user", "content": [{"type": "input_text", "text": "More"}]}
    await client.respond([{"role": "user", "content": "Hi"}, said, asked], answer("Yes."))
    assert [message.role for _, message in client.memory.recorded] == ["user", "assistant", "user", "assistant"]
    assert len({owner for owner, _ in client.memory.recorded}) == 1


# ── what was forgotten ──


async def test_the_turn_that_tells_of_a_forgetting_is_asked_for_again() -> None:
    """It may have been put together before, and still have the words."""
    chat = Chat()
    await chat.sent("Hi")
    chat.memory.forgets = 1
    assert await chat.sent("Forget it") == ["MEMORY", "Hi", "Yes.", "Forget it\n\nRECALL"]
    assert chat.memory.turns == ["Hi", "Forget it", "Forget it"]


async def test_a_provider_that_does_not_count_is_no_news() -> None:
    chat = Chat()
    for forgets in (0, None, 0):
        chat.memory.forgets = cast(int, forgets)
        await chat.sent(f"Count {forgets}")
    assert len(chat.memory.turns) == 3


async def test_conversations_that_never_had_a_word_are_let_go() -> None:
    client = Responses()
    client.enricher._conversations = Conversations(most=2)
    for number in range(6):
        client.previous = None
        await client.respond(f"Draw {number}")
    await asyncio.sleep(0)
    gc.collect()
    assert len(client.enricher._contexts) <= 3


async def test_a_context_from_before_the_first_count_goes_with_it() -> None:
    """Nobody can say whether what was forgotten is in it."""
    chat = Chat(window=200)
    ask = chat.memory.prepare_turn

    async def late(*_given: Any, **_fields: Any) -> PreparedTurn:
        raise TimeoutError

    setattr(chat.memory, "prepare_turn", late)  # noqa: B010 - a method of its own for this one
    sent: list[Any] = []
    for number in range(6):
        chat.enricher._rest._until = 0.0
        sent = await chat.sent(f"{number} {PARCELS}", f"A{number}")
    assert "SUMMARY" in sent
    setattr(chat.memory, "prepare_turn", ask)  # noqa: B010
    chat.enricher._rest._until = 0.0
    assert "SUMMARY" not in await chat.sent("And now")


async def test_a_context_that_comes_with_the_first_count_is_used() -> None:
    before = Chat()
    for number in range(6):
        await before.sent(f"{number} {PARCELS}", f"A{number}")
    after = Chat(window=200)  # a proxy that was started anew
    after.history, after.memory.recorded = before.history, before.memory.recorded
    after.memory.known = {before.memory.recorded[0][0]}
    assert "SUMMARY" in await after.sent("And now")


async def test_what_is_forgotten_while_tools_are_at_work_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.contrib.proxy.swaps.COUNT_SECONDS", 0.0)
    chat = Chat(window=300)
    for number in range(8):
        await chat.sent(f"{number} {PARCELS}", f"A{number}")
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    enriched = await chat.enricher.enriched(chat.body("Work on it"))
    chat.memory.forgets = 1
    shown: list[bool] = []
    for step in range(3):
        assert enriched.exchange is not None
        said = {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{step}", **call}]}
        chat.enricher.answered(enriched.exchange, Answer([said]))
        chat.history += [said, {"role": "tool", "tool_call_id": f"c{step}", "content": "r"}]
        enriched = await chat.enricher.enriched(json.dumps({"messages": chat.history}).encode())
        shown.append(chat.enricher._contexts[cast(Any, enriched.exchange).turn.conversation].generation == 1)
        await asyncio.sleep(0)
    assert shown[0]  # no step waits for the count
    assert not shown[-1]


PARCELS = "a word or two about parcels " * 4


# ── who is greeted alike ──


def another(chat: Chat, window: int = 1_000_000) -> Chat:
    """Somebody else at the same proxy."""
    made = Chat(window)
    made.enricher, made.memory = chat.enricher, chat.memory
    return made


async def test_who_is_greeted_alike_is_not_shown_what_the_other_said() -> None:
    ann = Chat(window=200)
    bob = another(ann)
    await ann.sent("Hi", "Hello!")
    await bob.sent("Hi", "Hello!")
    await ann.sent("ANN", "Ann.")
    for number in range(6):
        await bob.sent(f"BOB {number} {PARCELS}", f"Bob {number}.")
    sessions: dict[str, list[str]] = {}
    for owner, message in ann.memory.recorded:
        sessions.setdefault(owner, []).append(str(message.content)[:3])
    of_ann, of_bob = sessions.values()
    assert of_ann == ["Hi", "Hel", "ANN", "Ann"]
    assert of_bob == ["Hi", "Hel", *(["BOB", "Bob"] * 6)]


async def test_a_greeting_that_the_provider_knows_names_nobody_else() -> None:
    before = Chat()
    await before.sent("Hi", "Hello!")
    session_id = before.memory.recorded[0][0]
    after = Chat()  # a proxy that was started anew
    after.memory.known = {session_id}
    await after.sent("Hi", "Hello!")
    assert after.memory.recorded == []
    await after.sent("I am Bob", "Hi Bob.")
    assert [message.content for _, message in after.memory.recorded] == ["Hi", "Hello!", "I am Bob", "Hi Bob."]
    assert {owner for owner, _ in after.memory.recorded}.isdisjoint({session_id})


async def test_a_history_is_found_by_the_newest_answer_that_is_known() -> None:
    ann = Chat()
    bob = another(ann)
    for chat in (ann, bob):
        await chat.sent("Hi", "Hello!")
    await ann.sent("I am Ann", "Hi Ann.")
    await bob.sent("I am Bob", "Hi Bob.")
    names = list(dict.fromkeys(owner for owner, _ in ann.memory.recorded))
    after = Chat()
    after.memory.known, after.history = set(names), bob.history
    await after.sent("Go on")
    assert {owner for owner, _ in after.memory.recorded} == {names[1]}


async def test_whose_question_it_is_that_nobody_can_tell_is_nobody_elses() -> None:
    ann = Chat()
    bob = another(ann)
    for chat in (ann, bob):
        await chat.sent("Hi", "Hello!")
    await ann.sent("I am Ann", "Hi Ann.")
    await bob.sent("I am Bob", "Hi Bob.")
    ann.memory.known = {owner for owner, _ in ann.memory.recorded}
    count = len(ann.memory.recorded)
    edited = another(ann)
    edited.history = bob.history[:2]
    await edited.sent("I am Bob, hi", "Hi.")
    assert {owner for owner, _ in ann.memory.recorded[count:]}.isdisjoint(ann.memory.known)
    assert [message.content for _, message in ann.memory.recorded[count:]] == ["Hi", "Hello!", "I am Bob, hi", "Hi."]


async def test_a_name_is_given_without_a_provider_too() -> None:
    chat = Chat()
    chat.memory.trouble = ValueError("nonsense")
    await chat.sent("Hi", "Hello.")
    assert [message.content for _, message in chat.memory.recorded] == ["Hi", "Hello."]


# ── what a model does not take; what is not kept ──


async def test_a_model_that_refused_twice_is_left_alone() -> None:
    chat = Chat()
    for number in range(2):
        enriched = await chat.enricher.enriched(body := chat.body(f"Question {number}"))
        assert enriched.body != body
        assert enriched.exchange is not None
        chat.enricher.taken(enriched.exchange, is_bare=True)
    asked = len(chat.memory.turns)
    assert (await chat.enricher.enriched(body := chat.body("More"))).body == body
    assert len(chat.memory.turns) == asked
    other = json.dumps({"model": "another", "messages": chat.history}).encode()
    assert (await chat.enricher.enriched(other)).body != other


async def test_an_answer_that_the_api_does_not_keep_is_not_noted_by_its_id() -> None:
    chat = Chat()
    history: list[Any] = []
    for number in range(5):
        history.append({"role": "user", "content": f"Question {number}"})
        body = json.dumps({"input": history, "store": False}).encode()
        enriched = await chat.enricher.enriched(body, None, RESPONSES)
        assert enriched.exchange is not None
        chat.enricher.answered(enriched.exchange, Answer([answer(f"A{number}")], 1, None, f"resp_{number}"))
        await asyncio.sleep(0)
        history.append(answer(f"A{number}"))
    conversation = enriched.exchange.turn.conversation
    assert not conversation.ends
    assert not [key for key in conversation.keys if key.startswith("response/")]
    assert not conversation.unsent


async def test_a_conversation_whose_answers_cannot_be_read_is_recorded_all_the_same() -> None:
    chat = Chat()
    for number in range(3):
        await chat.enricher.enriched(chat.body(f"Question {number}"))
        await asyncio.sleep(0)
        chat.history.append({"role": "assistant", "content": [{"type": "strange", "said": f"Answer {number}"}]})
    told = [message.content for _, message in chat.memory.recorded]
    assert [text for text in told if isinstance(text, str)] == ["Question 0", "Question 1", "Question 2"]
    assert len(told) == 5  # the newest answer comes back with the next request
    assert len({owner for owner, _ in chat.memory.recorded}) == 1


# ── large requests ──


def aside(monkeypatch: pytest.MonkeyPatch, name: str, noted: list[bool]) -> None:
    """Notes whether it ran where the streams do."""
    ask = getattr(enricher, name)

    def noting(*given: Any) -> Any:
        noted.append(threading.current_thread() is threading.main_thread())
        return ask(*given)

    monkeypatch.setattr(enricher, name, noting)


async def test_a_large_request_is_read_counted_and_written_beside_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[bool] = []
    for name in ("size_tokens", "written"):
        aside(monkeypatch, name, noted)
    is_streaming = threading.Event()

    def read(body: bytes) -> Request | None:
        noted.append(not is_streaming.wait(120))
        return read_request(body)

    chat = Chat()
    asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, is_streaming.set)
    enriched = await chat.enricher.enriched(chat.body("x" * LARGE_BYTES), None, CHAT._replace(read_request=read))
    assert json.loads(enriched.body)["messages"][1]["content"].endswith("RECALL")
    assert noted == [False, False, False]


async def test_large_requests_of_one_conversation_stay_in_their_order() -> None:
    chat = Chat()
    loop = asyncio.get_running_loop()
    go_on = threading.Event()
    bodies = [chat.body(f"{number} " + "x" * LARGE_BYTES) for number in range(2)]

    def read(body: bytes) -> Request | None:
        if body is bodies[0]:
            go_on.wait(120)
        return read_request(body)

    begun: list[int] = []
    begin = chat.enricher._conversations.begin

    def beginning(messages: Any, *given: Any, **named: Any) -> Any:
        begun.append(len(messages))
        return begin(messages, *given, **named)

    setattr(chat.enricher._conversations, "begin", beginning)  # noqa: B010 - a method of its own for this one
    dialect = CHAT._replace(read_request=read)
    loop.call_later(0.2, go_on.set)  # time enough to overtake
    await asyncio.gather(*(chat.enricher.enriched(body, "named", dialect) for body in bodies))
    await asyncio.sleep(0)
    assert begun == [1, 2]
    assert [str(message.content)[:2] for _, message in chat.memory.recorded] == ["0 ", "1 "]


async def test_a_large_request_that_cannot_be_read_passes() -> None:
    def broken(body: bytes) -> Request | None:
        raise ValueError("nonsense")

    body = b"x" * LARGE_BYTES
    chat = Chat()
    assert await chat.enricher.enriched(body) == (body, None)
    assert await chat.enricher.enriched(body, None, CHAT._replace(read_request=broken)) == (body, None)
