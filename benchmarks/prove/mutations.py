"""Harm to the bytes of a file, told by a seed: as a disk, a broken transfer or somebody who means it leaves them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]

HUGE = (b"1e400", b"-1", b"99999999999999999999999999", b"9223372036854775808", b"0.1", b"NaN", b"1" * 400)
NO_UTF8 = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\x00")
NESTED = 5_000
ODD_WORDS = (
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"true",
    b"\\ud83d",
    b"\\u0000",
    b"../../etc/passwd",
    b"\r\n",
    b"\xef\xbb\xbf",
)


def _place(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _piece(data: bytes, chance: random.Random) -> tuple[int, int]:
    first = _place(data, chance)
    return first, min(len(data), first + chance.choice((1, 4, 32, 512, 4_096)))


def flip_bits(data: bytes, chance: random.Random) -> bytes:
    harmed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8, 64)) if data else 0):
        harmed[chance.randrange(len(harmed))] ^= 1 << chance.randrange(8)
    return bytes(harmed)


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: _place(data, chance)]


def cut_out(data: bytes, chance: random.Random) -> bytes:
    first, last = _piece(data, chance)
    return data[:first] + data[last:]


def repeat(data: bytes, chance: random.Random) -> bytes:
    first, last = _piece(data, chance)
    return data[:last] + data[first:last] * chance.choice((1, 2, 50)) + data[last:]


def zero(data: bytes, chance: random.Random) -> bytes:
    first, last = _piece(data, chance)
    return data[:first] + bytes(last - first) + data[last:]


def splice(data: bytes, chance: random.Random) -> bytes:
    """One part of it in the place of another."""
    (first, last), (other, end) = _piece(data, chance), _piece(data, chance)
    return data[:first] + data[other:end] + data[last:]


def huge_number(data: bytes, chance: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return flip_bits(data, chance)
    found = chance.choice(numbers)
    return data[: found.start()] + chance.choice(HUGE) + data[found.end() :]


def not_utf8(data: bytes, chance: random.Random) -> bytes:
    place = _place(data, chance)
    return data[:place] + chance.choice(NO_UTF8) + data[place:]


def odd_word(data: bytes, chance: random.Random) -> bytes:
    """In the place of a word or a text."""
    words = list(re.finditer(rb'"[^"\\]*"|\w+', data))
    if not words:
        return not_utf8(data, chance)
    found = chance.choice(words)
    return data[: found.start()] + chance.choice(ODD_WORDS) + data[found.end() :]


def nest(data: bytes, chance: random.Random) -> bytes:
    place = _place(data, chance)
    return data[:place] + chance.choice((b"[", b'{"a":')) * NESTED + data[place:]


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    truncate,
    cut_out,
    repeat,
    zero,
    splice,
    huge_number,
    not_utf8,
    odd_word,
    nest,
)


def harmed(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = chance.choice(MUTATIONS)(data, chance)
    return data
