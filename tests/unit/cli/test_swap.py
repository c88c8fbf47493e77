from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from offbook.model.summary import Dropped, Ledger, StateRecord, Swap
from offbook.model.types import Message, Part
from tests.unit.cli.answering import Answering
from tests.unit.cli.conftest import Run

AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SIZES = ["--used-tokens", "170000", "--context-window", "200000"]


def ledger(**fields: Any) -> Ledger:
    given = {
        "verbatim": [Part(kind="verbatim", first_seq=21, last_seq=30, chars=900)],
        "summaries": [
            Part(kind="summary", first_seq=1, last_seq=16, chars=1_200, id="L1-0001", level=1),
            Part(kind="summary", first_seq=17, last_seq=20, chars=200, level=0),
        ],
        "dropped": [
            Dropped(kind="number", text="42", session_id="chat", seq=5, expand="L1-0001"),
            Dropped(kind="name", text="Ada", session_id="my chat", seq=18),
        ],
        "dropped_count": 2,
        "state": [StateRecord(kind="open loop", text="book the ferry", first_seq=9, last_seq=11, at=AT)],
    }
    return Ledger(**(given | fields))


def swap(**fields: Any) -> Swap:
    given = {
        "swapped": True,
        "reason": "170,000 of 200,000 tokens were in use",
        "generation": 3,
        "messages": [Message(role="assistant", content="They met in Lisbon.")],
        "tokens_before": 170_000,
        "tokens_after": 34_000,
        "ledger": ledger(),
        "took_ms": 12.34,
    }
    return Swap(**(given | fields))


def test_sizes_and_the_ledger_are_shown(run: Run, provider: Answering) -> None:
    provider.with_answers("swap", swap())
    result = run("swap", "chat", *SIZES)
    assert result.stdout.splitlines() == [
        "swapped: 170,000 → 34,000 tokens (20 %), 1 message, generation 3",
        "170,000 of 200,000 tokens were in use; in 12.3 ms",
        "",
        "kept: 10 messages verbatim, 1 summary (1 L1), 4 messages digested or only counted",
        "verbatim: #21 to #30",
        "",
        "summary  messages    characters",
        "L1-0001  #1 to #16        1,200",
        "none     #17 to #20         200",
        "",
        "carried along:",
        "open loop: book the ferry (#9 to #11)",
        "",
        "2 particulars left out:",
        "what    it says  to get it back",
        "number  42       offbook expand L1-0001",
        "name    Ada      offbook expand --session 'my chat' --from 18",
    ]
    assert provider.bodies("swap") == [{"sessionId": "chat", "usedTokens": 170_000, "contextWindow": 200_000}]


def test_the_messages_are_shown_where_asked_for(run: Run, provider: Answering) -> None:
    provider.with_answers("swap", swap())
    assert run("swap", "chat", *SIZES, "--full").stdout.startswith("── assistant ──\nThey met in Lisbon.\n\nswapped:")


def test_what_was_not_swapped_says_why_and_what_to_do(run: Run, provider: Answering) -> None:
    kept = {"swapped": False, "reason": "it is due at 160,000", "messages": [], "ledger": Ledger()}
    provider.with_answers("swap", swap(**kept))
    result = run("swap", "chat", *SIZES)
    assert (result.exit_code, result.stdout) == (0, "not swapped: it is due at 160,000\n")
    assert result.stderr == "--force swaps wherever the new context is the smaller one\n"
    assert run("swap", "chat", *SIZES, "--force", "--agent", "x").stderr == ""
    assert provider.bodies("swap")[1]["force"] is True
    assert provider.bodies("swap")[1]["agentId"] == "x"
    assert run("swap", "chat", *SIZES, "--token-ratio", "1.2").exit_code == 0
    assert provider.bodies("swap")[2]["tokenRatio"] == 1.2
    assert "not in the range" in run("swap", "chat", *SIZES, "--token-ratio", "9").stderr


def test_of_much_that_is_left_out_the_newest_is_shown(run: Run, provider: Answering) -> None:
    dropped = [Dropped(kind="number", text=f"n{n}", session_id="chat", seq=n, expand="L1-0001") for n in range(200)]
    provider.with_answers("swap", swap(ledger=ledger(dropped=dropped, dropped_count=1_500)))
    result = run("swap", "chat", *SIZES)
    assert "\n1,500 particulars left out, the newest 20:\n" in result.stdout
    assert ("n199 " in result.stdout, "n100 " in result.stdout) == (True, False)
    assert result.stderr == "--json has 200 of them\n"


def test_json_is_the_answer(run: Run, provider: Answering) -> None:
    provider.with_answers("swap", swap())
    document = json.loads(run("swap", "chat", *SIZES, "--json").stdout)
    assert (document["tokensAfter"], document["ledger"]["droppedCount"]) == (34_000, 2)


@pytest.mark.parametrize("arguments", [SIZES[:2], SIZES[2:], ["--used-tokens", "1", "--context-window", "0"]])
def test_both_sizes_are_asked_for(arguments: list[str], run: Run, provider: Answering) -> None:
    assert run("swap", "chat", *arguments).exit_code == 2
    assert provider.asked == []
