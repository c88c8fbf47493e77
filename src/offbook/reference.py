"""The reference pages, made from the code they describe.

`python -m offbook.reference` writes them to docs/reference (`make docs`); `--check` says which differ.
"""

from __future__ import annotations

import argparse
import ast
import inspect as python_inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import inspect

import offbook
from offbook import audit, errors
from offbook.cli.root import root
from offbook.settings import RESERVED_VARIABLES, SHORT_NAMES, catalogue
from offbook.settings.values import Setting, as_text
from offbook.surfaces.openapi import CAPTURE_HEADER, PROBLEMS, openapi_document
from offbook.surfaces.wire import SHAPES, Problem
from offbook.types import AuditEvent

FOLDER = Path("docs/reference")
NOTE = "<!-- Made by `make docs` from the code. Change the code, not this page. -->"

RESERVED_MEANINGS = {
    "OFFBOOK_HOME": "The data folder. Default: `~/.offbook`.",
    "OFFBOOK_URL": "The provider that clients and commands ask. Default: the socket in the data folder.",
    "OFFBOOK_SOCKET": "The same, where only the path of a socket is to be said.",
    "OFFBOOK_TOKEN": "The token they show. Default over TCP: the one in the data folder.",
    "OFFBOOK_AGENT": "The agent that commands mean where they name none.",
    "OFFBOOK_CLIENT": "Reserved; nothing reads it in this version.",
}

DETAIL_MEANINGS = {
    "accepted": "messages stored",
    "chars": "characters stored, or shown",
    "firstSeq": "number of the first message stored",
    "lastSeq": "number of the last message stored, or of the newest one shown",
    "hash": "SHA-256 of the row hashes of the messages stored, one after the other: what vouches for them",
    "opened": "1 where this opened the session",
    "duplicates": "messages whose id was stored already",
    "conflicts": "of these, the ones with other content: `id` and `seq` of what is stored",
    "noise": "messages stored that were marked as noise",
    "blobs": "large parts stored as files",
    "redactions": "secrets taken out, by kind",
    "given": "messages that came with `hooks/pre-compaction`, stored before or not",
    "maxChars": "characters the context was allowed",
    "generation": "generation of the context",
    "sha256": "SHA-256 of the text that was handed out, or of the context the host went on with",
    "context": "null: nothing was known of the session",
    "bytes": "size of the context the host went on with, as JSON",
    "reason": "why the session ended",
    "afterSeq": "what was read begins after this message",
    "messages": "how many messages were read",
    "limit": "how many events were asked for",
}
"""What the fields of an event's `details` mean. A test runs every verb and looks for others."""


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        "settings.md": settings_page(),
        "verbs.md": verbs_page(),
        "errors.md": errors_page(),
        "cli.md": cli_page(),
        "audit.md": audit_page(),
        "openapi.json": openapi_file(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m offbook.reference", description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page differs")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the pages are (default: {FOLDER})")
    given = parser.parse_args(arguments)
    differing = [name for name, text in pages().items() if _read(given.folder / name) != text]
    if given.check:
        for name in differing:
            print(f"{given.folder / name} is not what the code says: run `make docs`", file=sys.stderr)
        return 1 if differing else 0
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in differing:
        (given.folder / name).write_text(pages()[name], encoding="utf-8")
        print(given.folder / name)
    return 0


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


# ── settings ──────────────────────────────────────────────────────────────────────────────────


