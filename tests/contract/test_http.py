"""What is ours beyond the contract: who gets in, what HTTP asks of a server, and what it says about itself."""

from __future__ import annotations

import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from prometheus_client.parser import text_string_to_metric_families

from offbook.api.openapi import openapi_document
from offbook.api.verbs import VERBS
from offbook.model.home import BoundToken, Home, token_digest
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, Reply, assert_problem, bearer, message, running

PATHS = ["/v1/ping", "/v1/openapi.json", "/metrics", "/v1/noSuchVerb", "/"]
MOVED: list[dict[str, Any]] = [
    {"type": "agent", "agentId": "x"},
    {"type": "session", "sessionId": "moved", "startedAt": "2026-01-01T00:00:00Z"},
    {"type": "message", "sessionId": "moved", "seq": 1, "message": message(ts="2026-01-01T00:00:00Z")},
    {"type": "mark", "sessionId": "moved", "seq": 1, "kind": "end", "at": "2026-01-01T00:00:00Z", "reason": "idle"},
    {"type": "message", "sessionId": "moved", "seq": 3, "message": message()},
]
"""An export, of which the last is refused."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL) as started:
        yield started


# ── tokens ──


@pytest.mark.parametrize("path", PATHS)
def test_tcp_needs_a_token_for_everything(daemon: Daemon, path: str) -> None:
    for headers in ({}, bearer("wrong"), {"authorization": daemon.token}, {"authorization": f"Basic {daemon.token}"}):
        reply = daemon.send("GET", path, headers=headers)
        assert_problem(reply, 401)
        assert reply.headers["www-authenticate"] == "Bearer"
    assert daemon.send("GET", path, headers=bearer(daemon.token)).status in (200, 404)


@pytest.mark.parametrize("path", PATHS)
def test_the_socket_needs_none_and_refuses_a_wrong_one(daemon: Daemon, path: str) -> None:
    assert daemon.send("GET", path, over_socket=True).status in (200, 404)
    assert daemon.send("GET", path, headers=bearer(daemon.token), over_socket=True).status in (200, 404)
    assert_problem(daemon.send("GET", path, headers=bearer("wrong"), over_socket=True), 401)


def test_scheme_and_spaces_are_read_as_http_says(daemon: Daemon) -> None:
    for value in (f"bearer {daemon.token}", f"BEARER   {daemon.token} "):
        assert daemon.send("GET", "/v1/ping", headers={"authorization": value}).status == 200


def test_only_the_owner_can_open_what_opens_the_rest(daemon: Daemon) -> None:
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE((daemon.home / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(daemon.home.stat().st_mode) == 0o700
    for path in daemon.home.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name


@pytest.fixture
def bound(daemon: Daemon) -> Iterator[str]:
    """A token for two agents."""
    home = Home(daemon.home)
    secret = "offbook_bound_for_a_test"
    given = BoundToken(
        name="two", digest=token_digest(secret), agents=["ada", "bea"], created_at="2024-01-01T00:00:00Z"
    )
    home.write_bound_tokens([given])
    yield secret
    home.write_bound_tokens([])


@pytest.mark.parametrize("over_socket", [False, True])
def test_a_bound_token_opens_its_agents_only(daemon: Daemon, bound: str, over_socket: bool) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("onMessage", {"sessionId": "s", "message": message()}),
        ("getCompressedContext", {"sessionId": "s", "maxChars": 100}),
        ("swap", {"sessionId": "s", "usedTokens": 900, "contextWindow": 1_000, "force": True}),
        ("expand", {"span": {"sessionId": "s", "firstSeq": 1, "lastSeq": 9}}),
        ("summaries", {"sessionId": "s"}),
        ("compress", {}),
        ("replay", {"sessionId": "s", "at": "2100-01-01T00:00:00Z"}),
        ("jobs/claim", {}),
        ("recall", {"sessionId": "s", "query": "Who is it for?", "scope": "all"}),
        ("prepareTurn", {"sessionId": "s", "prompt": "Who was it for, do you remember?"}),
        ("enrich", {"sessionId": "s", "query": "Who is it for?"}),
        ("topics", {}),
        ("anchors", {"sessionId": "s"}),
        ("state", {}),
        ("config", {}),
        ("sessions", {}),
        ("activity", {}),
        ("entries", {}),
        ("lessons", {}),
        ("pin", {"keyword": "only"}),
        ("unpin", {"sessionId": "s"}),
        ("unlink", {"entryId": "m100000001"}),
        ("forget", {"sessionId": "none", "reason": ""}),
        ("cross", {}),
        ("reindex", {}),
        ("maintain", {}),
        ("export", {}),
        ("import", {"records": []}),
        ("hooks/session-start", {"sessionId": "s"}),
        ("hooks/pre-compaction", {"sessionId": "s", "messages": [message()]}),
        ("hooks/post-compaction", {"sessionId": "s"}),
        ("hooks/session-end", {"sessionId": "s"}),
        ("log", {"sessionId": "s"}),
        ("missing", {"sessionId": "s", "ids": ["1"]}),
        ("status", {}),
        ("audit", {}),
    ]
    of_a_job: list[tuple[str, dict[str, Any]]] = [
        ("jobs/complete", {"jobId": "none", "text": "x"}),
        ("jobs/fail", {"jobId": "none"}),
        ("lessons/judge", {"lessonId": "lesson-0001", "verdict": "accept"}),
    ]
    of_a_receipt = {"forget/verify"}  # see `test_http_forget`
    assert {verb for verb, _ in [*requests, *of_a_job]} == VERBS.keys() - {"ping"} - of_a_receipt
    daemon.ask("onMessage", sessionId="s", agentId="cleo", message=message("Only for Cleo."))
    for verb, fields in requests:
        for agent_id in ("ada", "bea"):
            reply = daemon.ask(verb, bound, over_socket, agentId=agent_id, **fields)
            assert reply.status == 200, (verb, reply.body)
            assert b"Cleo" not in reply.body
        for other in ({"agentId": "cleo"}, {}, {"agentId": "Ada"}):
            assert_problem(daemon.ask(verb, bound, over_socket, **fields, **other), 403)
    for verb, fields in of_a_job:
        assert_problem(daemon.ask(verb, bound, over_socket, agentId="ada", **fields), 404)
        assert_problem(daemon.ask(verb, bound, over_socket, agentId="cleo", **fields), 403)
    key = {"sessionId": "agent:cleo:s"}
    by_key: list[tuple[str, dict[str, Any]]] = [
        ("swap", {**key, "usedTokens": 1, "contextWindow": 1}),
        ("expand", {"span": {**key, "firstSeq": 1, "lastSeq": 1}}),
        ("summaries", key),
        ("compress", key),
        ("replay", {**key, "at": "2100-01-01T00:00:00Z"}),
        ("prepareTurn", {**key, "prompt": "Who was it for?"}),
        ("enrich", {**key, "query": "Who was it for?"}),
        ("missing", {**key, "ids": ["1"]}),
        ("topics", key),
        ("anchors", key),
        ("state", key),
    ]
    for verb, fields in by_key:
        assert_problem(daemon.ask(verb, bound, over_socket, **fields), 403)
    assert_problem(daemon.ask("audit", bound, over_socket, sessionId="agent:cleo:s"), 403)
    keyed = {"sessionId": "agent:cleo:s", "maxChars": 100}
    assert_problem(daemon.ask("getCompressedContext", bound, over_socket, **keyed), 403)
    assert daemon.ask("getCompressedContext", bound, over_socket, **keyed, agentId="ada").status == 200
    assert daemon.ask("status", bound, over_socket, agentId="ada").json()["agents"] == ["ada", "bea"]


def test_a_refused_agent_hears_nothing_and_leaves_nothing(daemon: Daemon, bound: str) -> None:
    daemon.ask("onMessage", bound, sessionId="s", agentId="dora", message=message())
    assert "dora" not in daemon.ask("status").json()["agents"]


def test_revoking_holds_at_once(daemon: Daemon, bound: str) -> None:
    assert daemon.ask("status", bound, agentId="ada").status == 200
    Home(daemon.home).write_bound_tokens([])
    assert_problem(daemon.ask("status", bound, agentId="ada"), 401)


def test_a_revocation_reaches_a_connection_that_is_open(daemon: Daemon, bound: str) -> None:
    connection = daemon.connection(over_socket=False)
    for expected in (200, 401):
        connection.request("POST", "/v1/status", b'{"agentId":"ada"}', bearer(bound))
        response = connection.getresponse()
        response.read()
        assert response.status == expected
        Home(daemon.home).write_bound_tokens([])
    connection.close()


def test_the_audit_says_who_asked(daemon: Daemon, bound: str) -> None:
    daemon.ask("status", bound, agentId="ada")
    daemon.ask("status", agentId="ada")
    daemon.send("POST", "/v1/status", {"agentId": "ada"}, over_socket=True)
    events = daemon.ask("audit", agentId="ada", limit=4).json()["events"]
    assert [event["actor"] for event in events] == ["token:two", "owner", "local", "owner"]


# ── web pages ──

HOSTS = {
    "localhost": 200,
    "LOCALHOST:{port}": 200,
    "127.0.0.1:{port}": 200,
    "[::1]:{port}": 200,
    "evil.example": 403,
    "evil.example:{port}": 403,
    "127.0.0.1.evil.example": 403,
    "localhost.evil.example:{port}": 403,
    "127.0.0.2": 403,
    "0.0.0.0:{port}": 403,
    "localhost@evil.example": 403,
    "[::1": 403,
    "": 403,
}
ORIGINS = {
    "http://localhost": 200,
    "http://127.0.0.1:{port}": 200,
    "http://[::1]:8080": 200,
    "https://evil.example": 403,
    "http://localhost.evil.example": 403,
    "http://127.0.0.1.evil.example:{port}": 403,
    "http://evil.example/localhost": 403,
    "http://localhost@evil.example": 403,
    "null": 403,
    "file://": 403,
    "": 403,
    "http://[::1": 403,
}


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_only_our_own_names_are_answered(daemon: Daemon, host: str, status: int) -> None:
    headers = {**bearer(daemon.token), "host": host.format(port=daemon.port)}
    reply = daemon.send("GET", "/v1/ping", headers=headers)
    assert reply.status == status
    assert status == 200 or assert_problem(reply, status)


@pytest.mark.parametrize(("origin", "status"), ORIGINS.items())
@pytest.mark.parametrize("over_socket", [False, True])
def test_only_our_own_pages_are_answered(daemon: Daemon, origin: str, status: int, over_socket: bool) -> None:
    headers = {**bearer(daemon.token), "origin": origin.format(port=daemon.port)}
    reply = daemon.send("GET", "/v1/ping", headers=headers, over_socket=over_socket)
    assert reply.status == status
    assert not any(name.startswith("access-control-") for name in reply.headers)


def test_a_preflight_is_refused(daemon: Daemon) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    reply = daemon.send("OPTIONS", "/v1/onMessage", headers=headers)
    assert reply.status in (401, 403, 405)
    assert not any(name.startswith("access-control-") for name in reply.headers)


# ── capture reconciliation ──


def test_a_capture_claim_shows_in_status(daemon: Daemon) -> None:
    def deliver(first: int, last: int, sent: int) -> None:
        batch = {"agentId": "claims", "sessionId": "s", "messages": [message() for _ in range(first, last + 1)]}
        header = {"offbook-capture": f"client=host-1; first={first}; last={last}; sent={sent}"}
        assert daemon.send("POST", "/v1/onMessage", batch, {**bearer(daemon.token), **header}).status == 200

    def capture() -> dict[str, Any]:
        report: dict[str, Any] = daemon.ask("status", agentId="claims").json()["capture"]
        return {name: report[name] for name in ("sent", "received", "missing", "waiting")}

    deliver(1, 3, 3)
    assert capture() == {"sent": 3, "received": 3, "missing": 0, "waiting": 0}
    deliver(4, 5, 8)
    assert capture() == {"sent": 8, "received": 5, "missing": 0, "waiting": 3}
    deliver(7, 8, 8)
    assert capture() == {"sent": 8, "received": 7, "missing": 1, "waiting": 0}


@pytest.mark.parametrize(
    "claim",
    [
        "",
        "nonsense",
        "client=x; first=1; last=1",
        "client=x; first=one; last=1; sent=1",
        "client=x; first=0; last=0; sent=1",
        "client=x; first=2; last=1; sent=2",
        "client=x; first=1; last=2; sent=2",
        "client=x; first=1; last=1; sent=0",
        "client=; first=1; last=1; sent=1",
        f"client={'x' * 129}; first=1; last=1; sent=1",
        "client=x; first=1; last=1; sent=99999999999999999999",
        "client=x; first=-1; last=-1; sent=1",
        "client=x; first=1; last=1; sent=" + "1" * 5_000,
    ],
)
def test_a_claim_that_cannot_be_is_refused_and_nothing_is_stored(daemon: Daemon, claim: str) -> None:
    body = {"sessionId": "bad-claims", "agentId": "bad-claims", "message": message()}
    assert_problem(daemon.send("POST", "/v1/onMessage", body, {**bearer(daemon.token), "offbook-capture": claim}), 400)
    assert "bad-claims" not in daemon.ask("status").json()["agents"]


# ── what it says about itself ──


def test_the_metrics_are_prometheus_and_count(daemon: Daemon) -> None:
    def value(name: str, **labels: str) -> float:
        text = daemon.send("GET", "/metrics", headers=bearer(daemon.token)).body.decode()
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        found = [each.value for each in samples if each.name == name and labels.items() <= each.labels.items()]
        return sum(found)

    before = value("offbook_requests_total", verb="status", status="200"), value("offbook_requests_total", verb="other")
    accepted = value("offbook_messages_total", outcome="accepted")
    daemon.ask("status")
    daemon.ask("noSuchVerb")
    daemon.ask("onMessage", sessionId="counted", messages=[message(id="a"), message(id="b"), message(id="a")])
    assert value("offbook_requests_total", verb="status", status="200") == before[0] + 1
    assert value("offbook_requests_total", verb="other", status="404") > 0
    assert value("offbook_messages_total", outcome="accepted") == accepted + 2
    assert value("offbook_messages_total", outcome="duplicate") > 0
    assert value("offbook_request_seconds_count", verb="status") > 0
    assert value("offbook_build_info") == 1


def test_a_path_makes_no_metric_of_its_own(daemon: Daemon) -> None:
    """Whoever asks for a million paths must not fill the memory with a million counters."""
    daemon.send("POST", "/v1/a-path-nobody-has", b"{}", bearer(daemon.token))
    assert b"a-path-nobody-has" not in daemon.send("GET", "/metrics", headers=bearer(daemon.token)).body


def test_the_document_is_openapi_3_1() -> None:
    document = openapi_document()
    assert document["openapi"] == "3.1.0"
    schemathesis.openapi.from_dict(document).validate()
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)
    assert {path.removeprefix("/v1/") for path in document["paths"]} == VERBS.keys()


def test_every_answer_is_as_the_document_says(daemon: Daemon) -> None:
    call = {"type": "tool-call", "id": "c", "name": "look", "arguments": {"at": [1]}}
    turns = [
        message(id="1"),
        {"role": "assistant", "content": [call]},
        {"role": "tool", "toolCallId": "c", "content": "x"},
    ]
    place = {"agentId": "documented", "sessionId": "s"}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("ping", {}),
        ("hooks/session-start", place),
        ("onMessage", {**place, "messages": turns}),
        ("onMessage", {**place, "message": message("other content", id="1")}),
        ("getCompressedContext", {**place, "maxChars": 1}),
        ("getCompressedContext", {**place, "maxChars": 10_000}),
        ("swap", {**place, "usedTokens": 1, "contextWindow": 1_000}),
        ("swap", {**place, "usedTokens": 900, "contextWindow": 1_000, "force": True}),
        ("expand", {"agentId": "documented", "span": {"sessionId": "s", "firstSeq": 1, "lastSeq": 3}, "limit": 2}),
        ("summaries", {"agentId": "documented"}),
        ("compress", {**place, "dryRun": True}),
        ("compress", {"agentId": "documented"}),
        ("replay", {**place, "at": "2100-01-01T00:00:00Z"}),
        ("replay", {**place, "at": "2001-01-01T00:00:00Z"}),
        ("jobs/claim", {"agentId": "documented"}),
        ("recall", {**place, "query": "other content", "explain": True}),
        ("recall", {**place, "query": "x", "scope": "all", "at": "2026-01-01T00:00:00Z", "limit": 1}),
        ("prepareTurn", {**place, "prompt": ""}),
        ("prepareTurn", {**place, "prompt": "Do you remember the other content?", "explain": True, "preview": True}),
        ("prepareTurn", {**place, "prompt": "Who am I?", "currentTokens": 900, "contextWindow": 1_000}),
        ("enrich", {**place, "query": "other content"}),
        ("topics", place),
        ("anchors", place),
        ("state", {"agentId": "documented"}),
        ("state", place),
        ("config", {"agentId": "documented"}),
        ("sessions", {"agentId": "documented", "limit": 1}),
        ("activity", {"agentId": "documented", "days": 30}),
        ("entries", {"agentId": "documented", "entryIds": ["m100000001", "m7f00000001"]}),
        ("entries", {"agentId": "documented"}),
        ("recall", {**place, "query": "other content", "preview": True}),
        ("replay", {**place, "at": "2100-01-01T00:00:00Z", "newest": 1}),
        ("summaries", {"agentId": "documented", "ids": ["L1-0001", "L1-0002"]}),
        ("audit", {"agentId": "documented", "verbs": ["onMessage"], "before": 900}),
        ("lessons", {"agentId": "documented", "kind": "fact", "status": ["learnt", "edited"], "limit": 3}),
        ("lessons", {"agentId": "documented", "status": "learnt", "before": "lesson-0002"}),
        ("pin", {**place, "keyword": "x"}),
        ("recall", {**place, "query": "x", "scope": "session", "includeSuperseded": True}),
        ("unpin", {"agentId": "documented", "sessionId": "s"}),
        ("unlink", {"agentId": "documented", "entryId": "m100000001", "byId": "m100000002"}),
        ("forget", {"agentId": "documented", "matching": "nobody said this", "reason": ""}),
        ("forget", {**place, "reason": "over", "dryRun": True}),
        ("cross", {"agentId": "documented", "enabled": True}),
        ("reindex", {"agentId": "documented"}),
        ("maintain", {"agentId": "documented", "tasks": ["index", "tiers"]}),
        ("export", {"agentId": "documented", "limit": 2}),
        ("export", {"agentId": "documented"}),
        ("import", {"agentId": "documented", "records": MOVED, "done": True}),
        ("hooks/session-start", {**place, "parentSessionId": "agent:another:s"}),
        ("hooks/pre-compaction", {**place, "messages": [message(meta={"a": 1}, ts="2024-01-01T00:00:00Z")]}),
        ("hooks/post-compaction", {**place, "newContext": [1]}),
        ("hooks/session-end", {**place, "reason": "idle"}),
        ("log", place),
        ("missing", {**place, "ids": ["1", "2"]}),
        ("status", {"agentId": "documented"}),
        ("audit", {"agentId": "documented"}),
    ]
    of_a_job = {"jobs/complete", "jobs/fail"}  # which the flow of a job below answers
    of_a_lesson = {"lessons/judge"}  # which there must be one of: see `test_client_lessons`
    of_a_receipt = {"forget/verify"}  # see `test_http_forget`
    assert {verb for verb, _ in asked} == VERBS.keys() - of_a_job - of_a_lesson - of_a_receipt
    for verb, fields in asked:
        assert_as_documented(verb, daemon.ask(verb, **fields))
    for verb in VERBS:
        validator(verb, 422).validate(daemon.ask(verb, surplus=1).json())
    unknown: list[tuple[str, dict[str, Any]]] = [
        ("expand", {"summaryId": "L1-9999"}),
        ("expand", {"summaryId": "lesson-9999"}),
        ("jobs/complete", {"jobId": "none", "text": "x"}),
        ("jobs/fail", {"jobId": "none"}),
        ("lessons/judge", {"lessonId": "lesson-0001", "verdict": "edit", "text": "x"}),
    ]
    for verb, fields in unknown:
        validator(verb, 404).validate(assert_problem(daemon.ask(verb, agentId="documented", **fields), 404))


def test_an_agent_that_cannot_be_is_refused_wherever_it_is_named(daemon: Daemon) -> None:
    """In the default agent, two of them would read each other's memory."""
    before = daemon.ask("status").json()["counts"]["messages"]
    for name in ("p" * 129, "é" * 65):
        explicit = daemon.ask("onMessage", sessionId="k", agentId=name, message=message("The door is violet now."))
        by_key = daemon.ask("onMessage", sessionId=f"agent:{name}:k", message=message("The door is violet now."))
        assert (by_key.status, by_key.json()["type"]) == (explicit.status, explicit.json()["type"])
        assert by_key.status == 422
        assert "agentId" in by_key.json()["detail"]
        for verb, fields in (
            ("recall", {"query": "violet"}),
            ("getCompressedContext", {"maxChars": 100}),
            ("prepareTurn", {"prompt": "violet"}),
            ("forget", {"reason": ""}),
            ("summaries", {}),
            ("audit", {}),
            ("topics", {}),
        ):
            assert daemon.ask(verb, sessionId=f"agent:{name}:k", **fields).status == 422, verb
    assert daemon.ask("status").json()["counts"]["messages"] == before


