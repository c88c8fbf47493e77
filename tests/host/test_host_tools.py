"""What the host has of its own, and Offbook beside it: its model writes summaries (C9), its memory search is told what
Offbook knows (D11), and in its memory slot Offbook answers alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import (
    Reply,
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    text_of,
    tool_results,
)

HOST_WRITES = {
    "OFFBOOK_SUMMARIZER_ORDER": "host,extractive",
    "OFFBOOK_CHUNK_TOKENS": "300",
    "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "50",
    "OFFBOOK_SUMMARY_TARGET_TOKENS": "80",
}
# About 80 tokens, and 30 for the answer: three exchanges make a chunk, and what is said next makes it due.
SAID = (
    "the blue cutter lies at the pier, and its owner asks for another berth, because the waves of the ferry knock it "
    "against the stones every evening. He has asked twice before and was never answered, so this time he wants it in "
    "writing, with the name of the harbour master below it, before the winter storms begin."
)
ANSWER = (
    "I will write it down for the harbour master, with the blue cutter at the pier first and then the other boats in "
    "the order of their berths."
)
WRITTEN = "The owner of the blue cutter asked me for another berth, and I promised him a letter of the harbour master."
WITHOUT_WORK_SECONDS = 2.0
WRITTEN_SECONDS = 240


@pytest.fixture(scope="module")
def provider_environ() -> Mapping[str, str]:
    return HOST_WRITES


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    config = {"home": str(provider.home), "hostModel": True, **UNHURRIED}
    extra = {
        # The slot as it is when nobody says anything: the host's own plugin has it.
        "plugins": {"slots": {"memory": None}, "allow": ["offbook", "offbook-memory", "memory-core"]},
    }
    # Without Tool Search, which one test switches off, the host's tools alone take 35,000 tokens.
    return Setup(
        plugin_dir=PLUGIN_DIR, level="recall", plugin_config=config, context_window_tokens=100_000, extra=extra
    )


def of_the_host(model: ScriptedModel) -> list[Request]:
    return [request for request in model.requests if not request.is_turn]


def recorded(provider: OffbookProvider, session: str, *said: str) -> None:
    """Said long ago, as another host has told it: neither this host's transcripts nor its files have it."""
    messages = [
        {"id": f"{session}-{at}", "role": "assistant" if at % 2 else "user", "content": text}
        | {"ts": f"2026-01-05T10:00:{at:02}.000Z"}
        for at, text in enumerate(said)
    ]
    provider.ask("onMessage", agentId="main", sessionId=session, messages=messages)


def recalled(provider: OffbookProvider, query: str) -> list[dict[str, Any]]:
    answer = provider.ask("recall", agentId="main", sessionId="agent:main:nobody", query=query)
    entries: list[dict[str, Any]] = answer["entries"]
    return entries


def result_of(
    gateway: Gateway, model: ScriptedModel, session: str, text: str, calls: Sequence[ToolCall]
) -> tuple[str, Request]:
    """The last tool result of a turn with these calls, one after the other, and the request that brought it."""

    def reply(request: Request) -> Reply:
        done = len(tool_results(request))
        return ToolCalls([calls[done]]) if done < len(calls) else Text("I have looked.")

    model.reply = reply
    since = len(model.requests)
    assert gateway.turn(session, text).text == "I have looked."
    turns = model.turns(since)
    assert len(turns) == len(calls) + 1
    return tool_results(turns[-1])[-1], turns[-1]


# ── C9 ──