def settings_page() -> str:
    in_effect = settings_in_effect()
    now = [setting for setting in catalogue() if setting.name in in_effect]
    later = [setting for setting in catalogue() if setting.name not in in_effect]
    short = ", ".join(f"`OFFBOOK_{one.upper()}` is `{name}`" for one, name in SHORT_NAMES.items())
    return _page(
        "Settings",
        "Later wins: the default, `config.toml` in the data folder, the variable, a flag of `offbook serve`\n"
        "(`--set NAME=VALUE`). `offbook config` shows every setting and where it came from. A name that does not exist\n"
        "and a value that does not fit stop the provider with a line that says which and why.",
        "What `config.toml` says of one agent in `[agents.NAME]` wins for that agent; `server`, `store` and `log` hold\n"
        "for the whole provider.",
        '```toml\n[server]\nport = 8780\n\n[session]\ninterruptedGap = "1h30m"\n\n'
        "[agents.researcher.redaction]\nenabled = false\n```",
        f"A variable is `OFFBOOK_` and the name in upper case, with `_` between its words; {short}. Lists are separated\n"
        "by commas. A duration is a number of milliseconds, or text such as `250ms`, `30s`, `5m`, `1h30m`, `1d`.",
        "## In effect in this version",
        _settings_table(now),
        "## For what comes next",
        "These are read and checked, so that a file written today holds later. No part of this version acts on them.",
        _settings_table(later),
        "## Variables that are no settings",
        _table(["variable", ""], [[f"`{name}`", RESERVED_MEANINGS[name]] for name in sorted(RESERVED_VARIABLES)]),
    )


def _settings_table(settings: Iterable[Setting]) -> str:
    return _table(
        ["setting", "variable", "default", "must be", ""],
        [
            [
                f"`{setting.name}`",
                f"`{setting.environment_name}`",
                _code(as_text(setting.default)) or "empty",
                setting.expected,
                setting.description,
            ]
            for setting in settings
        ],
    )


@cache
def settings_in_effect() -> frozenset[str]:
    """The settings some module reads: `….server.port`, or `port` of something called `server` or `settings`."""
    read = {(group, name) for path in _sources() for group, name in _attributes(ast.parse(path.read_text("utf-8")))}
    return frozenset(
        setting.name
        for setting in catalogue()
        if {("settings", setting.attributes[-1]), ("settings", *setting.attributes)[-2:]} & read
    )


def _sources() -> Iterator[Path]:
    for path in Path(offbook.__file__).parent.rglob("*.py"):
        if not path.name.startswith("settings"):
            yield path


def _attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            holder = node.value
            name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
            yield name.lstrip("_"), node.attr


# ── verbs ─────────────────────────────────────────────────────────────────────────────────────


def verbs_page() -> str:
    structs = _structs([shape for shapes in SHAPES.values() for shape in shapes])
    requests = {request for request, _ in SHAPES.values()}
    return _page(
        "Verbs",
        "`POST /v1/<verb>` with a JSON object; the answer is JSON. `ping` may be asked with `GET`, too. The same as an\n"
        "OpenAPI document: [openapi.json](openapi.json), or `GET /v1/openapi.json` of a provider. `GET /metrics` is for\n"
        "Prometheus. Fields that a request does not know are refused by name. An optional field of a request may also be\n"
        "`null`.",
        *(_verb(verb, request, answer) for verb, (request, answer) in SHAPES.items()),
        "## Errors",
        "Every verb can answer with these, as RFC 9457 problem documents; [errors](errors.md) has them all.",
        _table(
            ["status", "type", "retryable", ""],
            [
                [str(error.status), f"`{error.slug}`", _yes(error.retryable), _title(error)]
                for error in sorted(PROBLEMS, key=lambda error: error.status)
            ],
        ),
        "## Values",
        *(_value(struct) for struct in structs if struct.cls not in requests),
    )


def _verb(verb: str, request: type[Any], answer: Any) -> str:
    info = inspect.type_info(request)
    assert isinstance(info, inspect.StructType)
    lines = [f"## {verb}", _on_the_wire(python_inspect.cleandoc(request.__doc__ or ""))]
    if info.fields:
        lines.append(_fields(info, is_request=True))
    else:
        lines.append("The request has no fields; its body may be empty.")
    if verb == "onMessage":
        lines.append(f"Header, optional: `{CAPTURE_HEADER['name']}`. {CAPTURE_HEADER['description']}")
    lines.append(f"Answer: {_type(inspect.type_info(answer))}.")
    return "\n\n".join(lines)


