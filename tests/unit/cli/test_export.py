"""`offbook export` and `offbook import offbook`: what they write, what they tell, and what they refuse to touch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from offbook import Client
from offbook.cli.options import Invocation
from offbook.model.errors import ProviderRefused, ProviderUnavailable
from offbook.model.home import Home, safe_name
from offbook.model.record import (
    FOLLOWS_REFUSED,
    AgentRecord,
    ExportPage,
    Followed,
    Imported,
    MarkRecord,
    MessageRecord,
    Record,
    RecordedSpan,
    RefusedRecord,
    SessionRecord,
    SummaryRecord,
)
from offbook.model.summary import SummaryPage
from offbook.model.types import BlobRef, Message
from offbook.projections.wiki.index_page import agent_index
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_import_files import Answering

AT = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


def said(seq: int, text: str = "Something that was said.", session: str = "chat") -> MessageRecord:
    return MessageRecord(session_id=session, seq=seq, message=Message(role="user", content=text, ts=AT))


def memory(agent_id: str, messages: int = 3) -> list[Record]:
    return [
        AgentRecord(agent_id=agent_id),
        SessionRecord(session_id="chat", started_at=AT),
        *(said(seq) for seq in range(1, messages + 1)),
        MarkRecord(session_id="chat", seq=messages, kind="end", at=AT),
    ]


def summary(id_: str, last_seq: int, sources: Sequence[str] = ()) -> SummaryRecord:
    return SummaryRecord(
        id=id_,
        level=int(id_[1]),
        spans=[RecordedSpan(session_id="chat", first_seq=1, last_seq=last_seq, first_at=AT, last_at=AT)],
        text="x",
        rank=[0],
        brief="x",
        source_messages=1,
        source_tokens=1,
        tokens=1,
        first_at=AT,
        last_at=AT,
        summarizer="extractive",
        prompt_version="1",
        fingerprint="f",
        sources=list(sources),
    )


IMPORTED: list[Record] = [
    SessionRecord(session_id="summaries:old", started_at=AT),
    MessageRecord(
        session_id="summaries:old",
        seq=1,
        message=Message(
            id="L1-0001",
            role="assistant",
            content="They spoke of tea.",
            ts=AT,
            origin="memory:summaries",
            meta={"summary": {"id": "0001", "level": "L1"}, "comment": "", "index": {}},
        ),
    ),
]
"""A summary of the plugin's, which its format has a place for."""


