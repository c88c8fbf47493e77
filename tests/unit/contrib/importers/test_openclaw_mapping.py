"""The importer and the plugin store the same message: both are held to the same cases."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.client.history.files import moment
from offbook.model.types import Message
from offbook.openclaw.catalogue import wire_message

CASES = json.loads(Path("tests/data/openclaw_messages.json").read_text())


def test_there_are_cases() -> None:
    assert len(CASES) >= 15


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_a_message_of_the_host_on_the_wire(case: dict[str, Any]) -> None:
    message = copy.deepcopy(case["message"])
    assert wire_message(case["entryId"], message, case["hostSessionId"]) == case["wire"]
    assert message == case["message"]


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_what_goes_on_the_wire_is_a_message(case: dict[str, Any]) -> None:
    assert msgspec.convert(case["wire"], Message).id == case["entryId"]


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("nan"), True, "1", None])
def test_what_is_no_time_of_the_host(value: Any) -> None:
    assert moment(value) is None