def _value(info: inspect.StructType) -> str:
    own = info.cls.__doc__ if "__doc__" in vars(info.cls) else None
    return "\n\n".join(
        [f"### {info.cls.__name__}", *([_on_the_wire(python_inspect.cleandoc(own))] if own else []), _fields(info)]
    )


def _fields(info: inspect.StructType, *, is_request: bool = False) -> str:
    is_sparse = bool(info.cls.__struct_config__.omit_defaults)
    return _table(
        ["field", "is", "when", ""],
        [
            [
                f"`{field.encode_name}`",
                _type(field.type, names_null=field.required),
                _when(field, is_request=is_request, is_sparse=is_sparse),
                _described(field.type),
            ]
            for field in info.fields
        ],
    )


def _when(field: inspect.Field, *, is_request: bool, is_sparse: bool) -> str:
    if field.required or not (is_request or is_sparse):
        return "always"
    return "optional" if is_sparse or field.default in (None, msgspec.NODEFAULT) else f"else `{as_text(field.default)}`"


def _described(kind: inspect.Type) -> str:
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    schemas = [each.extra_json_schema or {} for each in kinds if isinstance(each, inspect.Metadata)]
    return str(next((schema["description"] for schema in schemas if "description" in schema), ""))


def _type(kind: inspect.Type, *, names_null: bool = True) -> str:
    """A type in words; a struct is a link to its table."""
    match kind:
        case inspect.Metadata(type=inner):
            return _type(inner)
        case inspect.UnionType(types=types):
            shown = [each for each in types if names_null or not isinstance(each, inspect.NoneType)]
            return " or ".join(_type(each) for each in shown)
        case inspect.StructType(cls=cls):
            return f"[{cls.__name__}](#{_anchor(cls)})"
        case inspect.LiteralType(values=values):
            return ", ".join(f'`"{value}"`' for value in values)
        case inspect.StrType(min_length=least, max_length=most):
            return "text" + _bounds(least, most, " characters")
        case inspect.IntType(ge=least, le=most):
            return "whole number" + _bounds(least, most)
        case inspect.ListType(item_type=item, min_length=least, max_length=most):
            return (
                "list of " + ("objects" if isinstance(item, inspect.DictType) else _type(item)) + _bounds(least, most)
            )
        case inspect.DictType(value_type=value):
            return "object" if isinstance(value, inspect.AnyType) else f"object, each value a {_type(value)}"
        case _:
            return _PLAIN_TYPES[type(kind)]


_PLAIN_TYPES: dict[type[inspect.Type], str] = {
    inspect.AnyType: "any JSON",
    inspect.BoolType: "true or false",
    inspect.DateTimeType: "time (ISO 8601)",
    inspect.FloatType: "number",
    inspect.NoneType: "null",
}


def _anchor(cls: type) -> str:
    """A heading that is there already, as `status` is, gets a number."""
    name = cls.__name__.lower()
    return f"{name}-1" if name in SHAPES else name


def _bounds(least: float | None, most: float | None, unit: str = "") -> str:
    if least is None and most is None:
        return ""
    if most is None or most >= 2**53 - 1:
        return f", at least {least:,}{unit}"
    return f", at most {most:,}{unit}" if least is None else f", {least:,} to {most:,}{unit}"


def _structs(shapes: Iterable[Any]) -> list[inspect.StructType]:
    """The structs of these shapes and those inside them, each once, outer ones first."""
    found: dict[type, inspect.StructType] = {}

    def walk(kind: inspect.Type) -> None:
        if isinstance(kind, inspect.StructType) and kind.cls not in found:
            found[kind.cls] = kind
            for field in kind.fields:
                walk(field.type)
        for inner in (*getattr(kind, "types", ()), *(getattr(kind, name, None) for name in _INNER_TYPES)):
            if isinstance(inner, inspect.Type):
                walk(inner)

    for shape in shapes:
        walk(inspect.type_info(shape))
    return list(found.values())


