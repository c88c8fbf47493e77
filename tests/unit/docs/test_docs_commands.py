"""Every `offbook …` that the documentation tells a reader to type is a command there is, with options it has.

Nothing is run. Blocks that a test runs (`tests/acceptance/test_tutorial.py`) are read here as well: that is quick, and a
block of `sh`, an inline command and a line of a service's file are run by nobody.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from offbook.cli.root import root
from tests.places import REPOSITORY

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "plugins" / "openclaw" / "README.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SHELLS = {"sh", "bash", "console", "shell"}
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w[\w ]*)['\"]?([^\n]*)\n.*?^\s*\1$", re.MULTILINE | re.DOTALL)
_REDIRECTION = re.compile(r"(?<=\s)\d?(?:&>|>>|>&|>|<)\s*&?[^\s;|&)]+")
_ENDS = set("();|&")
_BEFORE = {"exec", "sudo", "time", "nohup", "until", "while", "if", "do", "then", "else", "!", "$", "env", "watch"}
ELLIPSIS = {"…", "..."}
_INLINE = re.compile(r"`(offbook\s[^`\n]*(?:\n[^`\n]+)?)`")


class Typed(NamedTuple):
    page: str
    line: int
    words: tuple[str, ...]
    """Without `offbook` itself."""
    is_whole: bool
    """Prose may name a command without its arguments."""


def in_shell(text: str) -> Iterator[tuple[int, list[str]]]:
    """The commands named `offbook` in a script, each with the number of its line."""
    text = _HEREDOC.sub(lambda found: found[2] + "\n" * found[0].count("\n"), text)
    # A command within quotes is one of its own, on the same line.
    text = re.sub(r'"([^"\n]*)\$\((offbook [^)]*)\)', r'$(\2) "\1', text)
    joined = re.sub(r"\\\n", "  ", text)
    for number, line in enumerate(joined.splitlines(), 1):
        if "offbook" not in line:
            continue
        for command in split(_REDIRECTION.sub("", line)):
            words = [*command]
            while words and (words[0] in _BEFORE or re.match(r"\w+=", words[0])):
                words.pop(0)
            if words and Path(words[0]).name == "offbook":
                yield number, words[1:]


def split(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();|&")
    lexer.whitespace_split = True
    command: list[str] = []
    try:
        for word in lexer:
            if set(word) <= _ENDS:
                yield command
                command = []
            else:
                command.append(word)
    except ValueError:  # a quote that goes on in the next line: what came before it is enough
        pass
    yield command


def typed_in(page: str, text: str) -> Iterator[Typed]:
    for block in _BLOCK.finditer(text):
        start = text.count("\n", 0, block.start()) + 1
        if block[1] in _SHELLS | {"ini"}:
            script = re.sub(r"^Exec\w+=", "", block[2], flags=re.MULTILINE)  # of systemd
            yield from (Typed(page, start + line, tuple(words), True) for line, words in in_shell(script))
    prose = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for found in _INLINE.finditer(prose):
        line = prose.count("\n", 0, found.start()) + 1
        yield from (Typed(page, line, tuple(words), False) for _, words in in_shell(found[1].replace("\n", " ")))


def fault(words: tuple[str, ...], *, is_whole: bool = True) -> str | None:
    """Why nobody could type this; None where it is sound. Of what is not `is_whole`, arguments may be left out."""
    context = click.Context(root, info_name="offbook")
    left = [*words]
    while True:
        command = context.command
        try:
            options, left, _ = command.make_parser(context).parse_args(left)
        except click.UsageError as error:
            return f"{context.command_path}: {error.format_message()}"
        if "--help" in words or "-h" in words:
            return None
        if wrong := _wrong_choice(command, options):
            return f"{context.command_path}: {wrong}"
        if not isinstance(command, click.Group):
            break
        if not left or left[0] in ELLIPSIS or left[0].isupper():  # `offbook import FORMAT`
            return None
        below = command.get_command(context, left[0])
        if below is None:
            return f"{context.command_path}: there is no command {left[0]!r}"
        context, left = click.Context(below, info_name=left[0], parent=context), left[1:]
    if not ELLIPSIS.issuperset(left):
        return f"{context.command_path}: nothing takes {left}"
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    missing = [each.name for each in arguments if each.required and not _is_given(options.get(each.name or ""))]
    return f"{context.command_path}: {missing} must be given" if missing and is_whole else None


def _is_given(value: object) -> bool:
    """A text or several; whatever else click says is its way to say that there is none."""
    return isinstance(value, str) or (isinstance(value, tuple | list) and bool(value))


def _wrong_choice(command: click.Command, options: dict[str, object]) -> str | None:
    for each in command.params:
        value = options.get(each.name or "")
        if isinstance(each.type, click.Choice) and isinstance(value, str) and value.islower():
            choices = [str(choice) for choice in each.type.choices]
            if value not in choices and not each.is_eager:
                return f"{value!r} is none of {choices}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_command_of_a_page_exists(page: Path) -> None:
    for typed in typed_in(page.name, page.read_text(encoding="utf-8")):
        told = fault(typed.words, is_whole=typed.is_whole)
        assert told is None, f"{typed.page}, line {typed.line}: offbook {' '.join(typed.words)}\n{told}"


def test_commands_are_found_in_blocks_prose_and_services_at_their_lines() -> None:
    text = "# A\n\n```sh\nmake run\noffbook serve\n```\n\nThen `offbook\ntoken` or `offbook log X`.\n\n```ini\nExecStart=%h/bin/offbook ping\n```\n"
    assert list(typed_in("a.md", text)) == [
        Typed("a.md", 5, ("serve",), True),
        Typed("a.md", 12, ("ping",), True),
        Typed("a.md", 8, ("token",), False),
        Typed("a.md", 9, ("log", "X"), False),
    ]


def test_the_pages_hold_many_commands_in_all_places() -> None:
    found = [typed for page in PAGES for typed in typed_in(page.name, page.read_text(encoding="utf-8"))]
    assert len(found) > 200
    assert len({typed.words[0] for typed in found if typed.words}) > 30


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("serve", None),
        ("--home x log chat -n 2", None),
        ("recall --limit 1 where do we keep the orders?", None),
        ("token create --help", None),
        ("serv", "no command 'serv'"),
        ("token make", "no command 'make'"),
        ("log chat --folow", "--folow"),
        ("swap --used-tokens 1 --context-window 2", "must be given"),
        ("ping now", "nothing takes ['now']"),
        ("context chat --as opnai", "none of"),
    ],
)
def test_what_cannot_be_typed_is_told(words: str, told: str | None) -> None:
    found = fault(tuple(words.split()))
    assert found is None if told is None else found is not None and told in found


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("offbook serve > serve.log 2>&1 &\nuntil offbook ping > a.txt 2>&1; do sleep 0.1; done", ["serve", "ping"]),
        ("A=1 .venv/bin/offbook log chat --follow & sleep 1", ["log chat --follow"]),
        ("offbook audit --verify || echo 'offbook lied'  # offbook is honest", ["audit --verify"]),
        ('curl -H "Authorization: Bearer $(offbook token show)" x', ["token show"]),
        ("offbook backup \\\n  monday.tar.gz", ["backup monday.tar.gz"]),
        ("cat <<'END' | tee x\noffbook nothing\nEND\noffbook ping", ["ping"]),
        ("offbook record chat - <<'END'\noffbook nothing\nEND", ["record chat -"]),
        ("pip install 'offbook[local]'\ncd offbook", []),
        ("$ offbook status --json | jq .", ["status --json"]),
        ("offbook record chat '你好; offbook 🐈'", ["record chat 你好; offbook 🐈"]),
    ],
)
def test_commands_are_found_in_a_script(script: str, commands: list[str]) -> None:
    assert [" ".join(words) for _, words in in_shell(script)] == commands
