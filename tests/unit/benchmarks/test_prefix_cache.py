from __future__ import annotations

import pytest
from benchmarks.prefix_cache import LEAST_TOKENS, LOOKED_BACK, STEP_TOKENS, AnthropicCache, Block, OpenAICache

WORDS = "some words that mean nothing at all, and a few more of them "
SYSTEM = Block("system", WORDS * 300)


def said(number: int, times: int = 1) -> Block:
    return Block("assistant" if number % 2 else "user", f"{number} {WORDS * times}")


def size(*blocks: Block) -> int:
    return sum(block.tokens for block in blocks)


# ── as OpenAI does it ──


def test_the_first_prompt_is_read_anew_and_the_same_again_is_not() -> None:
    cache = OpenAICache()
    blocks = [SYSTEM, said(1)]
    assert cache.read(blocks) == (size(*blocks), 0)
    again = cache.read(blocks)
    assert again.prompt - STEP_TOKENS < again.cached <= again.prompt
    assert again.cached % STEP_TOKENS == 0


def test_a_short_beginning_is_not_kept() -> None:
    cache = OpenAICache()
    few = [Block("system", WORDS * 20), said(1)]
    assert size(*few) < LEAST_TOKENS
    cache.read(few)
    assert cache.read(few).cached == 0
    long = [few[0], said(2, times=200)]
    cache.read(long)
    assert cache.read([few[0], said(3, times=200)]).cached == 0


def test_within_the_first_block_that_differs_characters_count() -> None:
    cache = OpenAICache()
    cache.read([Block("system", SYSTEM.text + " one thing"), said(1)])
    changed = cache.read([Block("system", SYSTEM.text + " another"), said(1)])
    assert size(SYSTEM) - 2 * STEP_TOKENS < changed.cached <= size(SYSTEM)
    cache.read([Block("user", SYSTEM.text)])
    assert cache.read([Block("assistant", SYSTEM.text)]).cached == 0


def test_what_follows_a_difference_is_read_anew() -> None:
    cache = OpenAICache()
    history = [said(number, times=50) for number in range(20)]
    cache.read([SYSTEM, *history])
    assert cache.read([SYSTEM, said(99), *history]).cached <= size(SYSTEM) + 10


def test_any_prompt_before_will_do() -> None:
    cache = OpenAICache()
    history = [said(number, times=50) for number in range(20)]
    cache.read([SYSTEM, *history])
    cache.read([said(7), *history])
    back = cache.read([SYSTEM, *history, said(30)])
    assert back.cached > size(SYSTEM, *history) - STEP_TOKENS


# ── as Anthropic does it ──


def test_what_is_marked_is_kept_as_a_whole() -> None:
    cache = AnthropicCache()
    history = [said(number) for number in range(4)]
    assert cache.read([SYSTEM, *history], [0, 4]).cached == 0
    following = [SYSTEM, *history, said(4), said(5)]
    assert cache.read(following, [0, 6]) == (size(*following), size(SYSTEM, *history))
    assert cache.read([SYSTEM, said(9)], [0, 1]).cached == size(SYSTEM)


def test_what_is_not_marked_is_not_kept() -> None:
    cache = AnthropicCache()
    cache.read([SYSTEM, said(1)], [])
    assert cache.read([SYSTEM, said(1)], [0, 1]).cached == 0


def test_part_of_a_block_is_not_kept() -> None:
    cache = AnthropicCache()
    cache.read([Block("system", SYSTEM.text + " one thing")], [0])
    assert cache.read([Block("system", SYSTEM.text + " another")], [0]).cached == 0


def test_it_is_not_looked_back_for_ever() -> None:
    for further, is_found in ((LOOKED_BACK - 1, True), (LOOKED_BACK, False)):
        cache = AnthropicCache()
        cache.read([SYSTEM], [0])
        blocks = [SYSTEM, *(said(number) for number in range(further))]
        assert cache.read(blocks, [further]).cached == (size(SYSTEM) if is_found else 0)


def test_a_short_beginning_is_not_kept_though_it_is_marked() -> None:
    cache = AnthropicCache()
    cache.read([said(1)], [0])
    assert cache.read([said(1)], [0]).cached == 0


@pytest.mark.parametrize("marks", [[0, 1, 2, 3, 4], [-1], [9]])
def test_marks_that_a_provider_would_refuse(marks: list[int]) -> None:
    with pytest.raises(ValueError, match="marked"):
        AnthropicCache().read([said(number) for number in range(6)], marks)