_INNER_TYPES = ("type", "item_type", "value_type")


def _on_the_wire(text: str) -> str:
    """Field names in backticks as JSON spells them."""
    return re.sub(r"`[a-z_.]+`", lambda name: re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name[0]), text)


def openapi_file() -> str:
    """With the indentation of docstrings gone: it depends on the version of Python."""

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: python_inspect.cleandoc(each) if key == "description" and isinstance(each, str) else cleaned(each)
                for key, each in value.items()
            }
        return [cleaned(each) for each in value] if isinstance(value, list) else value

    return msgspec.json.format(msgspec.json.encode(cleaned(openapi_document())), indent=2).decode() + "\n"


# ── errors ────────────────────────────────────────────────────────────────────────────────────


def errors_page() -> str:
    example = msgspec.json.encode(errors.StoreFull("the disk is full: free some space, then send it again").problem())
    return _page(
        "Errors",
        "An error over HTTP is an RFC 9457 problem document, `application/problem+json`:",
        f"```json\n{msgspec.json.format(example).decode()}\n```",
        f"`type` is `{errors.PROBLEM_TYPE_PREFIX}` and the slug below. `detail` says what was wrong and what to do. Where\n"
        "`retryable` is true the same request may succeed later; where it is false it will not until something is mended.\n"
        f"The fields are {', '.join(f'`{name}`' for name in Problem.__struct_fields__)}, always all of them.",
        "In Python the classes are in `offbook.errors`. A client raises `ProviderUnavailable` where nobody answers and\n"
        "`ProviderRefused` where a problem document came: its `document` is that, its `is_retryable` what that says.\n"
        "Statuses of errors that never leave a process are those that `--json` prints.",
        f"```text\n{_tree(errors.OffbookError)}\n```",
        _table(
            ["error", "slug", "status", "retryable", ""],
            [
                [
                    f"`{error.__module__.removeprefix('offbook.')}.{error.__name__}`",
                    f"`{error.slug}`",
                    str(error.status),
                    _yes(error.retryable) if error is not errors.ProviderRefused else "as the document says",
                    _title(error),
                ]
                for error in all_errors()
            ],
        ),
    )


@cache
def all_errors() -> tuple[type[errors.OffbookError], ...]:
    """Every error of the package, parents before children."""
    for module in pkgutil.walk_packages(offbook.__path__, "offbook."):
        if not module.name.endswith("__main__"):
            import_module(module.name)

    def below(error: type[errors.OffbookError]) -> Iterator[type[errors.OffbookError]]:
        yield error
        for child in _children(error):
            yield from below(child)

    return tuple(below(errors.OffbookError))


def _children(error: type[errors.OffbookError]) -> list[type[errors.OffbookError]]:
    """In the order they are written; those of other modules after those of `errors`."""
    order = list(vars(errors))
    ours = [child for child in error.__subclasses__() if child.__module__.startswith("offbook.")]
    return sorted(ours, key=lambda child: (order.index(child.__name__) if child.__name__ in order else 999, str(child)))


def _tree(error: type[errors.OffbookError], indent: str = "") -> str:
    children = _children(error) if all_errors() else []
    lines = [error.__name__]
    for child in children:
        is_last = child is children[-1]
        lines.append(f"{indent}{'└──' if is_last else '├──'} {_tree(child, indent + ('    ' if is_last else '│   '))}")
    return "\n".join(lines)


def _title(error: type[errors.OffbookError]) -> str:
    return python_inspect.cleandoc(error.__doc__ or "").split("\n")[0]


# ── the command line ──────────────────────────────────────────────────────────────────────────


