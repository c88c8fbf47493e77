"""Recorded answers are replayed through the endpoint's own code, and only to the prompts that they answer."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path

import msgspec
from benchmarks.quality.data import Conversation, Question, Session, Turn
from benchmarks.run import Run
from benchmarks.second_reader import _row, replayed
from benchmarks.second_reader.endpoint import answering, completion, settings_for
from benchmarks.second_reader.recordings import Candidate, Recording, digest, load_recordings, shown, task_of
from rich.console import Console

from offbook.models.rerankers.available import open_reranker
from offbook.models.summarizers.host import HostSummarizer
from offbook.search.results import excerpt, passages

TURNS = [Turn("a", "Dana", "The ferry is nice."), Turn("b", "Ravi", "It leaves at nine."), Turn("c", "Dana", "Good.")]
CONVERSATION = Conversation(
    id="talk",
    sessions=[Session("1", datetime(2026, 3, 1), TURNS)],
    questions=[Question("q", "When does it leave?", "single", ["b"], 1)],
)
KNOWN = {("own", "talk"): CONVERSATION}


def recording(request: str, answer: str = '{"order": [2]}') -> Recording:
    return Recording(
        set="own",
        conversation="talk",
        question="q",
        candidates=[Candidate(turn.id) for turn in TURNS],
        request=request,
        answer=msgspec.Raw(completion(answer)),
    )


def run_in(folder: Path) -> Run:
    return Run(folder=folder, is_quick=True, console=Console(file=io.StringIO()))


def test_an_answer_orders_what_it_was_given_for(tmp_path: Path) -> None:
    with answering(lambda _: (200, completion('{"order": []}'))) as (url, bodies):
        reader = open_reranker(settings_for(url), "main", models=tmp_path, host=HostSummarizer(), environ={})
        reader.read(task_of(recording(""), CONVERSATION))
    known = recording(digest(bodies[0]))
    orders, unanswered = replayed(run_in(tmp_path), [known], KNOWN)
    assert (orders, unanswered) == ({known.request: ["b", "a", "c"]}, 0)
    row = _row("own", [known], orders, KNOWN)
    assert (row["R@5"], row["R@10 deep"], row["R@10 at best"]) == (1.0, 1.0, 1.0)


def test_another_prompt_has_no_answer(tmp_path: Path) -> None:
    orders, unanswered = replayed(run_in(tmp_path), [recording("of another")], KNOWN)
    assert (orders, unanswered) == ({"of another": ["a", "b", "c"]}, 1)


def test_a_part_is_shown_as_the_product_shows_it() -> None:
    text = " ".join(f"Sentence number {number} is about something else." for number in range(60))
    asked = excerpt(text, ["40"], None)
    assert asked in {shown(text, part) for part in range(len(passages(text)))}


def test_the_recordings_hold_no_words_of_the_data() -> None:
    for one in load_recordings():
        assert all(isinstance(each.turn, str) and len(each.turn) < 64 for each in one.candidates)
        assert len(bytes(one.answer)) < 400
