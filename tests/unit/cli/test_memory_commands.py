"""`pin`, `unpin`, `unlink`, `cross`, `reindex`, and what `status` and `doctor` say of the index, as they print."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from offbook.api.doctor import search
from offbook.api.embedded import open_memory
from offbook.cli import upkeep
from offbook.client.blocking import Client
from offbook.model.home import Home
from offbook.model.memory_entry import CrossSearch, Pinned, Unlinked
from offbook.model.settings import Settings
from offbook.model.status import IndexStatus
from offbook.models import weights
from tests.unit.cli.conftest import Run

# ── pins ──


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []

    def answer(verb: str) -> Any:
        def pin(self: Client, **what: Any) -> Pinned:
            asked.append({"verb": verb, **what})
            ids = what["entry_ids"] or []
            return Pinned(changed=len(ids), entry_ids=ids)

        return pin

    for verb in ("pin", "unpin"):
        monkeypatch.setattr(Client, verb, answer(verb))
    return asked


@pytest.mark.parametrize("verb", ["pin", "unpin"])
def test_entries_are_pinned_by_id_keyword_or_session(verb: str, run: Run, pinned: list[dict[str, Any]]) -> None:
    assert run(verb, "m1", "m2").stdout == f"2 entries {verb}ned: m1 m2\n"
    assert "nothing changed" in run(verb, "--keyword", "wifi", "--session", "chat").stdout
    assert json.loads(run(verb, "m1", "--json").stdout) == {"changed": 1, "entryIds": ["m1"]}
    assert pinned[0] == {"verb": verb, "entry_ids": ["m1", "m2"], "keyword": None, "session_id": None}
    assert pinned[1] == {"verb": verb, "entry_ids": None, "keyword": "wifi", "session_id": "chat"}


def test_a_link_is_taken_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def unlink(self: Client, **what: Any) -> Unlinked:
        asked.append(what)
        return Unlinked(changed=0 if what["by_id"] else 2)

    monkeypatch.setattr(Client, "unlink", unlink)
    assert run("unlink", "m1").stdout == "m1 holds again: 2 links taken back\n"
    assert "nothing changed" in run("unlink", "m1", "--by", "m2").stdout
    assert json.loads(run("unlink", "m1", "--json").stdout) == {"changed": 2}
    assert asked[:2] == [{"entry_id": "m1", "by_id": None}, {"entry_id": "m1", "by_id": "m2"}]
    assert run("unlink").exit_code == 2


@pytest.mark.parametrize("verb", ["pin", "unpin"])
@pytest.mark.parametrize("arguments", [[], ["m1", "--keyword", "wifi"], ["m1", "--session", "chat"]])
def test_what_is_meant_is_said_and_said_once(
    verb: str, arguments: list[str], run: Run, pinned: list[dict[str, Any]]
) -> None:
    result = run(verb, *arguments)
    assert result.exit_code == 2
    assert "ENTRY" in result.stderr
    assert pinned == []


# ── across agents ──


@pytest.mark.parametrize(
    ("arguments", "asked", "answer", "told"),
    [
        ([], None, CrossSearch(enabled=False, agents=[]), "off: this agent neither"),
        (["on"], True, CrossSearch(enabled=True, agents=[]), "`offbook cross on --agent NAME` opens one"),
        (["on"], True, CrossSearch(enabled=True, agents=["a", "b"]), "on: this agent and a, b can search"),
        (["off", "--agent", "x"], False, CrossSearch(enabled=False, agents=[]), "off: agent x neither"),
    ],
)
def test_consent_is_given_taken_and_shown(
    arguments: list[str], asked: bool | None, answer: CrossSearch, told: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bool | None] = []

    def cross(self: Client, enabled: bool | None = None) -> CrossSearch:
        given.append(enabled)
        return answer

    monkeypatch.setattr(Client, "cross", cross)
    assert told in run("cross", *arguments).stdout
    assert json.loads(run("cross", *arguments, "--json").stdout)["enabled"] is answer.enabled
    assert given == [asked, asked]
    assert run("cross", "perhaps").exit_code == 2


# ── the index ──


def status(entries: int, embedded: int, *, messages: int = 4, **index: Any) -> dict[str, Any]:
    count = {"messages": messages, "chars": 0, "sessions": 0, "noise": 1, "duplicates": 0, "conflicts": 0}
    waiting = 0 if index.get("trouble") else entries - embedded
    return {
        "agentId": "main",
        "version": "1",
        "store": "sqlite",
        "startedAt": "2026-01-31T12:00:00Z",
        "counts": count | {"redactions": 0, "blobs": 0, "auditEvents": 0},
        "tiers": {"hot": 3, "warm": 2, "cold": 1},
        "pinned": 2,
        "retrievals": 1_234,
        "index": {"entries": entries, "embedded": embedded, "waiting": waiting} | index,
        "summaries": {"counts": {}, "waiting": 0, "summarizers": []},
        "backlog": waiting,
        "costs": {"tokens": 0, "dollars": 0.0},
        "capture": {"sent": 0, "received": 0, "missing": 0, "waiting": 0, "clients": []},
        "sessions": [],
        "agents": ["main", "second"],
    }


def answering(monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any]) -> list[str | None]:
    """`status` answers with these in turn, the last one for ever; returns whom it was asked about."""
    asked: list[str | None] = []

    def answer(self: Client, agent_id: str | None = None) -> dict[str, Any]:
        asked.append(agent_id)
        return answers[min(len(asked), len(answers)) - 1]

    monkeypatch.setattr(Client, "status", answer)
    monkeypatch.setattr(upkeep, "FIRST_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(upkeep, "LONGEST_LOOK_SECONDS", 0.001)
    return asked


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, str | None]]:
    begun: list[tuple[bool, str | None]] = []

    def begin(self: Client, *, embeddings: bool, agent_id: str | None) -> IndexStatus:
        begun.append((embeddings, agent_id))
        return IndexStatus(entries=0, embedded=0, waiting=3)

    monkeypatch.setattr(Client, "reindex", begin)
    return begun


def test_reindexing_is_waited_for(
    run: Run, begun: list[tuple[bool, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = [status(1, 0), status(3, 0), status(3, 0), status(3, 2), status(3, 3), status(3, 3)]
    asked = answering(monkeypatch, *growing)
    assert run("reindex", "--embeddings").stdout == "3 messages can be found by text, 3 of them by meaning too\n"
    assert (begun, len(asked)) == ([(True, None)], len(growing))


def test_without_a_model_the_text_is_enough(
    run: Run, begun: list[tuple[bool, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, status(3, 0, trouble="it is not installed"))
    result = run("reindex")
    assert result.stdout == "3 messages can be found by text, 0 of them by meaning too\n"
    assert result.stderr == "! no embeddings: it is not installed\n"


def test_what_does_not_move_is_not_waited_for(
    run: Run, begun: list[tuple[bool, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, status(3, 1))
    monkeypatch.setattr(upkeep, "STALLED_SECONDS", 0.01)
    assert "2 messages still to go, and nothing moves" in run("reindex").stderr


def test_it_need_not_be_waited_for(
    run: Run, begun: list[tuple[bool, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch)
    assert run("reindex", "--no-wait").stdout.startswith("begun, 3 messages to go: `offbook status`")
    assert json.loads(run("reindex", "--no-wait", "--json").stdout)["waiting"] == 3
    assert asked == []


def test_every_agent_is_reindexed_where_asked(
    run: Run, begun: list[tuple[bool, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, status(3, 3))
    output = run("reindex", "--all-agents").stdout
    assert [line.partition(":")[0] for line in output.splitlines()] == ["agent main", "agent second"]
    assert set(json.loads(run("reindex", "--all-agents", "--json").stdout)) == {"main", "second"}
    assert begun == [(False, "main"), (False, "second")] * 2
    assert run("reindex", "--all-agents", "--agent", "main").exit_code == 2


def test_whoever_stops_waiting_is_told_that_it_goes_on(
    run: Run, begun: list[tuple[bool, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Client, agent_id: str | None = None) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "status", interrupted)
    result = run("reindex")
    assert "it goes on in the background" in result.stderr
    assert result.exit_code == 130


def test_status_shows_what_can_be_found_and_how_far_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, status(3, 1, model="MiniLM"))
    output = run("status").stdout
    assert "by text       3 of 3\nby meaning    ██████░░░░░░░░░░░░░░ 33 %  (1, 2 waiting)\n" in output
    assert "embeddings    MiniLM\ntiers         3 hot, 2 warm, 1 cold\npinned        2\nretrievals    1,234" in output
    answering(monkeypatch, status(3, 0, trouble="the embedding model is not installed"))
    assert "embeddings    none: the embedding model is not installed\n" in run("status").stdout
    answering(monkeypatch, status(0, 0))
    assert "by meaning    0\nembeddings    none yet\n" in run("status").stdout


# ── the doctor ──


def findings(run: Run, check: str) -> dict[str, Any]:
    document = json.loads(run("doctor", "--quick", "--json").stdout)
    (finding,) = [each for each in document["findings"] if each["check"] == check]
    assert isinstance(finding, dict)
    return finding


def test_the_doctor_looks_at_the_model_and_the_index(run: Run, stored: Home) -> None:
    async def look() -> None:
        async with open_memory(stored.folder) as memory:
            for agent_id in ("main", "second"):
                await memory.status(agent_id)

    asyncio.run(look())
    assert "its SHA-256 is right" in findings(run, "model")["what"]
    assert findings(run, "index") == {"check": "index", "level": "ok", "what": "2 agents", "mend": None}


def test_a_model_that_is_missing_is_a_warning_with_the_command(
    run: Run, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = msgspec.structs.replace(weights.MINILM, package="no_such_package_of_weights")
    monkeypatch.setattr(weights, "MINILM", model)
    finding = findings(run, "model")
    assert (finding["level"], finding["mend"]) == ("warn", f"offbook --home {home.folder} model install")
    assert "recall goes by text" in finding["what"]
    assert findings(run, "index")["level"] == "ok"
    assert not home.folder.exists()


def test_embeddings_that_are_switched_off_are_no_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_EMBEDDING_MODEL", "none")
    assert findings(run, "model")["level"] == "ok"


def test_an_endpoint_that_is_not_named_is_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_EMBEDDING_MODEL", "nomic-embed-text")
    finding = findings(run, "model")
    assert finding["level"] == "warn"
    assert "embedding.endpoint" in finding["what"]
    assert "model test" in finding["mend"]


def test_a_store_without_an_index_is_sound(run: Run, home: Home) -> None:
    async def nothing() -> None:
        async with open_memory(home.folder):
            pass

    asyncio.run(nothing())
    assert findings(run, "index")["what"].startswith("none yet")


@pytest.mark.parametrize(
    ("trouble", "backlog", "level", "told", "mend"),
    [
        (None, 12, "ok", "waiting to be embedded: 12", None),
        (None, 5_000, "warn", "5,000 messages wait", "offbook status"),
        ("it is not installed", 0, "warn", "no embeddings: it is not installed", "offbook model install"),
    ],
)
async def test_what_the_provider_says_of_its_index_is_told(
    trouble: str | None,
    backlog: int,
    level: str,
    told: str,
    mend: str | None,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def asked(*_: object) -> tuple[search._Index, int]:
        return search._Index(trouble=trouble), backlog

    monkeypatch.setattr(search, "_index_status", asked)
    home.indexes.mkdir(parents=True)
    finding = await search.check_index(home, Settings(), is_answering=True)
    assert (finding.level, told in finding.what) == (level, True)
    assert (finding.mend is None) if mend is None else mend in (finding.mend or "")


async def test_a_provider_that_cannot_tell_is_a_warning(home: Home) -> None:
    home.indexes.mkdir(parents=True)
    finding = await search.check_index(home, Settings(), is_answering=True)
    assert (finding.level, "offbook reindex" in (finding.mend or "")) == ("warn", True)