def test_the_hosts_model_writes_the_summary_and_no_turn_waits(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    turn_may_end, summary_may_end = threading.Event(), threading.Event()
    turn_may_end.set()

    def reply(request: Request) -> Reply:
        turn_may_end.wait(WRITTEN_SECONDS)
        return Text(ANSWER)

    def reply_to_host(request: Request) -> Reply:
        summary_may_end.wait(WRITTEN_SECONDS)
        return Text(WRITTEN)

    model.reply, model.reply_to_host = reply, reply_to_host
    try:
        for part in ("one", "two", "three"):
            gateway.turn("harbour", f"For the harbour report, part {part}: {SAID}")
        gateway.wait_until(lambda: len(provider.log("agent:main:harbour")) == 6, "all is stored")
        assert provider.status()["summaries"]["summarizers"] == ["host", "extractive"]

        # The next words make it due. As long as their turn runs, the model is left alone.
        turn_may_end.clear()
        with ThreadPoolExecutor(1) as pool:
            turn = pool.submit(gateway.turn, "harbour", f"For the harbour report, part four: {SAID}")
            try:
                gateway.wait_until(lambda: len(provider.log("agent:main:harbour")) == 7, "it is stored")
                gateway.wait_until(lambda: provider.status()["summaries"]["waiting"], "it is due")
                time.sleep(WITHOUT_WORK_SECONDS)
                assert provider.status()["summaries"]["waiting"]
                assert of_the_host(model) == []
            finally:
                turn_may_end.set()
            assert turn.result().text == ANSWER
        gateway.wait_until(lambda: bool(of_the_host(model)), "asking its model for a summary")
        (asked,) = of_the_host(model)

        # And as long as it writes, nobody waits for it.
        assert gateway.turn("other", "Good morning to you, how is the weather over there?").text == ANSWER
        assert asked.finished_at is None
        assert provider.ask("summaries", agentId="main")["summaries"] == []
    finally:
        turn_may_end.set()
        summary_may_end.set()

    # The job as Offbook gave it: the conversation in its roles, a wish at the end, no system prompt of ours or the host's.
    assert [message["role"] for message in asked.messages] == ["user", "assistant"] * 3 + ["user"]
    texts = [text_of(message) for message in asked.messages]
    assert texts[0].startswith("[Context Manager]")
    for text, part in zip(texts[:6:2], ("one", "two", "three"), strict=True):
        assert text.endswith(f"For the harbour report, part {part}: {SAID}")
    assert texts[1:6:2] == [f"[{seq}] {ANSWER}" for seq in (2, 4, 6)]
    assert texts[6].startswith("[Context Manager] That is the end of this part of the conversation")
    assert asked.body["max_completion_tokens"] == 420

    def summaries() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = provider.ask("summaries", agentId="main")["summaries"]
        return found

    gateway.wait_until(lambda: bool(summaries()), "done with the summary")
    (summary,) = summaries()
    assert (summary["summarizer"], summary["level"], summary["text"]) == ("host", 1, WRITTEN)
    assert summary["spans"] == [{"sessionId": "agent:main:harbour", "firstSeq": 1, "lastSeq": 6}]
    # Counted as the host's model has counted it.
    usage = summary["usage"]
    assert usage["inputTokens"] == asked.prompt_tokens
    assert 0 < usage["outputTokens"] < 100
    status = provider.status()
    assert status["costs"]["tokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert not status["summaries"].get("troubles")


# ── D11 ──

KEY = "The spare key of the boathouse lies under the third flower pot, the one with the crack."
WHERE_IS_THE_KEY = "where is the spare key of the boathouse"
UNRELATED = ("The trams run every ten minutes today.", "Good, then I will be there in time.") * 2


def searching(query: str, *, directly: bool) -> ToolCall:
    if directly:
        return ToolCall("memory_search", {"query": query})
    return ToolCall("tool_call", {"id": "memory_search", "args": {"query": query}})


@pytest.fixture(params=[False, True], ids=["through Tool Search", "directly"])
def directly(request: pytest.FixtureRequest, gateway: Gateway) -> bool:
    gateway.configure({"tools": {"toolSearch": False if request.param else None}})
    return bool(request.param)


def hosts_own(result: str, *, directly: bool) -> tuple[dict[str, Any], str]:
    """What the host's search has found, and what was added behind it."""
    found, end = json.JSONDecoder().raw_decode(result)
    return (found if directly else found["result"]["details"]), result[end:].strip()


def test_the_hosts_search_is_told_what_offbook_knows(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider, directly: bool
) -> None:
    recorded(provider, "elsewhere:boathouse", KEY, "I will remember where it is.", *UNRELATED)
    gateway.wait_until(lambda: KEY in str(recalled(provider, WHERE_IS_THE_KEY)), "it can be recalled")
    session = "searching-directly" if directly else "searching"  # the host's keys are in small letters
    call = searching(WHERE_IS_THE_KEY, directly=directly)
    result, request = result_of(gateway, model, session, "Please look it up.", [call])
    assert ("memory_search" in request.tool_names) is directly
    own, told = hosts_own(result, directly=directly)
    assert own["results"] == []  # the host alone knows nothing of it
    assert told.startswith("<offbook-recall")
    assert told.endswith("</offbook-recall>")
    assert KEY in told

    # In the log is what the host's search has found: what was told was known before.
    key = f"agent:main:{session}"
    gateway.wait_until(lambda: "I have looked." in str(provider.log(key)), "all is stored")
    (line,) = [line for line in provider.log(key) if line["message"]["role"] == "tool"]
    assert "flower pot" not in str(provider.log(key))
    assert hosts_own(text_of(line["message"]), directly=directly) == (own, "")


def test_with_nothing_known_the_hosts_search_stays_as_it_is(
    gateway: Gateway, model: ScriptedModel, directly: bool
) -> None:
    session = "in-vain-directly" if directly else "in-vain"
    call = searching("quantum chromodynamics on a lattice", directly=directly)
    # Twice: that it was asked for before is nothing that Offbook knows of it.
    for text in ("Please look it up.", "Please look once more."):
        result, _ = result_of(gateway, model, session, text, [call])
        own, told = hosts_own(result, directly=directly)
        assert own["results"] == []
        assert told == ""


# ── the memory slot ──

LANTERN = "The green lantern on the mole was repaired by Signe, who keeps its spare glass in drawer nine."
ABOUT_THE_LANTERN = "who repaired the green lantern on the mole"
SAID_LATER = "By the way, the timetable of the ferry hangs in the hall beside the mirror."


def test_in_the_memory_slot_offbook_answers(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> None:
    slot = {
        "load": {"paths": [str(PLUGIN_DIR), str(PLUGIN_DIR / "memory-slot")]},
        "slots": {"memory": "offbook-memory"},
        "entries": {"offbook-memory": {"enabled": True}},
    }
    gateway.configure({"plugins": slot, "tools": {"toolSearch": None}})
    recorded(provider, "elsewhere:mole", "What is new at the mole?", LANTERN, *UNRELATED)
    gateway.wait_until(lambda: LANTERN in str(recalled(provider, ABOUT_THE_LANTERN)), "recallable")

    search = ToolCall("memory_search", {"query": ABOUT_THE_LANTERN, "maxResults": 3})
    found, request = result_of(gateway, model, "slot", "Please look it up.", [search])
    assert {"memory_search", "memory_get"} <= set(request.tool_names)
    answer = json.loads(found)
    assert answer["provider"] == "offbook"
    (hit,) = [hit for hit in answer["results"] if LANTERN in hit["snippet"]]
    assert (hit["path"], hit["startLine"], hit["endLine"]) == ("elsewhere:mole", 2, 2)

    get = ToolCall("memory_get", {"path": hit["path"], "from": hit["startLine"], "lines": 2})
    read, _ = result_of(gateway, model, "slot", "And what was said around it?", [get])
    lines = json.loads(read)
    assert (lines["status"], lines["from"], lines["lines"]) == ("ok", 2, 2)
    first, second = lines["text"].splitlines()
    assert first.startswith("2 [2026-01-05T10:00:01")  # when it was said, not when Offbook was told
    assert f"assistant: “{LANTERN}”" in first
    assert f"user: “{UNRELATED[0]}”" in second

    # What the tools gave is in the log, marked, and was not said anew.
    model.reply = lambda request: Text("Good to know, thank you.")
    gateway.turn("slot", SAID_LATER)

    def in_slot(query: str) -> list[dict[str, Any]]:
        return [entry for entry in recalled(provider, query) if entry["sessionId"] == "agent:main:slot"]

    gateway.wait_until(
        lambda: any(SAID_LATER in entry["text"] for entry in in_slot("where does the timetable of the ferry hang")),
        "all of the session can be recalled",
    )
    given = [line for line in provider.log("agent:main:slot") if LANTERN in text_of(line["message"])]
    assert [line["message"]["name"] for line in given] == ["memory_search", "memory_get"]
    assert [line.get("noise") for line in given] == ["injected", "injected"]
    assert LANTERN in str(recalled(provider, ABOUT_THE_LANTERN))
    assert not any(LANTERN in entry["text"] for entry in in_slot(ABOUT_THE_LANTERN))


def test_no_request_was_one_to_refuse(model: ScriptedModel) -> None:
    assert model.turns()
    assert model.faults() == []
    assert model.repairs() == []
