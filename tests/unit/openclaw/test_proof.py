"""What the host wrote against what is stored: each check fails where it must."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from offbook.client.endpoint import Endpoint
from offbook.openclaw import examination
from offbook.openclaw import report as plugin_report
from offbook.openclaw.examination import Entry, Session
from offbook.openclaw.report import Report
from offbook.openclaw.setup import Commands

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
TURN = START + timedelta(minutes=5)


def report(**parts: Any) -> Report:
    raw: dict[str, Any] = {
        "plugin": "0.1.0",
        "pid": 1,
        "startedAt": START,
        "savedAt": TURN,
        "level": "hot-swap",
        "host": {"version": "2026.9.6"},
        "provider": {"endpoint": "unix:/s", "ok": True},
        "capture": {"messages": 3, "delivered": 3},
        "turns": {"prepared": 1, "injected": 1, "last": {"at": TURN, "recallChars": 5, "memoryChars": 6, "tookMs": 7}},
        "engine": {"assembled": 2, "committed": 1, "last": {"at": TURN, "messagesIn": 4, "messagesOut": 2}},
    }
    for name, value in parts.items():
        raw[name] = raw.get(name, {}) | value if isinstance(value, dict) else value
    return msgspec.convert(raw, Report)


def session(agent: str = "main", at: datetime = TURN, roles: str = "uautta") -> Session:
    names = {"u": "user", "a": "assistant", "t": "toolResult"}
    entries = tuple(
        Entry(f"{agent}-{number}", names[role], at + timedelta(seconds=number)) for number, role in enumerate(roles)
    )
    return Session(agent, f"agent:{agent}:chat", f"id-{agent}", entries)


def compared(*missing: int, agent: str = "main", at: datetime = TURN) -> examination.Compared:
    return examination.Compared(session(agent, at), frozenset(f"{agent}-{number}" for number in missing))


def test_the_last_turn_begins_with_the_user() -> None:
    assert [entry.entry_id for entry in session().last_turn] == ["main-2", "main-3", "main-4", "main-5"]
    assert len(session(roles="aat").last_turn) == 3


def test_a_last_turn_that_is_stored() -> None:
    (found,) = examination.check_last_turns([compared()], report())
    assert found.level == "ok"
    assert "all 4 messages are stored" in found.what


def test_a_last_turn_that_is_not() -> None:
    (found,) = examination.check_last_turns([compared(4, 5)], report())
    assert (found.level, "2 of 4 messages are not stored" in found.what) == ("fail", True)
    (found,) = examination.check_last_turns([compared(4, 5)], None)
    assert found.level == "fail"


def test_what_waits_is_on_its_way() -> None:
    (found,) = examination.check_last_turns([compared(5)], report(capture={"waiting": 1}))
    assert (found.level, "outbox" in (found.mend or "")) == ("warn", True)


def test_what_was_said_before_is_for_the_import() -> None:
    (found,) = examination.check_last_turns([compared(5, at=START - timedelta(hours=1))], report())
    assert (found.level, "offbook import openclaw" in (found.mend or "")) == ("warn", True)


def test_every_agent_is_looked_at() -> None:
    found = examination.check_last_turns([compared(), compared(0, at=START), compared(3, agent="second")], report())
    assert [finding.level for finding in found] == ["ok", "fail"]
    assert "of second" in found[1].what


def test_no_conversation_yet() -> None:
    (found,) = examination.check_last_turns([], report())
    assert (found.level, "say something" in (found.mend or "")) == ("warn", True)


def test_history() -> None:
    assert examination.check_history([compared()])[0].level == "ok"
    (found,) = examination.check_history([compared(0, 1)])
    assert (found.level, found.what) == ("warn", "4 of 6 messages of the last 1 sessions are stored")
    assert found.mend == "offbook import openclaw"
    assert examination.check_history([]) == []


def test_what_cannot_be_read() -> None:
    assert examination.check_damage([compared()], []) == []
    damaged = examination.Compared(Session("main", "agent:main:x", "id", session().entries, damaged=2), frozenset())
    (found,) = examination.check_damage([damaged], ["db: locked"])
    assert (found.level, found.what) == ("warn", "db: locked\n2 entries cannot be read")


def test_the_gateway() -> None:
    assert plugin_report.check_gateway(report(), "hot-swap", now=TURN, is_alive=True)[0].level == "ok"
    (found,) = plugin_report.check_gateway(None, "hot-swap", now=TURN, is_alive=False)
    assert (found.level, "plugins inspect" in (found.mend or "")) == ("fail", True)
    (found,) = plugin_report.check_gateway(report(), "recall", now=TURN, is_alive=True)
    assert (found.level, found.mend) == ("fail", "openclaw gateway restart")
    blocked = report(permissions={"conversation": False})
    (found,) = plugin_report.check_gateway(blocked, "hot-swap", now=TURN, is_alive=True)
    assert (found.level, "allowConversationAccess true" in (found.mend or "")) == ("fail", True)
    (found,) = plugin_report.check_gateway(report(savedAt=None), "hot-swap", now=TURN, is_alive=False)
    assert found.level == "warn"


def test_a_gateway_that_fell_silent() -> None:
    """The number of its process may be another program's by now, and in a container it means nothing."""
    later = TURN + timedelta(seconds=121)
    for is_alive in (True, False):
        (found,) = plugin_report.check_gateway(report(), "hot-swap", now=later, is_alive=is_alive)
        assert (found.level, "2026-01-31 12:05:00Z" in found.what) == ("warn", True)
    (found,) = plugin_report.check_gateway(report(), "hot-swap", now=later - timedelta(seconds=1), is_alive=False)
    assert (found.level, "not seen from here" in found.what) == ("ok", True)


