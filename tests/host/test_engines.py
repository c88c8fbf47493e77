"""The same long conversation with the host's own compaction, with its own memory beside it, and with the hot swap: what it
costs to make room. A campaign: PROVE_ENGINES is how many seconds the model takes, as in `make prove`.

What a summary keeps depends on the model that writes it, and ours is scripted: so this tells of time and tokens only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import median

import pytest

from tests.host.checks import long_text, session_status
from tests.host.conftest import PLUGIN_DIR
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import ScriptedModel, Text, system_text

MODEL_SECONDS = float(os.environ.get("PROVE_ENGINES", "0"))
TURNS, LINES = 40, 32
HOSTS_MEMORY = {"plugins": {"slots": {"memory": None}, "allow": ["offbook", "memory-core"]}}

pytestmark = pytest.mark.skipif(not MODEL_SECONDS, reason="a campaign: PROVE_ENGINES, as in `make prove`")


@dataclass
class Cost:
    seconds: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    """To the model, in each turn."""
    made_room: list[int] = field(default_factory=list)
    """The turns in which it did."""
    tokens_for_room: int = 0
    """Sent to the model for anything but answers."""
    refused: int = 0


costs: dict[str, Cost] = {}


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    yield
    print(
        "\n| | rooms made | turn with it, median | slowest | turns beside it | model calls for it | tokens | refused |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, cost in costs.items():
        room = [cost.seconds[turn] for turn in cost.made_room]
        rest = median(one for turn, one in enumerate(cost.seconds) if turn not in cost.made_room)
        extra = sum(cost.calls) - len(cost.calls)
        print(
            f"| {name} | {len(room)} | {median(room):.1f} s | {max(room):.1f} s | {rest:.1f} s | {extra} "
            f"| {cost.tokens_for_room:,} | {cost.refused} |"
        )


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    return Setup(plugin_dir=PLUGIN_DIR, plugin_config={"home": str(provider.home)})


@pytest.mark.parametrize("name", ["host's own compaction", "and memory-core", "hot swap"])
def test_making_room(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider, setup: Setup, name: str
) -> None:
    is_ours = name == "hot swap"
    gateway.use(model, replace(setup, extra=HOSTS_MEMORY if name == "and memory-core" else {}))
    gateway.set_level("hot-swap" if is_ours else "off")
    cost = costs[name] = Cost()
    session = name.replace(" ", "-").replace("'", "")
    model.reply = lambda request: Text(f"Noted, request {len(model.requests)}.")
    model.delay_seconds, model.window_tokens = MODEL_SECONDS, setup.context_window_tokens
    generation = 0
    for turn in range(TURNS):
        since = len(model.requests)
        cost.seconds.append(gateway.turn(session, long_text(turn, LINES), timeout=300).seconds)
        sent = model.requests[since:]
        cost.calls.append(len(sent))
        cost.refused += len(model.refused(since))
        cost.tokens_for_room += sum(request.prompt_tokens for request in sent[:-1])
        newest = session_status(provider, f"agent:main:{session}")["generation"] if is_ours else generation
        if newest > generation or len(sent) > 1:
            cost.made_room.append(turn)
        generation = newest
    assert cost.made_room, "too little was said"
    offered = system_text(model.turns()[-1]) + " ".join(model.turns()[-1].tool_names)
    assert ("memory_search" in offered) is (name == "and memory-core")
    if is_ours:
        assert sum(cost.calls) == TURNS  # a model call a turn, none of them for room
