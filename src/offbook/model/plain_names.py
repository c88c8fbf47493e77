"""Names of few characters, checked by their letters: ids, words of a command, numbers behind a prefix."""

from __future__ import annotations

_HEXADECIMAL = frozenset("0123456789abcdef")


def is_plain_name(text: str, *, also: str = "_-", first: str = "", most_chars: int = 64) -> bool:
    """Whether it has only ASCII letters, digits and the signs in `also`, and begins with none but those in `first`."""
    if not (0 < len(text) <= most_chars and text.isascii() and (text[0].isalnum() or text[0] in first)):
        return False
    return all(letter.isalnum() or letter in also for letter in text)


def is_hex(text: str, chars: int) -> bool:
    """Whether it is a hash or an id of so many hexadecimal digits, in small letters."""
    return len(text) == chars and _HEXADECIMAL.issuperset(text)


def is_digits(text: str, *, least: int = 1, most: int = 18) -> bool:
    return least <= len(text) <= most and text.isascii() and text.isdecimal()


def level_and_number(id_: str, *, most: int = 18) -> tuple[int, int] | None:
    """Level and number of `L1-0003`."""
    level = id_[1:2]
    number = number_behind(f"L{level}-", id_, most=most) if level in tuple("123456789") else None
    return None if number is None else (int(level), number)


def number_behind(prefix: str, id_: str, *, most: int = 18) -> int | None:
    """The number of an id such as `lesson-0007`: four digits at the least."""
    digits = id_.removeprefix(prefix)
    return int(digits) if id_.startswith(prefix) and is_digits(digits, least=4, most=most) else None