def test_null_is_a_field_left_out(daemon: Daemon) -> None:
    place = {"agentId": "nulls", "sessionId": "s"}
    assert daemon.ask("onMessage", **place, message=message("The door is violet now."), messages=None).status == 200
    left_out = dict.fromkeys(("limit", "scope", "at", "explain", "includeSuperseded"))
    found = daemon.ask("recall", **place, query="violet", **left_out)
    assert (found.status, len(found.json()["entries"])) == (200, 1)
    swapped = daemon.ask("swap", **place, usedTokens=1, contextWindow=100, force=None)
    assert (swapped.status, swapped.json()["swapped"]) == (200, False)
    assert daemon.ask("recall", **place, query=None).status == 422


def test_a_host_asks_which_of_its_messages_did_not_arrive(daemon: Daemon) -> None:
    place = {"agentId": "reconciled", "sessionId": "s"}
    daemon.ask("onMessage", **place, messages=[message(id="1"), message("two", id="2")])
    assert daemon.ask("missing", **place, ids=["3", "1", "0", "2"]).json() == {"missing": ["3", "0"]}
    assert daemon.ask("missing", **place, ids=["1"]).json() == {"missing": []}
    assert daemon.ask("missing", agentId="reconciled", sessionId="none", ids=["1"]).json() == {"missing": ["1"]}
    assert len(daemon.ask("missing", **place, ids=[str(number) for number in range(1_000)]).json()["missing"]) == 998
    for ids in ([], [str(number) for number in range(1_001)], [""], ["1", 2], "1", None, ["k" * 513], ["\x00"]):
        assert "ids" in assert_problem(daemon.ask("missing", **place, ids=ids), 422)["detail"]
    status = daemon.ask("status", agentId="reconciled").json()
    assert [session["sessionId"] for session in status["sessions"]] == ["s"]
    events = daemon.ask("audit", agentId="reconciled").json()["events"]
    assert [event["details"] for event in events if event["verb"] == "missing"][:2] == [
        {"asked": 4, "missing": 2},
        {"asked": 1, "missing": 0},
    ]