class Moving:
    """A provider with these memories, that remembers what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
        self.memories: dict[str, list[Record]] = {"main": memory("main")}
        self.given: dict[str, list[Record]] = {}
        self.follows: list[Followed | None] = []
        self.done: list[str] = []
        self.refused: dict[str, str] = {}
        self.breaks_after = 10**9
        self.home = home
        for name in ("ping", "status", "export", "import_records", "summaries", "maintain"):
            answer = getattr(self, name)
            monkeypatch.setattr(Client, name, lambda _, *given, answer=answer, **named: answer(*given, **named))

    def ping(self) -> dict[str, Any]:
        return {}

    def status(self, agent_id: str | None = None) -> dict[str, Any]:
        messages = sum(isinstance(each, MessageRecord) for each in self.memories.get(agent_id or "main", ()))
        return {"agents": sorted(self.memories), "counts": {"messages": messages}}

    def export(self, after: str | None = None, *, agent_id: str) -> ExportPage:
        first = int(after or 0)
        if first >= self.breaks_after:
            raise ProviderUnavailable("nobody answers")
        page = self.memories[agent_id][first : first + 2]
        is_last = first + 2 >= len(self.memories[agent_id])
        return ExportPage(agent_id=agent_id, records=page, next=None if is_last else str(first + 2))

    def import_records(
        self, records: Sequence[Record], *, agent_id: str, follows: Followed | None = None, done: bool = False
    ) -> Imported:
        if len(self.given.get(agent_id, ())) >= self.breaks_after:
            raise ProviderUnavailable("nobody answers")
        if len(records) > 4:
            raise ProviderRefused({"status": 413, "detail": "the request is too large", "retryable": False})
        self.given.setdefault(agent_id, []).extend(records)
        self.follows.append(follows)
        self.done += [agent_id] if done else []
        refused = (
            [RefusedRecord(record=name, reason=reason) for name, reason in self.refused.items()] if records else []
        )
        self.refused = {} if records else self.refused
        return Imported(agent_id=agent_id, taken=len(records) - len(refused), already_there=0, refused=refused)

    def summaries(self, **_: Any) -> SummaryPage:
        return SummaryPage(summaries=[])

    def maintain(self, *, tasks: Sequence[str], agent_id: str) -> None:
        raise ProviderRefused({"status": 422, "detail": "there is no task 'wiki'", "retryable": False})


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch, home: Home) -> Moving:
    return Moving(monkeypatch, home)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ── out ───────────────────────────────────────────────────────────────────────────────────────


def test_everything_is_written_and_told(run: Run, moving: Moving, here: Path) -> None:
    moving.memories["../x"] = memory("../x", 1)
    result = run("export", "out")
    assert result.exit_code == 0, result.output
    index = json.loads((here / "out" / "export.json").read_text())
    assert [agent["agentId"] for agent in index["agents"]] == ["../x", "main"]
    assert index["format"] == 1
    lines = (here / "out" / "agents" / "main" / "memory.jsonl").read_text().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["agent", "session", *["message"] * 3, "mark"]
    assert "offbook import offbook" in result.output
    assert sorted(path.name for path in here.iterdir() if path.name != "home") == ["out"]


def test_without_a_name_the_day_names_it(run: Run, moving: Moving, here: Path) -> None:
    assert run("export").exit_code == 0
    assert [path.name for path in here.glob("offbook-export-????-??-??")]
    again = run("export")
    assert again.exit_code == 1
    assert "is not empty" in again.output


def test_as_json_it_is_one_document(run: Run, moving: Moving, here: Path) -> None:
    report = json.loads(run("export", "out", "--json").output)
    assert report["agents"] == [{"agentId": "main", "folder": "agents/main", "records": 6}]
    assert report["folder"] == str(here / "out")


@pytest.mark.parametrize("form", ["offbook", "swap-jsonl", "archive"])
def test_parts_that_could_not_be_read_back_are_counted(run: Run, moving: Moving, here: Path, form: str) -> None:
    part = BlobRef(path=[], sha256="0" * 64, chars=9, bytes=9)
    records = memory("main")
    moving.memories["main"] = [
        msgspec.structs.replace(record, missing_parts=[part]) if isinstance(record, MessageRecord) else record
        for record in records
    ]
    result = run("export", "out", "--format", form, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["agents"][0]["missingParts"] == 3
    assert "3 large parts of messages of main could not be read back" in result.stderr
    assert (here / "out").is_dir()


def test_a_folder_with_something_in_it_is_left_alone(run: Run, moving: Moving, here: Path) -> None:
    (here / "out").mkdir()
    assert run("export", "out").exit_code == 0
    (here / "full").mkdir()
    (here / "full" / "mine").write_text("mine")
    for name, told in (("full", "is not empty"), ("full/mine", "is a file")):
        result = run("export", name)
        assert result.exit_code in (1, 2)
        assert told in result.output
    assert [path.name for path in (here / "full").iterdir()] == ["mine"]


def test_it_appears_whole_or_not_at_all(run: Run, moving: Moving, here: Path) -> None:
    moving.breaks_after = 4
    result = run("export", "out")
    assert result.exit_code == 3
    assert sorted(path.name for path in here.iterdir() if path.name != "home") == []


def test_an_agent_that_is_not_there_is_told_with_those_that_are(run: Run, moving: Moving) -> None:
    result = run("export", "out", "--agent", "nobody")
    assert result.exit_code == 2
    assert "there is: main" in result.output


def test_what_was_made_of_messages_that_came_too_late_is_left_out(run: Run, moving: Moving, here: Path) -> None:
    moving.memories["main"] += [
        summary("L1-0001", 3),
        summary("L1-0002", 9),
        summary("L2-0001", 3, ["L1-0001", "L1-0002"]),
    ]
    result = run("export", "out")
    assert "2 summaries and lessons of main left out" in result.output
    lines = (here / "out" / "agents" / "main" / "memory.jsonl").read_text().splitlines()
    assert [json.loads(line).get("id") for line in lines[-2:]] == [None, "L1-0001"]


@pytest.mark.parametrize("form", ["swap-jsonl", "summaries", "archive"])
def test_the_formats_of_others_are_written(run: Run, moving: Moving, here: Path, form: str) -> None:
    result = run("export", "out", "--format", form, "--json")
    assert result.exit_code == 0, result.output
    (agent,) = json.loads(result.output)["agents"]
    assert agent["agentId"] == "main"
    assert [path for path in (here / "out").rglob("*") if path.is_file()]
    moving.memories["second"] = memory("second")
    assert run("export", "both", "--format", form).exit_code == 0
    assert sorted(path.name for path in (here / "both").iterdir()) == ["agents.json", "main", "second"]


@pytest.mark.parametrize("form", ["swap-jsonl", "summaries", "archive"])
@pytest.mark.parametrize("others", [[], ["bob", "../X 🦉" * 9]], ids=["one agent", "several"])
def test_what_was_written_for_others_is_read_back_into_its_agents(
    run: Run, moving: Moving, monkeypatch: pytest.MonkeyPatch, form: str, others: list[str]
) -> None:
    """Also where another is the default, where keys name another, and where one has nothing."""
    agents = others or ["bob"]
    moving.memories = {name: [*memory(name), *IMPORTED, said(5, session="agent:ada:chat")] for name in agents}
    if others:
        moving.memories["silent"] = [AgentRecord(agent_id="silent")]
    out = run("export", "out", "--format", form)
    assert out.exit_code == 0, out.output
    assert f"the way back: offbook import {form} " in out.output
    provider = Answering()
    monkeypatch.setattr(Invocation, "client", lambda _, **__: provider)
    dry = run("import", form, "out", "--dry-run", "--json")
    assert (dry.exit_code, provider.sessions) == (0, {})
    told = {agent["agentId"]: (agent["new"], agent["alreadyThere"]) for agent in json.loads(dry.stdout)["agents"]}
    stored = run("import", form, "out", "--json")
    assert stored.exit_code == 0, stored.output
    count = 1 if form == "summaries" else 4
    assert told == dict.fromkeys(agents, (count, 0))
    held = {key: list(messages) for key, messages in provider.sessions.items()}
    assert {name for name in agents if any(key.startswith(f"agent:{name}:") for key in held)} == set(agents)
    assert not any(key.startswith(("agent:main:", "agent:ada:")) for key in held)
    again = run("import", form, "out", "--json")
    told = {agent["agentId"]: (agent["new"], agent["alreadyThere"]) for agent in json.loads(again.stdout)["agents"]}
    assert (again.exit_code, told) == (0, dict.fromkeys(agents, (0, count)))
    assert {key: list(messages) for key, messages in provider.sessions.items()} == held


def test_another_name_is_for_one_agent_and_another_format_is_named(
    run: Run, moving: Moving, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving.memories["second"] = memory("second")
    assert run("export", "out", "--format", "archive").exit_code == 0
    provider = Answering()
    monkeypatch.setattr(Invocation, "client", lambda _, **__: provider)
    both = run("import", "archive", "out", "--agent", "third")
    assert (both.exit_code, "holds 2 agents" in both.stderr) == (2, True)
    other = run("import", "swap-jsonl", "out")
    assert (other.exit_code, "`offbook import archive`" in other.stderr) == (1, True)
    assert run("import", "archive", "out/second", "--agent", "third").exit_code == 0
    assert list(provider.sessions) == ["agent:third:chat"]


@pytest.mark.parametrize("folder", ["..", "/", "main/../second", "."])
def test_an_index_that_leads_elsewhere_is_refused(
    run: Run, moving: Moving, here: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    moving.memories["second"] = memory("second")
    assert run("export", "out", "--format", "archive").exit_code == 0
    provider = Answering()
    monkeypatch.setattr(Invocation, "client", lambda _, **__: provider)
    index = json.loads((here / "out" / "agents.json").read_text())
    index["agents"][1]["folder"] = folder
    (here / "out" / "agents.json").write_text(json.dumps(index))
    result = run("import", "archive", "out")
    assert (result.exit_code, provider.sessions) == (1, {})
    assert "the folder of agent 'second' would be 'second'" in result.stderr


def test_what_is_left_out_of_several_agents_says_whose_it_is(run: Run, moving: Moving) -> None:
    moving.memories["second"] = [*memory("second"), said(4, session="x")]
    result = run("export", "both", "--format", "summaries")
    assert result.exit_code == 0, result.output
    assert "left out of second: " in result.stdout
    assert "left out: " in run("export", "one", "--format", "summaries", "--agent", "second").stdout


def test_a_folder_whose_parent_is_not_there_is_refused_and_not_made(run: Run, moving: Moving, here: Path) -> None:
    result = run("export", str(here / "a" / "b"))
    assert result.exit_code == 1
    assert "make it first" in result.output
    assert not (here / "a").exists()


def test_a_file_that_is_no_export_says_what_to_give(run: Run, moving: Moving, here: Path) -> None:
    for text in ('[{"memory": "tea"}]', "tea", ""):
        (here / "mem0.json").write_text(text)
        result = run("import", "offbook", "mem0.json")
        assert result.exit_code == 1
        assert "give the folder that `offbook export` made" in " ".join(result.output.split())


def test_the_wiki_is_copied_where_it_is_at_hand(run: Run, moving: Moving, here: Path, home: Home) -> None:
    result = run("export", "out", "--format", "wiki")
    assert result.exit_code == 1
    assert "no pages" in result.output
    (home.wiki / "main").mkdir(parents=True)
    (home.wiki / "main" / "index.md").write_text("# main")
    result = run("export", "out", "--format", "wiki")
    assert result.exit_code == 0, result.output
    assert "as they were last written" in result.output
    assert "run `offbook maintain` first" in result.output
    assert (here / "out" / "main" / "index.md").read_text() == "# main"
    elsewhere = run("--url", "http://127.0.0.1:1", "export", "more", "--format", "wiki")
    assert "on its machine" in elsewhere.output


def test_a_link_in_the_wiki_that_leads_nowhere_is_left_out_and_named(
    run: Run, moving: Moving, here: Path, home: Home
) -> None:
    notes = home.wiki / "main" / "notes"
    notes.mkdir(parents=True)
    (notes / "mine.md").write_text("mine")
    (notes / "there.md").symlink_to("mine.md")
    (notes / "gone.md").symlink_to("nowhere.md")
    (notes / "round").symlink_to("..")
    result = run("export", "out", "--format", "wiki")
    assert result.exit_code == 0, result.output
    assert "left out: 2 links that cannot be followed: nothing is where they lead, or they lead back:" in result.output
    assert sorted(path.name for path in (here / "out" / "main" / "notes").iterdir()) == ["mine.md", "there.md"]
    report = json.loads(run("export", "more", "--format", "wiki", "--json").stdout)
    assert report["agents"][0]["leftOut"][0]["count"] == 2
    assert str(notes / "gone.md") in report["agents"][0]["leftOut"][0]["why"]


def test_a_page_that_cannot_be_copied_is_named(run: Run, moving: Moving, here: Path, home: Home) -> None:
    (home.wiki / "main").mkdir(parents=True)
    os.mkfifo(home.wiki / "main" / "pipe")
    result = run("export", "out", "--format", "wiki")
    assert result.exit_code == 1
    assert "pipe cannot be copied" in " ".join(result.output.split())
    assert "[(" not in result.output
    assert not (here / "out").exists()


def test_pages_of_some_agents_have_an_index_that_names_those(run: Run, moving: Moving, here: Path, home: Home) -> None:
    """An agent's page leads to it."""
    moving.memories["../x 🦉"] = memory("../x 🦉", 1)
    moving.memories["silent"] = memory("silent", 1)
    for name in ("main", safe_name("../x 🦉")):
        (home.wiki / name).mkdir(parents=True)
        page = agent_index(name, days=[], newest=[], sessions=0, cold_pages=0, lessons=[])
        (home.wiki / name / "index.md").write_text(page)
    (home.wiki / "index.md").write_text("# names everybody")
    for given, named in ((("--agent", "main"), ["main"]), ((), ["../x 🦉", "main"])):
        folder = here / f"out{len(named)}"
        assert run("export", folder.name, "--format", "wiki", *given).exit_code == 0
        for page in folder.rglob("*.md"):
            for target in re.findall(r"\]\(<?([^)>]+)", page.read_text()):
                assert (page.parent / unquote(target)).is_file(), (page, target)
        index = (folder / "index.md").read_text()
        assert sorted(re.findall(r"- \[(.*?)\]", index)) == named


