"""Two agents on one host and one provider: neither ever reads the other's, until both open their memory; then every hit
says whose it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.rpc import Rpc
from tests.host.scripted_model import (
    Reply,
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    last_user_text,
    tool_results,
    whole_text,
)

SECRETS = {"alice": "4711-KESTREL", "bob": "8080-OSPREY"}
VAULTS = {"alice": "red", "bob": "blue"}
OTHER = {"alice": "bob", "bob": "alice"}


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    config = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="recall", plugin_config=config, agents=("alice", "bob"))


def question(about: str) -> str:
    return f"What is the code of the {VAULTS[about]} vault?"


def calling(*calls: ToolCall) -> Callable[[Request], Reply]:
    return lambda request: Text("Noted.") if tool_results(request) else ToolCalls(calls)


def asked(gateway: Gateway, model: ScriptedModel, agent: str, session: str, text: str) -> list[Request]:
    """The requests that this agent's turn made, one after the other."""
    since = len(model.requests)
    gateway.turn(session, text, agent=agent)
    return model.requests[since:]


def holds(requests: list[Request], secret: str) -> bool:
    return any(secret in whole_text(request) for request in requests)


def assert_labelled(text: str, secret: str, agent: str) -> None:
    lines = [line for line in text.splitlines() if secret in line]
    assert lines, text
    assert all(f"Agent “{agent}” " in line for line in lines), text


@pytest.fixture(scope="module")
def told(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> None:
    """Each is told a secret, and can remember it."""
    model.reply = lambda request: Text("Noted.")
    for agent, secret in SECRETS.items():
        gateway.turn("first", f"The code of the {VAULTS[agent]} vault is {secret}.", agent=agent)

    def remembered() -> bool:
        return all(
            secret in str(provider.ask("recall", agentId=agent, sessionId=f"agent:{agent}:look", query=question(agent)))
            for agent, secret in SECRETS.items()
        )

    gateway.wait_until(remembered, "recording what each agent was told")


# Bob was spoken to last: for another agent the host opens another database, which takes two seconds and more.
@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("level", ["recall", "hot-swap"])
@pytest.mark.parametrize("agent", ["bob", "alice"])
def test_each_remembers_its_own_and_nothing_of_the_other(
    gateway: Gateway, model: ScriptedModel, level: str, agent: str
) -> None:
    gateway.set_level(level)
    model.reply = lambda request: Text("Noted.")
    mine = asked(gateway, model, agent, f"own-{level}", question(agent))
    assert holds(mine, SECRETS[agent]), last_user_text(mine[-1])
    theirs = asked(gateway, model, agent, f"other-{level}", question(OTHER[agent]))
    assert not holds([*mine, *theirs], SECRETS[OTHER[agent]])


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("agent", ["alice", "bob"])
def test_no_tool_reaches_the_other(gateway: Gateway, model: ScriptedModel, agent: str) -> None:
    gateway.set_level("recall")
    other = OTHER[agent]
    model.reply = calling(
        ToolCall("memory_recall", {"query": question(agent)}),
        ToolCall("memory_recall", {"query": question(other)}),
        ToolCall("memory_expand", {"span": f"agent:{other}:first#1-5"}),
        ToolCall("swap_promote", {"sessionKey": f"agent:{other}:first"}),
    )
    requests = asked(gateway, model, agent, "tools", "Look it up.")
    results = tool_results(requests[-1])
    assert len(results) == 4
    assert SECRETS[agent] in results[0]
    assert not holds(requests, SECRETS[other]), results


@pytest.mark.usefixtures("told")
def test_opened_to_each_other_a_hit_says_whose_it_is(gateway: Gateway, model: ScriptedModel, rpc: Rpc) -> None:
    gateway.set_level("recall")
    secret = SECRETS["alice"]
    model.reply = lambda request: Text("Noted.")
    try:
        for agent in ("bob", "alice"):
            rpc.say(f"agent:{agent}:first", "/swap-cross on")
        injected = last_user_text(asked(gateway, model, "bob", "opened", question("alice"))[-1])
        assert_labelled(injected, secret, "alice")
        model.reply = calling(ToolCall("memory_recall", {"query": question("alice")}))
        result = tool_results(asked(gateway, model, "bob", "opened", "Look it up.")[-1])[0]
        assert_labelled(result, secret, "alice")
    finally:
        for agent in ("bob", "alice"):
            rpc.say(f"agent:{agent}:first", "/swap-cross off")
    # Alice, who was not shown it meanwhile: it is closed to her again.
    model.reply = lambda request: Text("Noted.")
    assert not holds(asked(gateway, model, "alice", "closed", question("bob")), SECRETS["bob"])


def test_no_request_was_one_to_refuse(model: ScriptedModel) -> None:
    assert model.turns()
    assert model.faults() == []
    assert model.repairs() == []
