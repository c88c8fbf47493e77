"""Proof 6: each tool, slash command, gateway method and command of the host's CLI, through the host. Every test tells what it
needs by itself; numbers are compared with what the provider says it has."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

import pytest

from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import TOKEN, Setup
from tests.host.providers import OffbookProvider
from tests.host.rpc import CALL_SECONDS, CallRefused, Rpc
from tests.host.scripted_model import (
    Reply,
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    tool_results,
    whole_text,
)

FACT = "My sister Ottilie keeps forty-one beehives behind the old mill in Tarn."
INVOICE = "The quarterly invoice of the harbour office for Ottilie is 7320 euros."
ANSWER = "Noted, thank you for telling me."
ASKED = "How many beehives does my sister keep?"
SIGNATURE = "\n— Offbook"
CHAT = "agent:main:chat"
COMMANDS = ("swap-status", "swap-dashboard", "swap-promote", "swap-cross", "offbook")
# A line that only `swap_status` and `/swap-status` write.
OF_STATUS = "came twice and are kept once"
DASHBOARD_COLUMNS = 64


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    config = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config=config, agents=("main", "bob"))


@pytest.fixture(scope="module", autouse=True)
def told(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> None:
    """What all tests ask for, told in a session of its own, and found by text and by meaning."""
    model.reply = lambda request: Text(ANSWER)
    gateway.turn("told", FACT)
    gateway.turn("told", INVOICE)
    caught_up(gateway, provider, "agent:main:told", 4)


@pytest.fixture(scope="module")
def summary(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> dict[str, Any]:
    """Of a session that is over: what is left of it is summarised, where it is enough for that."""
    text = " ".join(f"The parcel {line} weighs {line} kilograms and goes to pier {line}." for line in range(60))
    gateway.turn("long", text)
    caught_up(gateway, provider, "agent:main:long", 2)
    provider.ask("hooks/session-end", agentId="main", sessionId="agent:main:long", reason="idle")
    found: list[dict[str, Any]] = []

    def made() -> bool:
        found[:] = provider.ask("summaries", agentId="main")["summaries"]
        return bool(found)

    gateway.wait_until(made, "summarising the session that is over")
    return found[0]


def caught_up(gateway: Gateway, provider: OffbookProvider, key: str, messages: int) -> None:
    """All of it is stored, indexed and read, so that numbers stand still while they are compared."""

    def done() -> bool:
        is_stored = len(provider.log(key)) == messages and provider.status()["index"]["waiting"] == 0
        return is_stored and not provider.ask("ping")["backlog"]

    gateway.wait_until(done, f"storing {messages} messages of {key}")


def tool(gateway: Gateway, model: ScriptedModel, name: str, session: str = "tools", **given: Any) -> str:
    """The result of a tool as the model reads it, in the request that follows its call."""
    model.reply = lambda request: Text("I see.") if tool_results(request) else ToolCalls([ToolCall(name, given)])
    try:
        gateway.turn(session, "Have a look, please.")
    finally:
        model.reply = lambda request: Text(ANSWER)
    (result,) = tool_results(model.turns()[-1])
    return result


def command(rpc: Rpc, model: ScriptedModel, text: str, key: str = CHAT) -> str:
    """What a slash command answers; no model is asked for it."""
    since = len(model.requests)
    answer = rpc.say(key, text).text
    # The host may have something of its own to ask meanwhile.
    assert not [request for request in model.requests[since:] if text in whole_text(request)]
    assert answer.endswith(SIGNATURE)  # by which it is known for ours, and not remembered
    return answer.removesuffix(SIGNATURE)


def numbers(text: str, row: str) -> list[int]:
    """The numbers in a row of the status."""
    (line,) = [line for line in text.splitlines() if line.startswith(row)]
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", line)]


def assert_picture(text: str, status: dict[str, Any]) -> None:
    """Bars for each agent, no line too wide, the numbers those of the provider."""
    assert text.startswith("```\n")
    assert text.endswith("\n```")
    lines = text.splitlines()[1:-1]
    assert max(len(line) for line in lines) <= DASHBOARD_COLUMNS
    assert sum(line.startswith("  by meaning") for line in lines) == 2
    messages, tiers, pins = status["counts"]["messages"], status["tiers"], status["pinned"]
    (main,) = [at for at, line in enumerate(lines) if re.fullmatch(rf"main +{messages} messages", line)]
    (bob,) = [at for at, line in enumerate(lines) if re.fullmatch(r"bob +0 messages", line)]
    assert lines[main + 1].endswith(f"{tiers['hot']} / {tiers['warm']} / {tiers['cold']}")
    assert lines[main + 1].count("█") == 24
    assert lines[main + 3].startswith(f"  pins        {pins} ·")
    assert "█" not in "".join(lines[bob : bob + 3])


# ── tools ──


def test_the_status_tool_tells_the_providers_numbers(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    before = provider.status()
    key = "agent:main:status-tool"

    def reply(request: Request) -> Reply:
        if tool_results(request):
            return Text("I see.")
        gateway.wait_until(lambda: len(provider.log(key)) == 1, "storing what the user said")
        return ToolCalls([ToolCall("swap_status", {})])

    model.reply = reply
    try:
        gateway.turn("status-tool", "Have a look, please.")
    finally:
        model.reply = lambda request: Text(ANSWER)
    (shown,) = tool_results(model.turns()[-1])
    # What this very turn said so far is the only news: the user's message, and the call where it was fast.
    stored, sessions, twice = numbers(shown, "stores")
    assert stored - before["counts"]["messages"] in (1, 2)
    assert sessions == before["counts"]["sessions"] + 1
    assert twice == 0
    assert numbers(shown, "tiers")[0] >= before["tiers"]["hot"]
    assert numbers(shown, "pins") == [before["pinned"]]
    assert shown.startswith("Agent main · Offbook ")


def test_the_dashboard_tool_draws_every_agent(gateway: Gateway, model: ScriptedModel) -> None:
    shown = tool(gateway, model, "swap_dashboard")
    assert shown.startswith("```\nOffbook ")
    assert "\n2 agents · " in shown
    assert re.search(r"^main +\d+ messages$", shown, re.M)
    assert re.search(r"^bob +0 messages$", shown, re.M)
    assert "█" * 24 in shown


def test_the_promote_tool_pins_and_unpins(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> None:
    pinned = provider.status()["pinned"]
    assert tool(gateway, model, "swap_promote", keyword="harbour").startswith("Pinned 1 message with “harbour”")
    assert provider.status()["pinned"] == pinned + 1
    # Of a session: all four, the one that is pinned already not counted again.
    assert tool(gateway, model, "swap_promote", sessionKey="agent:main:told").startswith("Pinned 3 messages of session")
    assert provider.status()["pinned"] == pinned + 4
    undone = tool(gateway, model, "swap_promote", sessionKey="agent:main:told", unpin=True)
    assert undone.startswith("Unpinned 4 messages of session agent:main:told")
    assert provider.status()["pinned"] == pinned
    assert "either a keyword or a sessionKey" in tool(gateway, model, "swap_promote")


def test_the_cross_tool_opens_and_closes(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> None:
    for state, enabled in (("on", True), ("off", False)):
        word = f"Cross search is {state} for main"
        assert word in tool(gateway, model, "swap_cross", state=state)
        assert provider.ask("cross", agentId="main")["enabled"] is enabled
        assert word in tool(gateway, model, "swap_cross", state="status")


def test_what_was_told_elsewhere_is_recalled_and_looked_at_closer(gateway: Gateway, model: ScriptedModel) -> None:
    """In the agent's own voice; the id and the place that it is shown with lead to the words around it."""
    shown = tool(gateway, model, "memory_recall", query=ASKED)
    assert shown.startswith("You remember. Speak from it naturally: you were there.")
    (line,) = [line for line in shown.splitlines() if line.startswith("- They told you") and FACT in line]
    mark = re.search(r"\[(m\w+), (agent:main:told#\d+)", line)
    assert mark, line
    entry, place = mark.groups()
    around = tool(gateway, model, "memory_expand", entryId=entry)
    for words in (f"they: “{FACT}”", f"you: “{ANSWER}”", f"they: “{INVOICE}”"):
        assert words in around
    alone = tool(gateway, model, "memory_expand", span=place)
    assert FACT in alone
    assert INVOICE not in alone