def test_a_session_tells_which_one_started_it(daemon: Daemon) -> None:
    agent = {"agentId": "subagent"}
    started = daemon.ask("hooks/session-start", **agent, sessionId="child", parentSessionId="agent:nobody:chat")
    assert started.json() is None
    daemon.ask("onMessage", **agent, sessionId="child", message=message())
    daemon.ask("onMessage", **agent, sessionId="alone", message=message())
    status = daemon.ask("status", **agent).json()
    alone, child = status["sessions"]
    assert child["parentSessionId"] == "agent:nobody:chat"
    assert "parentSessionId" not in alone
    assert "nobody" not in status["agents"]
    for wrong in ("", 7, "k" * 513, "é" * 257, "\x00"):
        reply = daemon.ask("hooks/session-start", **agent, sessionId="child", parentSessionId=wrong)
        assert "parentSessionId" in assert_problem(reply, 422)["detail"]


def assert_as_documented(verb: str, reply: Reply) -> Any:
    assert reply.status == 200, (verb, reply.body)
    validator(verb, 200).validate(reply.json())
    return reply.json()


def validator(verb: str, status: int) -> Any:
    document = openapi_document()
    content = document["paths"][f"/v1/{verb}"]["post"]["responses"][str(status)]["content"]
    (schema,) = (each["schema"] for each in content.values())
    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]}, validate_formats=True)


