from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import Result

from offbook.cli.options import Invocation
from offbook.client.history.formats import FORMATS
from offbook.model.errors import ProviderUnavailable
from offbook.model.types import Receipt
from tests.unit.cli.conftest import Run
from tests.unit.contrib.importers.foreign_files import one_of_each
from tests.unit.contrib.importers.reading_files import write_zip
from tests.unit.contrib.importers.test_openclaw_importing import Provider

TOLD_HERE = ("lcm", "mem0", "chatgpt", "claude", "claude-code", "codex", "markdown")


class Answering(Provider):
    """Keeps each session under its agent: keys of other programs do not name one."""

    is_away = False

    def __init__(self) -> None:
        super().__init__()
        self.pins: list[tuple[str, list[str]]] = []

    def pin(self, *, session_id: str, message_ids: list[str], agent_id: str) -> None:
        self.pins.append((f"agent:{agent_id}:{session_id}", message_ids))

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def ping(self) -> None:
        if self.is_away:
            raise ProviderUnavailable("no provider answers")

    def missing(self, session: str, ids: list[str], *, agent_id: str) -> list[str]:
        return super().missing(f"agent:{agent_id}:{session}", ids, agent_id=agent_id)

    def on_message(self, session: str, *messages: dict[str, Any], agent_id: str) -> Receipt:
        return super().on_message(f"agent:{agent_id}:{session}", *messages, agent_id=agent_id)

    def log(self, session: str, *, limit: int, newest: bool, agent_id: str) -> dict[str, Any]:
        return super().log(f"agent:{agent_id}:{session}", limit=limit, newest=newest, agent_id=agent_id)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    provider = Answering()
    monkeypatch.setattr(Invocation, "client", lambda _, **__: provider)
    return provider


def test_what_was_pinned_in_swap_jsonl_is_pinned_when_it_comes(run: Run, tmp_path: Path, answering: Answering) -> None:
    said = [{"id": id_, "role": "user", "content": f"Number {id_}.", "sessionKey": "chat"} for id_ in "abc"]
    said[1] |= {"pinned": True}  # type: ignore[dict-item]
    file = tmp_path / "swap.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in said))
    assert run("import", "swap-jsonl", str(file), "--agent", "ann", "--dry-run").exit_code == 0
    assert answering.pins == []
    for _ in range(2):  # what is there already may have been unpinned since
        assert run("import", "swap-jsonl", str(file), "--agent", "ann").exit_code == 0
        assert answering.pins == [("agent:ann:chat", ["b"])]


@pytest.mark.parametrize("name", TOLD_HERE)
def test_each_format_is_stored_once_however_often(run: Run, tmp_path: Path, answering: Answering, name: str) -> None:
    path, count = one_of_each(tmp_path)[name]
    dry = run("import", name, str(path), "--dry-run", "--json")
    assert (dry.exit_code, json.loads(dry.stdout)["agents"][0]["new"]) == (0, count)
    assert answering.sessions == {}
    first = run("import", name, str(path))
    assert first.exit_code == 0, first.output
    assert f": {count} stored, 0 already there" in first.stdout
    held = {key: list(messages) for key, messages in answering.sessions.items()}
    again = run("import", name, str(path))
    assert f": 0 stored, {count} already there" in again.stdout
    assert {key: list(messages) for key, messages in answering.sessions.items()} == held


