"""What a second reader gains: recorded answers of a large model, replayed over the endpoint's own code."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchmarks.quality.data import Conversation, load
from benchmarks.results import Cell, Findings
from benchmarks.run import Run
from benchmarks.second_reader.endpoint import answering, settings_for
from benchmarks.second_reader.recordings import Recording, digest, load_recordings, task_of
from offbook.model.errors import ModelUnavailable
from offbook.models.rerankers.available import open_reranker
from offbook.models.summarizers.host import HostSummarizer

TITLE = "Recall with depth deep: the first 50 in their first order, and as a large model orders them"

RANKS = (5, 10, 30)
NOT_FOUND = 404


def measure(run: Run) -> Findings:
    recordings = load_recordings()
    conversations = {
        (name, one.id): one for name in sorted({each.set for each in recordings}) for one in load(run.data, name)
    }
    orders, unanswered = replayed(run, recordings, conversations)
    rows = [_row("all", recordings, orders, conversations)]
    for name in sorted({each.set for each in recordings}):
        rows.append(_row(name, [each for each in recordings if each.set == name], orders, conversations))
    return Findings(
        bars=[],
        rows=rows,
        notes=[
            f"{len(recordings)} development questions, drawn by a seed (`python -m benchmarks.second_reader.collect`) "
            "from conversations of our own, of LoCoMo (without the adversarial questions) and of RealMem (questions "
            "that may see at most 80 sessions). The candidates are those of the product's own recall, asked with the "
            "time of the last visible turn as soon as all was embedded.",
            "The answers are a large model's, given to the prompts as the product sends them and without sight of the "
            "evidence, kept as chat completions and replayed through the endpoint's own code. What it did not name "
            "follows in the first order. `at best` is what any order of the same 50 could reach.",
            f"Prompts that are others than those that were answered, and so have no answer: {unanswered}.",
        ],
    )


def replayed(
    run: Run, recordings: Sequence[Recording], conversations: dict[tuple[str, str], Conversation]
) -> tuple[dict[str, list[str]], int]:
    """The turns of each recording in the order of the reader; and how many prompts nobody has answered."""
    answers = {each.request: bytes(each.answer) for each in recordings}
    orders: dict[str, list[str]] = {}
    unanswered = 0

    def answer(body: bytes) -> tuple[int, bytes]:
        found = answers.get(digest(body))
        return (NOT_FOUND, b"{}") if found is None else (200, found)

    with answering(answer) as (url, _):
        reader = open_reranker(settings_for(url), "main", models=run.folder, host=HostSummarizer(), environ={})
        for done, each in enumerate(recordings, 1):
            turns = [one.turn for one in each.candidates]
            try:
                order = reader.read(task_of(each, conversations[each.set, each.conversation])).order
            except ModelUnavailable:
                order = []
                unanswered += 1
            named = [turns[at] for at in order]
            orders[each.request] = [*named, *(turn for turn in turns if turn not in set(named))]
            run.progress("replayed", done, len(recordings))
        reader.close()
    return orders, unanswered


def _row(
    name: str,
    recordings: Sequence[Recording],
    orders: dict[str, list[str]],
    conversations: dict[tuple[str, str], Conversation],
) -> dict[str, Cell]:
    before: dict[int, list[float]] = {rank: [] for rank in RANKS}
    after: dict[int, list[float]] = {rank: [] for rank in RANKS}
    best = []
    for each in recordings:
        conversation = conversations[each.set, each.conversation]
        (evidence,) = [set(one.evidence) for one in conversation.questions if one.id == each.question]
        first = [one.turn for one in each.candidates]
        for rank in RANKS:
            before[rank].append(share(first[:rank], evidence))
            after[rank].append(share(orders[each.request][:rank], evidence))
        best.append(min(len(evidence & set(first)), 10) / len(evidence))
    row: dict[str, Cell] = {"set": name, "questions": len(recordings)}
    for rank in RANKS:
        row |= {f"R@{rank}": round(fmean(before[rank]), 3), f"R@{rank} deep": round(fmean(after[rank]), 3)}
    return row | {"R@10 at best": round(fmean(best), 3)}


def share(turns: Sequence[str], evidence: set[str]) -> float:
    return len(evidence & set(turns)) / len(evidence)
