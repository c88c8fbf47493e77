"""Compression from the command line, from the first message to the replay: real processes, a real provider."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from offbook.cli.output import told_levels
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.acceptance.test_cli import offbook, output_of

SMALL = {
    "OFFBOOK_PORT": "0",
    "OFFBOOK_CHUNK_TOKENS": "200",
    "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "100",
    "OFFBOOK_SUMMARY_TARGET_TOKENS": "60",
}
"""So that forty messages make summaries, and summaries of summaries."""
PLACES = ["Lisbon", "Naxos", "Bergen", "Kyoto", "Quito"]
MESSAGES = 40


@pytest.fixture(scope="module")
def provider() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL | SMALL) as daemon:
        yield daemon


def said(number: int) -> str:
    place = PLACES[number % len(PLACES)]
    return (
        f"On day {number} we decided to go to {place} by the ferry number {1000 + number}, since the train was full. "
        f"Invoice INV-{number:04} of {17 * number} euros was paid to Maria, and the room looks over the harbour there."
    )


def test_a_long_session_is_compressed_inspected_expanded_swapped_and_replayed(provider: Daemon) -> None:
    home = provider.home
    sides = ["user", "assistant"]
    lines = [json.dumps({"role": sides[n % 2], "content": said(n)}) for n in range(1, MESSAGES + 1)]
    output_of(home, "record", "trip", "--jsonl", "-", stdin="\n".join(lines))

    # What it takes is told, nothing is to pay, and it is waited for.
    assert "nothing: no model is asked" in output_of(home, "compress", "--dry-run")
    done = json.loads(output_of(home, "compress", "--session", "trip", "--json"))
    assert (done["waiting"], done["dollars"], done["summarizer"]) == (0, 0.0, "extractive")
    assert done["counts"]["L1"] >= 3
    assert "no new summaries" in output_of(home, "compress")
    index = json.loads((home / "summaries/main/index.json").read_text())
    assert len(index["summaries"]) == sum(done["counts"].values())

    # Every summary can be looked at, and the messages behind it are those that were sent.
    found = json.loads(output_of(home, "inspect", "--all", "--session", "trip", "--json"))
    assert found["counts"] == done["counts"]
    assert len(found["summaries"]) == sum(done["counts"].values())
    listed = output_of(home, "inspect", "--level", "L1", "--limit", "1")
    newest = next(each for each in found["summaries"] if each["level"] == 1)
    span = newest["spans"][0]
    assert listed.startswith(f"{newest['id']}  session trip #{span['firstSeq']} to #{span['lastSeq']}")
    assert "by extractive" in listed
    for summary in found["summaries"]:
        behind = [json.loads(line) for line in output_of(home, "expand", summary["id"], "--json").splitlines()]
        wanted = range(summary["spans"][0]["firstSeq"], summary["spans"][0]["lastSeq"] + 1)
        assert [(each["seq"], each["message"]["content"]) for each in behind] == [(n, said(n)) for n in wanted]
    by_numbers = output_of(home, "expand", "--session", "trip", "--from", "12", "--to", "14")
    assert all(said(number) in by_numbers for number in (12, 13, 14))
    assert f"by level      {told_levels(done['counts'])}\nwaiting       nothing\n" in output_of(home, "status")

    # A context holds the newest word for word, and summaries of the rest.
    context = offbook(home, "context", "trip", "--max-chars", "4000")
    assert (len(context.stdout.rstrip("\n")) <= 4_000, said(MESSAGES) in context.stdout) == (True, True)
    assert "verbatim" in context.stderr.splitlines()[-1]
    assert "summar" in context.stderr.splitlines()[-1]
    request = json.loads(output_of(home, "context", "trip", "--max-chars", "4000", "--as", "anthropic"))
    assert request["messages"][0]["role"] == "user"
    assert isinstance(json.loads(output_of(home, "context", "trip", "--as", "openai")), list)

    # It is swapped when it is due, once.
    sizes = ["--used-tokens", "4500", "--context-window", "5000"]
    early = output_of(home, "swap", "trip", "--used-tokens", "10", "--context-window", "5000")
    assert early.startswith("not swapped: 10 of 5,000 tokens are in use")
    before = datetime.now(UTC)
    time.sleep(0.01)
    handed = json.loads(output_of(home, "swap", "trip", *sizes, "--json"))
    assert (handed["swapped"], handed["generation"], handed["tokensAfter"] < 4_500) == (True, 1, True)
    shown = output_of(home, "swap", "trip", *sizes)
    assert shown.startswith("swapped: 4,500 → ")
    assert "generation 1" in shown
    assert "\nkept: " in shown

    # What the agent had before, and what it has since, can be shown at any time.
    output_of(home, "record", "trip", "And where do we go next?")
    then = json.loads(output_of(home, "replay", "trip", "--at", before.isoformat(), "--json"))
    assert (then["kind"], len(then["messages"]), then["isExact"]) == ("log", MESSAGES, True)
    now = json.loads(output_of(home, "replay", "trip", "--at", datetime.now(UTC).isoformat(), "--json"))
    assert now["messages"][:-1] == handed["messages"]
    assert now["messages"][-1]["content"] == "And where do we go next?"
    output = output_of(home, "replay", "trip", "--at", datetime.now(UTC).isoformat())
    assert "handed over by a swap at " in output
    assert "And where do we go next?" in output
    assert "generation=1" in output.partition("\nwhy:\n")[2]


def test_what_is_not_there_says_what_to_do(provider: Daemon) -> None:
    home = provider.home
    missing = offbook(home, "expand", "L1-9999", "--agent", "nobody")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    assert "`offbook inspect` lists them" in missing.stderr
    again = offbook(home, "compress", "--again")
    assert (again.returncode, "summarizer.order" in again.stderr) == (1, True)
    assert "no summaries yet" in offbook(home, "inspect", "--agent", "nobody").stderr
    assert "nothing is known of the session" in output_of(
        home, "swap", "unheard-of", "--used-tokens", "9", "--context-window", "9", "--force"
    )
    assert "`offbook log`" in offbook(home, "replay", "unheard-of", "--at", "2026-01-31").stderr
