"""The table of commands, and what happens to an error on its way out.

`offbook --help` must answer at once, so the table carries the one line it shows of each command, and
nothing but click is imported for it.
"""

from __future__ import annotations

import errno
import os
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click

from offbook.cli.options import Invocation, common_options
from offbook.model.errors import OffbookError, ProviderRefused, ProviderUnavailable

# Before numpy is loaded: models that read in the background leave the other cores to whoever is served.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

EXIT_FAILED = 1
EXIT_UNREACHABLE = 3
EXIT_INTERRUPTED = 130
"""What a shell reports of a program that Ctrl-C ended."""


class Listed(NamedTuple):
    """A command as `--help` lists it, known without loading the module that has it."""

    module: str
    section: str
    line: str


COMMANDS = {
    "serve": Listed("provider", "Run the provider", "Run the provider in the foreground."),
    "token": Listed("provider", "Run the provider", "Create, list and revoke access tokens."),
    "tls-cert": Listed("provider", "Run the provider", "Create a self-signed certificate for development."),
    "agents-md": Listed("connect", "Run the provider", "Print the section on memory for an agent's AGENTS.md."),
    "openclaw": Listed("openclaw", "Run the provider", "Set up Offbook in OpenClaw, and check that it works."),
    "mcp": Listed("gateways", "Run the provider", "Serve the memory as tools to any MCP client."),
    "connect": Listed("connect", "Run the provider", "Connect Claude Code, Codex, Cursor and others."),
    "hook": Listed("gateways", "Run the provider", "Answer a hook of Claude Code or Codex."),
    "proxy": Listed("gateways", "Run the provider", "Add memory to any OpenAI-compatible client."),
    "ui": Listed("ui", "Run the provider", "Open the memory as a page in the browser."),
    "config": Listed("status", "Run the provider", "Show every setting and where it came from."),
    "ping": Listed("provider", "Use it", "Check whether the provider answers."),
    "record": Listed("record", "Use it", "Store a message, or a file of messages."),
    "import": Listed("imports", "Use it", "Import conversations from another program."),
    "log": Listed("sessions", "Use it", "Show the messages of a session, or the sessions."),
    "context": Listed("contexts", "Use it", "Show the compressed context of a session."),
    "swap": Listed("contexts", "Use it", "Swap in the compressed context, and show what it omits."),
    "expand": Listed("sessions", "Use it", "Show the messages behind a summary or a lesson."),
    "recall": Listed("recall", "Use it", "Search everything that was said."),
    "turn": Listed("state", "Use it", "Show what would be injected for a prompt, and why."),
    "topics": Listed("state", "Use it", "Show the topics of a session or an agent."),
    "anchors": Listed("state", "Use it", "Show identities, contradictions and unresolved points."),
    "state": Listed("state", "Use it", "Show the agent's open tasks and current goal."),
    "lessons": Listed("lessons", "Use it", "Show lessons, and accept, edit or reject them."),
    "pin": Listed("recall", "Use it", "Pin messages, so that they stay hot."),
    "unpin": Listed("recall", "Use it", "Unpin messages."),
    "unlink": Listed("recall", "Use it", "Take back that a message replaced another."),
    "end": Listed("sessions", "Use it", "End a session."),
    "sessions": Listed("overview", "Look after it", "Show the sessions, and how full the context of each is."),
    "entries": Listed("overview", "Look after it", "Show entries by their ids, or those that are pinned."),
    "activity": Listed("overview", "Look after it", "Show how much was said on each day."),
    "status": Listed("status", "Look after it", "Show what is stored, and what is missing."),
    "inspect": Listed("summaries", "Look after it", "Show summaries, and what each omits."),
    "compress": Listed("summaries", "Look after it", "Summarise what is not summarised yet."),
    "replay": Listed("contexts", "Look after it", "Show what a context held at a given time, and why."),
    "audit": Listed("audit", "Look after it", "Show or verify the audit chain."),
    "doctor": Listed("upkeep", "Look after it", "Check the installation, and say how to fix it."),
    "flush": Listed("upkeep", "Look after it", "Deliver what clients could not send before."),
    "backup": Listed("backups", "Look after it", "Back up everything to one file, while it runs."),
    "export": Listed("exports", "Look after it", "Export everything to files in open formats."),
    "restore": Listed("backups", "Look after it", "Restore a backup."),
    "encrypt": Listed("encrypt", "Look after it", "Encrypt the data folder."),
    "decrypt": Listed("encrypt", "Look after it", "Turn an encrypted data folder into a plain one."),
    "migrate": Listed("migrate", "Look after it", "Copy the memory into PostgreSQL, or back."),
    "nodes": Listed("nodes", "Look after it", "Show the nodes that share a database."),
    "redact": Listed("record", "Look after it", "Show which secrets a text holds, or take them out."),
    "forget": Listed("forget", "Look after it", "Erase messages for good, and prove it."),
    "cross": Listed("recall", "Look after it", "Allow agents to search each other's memory."),
    "reindex": Listed("upkeep", "Look after it", "Rebuild the search index from the log."),
    "maintain": Listed("upkeep", "Look after it", "Run maintenance now, and show what was done."),
    "model": Listed("model", "Look after it", "Show, install and test models."),
    "conformance": Listed("conformance", "Look after it", "Test any provider against the contract."),
    "version": Listed("status", "Look after it", "Show versions."),
}

