"""Random histories, some of them under `kill -9`: every message is in every context, once, and behind every summary."""

from __future__ import annotations

from functools import partial

import pytest
from benchmarks.provider import spawn, working_folder
from benchmarks.trials.conservation import in_process, killed, killed_seeds
from benchmarks.trials.conserved import log_faults, shown_faults

from offbook.model.types import CompressedContext, LogLine, Message, Part, Scope, Span, now

BATCHES = [range(200, 208), range(600, 612)]
"""Of the 10,000 of `python -m benchmarks --only conservation`; these have three and four levels of summaries."""


@pytest.mark.slow
@pytest.mark.parametrize("seeds", BATCHES, ids=str)
async def test_every_message_is_conserved(seeds: range) -> None:
    with working_folder() as folder:
        tally = await in_process(folder / "home", seeds)
    assert tally.faults == []
    assert tally.counts["histories"] == len(seeds)
    assert all(tally.counts[f"summaries of level {level}"] for level in (1, 2, 3))
    assert tally.counts["swaps"]
    assert tally.counts["replays"]


@pytest.mark.slow
async def test_every_message_is_conserved_under_kills() -> None:
    with working_folder() as folder:
        tally = await killed(folder / "home", killed_seeds(4), kills=3, spawn=partial(spawn, is_forked=True))
    assert tally.faults == []
    assert tally.counts["histories"] == 4
    assert tally.counts["kills while something was said"], "the kills hit nothing"


# ── the checks themselves ──

SCOPE = Scope(agent_id="main", session_id="chat")
LINES = [
    LogLine(seq=seq, received_at=now(), message=Message(role="user", content=f"message {seq}", id=f"m{seq}"))
    for seq in (1, 2, 3, 4)
]
SAID = [line.message for line in LINES]


def context_of(*messages: Message, first_seq: int = 1) -> CompressedContext:
    text = "\n\n".join(f"user: {message.content}" for message in messages)
    return CompressedContext(
        session_id="chat",
        agent_id="main",
        generation=0,
        text=text,
        messages=list(messages),
        chars=len(text),
        max_chars=1_000,
        covers=Span(first_seq=1, last_seq=4),
        parts=[Part(kind="verbatim", first_seq=first_seq, last_seq=4, chars=len(text))],
        built_at=now(),
    )


def test_a_sound_context_has_no_faults() -> None:
    assert shown_faults(context_of(*SAID), SCOPE, LINES, 1_000) == []


@pytest.mark.parametrize(
    ("context", "fault"),
    [
        (context_of(*SAID[1:], first_seq=2), "gap"),
        (context_of(*SAID[1:]), "message 1 is said to be verbatim"),
        (context_of(*SAID[:2], *SAID[1:]), "not each once"),
        (context_of(SAID[1], SAID[0], *SAID[2:]), "not in order"),
        (context_of(*SAID[:3], Message(role="user", content="message five", id="m4")), "message 4 is said to be"),
    ],
    ids=["gap", "lost", "doubled", "out of order", "altered"],
)
def test_what_is_wrong_with_a_context_is_found(context: CompressedContext, fault: str) -> None:
    assert any(fault in one for one in shown_faults(context, SCOPE, LINES, 1_000))


def test_what_is_wrong_with_a_log_is_found() -> None:
    assert list(log_faults(LINES, [SAID[:2], SAID[2:]])) == []
    assert list(log_faults(LINES[:3], [SAID]))
    assert list(log_faults(LINES, [SAID[:3]]))
    assert list(log_faults(LINES, [SAID[::-1]]))
