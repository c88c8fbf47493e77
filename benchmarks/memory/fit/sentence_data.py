"""Labelled sentences, and others beside them, as the numbers that the reader of sentences is fitted to.

python -m benchmarks.memory.fit.sentence_data ../shared/data SENTENCES        writes what `sentences` reads
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from benchmarks.memory.fit.relation_data import case_pairs, own_conversations, rows_of
from offbook.model.sentences import Sentence, sentences
from offbook.model.statement import KINDS
from offbook.models.sentence_pieces import windows

HELD_OUT_STEP = 5
OWN, KEPT = len(KINDS), len(KINDS) + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of our own conversations")
    parser.add_argument("out", type=Path, help="the file to write")
    given = parser.parse_args()
    labelled = [window for row in rows_of("sentences") for window in labelled_windows(row)]
    texts = {pair.earlier: True for pair in case_pairs(rows_of("cases"))}
    texts |= {pair.later: True for pair in case_pairs(rows_of("cases"))}
    for conversation in own_conversations(given.data):
        texts |= {turn.text: turn.speaker != "assistant" for session in conversation.sessions for turn in session.turns}
    others = [window for text, is_user in texts.items() for window in other_windows(text, is_user=is_user)]
    given.out.write_bytes(pickle.dumps({"labelled": labelled, "others": others}))
    print(f"{len(labelled)} labelled, {len(others)} others")


def labelled_windows(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    message = sentences(row["message"])
    by_text = dict(row["sentences"])
    labels = [by_text.get(one.text) for one in message]
    if not any(labels):
        return
    is_held_out = crc32(row["message"].encode()) % HELD_OUT_STEP == 0
    for window in _windows(message, is_user=row["who"] == "user"):
        some = labels[window["first"] : window["first"] + len(window["spans"])]
        answers = [_answers(one) for one in some]
        yield window | {
            "answers": answers,
            "set": row.get("set", ""),
            "language": row["lang"],
            "is_held_out": is_held_out,
        }


def other_windows(text: str, *, is_user: bool) -> Iterator[dict[str, Any]]:
    yield from _windows(sentences(text), is_user=is_user)


def _windows(message: Sequence[Sentence], *, is_user: bool) -> Iterator[dict[str, Any]]:
    for window in windows(message, is_user=is_user):
        yield {"first": window.first, "pieces": window.pieces, "spans": window.spans, "is_user": is_user}


def _answers(labels: Sequence[Sequence[Any]] | None) -> list[float] | None:
    """What its readers said: the share of each kind, of own voice, of keeping; -1 for a kind that nobody told."""
    if not labels:
        return None
    found = [0.0] * (len(KINDS) + 2)
    for kind, voice, keep in labels:
        if kind is not None:
            found[KINDS.index(kind)] += 1 / len(labels)
        found[OWN] += (voice == "own") / len(labels)
        found[KEPT] += keep / len(labels)
    if sum(found[: len(KINDS)]) < 1:
        found[: len(KINDS)] = [-1.0] * len(KINDS)
    return found


if __name__ == "__main__":
    main()
