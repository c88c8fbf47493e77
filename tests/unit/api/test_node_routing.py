"""Which node answers, and whom it believes."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
import pytest

from offbook.api.messages import Request
from offbook.api.node_routing import CALLER, NodeRouter, check_node_url
from offbook.model.errors import AgentMoved, InvalidInput, SettingsError, Unauthorized
from offbook.model.settings import Settings
from offbook.model.settings.sections import Server, StoreSettings
from offbook.model.types import Caller


class Owned:
    """An agent that moves."""

    when_lost: Callable[[Collection[int]], None] | None = None
    when_taken: Callable[[], None] | None = None
    held: int | None = 1
    elsewhere: str | None = None

    def bucket(self, agent_id: str) -> int:
        return 0

    def epoch(self, agent_id: str) -> int | None:
        return self.held

    def url(self, agent_id: str) -> str | None:
        return self.elsewhere

    def let_go(self, buckets: Collection[int]) -> None: ...


def request(**headers: str) -> Request:
    fields = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return Request("POST", "/v1/log", fields, b"{}")


def test_only_a_node_of_the_same_database_says_who_asks() -> None:
    router, other = NodeRouter(Owned(), b"key"), NodeRouter(Owned(), b"another")
    told = msgspec.json.encode(Caller(name="bot", agents=frozenset({"main"}))).decode()
    assert router.caller(request(authorization="Bearer x")) is None
    passed = request(authorization=f"Bearer {router._token}", **{CALLER.decode(): told})
    assert router.caller(passed) == Caller(name="bot", agents=frozenset({"main"}))
    for foreign in ("", "Bearer ", f"Bearer {other._token}", "Bearer ü"):
        with pytest.raises(Unauthorized):
            router.caller(request(authorization=foreign, **{CALLER.decode(): told}))
    with pytest.raises(InvalidInput):
        router.caller(request(authorization=f"Bearer {router._token}", **{CALLER.decode(): "nobody"}))


def test_what_was_read_before_the_agent_moved_is_not_answered() -> None:
    owned = Owned()
    router = NodeRouter(owned, b"key")
    router.check("main", 1)
    for now in (None, 3):
        owned.held = now
        with pytest.raises(AgentMoved):
            router.check("main", 1)


async def test_nothing_is_passed_on_twice_or_to_nobody() -> None:
    owned = Owned()
    owned.held = None
    router, caller = NodeRouter(owned, b"key"), Caller(name="owner")
    with pytest.raises(AgentMoved, match="no node is known"):
        await router.passed_on("main", "log", b"{}", caller, request())
    owned.elsewhere = "http://127.0.0.1:1"
    with pytest.raises(AgentMoved, match="not reached"):
        await router.passed_on("main", "log", b"{}", caller, request())
    with pytest.raises(AgentMoved, match="no node is known"):
        await router.passed_on("main", "log", b"{}", caller, request(**{CALLER.decode(): "{}"}))
    with pytest.raises(AgentMoved, match=r"http://127\.0\.0\.1:1"):
        router.refuse_elsewhere("main")


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://one.example:8770", 8770), ("unix:///run/sock", 8770), ("https://one.example", 0), ("nowhere", 8770)],
)
def test_a_url_at_which_no_node_is_to_be_reached_is_refused(url: str, port: int) -> None:
    with pytest.raises(SettingsError, match=r"store\.nodeUrl"):
        check_node_url(Settings(store=StoreSettings(node_url=url), server=Server(port=port)))


def test_urls_that_do_are_not() -> None:
    for url in ("https://one.example:8770", "http://127.0.0.1:8770", None):
        check_node_url(Settings(store=StoreSettings(node_url=url), server=Server(port=8770)))
