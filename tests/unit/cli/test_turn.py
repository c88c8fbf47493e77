"""`offbook turn` as it prints. What is injected is tested beside the parts of continuity."""

from __future__ import annotations

import json
from typing import Any

import pytest

from offbook.client.blocking import Client
from offbook.model.summary import TurnPart
from offbook.model.turn import PreparedTurn, TurnTokens
from tests.unit.cli.conftest import Run

MEMORY = '<offbook-memory mark="0">\nMy name for him is Bob.\n</offbook-memory>'
RECALL = '<offbook-recall mark="0">\n- They told you: “Hi.”\n</offbook-recall>'
NOTHING = TurnTokens(memory=0, recall=0, budget=2_000)


def turn(**fields: Any) -> PreparedTurn:
    given = {
        "memory": MEMORY,
        "recall": RECALL,
        "tokens": TurnTokens(memory=1_420, recall=153, budget=37_600),
        "entries": [],
        "intent": "recall",
        "degraded": [],
        "parts": [
            TurnPart(section="memory", kind="working state", tokens=1_420, items=2, why="open", text="…"),
            TurnPart(section="recall", kind="recalled", tokens=74, items=12, why="it was asked for", text="…"),
        ],
    }
    return PreparedTurn(**(given | fields))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was asked of the provider; its key `answer` is what it answers."""
    asked: dict[str, Any] = {"answer": turn()}

    def prepare_turn(self: Client, session_id: str, prompt: str, **how: Any) -> PreparedTurn:
        asked.update(session_id=session_id, prompt=prompt, client_agent=self.agent_id, **how)
        answer = asked["answer"]
        assert isinstance(answer, PreparedTurn)
        return answer

    monkeypatch.setattr(Client, "prepare_turn", prepare_turn)
    return asked


# ── what is asked ──


def test_the_words_are_one_prompt_and_it_is_only_a_look(run: Run, asked: dict[str, Any]) -> None:
    assert run("turn", "chat", "what", "is", "my cat called?").exit_code == 0
    assert (asked["session_id"], asked["prompt"]) == ("chat", "what is my cat called?")
    assert (asked["explain"], asked["preview"]) == (True, True)
    assert (asked["current_tokens"], asked["context_window"], asked["client_agent"]) == (None, None, None)


def test_the_sizes_and_the_agent_are_sent(run: Run, asked: dict[str, Any]) -> None:
    sizes = ["--current-tokens", "0", "--window", "200000", "--agent", "researcher", "--json"]
    assert run("turn", "chat", "hi", *sizes).exit_code == 0
    assert (asked["current_tokens"], asked["context_window"], asked["client_agent"]) == (0, 200_000, "researcher")
    assert (asked["explain"], asked["preview"]) == (True, True)


@pytest.mark.parametrize(
    "arguments",
    [[], ["chat"], ["chat", "hi", "--window", "0"], ["chat", "hi", "--current-tokens", "-1"], ["chat", "\udcff"],
     ["chat", "hi", "--text", "--json"]],
)  # fmt: skip
def test_what_cannot_be_asked_is_not(arguments: list[str], run: Run, asked: dict[str, Any]) -> None:
    assert run("turn", *arguments).exit_code == 2
    assert "prompt" not in asked


# ── what is shown ──


def test_each_part_is_shown_with_its_cost_and_why(run: Run, asked: dict[str, Any]) -> None:
    result = run("turn", "chat", "hi")
    assert result.stdout.splitlines() == [
        "intent  recall: it asks for what was said before",
        "memory  1,420 tokens, at the start of the context, the same until the next swap",
        "recall  153 tokens of at most 37,600, at the end of the user's turn, for this turn only",
        "",
        "section  part           tokens  items  why",
        "memory   working state   1,420      2  open",
        "recall   recalled           74     12  it was asked for",
        "",
        "── memory ──",
        '  <offbook-memory mark="0">',
        "  My name for him is Bob.",
        "  </offbook-memory>",
        "",
        "── recall ──",
        '  <offbook-recall mark="0">',
        "  - They told you: “Hi.”",
        "  </offbook-recall>",
    ]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("long", "left"),
    [
        ("\n".join(f"line {n}" for n in range(1, 15)), "… 16 more characters: --text shows all"),
        ("x" * 1_201, "… 1 more character: --text shows all"),
    ],
)
def test_a_long_section_is_shortened_and_says_so(long: str, left: str, run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = turn(recall=long)
    lines = run("turn", "chat", "hi").stdout.splitlines()
    assert lines[-1] == f"  {left}"
    assert not any("line 13" in line for line in lines)
    assert "--text" not in "".join(lines[:-1])


def test_what_was_unavailable_is_a_warning(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = turn(degraded=["recall: not ready in 250 ms"])
    result = run("turn", "chat", "hi")
    assert (result.exit_code, result.stderr) == (0, "! recall: not ready in 250 ms\n")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"intent": "brief"}, "the prompt is too short to search for\n"),
        ({"intent": "plain"}, "nothing comes to mind; `offbook recall` searches by hand\n"),
        ({"tokens": TurnTokens(memory=0, recall=0, budget=0)}, "there is no room for it"),
        ({"degraded": ["store: broken"]}, "or see the warnings above\n"),
    ],
)
def test_nothing_to_inject_says_why(fields: dict[str, Any], why: str, run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = turn(**({"memory": "", "recall": "", "parts": [], "tokens": NOTHING} | fields))
    result = run("turn", "chat", "hi")
    assert result.exit_code == 0
    assert "memory  nothing\nrecall  nothing of at most " in result.stdout
    assert "section" not in result.stdout
    assert "nothing would be injected:\nmemory: nothing to keep in mind yet" in result.stderr
    assert why in result.stderr.partition("recall: ")[2]


def test_one_empty_section_says_why_and_the_other_is_shown(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = turn(recall="", intent="brief")
    result = run("turn", "chat", "hi")
    assert result.stderr == "recall: the prompt is too short to search for\n"
    assert "My name for him is Bob." in result.stdout


# ── as the model gets it, as a program does ──


@pytest.mark.parametrize(
    ("memory", "recall", "printed"),
    [
        (MEMORY, RECALL, f"{MEMORY}\n\n{RECALL}\n"),
        ("", RECALL, f"{RECALL}\n"),
        (MEMORY, "", f"{MEMORY}\n"),
        ("", "", ""),
    ],
)
def test_the_text_is_the_two_sections_and_nothing_else(
    memory: str, recall: str, printed: str, run: Run, asked: dict[str, Any]
) -> None:
    asked["answer"] = turn(memory=memory, recall=recall, degraded=["x"])
    result = run("turn", "chat", "hi", "--text")
    assert (result.exit_code, result.stdout) == (0, printed)
    assert result.stderr.startswith("! x\n")


def test_the_text_is_whole_and_as_it_is(run: Run, asked: dict[str, Any]) -> None:
    long = "\x1b[31m" + "\n".join("x" * 200 for _ in range(100))
    asked["answer"] = turn(memory="", recall=long)
    assert run("turn", "chat", "hi", "--text").stdout == long + "\n"


def test_json_is_the_answer(run: Run, asked: dict[str, Any]) -> None:
    asked["answer"] = turn(degraded=["x"])
    result = run("turn", "chat", "hi", "--json")
    document = json.loads(result.stdout)
    assert (document["recall"], document["parts"][1]["items"], document["tokens"]["budget"]) == (RECALL, 12, 37_600)
    assert result.stderr == ""


def test_what_is_remembered_does_not_steer_the_terminal(run: Run, asked: dict[str, Any]) -> None:
    evil = "\x1b]0;owned\x07"
    part = TurnPart(section="recall", kind="recalled", tokens=1, items=1, why=evil, text=evil)
    asked["answer"] = turn(memory=evil, recall=evil, degraded=[evil], parts=[part])
    assert "\x1b" not in run("turn", "chat", "hi").output
