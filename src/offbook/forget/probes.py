"""Finding again what should be gone, without keeping it: stretches of words, known by keyed digests only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from offbook.log.erasure import WORD, WORDS, Window, WordRuns, plain, words_of
from offbook.model.plain_names import is_plain_name
from offbook.model.receipt import Probe

# ── Which stretches of a long text were not looked at before: texts say the same again and aga ──

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Marks = npt.NDArray[np.uint64]

MOST_REMEMBERED = 2_000_000
"""Of each length: 16 MB."""
MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd, so that no bit of a word is lost."""


class FirstTime:
    """Stretches of so many words, each known by 64 bits of the process's own keyed hash: that two of ten million are
    taken for one has a chance of one in a hundred thousand, and that one of the two is sought a far smaller one."""

    def __init__(self, size: int) -> None:
        import numpy as np

        self._size = size
        self._seen: Marks = np.empty(0, np.uint64)
        self._found: Marks = np.empty(0, np.uint64)

    def look(self, marks: Marks) -> Iterator[int]:
        """Where in the text what has to be looked at begins: once each, what was not seen before or was found."""
        import numpy as np

        unique, places = np.unique(self._of_word_runs(marks), return_index=True)
        is_fresh = ~_is_among(unique, self._seen)
        if len(self._seen) + len(fresh := unique[is_fresh]) <= MOST_REMEMBERED:
            # Two runs that are each in order: a stable sort only merges them.
            self._seen = np.sort(np.concatenate([self._seen, fresh]), kind="stable")
        yield from np.sort(places[is_fresh | _is_among(unique, self._found)]).tolist()

    def found(self, marks: Marks, place: int) -> None:
        """It is to be looked at wherever it is."""
        import numpy as np

        self._found = np.union1d(self._found, self._of_word_runs(marks[place : place + self._size]))

    def _of_word_runs(self, marks: Marks) -> Marks:
        import numpy as np

        count = max(0, len(marks) - self._size + 1)
        whole: Marks = np.zeros(count, np.uint64)
        for at in range(self._size):
            whole = whole * np.uint64(MULTIPLIER) + marks[at : at + count]
        return whole


def _is_among(marks: Marks, known: Marks) -> npt.NDArray[np.bool_]:
    """`known` is in order."""
    import numpy as np

    if not len(known):
        return np.zeros(len(marks), np.bool_)
    nearest = known[np.minimum(np.searchsorted(known, marks), len(known) - 1)]
    return np.equal(nearest, marks)


def marks_of(words: Sequence[str]) -> Marks:
    import numpy as np

    return np.fromiter(map(hash, words), np.int64, len(words)).view(np.uint64)


FEWEST_WORDS = 2
"""Of a probe: one word is said by many. What has fewer than `WORDS` is one probe as a whole."""
PROBES_OF_A_TEXT = 24
MOST_CANDIDATES = 50_000
MOST_PROBES = 4_000
"""Of a receipt: some 300 kB."""
DIGEST_BYTES = 16
LONG_TEXT_WORDS = 5_000
"""From here on it is quicker to find out first which stretches were not looked at yet."""

# ISO 8601 of any precision, extended or basic, and what may be left of one: a date, a time of day. And a UUID.
_DATE = r"(?:19|20|21)\d{2}-(?:\d{2}(?:-\d{2})?|\d{3}|w\d{2}(?:-\d)?)"
_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_ZONE = r"(?:z|[+-]\d{2}(?::?\d{2})?)?"
_TIME_OR_ID = re.compile(
    rf"(?<![\w.:-])(?:{_DATE}(?:(?:t\d{{2}}|[t ]{_CLOCK}){_ZONE})?|\d{{8}}t\d{{4,6}}(?:[.,]\d+)?{_ZONE}|{_CLOCK}{_ZONE}"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})(?![\w:-])"
)
_OF_A_NUMBER = "0123456789+-.,_e"
_IN_IDS = frozenset("0123456789:")


def candidates(texts: Sequence[str]) -> set[Window]:
    """What may become probes of these texts: some stretches of each, spread over it; of many texts fewer of each."""
    return {window for windows in candidates_of([texts]) for window in windows}


