"""The handover is what a turn is prepared with, as it is; a session that is named is read, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from offbook.api.mcp.prompts import BEGINNING, FIND_THE_REST, NOTHING_YET, handed_over
from offbook.ingest.frames import A_RECORD
from offbook.model.errors import NotFound, WrongShape
from tests.unit.api.mcp.provider import Provider

TURN = {"memory": "<m>known</m>", "recall": "<r>now</r>", "degraded": []}
LATE = {"memory": "", "recall": "", "entries": [], "degraded": ["session: not ready in 10 ms"]}
TOLD = "(Not everything could be searched: session: not ready in 10 ms.)"
ENTRY = {"id": "m1", "sessionId": "s", "text": "Ada is a cat.", "ts": "2026-10-03T14:02:33Z", "origin": "user"}


def kept(messages: int) -> dict[str, Any]:
    return {"counts": {"messages": messages, "sessions": 1}}


def one_after_another(*turns: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    coming = iter(turns)
    return lambda _body: next(coming)


async def test_without_a_session_nothing_is_changed() -> None:
    provider = Provider(prepareTurn=TURN)
    assert await handed_over("handover", {"about": "cats"}, provider.memory("ada")) == "<m>known</m>\n\n<r>now</r>"
    asked = {"agentId": "ada", "sessionId": BEGINNING, "prompt": "cats", "preview": True}
    assert provider.asked == [("prepareTurn", asked)]


async def test_a_named_session_is_gone_on_with() -> None:
    messages = [{"role": "user", "content": "so far"}, {"role": "assistant", "content": "<system>"}]
    text = "user: so far\n\nassistant: <system>"
    so_far = {"sessionId": "s", "covers": {"lastSeq": 2}, "text": text, "messages": messages}
    provider = Provider(prepareTurn=TURN, getCompressedContext=so_far)
    text = await handed_over("handover", {"sessionId": "s"}, provider.memory())
    quoted = f"{A_RECORD}\n\n> user: so far\n> \n> assistant: ‹system›"
    assert text == f"<m>known</m>\n\n{quoted}\n\n<r>now</r>"
    assert provider.asked[1] == ("getCompressedContext", {"sessionId": "s", "maxChars": 24_000})


async def test_nothing_is_known_yet() -> None:
    empty = {"sessionId": "s", "covers": {"lastSeq": 0}, "text": ""}
    provider = Provider(prepareTurn={"memory": "", "recall": ""}, getCompressedContext=empty)
    assert await handed_over("handover", {}, provider.memory()) == NOTHING_YET
    assert "Nothing is stored" in await handed_over("handover", {"sessionId": "s"}, provider.memory())


async def test_what_was_late_is_asked_for_once_more() -> None:
    provider = Provider(prepareTurn=one_after_another(LATE, TURN))
    assert await handed_over("handover", {"about": "cats"}, provider.memory()) == "<m>known</m>\n\n<r>now</r>"
    assert [verb for verb, _ in provider.asked] == ["prepareTurn", "prepareTurn"]
    assert provider.asked[0] == provider.asked[1]


async def test_of_two_that_were_late_the_one_with_more_in_it_is_told() -> None:
    partly = {"memory": "<m>known</m>", "recall": "", "degraded": ["recall: late", "continuity: late"]}
    for turns in ((LATE, partly), (partly, LATE)):
        text = await handed_over("handover", {}, Provider(prepareTurn=one_after_another(*turns)).memory())
        assert text.startswith("<m>known</m>\n\n(Not everything could be searched: recall: late.)")
        assert text.endswith(FIND_THE_REST)


async def test_late_is_not_taken_for_nothing() -> None:
    provider = Provider(prepareTurn=LATE, status=kept(12))
    text = await handed_over("handover", {}, provider.memory("ada"))
    assert text == (
        f"Nothing of earlier conversations is here. Offbook keeps 12 messages of them.\n\n{TOLD}\n\n{FIND_THE_REST}"
    )
    assert provider.asked[-1] == ("status", {"agentId": "ada"})


async def test_what_it_is_about_is_looked_for_where_the_turn_was_late() -> None:
    provider = Provider(prepareTurn=LATE, recall={"entries": [ENTRY]})
    text = await handed_over("handover", {"about": "cats"}, provider.memory("ada"))
    assert "“Ada is a cat.”" in text
    assert text.endswith(f"{TOLD}\n\n{FIND_THE_REST}")
    assert provider.asked[-1] == ("recall", {"agentId": "ada", "sessionId": BEGINNING, "query": "cats"})


@pytest.mark.parametrize(("turn", "about"), [(LATE, " \n"), ({**LATE, "recall": "r", "entries": [ENTRY]}, "cats")])
async def test_it_is_not_looked_for_without_a_question_nor_twice(turn: dict[str, Any], about: str) -> None:
    provider = Provider(prepareTurn=turn, status=kept(1))
    await handed_over("handover", {"about": about}, provider.memory())
    assert "recall" not in [verb for verb, _ in provider.asked]


async def test_nothing_that_opens_a_conversation_is_not_nothing_at_all() -> None:
    provider = Provider(prepareTurn={"memory": "", "recall": "", "degraded": []}, status=kept(1))
    text = await handed_over("handover", {}, provider.memory())
    assert text.startswith("Nothing of earlier conversations is here. Offbook keeps 1 message of them.")
    late = Provider(prepareTurn=LATE, status=kept(0))
    assert await handed_over("handover", {}, late.memory()) == NOTHING_YET


async def test_what_was_late_but_nothing_of_memory_is_not_told() -> None:
    provider = Provider(prepareTurn={**TURN, "degraded": ["audit: still being written"]})
    assert await handed_over("handover", {}, provider.memory()) == "<m>known</m>\n\n<r>now</r>"
    assert len(provider.asked) == 1


async def test_another_prompt_or_argument_is_refused() -> None:
    with pytest.raises(NotFound, match="handover"):
        await handed_over("other", {}, Provider().memory())
    with pytest.raises(WrongShape, match="`topic` is not an argument"):
        await handed_over("handover", {"topic": "x"}, Provider().memory())
