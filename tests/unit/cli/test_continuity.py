"""`offbook topics`, `anchors` and `state` as they print. What they tell is tested beside the parts of continuity."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest

from offbook.cli.state import freshness, shortened
from offbook.client.blocking import Client
from offbook.model.summary import StateRecord
from offbook.model.turn import Anchor, AnchorList, ContinuityState, SessionInfo, SessionState, Topic, TopicList
from tests.unit.cli.conftest import Run

COMMANDS = ["topics", "anchors", "state"]
EVIL = "\x1b]0;owned\x07"


NOW = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)


class Stopped(datetime):
    """What is shown as "just now" stays so, however long the tests take to get here."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW.astimezone(tz)


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.cli.output.datetime", Stopped)


@pytest.fixture(autouse=True)
def in_lisbon(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "Europe/Lisbon")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def topic(label: str, **fields: Any) -> Topic:
    given = {
        "label": label,
        "mentions": 1,
        "total": 1,
        "freshness": 1.0,
        "is_fixated": False,
        "is_stale": False,
        "first_at": NOW,
        "last_at": NOW,
    }
    return Topic(**(given | fields))


def anchor(text: str, **fields: Any) -> Anchor:
    return Anchor(**({"kind": "identity", "text": text, "session_id": "chat", "seq": 7, "at": NOW} | fields))


def record(kind: str, text: str, first_seq: int, last_seq: int) -> StateRecord:
    fields: dict[str, Any] = {"kind": kind, "text": text, "first_seq": first_seq, "last_seq": last_seq, "at": NOW}
    return StateRecord(**fields)


def state(**fields: Any) -> ContinuityState:
    return ContinuityState(**({"agent_id": "main", "topics": [], "anchors": [], "working": []} | fields))


DATABASE = topic("database", is_fixated=True, mentions=4, total=1_200, sessions=3)
FERRY = topic("ferry", freshness=0.5)
BREAD = topic("bread", is_stale=True, mentions=0, total=9, freshness=0.004, last_at=NOW - timedelta(days=22))
BOB = anchor("I am Bob.")
STUCK = anchor("I am stuck.", kind="tension", times=2, is_fresh=False, at=NOW - timedelta(hours=3))


