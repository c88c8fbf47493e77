from __future__ import annotations

import json
from typing import Any

import pytest

from offbook import Client
from offbook.cli.contexts import CHOICES, DEFAULT_CHARS
from offbook.cli.output import told_levels, told_parts
from offbook.context.provider_shapes import SHAPES, to_anthropic, to_openai
from offbook.model.types import CompressedContext, Message, Part, Span, now
from tests.unit.cli.conftest import Run

MESSAGES = [Message(role="assistant", content="They met in Lisbon."), Message(role="user", content="And then?")]
PARTS = [
    Part(kind="summary", first_seq=1, last_seq=40, chars=90, id="L2-0001", level=2),
    Part(kind="summary", first_seq=41, last_seq=50, chars=90, id="L1-0005", level=1),
    Part(kind="summary", first_seq=51, last_seq=60, chars=90, id="L1-0006", level=1),
    Part(kind="summary", first_seq=61, last_seq=68, chars=30, level=0),
    Part(kind="verbatim", first_seq=69, last_seq=70, chars=40),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    asked: list[tuple[str, int]] = []

    def answer(self: Client, session_id: str, max_chars: int) -> CompressedContext:
        asked.append((session_id, max_chars))
        is_known = session_id == "chat"
        return CompressedContext(
            session_id=session_id,
            agent_id="main",
            generation=1,
            text="They met in Lisbon.\n\nuser: And then?" if is_known else "",
            messages=MESSAGES if is_known else [],
            chars=36 if is_known else 0,
            max_chars=max_chars,
            covers=Span(first_seq=1, last_seq=70) if is_known else Span(first_seq=0, last_seq=0),
            parts=PARTS if is_known else [],
            built_at=now(),
        )

    monkeypatch.setattr(Client, "get_compressed_context", answer)
    return asked


def test_the_text_is_on_stdout_and_what_it_is_made_of_beside_it(run: Run, asked: list[tuple[str, int]]) -> None:
    result = run("context", "chat")
    assert result.stdout == "They met in Lisbon.\n\nuser: And then?\n"
    first, last = result.stderr.splitlines()
    assert first == "messages 1 to 70 of chat for agent main, generation 1"
    assert last.startswith(
        "2 messages verbatim, 3 summaries (1 L2, 2 L1), 8 messages digested or only counted; 36 of 16,000 characters"
    )
    assert asked == [("chat", DEFAULT_CHARS)]


@pytest.mark.parametrize(("shape", "shaped"), [("openai", to_openai), ("anthropic", to_anthropic)])
def test_it_is_shaped_as_a_provider_of_models_takes_it(
    shape: str, shaped: Any, run: Run, asked: list[tuple[str, int]]
) -> None:
    result = run("context", "chat", "--as", shape, "--max-chars", "500")
    assert json.loads(result.stdout) == shaped(MESSAGES)
    assert "2 messages verbatim" in result.stderr
    quiet = run("context", "chat", "--as", shape, "--json")
    assert (json.loads(quiet.stdout), quiet.stderr) == (shaped(MESSAGES), "")


def test_every_shape_can_be_chosen() -> None:
    assert set(CHOICES) == {"text", *SHAPES}


def test_json_is_the_answer(run: Run, asked: list[tuple[str, int]]) -> None:
    result = run("context", "chat", "--json")
    assert (json.loads(result.stdout)["covers"], result.stderr) == ({"firstSeq": 1, "lastSeq": 70}, "")


def test_a_session_that_nobody_knows_says_where_to_look(run: Run, asked: list[tuple[str, int]]) -> None:
    result = run("context", "unheard-of")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "nothing is known of unheard-of, agent main: `offbook log` lists the sessions\n"


def test_what_had_no_room_is_told() -> None:
    parts = [Part(kind="summary", first_seq=1, last_seq=9, chars=0, id="L1-0001", level=1), PARTS[-1]]
    assert told_parts(parts) == "2 messages verbatim, 9 messages left out for want of room"
    assert told_parts([]) == "0 messages verbatim"


def test_levels_are_told_the_widest_first() -> None:
    assert told_levels({"L1": 1_200, "L3": 1, "L2": 30}) == "1 L3, 30 L2, 1,200 L1"
    assert told_levels({}) == "none"
