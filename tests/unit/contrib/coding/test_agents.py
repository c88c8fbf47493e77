from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from offbook.client.history.conversations import Ready
from offbook.client.history.files import TranscriptLine
from offbook.contrib.coding.capture import Document, rollout_of, session_of
from offbook.contrib.importers.claude_code import Skipped

ID = "0199f0c2-1c1e-7a31-9d7e-2f1f5f6a7b8c"


def test_a_session_of_claude_code_has_the_key_of_the_importer(tmp_path: Path) -> None:
    path = tmp_path / "abc.jsonl"
    document = Document(event="Stop", session_id="other", transcript=path)
    assert session_of("claude-code", document, {}) == ("claude-code:abc", None, None, False)
    path.write_text("")
    (tmp_path / "old.jsonl").write_text("")
    session = session_of("claude-code", document, {})
    assert session.transcript == path
    assert session.read_line is not None
    copied = {"type": "user", "uuid": "u", "sessionId": "old", "message": {"role": "user", "content": "Hi"}}
    assert isinstance(session.read_line(TranscriptLine(1, copied, "")), Skipped)
    own = session.read_line(TranscriptLine(1, copied | {"sessionId": "abc"}, ""))
    assert not isinstance(own, Skipped)


def test_a_rollout_is_found_by_its_session(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "05" / "01"
    day.mkdir(parents=True)
    path = day / f"rollout-2026-05-01T10-00-00-{ID}.jsonl"
    path.write_text(json.dumps({"type": "session_meta", "payload": {"id": ID, "cwd": "/src"}}) + "\n")
    session = session_of("codex", Document(event="Stop", session_id=ID), {"CODEX_HOME": str(tmp_path)})
    assert (session.key, session.transcript) == (f"codex:{ID}", path)
    for name in ("", "../x", "*", "CON", ID[:-1], f"{ID}/.."):
        assert rollout_of(name, tmp_path) is None


def test_a_sub_agent_is_somebody_elses_errand(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    path.write_text(
        json.dumps({"type": "session_meta", "payload": {"id": ID, "source": {"subagent": "review"}}}) + "\n"
    )
    assert session_of("codex", Document(event="Stop", session_id=ID, transcript=path), {}).is_sub_agent


def test_a_fork_of_codex_tells_only_what_is_its_own(tmp_path: Path) -> None:
    def line(kind: str, at: str, **payload: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": at, "payload": payload}

    def said(text: str, at: str) -> dict[str, Any]:
        return line("response_item", at, type="message", role="user", content=[{"type": "input_text", "text": text}])

    day, fork = tmp_path / "sessions" / "2026" / "05" / "01", ID.replace("0199", "0200")
    day.mkdir(parents=True)
    before, then = "2026-05-01T10:00:00Z", "2026-05-01T12:00:00Z"
    parent = day / f"rollout-2026-05-01T10-00-00-{ID}.jsonl"
    parent.write_text("\n".join(map(json.dumps, [line("session_meta", before, id=ID), said("One", before)])) + "\n")
    path = day / f"rollout-2026-05-01T12-00-00-{fork}.jsonl"
    path.write_text(json.dumps(line("session_meta", then, id=fork, forked_from_id=ID, timestamp=then)) + "\n")

    def told() -> list[bool]:
        session = session_of("codex", Document(event="Stop", session_id=fork), {"CODEX_HOME": str(tmp_path)})
        assert session.read_line is not None
        lines = [said("One", then), said("One", then), said("One", "2026-05-01T13:00:00Z")]
        return [
            isinstance(session.read_line(TranscriptLine(number, each, "")), Ready)
            for number, each in enumerate(lines, 2)
        ]

    assert told() == [False, True, True]
    parent.unlink()
    assert told() == [True, True, True]


def test_a_folder_is_no_transcript(tmp_path: Path) -> None:
    for agent in ("claude-code", "codex"):
        document = Document(event="Stop", session_id=ID, transcript=tmp_path)
        assert session_of(agent, document, {}).transcript is None
