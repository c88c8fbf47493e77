from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import jsonschema_rs
import pytest

from offbook.api.openapi import openapi_document


def descriptions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(told := value.get("description"), str):
            yield told
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from descriptions(each)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("CompressedContext", "builtAt"),
        ("LogLine", "receivedAt"),
        ("Status", "startedAt"),
        ("Session", "startedAt"),
        ("Session", "endedAt"),
        ("AuditEvent", "at"),
        ("Capture", "lastSeen"),
        ("Message", "ts"),
    ],
)
def test_a_time_is_told_as_a_time(name: str, field: str) -> None:
    schema = openapi_document()["components"]["schemas"][name]["properties"][field]
    assert [each.get("format") for each in schema.get("anyOf", [schema]) if each["type"] == "string"] == ["date-time"]


def test_nothing_else_is_told_as_a_time() -> None:
    schemas = openapi_document()["components"]["schemas"]
    timed = {
        field for each in schemas.values() for field, schema in each["properties"].items() if "date-time" in str(schema)
    }
    assert timed <= {"ts", "since", "at", "lastAt", "lastSeen", "builtAt", "endedAt", "startedAt", "receivedAt"} | {
        "firstAt",
        "firstSeen",
        "madeAt",
        "handedAt",
        "lastRun",
        "lastSuccess",
        "nextRun",
    }


def test_descriptions_have_no_indentation() -> None:
    told = list(descriptions(openapi_document()))
    assert any("\n" in each for each in told)
    assert all(each == cleandoc(each) for each in told)


@pytest.mark.parametrize("verb", ["Pin", "Unpin"])
@pytest.mark.parametrize(
    ("named", "is_valid"),
    [
        ({"keyword": "x"}, True),
        ({"entryIds": ["m100000001"], "sessionId": "s"}, True),
        ({"sessionId": "s", "messageIds": ["a"]}, True),
        ({"sessionId": "s", "keyword": "x", "messageIds": ["a"], "entryIds": None}, True),
        ({"keyword": "x", "messageIds": None}, True),
        ({"keyword": "x", "messageIds": ["a"]}, False),
        ({"sessionId": "s", "entryIds": [], "messageIds": ["a"]}, False),
        ({"messageIds": ["a"]}, False),
        ({}, False),
    ],
)
def test_message_ids_are_pinned_with_their_session_only(verb: str, named: dict[str, object], is_valid: bool) -> None:
    ways = {"anyOf": openapi_document()["components"]["schemas"][verb]["anyOf"]}
    assert jsonschema_rs.is_valid(ways, named) is is_valid
