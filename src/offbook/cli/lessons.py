"""`offbook lessons`: what was learnt from what was said, and what a person says to it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from offbook.cli.answers import Pages, asked, typed
from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation, selected_agent
from offbook.cli.output import ago, counted, local_minute, print_json, printable, table, wrapped
from offbook.model.errors import NotFound
from offbook.model.lesson import Lesson, LessonKind, LessonPage, LessonStatus, lesson_id
from offbook.model.plain_names import is_digits

if TYPE_CHECKING:
    from offbook.client.blocking import Client
    from offbook.model.lesson import Verdict


# ── offbook lessons ───────────────────────────────────────────────────────────────────────────────

SHOWN = 50
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
    digits = value.strip().lower().removeprefix("lesson-").lstrip("0")
    if not is_digits(digits, most=15):
        raise click.BadParameter(f"{value!r} is no id such as lesson-0003: `offbook lessons AGENT` lists them")
    return lesson_id(int(digits))


@click.group("lessons", cls=Lessons, epilog=EPILOG, subcommand_metavar="[AGENT] | COMMAND [ARGS]...")
def lessons_command() -> None:
    """Show what was learnt: decisions, corrections, preferences, procedures, facts, with how sure each is, when it was
    first and last said, and where. Accept, edit or reject what you like."""


# ── what there is ─────────────────────────────────────────────────────────────────────────────


@lessons_command.command(
    "list", epilog="\b\nExamples:\n  offbook lessons\n  offbook lessons researcher --kind decision -n 10"
)
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
    whose = selected_agent(invocation, agent)
    named = {} if whose is None else {"agentId": whose}
    with invocation.client() as client:
        fields = {**named, "kind": kind, "status": list(status) or None}
        found = Pages(client, "lessons", LessonPage, fields, limit=limit)
        documents = list(found)
    if invocation.is_json:
        more = {"next": found.next} if found.next else {}
        print_json({"agentId": found.last.agent_id, "lessons": documents, "counts": found.last.counts, **more})
        return
    _show_table(documents)
    _tell_shown(documents, found.last, is_filtered=kind is not None or bool(status))


# ── one of them ───────────────────────────────────────────────────────────────────────────────


@lessons_command.command("show", epilog="\b\nExample:\n  offbook lessons show lesson-0003")
@click.argument("lesson", type=lesson_name, metavar="ID")
@common_options
@pass_invocation
def show(invocation: Invocation, lesson: str) -> None:
    """Show one lesson, and where it was said."""
    from offbook.model.lesson import Lesson

    with invocation.client() as client:
        document = _lesson_document(client, lesson)
    if invocation.is_json:
        print_json(document)
    else:
        _show_whole(typed(document, Lesson), invocation.agent)


# ── what a person says to it ──────────────────────────────────────────────────────────────────


@lessons_command.command("accept", epilog="\b\nExample:\n  offbook lessons accept lesson-0003 lesson-0007")
@click.argument("lessons", type=lesson_name, nargs=-1, required=True, metavar="ID...")
@common_options
@pass_invocation
def accept(invocation: Invocation, lessons: tuple[str, ...]) -> None:
    """Say that lessons are right: they stay as they are."""
    _judge(invocation, lessons, "accept")


@lessons_command.command("reject", epilog="\b\nExample:\n  offbook lessons reject lesson-0004")
@click.argument("lessons", type=lesson_name, nargs=-1, required=True, metavar="ID...")
@common_options
@pass_invocation
def reject(invocation: Invocation, lessons: tuple[str, ...]) -> None:
    """Say that lessons are wrong: they are not told to the agent any more."""
    _judge(invocation, lessons, "reject")


@lessons_command.command("edit", epilog='\b\nExample:\n  offbook lessons edit lesson-0003 "They prefer green tea."')
@click.argument("lesson", type=lesson_name, metavar="ID")
@click.argument("text", type=UTF8, required=False)
@common_options
@pass_invocation
def edit(invocation: Invocation, lesson: str, text: str | None) -> None:
    """Say what a lesson should say: TEXT, or without it in your editor ($VISUAL, $EDITOR)."""
    if text is None:
        text = _edited(invocation, lesson)
        if text is None:
            click.echo("nothing was changed", err=True)
            return
    if not text.strip():
        whose = _naming_agent(invocation.agent)
        raise click.UsageError(f"a lesson cannot say nothing: `offbook lessons reject {lesson}{whose}` takes it away")
    _judge(invocation, [lesson], "edit", text)


def _edited(invocation: Invocation, lesson: str) -> str | None:
    """What was made of it in the editor; None where it is what it was."""
    from offbook.model.lesson import Lesson

    if not has_terminal():
        command_line = f'offbook lessons edit {lesson} "TEXT"{_naming_agent(invocation.agent)}'
        raise click.UsageError(f"without a terminal there is no editor: `{command_line}`")
    with invocation.client() as client:
        before = typed(_lesson_document(client, lesson), Lesson).text
    written = click.edit(before + "\n", extension=".md")
    return None if written is None or written.strip() == before.strip() else written


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _judge(invocation: Invocation, lessons: Sequence[str], verdict: Verdict, text: str | None = None) -> None:
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


# ── the lessons asked for, page by page, and how they are shown ───────────────────────────────────


def _naming_agent(agent: str | None) -> str:
    """What a command that is told for copying says of whose it is: without it, another agent's would be meant."""
    return printable(f" --agent {shlex.quote(agent)}") if agent else ""