# ── in ────────────────────────────────────────────────────────────────────────────────────────


def exported(run: Run, moving: Moving, name: str = "out") -> None:
    assert run("export", name).exit_code == 0


def test_everything_is_given_back_in_order(run: Run, moving: Moving) -> None:
    exported(run, moving)
    result = run("import", "offbook", "out", "--json")
    assert result.exit_code == 0, result.output
    assert moving.given["main"] == moving.memories["main"]
    assert moving.done == ["main"]
    (agent,) = json.loads(result.output)["agents"]
    assert (agent["records"], agent["taken"], agent["counts"]["message"]) == (6, 6, 3)
    # Too large for one request: what goes on with a session says what it follows.
    assert [follows and follows.seq for follows in moving.follows] == [None, 1, None]


def test_one_agent_may_get_another_name(run: Run, moving: Moving) -> None:
    exported(run, moving)
    assert run("import", "offbook", "out", "--agent", "other").exit_code == 0
    assert set(moving.given) == {"other"}
    assert run("import", "offbook", "out/agents/main/memory.jsonl").exit_code == 0
    assert moving.given["main"] == moving.memories["main"]
    moving.memories["second"] = memory("second")
    exported(run, moving, "both")
    result = run("import", "offbook", "both", "--agent", "other")
    assert result.exit_code == 2
    assert "holds 2 agents" in result.output