EPILOG = """\b
Exit status:
  0  done
  1  it failed, or faults were found
  2  the command line is wrong
  3  no provider answers

\b
An error is one line on stderr, `offbook: …`; with --json it is an RFC 9457
problem document on stdout instead. A mistake in the command line is always
told on stderr.

\b
OFFBOOK_HOME   data folder (default ~/.offbook)
OFFBOOK_URL    provider to ask (default: the socket in the data folder)
OFFBOOK_TOKEN  token to show it (default: the one in the data folder)
OFFBOOK_AGENT  agent meant where a command names none
"""


class LazyGroup(click.Group):
    """Imports a command's module when it is used, and reports errors the same way for all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f"offbook.cli.{COMMANDS[name].module}")
        command = getattr(module, f"{name.replace('-', '_')}_command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            nearest = get_close_matches(args[0], self.list_commands(ctx), 1)
            if not nearest or "did you mean" in error.message.lower():
                raise
            raise click.UsageError(f"{error.message} Did you mean {nearest[0]!r}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        for section in dict.fromkeys(COMMANDS[name].section for name in names):
            with formatter.section(section):
                formatter.write_dl([(name, COMMANDS[name].line) for name in names if COMMANDS[name].section == section])

    def invoke(self, ctx: click.Context) -> Any:
        ctx.ensure_object(Invocation)  # here, so that the command and the report below share one
        try:
            return super().invoke(ctx)
        except OffbookError as error:
            _report(ctx, error)
            ctx.exit(EXIT_UNREACHABLE if isinstance(error, ProviderUnavailable) else EXIT_FAILED)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read our output has seen enough; click ends quietly
                raise
            _report(ctx, OffbookError(_format_error(error)))
            ctx.exit(EXIT_FAILED)


def _report(ctx: click.Context, error: OffbookError) -> None:
    if ctx.ensure_object(Invocation).is_json:
        from offbook.cli.output import print_json

        print_json(error.document if isinstance(error, ProviderRefused) else error.problem())
        return
    for line in error.detail.splitlines():  # settings tell of all that is wrong, one line each
        click.echo(f"offbook: {line}", err=True)


def _format_error(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="offbook", message="%(prog)s %(version)s")
@common_options
@click.pass_context
def root(ctx: click.Context) -> None:
    """The memory that every serious AI agent runs on.

    \b
    Start here:
      offbook serve                                 in one terminal
      offbook record chat "My cat is called Ada."   in another
      offbook log chat
      offbook recall what is my cat called
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
