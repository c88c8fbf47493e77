from __future__ import annotations

import pytest

from offbook.ingest.scope import resolve_agent, resolve_scope
from offbook.model.errors import WrongShape
from offbook.model.types import Scope


@pytest.mark.parametrize(
    ("session_id", "agent_id", "expected"),
    [
        ("chat", None, "main"),
        ("agent:ada:chat", None, "ada"),
        ("agent:ada:direct:7", None, "ada"),
        ("agent:ada:chat", "bob", "bob"),
        ("agent:ada", None, "main"),
        ("agent::chat", None, "main"),
        ("agent:阿达:chat", None, "阿达"),
        (None, None, "main"),
        (None, "bob", "bob"),
    ],
)
def test_the_owner(session_id: str | None, agent_id: str | None, expected: str) -> None:
    assert resolve_agent(session_id, agent_id, "main") == expected


@pytest.mark.parametrize("key", ["", "a\x00b", "x" * 513, "é" * 257, "\ud800"])
def test_keys_that_cannot_be_kept_are_refused(key: str) -> None:
    with pytest.raises(WrongShape, match="sessionId"):
        resolve_scope(key, None, "main")


def test_the_longest_key_is_taken() -> None:
    assert resolve_scope("é" * 256, None, "main") == Scope(agent_id="main", session_id="é" * 256)


@pytest.mark.parametrize("agent", ["", "a\x00", "x" * 129])
def test_agents_that_cannot_be_kept_are_refused(agent: str) -> None:
    with pytest.raises(WrongShape, match="agentId"):
        resolve_scope("chat", agent, "main")


@pytest.mark.parametrize("named", ["x" * 129, "é" * 65, "a\x00", "\ud800"])
def test_nor_are_they_taken_for_the_default_where_a_key_names_them(named: str) -> None:
    with pytest.raises(WrongShape, match="sessionId"):
        resolve_scope(f"agent:{named}:chat", None, "main")
    with pytest.raises(WrongShape, match="agentId in sessionId"):
        resolve_agent(f"agent:{named}:chat", None, "main")
    assert resolve_agent(f"agent:{named}:chat", "ada", "main") == "ada"


def test_the_longest_agent_in_a_key_is_taken() -> None:
    assert resolve_agent(f"agent:{'é' * 64}:chat", None, "main") == "é" * 64
