from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.contrib.coding.capture import LONGEST_DOCUMENT_BYTES, Document, read_document
from offbook.model.errors import InvalidInput


def test_what_claude_code_sends() -> None:
    raw = {
        "session_id": "abc",
        "transcript_path": "/home/ann/.claude/projects/app/abc.jsonl",
        "cwd": "/src/app",
        "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit",
        "prompt": "你好 🐈",
    }
    assert read_document(json.dumps(raw).encode()) == Document(
        event="UserPromptSubmit",
        session_id="abc",
        transcript=Path("/home/ann/.claude/projects/app/abc.jsonl"),
        prompt="你好 🐈",
    )


def test_what_codex_sends_its_hooks_and_its_notify_program() -> None:
    start = '{"session_id":"s","transcript_path":null,"cwd":"/","hook_event_name":"SessionStart","source":"clear"}'
    assert read_document(start) == Document(event="SessionStart", session_id="s", source="clear")
    notify = '{"type":"agent-turn-complete","thread-id":"t","turn-id":"1","cwd":"/","input-messages":["x"]}'
    assert read_document(notify) == Document(event="Stop", session_id="t")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"{}",
        b'{"session_id": 3}',
        b"\xff\xfe",
        b"[" * 200_000,
        b" " * (LONGEST_DOCUMENT_BYTES + 1),
    ],
)
def test_what_is_no_document_is_told(raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_document(raw)


def test_a_path_with_nul_is_none() -> None:
    assert read_document('{"session_id":"s","transcript_path":"/a\\u0000b"}').transcript is None


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["session_id", "prompt", "transcript_path", "source", "x"]), st.text() | st.integers()
    )
)
def test_whatever_is_in_it_is_read_or_refused(fields: dict[str, object]) -> None:
    try:
        read_document(json.dumps(fields))
    except InvalidInput:
        assert not isinstance(fields.get("session_id"), str) or not fields["session_id"]
