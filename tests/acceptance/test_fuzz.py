"""Whatever can be made of our OpenAPI document is sent to a real daemon: it never fails, and answers as documented.

Each verb for a while, in `make test`; with PROVE_REQUESTS, as in `make prove`, so many requests in all, and
every boundary of every shape besides.
"""

from __future__ import annotations

import os
import time
import unittest
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from benchmarks.machine import machine
from benchmarks.prove.campaign import Campaign, Tried, keep
from hypothesis import HealthCheck, assume, given, settings, strategies
from schemathesis.schemas import APIOperation

from offbook.api.nulls import without_nulls
from offbook.api.openapi import openapi_document
from offbook.api.verbs import VERBS
from offbook.model.content import depth
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, message, running
from tests.places import REPOSITORY

pytest_plugins = ["schemathesis.pytest.plugin"]
"""Left out elsewhere: loading it takes longer than many a test."""
CAMPAIGN_REQUESTS = int(os.environ.get("PROVE_REQUESTS", "0"))
SECONDS_PER_VERB = float(os.environ.get("PROVE_VERB_SECONDS", "0.4"))
LEAST_PER_VERB = 6
"""However busy the machine is."""
LONGEST_WAIT_MS = 20
"""`log` waits as long as it is asked to; a fuzzer asks for a minute."""
LIMITS_IN_BYTES = {"sessionId": 512, "agentId": 128, "id": 512}
"""The contract counts these in bytes of UTF-8, which no JSON schema can say."""
DEEPEST = 100
ANSWERED: Counter[str] = Counter()
"""Requests that were sent, by the status of their answers."""
STARTED = time.monotonic()


