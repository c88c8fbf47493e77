"""The pairs of messages that `relation` fits to, as the numbers that the model reads.

Written one by one: alone (`pairs.jsonl.gz`), and several for one statement, which differ in little and say the opposite
(`cases.jsonl.gz`); and the statements of these, said again with another value (`values.json`). One statement that
changes something, or seems to, with what was said before: what it ends, and what holds beside it (`changes.jsonl.gz`).
Put together from sentences with gaps: `frames.jsonl.gz`. And out of ordinary conversations, where nearly nothing is
replaced: each message with the earlier ones of its speaker that share most rare words with it.

    python -m benchmarks.memory.fit.relation_data ../shared/data PAIRS        writes what `relation` reads
    … --larger MODEL.gguf                                                     the same, as `relation_teacher` reads it
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.memory.fit.examples import RELATIONS, Example, Examples, Relation, save_examples
from benchmarks.quality.data import Conversation, Turn, load
from benchmarks.run import Skipped
from offbook.models.glossary import in_english
from offbook.models.minilm import MAX_PIECES, WordPiece
from offbook.models.relation import MOST_PIECES
from offbook.projections.link_pairs import Read, compared, read_as
from offbook.search.words import STOP_WORDS, terms

RELATION_SHARES = (0.46, 0.1, 0.44)
"""Of the pairs that are made from a frame."""
PAIRS_OF_FRAME = 150
HELD_OUT_STEP = 8
OWN = "own-dev.json.gz"
FIRST_LOCOMO, FIRST_REALMEM = 2, 1
"""The first conversation that is fitted to: those before it are measured on."""
CANDIDATES, CROSSED = 2, 2
UNLABELLED, UNLABELLED_STRANGERS = 35, 4
"""Pairs of what was written of one statement, and with what was written of another."""
OF_CHANGE: dict[str, Relation] = {"replaces": "replaces", "holds": "other"}
STRANGER_SHARE = 0.3
FIRST_LATER, FIRST_WITH_STRANGER = 3, 6
"""A message is compared once so many were said before it; and with one of them, whichever it is, once so many were."""


OPENINGS = {
    "en": "Yes,|Yeah,|Well,|Ok,|Oh,|So,|Anyway,|By the way,|FYI:|Just so you know,|Hi!|Hm,|Thanks!|No,|Look,|Sure,",
    "de": "Ja,|Also|Ach,|Übrigens,|Na ja,|Ok,|Hallo!|Danke!|Hm,|Nein,",
    "es": "Sí,|Bueno,|Por cierto,|Pues|Vale,|Hola!|Gracias!|No,",
    "fr": "Oui,|Bon,|Au fait,|Alors|D'accord,|Bonjour!|Merci!|Non,",
    "it": "Sì,|Allora|Comunque|Ok,|Ciao!|Grazie!|No,|A proposito,",
}
"""What may stand before anything that is said: the model is to pass over it."""
UNMARKED, MARKED, OPENED, WITH_ANOTHER = 0.35, 0.45, 0.25, 0.12
"""How often the mark at the end is left out, or (up to there) put where there is none; how often a text has an opening;
how often another sentence stands beside it."""
LONGEST_WITH_ANOTHER = 60
CORRECTING, NEAR_MISSES = 0.65, 0.6
"""How often a statement that is said again with another value has the opening of a correction ("Actually, …"); and how
often what corrects nothing is given one, beside a sentence of another matter."""


_NUMBER, _NAME = re.compile(r"\d+"), re.compile(r"(?<=[a-zà-ü,] )[A-ZÀ-Ü][a-zà-ü]{3,}\b")


PiecesOf = Callable[[str], list[int]]
LARGER_MOST_PIECES = 72


class Pair(NamedTuple):
    earlier: str
    later: str
    relation: Relation
    language: str = ""


class Said(NamedTuple):
    """A message of an ordinary conversation."""

    speaker: str
    read: Read
    words: frozenset[str]


class OwnSession(msgspec.Struct, frozen=True):
    turns: list[Turn]


class OwnConversation(msgspec.Struct, frozen=True):
    """As `Conversation`, whose names are numbers here: only what is said is read."""

    sessions: list[OwnSession]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the ordinary conversations")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--hold-out", action="store_true", help="leave out every eighth case, to judge by")
    parser.add_argument("--larger", type=Path, metavar="MODEL.gguf", help="in the pieces of this model")
    given = parser.parse_args()
    re._MAXCACHE = 1_000_000  # type: ignore[attr-defined]  # every value of `restated_pairs` is a pattern
    pieces = larger_pieces(given.larger) if given.larger else small_pieces()
    examples = read_examples(given.data, pieces, hold_out=given.hold_out)
    save_examples(examples, given.out)
    print(", ".join(f"{len(some)} {name}" for name, some in examples._asdict().items()))


def read_examples(data: Path, pieces: PiecesOf, *, hold_out: bool) -> Examples:
    """`data`: the folder of the ordinary conversations. `hold_out`: leave out every eighth case. In the same order
    whatever the pieces are."""
    cases = rows_of("cases")
    held_out = cases[::HELD_OUT_STEP] if hold_out else []
    kept = [case for at, case in enumerate(cases) if not hold_out or at % HELD_OUT_STEP]

    def examples(pairs: Sequence[Pair]) -> list[Example]:
        return [
            Example(pieces(one.earlier), pieces(one.later), RELATIONS.index(one.relation), language=one.language)
            for one in pairs
        ]

    return Examples(
        pairs=examples([Pair(row["earlier"], row["later"], row["relation"], row["lang"]) for row in rows_of("pairs")]),
        cases=examples(case_pairs(kept) + reworded_pairs(kept) + crossed_pairs(kept, random.Random(9))),
        frames=examples(frame_pairs(rows_of("frames"), random.Random(1))),
        ordinary=examples(ordinary_pairs(data, random.Random(1))),
        restated=examples(restated_pairs(kept, random.Random(5))),
        changes=examples(change_pairs(rows_of("changes"))),
        unlabelled=examples(unlabelled_pairs(kept, rows_of("changes"), random.Random(3))),
        held_out=examples(case_pairs(held_out)),
    )


def case_pairs(cases: Sequence[dict[str, Any]]) -> list[Pair]:
    return [
        Pair(case["earlier"], later, relation, case.get("lang", ""))
        for case in cases
        for relation in RELATIONS
        for later in case.get(relation, ())
    ]


def reworded_pairs(cases: Sequence[dict[str, Any]]) -> list[Pair]:
    """Another wording of the statement in its place: what replaces the one replaces the other."""
    return [
        pair
        for case in cases
        for earlier in case.get("repeats", ())
        for pair in case_pairs([case | {"earlier": earlier, "repeats": ()}])
    ]


def crossed_pairs(cases: Sequence[dict[str, Any]], rng: random.Random) -> list[Pair]:
    """What replaces a statement replaces nothing that only looks like it: "My brother works in Hamburg." holds after
    "I moved to Leipzig.", so that a correction alone, whatever it is beside, says nothing."""
    return [
        Pair(earlier, later, "other", case.get("lang", ""))
        for case in cases
        for later in case.get("replaces", ())
        for earlier in rng.sample(case.get("other", ()), min(CROSSED, len(case.get("other", ()))))
    ]


def change_pairs(changes: Sequence[dict[str, Any]]) -> list[Pair]:
    """Of one statement with what was said before it."""
    return [
        Pair(earlier, change["later"], relation, change.get("lang", ""))
        for change in changes
        for name, relation in OF_CHANGE.items()
        for earlier in change[name]
    ]


def unlabelled_pairs(
    cases: Sequence[dict[str, Any]], changes: Sequence[dict[str, Any]], rng: random.Random
) -> list[Pair]:
    """What was written of one statement, each beside each and beside some of others in its language."""
    written = [
        (case["lang"], [text for name in ("repeats", *RELATIONS) for text in case.get(name, ())] + [case["earlier"]])
        for case in cases
    ]
    written += [(one.get("lang", ""), [one["later"], *one["replaces"], *one["holds"]]) for one in changes]
    of_language: dict[str, list[list[str]]] = {}
    for language, texts in written:
        of_language.setdefault(language, []).append(texts)
    found: list[Pair] = []
    for language, texts in written:
        for _ in range(UNLABELLED):
            found.append(Pair(*rng.sample(texts, 2), relation="other", language=language))
        for _ in range(UNLABELLED_STRANGERS):
            stranger = rng.choice(rng.choice(of_language[language]))
            found.append(Pair(stranger, rng.choice(texts), "other", language))
    return found


def otherwise(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """The same pairs as somebody else might have typed them: what they say stays."""
    wordpiece = WordPiece(MAX_PIECES)
    openings = {
        name: [wordpiece.pieces(one, in_english)[1:-1] for one in some.split("|")] for name, some in OPENINGS.items()
    }
    marks = {wordpiece.pieces(mark)[1] for mark in ".!?,;:。！？"}
    full_stop = wordpiece.pieces(".")[1]
    others: dict[str, list[list[int]]] = {}
    for one in examples:
        others.setdefault(one.language, []).append(one.earlier)

    def written(pieces: list[int], language: str) -> list[int]:
        found, chance = list(pieces), rng.random()
        if chance < UNMARKED:
            while found and found[-1] in marks:
                found.pop()
        elif chance < MARKED and found and found[-1] not in marks:
            found.append(full_stop)
        if language in openings and rng.random() < OPENED:
            found = [*rng.choice(openings[language]), *found]
        if language and rng.random() < WITH_ANOTHER:
            another = rng.choice(others[language])
            if len(found) + len(another) < LONGEST_WITH_ANOTHER:
                found = [*found, *another] if rng.random() < 0.5 else [*another, *found]
        return found[:MOST_PIECES]

    return [
        one._replace(earlier=written(one.earlier, one.language), later=written(one.later, one.language))
        for one in examples
    ]


def frame_pairs(frames: Sequence[dict[str, Any]], rng: random.Random) -> list[Pair]:
    """Pairs of sentences with values put in: another one in the later, where the frame says so."""
    found = []
    for frame in frames:
        for _ in range(PAIRS_OF_FRAME):
            old, new = rng.sample(frame["values"], 2)
            other = rng.choice(frame.get("others") or [""])
            relation = rng.choices(RELATIONS, RELATION_SHARES)[0]
            if not frame.get(relation):
                continue
            texts = [rng.choice(frame["earlier"]), rng.choice(frame[relation])]
            first, second = (one.replace("{A}", old).replace("{B}", new).replace("{O}", other) for one in texts)
            found.append(Pair(first[:1].upper() + first[1:], second[:1].upper() + second[1:], relation))
    return found


def restated_pairs(cases: Sequence[dict[str, Any]], rng: random.Random) -> list[Pair]:
    """Each statement said again with another value, with and without "Correction:" before it; and the same openings
    before what does not concern it, so that an opening alone corrects nothing."""
    packed = files("benchmarks.memory.fit").joinpath("values.json").read_text()
    values = {language: Values(language, given, cases) for language, given in json.loads(packed).items()}
    found: list[Pair] = []
    for case in cases:
        language = case["lang"]
        ours = values[language]
        for earlier in (case["earlier"], *case.get("repeats", ())):
            later = ours.another(earlier, rng)
            if later is None:
                continue
            found.append(Pair(earlier, ours.opened(later, rng, CORRECTING), "replaces", language))
            stranger = rng.choice(cases)
            other = ours.another(stranger["earlier"], rng) if stranger["lang"] == language else None
            if other is not None:
                found.append(Pair(earlier, ours.opened(other, rng), "other", language))
            if case["other"] and rng.random() < NEAR_MISSES:
                found.append(Pair(earlier, ours.opened(rng.choice(case["other"]), rng), "other", language))
    return found


class Values:
    """What a statement of one language may say in the place of what it says."""

    def __init__(self, language: str, given: dict[str, list[str]], cases: Sequence[dict[str, Any]]) -> None:
        self._gap = "" if language == "zh" else " "
        self._openings = given["openings"]
        texts = [text for case in cases if case["lang"] == language for text in (case["earlier"], *case["other"])]
        # In German every noun is written as a name is.
        names = sorted({name for text in texts for name in _NAME.findall(text)}) if language in "en es fr it" else []
        self._kinds = [given["weekdays"], given["months"], given["numbers"], names]

    def another(self, text: str, rng: random.Random) -> str | None:
        """With another number, day, month or name in one place; None where it has none."""
        places = [(found.span(), None) for found in _NUMBER.finditer(text)]
        for kind in self._kinds:
            for value in kind:
                edge = r"\b" if self._gap else ""
                places += [(each.span(), kind) for each in re.finditer(edge + re.escape(value) + edge, text)]
        if not places:
            return None
        (start, end), kind = rng.choice(places)
        others = kind or [str(rng.randint(1, 31 if end - start < 3 else 10 ** (end - start) - 1)) for _ in range(9)]
        return text[:start] + rng.choice([one for one in others if one != text[start:end]] or ["0"]) + text[end:]

    def opened(self, text: str, rng: random.Random, share: float = 1.0) -> str:
        """With the opening of a correction before it, in this share of them."""
        opening = rng.choice(self._openings)
        if rng.random() >= share:
            return text
        return opening + self._gap + (text if opening[-1] in ":：" or text.startswith("I") else _lowered(text))


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def ordinary_pairs(data: Path, rng: random.Random) -> list[Pair]:
    """What people say, with what they said before."""
    own, locomo, realmem = own_conversations(data), load(data, "LoCoMo"), load(data, "RealMem")
    found: list[Pair] = []
    for conversations, most_messages, most_pairs in (
        ([_turns(one) for one in own], 300, 3_000),
        ([_turns(one) for one in locomo[FIRST_LOCOMO:]], 250, 1_500),
        ([_of_user(_turns(one)) for one in realmem[FIRST_REALMEM:]], 150, 2_000),
    ):
        pairs = [pair for turns in conversations for pair in _compared_pairs(turns[:most_messages], rng)]
        rng.shuffle(pairs)
        found += pairs[:most_pairs]
    return found


def rows_of(name: str) -> list[dict[str, Any]]:
    packed = files("benchmarks.memory.fit").joinpath(f"{name}.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).decode().splitlines()]


def _compared_pairs(turns: Sequence[Turn], rng: random.Random) -> Iterator[Pair]:
    """Each message that states something with the few before it that share most rare words, now and then with any:
    of each what the links compare."""
    said = [Said(turn.speaker, read_as(turn.text), frozenset(terms(turn.text)) - STOP_WORDS) for turn in turns]
    holding = Counter(word for one in said for word in one.words)
    for at, later in enumerate(said):
        if not later.read.statements or at < FIRST_LATER:
            continue
        before = [place for place, one in enumerate(said[:at]) if one.speaker == later.speaker and one.read.sentences]
        overlaps = {place: sum(1 / holding[word] for word in later.words & said[place].words) for place in before}
        nearest = sorted(before, key=lambda place: (overlaps[place], place), reverse=True)[:CANDIDATES]
        if rng.random() < STRANGER_SHARE and at >= FIRST_WITH_STRANGER:
            nearest.append(rng.randrange(at))
        for earlier in (said[place] for place in nearest):
            if not earlier.read.sentences:
                continue
            first, second = compared(earlier.read.sentences, later.read.statements)
            if first.lower() != second.lower():
                yield Pair(first, second, "other")


def small_pieces() -> PiecesOf:
    """As the embedding model reads a text, without the marks around it."""
    wordpiece = WordPiece(MAX_PIECES)
    return lambda text: wordpiece.pieces(text, in_english)[1:-1][:MOST_PIECES]


def larger_pieces(model: Path) -> PiecesOf:
    """As the tokenizer in a GGUF file of SmolLM2 does. Needs `gguf`, which no user does."""
    from gguf import GGUFReader
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    fields = GGUFReader(model).fields

    def texts(name: str) -> list[str]:
        field = fields[f"tokenizer.ggml.{name}"]
        return [bytes(field.parts[at]).decode() for at in field.data]

    merges = [(first, second) for first, second in (each.split(" ") for each in texts("merges"))]
    tokenizer = Tokenizer(models.BPE({text: at for at, text in enumerate(texts("tokens"))}, merges))
    digits = pre_tokenizers.Split(Regex(r"\d"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return lambda text: list(tokenizer.encode(f" {in_english(text)}").ids[:LARGER_MOST_PIECES])


def _turns(conversation: Conversation | OwnConversation) -> list[Turn]:
    return [turn for session in conversation.sessions for turn in session.turns]


def _of_user(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.speaker == "user"]


def own_conversations(data: Path) -> list[OwnConversation]:
    path = data / OWN
    if not path.exists():
        raise Skipped(f"the development data is not here: no {path}")
    with gzip.open(path) as file:
        return msgspec.json.decode(file.read(), type=list[OwnConversation])


if __name__ == "__main__":
    main()
