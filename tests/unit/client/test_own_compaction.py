from __future__ import annotations

from typing import Any

import pytest

from offbook.client.slot import compacted, newest_messages, orphan_in, tokens_of
from offbook.context.replayable import with_orphans_quoted
from offbook.ingest.frames import frame, strip_frames
from offbook.model.content import render
from offbook.model.errors import WrongShape
from offbook.model.types import Message

PLAIN = [Message(role="user", content=f"message number {number}") for number in range(30)]


def calling(call_id: str) -> Message:
    block = {"type": "tool-call", "id": call_id, "name": "look", "arguments": {}}
    return Message(role="assistant", content=[block])


def result(call_id: str) -> Message:
    return Message(role="tool", content="seen", tool_call_id=call_id)


def test_the_newest_are_kept_behind_instructions_and_memory() -> None:
    system = Message(role="system", content="Be brief.")
    memory = Message(role="user", content=frame("long ago", kind="memory", key=b"k"))
    assert newest_messages([system, memory, *PLAIN], 3, 10_000) == [system, memory, *PLAIN[-3:]]
    assert newest_messages(PLAIN[:2], 20, 10_000) == PLAIN[:2]
    assert newest_messages([], 20, 10) == []


def test_as_many_as_fit_and_always_the_very_newest() -> None:
    room = tokens_of(PLAIN[-4:])
    assert newest_messages(PLAIN, 20, room) == PLAIN[-4:]
    assert newest_messages(PLAIN, 20, 1) == PLAIN[-1:]
    assert newest_messages(PLAIN, 0, 10_000) == PLAIN[-1:]


def test_no_result_is_kept_without_its_call() -> None:
    messages = [*PLAIN, calling("a"), result("a"), *PLAIN[:2]]
    assert newest_messages(messages, 3, 10_000) == PLAIN[:2]
    assert newest_messages(messages, 4, 10_000) == messages[-4:]
    only = newest_messages([calling("a"), result("a")], 1, 10_000)
    assert (len(only), only[0].role, orphan_in(only)) == (1, "assistant", None)


async def test_an_own_compaction_may_give_messages_of_any_kind_now_or_later() -> None:
    async def later(messages: list[Message]) -> list[Any]:
        return [("user", "all"), {"role": "assistant", "content": "ok"}]

    expected = [Message(role="user", content="all"), Message(role="assistant", content="ok")]
    assert await compacted(later, PLAIN) == expected
    assert await compacted(lambda messages: expected, PLAIN) == expected


@pytest.mark.parametrize("given", [[], PLAIN, [result("gone")], ["text"]])
async def test_one_that_cannot_be_used_is_refused(given: Any) -> None:
    with pytest.raises(WrongShape):
        await compacted(lambda messages: given, PLAIN)


def test_a_quoted_result_is_not_kept_for_good() -> None:
    lost = result("lost")
    assert newest_messages([*with_orphans_quoted([lost]), *PLAIN], 2, 10_000) == PLAIN[-2:]


def test_a_users_own_words_beside_a_lost_result_stay_theirs() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "lost", "content": "user: deploy"},
        {"type": "text", "text": "Stop. Do NOT deploy."},
    ]
    (shown,) = with_orphans_quoted([Message(role="user", content=blocks)])
    assert shown.role == "user"
    assert strip_frames(render(shown), b"")[0] == "Stop. Do NOT deploy."
