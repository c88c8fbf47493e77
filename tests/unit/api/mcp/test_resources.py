"""An address leads to one thing, whatever its id is made of; what is not there is said to be not there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.api.mcp import resources
from offbook.model.errors import NotFound, ProviderUnavailable
from tests.unit.api.mcp.provider import Provider


def context(text: str, last_seq: int = 1) -> dict[str, Any]:
    return {"sessionId": "s", "text": text, "covers": {"firstSeq": 1, "lastSeq": last_seq}}


def summary(number: int) -> dict[str, Any]:
    moment = "2026-10-03T14:02:33Z"
    return {"id": f"L1-{number:04d}", "text": f"sum {number}", "sourceMessages": 3, "firstAt": moment, "lastAt": moment}


def summaries_of(numbers: list[int]) -> Any:
    """As the provider: newest first, before one that exists, nothing before one that does not."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        found = sorted(numbers, reverse=True)
        if before := body.get("before"):
            number = int(before.partition("-")[2])
            found = [each for each in found if each < number] if number in numbers else []
        page = found[: body["limit"]]
        more = {"next": f"L1-{page[-1]:04d}"} if len(found) > len(page) else {}
        return {"summaries": [summary(each) for each in page], **more}

    return answer


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
async def test_any_session_has_an_address_that_leads_back_to_it(session_id: str) -> None:
    provider = Provider(getCompressedContext=context("what was said"))
    address = resources.address("sessions", session_id)
    assert address.isascii()
    assert address.count("/") == 3
    assert "what was said" in await resources.text_at(address, provider.memory())
    assert provider.asked[0][1]["sessionId"] == session_id


async def test_the_newest_sessions_are_listed_and_without_a_provider_the_fixed_ones() -> None:
    provider = Provider(status={"sessions": [{"sessionId": "a b"}, {"sessionId": "猫"}]})
    listed = await resources.listed(provider.memory("ada"))
    assert [each.address for each in listed[3:]] == ["offbook://sessions/a%20b", "offbook://sessions/%E7%8C%AB"]
    assert provider.asked == [("status", {"agentId": "ada"})]
    away = Provider(status=ProviderUnavailable())
    assert await resources.listed(away.memory()) == list(resources.LISTED)


@pytest.mark.parametrize("numbers", [[1], [1, 2, 3], [1, 3, 9], list(range(1, 350))])
async def test_a_summary_is_found_by_its_id(numbers: list[int]) -> None:
    memory = Provider(summaries=summaries_of(numbers)).memory()
    for number in {numbers[0], numbers[len(numbers) // 2], numbers[-1]}:
        assert f"sum {number}" in await resources.text_at(f"offbook://summaries/L1-{number:04d}", memory)
    with pytest.raises(NotFound, match="L1-0999"):
        await resources.text_at("offbook://summaries/L1-0999", memory)


async def test_a_summary_in_the_middle_takes_one_question() -> None:
    provider = Provider(summaries=summaries_of(list(range(1, 350))))
    await resources.text_at("offbook://summaries/L1-0002", provider.memory())
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    "uri",
    ["offbook://", "offbook://x", "offbook://sessions/", "offbook://lessons/1", "file:///etc/passwd", "sessions", ""],
)
async def test_other_addresses_lead_nowhere(uri: str) -> None:
    provider = Provider()
    with pytest.raises(NotFound, match="offbook://sessions"):
        await resources.text_at(uri, provider.memory())
    assert provider.asked == []


@pytest.mark.parametrize("name", ["../x", "CON", "L1-0001\n", "L0-0001", "L1-1", "l1-0001"])
async def test_what_is_no_summary_id_is_not_asked_for(name: str) -> None:
    provider = Provider()
    with pytest.raises(NotFound):
        await resources.text_at(resources.address("summaries", name), provider.memory())
    assert provider.asked == []


async def test_a_session_without_messages_is_not_there() -> None:
    memory = Provider(getCompressedContext=context("", 0)).memory()
    with pytest.raises(NotFound, match="offbook://sessions lists them"):
        await resources.text_at("offbook://sessions/nope", memory)


async def test_lists() -> None:
    session = {"sessionId": "chat", "lastSeq": 2, "lastAt": "2026-10-03T14:02:33Z"}
    provider = Provider(status={"sessions": [session]}, lessons={"lessons": []}, summaries=summaries_of([1, 2]))
    memory = provider.memory("ada")
    assert '- "chat": 2 messages' in await resources.text_at("offbook://sessions", memory)
    assert "L1-0002" in await resources.text_at("offbook://summaries", memory)
    await resources.text_at("offbook://lessons", memory)
    assert provider.asked[-1][1] == {"agentId": "ada", "status": ["learnt", "accepted", "edited"], "limit": 100}
