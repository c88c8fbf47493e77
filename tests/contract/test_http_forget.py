"""`forget` and `forget/verify` over HTTP and through both clients: whose receipt it is, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from offbook import AsyncClient, Client
from offbook.model.errors import ProviderRefused
from offbook.model.home import BoundToken, Home, token_digest
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, assert_problem, message, running
from tests.contract.test_http import assert_as_documented

SECRET = "behind the blue door"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL) as started:
        yield started


@pytest.fixture
def bound(daemon: Daemon) -> Iterator[str]:
    secret = "offbook_bound_for_forgetting"
    given = BoundToken(name="one", digest=token_digest(secret), agents=["ada"], created_at="2024-01-01T00:00:00Z")
    Home(daemon.home).write_bound_tokens([given])
    yield secret
    Home(daemon.home).write_bound_tokens([])


def told(daemon: Daemon, agent_id: str) -> None:
    said = [message(f"The key is {SECRET}."), message("The ferry leaves at nine.")]
    daemon.ask("onMessage", agentId=agent_id, sessionId="chat", messages=said)


def forgotten(daemon: Daemon, agent_id: str) -> dict[str, Any]:
    told(daemon, agent_id)
    reply = daemon.ask("forget", agentId=agent_id, matching=SECRET, reason="moved away")
    return assert_as_documented("forget", reply)["receipt"]


def test_a_receipt_says_what_went_and_is_verified(daemon: Daemon) -> None:
    receipt = forgotten(daemon, "plain")
    assert receipt["reached"]["messages"] == 1
    assert receipt["spans"] == [{"sessionId": "chat", "firstSeq": 1, "lastSeq": 1}]
    assert (receipt["how"], receipt["reason"], receipt["residue"]) == ("matching", "moved away", [])
    assert receipt["outside"]
    assert SECRET not in msgspec.json.encode(receipt).decode()
    check = assert_as_documented("forget/verify", daemon.ask("forget/verify", receipt=receipt, matching=SECRET))
    assert (check["isGenuine"], check["residue"]) == (True, [])
    assert check["searched"]["messages"] == 1
    lines = daemon.ask("log", agentId="plain", sessionId="chat").json()["messages"]
    assert [line["message"]["content"] for line in lines] == ["[forgotten]", "The ferry leaves at nine."]
    events = daemon.ask("audit", agentId="plain").json()["events"]
    (verified,) = [event["details"] for event in events if event["verb"] == "forget/verify"]
    assert verified == {"receipt": receipt["id"], "genuine": True, "residue": 0}


def test_what_comes_back_under_another_id_is_found_again(daemon: Daemon) -> None:
    receipt = forgotten(daemon, "again")
    told(daemon, "again")
    check = daemon.ask("forget/verify", receipt=receipt).json()
    assert check["isGenuine"]
    assert any(each["where"] == "message 3 of chat" for each in check["residue"])


def test_what_another_agent_says_is_no_residue_and_is_not_told(daemon: Daemon) -> None:
    daemon.ask("onMessage", agentId="neighbour", sessionId="chat", message=message("The attic is full of bees."))
    receipt = forgotten(daemon, "asker")
    for phrase in ("attic is full", "The attic is full of bees", SECRET):
        assert daemon.ask("forget/verify", receipt=receipt, matching=phrase).json()["residue"] == []
    told(daemon, "neighbour")
    again = forgotten(daemon, "asker")
    assert again["residue"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"reason": "another"},
        {"residue": [{"where": "x", "what": "y"}]},
        {"signature": ""},
        {"signature": "héxadécimal"},
        {"spans": [{"sessionId": "chat", "firstSeq": 1, "lastSeq": 2**53 - 1}]},
    ],
)
def test_a_changed_receipt_is_not_genuine_and_nothing_is_searched_for_it(
    daemon: Daemon, change: dict[str, Any]
) -> None:
    receipt = forgotten(daemon, "changed") | change
    check = assert_as_documented("forget/verify", daemon.ask("forget/verify", receipt=receipt))
    assert check == {"isGenuine": False, "searched": {}, "residue": []}


def test_a_receipt_makes_no_agent(daemon: Daemon) -> None:
    receipt = forgotten(daemon, "there")
    for nobody in ("nobody", "", "../x", "\x00"):
        assert_problem(daemon.ask("forget/verify", receipt=receipt | {"agentId": nobody}), 404)
    agents = daemon.ask("status").json()["agents"]
    assert "there" in agents
    assert not {"nobody", "", "../x", "\x00"} & set(agents)


@pytest.mark.parametrize("over_socket", [False, True])
def test_a_bound_token_verifies_receipts_of_its_agents_only(daemon: Daemon, bound: str, over_socket: bool) -> None:
    own, other = forgotten(daemon, "ada"), forgotten(daemon, "bea")
    assert daemon.ask("forget/verify", bound, over_socket, receipt=own).json()["isGenuine"]
    for receipt in (other, own | {"agentId": "bea"}, own | {"agentId": "nobody"}):
        assert_problem(daemon.ask("forget/verify", bound, over_socket, receipt=receipt), 403)
    key = {"sessionId": "agent:bea:chat", "reason": ""}
    assert_problem(daemon.ask("forget", bound, over_socket, **key), 403)
    assert_problem(daemon.ask("forget", bound, over_socket, agentId="bea", matching="ferry", reason=""), 403)


@pytest.mark.parametrize("over_socket", [False, True])
def test_receipts_that_the_store_keeps_are_listed_and_verified_by_id(
    daemon: Daemon, bound: str, over_socket: bool
) -> None:
    own, other = forgotten(daemon, "ada"), forgotten(daemon, "bea")
    listed = daemon.ask("forget/verify", bound, over_socket, agentId="ada")
    (line, *_) = assert_as_documented("forget/verify", listed)["receipts"]
    assert (line["id"], line["messages"], line["isFinished"]) == (own["id"], own["reached"]["messages"], True)
    assert (line["at"], line["by"], line["how"], line["residue"]) == (own["at"], own["by"], own["how"], 0)
    assert SECRET.encode() not in listed.body
    events = daemon.ask("audit", agentId="ada").json()["events"]
    verified = [event for event in events if event["verb"] == "forget/verify"]
    assert max(verified, key=lambda event: event["seq"])["details"].keys() == {"receipts"}
    named = daemon.ask("forget/verify", bound, over_socket, agentId="ada", receiptId=own["id"], matching=SECRET)
    check = assert_as_documented("forget/verify", named)
    assert (check["isGenuine"], check["residue"], check["receipt"]) == (True, [], own)
    for fields in ({}, {"receiptId": other["id"]}):
        assert_problem(daemon.ask("forget/verify", bound, over_socket, agentId="bea", **fields), 403)
    assert_problem(daemon.ask("forget/verify", bound, over_socket, agentId="ada", receiptId=other["id"]), 404)


def test_what_names_no_receipt_is_refused(daemon: Daemon) -> None:
    own = forgotten(daemon, "ada")
    assert_problem(daemon.ask("forget/verify", receipt=own, receiptId=own["id"]), 422)
    assert_problem(daemon.ask("forget/verify", receipt=own, matching=" x "), 422)
    for wrong in ("", 7, "x" * 65):
        assert_problem(daemon.ask("forget/verify", agentId="ada", receiptId=wrong), 422)
    assert_problem(daemon.ask("forget/verify", agentId="ada", receiptId="../x"), 404)
    assert_problem(daemon.ask("forget/verify", agentId="nobody"), 404)
    assert "nobody" not in daemon.ask("status").json()["agents"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"reason": ""}, "matching"),
        ({"reason": "", "matching": "ferry", "entryIds": ["m100000001"]}, "2"),
        ({"reason": "", "matching": "f"}, "matching"),
        ({"reason": "", "matching": " \n "}, "matching"),
        ({"reason": "", "entryIds": []}, "entryIds"),
        ({"reason": "", "entryIds": ["../x"]}, "../x"),
        ({"reason": "about the FERRY  leaves", "matching": "ferry leaves"}, "reason"),
        ({"reason": "r" * 513, "matching": "ferry"}, "reason"),
        ({"reason": "", "sessionId": ""}, "sessionId"),
        ({"matching": "ferry"}, "reason"),
    ],
)
def test_what_is_not_meant_clearly_is_refused(daemon: Daemon, fields: dict[str, Any], named: str) -> None:
    told(daemon, "wrong")
    problem = assert_problem(daemon.ask("forget", agentId="wrong", **fields), 422)
    assert named in problem["detail"]
    lines = daemon.ask("log", agentId="wrong", sessionId="chat", newest=True, limit=1).json()["messages"]
    assert lines[0]["message"]["content"] == "The ferry leaves at nine."


async def test_both_clients_forget_and_verify(daemon: Daemon) -> None:
    async with AsyncClient(daemon.socket_endpoint, agent_id="asking", home=daemon.home) as memory:
        await memory.on_message("chat", ("user", f"The key is {SECRET}."), ("user", "The ferry leaves."))
        would = await memory.forget(matching=SECRET, dry_run=True)
        assert (would.dry_run, would.reached.messages, would.signature) == (True, 1, "")
        receipt = await memory.forget(matching=SECRET, reason="moved")
        check = await memory.verify_forgotten(receipt, matching=SECRET)
        assert (check.is_genuine, check.residue) == (True, [])
        (kept,) = await memory.forget_receipts()
        assert (kept.id, kept.reason) == (receipt.id, "moved")
        assert (await memory.verify_forgotten(kept.id)).receipt == receipt


def test_the_blocking_client_too(daemon: Daemon) -> None:
    with Client(daemon.socket_endpoint, agent_id="blocking", home=daemon.home) as memory:
        memory.on_message("chat", ("user", f"The key is {SECRET}."), ("user", "The ferry leaves."))
        (entry,) = memory.recall("chat", "key blue door", limit=1).entries
        receipt = memory.forget(entry_ids=[entry.id], reason="moved")
        assert (receipt.how, receipt.reached.messages) == ("entryIds", 1)
        assert memory.verify_forgotten(receipt).is_genuine
        assert memory.verify_forgotten(memory.forget_receipts()[0].id).receipt == receipt
        rest = memory.forget(session_id="chat")
        assert [(span.first_seq, span.last_seq) for span in rest.spans] == [(2, 2)]
        with pytest.raises(ProviderRefused):
            memory.forget(matching=SECRET, session_id="chat")