KNOWN_SESSION = "known"
READING_VERBS = (
    "/v1/swap",
    "/v1/expand",
    "/v1/summaries",
    "/v1/compress",
    "/v1/replay",
    "/v1/getCompressedContext",
    "/v1/prepareTurn",
    "/v1/enrich",
    "/v1/topics",
    "/v1/anchors",
    "/v1/state",
)
SUMMARISED_SOON = {
    "OFFBOOK_CHUNK_TOKENS": "200",
    "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "100",
    "OFFBOOK_SUMMARY_TARGET_TOKENS": "80",
    "OFFBOOK_MERGE_THRESHOLD": "3",
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """With a session that has summaries of two levels."""
    with running(WITHOUT_MODEL | SUMMARISED_SOON) as started:
        call = {"type": "tool-call", "id": "c", "name": "look", "arguments": {"at": [1]}}
        talk = [message(f"Look at src/module_{number}.py, it says E{number}. " * 4) for number in range(60)]
        talk += [
            {"role": "assistant", "content": [call]},
            {"role": "tool", "toolCallId": "c", "content": "Nothing there."},
        ]
        assert started.ask("onMessage", sessionId=KNOWN_SESSION, messages=talk).status == 200
        deadline = time.monotonic() + 120
        while "L2" not in started.ask("status").json()["summaries"]["counts"]:
            assert time.monotonic() < deadline, "no summaries were made"
            time.sleep(0.05)
        yield started


CONFIG = {
    "generation": {
        "max-examples": max(1, CAMPAIGN_REQUESTS // len(openapi_document()["paths"])),
        "deterministic": True,
        "database": "none",
        "with-security-parameters": False,  # every request carries the token; test_http has those that do not
    }
}
schema = schemathesis.openapi.from_dict(openapi_document(), config=schemathesis.Config.from_dict(CONFIG))
OPERATIONS = [operation.ok() for operation in schema.get_all_operations()]
UNHURRIED = settings(deadline=None, suppress_health_check=list(HealthCheck))


if CAMPAIGN_REQUESTS:

    @schema.parametrize()
    @UNHURRIED
    def test_every_request_is_answered_as_documented(case: schemathesis.Case, daemon: Daemon) -> None:
        check(case, daemon)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_verb_answers_as_documented_for_a_while(operation: APIOperation[Any, Any, Any], daemon: Daemon) -> None:
    modes = [operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode]
    ends, sent = time.monotonic() + SECONDS_PER_VERB, 0

    @given(case=strategies.one_of(modes))
    @settings(UNHURRIED, max_examples=100_000, derandomize=True, database=None)
    def requests(case: schemathesis.Case) -> None:
        nonlocal sent
        if time.monotonic() > ends and sent >= LEAST_PER_VERB:
            raise unittest.SkipTest  # which hypothesis passes on at once: there is no other way to end it
        check(case, daemon)
        sent += 1

    with suppress(unittest.SkipTest):
        requests()
    assert sent


def check(case: schemathesis.Case, daemon: Daemon) -> None:
    assume(_is_within_what_a_schema_cannot_say(case))
    if isinstance(case.body, dict):
        body = _as_a_client_sends(case.body)
        if case.path == "/v1/expand" and _is_sound(case):
            body = _as_can_be_expanded(body)
        if case.path == "/v1/compress" and _is_sound(case):
            body.pop("again", None)  # which needs a model, and none is set here
        if case.path == "/v1/export" and _is_sound(case):
            body.pop("after", None)  # which a page before has to give
        if case.path == "/v1/forget" and _is_sound(case):
            body = _as_can_be_meant(body)
        if case.path == "/v1/forget/verify" and _is_sound(case) and body.get("receipt") is not None:
            body.pop("receiptId", None)  # one of the two
        if case.path == "/v1/maintain" and _is_sound(case):
            body.pop("tasks", None)  # which have names
        if case.path in READING_VERBS and _is_sound(case):
            body = _of_what_is_there(body)
        case.body = body
    answer = case.call_and_validate(
        base_url=str(daemon.tcp_endpoint), headers={"Authorization": f"Bearer {daemon.token}"}, timeout=20
    )
    ANSWERED[str(answer.status_code)] += 1


def test_the_document_fuzzed_is_the_document_served(daemon: Daemon) -> None:
    served = daemon.send("GET", "/v1/openapi.json", headers={"Authorization": f"Bearer {daemon.token}"})
    assert served.json() == openapi_document()


def test_it_is_whole_after_all_that(daemon: Daemon, request: pytest.FixtureRequest) -> None:
    """Runs last: nothing that was sent above broke the chain of the agent most of it was sent to."""
    audit = daemon.ask("audit").json()
    assert audit["verified"]
    assert audit["head"]["seq"] > len(OPERATIONS)
    log = daemon.log.read_text()
    assert "request.refuse" in log
    assert "request.fail" not in log
    if CAMPAIGN_REQUESTS or "PROVE_VERB_SECONDS" in os.environ:
        _keep(request.session.testsfailed)


def _keep(failed: int) -> None:
    """For the page about what was tried."""
    size = f"PROVE_REQUESTS={CAMPAIGN_REQUESTS}" if CAMPAIGN_REQUESTS else f"PROVE_VERB_SECONDS={SECONDS_PER_VERB:g}"
    keep(
        Campaign(
            name="requests",
            title="Fuzzed requests of every verb",
            command=f"{size} python -m pytest tests/acceptance/test_fuzz.py --timeout=0",
            took_seconds=round(time.monotonic() - STARTED, 1),
            machine=machine(REPOSITORY),
            tried=Tried(
                size=f"{ANSWERED.total():,} requests",
                seed=0,
                figures={
                    "verbs": len(OPERATIONS),
                    **{f"answered with {status}": times for status, times in sorted(ANSWERED.items())},
                    "not as the OpenAPI document says": failed,
                },
                wrong=[f"{failed} verbs did not answer as documented"] if failed else [],
                legend=["Made by schemathesis from the OpenAPI document, valid and not; always the same ones."],
            ),
        )
    )


def _is_within_what_a_schema_cannot_say(case: schemathesis.Case) -> bool:
    """Only what the schema allows and the contract does not is left out, and the other way round: null for a field that
    may be left out. What else breaks the schema is all sent."""
    if not _is_sound(case):
        return not (isinstance(case.body, dict) and _has_null_left_out(case.path.removeprefix("/v1/"), case.body))
    if case.headers and "Offbook-Capture" in case.headers:
        return False
    return all(len(text.encode()) <= limit for text, limit in _limited(case.body)) and depth(case.body) <= DEEPEST


def _has_null_left_out(verb: str, body: dict[str, Any]) -> bool:
    return bool(without_nulls(body, VERBS[verb].request) != body)


def _is_sound(case: schemathesis.Case) -> bool:
    """Whether it is as the schema says."""
    return case.meta is not None and case.meta.generation.mode is schemathesis.GenerationMode.POSITIVE


def _as_can_be_expanded(body: dict[str, Any]) -> dict[str, Any]:
    """A summary or a span, of a session and forwards, from a place on: so much must be so that it can be answered."""
    going_on = {"after": "0:1"} if body.get("after") is not None else {}
    rest = {key: value for key, value in body.items() if key not in ("after", "span", "summaryId")} | going_on
    span = body.get("span")
    if span is None:
        return rest | {"summaryId": body.get("summaryId") or "L1-0001"}
    first_seq, last_seq = sorted((span["firstSeq"], span["lastSeq"]))
    session_id = span.get("sessionId") or body.get("sessionId") or "s"
    return rest | {"span": {"sessionId": session_id, "firstSeq": first_seq, "lastSeq": last_seq}}


def _as_can_be_meant(body: dict[str, Any]) -> dict[str, Any]:
    """Only told, each that is done takes a second; and what a schema cannot say of a text: more of it, and not the reason."""
    told = body | {"dryRun": True}
    return told | {"matching": "src/module_7", "reason": ""} if told.get("matching") is not None else told


def _of_what_is_there(body: dict[str, Any]) -> dict[str, Any]:
    """Every other request is about the session that is known: of the others there is nothing to show."""
    if len(str(body)) % 2:
        return body
    known = {key: value for key, value in body.items() if key != "agentId"}
    if "sessionId" in known:
        known["sessionId"] = KNOWN_SESSION
    if isinstance(known.get("span"), dict):
        known["span"] = known["span"] | {"sessionId": KNOWN_SESSION}
    return known


def _limited(value: Any) -> Iterator[tuple[str, int]]:
    for key, item in value.items() if isinstance(value, dict) else ():
        if key in LIMITS_IN_BYTES and isinstance(item, str):
            yield item, LIMITS_IN_BYTES[key]
        for inner in item if isinstance(item, list) else [item]:
            yield from _limited(inner)


def _as_a_client_sends(value: Any) -> Any:
    """Whole numbers without a fraction (a schema takes 1.0 for an integer, we do not), and no long waits."""
    if isinstance(value, dict):
        sent = {key: _as_a_client_sends(item) for key, item in value.items()}
        is_wait = isinstance(sent.get("waitMs"), int) and LONGEST_WAIT_MS < sent["waitMs"] <= 60_000
        return sent | {"waitMs": LONGEST_WAIT_MS} if is_wait else sent
    if isinstance(value, list):
        return [_as_a_client_sends(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