def cli_page() -> str:
    return _page(
        "Command line",
        "Every command takes `-h` and `--help`. Options that several commands share may stand before or after its name.",
        *(_command(context) for context in all_commands()),
    )


def all_commands() -> list[click.Context]:
    """`offbook` and every command under it, each in a context that knows its path."""

    def below(context: click.Context) -> Iterator[click.Context]:
        yield context
        if isinstance(context.command, click.Group):
            for name in context.command.list_commands(context):
                command = context.command.get_command(context, name)
                assert command is not None
                yield from below(click.Context(command, info_name=name, parent=context))

    return list(below(click.Context(root, info_name="offbook")))


def _command(context: click.Context) -> str:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    options = [each for each in command.params if isinstance(each, click.Option)]
    records = [record for each in options if (record := each.get_help_record(context))]
    return "\n\n".join(
        [
            f"## {context.command_path}",
            f"```text\n{usage}\n```",
            *_prose(command.help or ""),
            *([_table(["option", ""], [[_code(names), text] for names, text in records])] if records else []),
            *_prose(command.epilog or ""),
        ]
    )


def _prose(text: str) -> Iterator[str]:
    """click's paragraphs. One laid out in columns becomes a block; a first line that ends in a colon stands before it."""
    for paragraph in python_inspect.cleandoc(text).split("\n\n"):
        lines = [line for line in paragraph.split("\n") if line != "\b"]
        if not any("  " in line for line in lines):
            yield "\n".join(lines)
            continue
        if lines[0].endswith(":"):
            yield lines.pop(0)
        yield "```text\n" + python_inspect.cleandoc("\n".join(["", *lines])) + "\n```"


# ── the audit chain ───────────────────────────────────────────────────────────────────────────


def audit_page() -> str:
    event = inspect.type_info(AuditEvent)
    assert isinstance(event, inspect.StructType)
    return _page(
        "Audit",
        "Every verb that reads or writes leaves one event in the chain of its agent, durable before the answer leaves;\n"
        "`ping` alone leaves none. `offbook audit` and the verb [`audit`](verbs.md#audit) show events,\n"
        "`offbook audit --verify` proves the whole of it. What that can and cannot show:\n"
        "[what is recorded](../explanation/what-is-recorded.md#the-audit-chain).",
        "## Fields of an event",
        _fields(event),
        f"`previous` of the first event is {len(audit.GENESIS.hash)} zeros. `actor` is `local` over the socket, `owner` with the\n"
        "owner's token, `token:<name>` with a token made by `offbook token create`, `embedded` inside a process.",
        "## Formula",
        *_formula(),
        f"The leading {audit.FORMULA} is the version of the formula. Times are microseconds since 1970 (UTC), as whole numbers.\n"
        "What has no value is `null`. Blobs are objects with `path`, `sha256`, `chars` and `bytes`.",
        "## Fields of `details`",
        "An event never holds what was said. Counts that are 0 are left out.",
        _table(["field", ""], [[f"`{name}`", meaning] for name, meaning in DETAIL_MEANINGS.items()]),
    )


def _formula() -> Iterator[str]:
    """As the module says it: the paragraph that is indented, and what follows."""
    paragraphs = python_inspect.cleandoc(audit.__doc__ or "").split("\n\n")
    at = next(at for at, paragraph in enumerate(paragraphs) if paragraph.startswith("    "))
    yield "```text\n" + python_inspect.cleandoc("\n" + paragraphs[at]) + "\n```"
    yield from paragraphs[at + 1 :]


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([NOTE, f"# {title}", *parts]) + "\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns that are empty in every row are left out."""
    rows = list(rows)
    kept = [at for at, name in enumerate(columns) if name or any(row[at] for row in rows)]
    lines = [[columns[at] for at in kept], ["---"] * len(kept)]
    lines += [[row[at].replace("|", "\\|").replace("\n", " ") for at in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    sys.exit(main())
