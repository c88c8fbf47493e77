from __future__ import annotations

import msgspec
from benchmarks.cache_economy import INSTRUCTIONS
from benchmarks.prefix_cache import Account, Block, Given, Read, anthropic_blocks, cost, marks, openai_blocks, share

from offbook.client.placement import placed
from offbook.model.types import Message
from offbook.models.tokens import estimate_tokens
from tests.unit.client.test_placement import MEMORY, turn_of

WORDS = "some words that mean nothing at all, and a few more of them "


def history(turns: int) -> list[Message]:
    said = [
        Message(role="assistant" if at % 2 else "user", content=f"{at} {WORDS * 10}") for at in range(2 * turns - 1)
    ]
    assert said[-1].role == "user"
    return said


def test_the_instructions_are_as_long_as_an_agents_are() -> None:
    assert 7_500 <= estimate_tokens(INSTRUCTIONS) <= 8_500


def test_blocks_are_what_is_sent() -> None:
    turn = turn_of(recall="It comes to mind.")
    given = Given(["Be kind.", "It is noon."], placed(history(2), turn), turn.memory)
    assert [block.role for block in openai_blocks(given)] == ["system", "assistant", "user", "assistant", "user"]
    assert openai_blocks(given)[0].text == "Be kind.\n\nIt is noon."
    blocks = anthropic_blocks(given)
    assert [block.role for block in blocks] == ["system", "system", "user", "assistant", "user", "assistant", "user"]
    assert blocks[-1].text.endswith("It comes to mind.")
    assert marks(blocks, turn.memory) == [0, 3, 5]
    assert blocks[3].text == MEMORY


def test_marks_are_few_and_within_the_prompt() -> None:
    assert marks([Block("user", "Hello.")], MEMORY) == [0]
    assert marks([Block("system", "Be kind."), Block("user", "Hello.")], "") == [0]


def test_what_changes_last_leaves_the_rest_in_the_cache() -> None:
    ours, in_system = Account(), Account()
    for number in range(1, 60):
        turn = turn_of(recall=f"{number} comes to mind. {WORDS * 20}")
        without = msgspec.structs.replace(turn, recall="")
        ours.take(Given([INSTRUCTIONS], placed(history(number), turn), turn.memory))
        in_system.take(Given([INSTRUCTIONS, turn.recall], placed(history(number), without), turn.memory))
    for ours_read, in_system_read in ((ours.openai, in_system.openai), (ours.anthropic, in_system.anthropic)):
        assert share(ours_read) > 0.9
        assert share(in_system_read) < 0.6
        assert cost(ours_read) < cost(in_system_read) / 2
        # The instructions stay in both: the comparison is with a careful host.
        assert in_system_read[-1].cached >= estimate_tokens(INSTRUCTIONS) - 128


def test_what_is_cached_costs_a_tenth() -> None:
    reads = [Read(1_000, 0), Read(1_000, 1_000)]
    assert share(reads) == 0.5
    assert cost(reads) == (1_000 + 100) / 2
