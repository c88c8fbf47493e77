"""What several files say and look at: long texts, what the provider has of a session, and what the plugin's files hold."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tests.host.gateway import Gateway
from tests.host.providers import OffbookProvider
from tests.host.rpc import Rpc
from tests.host.transcripts import transcript

WORDS = "The parcel {turn}.{line} weighs {line} kilograms, came on a grey morning, and goes to pier {turn}. "
WINDOWED_TURNS = 5
WINDOWED_LINES = 60
FACT = "My dog {name} is afraid of thunder, so we always keep the {name} blanket in the hall."


def long_text(turn: int, lines: int) -> str:
    return "".join(WORDS.format(turn=turn, line=line) for line in range(lines))


def audited(provider: OffbookProvider, key: str, verb: str) -> list[dict[str, Any]]:
    """The details of all events of a session with this verb."""
    report = provider.ask("audit", agentId="main", sessionId=key, limit=1_000)
    return [event["details"] for event in report["events"] if event["verb"] == verb]


def session_status(provider: OffbookProvider, key: str) -> dict[str, Any]:
    (found,) = [one for one in provider.status()["sessions"] if one["sessionId"] == key]
    return dict(found)


def assert_stored_as_written(gateway: Gateway, provider: OffbookProvider, key: str) -> None:
    """Every message of the host's transcript, each once, in its order; nothing else."""
    written = [entry.entry_id for entry in transcript(gateway, key)]
    assert written
    gateway.wait_until(lambda: len(provider.log(key)) >= len(written), f"storing all of {key}")
    assert [line["message"]["id"] for line in provider.log(key)] == written


def files_with(gateway: Gateway, words: str) -> list[str]:
    """Names of the plugin's files that have these bytes."""
    folder = gateway.plugin_state
    held: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # what was delivered goes while we look
            held[str(path.relative_to(folder))] = path.read_bytes()
    assert held
    return [name for name, content in held.items() if words.encode() in content]


def windowed(gateway: Gateway, provider: OffbookProvider, session: str, name: str, agent: str = "main") -> None:
    """A session whose context was swapped with the words in it: they are in a file of the plugin's."""
    gateway.set_level("hot-swap")
    gateway.turn(session, FACT.format(name=name), agent)
    for turn in range(WINDOWED_TURNS):
        gateway.turn(session, long_text(turn, WINDOWED_LINES), agent)
    gateway.turn(session, FACT.format(name=name), agent)
    key = f"agent:{agent}:{session}"
    gateway.wait_until(lambda: name in str(provider.log(key, agent)), f"storing {name}")
    with Rpc(gateway) as rpc:
        rpc.call("sessions.compact", {"key": key})
    assert [file for file in files_with(gateway, name) if file.startswith("sessions/")]


def forgotten(provider: OffbookProvider, words: str, agent: str = "main") -> None:
    receipt = provider.ask("forget", agentId=agent, matching=words, reason="a test")["receipt"]
    assert receipt["reached"]["messages"] >= 1
    assert receipt["residue"] == []
