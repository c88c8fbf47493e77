"""How much of what the agent answers is told as done, and how much of that was: `AGENT_STATED` is chosen on it.

    python -m benchmarks.memory.fit.answers

350 long answers (advice, lists, drafts, with what was done in between), written and labelled for this by five writers,
sentence by sentence; the reader of sentences was not fitted to them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple

from offbook.context.memory_section import HAPPENED, OWN
from offbook.model.statement import ReadSentence
from offbook.models.sentence_kinds import read_sentences

LABELLED = Path(__file__).parent / "answers.jsonl.gz"
THRESHOLDS = (0.5, 0.8, 0.85, 0.9, 0.95)


class Judged(NamedTuple):
    read: ReadSentence
    has_happened: bool


def judged() -> list[Judged]:
    found: list[Judged] = []
    for line in gzip.decompress(LABELLED.read_bytes()).decode().splitlines():
        row = json.loads(line)
        labels = {text: kind for text, ((kind, *_), *_) in row["sentences"]}
        read = read_sentences(row["message"], is_user=False)
        found += [Judged(one, labels[one.text] in HAPPENED) for one in read if one.text in labels]
    return found


def main() -> None:
    sentences = judged()
    happened = sum(one.has_happened for one in sentences)
    print(f"{len(sentences)} sentences, {happened} tell what was done or decided")
    for threshold in THRESHOLDS:
        told = [
            one
            for one in sentences
            if one.read.kind in HAPPENED and one.read.states >= threshold and one.read.own >= OWN
        ]
        right = sum(one.has_happened for one in told)
        share, found = right / len(told), right / happened
        print(f"stated {threshold:.2f}: {len(told)} told, {right} right ({share:.0%}), {found:.0%} found")


if __name__ == "__main__":
    main()
