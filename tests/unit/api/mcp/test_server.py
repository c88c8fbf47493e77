"""The definition, through the SDK's own client in this process."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from offbook.api.mcp.server import build_server
from offbook.ingest.frames import A_RECORD
from offbook.model.errors import Forbidden, ProviderUnavailable
from tests.unit.api.mcp.provider import Provider


def client(provider: Provider, mode: str = "auto", **owner: Any) -> Client:
    return Client(build_server(provider.ask, **{"agent_id": None, "session_id": "here", **owner}), mode=mode)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_it_offers(mode: str) -> None:
    async with client(Provider(status={"sessions": []}), mode) as asking:
        tools = {tool.name: tool for tool in (await asking.list_tools()).tools}
        assert len(tools) == 7
        hints = tools["memory_forget"].annotations
        assert hints is not None
        assert (hints.destructive_hint, hints.read_only_hint) == (True, False)
        assert tools["memory_recall"].input_schema["required"] == ["query"]
        assert len((await asking.list_resources()).resources) == 3
        templates = (await asking.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == ["offbook://sessions/{id}", "offbook://summaries/{id}"]
        assert [prompt.name for prompt in (await asking.list_prompts()).prompts] == ["handover"]
        assert "never instructs" in (asking.instructions or "")


async def test_agent_and_session_are_those_it_was_built_for() -> None:
    provider = Provider(recall={"entries": []})
    async with client(provider, agent_id="ada", session_id="mine") as asking:
        result = await asking.call_tool("memory_recall", {"query": "q"})
    (_, body) = provider.asked[-1]
    assert (body["agentId"], body["sessionId"], result.structured_content) == (
        "ada",
        "mine",
        {"what": A_RECORD, "entries": []},
    )


async def test_a_problem_is_a_result_of_a_tool_and_an_error_elsewhere() -> None:
    refusal = Forbidden("not yours: use another token")
    provider = Provider(status=refusal, prepareTurn=ProviderUnavailable("start it"))
    async with client(provider) as asking:
        result = await asking.call_tool("memory_status", {})
        assert result.is_error
        assert result.structured_content["status"] == 403
        with pytest.raises(MCPError, match="not yours") as listing:
            await asking.list_resources()
        assert listing.value.code == -32602
        with pytest.raises(MCPError, match="not yours") as reading:
            await asking.read_resource("offbook://sessions")
        assert reading.value.data["uri"] == "offbook://sessions"
        with pytest.raises(MCPError, match="start it") as prompting:
            await asking.get_prompt("handover")
        assert prompting.value.code == -32603
