from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

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
