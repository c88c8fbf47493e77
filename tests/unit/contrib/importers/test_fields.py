from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from offbook.client.history.files import iso, key_of, moment_of, owner_in
from offbook.ingest.scope import resolve_agent

NOON = datetime(2026, 5, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-05-10T12:00:00.000Z",
        "2026-05-10T14:00:00+02:00",
        "2026-05-10 12:00:00",
        int(NOON.timestamp() * 1000),
        NOON.timestamp() * 1000,
        int(NOON.timestamp()),
        NOON.timestamp(),
        int(NOON.timestamp() * 1_000_000),
        str(int(NOON.timestamp())),
        f" {int(NOON.timestamp() * 1000)} ",
    ],
)
def test_times_as_others_write_them(value: object) -> None:
    assert moment_of(value) == NOON


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "soon",
        "",
        [],
        {},
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:00:00-12:00",
        float("nan"),
        1e300,
        10**400,
    ],
)
def test_what_is_no_time(value: object) -> None:
    assert moment_of(value) is None


def test_a_time_is_written_as_javascript_does_and_loses_nothing() -> None:
    assert iso(NOON) == "2026-05-10T12:00:00.000Z"
    assert iso(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-05-10T12:00:00.000Z"
    assert iso(NOON.replace(microsecond=123_456)) == "2026-05-10T12:00:00.123456Z"


def test_keys_are_such_as_a_provider_takes() -> None:
    assert key_of("会话") == "会话"
    assert [key_of(value) for value in (None, "", 7, ["x"])] == [None] * 4
    long, other = key_of("k" * 600), key_of("k" * 601)
    assert long is not None
    assert len(long.encode()) <= 512
    assert long != other


def test_a_folder_names_its_agent_unless_somebody_was_named() -> None:
    def owner_for(folder: str, named: str | None = None) -> list[str]:
        owner = owner_in(Path(folder), lambda key: resolve_agent(key, named, "main"))
        return [owner(""), owner("chat"), owner("agent:other:x")]

    assert owner_for("/state/agents/helper/swap") == ["helper", "helper", "other"]
    assert owner_for("/state/data/archive") == ["main", "main", "other"]
    assert owner_for("/state/agents/helper/swap", "chosen") == ["chosen"] * 3
    assert owner_for("/") == ["main", "main", "other"]
