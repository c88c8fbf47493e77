from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from offbook.client.blocking import Client
from offbook.contrib.coding.hooks import (
    HANDOVER,
    HANDOVER_CHARS,
    LONGEST_CONTEXT_CHARS,
    PROMPT_CHARS,
    at_start,
    for_prompt,
)


class Provider:
    def __init__(self, context: str | None = None, memory: str = "<m>", recall: str = "<r>") -> None:
        self.asked: list[Any] = []
        self._context, self._turn = context, SimpleNamespace(memory=memory, recall=recall)

    def session_start(self, key: str, max_chars: int) -> Any:
        self.asked.append((key, max_chars))
        return None if self._context is None else SimpleNamespace(text=self._context[:max_chars])

    def prepare_turn(self, key: str, prompt: str, *, deadline_ms: int) -> Any:
        self.asked.append((key, prompt))
        return self._turn


@pytest.mark.parametrize(
    ("source", "context", "memory", "expected"),
    [
        ("startup", None, "<m>", "<m>"),
        ("startup", None, "", ""),
        ("compact", "user: Hi", "<m>", f"<m>\n\n{HANDOVER}\nuser: Hi"),
        ("compact", "user: Hi", "", f"{HANDOVER}\nuser: Hi"),
        ("resume", "user: Hi", "<m>", "<m>"),
        ("compact", "x" * LONGEST_CONTEXT_CHARS, "<m>", f"<m>\n\n{HANDOVER}\n{'x' * HANDOVER_CHARS}"),
    ],
)
def test_what_is_said_at_the_start(source: str, context: str | None, memory: str, expected: str) -> None:
    assert at_start(cast(Client, Provider(context, memory)), "k", source, 1_000) == expected


@pytest.mark.parametrize("memory_chars", [0, 100, 6_000, 8_800, 8_950, 9_500])
def test_only_what_will_be_shown_is_asked_for(memory_chars: int) -> None:
    provider = Provider("x" * 100_000, "m" * memory_chars)
    text = at_start(cast(Client, provider), "k", "compact", 1_000)
    assert len(text) <= LONGEST_CONTEXT_CHARS
    starts = [asked for asked in provider.asked if isinstance(asked[1], int)]
    assert [text.count("x") - HANDOVER.count("x")] * bool(starts) == [max_chars for _, max_chars in starts]
    assert bool(starts) == (memory_chars < 8_900)


def test_who_resumes_is_handed_nothing() -> None:
    provider = Provider("user: Hi")
    at_start(cast(Client, provider), "k", "resume", 1_000)
    assert provider.asked == [("k", "")]


def test_a_pasted_file_is_not_searched_for_whole() -> None:
    provider = Provider()
    assert for_prompt(cast(Client, provider), "k", "你" * 5_000_000, 1_000) == "<r>"
    assert provider.asked == [("k", "你" * PROMPT_CHARS)]
