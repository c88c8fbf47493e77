"""The reference pages, made from the code they describe.

`python -m docs.generate.pages` writes them to docs/reference (`make docs`); `--check` says which differ. The types of
the plugin for OpenClaw and of the web page, and the page about what was tried, are made beside them, where their
folders are there.
"""

from __future__ import annotations

import argparse
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click
import msgspec
from docs.generate.client_methods import generated
from docs.generate.events import events_parts
from docs.generate.settings import settings_in_effect
from docs.generate.shapes import (
    code,
    fields_table,
    struct_info,
    structs_of,
    table,
    type_in_words,
    wire_description,
)
from docs.generate.typescript import typescript
from docs.generate.what_was_tried import what_was_tried_page
from msgspec import inspect

import offbook
from offbook.api.openapi import CAPTURE_HEADER, PROBLEMS, openapi_document
from offbook.api.verbs import VERBS
from offbook.cli.root import root
from offbook.log import audit_chain
from offbook.model import errors
from offbook.model.settings import RESERVED_VARIABLES, SHORT_NAMES, catalogue
from offbook.model.settings.values import Setting, as_text
from offbook.model.types import AuditEvent

FOLDER = Path("docs/reference")
PLUGIN = Path("plugins/openclaw/src")
WEB = Path("web/src")
CLIENT = Path("src/offbook/client")
NOTE = "<!-- Made by `make docs` from the code. Change the code, not this page. -->"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        "settings.md": settings_page(),
        "verbs.md": verbs_page(),
        "errors.md": errors_page(),
        "cli.md": cli_page(),
        "audit.md": audit_page(),
        "events.md": _page("Events", *events_parts()),
        "openapi.json": openapi_file(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generate.pages", description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page differs")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the pages are (default: {FOLDER})")
    parser.add_argument("--plugin", type=Path, default=PLUGIN, help=f"where its types go, if there (default: {PLUGIN})")
    parser.add_argument("--web", type=Path, default=WEB, help=f"the same of the web page (default: {WEB})")
    parser.add_argument("--client", type=Path, default=CLIENT, help=f"where its modules are (default: {CLIENT})")
    given = parser.parse_args(arguments)
    made = {given.folder / name: text for name, text in pages().items()}
    if (explanations := given.folder.parent / "explanation").is_dir():
        made[explanations / "what-was-tried.md"] = what_was_tried_page()
    for folder in (given.plugin, given.web):
        if folder.is_dir():
            made[folder / "wire.ts"] = typescript(openapi_document())
    if given.client.is_dir():
        made |= {given.client / name: text for name, text in generated().items()}
    differing = {path: text for path, text in made.items() if _read(path) != text}
    for path, text in differing.items():
        if given.check:
            print(f"{path} is not what the code says: run `make docs`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path)
    return 1 if given.check and differing else 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([NOTE, f"# {title}", *(part.strip("\n") for part in parts)]) + "\n"


# ── settings ──────────────────────────────────────────────────────────────────────────────────

SETTINGS = """
Later wins: the default, `config.toml` in the data folder, the variable, a flag of `offbook serve` (`--set NAME=VALUE`).
`offbook config` shows every setting and where it came from. A name that does not exist and a value that does not fit
stop the provider, with a line that says which and why.

```toml
[server]
port = 8780

[session]
interruptedGap = "1h30m"

[agents.researcher.redaction]
enabled = false
```

What `config.toml` says of one agent in `[agents.NAME]` wins for that agent; `server`, `store`, `log` and `embedding`
hold for the whole provider. A variable is `OFFBOOK_` and the name in upper case, `_` between its words. Lists are
separated by commas. A duration is a number of milliseconds, or text such as `250ms`, `30s`, `5m`, `1h30m`, `1d`.
"""
NOT_ACTED_ON = """
These are read and checked, so that a file written today holds later. This version does not act on them; it only tells
hosts of them, with the verb [`config`](verbs.md#post-v1config). `compaction.fallbackMessages` is meant for hosts: how
much one keeps where its own compaction fails. `memory.compaction.strategy` is for the plugin for OpenClaw, which is not
there yet.
"""
RESERVED_MEANINGS = {
    "OFFBOOK_HOME": "The data folder. Default: `~/.offbook`.",
    "OFFBOOK_SHARED_HOME": "`1`: start also on a data folder in which others can write. They can do all its owner can.",
    "OFFBOOK_URL": "The provider that clients and commands ask. Default: the socket in the data folder.",
    "OFFBOOK_SOCKET": "The same, as the path of a socket.",
    "OFFBOOK_TOKEN": "The token they show. Default over TCP: the one in the data folder.",
    "OFFBOOK_AGENT": "The agent that commands mean where they name none.",
    "OFFBOOK_PASSPHRASE": "The passphrase of an encrypted data folder. A file is better: others may see a variable.",
    "OFFBOOK_PASSPHRASE_FILE": "The file that holds it, readable by its owner only.",
    "OFFBOOK_NEW_PASSPHRASE": "The one that `offbook encrypt --change-passphrase` changes it to.",
    "OFFBOOK_KEY_FILE": "Where the key file of an encrypted data folder is now.",
    "OFFBOOK_CLIENT": "Reserved; nothing reads it in this version.",
}


def settings_page() -> str:
    effective = settings_in_effect()
    return _page(
        "Settings",
        SETTINGS,
        "## In effect in this version",
        _settings_table(setting for setting in catalogue() if setting.name in effective),
        "## For what comes next",
        NOT_ACTED_ON,
        _settings_table(setting for setting in catalogue() if setting.name not in effective),
        "## Other variables",
        table(
            ["variable", ""],
            [[code(name), RESERVED_MEANINGS[name]] for name in sorted(RESERVED_VARIABLES)]
            + [[code(f"OFFBOOK_{short.upper()}"), f"Short for `{name}`."] for short, name in SHORT_NAMES.items()],
        ),
    )


def _settings_table(settings: Iterable[Setting]) -> str:
    return table(
        ["setting", "variable", "default", "must be", ""],
        [
            [
                code(setting.name),
                code(setting.environment_name),
                code(as_text(setting.default)) or "empty",
                setting.expected,
                setting.description,
            ]
            for setting in settings
        ],
    )


# ── verbs ─────────────────────────────────────────────────────────────────────────────────────

VERBS_TEXT = """
`POST /v1/<verb>` with a JSON object; the answer is JSON. `ping` may be asked with `GET`, too. The same as an OpenAPI
document: [openapi.json](openapi.json), or `GET /v1/openapi.json` of a provider. `GET /metrics` is for Prometheus.

A field that a request does not know is refused by name. An optional field may also be `null`. The owner is `agentId`;
left out, it is taken from a session key of the form `agent:<agentId>:…`, else it is the setting `defaultAgent`. A name
that cannot be an agent's (longer than 128 bytes) is refused in the key as well.
"""


def verbs_page() -> str:
    requests = [verb.request for verb in VERBS.values()]
    structs = structs_of(shape for verb in VERBS.values() for shape in (verb.request, verb.answer))
    return _page(
        "Verbs",
        VERBS_TEXT,
        *(part for verb in VERBS.values() for part in _verb(verb.name, verb.request, verb.answer)),
        "## Errors",
        "Every verb can answer with these, as RFC 9457 problem documents; [errors](errors.md) has them all.",
        _errors_table(sorted(PROBLEMS, key=lambda error: error.status)),
        "## Values",
        *(part for struct in structs if struct not in requests for part in _value(struct)),
    )


def _verb(verb: str, request: type[Any], answer: Any) -> Iterator[str]:
    yield f"## POST /v1/{verb}"
    yield wire_description(request)
    is_empty = not struct_info(request).fields
    yield "The body may be empty." if is_empty else fields_table(request, is_request=True)
    if verb == "onMessage":
        yield f"Header, optional: `{CAPTURE_HEADER['name']}`. {CAPTURE_HEADER['description']}"
    yield f"Answer: {type_in_words(inspect.type_info(answer))}."


def _value(struct: type[Any]) -> Iterator[str]:
    yield f"### {struct.__name__}"
    if told := wire_description(struct):
        yield told
    yield fields_table(struct)


def openapi_file() -> str:
    """Without the indentation of docstrings, which depends on the version of Python."""

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: cleandoc(each) if key == "description" and isinstance(each, str) else cleaned(each)
                for key, each in value.items()
            }
        return [cleaned(each) for each in value] if isinstance(value, list) else value

    return msgspec.json.format(msgspec.json.encode(cleaned(openapi_document())), indent=2).decode() + "\n"


