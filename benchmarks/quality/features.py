"""What the product's ranking has of every candidate of every question, through the whole pipeline, kept in files.

    python -m benchmarks.quality.features --work FOLDER [--only own] [--only LoCoMo]

A file for each conversation, as numpy's `npz`: fitting and judging weights (`fit_ranking`) then takes seconds.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import structlog
import uvloop
from numpy.typing import NDArray

from benchmarks.memory import installed_models
from benchmarks.quality.data import SETS, Conversation, load
from benchmarks.quality.product import Fed, Feeding, recalled
from benchmarks.quality.vectors import remembered_vectors
from offbook.api.embedded import open_memory
from offbook.model.settings import Settings
from offbook.search import ranking
from offbook.search.evidence import FEATURES, SaidWords
from offbook.search.index.agent_index import AgentIndex

DATA = Path(__file__).parents[3] / "shared" / "data"
OF_ROW = ("place", "ts", "words", "chars", "session", "episode", "position", "speaker", "role", "flags", "numbers")


@dataclass
class Recorder:
    """Stands before the last step of ranking and keeps what it is given."""

    last: dict[str, Any] | None = None
    index: AgentIndex | None = None
    vectors: Any = None
    kept: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, index: Any, vectors: Any, look: Any, words: Any, retrieved: Any, scored: Any) -> Any:
        found = self._best_once_each(index, vectors, look, words, retrieved, scored)
        self.index, self.vectors = index, vectors
        evidence = scored.evidence
        hits = ranking.RetrieverHits(retrieved["text"], retrieved["meaning"])
        held = SaidWords(index.rows, evidence.rows).counts(words.numbers) > 0
        self.last = {
            "rows": evidence.rows,
            "features": np.stack([evidence.features[name] for name in FEATURES], axis=1).astype(np.float32),
            "similarity": evidence.similarity,
            "has_vector": evidence.has_vector,
            "relevant": ranking._is_relevant(index.rows, index.rows.count, evidence, hits, retrieved["time"]),
            "added": np.stack([scored.added[name] for name in ("time", "substance")], axis=1).astype(np.float32),
            "scores": scored.scores.astype(np.float32),
            "held": (held @ words.idf / max(words.idf.sum(), 1e-9)).astype(np.float32),
            "vector": np.zeros(0, np.float32) if look.vector is None else look.vector,
            "shown": np.array([hit.row for hit in found.hits]),
            "about": {
                "is_question": look.query.is_question,
                "wants_memory": look.query.wants_memory,
                "asks_assistant": look.query.asks_assistant,
                "sentences": len(look.query.sentences),
                "names": len(look.query.names),
                "terms": len(look.terms),
                "times": [[list(span), is_exact] for span, is_exact in look.times],
                "bounds": len(look.event_terms),
                "recipe": scored.recipe.name,
                "count": int(index.rows.count),
                "chars": [index.rows.mean_chars(role) for role in (0, 1)],
                "by_text": retrieved["text"].tolist(),
                "by_meaning": retrieved["meaning"].tolist(),
            },
        }
        return found

    _best_once_each = staticmethod(ranking._best_once_each)


@contextmanager
def recorded() -> Iterator[Recorder]:
    recorder = Recorder()
    with patch.object(ranking, "_best_once_each", recorder):
        yield recorder


async def dump(conversation: Conversation, home: Path, path: Path) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    about: list[dict[str, Any]] = []
    with recorded() as recorder:
        async with open_memory(home, settings=Settings(), environ={}) as memory:
            fed = Fed(memory, conversation, Feeding())
            for seen, questions in conversation.questions_by_sight():
                await fed.through(seen)
                for question in questions:
                    recorder.last = None
                    found, took = await recalled(memory, conversation.id, question.question, None)
                    shown = [turn for entry in found.entries for turn in fed.returned(entry).turns]
                    one = recorder.last or {"about": {}}
                    about.append(
                        one.pop("about")
                        | {
                            "id": question.id,
                            "question": question.question,
                            "category": question.category,
                            "evidence": question.evidence,
                            "answer": shown,
                            "milliseconds": took,
                        }
                    )
                    arrays |= {f"{len(about) - 1}/{name}": values for name, values in one.items()}
            index = recorder.index
            assert index is not None
            view = index.rows.view()
            placed = await memory._background._store.messages_at(conversation.id, view["place"].tolist())
            turns = {one.place: one.logged.message.id for one in placed}
            arrays |= {f"row/{name}": np.array(view[name]) for name in OF_ROW}
            arrays["row/mean"] = recorder.vectors.means(np.arange(len(view))).astype(np.float16)
    whole = {
        "conversation": conversation.id,
        "kind": conversation.kind,
        "language": conversation.language,
        "features": list(FEATURES),
        "turns": [turns[place] for place in view["place"].tolist()],
        "questions": about,
    }
    arrays["about"] = np.frombuffer(json.dumps(whole).encode(), np.uint8)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, required=True, help="folder for memories, vectors and what is found")
    parser.add_argument("--only", action="append", choices=list(SETS))
    parser.add_argument("--conversation", action="append", help="this one; repeatable")
    parser.add_argument("--name", default="features", help="of the folder with what is found")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with remembered_vectors(given.work / "cache", installed_models()):
        for name in given.only or SETS:
            folder = given.work / given.name / name
            folder.mkdir(parents=True, exist_ok=True)
            for conversation in load(given.data, name):
                if given.conversation and conversation.id not in given.conversation:
                    continue
                started = time.monotonic()
                home = given.work / "memories" / given.name / conversation.id
                shutil.rmtree(home, ignore_errors=True)
                uvloop.run(dump(conversation, home, folder / f"{conversation.id}.npz"))
                print(name, conversation.id, f"{time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
