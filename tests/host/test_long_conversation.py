"""Proof 4: a long conversation with tool calls through several swaps. No request that a strict provider would refuse, and
what was said at the very beginning still comes to mind. And in a small window each swap makes room.

With PROVE_TURNS, as in `make prove`, so many turns, and every window in every language."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from tests.host import planted_facts
from tests.host.checks import session_status
from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.planted_facts import Fact
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import (
    TOKENS_PER_CHINESE,
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    last_user_text,
    system_text,
    text_of,
    tokens_of,
    tool_results,
    user_texts,
    whole_text,
)
from tests.host.transcripts import transcript

IS_CAMPAIGN = "PROVE_TURNS" in os.environ
TURNS = int(os.environ.get("PROVE_TURNS", "32"))
SENTENCES = 12 if IS_CAMPAIGN else 65
"""Of a turn: a short conversation says as much as a long one."""
WINDOW_TOKENS = 32_000 if IS_CAMPAIGN else 28_000
"""A smaller one is filled, and swapped as often, with less to say; what is said costs the provider most, to embed it."""
SESSION = "long-conversation"
KEY = f"agent:main:{SESSION}"
FACTS = {
    3: (
        "The spare key of the boathouse hangs behind the barometer.",
        "Where does the spare key of the boathouse hang?",
    ),
    7: ("My sister Ottilie plays the viola in Tromsø.", "What does my sister Ottilie play, and where?"),
    12: (
        "The wifi password of the cabin is on the back of the owl picture.",
        "Where was the wifi password of the cabin?",
    ),
    18: ("We decided to sell the old tractor in spring, not in autumn.", "When did we decide to sell the old tractor?"),
}
KEYWORDS = {3: "barometer", 7: "viola", 12: "owl picture", 18: "spring"}
TOPICS = ("the harbour", "a broken pump", "apple trees", "the night train", "a letter from the council", "roof tiles")


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    home = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config=home, context_window_tokens=WINDOW_TOKENS)


def reply(request: Request) -> Text | ToolCalls:
    said = last_user_text(request)
    if "check" in said and not tool_results(request):
        return ToolCalls([ToolCall("ls", {"path": "."}), ToolCall("swap_status", {})])
    return Text(
        f"I have thought about that for a while. {len(said)} characters were said, and here is what I make of it. " * 3
    )


def sentence(turn: int, dice: random.Random) -> str:
    words = " ".join(
        f"We spoke of {dice.choice(TOPICS)} and of item {dice.randrange(10_000)}." for _ in range(SENTENCES)
    )
    return f"Turn {turn}. {'Please check the folder. ' if turn % 5 == 0 else ''}{words}"


def test_a_long_conversation(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> None:
    model.reply = reply
    dice = random.Random(7)
    for turn in range(TURNS):
        text = FACTS[turn][0] if turn in FACTS else sentence(turn, dice)
        gateway.turn(SESSION, text)
    assert model.faults() == []
    assert model.repairs() == []
    report = gateway.plugin_state / "report.json"  # written once a second
    gateway.wait_until(
        lambda: json.loads(report.read_text())["engine"]["committed"] >= TURNS, "every turn is committed"
    )
    engine = json.loads(report.read_text())["engine"]
    assert 3 <= engine["swaps"] <= TURNS / 5  # in steps that are worth the cache they cost
    assert engine["fallbacks"] == 0
    assert max(request.prompt_tokens for request in model.requests) < WINDOW_TOKENS

    # The facts are long out of what is shown word for word; asked for, they are there.
    for turn, (fact, question) in FACTS.items():
        # What a busy machine has not read yet, it has no time to be asked about.
        gateway.wait_until(lambda: provider.ask("ping")["backlog"] == 0, "all is read")
        since = len(model.requests)
        gateway.turn(SESSION, question)
        request = model.turns(since)[0]
        assert not any(fact in text for text in user_texts(request)[:-1])
        assert KEYWORDS[turn] in last_user_text(request), f"{question} brought nothing to mind"

    entries = transcript(gateway, KEY)
    gateway.wait_until(lambda: len(provider.log(KEY)) >= len(entries), "all is stored")
    assert [line["message"]["id"] for line in provider.log(KEY)] == [entry.entry_id for entry in entries]


# ── small windows: a swap that shrinks ──

HOST_MARGIN = 1.25
"""What the host adds to a prompt of four characters a token, when it reckons how much room is left for the answer."""


@dataclass(frozen=True)
class Talk:
    """What is said in a language, and how many of its characters the model counts as a token."""

    characters_per_token: float
    sentence: str
    topics: Sequence[str]
    answer: str
    facts: Sequence[Fact]
    host_tokens: float = HOST_MARGIN
    """What the host counts for each token of the model."""

    def planted(self, turns: int) -> dict[int, Fact]:
        """By the turn in which they are said, in the first half of the conversation; a few in a short one."""
        few = self.facts[: turns // 8]
        return {(2 + 3 * number) * turns // (6 * len(few)): fact for number, fact in enumerate(few)}

    def said(self, turn: int, window: int, dice: random.Random) -> str:
        """More in a larger window, so that it is filled, too."""
        said = [
            self.sentence.format(topic=dice.choice(self.topics), number=dice.randrange(10_000))
            for _ in range(max(SMALL_SENTENCES, window // TOKENS_A_SENTENCE))
        ]
        return f"{turn}. {' '.join(said)}"


SMALL_WINDOW_TOKENS = 24_000
TOKENS_A_SENTENCE = 2_000
SMALL_TURNS = TURNS if IS_CAMPAIGN else 16
SMALL_SENTENCES = 12 if IS_CAMPAIGN else 30
LEAST_ROOM_TOKENS = 1_000
ENGLISH = Talk(
    characters_per_token=4.0,
    sentence="We went over {topic} again, and of the {number} parts on the list the last ones came without a label.",
    topics=("the harbour wall", "the broken pump", "the apple trees", "the night train", "the council's letter"),
    answer="I have thought about this for a while, and I would begin with the parts that nobody has asked for yet.",
    facts=planted_facts.ENGLISH,
)
GERMAN = Talk(
    characters_per_token=3.3,  # a fifth more tokens than anybody expects who divides by four
    sentence="Wir haben noch einmal über {topic} gesprochen, und von den {number} Teilen auf der Liste fehlen die letzten.",
    topics=("die Hafenmauer", "die kaputte Pumpe", "die Apfelbäume", "den Nachtzug", "das Schreiben der Gemeinde"),
    answer="Darüber habe ich eine Weile nachgedacht, und ich würde mit den Teilen anfangen, nach denen niemand fragt.",
    facts=planted_facts.GERMAN,
)

CHINESE = Talk(
    characters_per_token=4.0,
    sentence="我们又讨论了一遍{topic}，清单上的{number}个零件里，最后几个到货时没有贴标签。",
    topics=("港口的围墙", "坏掉的水泵", "那些苹果树", "夜班火车", "镇政府的来信"),
    answer="这件事我想了一会儿，我会先从还没有人问起的那些零件开始。",
    facts=planted_facts.CHINESE,
    host_tokens=HOST_MARGIN / TOKENS_PER_CHINESE,
)
LANGUAGES = {"english": ENGLISH, "german": GERMAN, "chinese": CHINESE}
SMALL = [(SMALL_WINDOW_TOKENS, "english", 0), (SMALL_WINDOW_TOKENS, "german", 0)]
EVERY = [(window, name, 0) for window in (16_000, 24_000, 64_000, 200_000) for name in LANGUAGES]
WITH_TOOLS = [(window, "english", 3) for window in (16_000, 24_000, 64_000, 200_000)]
"""The last: how often the agent calls a tool in every other turn."""
PARTS_FILES, PARTS_SHARE = 7, 0.05
"""What it reads, and how much of the window each takes."""


def talking(talk: Talk, turn: int, calls: int) -> Callable[[Request], Text | ToolCalls]:
    """Calls so many tools, one after the other and never the same twice, and answers; also where a swap comes between."""
    paths = [f"parts-{(turn * calls + number) % PARTS_FILES}.txt" for number in range(calls)]
    return lambda _: (
        ToolCalls([ToolCall("read", {"path": paths.pop(), "limit": 10_000 + turn})])
        if paths
        else Text(" ".join([talk.answer] * 6))
    )


@pytest.mark.parametrize(("window", "name", "calls"), EVERY + WITH_TOOLS if IS_CAMPAIGN else SMALL)
def test_in_a_small_window_a_swap_makes_room(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider, setup: Setup, window: int, name: str, calls: int
) -> None:
    talk = LANGUAGES[name]
    gateway.use(model, replace(setup, context_window_tokens=window))
    model.characters_per_token, model.window_tokens = talk.characters_per_token, window
    for file in range(PARTS_FILES if calls else 0):
        parts = "".join(f"part {file}-{number}: {number * 37 % 1_000} in stock\n" for number in range(window))
        (gateway.folder / "workspace" / f"parts-{file}.txt").write_text(parts[: int(PARTS_SHARE * window * 4)])
    session, since, dice = f"{window}-{name}-{calls}", len(model.requests), random.Random(11)
    key, generation = f"agent:main:{session}", 0
    planted = talk.planted(SMALL_TURNS)
    after_swaps: list[int] = []
    for turn in range(SMALL_TURNS):
        model.reply = talking(talk, turn, calls if turn % 2 else 0)
        gateway.turn(session, planted[turn].said if turn in planted else talk.said(turn, window, dice))
        newest = session_status(provider, key)["generation"]
        after_swaps += [model.requests[-1].prompt_tokens] * (newest - generation)
        generation = newest
    requests = model.turns(since)
    overhead = overhead_tokens(requests[0])
    said = sum(tokens_of(text_of(one.message), talk.characters_per_token) for one in transcript(gateway, key))
    swaps, room = len(after_swaps), min(request.answer_room_tokens for request in requests)
    missing = unanswered(planted.values(), gateway, model, provider, session)
    print(
        f"{session}: {swaps} swaps in {SMALL_TURNS} turns of {said} tokens, {len(requests)} requests, "
        f"{len(model.refused(since))} refused, least room {room}, overhead {overhead}, after {after_swaps}, "
        f"{len(missing)} of {len(planted)} facts missing: {missing}"
    )
    assert model.refused(since) == []
    assert model.faults() == []
    assert room >= LEAST_ROOM_TOKENS
    # The host's own instructions leave little: half of what is left for the talk is said between two swaps.
    least = int(overhead + said > 0.85 * window)
    assert least or IS_CAMPAIGN, "too little was said for a swap"
    left = (0.85 * window - HOST_MARGIN * overhead) / talk.host_tokens
    growth = max(0.05 * window, min(0.45 * window, left / 2))
    # What comes to mind takes its part, and tools have the host ask earlier. Where instructions take half of the window, next
    # to nothing is left between two swaps.
    most = said / growth * (1.5 if calls else 1.2) + 1 if overhead < 0.4 * window else SMALL_TURNS * 2
    assert least <= swaps <= most
    assert max(after_swaps, default=0) <= max(0.50 * window, overhead + 0.25 * window)
    assert missing == []


def unanswered(
    facts: Iterable[Fact], gateway: Gateway, model: ScriptedModel, provider: OffbookProvider, session: str
) -> list[str]:
    """The questions whose answer is neither in the agent's context nor among the first that recall finds."""
    gateway.turn(session, "?")
    shown = whole_text(model.requests[-1])
    missing: list[str] = []
    for fact in facts:
        answer = provider.ask("recall", sessionId=f"agent:main:{session}", query=fact.question)
        found = [one["text"] for one in answer["entries"][:3]]
        if not any(fact.keyword in text for text in (shown, *found)):
            missing.append(fact.question)
    return missing


def overhead_tokens(request: Request) -> int:
    """What the host sends with every prompt: instructions and tools."""
    sent = json.dumps([system_text(request), request.body["tools"]], ensure_ascii=False)
    return tokens_of(sent, request.characters_per_token)
