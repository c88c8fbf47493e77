"""Whatever reads a whole message takes twice as long for twice as much, however the message is made."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from offbook.context.particulars import particulars
from offbook.context.pending_messages import said_text
from offbook.context.quotes import quoted
from offbook.context.tail import piece_of, shown
from offbook.ingest.entries import prepare
from offbook.ingest.frames import frame, is_framed, strip_frames
from offbook.ingest.noise import noise_kind
from offbook.model.content import is_binary_path, render, strings, without_stand_ins
from offbook.model.large_parts import externalise
from offbook.model.memory_entry import PlacedMessage
from offbook.model.sentences import ends, parts, sentences
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.models.sentence_kinds import read_sentences
from offbook.models.tokens import estimate_tokens
from offbook.search.index.text import said_by
from offbook.search.results import passages
from offbook.search.spotting import unwrapped
from offbook.statements.turns import read_turn

KEY = b"k" * 32
AT = datetime(2026, 1, 2, tzinfo=UTC)
CHARS = 4_200
TIMES = 4
LEAST_SECONDS = 0.02
"""Below it nothing is told by a ratio. What is quadratic takes far longer even at this length."""
MARGIN = 2.5
"""Four times as much may take ten times as long; what is quadratic takes sixteen times as long."""

OUR_FRAME = frame("a", kind="recall", key=KEY)
HOSTILE = {
    **{f"only {piece!r}": piece for piece in ("a", " ", "\n", " \n", "\r", "\x85", '"', "'", "`", "\\", "[", "{", "<")},
    **{
        f"only {piece!r}": piece
        for piece in ("1,", "7", ". ", '." ', "。」", "? ", "-", "_", "/", "a.", "a-", "1:", "aB")
    },
    "frame tags": "<offbook-memory>",
    "frame tags that do not end": "<offbook-memory ",
    "frames with a mark": '<offbook-recall mark="0123456789abcdef">x</offbook-recall>',
    "our own frames": f"{OUR_FRAME} \n",
    "our own frames and words": f"x {OUR_FRAME}",
    "stand-ins": "[1,1",
    "half a stand-in": "[a kept outside the log, sha256 ",
    "a host's block": "<system-reminder>",
    "short lines": "a b\n",
    "items": "- a\n",
    "fences": "```\n",
    "sentences": "I like it. ",
    "Chinese": "我喜欢喝茶。",
    "nothing to see": "\u200b",
    "emoji": "👩\u200d",
    "accents": "\u0301",
    "names": "Ada. ",
    "labels": "\nuser ",
    "brackets": "[]",
}
ONCE = {
    "a label and blanks": "\nuser" + " " * 40_000,
    "a tag and blanks": "<offbook-memory" + " " * 40_000,
    "a data URL without an end": "data:a/b" + "c" * 40_000,
    "a mark and quotes": "." + '"' * 40_000,
    "empty lines and a fence": "\n" * 31_000 + "```",
}


def message(text: str, **fields: Any) -> Message:
    return Message(**{"role": "user", "content": text, **fields})


def logged(text: str) -> LoggedMessage:
    return LoggedMessage(seq=1, received_at=AT, entry=Entry(message=message(text, ts=AT), chars=len(text)))


def placed(text: str) -> PlacedMessage:
    return PlacedMessage(place=1, session=1, session_id="s", logged=logged(text))


SCANS: dict[str, Callable[[str], Any]] = {
    "strip_frames": lambda text: strip_frames(text, KEY),
    "is_framed": is_framed,
    "noise_kind": lambda text: noise_kind(message(text)),
    "prepare": lambda text: prepare(message(text), frame_key=KEY, externalise_over=65_536, redacts=False),
    "externalise": lambda text: externalise(text, 4_000),
    "is_binary_path": lambda text: is_binary_path([{"type": "image", "data": text}], (0, "data")),
    "strings": lambda text: list(strings([text] * 3)),
    "render": lambda text: render(message("", content=[{"type": "tool-call", "name": "x", "arguments": text}])),
    "without_stand_ins": lambda text: without_stand_ins(f"{text} kept outside the log, sha256 "),
    "ends": ends,
    "parts": parts,
    "sentences": sentences,
    "read_sentences": lambda text: read_sentences(text, is_user=True),
    "read_turn": lambda text: read_turn(1, AT, message(text, role="tool"), is_noise=False),
    "estimate_tokens": estimate_tokens,
    "said_by": lambda text: said_by(placed(text)),
    "passages": passages,
    "unwrapped": unwrapped,
    "said_text": lambda text: said_text(message(text)),
    "particulars": particulars,
    "piece_of": lambda text: piece_of(logged(text)),
    "quoted": lambda text: quoted(text, 2_000),
}


def seconds(scan: Callable[[Any], Any], given: Any) -> float:
    started = time.thread_time()
    scan(given)
    return time.thread_time() - started


def grows_too_fast(scan: Callable[[Any], Any], short: Any, long: Any, times: float) -> tuple[float, float] | None:
    """What each takes where the long one takes more than `times` as long: one look first, the best of three where
    that looks bad."""
    if seconds(scan, long) <= LEAST_SECONDS:
        return None
    of_short, of_long = (min(seconds(scan, given) for _ in range(3)) for given in (short, long))
    is_bad = of_long > max(LEAST_SECONDS, times * max(of_short, LEAST_SECONDS / TIMES))
    return (of_short, of_long) if is_bad else None


@pytest.mark.parametrize("name", SCANS)
def test_four_times_the_text_does_not_take_ten_times_as_long(name: str) -> None:
    scan = SCANS[name]
    scan("Warm.")
    slow: dict[str, tuple[float, float]] = {}
    gc.disable()
    try:
        for kind, piece in HOSTILE.items():
            short, long = (piece * (chars // len(piece)) for chars in (CHARS, TIMES * CHARS))
            if took := grows_too_fast(scan, short, long, MARGIN * TIMES):
                slow[kind] = took
    finally:
        gc.enable()
    assert not slow


@pytest.mark.parametrize("kind", ONCE)
def test_one_long_run_is_read_a_few_times_and_no_more(kind: str) -> None:
    text = ONCE[kind]
    half = text[: len(text) // 2]
    for scan in (shown, strip_frames_of, unwrapped, ends, sentences, render):
        short, long = (message(given) if scan in (shown, render) else given for given in (half, text))
        assert not grows_too_fast(scan, short, long, 2 * MARGIN), scan


def strip_frames_of(text: str) -> tuple[str, int]:
    return strip_frames(text, KEY)


def test_many_frames_of_ours_leave_what_stood_between_them() -> None:
    framed = frame("so it was said", kind="recall", key=KEY)
    text = f"one\n\n{framed}\n\ntwo  {framed}  {framed}\n{framed}  three\r\n"
    assert strip_frames(text, KEY) == ("one\n\ntwo      three\r\n", 4)


def test_a_frame_longer_than_a_piece_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "we said  this \n and that, \n\n and more"
    framed = frame(text, kind="memory", key=KEY)
    for chars in range(1, len(text)):
        monkeypatch.setattr("offbook.ingest.frames.PIECE_CHARS", chars)
        assert strip_frames(framed.replace(" ", "\n  "), KEY) == ("", 1)
        assert strip_frames(framed.replace("this", "th is"), KEY)[1] == 0
