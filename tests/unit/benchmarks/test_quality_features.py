from __future__ import annotations

import gzip
import json
from pathlib import Path

from benchmarks.quality.data import MORE
from benchmarks.quality.features import recorded

from offbook.search.evidence import FEATURES
from tests.unit.small_memory import caught_up, small_memory, user


async def test_what_ranking_is_given_is_kept(tmp_path: Path) -> None:
    """By the product's own function: what fits its weights must follow it."""
    async with small_memory(tmp_path) as memory:
        scope = memory.scope("chat")
        await memory.on_message(scope, [user("The harbour master is called Ada."), user("Lunch is at noon.")])
        await caught_up(memory)
        with recorded() as recorder:
            found = await memory.recall(scope, "Who is the harbour master?")
    assert found.entries
    assert recorder.last is not None
    assert recorder.last["features"].shape == (2, len(FEATURES))
    assert recorder.last["relevant"].tolist() == [True, False]


def test_our_own_conversations_are_whole() -> None:
    conversations = json.loads(gzip.decompress(MORE["own"].read_bytes()))
    questions = [one for conversation in conversations for one in conversation["questions"]]
    assert (len(conversations), len(questions)) == (42, 1_470)
    assert sum(conversation["kind"] == "agent-work" for conversation in conversations) == 31
    assert sum(conversation["language"] != "en" for conversation in conversations) == 20
    for conversation in conversations:
        turns = {turn["id"] for session in conversation["sessions"] for turn in session["turns"]}
        assert all(one["evidence"] and turns.issuperset(one["evidence"]) for one in conversation["questions"])