class Asked:
    """What each verb was asked, and what it answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, Any] = {
            "topics": TopicList(topics=[]),
            "anchors": AnchorList(anchors=[]),
            "state": state(),
        }
        self.calls: list[tuple[str, str | None, str | None, str | None]] = []
        for verb in COMMANDS:
            monkeypatch.setattr(Client, verb, self._verb(verb))

    def _verb(self, verb: str) -> Any:
        def ask(client: Client, session_id: str | None = None, *, agent_id: str | None = None) -> Any:
            self.calls.append((verb, session_id, agent_id, client.agent_id))
            return self.answers[verb]

        return ask


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


# ── what is asked ──


@pytest.mark.parametrize("name", COMMANDS)
def test_the_agent_is_an_argument_or_an_option(name: str, run: Run, asked: Asked) -> None:
    assert run(name).exit_code == 0
    assert run(name, "researcher", "--session", "chat").exit_code == 0
    assert run(name, "--agent", "researcher").exit_code == 0
    assert run(name, "researcher", "--agent", "researcher").exit_code == 0
    assert asked.calls == [
        (name, None, None, None),
        (name, "chat", "researcher", None),
        (name, None, None, "researcher"),
        (name, None, "researcher", "researcher"),
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_agent_named_wins_over_the_environment(
    name: str, run: Run, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFBOOK_AGENT", "main")
    assert run(name, "researcher").exit_code == 0
    assert asked.calls == [(name, None, "researcher", "main")]


@pytest.mark.parametrize("name", COMMANDS)
def test_two_agents_are_one_too_many(name: str, run: Run, asked: Asked) -> None:
    result = run(name, "researcher", "--agent", "main")
    assert result.exit_code == 2
    assert "which agent is meant, researcher or main?" in result.stderr
    assert asked.calls == []


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_there_is_no_failure_and_says_what_to_do(name: str, run: Run, asked: Asked) -> None:
    result = run(name)
    assert (result.exit_code, result.stdout) == (0, "Agent main\n" if name == "state" else "")
    assert result.stderr.startswith("no topics" if name != "anchors" else "no anchors")
    assert "yet. Try\n  · `offbook record SESSION TEXT`" in result.stderr
    assert "offbook status" in result.stderr
    result = run(name, "--session", "chat\x1b")
    assert " in session chat\\u001b yet. Try\n  · leaving out --session" in result.stderr
    assert "`offbook log`" in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_the_answer_with_nothing_else(name: str, run: Run, asked: Asked) -> None:
    result = run(name, "--json")
    assert result.stderr == ""
    empty = {"topics": [], "anchors": []}
    expected = {"agentId": "main", **empty, "working": []} if name == "state" else {name: empty[name]}
    assert json.loads(result.stdout) == expected


# ── topics ──


def test_topics_are_a_table_in_the_order_they_came_and_the_returning_ones_are_marked(run: Run, asked: Asked) -> None:
    asked.answers["topics"] = TopicList(topics=[DATABASE, FERRY, BREAD])
    result = run("topics")
    assert result.stdout.splitlines() == [
        "   topic     how it stands    lately   ever  freshness    sessions  last",
        "●  database  keeps returning       4  1,200  █████ 100 %         3  just now",
        "   ferry     fresh                 1      1  ██░░░  50 %         1  just now",
        "   bread     stale                 0      9  ░░░░░   0 %         1  3 weeks ago",
    ]
    assert result.stderr == ""


def test_what_they_keep_returning_to_is_told_so_also_where_it_was_left(run: Run, asked: Asked) -> None:
    asked.answers["topics"] = TopicList(topics=[topic("bread", is_fixated=True, is_stale=True)])
    assert "●  bread  keeps returning" in run("topics").stdout


def test_freshness_is_full_only_in_the_turn_itself() -> None:
    assert [freshness(share) for share in (1.0, 0.99, 0.25, 0.0)] == [
        "█████ 100 %",
        "████░  99 %",
        "█░░░░  25 %",
        "░░░░░   0 %",
    ]


# ── anchors ──


def test_anchors_are_a_table(run: Run, asked: Asked) -> None:
    asked.answers["anchors"] = AnchorList(anchors=[BOB, STUCK])
    assert run("anchors").stdout.splitlines() == [
        "kind      what was said  when         times  how it stands  where",
        "identity  I am Bob.      just now         1  fresh          chat #7",
        "tension   I am stuck.    3 hours ago      2  stale          chat #7",
    ]


# ── state ──


def test_the_state_is_all_of_it(run: Run, asked: Asked) -> None:
    records = [
        record("open loop", "book the\nferry", 9, 11),
        record("goal", "An earlier goal.", 1, 1),
        record("confirmed action", "paid", 12, 12),
        record("goal", "See Cacilhas.", 8, 9),
        record("live handle", "pid 42", 13, 13),
    ]
    began = NOW - timedelta(hours=30)
    asked.answers["state"] = state(
        topics=[DATABASE, FERRY, topic("bakery"), BREAD],
        anchors=[BOB, STUCK],
        working=[SessionState(session_id="chat", last_at=NOW, records=records)],
        session=SessionInfo(
            session_id="chat", exchanges=1_200, started_at=began, last_at=NOW - timedelta(hours=3), gap="interrupted"
        ),
    )
    first, session, *rest = run("state", "--session", "chat").stdout.splitlines()
    assert first == "Agent main"
    assert session.startswith("session chat · 1,200 exchanges in 1 d 3 h, ")
    assert session.endswith(" (3 hours ago) · interrupted since")
    assert rest == [
        "",
        "topics:",
        "  keeps returning  database",
        "  fresh            ferry, bakery",
        "  stale            bread",
        "",
        "2 anchors, 1 fresh:",
        "kind      what was said  when         times  how it stands  where",
        "identity  I am Bob.      just now         1  fresh          chat #7",
        "tension   I am stuck.    3 hours ago      2  stale          chat #7",
        "",
        "session chat was doing (just now):",
        "  goal     See Cacilhas. (#8 to #9, just now)",
        "  goal     An earlier goal. (#1, just now)",
        "  open     book the ferry (#9 to #11, just now)",
        "  done     paid (#12, just now)",
        "  running  pid 42 (#13, just now)",
    ]


def test_many_topics_are_still_a_line(run: Run, asked: Asked) -> None:
    asked.answers["state"] = state(topics=[topic(f"t{number}") for number in range(14)])
    result = run("state")
    assert "t11, and 2 more\n" in result.stdout
    assert ("t12" in result.stdout, result.stderr) == (False, "")


@pytest.mark.parametrize("gap", ["first", "continuous", "interrupted", "new"])
def test_every_way_a_session_goes_on_has_its_words(gap: str, run: Run, asked: Asked) -> None:
    fields: dict[str, Any] = {"session_id": "chat", "exchanges": 1, "started_at": NOW, "last_at": NOW, "gap": gap}
    asked.answers["state"] = state(session=SessionInfo(**fields))
    assert "· 1 exchange in 0 s, " in run("state", "--session", "chat").stdout


def test_what_they_said_does_not_steer_the_terminal(run: Run, asked: Asked) -> None:
    session = SessionInfo(session_id=EVIL, exchanges=1, started_at=NOW, last_at=NOW, gap="first")
    working = SessionState(session_id=EVIL, last_at=NOW, records=[record("goal", EVIL, 1, 1)])
    asked.answers["topics"] = TopicList(topics=[topic(EVIL)])
    asked.answers["anchors"] = AnchorList(anchors=[anchor(EVIL, session_id=EVIL)])
    asked.answers["state"] = state(
        agent_id=EVIL, topics=[topic(EVIL)], anchors=[anchor(EVIL)], working=[working], session=session
    )
    for name in COMMANDS:
        result = run(name)
        assert (result.exit_code, "\x1b" in result.output, "owned" in result.output) == (0, False, True)


# ── long texts ──


@pytest.mark.parametrize(
    ("text", "shown", "left"),
    [
        ("one\ntwo\n", "one\ntwo", ""),
        ("one\ntwo\nthree", "one\ntwo", "6 more characters"),
        ("one two three", "one two th", "3 more characters"),
        ("", "", ""),
    ],
)
def test_what_is_left_of_a_text_is_told(text: str, shown: str, left: str) -> None:
    assert shortened(text, max_lines=2, max_chars=10) == (shown, left)
