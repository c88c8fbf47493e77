from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from offbook.client.blocking import Client
from offbook.contrib.coding.capture import (
    Captured,
    Document,
    Place,
    Places,
    ReadByAnother,
    Session,
    capture,
    session_of,
)


class Recording:
    """What a client is for a capture."""

    def __init__(self, *, invalid: int = 0, is_durable: bool = True) -> None:
        self.recorded: list[tuple[str, dict[str, Any]]] = []
        self._status = {"invalid": invalid}
        self._is_durable = is_durable

    def record(self, key: str, wire: dict[str, Any]) -> None:
        self.recorded.append((key, wire))

    def outbox_status(self) -> dict[str, int]:
        return self._status

    def sync(self) -> bool:
        return self._is_durable

    def settle(self, timeout_seconds: float) -> bool:
        return False

    @property
    def ids(self) -> list[str]:
        return [wire["id"] for _, wire in self.recorded]


def run(client: Recording, session: Session, places: Places, **options: Any) -> Captured:
    return capture(cast(Client, client), session, places, **options)


def say(path: Path, *ids: str, **fields: Any) -> None:
    with path.open("a", encoding="utf-8") as file:
        for name in ids:
            message = {"role": "user", "content": f"I said {name} 说 🐈"}
            file.write(json.dumps({"type": "user", "uuid": name, "message": message} | fields) + "\n")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    path = tmp_path / "s.jsonl"
    path.touch()
    return session_of("claude-code", Document(event="Stop", session_id="s", transcript=path), {})


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "home" / "hooks" / "claude-code")


def test_only_what_is_new_is_recorded(tmp_path: Path, session: Session, places: Places) -> None:
    client = Recording()
    assert run(client, session, places) == Captured()
    say(tmp_path / "s.jsonl", "a", "b")
    assert run(client, session, places) == Captured(messages=2)
    assert run(client, session, places) == Captured()
    say(tmp_path / "s.jsonl", "c")
    assert run(client, session, places).messages == 1
    assert client.ids == ["a", "b", "c"]
    assert {key for key, _ in client.recorded} == {"claude-code:s"}


def test_what_took_the_place_of_a_message_is_recorded(tmp_path: Path, session: Session, places: Places) -> None:
    """Claude Code takes back what a stream that failed had begun."""
    client, path = Recording(), tmp_path / "s.jsonl"
    say(path, "a", "b")
    run(client, session, places)
    kept = path.read_text()
    say(path, "taken-back")
    run(client, session, places)
    path.write_text(kept)
    say(path, "an answer that is longer than what it stands for", "c")
    assert run(client, session, places) == Captured(messages=2)
    assert client.ids == ["a", "b", "taken-back", "an answer that is longer than what it stands for", "c"]
    assert run(client, session, places) == Captured()


def test_a_place_of_an_older_version_is_taken_up(tmp_path: Path, session: Session, places: Places) -> None:
    client, path = Recording(), tmp_path / "s.jsonl"
    say(path, "a")
    run(client, session, places)
    [file] = places_files(tmp_path)
    file.write_text(json.dumps({"offset": path.stat().st_size, "number": 1}))
    say(path, "b")
    assert run(client, session, places) == Captured(messages=1)
    assert client.ids == ["a", "b"]


def places_files(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "home").rglob("*.json"))


def test_what_our_hooks_injected_is_not_recorded(tmp_path: Path, session: Session, places: Places) -> None:
    added = {"type": "hook_additional_context", "content": ["<offbook-recall>"], "hookEvent": "UserPromptSubmit"}
    with (tmp_path / "s.jsonl").open("a") as file:
        file.write(json.dumps({"type": "attachment", "uuid": "h", "attachment": added}) + "\n")
    say(tmp_path / "s.jsonl", "m", isMeta=True)
    say(tmp_path / "s.jsonl", "a")
    client = Recording()
    run(client, session, places)
    assert client.ids == ["a"]