def test_the_agent_is_the_one_named_else_that_of_the_key_else_the_default(
    run: Run, tmp_path: Path, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = one_of_each(tmp_path)
    run("import", "markdown", str(files["markdown"][0]))
    run("import", "markdown", str(files["markdown"][0]), "--agent", "ann")
    run("import", "lcm", str(files["lcm"][0]))
    monkeypatch.setenv("OFFBOOK_AGENT", "env")
    run("import", "mem0", str(files["mem0"][0]))
    monkeypatch.delenv("OFFBOOK_AGENT")
    monkeypatch.setenv("OFFBOOK_DEFAULT_AGENT", "usual")
    run("import", "claude", str(files["claude"][0]))
    assert list(answering.sessions) == [
        "agent:main:markdown:MEMORY.md",
        "agent:ann:markdown:MEMORY.md",
        "agent:main:agent:main:main",
        "agent:env:mem0:ann",
        "agent:usual:claude:u1",
    ]


def test_a_key_that_names_an_agent_that_cannot_be_asks_for_one(run: Run, tmp_path: Path, answering: Answering) -> None:
    file = tmp_path / "swap.jsonl"
    line = {"id": "1", "role": "user", "content": "I like tea.", "sessionKey": f"agent:{'p' * 129}:chat"}
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    refused = run("import", "swap-jsonl", str(file))
    assert (refused.exit_code, answering.sessions) == (1, {})
    assert "with --agent" in refused.stderr
    assert run("import", "swap-jsonl", str(file), "--agent", "ann").exit_code == 0
    assert list(answering.sessions) == [f"agent:ann:{line['sessionKey']}"]


def test_what_is_left_out_is_told_with_its_reason(run: Run, tmp_path: Path, answering: Answering) -> None:
    folder = one_of_each(tmp_path)["claude"][0].parent
    (folder / "users.json").write_text("[]", encoding="utf-8")
    result = run("import", "claude", str(folder))
    assert "left out: 1 list of users: they say who holds the account" in result.stdout


def test_what_could_not_be_read_fails_and_the_rest_is_stored(run: Run, tmp_path: Path, answering: Answering) -> None:
    path, count = one_of_each(tmp_path)["markdown"]
    (path / "latin.md").write_bytes(b"caf\xe9")
    result = run("import", "markdown", str(path))
    assert result.exit_code == 1
    assert f": {count} stored" in result.stdout
    assert "latin.md: not UTF-8 at byte 3: save it as UTF-8" in result.stderr


def test_names_that_are_not_utf8_are_told(run: Run, tmp_path: Path, answering: Answering) -> None:
    folder = tmp_path / os.fsdecode(b"od\xffd")
    folder.mkdir()
    (folder / os.fsdecode(b"\xfe.md")).write_bytes(b"fine")
    (folder / os.fsdecode(b"bad\xfe.md")).write_bytes(b"\xff")
    result = run("import", "markdown", str(folder), "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["agents"][0]["new"], report["unreadable"]) == (1, 1)


def test_a_damaged_line_is_skipped_and_named(run: Run, tmp_path: Path, answering: Answering) -> None:
    session = one_of_each(tmp_path)["claude-code"][0] / "app" / "s1.jsonl"
    session.write_text(session.read_text(encoding="utf-8") + "\n{broken\n", encoding="utf-8")
    result = run("import", "claude-code", str(session))
    assert result.exit_code == 0
    assert "s1.jsonl line 2: not JSON" in result.stderr


def test_without_a_provider_nothing_is_begun(run: Run, tmp_path: Path, answering: Answering) -> None:
    answering.is_away = True
    path, _ = one_of_each(tmp_path)["markdown"]
    assert run("import", "markdown", str(path)).exit_code == 3
    dry = run("import", "markdown", str(path), "--dry-run")
    assert (dry.exit_code, "not known" in dry.stdout) == (0, True)


def test_a_path_that_is_not_there(run: Run, tmp_path: Path, answering: Answering) -> None:
    result = run("import", "markdown", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


@pytest.mark.parametrize("name", FORMATS)
def test_help_has_examples(run: Run, name: str) -> None:
    result = run("import", name, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"offbook import {name} {FORMATS[name].examples[0]}" in result.stdout


@pytest.mark.parametrize(("name", "file"), [("lcm", "lcm.db"), ("continuity-db", "continuity.db")])
def test_a_folder_without_the_database_says_what_to_give(
    run: Run, tmp_path: Path, answering: Answering, name: str, file: str
) -> None:
    result = run("import", name, str(tmp_path))
    assert result.exit_code == 1
    assert f"holds no {file}: give the file itself, or the folder that holds it" in " ".join(result.stderr.split())


@pytest.mark.parametrize("content", ["# Memory\n\nAda drinks tea.\n", '{"text": "no message"}\n'])
def test_a_file_of_which_nothing_can_be_read_fails(
    run: Run, tmp_path: Path, answering: Answering, content: str
) -> None:
    (tmp_path / "MEMORY.md").write_text(content)
    assert run("import", "swap-jsonl", str(tmp_path / "MEMORY.md")).exit_code == 1
    (tmp_path / "empty.jsonl").write_text("")
    assert run("import", "swap-jsonl", str(tmp_path / "empty.jsonl")).exit_code == 1


@pytest.mark.parametrize(("file", "status"), [("x.json", 1), ("x.py", 1), ("x.txt", 0), ("X.MD", 0)])
def test_a_file_that_is_no_markdown_is_refused_with_what_to_do(
    run: Run, tmp_path: Path, answering: Answering, file: str, status: int
) -> None:
    (tmp_path / file).write_text('{"a": 1}')
    result = run("import", "markdown", str(tmp_path / file))
    assert result.exit_code == status, result.output
    assert ("rename it if it is some" in result.stderr) == bool(status)
    assert bool(answering.sessions) == (not status)


def test_lines_without_a_type_are_told_as_such(run: Run, tmp_path: Path, answering: Answering) -> None:
    (tmp_path / "s.jsonl").write_text('{"a": 1}\n{"b": 2}\n')
    result = run("import", "claude-code", str(tmp_path / "s.jsonl"))
    assert result.exit_code == 1
    assert "None" not in result.output
    assert "left out: 2 lines that say no type" in result.stdout


def test_a_summary_whose_page_is_missing_is_told_without_an_empty_warning(
    run: Run, tmp_path: Path, answering: Answering
) -> None:
    (tmp_path / "L1").mkdir()
    (tmp_path / "L1" / "0001.md").write_text("Ada drinks tea.")
    index = {"levels": {"L1": [{"id": "0001"}, {"id": "0002"}]}}
    (tmp_path / "index.json").write_text(json.dumps(index))
    result = run("import", "summaries", str(tmp_path))
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert not [line for line in lines if line.strip() == "!"]
    assert "1 thing to look at" in result.stderr


# ── the wrong thing, and nothing at all ───────────────────────────────────────────────────────

OF_A_FILE = [name for name in FORMATS if name != "summaries"]


def told(result: Result) -> str:
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("content", ["", "[]", "{}", " \n\n"])
@pytest.mark.parametrize("name", OF_A_FILE)
def test_a_file_in_which_nothing_is_a_message_fails_and_says_what_to_give(
    run: Run, tmp_path: Path, answering: Answering, name: str, content: str
) -> None:
    path = tmp_path / ("2026-05-10.md" if name == "markdown" else "conversations.json")
    path.write_text(content)
    if name == "markdown" and content.strip():
        return  # a note of two letters
    result = run("import", name, str(path))
    assert result.exit_code == 1, result.output
    assert FORMATS[name].give in told(result) or "copy or export it again" in told(result)
    assert "holds no conversations.json" not in told(result)
    report = json.loads(run("import", name, str(path), "--json", "--dry-run").stdout)
    assert len(report["problems"]) >= 1
    assert answering.sessions == {}


def test_a_folder_of_which_nothing_is_taken_fails(run: Run, tmp_path: Path, answering: Answering) -> None:
    (tmp_path / "notes.md").write_text("---\ntitle: x\n---\n")
    result = run("import", "markdown", str(tmp_path))
    assert result.exit_code == 1
    assert "left out: 1 front matter" in result.stdout
    assert "nothing in it is a message" in told(result)


@pytest.mark.parametrize("name", FORMATS)
def test_a_zip_or_a_database_of_something_else_is_told_in_one_line(
    run: Run, tmp_path: Path, answering: Answering, name: str
) -> None:
    lines = "\n".join(f"{number} " + "wörter" * number for number in range(200))
    packed = write_zip(tmp_path / "x.zip", {"other.txt": lines, "b.bin": os.urandom(5_000)})
    database = tmp_path / "x.db"
    apsw.Connection(str(database)).execute("CREATE TABLE t (a)")
    for path in (packed, database):
        result = run("import", name, str(path))
        assert result.exit_code == 1
        lines_told = [line for line in result.stderr.splitlines() if not line.startswith("!")]
        assert len(lines_told) == 1, result.stderr
        assert FORMATS[name].give in told(result) or name == "markdown", result.stderr
        assert "codec" not in result.stderr


@pytest.mark.parametrize("name", ["chatgpt", "claude"])
def test_a_zip_that_was_cut_off_is_called_damaged(run: Run, tmp_path: Path, answering: Answering, name: str) -> None:
    path = write_zip(
        tmp_path / "x.zip", {"conversations.json": json.dumps([{"a": "b" * number} for number in range(99)])}
    )
    path.write_bytes(path.read_bytes()[:-40])
    result = run("import", name, str(path))
    assert result.exit_code == 1
    assert "the zip is damaged or was not copied to its end: download or copy it again" in told(result)
    assert "JSON" not in result.stderr


def test_an_export_of_the_other_program_is_told_once_with_the_command(
    run: Run, tmp_path: Path, answering: Answering
) -> None:
    of_claude = json.dumps([{"uuid": f"u{number}", "chat_messages": []} for number in range(30)])
    of_chatgpt = json.dumps([{"id": f"c{number}", "mapping": {}} for number in range(30)])
    for name, other, content in (("chatgpt", "claude", of_claude), ("claude", "chatgpt", of_chatgpt)):
        path = write_zip(tmp_path / f"{other}.zip", {"conversations.json": content})
        result = run("import", name, str(path))
        assert result.exit_code == 1
        assert f"`offbook import {other}` reads them" in told(result)
        assert "1 file or database not read to the end" in told(result)


# ── counts as they are said ───────────────────────────────────────────────────────────────────


def test_one_of_a_kind_is_told_as_one(run: Run, tmp_path: Path, answering: Answering) -> None:
    memories = {"results": [{"id": "1", "memory": "Ada drinks tea."}], "relations": [{"a": 1}]}
    (tmp_path / "mem0.json").write_text(json.dumps(memories))
    assert "left out: 1 relation of the graph: " in run("import", "mem0", str(tmp_path / "mem0.json")).stdout
    memories["relations"] *= 2
    (tmp_path / "mem0.json").write_text(json.dumps(memories))
    assert "left out: 2 relations of the graph: " in run("import", "mem0", str(tmp_path / "mem0.json")).stdout