# ── errors ────────────────────────────────────────────────────────────────────────────────────

ERRORS = """
`type` is `{prefix}` and the slug below. `detail` says what was wrong and what to do. Where `retryable` is true the same
request may succeed later; where it is false it will not, until something is mended. All five fields are always there.

In Python these are classes, most of them in `offbook.model.errors`. A client raises `ProviderUnavailable` where nobody
answers and `ProviderRefused` where a problem document came: `document` holds it, `retryable` is what it says. On the
command line an error is one line on stderr; with `--json` it is such a document on stdout, also where no provider sent
it.
"""


def errors_page() -> str:
    example = msgspec.json.encode(errors.StoreFull("the disk is full: free some space, then send it again").problem())
    return _page(
        "Errors",
        "An error over HTTP is an RFC 9457 problem document, `application/problem+json`:",
        f"```json\n{msgspec.json.format(example).decode()}\n```",
        ERRORS.format(prefix=errors.PROBLEM_TYPE_PREFIX),
        f"```text\n{_tree(all_errors()[0])}\n```",
        _errors_table(all_errors()),
    )


def _errors_table(shown: Iterable[type[errors.OffbookError]]) -> str:
    return table(
        ["error", "slug", "status", "retryable", ""],
        [
            [
                code(f"{error.__module__}.{error.__name__}".removeprefix("offbook.").removeprefix("errors.")),
                code(error.slug),
                str(error.status),
                _retryable(error),
                _first_line(error),
            ]
            for error in shown
        ],
    )


