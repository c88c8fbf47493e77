"""`offbook lessons`: what was learnt from what was said, and what a person says to it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from offbook.cli.options import UTF8, Invocation, common_options, meant_agent, pass_invocation
from offbook.model.lesson import LessonKind, LessonStatus, lesson_id

if TYPE_CHECKING:
    from offbook.model.lesson import Verdict

SHOWN = 50
LESSON_NUMBER = re.compile(r"(?:lesson-)?0*([1-9][0-9]{0,14})", re.IGNORECASE)
DONE = {"accept": "accepted", "edit": "edited", "reject": "rejected"}

EPILOG = """\b
Examples:
  offbook lessons
  offbook lessons researcher --kind decision
  offbook lessons --status learnt --json | jq -r '.lessons[].text'
  offbook lessons show lesson-0003
  offbook lessons accept lesson-0003 lesson-0007
  offbook lessons edit lesson-0003 "They prefer green tea, without sugar."
  offbook lessons reject 4

\b
What you judge stays as you want it: nothing that is learnt later changes it.
An agent whose name is that of a command is named with --agent.
"""


class Lessons(click.Group):
    """`offbook lessons [AGENT]` lists; a command in the place of AGENT is that command, wherever options stand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = self._first_word(args)
        if at is not None and args[at] in self.commands:
            args = [args[at], *args[:at], *args[at + 1 :]]
        elif not args or args[0] not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def _first_word(self, args: Sequence[str]) -> int | None:
        """Where the first argument is that is neither an option nor the value of one."""
        options = [param for command in self.commands.values() for param in command.params]
        with_value = {
            name
            for option in options
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        at = 0
        while at < len(args):
            if args[at] == "--" or not args[at].startswith("-"):
                return at if args[at] != "--" else None
            at += 2 if args[at] in with_value else 1
        return None


def lesson_name(value: str) -> str:
    """As it is shown, or its number."""
    match = LESSON_NUMBER.fullmatch(value.strip())
    if match is None or not value.isascii():
        raise click.BadParameter(f"{value!r} is no id such as lesson-0003: `offbook lessons AGENT` lists them")
    return lesson_id(int(match[1]))


@click.group("lessons", cls=Lessons, epilog=EPILOG, subcommand_metavar="[AGENT] | COMMAND [ARGS]...")
def command() -> None:
    """Show what was learnt: decisions, corrections, preferences, procedures, facts, with how sure each is, when it was
    first and last said, and where. Accept, edit or reject what you like."""


# ── what there is ─────────────────────────────────────────────────────────────────────────────


@command.command("list", epilog="\b\nExamples:\n  offbook lessons\n  offbook lessons researcher --kind decision -n 10")
@click.argument("agent", type=UTF8, required=False)
@click.option("--kind", type=click.Choice(get_args(LessonKind)), help="Only those of this kind.")
@click.option("--status", type=click.Choice(get_args(LessonStatus)), multiple=True, help="Only those; may be repeated.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="Most lessons shown.")
@common_options
@pass_invocation
def list_lessons(
    invocation: Invocation, agent: str | None, kind: str | None, status: tuple[str, ...], limit: int
) -> None:
    """Show an agent's lessons, the newest first (also without the word list)."""
    from offbook.cli.learnt import Found, show_table, tell
    from offbook.cli.output import print_json

    whose = meant_agent(invocation, agent)
    named = {} if whose is None else {"agentId": whose}
    with invocation.client() as client:
        found = Found(client, {**named, "kind": kind, "status": list(status) or None}, limit)
        documents = list(found)
    if invocation.is_json:
        more = {"next": found.next} if found.next else {}
        print_json({"agentId": found.agent_id, "lessons": documents, "counts": found.counts, **more})
        return
    show_table(documents)
    tell(documents, found, is_filtered=kind is not None or bool(status))


# ── one of them ───────────────────────────────────────────────────────────────────────────────


@command.command("show", epilog="\b\nExample:\n  offbook lessons show lesson-0003")
@click.argument("lesson", type=lesson_name, metavar="ID")
@common_options
@pass_invocation
def show(invocation: Invocation, lesson: str) -> None:
    """Show one lesson, and where it was said."""
    from offbook.cli.answered import typed
    from offbook.cli.learnt import one, show_whole
    from offbook.cli.output import print_json
    from offbook.model.lesson import Lesson

    with invocation.client() as client:
        document = one(client, lesson)
    if invocation.is_json:
        print_json(document)
    else:
        show_whole(typed(document, Lesson), invocation.agent)


# ── what a person says to it ──────────────────────────────────────────────────────────────────


@command.command("accept", epilog="\b\nExample:\n  offbook lessons accept lesson-0003 lesson-0007")
@click.argument("lessons", type=lesson_name, nargs=-1, required=True, metavar="ID...")
@common_options
@pass_invocation
def accept(invocation: Invocation, lessons: tuple[str, ...]) -> None:
    """Say that lessons are right: they stay as they are."""
    _judge(invocation, lessons, "accept")


@command.command("reject", epilog="\b\nExample:\n  offbook lessons reject lesson-0004")
@click.argument("lessons", type=lesson_name, nargs=-1, required=True, metavar="ID...")
@common_options
@pass_invocation
def reject(invocation: Invocation, lessons: tuple[str, ...]) -> None:
    """Say that lessons are wrong: they are not told to the agent any more."""
    _judge(invocation, lessons, "reject")


@command.command("edit", epilog='\b\nExample:\n  offbook lessons edit lesson-0003 "They prefer green tea."')
@click.argument("lesson", type=lesson_name, metavar="ID")
@click.argument("text", type=UTF8, required=False)
@common_options
@pass_invocation
def edit(invocation: Invocation, lesson: str, text: str | None) -> None:
    """Say what a lesson should say: TEXT, or without it in your editor ($VISUAL, $EDITOR)."""
    from offbook.cli.learnt import named

    if text is None:
        text = _edited(invocation, lesson)
        if text is None:
            click.echo("nothing was changed", err=True)
            return
    if not text.strip():
        whose = named(invocation.agent)
        raise click.UsageError(f"a lesson cannot say nothing: `offbook lessons reject {lesson}{whose}` takes it away")
    _judge(invocation, [lesson], "edit", text)


def _edited(invocation: Invocation, lesson: str) -> str | None:
    """What was made of it in the editor; None where it is what it was."""
    from offbook.cli.answered import typed
    from offbook.cli.learnt import named, one
    from offbook.model.lesson import Lesson

    if not has_terminal():
        command_line = f'offbook lessons edit {lesson} "TEXT"{named(invocation.agent)}'
        raise click.UsageError(f"without a terminal there is no editor: `{command_line}`")
    with invocation.client() as client:
        before = typed(one(client, lesson), Lesson).text
    written = click.edit(before + "\n", extension=".md")
    return None if written is None or written.strip() == before.strip() else written


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _judge(invocation: Invocation, lessons: Sequence[str], verdict: Verdict, text: str | None = None) -> None:
    from offbook.cli.answered import asked, typed
    from offbook.cli.output import print_json, printable
    from offbook.model.lesson import Lesson

    documents: list[dict[str, Any]] = []
    with invocation.client() as client:
        for name in dict.fromkeys(lessons):
            fields = {"lessonId": name, "verdict": verdict, "text": None if text is None else text.strip()}
            documents.append(asked(client, "lessons/judge", **fields))
            if not invocation.is_json:
                click.echo(f"{DONE[verdict]} {name}: {printable(typed(documents[-1], Lesson).text)}")
    if invocation.is_json:
        print_json({"lessons": documents})
