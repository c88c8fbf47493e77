"""How rare a word is in general: makes `models/data/word-rarity.npz`, for `fit_score`."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from offbook.models.word_rarity import RAREST, STEPS
from offbook.search.index.rows import word_numbers
from offbook.search.words import STOP_WORDS, terms

PACKAGE = Path(__file__).parents[2] / "src" / "offbook"


def word_rarity(own: Path) -> dict[str, float]:
    """From the order of the vocabulary, most frequent first, and from our own sentences."""
    rarity: dict[str, float] = {}
    lines = gzip.decompress((PACKAGE / "models/data/wordpiece-uncased.txt.gz").read_bytes()).decode().split("\n")
    words = [word for word in lines[1996:] if word.isalpha() and len(word) > 1 and word not in STOP_WORDS]
    for rank, word in enumerate(words):
        share = 1 - (1 - 0.1 / (rank + 2)) ** 20  # of messages of twenty words, by Zipf's law
        for term in terms(word):
            rarity[term] = min(rarity.get(term, RAREST), -math.log(share))
    for language, messages in _own_messages(own).items():
        count = len(messages)
        held: Counter[str] = Counter()
        for message in messages:
            # Names are no words of a language; German writes all nouns as others write names.
            said = (
                message
                if language in ("de", "zh")
                else " ".join(word for word in re.findall(r"\w+(?:['’]\w+)?", message) if not word[0].isupper())
            )
            held.update(set(terms(said)))
        least, added = (3, 0.0) if count >= 800 else (2, 0.5)
        for term, times in held.items():
            if times >= least:
                rarity[term] = min(rarity.get(term, RAREST), math.log(count / times) + added)
    return rarity


def _own_messages(own: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    with gzip.open(PACKAGE / "models/data/sentences.jsonl.gz", "rt") as file:
        for line in file:
            item = json.loads(line)
            found[item["lang"]].add(item["message"])
    for conversation in json.loads(gzip.decompress(own.read_bytes())):
        language = conversation["language"].split("/")[0]
        found[language].update(turn["text"] for session in conversation["sessions"] for turn in session["turns"])
    return found


def write_rarity(rarity: dict[str, float]) -> None:
    keys, values = word_numbers(rarity), np.minimum(np.array(list(rarity.values())), RAREST)
    order = np.argsort(keys)
    np.savez_compressed(
        PACKAGE / "models/data/word-rarity.npz",
        keys=keys[order],
        rarities=np.round(values[order] * STEPS).astype(np.uint8),
    )