# ── summaries that the host's model writes ──

HOST_WRITES = {
    "OFFBOOK_SUMMARIZER_ORDER": "host,extractive",
    "OFFBOOK_CHUNK_TOKENS": "200",
    "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "100",
    "OFFBOOK_SUMMARY_TARGET_TOKENS": "80",
}
TALK = [
    message(f"Alice asks for the report on harbour {number}, with the usual tables and the pictures of the boats.")
    for number in range(24)
]
WRITTEN = "Alice asked again and again for reports on the harbours, with tables and pictures of boats."


@pytest.fixture(scope="module")
def hosted() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL | HOST_WRITES) as started:
        yield started


def claimed(daemon: Daemon, wait_ms: int = 20_000, **fields: Any) -> dict[str, Any] | None:
    job: dict[str, Any] | None = assert_as_documented("jobs/claim", daemon.ask("jobs/claim", waitMs=wait_ms, **fields))[
        "job"
    ]
    return job


def summarizers(daemon: Daemon, agent_id: str) -> list[str]:
    """Who wrote the summaries there are, newest first."""
    page = assert_as_documented("summaries", daemon.ask("summaries", agentId=agent_id))
    return [summary["summarizer"] for summary in page["summaries"]]


def waited_for(condition: Callable[[], bool], seconds: float = 200.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_the_hosts_model_writes_a_summary(hosted: Daemon, bound_to_ada: str) -> None:
    assert claimed(hosted, wait_ms=0, agentId="ada") is None  # nothing yet; but from now on there is a host
    hosted.ask("onMessage", agentId="ada", sessionId="s", messages=TALK)
    job = claimed(hosted, agentId="ada")
    assert job is not None
    assert (job["agentId"], job["stable"] < len(job["messages"])) == ("ada", True)
    assert "harbour 0" in str(job["messages"])
    given: dict[str, Any] = {"agentId": "ada", "jobId": job["id"]}

    # Nobody else's: neither another agent nor another token gets it or settles it.
    assert claimed(hosted, wait_ms=0, agentId="bea") is None
    assert claimed(hosted, wait_ms=0, agentId="ada") is None  # it is in somebody's hands
    assert_problem(hosted.ask("jobs/complete", **(given | {"agentId": "bea"}), text="x"), 404)
    assert_problem(hosted.ask("jobs/fail", **(given | {"agentId": "bea"})), 404)
    assert_problem(hosted.ask("jobs/claim", bound_to_ada, agentId="bea"), 403)

    for wrong in ({"inputTokens": -1}, {"inputTokens": 2**70}, {"dollars": 1e300}, {"dollars": "1"}, {"surplus": 1}):
        assert_problem(hosted.ask("jobs/complete", **given, text=WRITTEN, usage=wrong), 422)
    usage = {"inputTokens": 700, "cachedTokens": 100, "outputTokens": 30, "dollars": 0.25}
    for text in (WRITTEN, "Given twice, the first holds."):
        done = hosted.ask("jobs/complete", bound_to_ada, **given, text=text, usage=usage)
        assert assert_as_documented("jobs/complete", done) == {"ok": True}

    assert waited_for(lambda: "host" in summarizers(hosted, "ada"))
    page = hosted.ask("summaries", agentId="ada").json()["summaries"]
    (summary,) = [each for each in page if each["summarizer"] == "host"]
    assert WRITTEN in summary["text"]
    assert (summary["level"], summary["usage"]) == (1, usage)
    (span,) = summary["spans"]
    assert (span["sessionId"], span["firstSeq"]) == ("s", 1)
    status = hosted.ask("status", agentId="ada").json()
    assert (status["costs"]["tokens"], status["costs"]["dollars"]) == (730, 0.25)

    # What is behind it, and who did what, can be looked up.
    expansion = assert_as_documented("expand", hosted.ask("expand", agentId="ada", summaryId=summary["id"]))
    assert [line["message"]["content"] for line in expansion["messages"]] == [
        each["content"] for each in TALK[: span["lastSeq"]]
    ]
    assert_problem(hosted.ask("expand", agentId="bea", summaryId=summary["id"]), 404)
    events = [
        (event["verb"], event["actor"]) for event in hosted.ask("audit", agentId="ada", limit=1_000).json()["events"]
    ]
    assert events.count(("jobs/complete", "token:ada")) == 2
    assert ("compress", "offbook") in events


def test_a_job_that_fails_is_written_by_the_next_in_line(hosted: Daemon) -> None:
    assert claimed(hosted, wait_ms=0, agentId="faye") is None
    hosted.ask("onMessage", agentId="faye", sessionId="s", messages=TALK)
    job = claimed(hosted, agentId="faye")
    assert job is not None
    reply = hosted.ask("jobs/fail", agentId="faye", jobId=job["id"], reason="overloaded, password: tulip-Harbour-42")
    assert assert_as_documented("jobs/fail", reply) == {"ok": True}
    assert waited_for(lambda: "extractive" in summarizers(hosted, "faye"))
    assert "tulip-Harbour-42" not in hosted.log.read_text()
    assert b"tulip-Harbour-42" not in hosted.ask("status", agentId="faye").body


def test_a_host_that_never_asks_holds_up_nobody(hosted: Daemon) -> None:
    hosted.ask("onMessage", agentId="gwen", sessionId="s", messages=TALK)
    assert waited_for(lambda: summarizers(hosted, "gwen")[:1] == ["extractive"])


def test_hosts_that_wait_for_jobs_hold_up_nobody() -> None:
    """More of them than there are threads; and a stop lets them go with an answer."""
    with running(WITHOUT_MODEL) as daemon:
        replies: list[Reply] = []
        waiting = [
            threading.Thread(target=lambda: replies.append(daemon.ask("jobs/claim", waitMs=25_000))) for _ in range(40)
        ]
        for thread in waiting:
            thread.start()
        time.sleep(1.5)  # all of them have asked by then, on a busy machine, too
        started = time.monotonic()
        large = message("All quiet. " * 10_000)
        assert daemon.ask("onMessage", sessionId="s", message=large).status == 200
        assert daemon.ask("getCompressedContext", sessionId="s", maxChars=1_000).status == 200
        assert daemon.stop() == 0
        assert time.monotonic() - started < 24
        for thread in waiting:
            thread.join(120)
        assert [reply.json() for reply in replies] == [{"job": None}] * len(waiting)


@pytest.fixture
def bound_to_ada(hosted: Daemon) -> Iterator[str]:
    home, secret = Home(hosted.home), "offbook_bound_for_another_test"
    digest = token_digest(secret)
    home.write_bound_tokens([BoundToken(name="ada", digest=digest, agents=["ada"], created_at="2024-01-01T00:00:00Z")])
    yield secret
    home.write_bound_tokens([])


# ── secrets ──

SECRETS = {
    "github": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "aws": "AKIA" + "Q3EGWXYZ7PLMNOTR",
    "anthropic": "sk-ant-api03-" + "Zx9" * 31 + "AA",
    "password": "correct-Horse7battery",
}


def test_secrets_come_back_redacted_and_are_nowhere_on_the_disk() -> None:
    texts = [f"github: {SECRETS['github']}", f"aws {SECRETS['aws']}", f"key {SECRETS['anthropic']}"]
    texts.append(f"password: {SECRETS['password']}")
    block = [{"type": "tool-result", "toolCallId": "c", "content": " and ".join(texts)}]
    large = "All quiet. " * 10_000 + texts[0] + " All quiet." * 10
    with running() as daemon:
        for content in (*texts, block, large):
            sent = {"role": "user", "content": content, "name": texts[0], "meta": {"note": texts[1]}}
            assert daemon.ask("onMessage", sessionId="secrets", message=sent).status == 200
        context = daemon.ask("getCompressedContext", sessionId="secrets", maxChars=1_000_000)
        log = daemon.ask("log", sessionId="secrets")
        assert b"[redacted:" in context.body
        assert b"[redacted:" in log.body
        daemon.stop()
        kept = {path: path.read_bytes() for path in daemon.home.rglob("*") if path.is_file()}
        kept |= {daemon.log: daemon.log.read_bytes()}
        assert any(b"All quiet." in data for data in kept.values())
    for name, secret in SECRETS.items():
        for answer in (context, log):
            assert secret.encode() not in answer.body, name
        for path, data in kept.items():
            assert secret.encode() not in data, f"{name} in {path.name}"


def test_a_stop_leaves_no_socket_and_a_clean_exit() -> None:
    with running(WITHOUT_MODEL) as daemon:
        assert daemon.stop() == 0
        assert not daemon.socket.exists()
        with pytest.raises(OSError), socket.socket() as probe:
            probe.connect(("127.0.0.1", daemon.port))
