"""What a provider is told, and what is told of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from offbook.client.history import conversations
from offbook.client.history.conversations import AgentReport, HistoryImport, ImportReport
from offbook.model.errors import ProviderRefused, ProviderUnavailable
from offbook.model.types import Conflict, Receipt
from offbook.openclaw.catalogue import Catalogue, conversation_of
from offbook.openclaw.places import Agent
from tests.unit.contrib.importers.openclaw_state import AT_MS, State, said

KEY = "agent:main:main"


class Provider:
    """Keeps what it is told, as a provider does."""

    def __init__(self, *, knows_missing: bool = True, breaks_after: int = -1) -> None:
        self.sessions: dict[str, dict[str, dict[str, Any]]] = {}
        self.sizes: list[int] = []
        self.busy = 0
        self._knows_missing = knows_missing
        self._left = breaks_after

    def missing(self, session: str, ids: list[str], *, agent_id: str) -> list[str]:
        assert session.startswith(f"agent:{agent_id}:")
        if not self._knows_missing:
            raise ProviderRefused({"status": 404, "title": "There is no such verb."})
        return [each for each in ids if each not in self.sessions.get(session, {})]

    def on_message(self, session: str, *messages: dict[str, Any], agent_id: str) -> Receipt:
        assert session.startswith(f"agent:{agent_id}:")
        if self.busy:
            self.busy -= 1
            raise ProviderRefused({"status": 503, "retryable": True, "detail": "busy"})
        if any("BAD" in message["content"] for message in messages):
            raise ProviderRefused({"status": 422, "detail": "bad words"})
        if self._left == 0:
            raise ProviderUnavailable("gone")
        self._left -= 1
        self.sizes.append(len(messages))
        held = self.sessions.setdefault(session, {})
        conflicts = [
            Conflict(id=each["id"], seq=1)
            for each in messages
            if each["id"] in held and held[each["id"]]["content"] != each["content"]
        ]
        new = {each["id"]: each for each in messages if each["id"] not in held}
        held |= new
        duplicates = len(messages) - len(new)
        return Receipt(accepted=len(new), duplicates=duplicates, first_seq=1, last_seq=2, conflicts=conflicts)

    def log(self, session: str, *, limit: int, newest: bool, agent_id: str) -> dict[str, Any]:
        assert (limit, newest) == (1, True)
        assert session.startswith(f"agent:{agent_id}:")
        held = list(self.sessions.get(session, {}).values())
        return {"messages": [{"message": each} for each in held[-1:]]}

    def ids(self, session: str = KEY) -> list[str]:
        return list(self.sessions.get(session, {}))


def run(state: State, provider: Provider | None, *, dry: bool = False, since: datetime | None = None) -> ImportReport:
    report = ImportReport(state=str(state.folder), is_dry_run=dry)
    agent = AgentReport(agent_id="main")
    report.agents = [agent]
    catalogue = Catalogue(state.folder, Agent("main", state.agent))
    try:
        for session in catalogue.sessions():
            HistoryImport(provider, report, since).conversation(conversation_of(session), agent)  # type: ignore[arg-type]
    finally:
        catalogue.close()
    return report


def conversation(state: State, count: int) -> list[str]:
    ids = [f"m{number}" for number in range(count)]
    state.store("s", KEY, *(said(each, f"text {each}", at_ms=AT_MS + at) for at, each in enumerate(ids)))
    return ids


@pytest.mark.parametrize("knows_missing", [True, False])
def test_all_is_stored_once_in_order_however_often_it_is_run(state: State, knows_missing: bool) -> None:
    ids, provider = conversation(state, 1_200), Provider(knows_missing=knows_missing)
    (first,) = run(state, provider).agents
    assert provider.ids() == ids
    assert (first.sessions, first.messages, first.new, first.already_there) == (1, 1_200, 1_200, 0)
    (second,) = run(state, provider).agents
    assert provider.ids() == ids
    assert (second.messages, second.new, second.already_there) == (1_200, 0, 1_200)


def test_what_is_known_is_not_sent_again(state: State) -> None:
    conversation(state, 1_000)
    provider = Provider()
    run(state, provider)
    del provider.sizes[:]
    run(state, provider)
    assert provider.sizes == []


@pytest.mark.parametrize("knows_missing", [True, False])
def test_broken_off_in_the_middle_it_is_completed_by_the_next(state: State, knows_missing: bool) -> None:
    ids, provider = conversation(state, 1_200), Provider(knows_missing=knows_missing, breaks_after=1)
    with pytest.raises(ProviderUnavailable):
        run(state, provider)
    assert provider.ids() == ids[:500]
    provider._left = -1
    (report,) = run(state, provider).agents
    assert provider.ids() == ids
    assert (report.new, report.already_there) == (700, 500)
    assert run(state, provider).came_after_newer == []


def test_large_messages_go_in_small_portions(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "BYTES_AT_A_TIME", 5_000)
    sizes = [100, 100, 9_000, 100]
    state.store("s", KEY, *(said(str(at), "x" * size) for at, size in enumerate(sizes)))
    provider = Provider()
    run(state, provider)
    assert provider.sizes == [2, 1, 1]


def test_a_message_that_is_refused_is_named_and_the_others_are_stored(state: State) -> None:
    texts = ["a", "b", "BAD", "d", "e", "BAD", "g"]
    state.store("s", KEY, *(said(str(at), each) for at, each in enumerate(texts)))
    provider = Provider()
    report = run(state, provider)
    assert provider.ids() == ["0", "1", "3", "4", "6"]
    assert (report.agents[0].new, report.agents[0].skipped) == (5, 2)
    assert [problem.where.split()[-1] for problem in report.problems] == ["2", "5"]
    assert all("bad words" in problem.reason for problem in report.problems)


def test_a_refusal_that_is_not_the_messages_fault_ends_it(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation(state, 3)
    refused = ProviderRefused({"status": 403, "detail": "not yours"})

    def refuse(*_: object, **__: object) -> None:
        raise refused

    provider = Provider()
    monkeypatch.setattr(provider, "missing", refuse)
    with pytest.raises(ProviderRefused, match="not yours"):
        run(state, provider)


def test_a_provider_that_is_busy_is_asked_again(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "FIRST_PAUSE_SECONDS", 0.0)
    ids, provider = conversation(state, 3), Provider()
    provider.busy = conversations.TRIES - 1
    run(state, provider)
    assert provider.ids() == ids
    provider.busy, provider.sessions = conversations.TRIES, {}
    with pytest.raises(ProviderRefused, match="busy"):
        run(state, provider)


def test_a_dry_run_stores_nothing_and_tells_what_it_would(state: State) -> None:
    ids, provider = conversation(state, 10), Provider()
    provider.sessions[KEY] = {each: {"id": each, "content": ""} for each in ids[:4]}
    (report,) = run(state, provider, dry=True).agents
    assert provider.sizes == []
    assert (report.messages, report.new, report.already_there, report.unknown) == (10, 6, 4, 0)


@pytest.mark.parametrize("provider", [None, Provider(knows_missing=False)])
def test_a_dry_run_says_what_it_cannot_know(state: State, provider: Provider | None) -> None:
    conversation(state, 10)
    (report,) = run(state, provider, dry=True).agents
    assert (report.messages, report.new, report.already_there, report.unknown) == (10, 0, 0, 10)
    assert provider is None or provider.sizes == []


@pytest.mark.parametrize("dry", [True, False])
def test_what_comes_after_newer_messages_is_told(state: State, dry: bool) -> None:
    ids, provider = conversation(state, 10), Provider()
    provider.sessions[KEY] = {
        ids[7]: {"id": ids[7], "content": "text m7", "ts": datetime.fromtimestamp(AT_MS / 1000, UTC).isoformat()}
    }
    assert run(state, provider, dry=True).came_after_newer == []  # of the same moment: none is older
    newer = datetime.fromtimestamp(AT_MS / 1000, UTC) + timedelta(milliseconds=7)
    provider.sessions[KEY][ids[7]]["ts"] = newer.isoformat()
    (late,) = run(state, provider, dry=dry).came_after_newer
    assert (late.agent_id, late.session_id, late.messages) == ("main", KEY, 7)


def test_other_content_under_a_stored_id_is_named(state: State) -> None:
    conversation(state, 2)
    provider = Provider(knows_missing=False)
    provider.sessions[KEY] = {"m0": {"id": "m0", "content": "something else"}}
    report = run(state, provider)
    assert report.agents[0].conflicts == 1
    assert report.problems[0].where.endswith("event 0")
    assert "which stays" in report.problems[0].reason


def test_only_what_was_said_since(state: State) -> None:
    ids, provider = conversation(state, 10), Provider()
    since = datetime.fromtimestamp(AT_MS / 1000, UTC) + timedelta(milliseconds=6)
    (report,) = run(state, provider, since=since).agents
    assert provider.ids() == ids[6:]
    assert (report.messages, report.before_since, report.new) == (10, 6, 4)


def test_a_message_without_a_time_has_that_of_its_entry(state: State) -> None:
    state.store("s", KEY, said("1", "a", at_ms=None))
    provider = Provider()
    run(state, provider)
    assert provider.sessions[KEY]["1"]["ts"] == "2025-10-09T08:53:20.000Z"