def test_a_little_at_a_time(tmp_path: Path, session: Session, places: Places) -> None:
    say(tmp_path / "s.jsonl", *(str(number) for number in range(20)))
    client = Recording()
    while run(client, session, places, limit_bytes=300).messages:
        pass
    assert client.ids == [str(number) for number in range(20)]


@pytest.mark.parametrize("refusing", [Recording(invalid=1), Recording(is_durable=False)])
def test_what_the_outbox_did_not_take_is_read_again(
    tmp_path: Path, session: Session, places: Places, refusing: Recording
) -> None:
    say(tmp_path / "s.jsonl", "a")
    assert not run(refusing, session, places).is_kept
    client = Recording()
    run(client, session, places)
    assert client.ids == ["a"]


@pytest.fixture
def nobody(tmp_path: Path) -> Iterator[Client]:
    """A client with an outbox for three messages or so, and no provider."""
    home = tmp_path / "home"
    client = Client(f"unix://{tmp_path}/none.sock", client="hook", home=home, outbox_max_bytes=1_000)
    yield client
    client.close(0)


def test_a_message_that_is_dropped_keeps_the_place_back(
    tmp_path: Path, session: Session, places: Places, nobody: Client
) -> None:
    say(tmp_path / "s.jsonl", "a")
    assert capture(nobody, session, places).is_kept
    say(tmp_path / "s.jsonl", *(str(number) for number in range(20)))
    assert not capture(nobody, session, places).is_kept
    client = Recording()
    run(client, session, places)
    assert client.ids == [str(number) for number in range(20)]


def test_the_place_is_kept_behind_a_sync(
    tmp_path: Path, session: Session, places: Places, nobody: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError("no such luck")

    say(tmp_path / "s.jsonl", "a")
    with monkeypatch.context() as broken:
        broken.setattr("offbook.client.segment.os.fsync", refused)
        assert not capture(nobody, session, places).is_kept
    assert capture(nobody, session, places).is_kept


def test_a_kill_before_the_place_is_kept_only_repeats(
    tmp_path: Path, session: Session, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(tmp_path / "s.jsonl", "a")
    client = Recording()
    with monkeypatch.context() as killed:
        killed.setattr(Places, "keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(client, session, places)
    run(client, session, places)
    assert client.ids == ["a", "a"]


def test_one_reads_at_a_time(session: Session, places: Places) -> None:
    assert session.transcript is not None
    with places.held(session.transcript, patience_seconds=0), pytest.raises(ReadByAnother):
        run(Recording(), session, places, patience_seconds=0.05)


def test_a_broken_place_is_the_beginning(tmp_path: Path, places: Places) -> None:
    path = tmp_path / "s.jsonl"
    with places.held(path, patience_seconds=0):
        places.keep(path, Place(offset=3, number=1))
    assert places.of(path) == Place(offset=3, number=1)
    [kept] = (tmp_path / "home" / "hooks" / "claude-code").glob("*.json")
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_bytes(b"\xff{")
    assert places.of(path) == Place()


def test_two_agents_each_read_it_all(tmp_path: Path, session: Session) -> None:
    say(tmp_path / "s.jsonl", "a")
    for reader in ("one", "two"):
        client = Recording()
        run(client, session, Places(tmp_path / "home" / "hooks", reader))
        assert client.ids == ["a"]


def test_old_places_go(tmp_path: Path, places: Places) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path in (old, new):
        with places.held(path, patience_seconds=0):
            places.keep(path, Place(offset=1, number=1))
    folder = tmp_path / "home" / "hooks" / "claude-code"
    for kept in folder.glob("*"):
        os.utime(kept, (0, 0))
    with places.held(new, patience_seconds=0):
        places.keep(new, Place(offset=2, number=1))
    places.thin_out()
    assert places.of(old) == Place()
    assert places.of(new) == Place(offset=2, number=1)
