"""`python -m benchmarks.second_reader.record FOLDER ANSWERS`: keeps the answers to the prompts that `collect` wrote.

ANSWERS is a JSON object: by `set/conversation/question` the numbers that were named, the most useful first.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import msgspec

from benchmarks.second_reader.endpoint import completion
from benchmarks.second_reader.recordings import FILE, Candidate, Recording


class Collected(msgspec.Struct, frozen=True):
    set: str
    conversation: str
    question: str
    candidates: list[Candidate]
    request: str


def main() -> None:
    folder, answers = Path(sys.argv[1]), msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=dict[str, list[int]])
    made = []
    for path in sorted(folder.glob("*.json")):
        for one in msgspec.json.decode(path.read_bytes(), type=list[Collected]):
            named = answers.get(f"{one.set}/{one.conversation}/{one.question}")
            if named is not None:
                text = msgspec.json.encode({"order": named}).decode()
                made.append(Recording(**msgspec.structs.asdict(one), answer=msgspec.Raw(completion(text))))
    # Without a time in its head, so that the same recordings are the same file.
    FILE.write_bytes(gzip.compress(msgspec.json.encode(made), mtime=0))
    print(f"{len(made)} recordings, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