def test_what_a_summary_stands_for_is_looked_at(
    gateway: Gateway, model: ScriptedModel, summary: dict[str, Any]
) -> None:
    shown = tool(gateway, model, "memory_expand", summaryId=summary["id"])
    assert shown.startswith(f"What was said behind {summary['id']} (agent:main:long#1-")
    assert "they: “The parcel 0 weighs 0 kilograms and goes to pier 0." in shown
    assert f"you: “{ANSWER}”" in shown


def test_a_tool_that_is_called_wrongly_says_what_to_do(gateway: Gateway, model: ScriptedModel) -> None:
    assert "must have required properties query" in tool(gateway, model, "memory_recall")
    assert "Give one of summaryId, entryId and span." in tool(gateway, model, "memory_expand")
    assert "there is no summary" in tool(gateway, model, "memory_expand", summaryId="L1-9999")
    assert "write it as memory_recall does" in tool(gateway, model, "memory_expand", span="somewhere")


# ── slash commands ──


def test_the_status_commands_tell_the_providers_numbers(
    rpc: Rpc, gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    key = "agent:main:status-chat"
    for number, words in enumerate(("/swap-status", "/offbook", "/offbook status")):
        caught_up(gateway, provider, key, 2 * number)
        before = provider.status()
        shown = command(rpc, model, words, key)
        stored, sessions, twice = numbers(shown, "stores")
        # The host may write the command down before it is answered.
        assert stored - before["counts"]["messages"] in (0, 1)
        assert sessions - before["counts"]["sessions"] in ((0, 1) if number == 0 else (0,))
        assert twice == 0
        assert numbers(shown, "tiers") == [before["tiers"][tier] for tier in ("hot", "warm", "cold")]
        assert numbers(shown, "chunks")[:2] == [before["index"]["entries"], before["index"]["embedded"]]
        assert numbers(shown, "retrievals") == [before["retrievals"]]
        assert ("Level: hot-swap." in shown) is words.startswith("/offbook")


def test_the_dashboard_command_is_a_picture(
    rpc: Rpc, gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    key = "agent:main:picture"
    command(rpc, model, "/swap-promote harbour", key)
    caught_up(gateway, provider, key, 2)
    shown = command(rpc, model, "/swap-dashboard", key)
    caught_up(gateway, provider, key, 4)
    status = provider.status()
    # Both of this exchange, or only the answer, came after the picture was drawn.
    drawn = int(re.search(r"^main +(\d+) messages$", shown, re.M).group(1))  # type: ignore[union-attr]
    assert status["counts"]["messages"] - drawn in (1, 2)
    status["counts"]["messages"] = drawn
    assert status["pinned"] >= 1
    assert_picture(shown, status)
    command(rpc, model, "/swap-promote unpin harbour", key)


def test_the_promote_command_pins_and_unpins(rpc: Rpc, model: ScriptedModel, provider: OffbookProvider) -> None:
    pinned = provider.status()["pinned"]
    assert command(rpc, model, "/swap-promote Ottilie keeps").startswith("Pinned 1 message with “Ottilie keeps”")
    assert provider.status()["pinned"] == pinned + 1
    assert command(rpc, model, "/swap-promote unpin Ottilie keeps").startswith("Unpinned 1 message")
    assert provider.status()["pinned"] == pinned
    assert command(rpc, model, "/swap-promote session:agent:main:told").startswith("Pinned 4 messages of session")
    assert command(rpc, model, "/swap-promote unpin session:agent:main:told").startswith("Unpinned 4 messages")
    assert provider.status()["pinned"] == pinned
    assert "Say what to pin" in command(rpc, model, "/swap-promote")


def test_the_cross_command_opens_and_closes(rpc: Rpc, model: ScriptedModel, provider: OffbookProvider) -> None:
    for state, enabled in (("on", True), ("off", False)):
        assert f"Cross search is {state} for main" in command(rpc, model, f"/swap-cross {state}")
        assert provider.ask("cross", agentId="main")["enabled"] is enabled
    assert "Cross search is off for main" in command(rpc, model, "/swap-cross")
    assert "Say on, off or status." in command(rpc, model, "/swap-cross perhaps")


def test_the_offbook_command_has_the_rest(rpc: Rpc, model: ScriptedModel, provider: OffbookProvider) -> None:
    recalled = command(rpc, model, "/offbook recall beehives")
    assert recalled.startswith("In the memory of main:")
    assert any(line.startswith("- user (main)") and FACT in line for line in recalled.splitlines())
    assert "“Ottilie”: 2 mentions" in command(rpc, model, "/offbook topics")
    state = command(rpc, model, "/offbook state", "agent:main:told")
    assert state.startswith("This session: 2 exchanges")
    level = command(rpc, model, "/offbook level")
    assert level.startswith("Level: hot-swap.")
    assert "openclaw config set plugins.entries.offbook.config.level" in level
    listed = command(rpc, model, "/offbook help")
    assert all(f"/{name}" in listed for name in COMMANDS)
    assert command(rpc, model, "/offbook nonsense").startswith("There is no /offbook “nonsense”.")


def test_the_doctor_command_tells_what_is_in_order_and_what_is_not(
    rpc: Rpc, gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    shown = command(rpc, model, "/offbook doctor")
    assert f"✓ provider: answers at unix:{provider.home}/offbook.sock" in shown
    assert "✓ level: hot-swap" in shown
    assert "✓ permission: conversation access" in shown
    delivered = re.search(r"✓ capture: (\d+) of (\d+) delivered, (\d+) waiting, 0 not taken", shown)
    assert delivered, shown
    done, taken, waiting = (int(number) for number in delivered.groups())
    assert done + waiting == taken >= 4
    assert re.search(r"✓ turns: \d+ prepared, [1-9]\d* with memory, 0 late, 0 failed", shown)
    provider.stop()
    try:
        away = command(rpc, model, "/offbook doctor")
        assert "✗ provider: Offbook could not do this" in away
        assert "Offbook could not do this" in command(rpc, model, "/swap-status")
        assert "Offbook could not do this" in tool(gateway, model, "memory_recall", query=ASKED)
    finally:
        provider.start()
    assert "✓ provider: answers" in command(rpc, model, "/offbook doctor")


# ── methods of the gateway ──


def test_the_methods_answer(rpc: Rpc, provider: OffbookProvider) -> None:
    found = rpc.call("continuity.search", {"query": ASKED, "limit": 3})
    assert found["entries"][0]["text"] == FACT
    assert found["entries"][0]["sessionId"] == "agent:main:told"
    assert len(found["entries"]) <= 3
    assert rpc.call("continuity.search", {"query": ASKED, "agentId": "bob"})["entries"] == []
    status, stats = provider.status(), rpc.call("continuity.getArchiveStats")
    assert [stats[name] for name in ("messages", "chars", "sessions")] == [
        status["counts"][name] for name in ("messages", "chars", "sessions")
    ]
    assert stats["tiers"] == status["tiers"]
    assert stats["indexed"] == status["index"]["entries"]
    assert rpc.call("continuity.getArchiveStats", {"agentId": "bob"})["messages"] == 0
    labels = {topic["label"] for topic in rpc.call("continuity.getTopics", {"sessionKey": "agent:main:told"})["topics"]}
    assert "Ottilie" in labels
    assert labels <= {topic["label"] for topic in rpc.call("continuity.getTopics")["topics"]}
    state = rpc.call("continuity.getState", {"sessionKey": "agent:main:told"})
    assert state["agentId"] == "main"
    assert state["session"]["exchanges"] == 2
    assert rpc.call("continuity.getState").get("session") is None
    config = rpc.call("continuity.getConfig")
    assert config["agentId"] == "main"
    assert config["settings"]["crossSearchEnabled"] is False


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("search", {}, "query is missing: say what to search for"),
        ("search", {"query": 5}, "query is a text"),
        ("search", {"query": "bees", "limit": 0}, "limit is a whole number from 1 to 100"),
        ("getTopics", {"sessionKey": 7}, "sessionKey is a text"),
        ("getState", {"agentId": "x" * 200}, "agentId"),
        ("getConfig", {"agentId": ["main"]}, "agentId is a text"),
        ("getArchiveStats", {"agentId": 1}, "agentId is a text"),
    ],
)
def test_a_wrong_parameter_is_refused_with_words(rpc: Rpc, method: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(CallRefused) as refused:
        rpc.call(f"continuity.{method}", given)
    assert refused.value.error["code"] == "INVALID_REQUEST"
    assert message in refused.value.error["message"]


# ── the page in the Control UI ──


def test_the_page_shows_the_status_to_those_who_may_read(gateway: Gateway, rpc: Rpc, provider: OffbookProvider) -> None:
    """As the Control UI does it: a tab in the greeting, a cookie from its configuration, the page in a frame."""
    (tab,) = [tab for tab in rpc.hello["controlUiTabs"] if tab["pluginId"] == "offbook"]
    assert (tab["label"], tab["requiresGatewayAuth"]) == ("Offbook", True)
    refused, _, _ = fetched(gateway, tab["path"])
    assert refused == 401
    status, cookie, _ = fetched(gateway, "/control-ui-config.json", authorization=f"Bearer {TOKEN}")
    assert status == 200
    assert cookie
    page = ""

    def is_up_to_date() -> bool:  # the command before is still being recorded
        nonlocal page
        messages = f"{provider.status()['counts']['messages']:,} messages in "
        status, _, page = fetched(gateway, tab["path"], cookie=cookie)
        assert status == 200
        return messages in page

    gateway.wait_until(is_up_to_date, "showing as many messages as the provider has")
    shown = re.findall(r"<pre>(.*?)</pre>", page, re.S)
    assert [text.split(" · ")[0] for text in shown] == ["Agent main", "Agent bob"]
    assert OF_STATUS in shown[1]
    assert "Level: hot-swap." in page
    assert TOKEN not in page
    assert str(provider.home) not in page


def fetched(gateway: Gateway, path: str, **headers: str) -> tuple[int, str, str]:
    """Status, the cookies that are set, and the text."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=CALL_SECONDS)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        cookies = [value.split(";")[0] for value in response.headers.get_all("set-cookie", [])]
        return response.status, "; ".join(cookies), response.read().decode()
    finally:
        connection.close()


# ── the host's command line ──


def test_the_hosts_command_line_shows_how_memory_stands(gateway: Gateway, provider: OffbookProvider) -> None:
    done = gateway.cli("offbook", "status", "--json")
    assert done.returncode == 0, done.stderr
    statuses = {status["agentId"]: status for status in json.loads(done.stdout)}
    assert statuses.keys() == {"main", "bob"}
    assert statuses["main"]["counts"]["messages"] == provider.status()["counts"]["messages"]
    assert statuses["bob"]["counts"]["messages"] == 0


def test_the_hosts_command_line_shows_the_summaries(gateway: Gateway, summary: dict[str, Any]) -> None:
    done = gateway.cli("offbook", "inspect", "--level", "L1", "--limit", "5")
    assert done.returncode == 0, done.stderr
    first, places, text = done.stdout.splitlines()[:3]
    assert first.startswith(f"{summary['id']}  ")
    assert f"{summary['sourceMessages']} messages" in first
    assert places.strip().startswith("agent:main:long#1-")
    assert "kilograms" in text


# ── what is shown is not remembered again ──


def test_what_a_command_shows_is_noise_and_does_not_come_to_mind(
    rpc: Rpc, gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    key = "agent:bob:commands"
    for words in ("/swap-status", "/swap-dashboard", "/offbook recall zebras", "/swap-promote zebras", "/swap-cross"):
        command(rpc, model, words, key)
    gateway.wait_until(lambda: len(provider.log(key, "bob")) == 10, "storing the commands")
    assert [line.get("noise") for line in provider.log(key, "bob")] == ["command"] * 10
    assert provider.status("bob")["index"]["entries"] == 0
    gateway.turn("later", "What about the stores, retrievals, tiers, prunes, pins and zebras?", agent="bob")
    asked = whole_text(model.turns()[-1])
    assert not any(words in asked for words in (OF_STATUS, "Nothing comes to mind for that", "Cross search is off"))


def test_what_our_own_tools_show_does_not_come_to_mind(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    """A memory that is shown is no new memory: found again it would stand twice, the second time as hearsay."""
    key = "agent:main:echo"
    tool(gateway, model, "memory_recall", "echo", query=ASKED)
    tool(gateway, model, "swap_status", "echo")
    caught_up(gateway, provider, key, 8)
    results = [line for line in provider.log(key) if line["message"]["role"] == "tool"]
    assert [line.get("noise") for line in results] == ["injected", "injected"]
    found = provider.ask("recall", agentId="main", sessionId="agent:main:other", query=ASKED, limit=20)["entries"]
    assert [entry["sessionId"] for entry in found if FACT in entry["text"]] == ["agent:main:told"]
    assert not any(OF_STATUS in entry["text"] for entry in found)


def test_no_request_was_one_to_refuse(model: ScriptedModel) -> None:
    assert model.turns()
    assert model.faults() == []
    assert model.repairs() == []
