"""Each rule of the table: one text that must go, one that must stay, and no text that takes it more than its length."""

from __future__ import annotations

import re
import string
import time
from itertools import cycle
from typing import Any

import pytest

from offbook.ingest import named_secrets
from offbook.ingest.secret_rules import Rule, rules
from offbook.ingest.secret_scan import redact_text
from tests.unit.ingest.secret_cases import MUST_GO, MUST_STAY, R20

TOKENS = [rule for of_head in rules().tokens.values() for rule in of_head]
ELSEWHERE = [*rules().shapes, *rules().places, *rules().commands]
CHARS = "a7Q3f0Z9e1B5d8K2c4X6m_-./+=% "


def example(pattern: str) -> str:
    """A text that the pattern matches, as random as it allows."""
    parser: Any = re._parser  # type: ignore[attr-defined]
    chars = cycle(CHARS)

    def of_class(items: Any) -> str:
        source = re.compile("[" + "".join(map(in_class, items)) + "]", re.ASCII)
        of_ours = (char for char, _ in zip(chars, CHARS, strict=False) if source.match(char))
        return next(of_ours, None) or next(char for char in string.printable if source.match(char))

    def in_class(item: Any) -> str:
        kind, value = str(item[0]), item[1]
        if kind == "NEGATE":
            return "^"
        if kind == "LITERAL":
            return re.escape(chr(value))
        if kind == "RANGE":
            return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        return {"CATEGORY_WORD": r"\w", "CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s"}.get(str(value), r"\W")

    def of(tree: Any) -> str:
        text = ""
        for operation, value in tree:
            kind = str(operation)
            if kind == "LITERAL":
                text += chr(value)
            elif kind == "IN":
                text += of_class(value)
            elif kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                text += "".join(of(value[2]) for _ in range(value[0]))
            elif kind == "SUBPATTERN":
                text += of(value[3])
            elif kind == "BRANCH":
                text += of(value[1][0])
            elif kind == "ATOMIC_GROUP":
                text += of(value)
        return text

    return of(parser.parse(pattern, re.ASCII))


def name_of(rule: Rule) -> str:
    return f"{rule.kind} {rule.hint}"


@pytest.mark.parametrize("rule", TOKENS, ids=name_of)
def test_a_token_goes_and_its_beginning_stays(rule: Rule) -> None:
    token = example(rule.source)
    assert rule.pattern.search(token), token
    redacted, kinds = redact_text(f"here: {token} .")
    assert token not in redacted
    assert kinds
    for text in (f"it begins with {rule.hint} and goes on", f"as {rule.hint}your-own-token-goes-here-as-always"):
        assert redact_text(text) == (text, {})


@pytest.mark.parametrize(("text", "secret"), MUST_GO)
def test_these_go(text: str, secret: str) -> None:
    redacted, kinds = redact_text(text)
    assert secret not in redacted
    assert kinds
    assert redact_text(redacted) == (redacted, {})


@pytest.mark.parametrize("text", MUST_STAY)
def test_these_stay(text: str) -> None:
    assert redact_text(text) == (text, {})


def test_these_stay_together() -> None:
    text = "\n".join(MUST_STAY)
    assert redact_text(text) == (text, {})


@pytest.mark.parametrize("rule", ELSEWHERE, ids=name_of)
def test_every_other_rule_has_a_case(rule: Rule) -> None:
    texts = [text for text, _ in MUST_GO]
    assert any(rule.pattern.search(text) or rule.pattern.search(text.lower()) for text in texts), rule


def test_a_token_is_seen_through_what_is_not_seen() -> None:
    token = "gl" + "pat-" + R20
    for unseen in "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e":
        assert redact_text(f"use {token[:12]}{unseen}{token[12:]} now")[0] == "use [redacted:gitlab-token] now"


def test_a_token_is_seen_across_lines() -> None:
    token = "gl" + "pat-" + R20
    for line_break in ("\n", "\r\n", "\n    ", "\\\n", '"\n  "', "\n> "):
        assert redact_text(f"use {token[:14]}{line_break}{token[14:]}\nnow")[0] == "use [redacted:gitlab-token]\nnow"


def test_what_follows_a_token_on_the_next_line_stays() -> None:
    token = "gl" + "pat-" + R20
    for after in ("DB2_HOST=db2.example", "9fceb02d0ae598e95dc970b74767f19372d61af8", "second line 2", "step2: go on"):
        assert redact_text(f"{token}\n{after}")[0] == f"[redacted:gitlab-token]\n{after}"


def test_what_follows_the_password_of_a_command_stays() -> None:
    for text in ("curl -u bob:{} https://a.b/c && make deploy", "curl --user 'bob:{}' https://a.b/c && make deploy"):
        assert redact_text(text.format("hunter22"))[0] == text.format("[redacted:password]")


def test_the_colours_around_a_token_stay() -> None:
    text = "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K now"
    assert redact_text(text.format("gl" + "pat-" + R20))[0] == text.format("[redacted:gitlab-token]")


# ── time ──

HOSTILE = [
    "a", "4", " ", "\\", '"', "\n", "a1b2c3d4e5\n", "a\u200b", "ｐ", "-----BEGIN", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nVersion: ", "-----BEGIN PRIVATE KEY-----\nMIIEabcdefghijklmnop", "://", "://a:", "://a:b@",
    "://a@a:", "password='", "password for x ", "password (", "password=[redacted:password] ", "[redacted:", "cookie: \n",
    "cookie: a=b1b1b1b1b1; ", "Cookie: sid=a1b2c3d4e5f6g7h8\n", "4111 1111 1111 1111 ", "DE89 3704 0044 0532 0130 00 ",
    "\x1b[0m", "\x1b[", r"\x1b[0m", "\\e[", "\\" * 10_000 + "1b[", "%3D", r"\u003d", "mysql -p 1 ",
    "mysql -p", "curl -u a:", "pass\u200bword: hunter22 ", 'password="a1b2c3d4" ', 'password=\\"a', "gh" + "p_a1b2c3d4\n",
]  # fmt: skip
SMALL_CHARS, LARGE_CHARS = 20_000, 160_000
SLOWEST = 16
"""So many of the texts are measured again, in the larger size: those that took longest in the small one."""
MOST_GROWTH = 20.0
"""For eight times the text: what is linear takes 8 times as long, what is quadratic 64 times."""


def hostile_units() -> list[str]:
    units = [*HOSTILE]
    for rule in rules().all:
        units.append(rule.hint + "a1 ")
    for rule in ELSEWHERE:
        units.append(example(rule.source))
    for name in named_secrets._NAMES:
        units += [name.word, name.word + ": ", name.word + "=a1b2c3d4 "]
    units += [one + other for one, other in zip(units, units[7:], strict=False)][::9]
    return list(dict.fromkeys(units))


def seconds_for(unit: str, chars: int) -> float:
    text = unit * (chars // len(unit))
    began = time.process_time()
    redact_text(text, with_personal_numbers=True)
    return time.process_time() - began


def test_time_grows_with_the_length_of_any_text_and_no_faster() -> None:
    redact_text("password=hunter22")
    taken = {unit: seconds_for(unit, SMALL_CHARS) for unit in hostile_units()}
    for unit in sorted(taken, key=lambda unit: -taken[unit])[:SLOWEST]:
        large = seconds_for(unit, LARGE_CHARS)
        assert large < MOST_GROWTH * max(taken[unit], 0.01), (unit, taken[unit], large)
        assert large < 20 * LARGE_CHARS / 1_000_000, (unit, large)