def candidates_of(messages: Sequence[Sequence[str]]) -> list[list[Window]]:
    """The same by message, each with its texts."""
    most = max(1, min(PROBES_OF_A_TEXT, MOST_CANDIDATES // max(1, sum(map(len, messages)))))
    return [list(dict.fromkeys(each for text in texts for each in _some_of(text, most))) for texts in messages]


def _some_of(text: str, most: int) -> Iterator[Window]:
    words, is_said = _said_in(text)
    if FEWEST_WORDS <= len(words) <= WORDS:
        if any(is_said):
            yield tuple(words)
        return
    count = len(words) - WORDS + 1
    step = max(1, -(-count // most))
    for at in range(0, max(0, count), step):
        if any(is_said[at : at + WORDS]):
            yield tuple(words[at : at + WORDS])


def _said_in(text: str) -> tuple[list[str], list[bool]]:
    """The words of a text, and of each whether somebody said it: a time or an id is written by programs, and the same
    one is kept elsewhere on purpose, beside a message's place."""
    folded_text = plain(text)
    if not folded_text.strip().strip(_OF_A_NUMBER):
        return [], []
    unsaid = [match.span() for match in _TIME_OR_ID.finditer(folded_text)]
    if not unsaid:
        words = WORD.findall(folded_text)
        return words, [True] * len(words)
    words, is_said, at = [], [], 0
    for match in WORD.finditer(folded_text):
        while at < len(unsaid) and unsaid[at][1] <= match.start():
            at += 1
        words.append(match[0])
        is_said.append(at == len(unsaid) or match.start() < unsaid[at][0])
    return words, is_said


def is_id(text: str) -> bool:
    """Of what a host writes beside a message: a number, a key or a name of its own, not words of anybody."""
    return is_plain_name(text, also="_.:-", first="_.:-", most_chars=len(text)) and not _IN_IDS.isdisjoint(text)


def chosen(by_message: Sequence[Sequence[Window]], most: int = MOST_PROBES) -> set[Window]:
    """So many of them that as many messages as possible have one, before any has a second."""
    taken: set[Window] = set()
    for turn in range(max(map(len, by_message), default=0)):
        for windows in by_message:
            if len(taken) >= most:
                return taken
            if turn < len(windows):
                taken.add(windows[turn])
    return taken


def phrases(texts: Iterable[str], windows: set[Window], most: int) -> list[str]:
    """Those stretches as they were written, as far as JSON writes them the same; spread over the texts."""
    found: dict[str, None] = {}
    for text in texts:
        words = [(match.start(), match.end(), plain(match[0])) for match in WORD.finditer(text)]
        for at in range(len(words) - WORDS + 1):
            part = words[at : at + WORDS]
            phrase = text[part[0][0] : part[-1][1]]
            is_sought = tuple(word for _, _, word in part) in windows
            if is_sought and json.dumps(phrase, ensure_ascii=False) == f'"{phrase}"':
                found[phrase] = None
                break
        if len(found) >= most:
            break
    return list(found)


class Prober:
    """Makes probes, and finds them, under one installation's key."""

    def __init__(self, key: bytes) -> None:
        own_key = blake2b(b"offbook forget probes", key=key, digest_size=32).digest()
        self._begun = blake2b(key=own_key, digest_size=DIGEST_BYTES)

    def probes(self, windows: Iterable[Window], most: int = MOST_PROBES) -> list[Probe]:
        """In an order that tells nothing of where they came from."""
        found = [self._probe(window) for window in windows]
        return sorted(found, key=lambda probe: (probe.words, probe.digest))[:most]

    def finder(self, probes: Iterable[Probe], known: Iterable[Window] = ()) -> Callable[[str], bool]:
        """Tells whether any of them is in a text. `known`: the words of those that are still known, which are found
        much sooner by their words."""
        heard = self._heard(probes, known)
        return lambda text: any(True for _ in heard(text))

    def hearer(self, probes: Iterable[Probe], known: Iterable[Window] = ()) -> Callable[[str], set[Probe]]:
        """Tells which of them are in a text. Made once for many texts: there may be thousands of either."""
        heard = self._heard(probes, known)
        return lambda text: set(heard(text))

    def _heard(self, probes: Iterable[Probe], known: Iterable[Window]) -> Callable[[str], Iterator[Probe]]:
        wanted = set(probes)
        spelt = {window: probe for window in known if (probe := self._probe(window)) in wanted}
        word_runs, by_digest = WordRuns(spelt), self._heard_by_digest(wanted.difference(spelt.values()))

        def heard(text: str) -> Iterator[Probe]:
            yield from (spelt[window] for window in word_runs.found_in(text))
            yield from by_digest(text)

        return heard

    def _heard_by_digest(self, probes: Iterable[Probe]) -> Callable[[str], Iterator[Probe]]:
        by_size: dict[int, dict[bytes, Probe]] = {}
        for probe in probes:
            by_size.setdefault(probe.words, {})[bytes.fromhex(probe.digest)] = probe
        first_times = {size: FirstTime(size) for size in by_size}

        def heard(text: str) -> Iterator[Probe]:
            words = words_of(text) if by_size else []
            marks = marks_of(words) if len(words) >= LONG_TEXT_WORDS else None
            for size, known in by_size.items():
                first = first_times[size]
                for at in range(len(words) - size + 1) if marks is None else first.look(marks):
                    probe = known.get(self._digest("\0".join(words[at : at + size]).encode()))
                    if probe is not None:
                        if marks is not None:
                            first.found(marks, at)
                        yield probe

        return heard

    def _probe(self, window: Window) -> Probe:
        return Probe(words=len(window), digest=self._digest("\0".join(window).encode()).hex())

    def _digest(self, window: bytes) -> bytes:
        # Begun once with the key, which is the dearer half.
        digest = self._begun.copy()
        digest.update(window)
        return digest.digest()
