"""A schema is plain, says what the check says, and what was not given is not sent."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.api.mcp import arguments
from offbook.api.mcp.tools import TOOLS
from offbook.model.errors import WrongShape

KINDS = [tool.takes for tool in TOOLS.values()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_holds_only_what_every_client_understands(kind: type[arguments.Arguments]) -> None:
    schema = arguments.schema_of(kind)
    text = json.dumps(schema)
    assert schema["type"] == "object"
    for word in ("$ref", "anyOf", "pattern", "null"):
        assert f'"{word}"' not in text
    for name, field in schema["properties"].items():
        assert {"type", "description"} <= field.keys(), name
    assert list(schema["properties"])[: len(schema["required"])] == schema["required"]


def test_needed_and_bounded() -> None:
    schema = arguments.schema_of(arguments.Record)
    assert schema["required"] == ["content", "role"]
    assert schema["properties"]["role"]["enum"] == ["assistant", "user"]
    assert arguments.schema_of(arguments.Forget)["properties"]["confirm"]["default"] is False
    limit = arguments.schema_of(arguments.Recall)["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 5)


VALUES = st.one_of(st.text(max_size=5), st.integers(-2, 200), st.booleans(), st.lists(st.text(max_size=3), max_size=2))
NAMES = sorted({name for kind in KINDS for name in arguments.schema_of(kind)["properties"]})


@given(kind=st.sampled_from(KINDS), given=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
def test_what_the_check_takes_the_schema_takes(kind: type[arguments.Arguments], given: dict[str, Any]) -> None:
    """A client that checks by the schema never keeps back what we would have taken."""
    try:
        meant = arguments.read(kind, given)
    except WrongShape:
        return
    jsonschema_rs.validate(arguments.schema_of(kind), given)
    assert given.items() <= arguments.sent(meant).items()


@pytest.mark.parametrize(
    ("given", "named"),
    [({}, "query"), ({"query": "x", "lmit": 1}, "lmit"), ({"query": 1}, "query"), ({"query": "x", "at": "soon"}, "at")],
)
def test_an_error_names_the_argument(given: dict[str, Any], named: str) -> None:
    with pytest.raises(WrongShape, match=named):
        arguments.read(arguments.Recall, given)


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        (arguments.Recall, {"query": "x", "scope": "everything"}, "`$.scope`: use one of agent, all, session"),
        (arguments.Record, {"content": "x", "role": "system"}, "`$.role`: use one of assistant, user"),
        (arguments.Recall, {"query": "x", "at": "soon"}, "`$.at`: write it as in 2026-10-03T14:02:00Z"),
        (arguments.Recall, {"query": "x", "at": "2026-10-03"}, "`$.at`: write it as in 2026-10-03T14:02:00Z"),
        (arguments.Recall, {"query": "x", "at": "2026-01-02T03:04:05"}, "write 2026-01-02T03:04:05Z if that is UTC"),
    ],
)
def test_an_error_says_what_could_be_written(kind: type[arguments.Arguments], given: dict[str, Any], says: str) -> None:
    with pytest.raises(WrongShape) as refused:
        arguments.read(kind, given)
    assert says in refused.value.detail


@pytest.mark.parametrize("at", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00", arguments.A_MOMENT])
def test_a_time_with_its_zone_is_taken(at: str) -> None:
    assert arguments.read(arguments.Recall, {"query": "x", "at": at}).at is not None


def test_null_is_as_if_it_were_not_given() -> None:
    assert arguments.sent(arguments.read(arguments.Status, {"agentId": None})) == {}