def _retryable(error: type[errors.OffbookError]) -> str:
    if error in (errors.ProviderRefused, errors.ModelUnavailable):
        return "as the document says"
    return "yes" if error.retryable else "no"


def _first_line(error: type[errors.OffbookError]) -> str:
    return cleandoc(error.__doc__ or "").split("\n")[0]


@cache
def all_errors() -> tuple[type[errors.OffbookError], ...]:
    """Every error of the package, parents before their children."""
    for module in pkgutil.walk_packages(offbook.__path__, "offbook."):
        import_module(module.name)

    def and_below(error: type[errors.OffbookError]) -> Iterator[type[errors.OffbookError]]:
        yield error
        for child in _children(error):
            yield from and_below(child)

    return tuple(and_below(errors.OffbookError))


def _children(error: type[errors.OffbookError]) -> list[type[errors.OffbookError]]:
    """In the order they are written; those of other modules after those of `errors`."""
    written = list(vars(errors))

    def place(child: type[errors.OffbookError]) -> tuple[int, str]:
        name = child.__name__
        return (written.index(name) if vars(errors).get(name) is child else len(written)), name

    return sorted((child for child in error.__subclasses__() if child.__module__.startswith("offbook.")), key=place)


def _tree(error: type[errors.OffbookError], indent: str = "") -> str:
    children = _children(error)
    lines = [error.__name__]
    for child in children:
        branch, below = ("└── ", "    ") if child is children[-1] else ("├── ", "│   ")
        lines.append(indent + branch + _tree(child, indent + below))
    return "\n".join(lines)


# ── the command line ──────────────────────────────────────────────────────────────────────────

CLI = """
Every command takes `-h` and `--help`. The options that many commands share may stand before or after its name.
"""


def cli_page() -> str:
    return _page("Command line", CLI, *(part for context in all_commands() for part in _command(context)))


