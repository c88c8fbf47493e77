"""The harness without a gateway: the validator of requests can fail, and half an install is made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.host import installing
from tests.host.host_config import merged
from tests.host.installing import Host, InstallFailed
from tests.host.model_rules import INVENTED_RESULT, faults, repairs


def said(role: str, text: str = "Hello.", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **fields}


def calls(*names: str) -> dict[str, Any]:
    made = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(of: str) -> dict[str, Any]:
    return said("tool", "Done.", tool_call_id=of)


GOOD = [
    [said("system"), said("user")],
    [said("system"), said("user"), said("assistant"), said("user"), said("user")],
    [said("user"), calls("a", "b"), result("b"), result("a"), said("assistant"), said("user")],
    [said("user"), calls("a"), result("a"), calls("a"), result("a"), said("user")],
]
BAD = [
    ([], "no messages"),
    ([said("system")], "no message but the system's"),
    ([said("user"), said("robot")], "unknown role 'robot'"),
    ([said("user"), said("assistant", " ")], "empty assistant message"),
    ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "empty user message"),
    ([said("system"), said("assistant"), said("user")], "the first message is from assistant"),
    ([said("user"), said("assistant"), said("assistant")], "directly after an assistant message"),
    ([said("user"), result("a")], "did not call"),
    ([said("user"), calls("a"), result("a"), result("a")], "did not call"),
    ([said("user"), calls("a"), said("user"), result("a")], "not answered before message 2"),
    ([said("user"), calls("a", "b"), result("a"), said("assistant")], "'b' is not answered before message 3"),
    ([said("user"), calls("a")], "never answered"),
    ([said("user"), calls("a", "a"), result("a")], "twice in one message"),
]


@pytest.mark.parametrize("messages", GOOD)
def test_a_strict_provider_takes(messages: list[dict[str, Any]]) -> None:
    assert faults({"messages": messages}) == []


@pytest.mark.parametrize(("messages", "expected"), BAD)
def test_a_strict_provider_refuses(messages: list[dict[str, Any]], expected: str) -> None:
    found = faults({"messages": messages})
    assert any(expected in fault for fault in found), found


def test_a_result_that_the_host_made_up_is_a_repair() -> None:
    made_up = said("tool", f"{INVENTED_RESULT}; inserted synthetic error result.", tool_call_id="a")
    body = {"messages": [said("user"), calls("a"), made_up, said("user")]}
    assert faults(body) == []
    assert repairs(body) == ["2: the host made up the result of 'a'"]


def test_a_patch_is_merged_and_takes_out() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None, "e": 3}, "d": [2]}) == {
        "a": {"c": 2, "e": 3},
        "d": [2],
    }


def test_half_an_install_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def install(host: Host) -> None:
        made.append(host.folder)
        if len(made) == 1:
            raise InstallFailed("cut off")

    monkeypatch.setenv("OFFBOOK_TEST_HOST", str(tmp_path))
    monkeypatch.setattr(installing, "_install", install)
    with pytest.raises(InstallFailed):
        installing.installed()
    assert installing.installed().folder == tmp_path
    assert installing.installed().folder == tmp_path
    assert len(made) == 2
    (tmp_path / "complete").write_text("openclaw of another version\n")
    installing.installed()
    assert len(made) == 3
