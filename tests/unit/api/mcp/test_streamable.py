"""Whole requests in, whole answers out; and what is said where the extra is missing."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from offbook.api.http import HttpSurface
from offbook.api.mcp.asking import load
from offbook.api.mcp.streamable import Exchange, answered
from offbook.api.memory import Memory
from offbook.api.messages import Answer, Request
from offbook.api.metrics import Metrics
from offbook.model.errors import InvalidInput, WrongMethod
from tests.unit.api.mcp.provider import Provider, without_sdk

HEADERS = {b"content-type": b"application/json", b"accept": b"application/json", b"host": b"localhost"}


def post(method: str, **params: Any) -> Request:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    return Request("POST", "/mcp", HEADERS, body)


async def asked(request: Request, provider: Provider | None = None, agent_id: str | None = None) -> Answer:
    return await answered(request, (provider or Provider()).ask, agent_id=agent_id)


async def test_each_request_stands_alone() -> None:
    """No handshake before it and no session after it: a daemon that was restarted goes on serving."""
    provider = Provider(status={"agentId": "ada"})
    answer = await asked(post("tools/call", name="memory_status", arguments={}), provider, "ada")
    assert (answer.status, answer.content_type) == (200, b"application/json")
    document = msgspec.json.decode(answer.body)
    assert (document["id"], document["result"]["structuredContent"]) == (7, {"agentId": "ada"})
    assert provider.asked == [("status", {"agentId": "ada"})]
    assert b"mcp-session-id" not in answer.extra_headers


async def test_a_notification_is_taken_and_has_no_answer() -> None:
    body = msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
    answer = await asked(Request("POST", "/mcp", HEADERS, body))
    assert (answer.status, answer.body) == (202, b"")


async def test_more_than_the_sdk_takes_by_itself() -> None:
    provider = Provider(onMessage={"accepted": 1, "lastSeq": 1})
    large = "x" * 5_000_000
    given = {"content": large, "role": "user"}
    assert (await asked(post("tools/call", name="memory_record", arguments=given), provider)).status == 200
    assert provider.asked[0][1]["message"]["content"] == large


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_there_are_no_streams(method: str) -> None:
    with pytest.raises(WrongMethod, match="use POST"):
        await asked(Request(method, "/mcp", HEADERS, b""))


@pytest.mark.parametrize("given", [b"text/plain", b"", b"application/jsonl", b"text/plain; x=application/json"])
async def test_another_type_is_refused_by_name(given: bytes) -> None:
    request = post("ping")._replace(headers={**HEADERS, b"content-type": given})
    with pytest.raises(InvalidInput, match="send the message as application/json"):
        await asked(request)


async def test_the_type_may_have_parameters() -> None:
    request = post("ping")._replace(headers={**HEADERS, b"content-type": b"application/json; charset=utf-8"})
    assert (await asked(request)).status == 200


async def test_what_has_no_type_is_not_called_json() -> None:
    exchange = Exchange(post("ping"))
    await exchange.send({"type": "http.response.start", "status": 421, "headers": []})
    await exchange.send({"type": "http.response.body", "body": b"Invalid Host header"})
    assert exchange.answer().content_type == b"text/plain; charset=utf-8"


async def test_an_answer_is_put_together() -> None:
    exchange = Exchange(post("ping"))
    assert (await exchange.receive())["more_body"] is False
    headers = [(b"Content-Type", b"text/x"), (b"Content-Length", b"9"), (b"Allow", b"POST")]
    await exchange.send({"type": "http.response.start", "status": 418, "headers": headers})
    await exchange.send({"type": "http.response.body", "body": b"ab", "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b"c"})
    assert exchange.answer() == Answer(418, b"abc", b"text/x", b"allow: POST\r\n")


async def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without_sdk(monkeypatch)
    surface = HttpSurface(
        cast(Memory, None), Metrics("1", lambda: 0), dict, is_socket=True, allowed_hosts=frozenset({"localhost"})
    )
    answer = await surface(post("ping"))
    assert (answer.status, answer.content_type) == (404, b"application/problem+json")
    assert "pip install 'offbook[mcp]'" in msgspec.json.decode(answer.body)["detail"]


def test_a_defect_of_ours_is_not_taken_for_a_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError):
        load("no_such_module")