def all_commands() -> list[click.Context]:
    """`offbook` and every command under it, each in a context that knows its path."""

    def and_below(context: click.Context) -> Iterator[click.Context]:
        yield context
        if isinstance(context.command, click.Group):
            for name in context.command.list_commands(context):
                command = context.command.get_command(context, name)
                assert command is not None
                yield from and_below(click.Context(command, info_name=name, parent=context))

    return list(and_below(click.Context(root, info_name="offbook")))


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```"
    yield from _prose(command.help or "")
    options = [each for each in command.params if isinstance(each, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        yield table(["option", ""], [[code(names), told] for names, told in records])
    yield from _prose(command.epilog or "")


def _prose(text: str) -> Iterator[str]:
    """click's paragraphs. What is laid out in columns becomes a block, after its first line if that ends in a colon."""
    for paragraph in cleandoc(text).split("\n\n"):
        lines = [line for line in paragraph.split("\n") if line != "\b"]
        if not any("  " in line for line in lines):
            yield "\n".join(lines)
            continue
        if lines[0].endswith(":"):
            yield lines.pop(0)
        yield "```text\n" + cleandoc("\n".join(["", *lines])) + "\n```"


# ── the audit chain ───────────────────────────────────────────────────────────────────────────

AUDIT = """
Every verb that reads or writes leaves one event in the chain of its agent, durable before the answer leaves
(`prepareTurn` and `enrich` wait for it until their deadline, and it is written all the same); `ping` leaves none.
On a full disk the event of a read is held in memory and written once there is room.
Some kinds of event are nobody's request, and their `actor` is `offbook`: `supersede`, where a message replaced
earlier ones, `offload`, where the oldest went to cold storage, `compress`, where a summary was made, `audit/held`,
behind the events of reads that were held, and `salvage`, where a damaged file was [mended](../how-to/damage.md): it
names what was lost, and `lost` stands for each event that was. (A `compress` with another actor is the request for
it.) `offbook audit` and the verb [`audit`](verbs.md#post-v1audit) show events; `offbook audit --verify` proves all of
it. What that can and cannot show:
[what is recorded](../explanation/what-is-recorded.md#the-audit-chain).
"""
EVENTS = """
`previous` of the first event is 64 zeros. `actor` is `local` over the socket, `owner` with the owner's token,
`token:<name>` with a token of `offbook token create`, `embedded` inside a process.
"""
FORMULA = """
The leading number is the version of the formula. Times are microseconds since 1970 (UTC), whole numbers. What has no
value is `null`. `blobs` are objects with `path`, `sha256`, `chars` and `bytes`, one for each large part kept as a file.
"""
DETAIL_MEANINGS = {
    "accepted": "messages stored",
    "chars": "characters stored, shown, or written by the host's model",
    "firstSeq": "number of the first message stored",
    "lastSeq": "number of the last message stored, or of the newest one shown",
    "hash": "SHA-256 of the row hashes of the messages stored, one after the other: it vouches for them",
    "opened": "1 where this opened the session",
    "duplicates": "messages whose id was stored already",
    "conflicts": "those of them with other content: `id` and `seq` of what is stored",
    "corrected": "the lesson that something said later took the place of",
    "heldSince": "when this was read: there was no room to write the event",
    "reads": "how many reads there were while no event could be written, `from` when and `to` when",
    "written": "how many of them have an event each, with `heldSince`",
    "noise": "messages stored that were marked as noise",
    "blobs": "large parts stored as files",
    "redactions": "secrets taken out, by kind",
    "given": "messages that came with `hooks/pre-compaction`, stored before or not",
    "maxChars": "characters the context was allowed",
    "generation": "generation of the context; of a swap, the one from then on",
    "sha256": "SHA-256 of the text that was handed out, or of the context the host went on with",
    "context": "null: nothing was known of the session",
    "parentSessionId": "the session that started this one, as its host named it",
    "bytes": "size of the context the host went on with, as JSON",
    "reason": "why the session ended, why contexts were swapped or not, or why something was forgotten",
    "afterSeq": "what was read begins after this message",
    "messages": "how many messages were read, exported, given by `expand`, or forgotten",
    "limit": "how many events were asked for",
    "swapped": "whether `swap` handed a context over",
    "usedTokens": "tokens that the host said were in use",
    "contextWindow": "tokens that its model can hold",
    "summary": "id of the summary or the lesson that `expand` was asked for",
    "span": "numbers of the first and the last message that it was asked for",
    "summaries": "how many summaries were shown",
    "level": "level of the summary that was made, or of those that were asked for",
    "id": "id of the summary that was made",
    "again": "true where `compress` was to write summaries again, or did",
    "dryRun": "whether `compress` or `forget` was only to say what it would take",
    "spans": "what the summary stands for, or what was forgotten or lost: sessions, first and last messages",
    "summarizer": "who wrote it",
    "sourceTokens": "tokens it stands for; in a request, those still to be summarised",
    "tokens": "tokens it has; of a turn, those of both sections",
    "lost": "particulars of the source that it does not say",
    "dollars": "what it cost; in a request, about what it will",
    "job": "id of the host's job; null where there was none to claim",
    "query": "SHA-256 of what was asked",
    "scope": "how far `recall` looked: `session`, `agent` or `all`",
    "entries": "ids of the entries that were shown; of `unlink`, the earlier one and, where it was named, the later",
    "prompt": "SHA-256 of the prompt that a turn was prepared for",
    "intent": "what the prompt wanted of memory: `recall`, `resume`, `plain` or `brief`",
    "memory": "SHA-256 of the turn's stable section",
    "recall": "SHA-256 of what came to mind, as it was told",
    "epoch": "the generation of the context that the stable section was made for",
    "preview": "true where a turn or a recall was only looked at",
    "days": "how many days `activity` was asked for",
    "follows": "true where somebody watches what happens",
    "degraded": "what was unavailable to the turn, and why",
    "topics": "how many topics were shown",
    "anchors": "how many anchors were shown",
    "sessions": "how many sessions `state` or `sessions` told of, or `forget` reached",
    "lessons": "how many lessons were shown, or imported",
    "lesson": "id of the lesson that was judged",
    "verdict": "what was said to it: `accept`, `edit` or `reject`",
    "added": "lessons that were learnt",
    "at": "as of when, where `recall` was asked for another time than now; the moment that `replay` was asked for",
    "by": "the other agent that was shown these entries",
    "asked": "entries that `pin` or `unpin` meant; message ids that `missing` was asked for",
    "changed": "those of the entries that were not so before; of lessons, those that were there and say more now; of "
    "`unlink`, how many links were taken back",
    "missing": "how many of those ids the session does not hold",
    "how": "how what was forgotten was named: `entryIds`, `sessionId`, `matching` or `retention`",
    "receipt": "id of the receipt of what was forgotten",
    "erasure": "number of that receipt in the store",
    "receipts": "how many receipts of what was forgotten there were to list",
    "genuine": "whether the receipt to be verified was this provider's own, and unchanged",
    "residue": "how much was found of what should be gone",
    "enabled": "whether the agent's memory and that of others are open to each other from now on",
    "embeddings": "whether `reindex` makes the vectors anew too",
    "tasks": "what `maintain` ran",
    "failed": "those of them that failed",
    "seq": "number of the message that replaced others",
    "replaced": "how many it replaced; of lessons, how many gave way to others",
    "withdrawn": "how many messages hold again, since a person took back the edit of a lesson",
    "kind": "how it replaced them: `restate`, `correct`, `partly`, `retract`, or `correction` by the edit of a lesson",
    "moved": "messages that went to cold storage",
    "through": "when the newest of them had arrived",
    "hot": "messages that were hot before",
    "records": "how many records were exported, or came to be imported",
    "taken": "those of them that were new and are kept now",
    "alreadyThere": "those of them that were there before",
    "refused": "those of them that did not fit, and were not taken",
    "marks": "what happened to a session between its messages, and was imported with them",
    "pins": "messages imported that were pinned",
    "missingParts": "large parts of what was exported that could not be read back",
    "lostMessages": "how many messages a salvage found lost; `spans` names them and those lost before",
    "lostEvents": "how many audit events it found lost",
    "events": "which, and which before: the first and the last of each run",
    "standIns": "the SHA-256 of the event hashes, each computed anew, of all that stands for lost events",
    "emptied": "messages that were forgotten before: the event that said so may be among the lost",
    "kept": "the folder that has the damaged file",
}
"""A test runs every verb and looks for a detail that is not told here."""


def audit_page() -> str:
    paragraphs = cleandoc(audit_chain.__doc__ or "").split("\n\n")
    formula = next(paragraph for paragraph in paragraphs if paragraph.startswith("    "))
    return _page(
        "Audit",
        AUDIT,
        "## Fields of an event",
        fields_table(AuditEvent),
        EVENTS,
        "## Formula",
        "```text\n" + cleandoc("\n" + formula) + "\n```",
        *paragraphs[paragraphs.index(formula) + 1 :],
        FORMULA,
        "## Fields of `details`",
        "An event never holds what was said. Of what was stored, a count that is 0 is left out.",
        table(["field", ""], [[code(name), meaning] for name, meaning in DETAIL_MEANINGS.items()]),
    )


if __name__ == "__main__":
    sys.exit(main())