def test_what_is_refused_is_told_once_and_is_a_failure(run: Run, moving: Moving) -> None:
    exported(run, moving)
    moving.refused = {"message chat#1": "another message is in its place", "message chat#2": FOLLOWS_REFUSED}
    result = run("import", "offbook", "out")
    assert result.exit_code == 1
    assert "2 records refused" in result.output
    assert "main: message chat#1: another message is in its place" in result.output
    assert FOLLOWS_REFUSED not in result.output


def test_nothing_is_stored_of_an_export_that_is_not_whole(run: Run, moving: Moving, here: Path) -> None:
    exported(run, moving)
    path = here / "out" / "agents" / "main" / "memory.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    result = run("import", "offbook", "out")
    assert result.exit_code == 1
    assert "line 6" in result.output
    assert moving.given == {}


def test_a_dry_run_compares_and_stores_nothing(run: Run, moving: Moving) -> None:
    moving.memories["new"] = memory("new", 2)
    exported(run, moving)
    del moving.memories["new"]
    moving.memories["main"] = memory("main", 2)
    result = run("import", "offbook", "out", "--dry-run", "--json")
    assert result.exit_code == 0
    by_agent = {agent["agentId"]: agent for agent in json.loads(result.output)["agents"]}
    assert (by_agent["main"]["taken"], by_agent["main"]["alreadyThere"]) == (2, 4)  # a message, the mark after it
    assert (by_agent["new"]["taken"], by_agent["new"]["alreadyThere"]) == (5, 0)
    assert "7 records would be stored, 4 already there" in run("import", "offbook", "out", "--dry-run").output
    assert moving.given == {}
    moving.memories["main"] = [*memory("main", 1), said(2, "Something else.")]
    result = run("import", "offbook", "out", "--dry-run")
    assert result.exit_code == 1
    assert "3 records refused" in result.output


def test_a_dry_run_that_breaks_off_has_stored_nothing(run: Run, moving: Moving) -> None:
    moving.memories["new"] = memory("new")
    exported(run, moving)
    moving.breaks_after = 2
    del moving.memories["main"]  # of this all would be stored
    result = run("import", "offbook", "out", "--dry-run")
    assert result.exit_code == 3
    assert "Nothing was stored." in result.output
    assert "stored until then" not in result.output


def test_what_breaks_off_says_how_to_go_on(run: Run, moving: Moving) -> None:
    exported(run, moving)
    moving.breaks_after = 2
    result = run("import", "offbook", "out")
    assert result.exit_code == 3
    assert "Run this again soon" in result.output