def _show_table(documents: Sequence[dict[str, Any]]) -> None:
    lessons = [typed(document, Lesson) for document in documents]
    if lessons:
        table(
            ["id", "kind", "status", "confidence", "first", "last", "times", "what was learnt"],
            [
                [
                    lesson.id,
                    lesson.kind,
                    _standing(lesson),
                    f"{100 * lesson.confidence:.0f} %",
                    ago(lesson.first_seen),
                    ago(lesson.last_seen),
                    f"{lesson.times:,}",
                    lesson.text,
                ]
                for lesson in lessons
            ],
            right=["confidence", "times"],
        )


def _standing(lesson: Lesson) -> str:
    return f"{lesson.status}, now {lesson.replaced_by}" if lesson.replaced_by else lesson.status


def _tell_shown(documents: Sequence[dict[str, Any]], page: LessonPage, *, is_filtered: bool) -> None:
    total = sum(page.counts.values())
    if not total:
        click.echo(
            f"nothing was learnt of agent {printable(page.agent_id)} yet: lessons follow what is said; "
            f"`offbook maintain{_naming_agent(page.agent_id)}` looks for them now, `offbook status` lists the agents",
            err=True,
        )
        return
    if not documents and is_filtered:
        click.echo("none of that kind: leave out --kind or --status", err=True)
    by_status = ", ".join(f"{page.counts[name]:,} {name}" for name in get_args(LessonStatus) if name in page.counts)
    click.echo(f"{counted(total, 'lesson')} in all: {by_status}")
    if page.next is not None:
        click.echo(f"{len(documents):,} shown: --limit N shows more", err=True)


# ── one of them ───────────────────────────────────────────────────────────────────────────────


def _lesson_document(client: Client, lesson: str) -> dict[str, Any]:
    """The newest of those before the next number, if it is the one that is meant."""
    following = lesson_id(int(lesson.removeprefix("lesson-")) + 1)
    for document in Pages(client, "lessons", LessonPage, {}, limit=1, before=following):
        if document.get("id") == lesson:
            return document
    whose = f" of agent {client.agent_id!r}" if client.agent_id else ""
    listed = f"`offbook lessons{_naming_agent(client.agent_id)}`"
    raise NotFound(f"there is no lesson {lesson!r}{whose}: {listed} lists them, --agent NAME those of another")


def _show_whole(lesson: Lesson, agent: str | None) -> None:
    head = f"{lesson.kind}, {_standing(lesson)}" + (f", about {lesson.about}" if lesson.about else "")
    click.echo(f"{click.style(lesson.id, bold=True)}  {printable(head)}")
    for line in wrapped(printable(lesson.text), "  "):
        click.echo(line)
    facts = [
        f"{100 * lesson.confidence:.0f} % sure · said {counted(lesson.times, 'time')}, "
        f"first {local_minute(lesson.first_seen)}, last {local_minute(lesson.last_seen)} · by {lesson.learnt_by}"
    ]
    if lesson.learnt_text is not None:
        facts.append(f"before it was edited: {lesson.learnt_text}")
    for fact in facts:
        for line in wrapped(printable(fact), "  "):
            click.secho(line, dim=True)
    for source in lesson.sources:
        session = shlex.quote(source.session_id)
        click.echo(
            f"  {local_minute(source.at)}  "
            + printable(f"offbook expand --session {session} --from {source.seq}{_naming_agent(agent)}")
        )
    if (more := lesson.times - len(lesson.sources)) > 0:
        click.secho(f"  and {counted(more, 'more time')}", dim=True)