def test_what_the_plugin_reaches() -> None:
    assert plugin_report.check_reached(report()).level == "ok"
    found = plugin_report.check_reached(report(provider={"ok": False, "error": "no such token"}))
    assert (found.level, "no such token" in found.what) == ("fail", True)


@pytest.mark.parametrize(
    ("endpoint", "asked", "level"),
    [
        ("unix:/s", "unix:///s", "ok"),
        ("unix:///s", "/s", "ok"),
        ("unix:/a%20b", "unix:///a%2520b", "ok"),
        ("unix:/other", "unix:///s", "fail"),
        ("http://localhost:1", "http://localhost:1/prefix", "ok"),
        ("https://h", "https://h:443", "ok"),
        ("http://h:1", "http://h:2", "fail"),
        ("http://h:1", "unix:///s", "fail"),
        ("nonsense", "unix:///s", "fail"),
    ],
)
def test_a_plugin_that_delivers_elsewhere(endpoint: str, asked: str, level: str) -> None:
    found = plugin_report.check_reached(report(provider={"endpoint": endpoint}), Endpoint.parse(asked))
    assert found.level == level
    if level == "fail":
        assert endpoint in found.what
        assert str(Endpoint.parse(asked)) in found.what


def test_a_plugin_that_asked_nobody_yet() -> None:
    found = plugin_report.check_reached(report(provider={"endpoint": "", "ok": None}), Endpoint.parse("/s"))
    assert (found.level, found.what) == ("ok", "the plugin has asked nobody yet")


def test_commands_name_what_is_not_usual() -> None:
    named = Commands("SERVE", "IMPORT")
    waiting = report(capture={"waiting": 1, "turnedAway": 1})
    mends = [finding.mend or "" for finding in plugin_report.check_delivery(waiting, named)]
    assert ["SERVE" in mend for mend in mends] == [True, True]
    assert "IMPORT" in mends[0]
    found = [
        *examination.check_last_turns([compared(5)], waiting, named),
        *examination.check_last_turns([compared(5, at=START - timedelta(hours=1))], report(), named),
        *examination.check_last_turns([compared(5)], report(), named),
        *examination.check_history([compared(0)], named),
    ]
    assert ["SERVE" in (each.mend or "") or "IMPORT" in (each.mend or "") for each in found] == [True] * 4


def test_delivery() -> None:
    assert plugin_report.check_delivery(report())[0].level == "ok"
    bad = plugin_report.check_delivery(report(capture={"refused": 1, "turnedAway": 2, "waiting": 3}))
    assert [finding.level for finding in bad] == ["fail", "warn", "warn"]


def test_problems() -> None:
    assert plugin_report.check_problems(report()).level == "ok"
    troubles = [{"at": TURN + timedelta(seconds=n), "what": f"w{n}", "detail": "d", "times": n} for n in range(1, 9)]
    found = plugin_report.check_problems(report(problems=troubles))
    assert found.level == "warn"
    assert found.what.splitlines()[0] == "2026-01-31 12:05:08Z w8: d (×8)"
    assert len(found.what.splitlines()) == 5


def test_recall() -> None:
    assert examination.check_recalled(report(), session()).level == "ok"
    for turns in ({"last": None}, {"last": {"at": TURN - timedelta(minutes=2)}}):
        found = examination.check_recalled(report(turns=turns), session())
        assert (found.level, "allowConversationAccess true" in (found.mend or "")) == ("fail", True)
    found = examination.check_recalled(report(turns={"last": {"at": TURN, "error": "late"}}), session())
    assert (found.level, "late" in found.what) == ("warn", True)


@pytest.mark.parametrize("engine", [{"last": None}, {"last": {"at": TURN - timedelta(minutes=2)}}])
def test_a_host_that_silently_uses_its_own_engine(engine: dict[str, Any]) -> None:
    (found,) = examination.check_engine(report(engine=engine), session())
    assert (found.level, "its own engine" in found.what) == ("fail", True)
    assert (found.mend or "").startswith("openclaw config set plugins.slots.contextEngine offbook")


def test_the_engine() -> None:
    assert examination.check_engine(report(), session())[0].level == "ok"
    (found,) = examination.check_engine(report(engine={"committed": 0}), session())
    assert (found.level, "no turn was handed over" in found.what) == ("fail", True)
    (found,) = examination.check_engine(report(engine={"fallbacks": 1}), session())
    assert found.level == "warn"


def test_a_turn_before_the_gateway_started_proves_nothing() -> None:
    before = session(at=START - timedelta(hours=1))
    for newest in (before, None):
        assert examination.check_recalled(report(turns={"last": None}), newest).level == "warn"
        assert examination.check_engine(report(engine={"last": None}), newest)[0].level == "warn"
