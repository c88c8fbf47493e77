"""Those who wait for the next message of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from offbook.model.types import Scope


class Followers:
    def __init__(self) -> None:
        self.is_stopping = False
        self._waiting: dict[Scope, list[asyncio.Future[None]]] = {}

    def wake(self, scope: Scope) -> None:
        _settle(self._waiting.pop(scope, ()))

    def stop(self) -> None:
        """Answer everybody with what there is: the provider is about to stop."""
        self.is_stopping = True
        for followers in list(self._waiting.values()):
            _settle(followers)

    async def wait(self, scope: Scope, seconds: float, has_come: Callable[[], Awaitable[bool]]) -> None:
        """Until there is a message, or the time is over."""
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(scope, []).append(follower)
        try:
            # One may have arrived between the first look and this registration.
            if not await has_come():
                async with asyncio.timeout(seconds):
                    await follower
        except TimeoutError:
            return
        finally:
            waiting = self._waiting.get(scope, [])
            if follower in waiting:
                waiting.remove(follower)
            if not waiting:
                self._waiting.pop(scope, None)


def _settle(followers: Iterable[asyncio.Future[None]]) -> None:
    for follower in followers:
        if not follower.done():
            follower.set_result(None)
