"""Who waits for a message leaves when told to, also where it comes at that moment."""

from __future__ import annotations

import asyncio

import pytest

from offbook.api.followers import Followers
from offbook.model.types import Scope

CHAT = Scope(agent_id="main", session_id="chat")


async def nothing_came() -> bool:
    return False


async def test_who_is_cancelled_as_the_message_comes_is_cancelled() -> None:
    followers = Followers()
    waiting = asyncio.create_task(followers.wait(CHAT, 60, nothing_came))
    await asyncio.sleep(0)
    followers.wake(CHAT)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_it_ends_with_the_message_or_with_the_time() -> None:
    followers = Followers()
    await followers.wait(CHAT, 0.01, nothing_came)
    waiting = asyncio.create_task(followers.wait(CHAT, 60, nothing_came))
    await asyncio.sleep(0)
    followers.wake(CHAT)
    await waiting
    assert not followers._waiting
