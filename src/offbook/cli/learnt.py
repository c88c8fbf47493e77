"""What the commands of lessons share: the lessons asked for, page by page, and how they are shown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from offbook.cli.answered import asked, typed
from offbook.cli.output import ago, counted, local_minute, printable, table, wrapped
from offbook.model.errors import NotFound
from offbook.model.lesson import Lesson, LessonPage, LessonStatus, lesson_id

if TYPE_CHECKING:
    from offbook import Client

MOST_AT_A_TIME = 100
"""The contract's."""


class Found:
    """The lessons asked for, page by page; `next` is where more would go on."""

    def __init__(self, client: Client, what: dict[str, Any], limit: int, *, before: str | None = None) -> None:
        self.next = before
        self.agent_id = ""
        self.counts: dict[str, int] = {}
        self._client = client
        self._what = what
        self._limit = limit

    def __iter__(self) -> Iterator[dict[str, Any]]:
        left = self._limit
        while left > 0:
            most = min(left, MOST_AT_A_TIME)
            document = asked(self._client, "lessons", **self._what, before=self.next, limit=most)
            page = typed(document, LessonPage)
            yield from document["lessons"]
            self.agent_id, self.counts = page.agent_id, page.counts
            if page.next is not None and page.next == self.next:
                raise click.ClickException(f"the provider answers with the lessons before {page.next} again")
            self.next = page.next
            left -= len(page.lessons)
            if self.next is None:
                return


def named(agent: str | None) -> str:
    """What a command that is told for copying says of whose it is: without it, another agent's would be meant."""
    return printable(f" --agent {shlex.quote(agent)}") if agent else ""


def show_table(documents: Sequence[dict[str, Any]]) -> None:
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


def tell(documents: Sequence[dict[str, Any]], found: Found, *, is_filtered: bool) -> None:
    total = sum(found.counts.values())
    if not total:
        click.echo(
            f"nothing was learnt of agent {printable(found.agent_id)} yet: lessons follow what is said; "
            f"`offbook maintain{named(found.agent_id)}` looks for them now, `offbook status` lists the agents",
            err=True,
        )
        return
    if not documents and is_filtered:
        click.echo("none of that kind: leave out --kind or --status", err=True)
    by_status = ", ".join(f"{found.counts[name]:,} {name}" for name in get_args(LessonStatus) if name in found.counts)
    click.echo(f"{counted(total, 'lesson')} in all: {by_status}")
    if found.next is not None:
        click.echo(f"{len(documents):,} shown: --limit N shows more", err=True)


# ── one of them ───────────────────────────────────────────────────────────────────────────────


def one(client: Client, lesson: str) -> dict[str, Any]:
    """The newest of those before the next number, if it is the one that is meant."""
    following = lesson_id(int(lesson.removeprefix("lesson-")) + 1)
    for document in Found(client, {}, 1, before=following):
        if document.get("id") == lesson:
            return document
    whose = f" of agent {client.agent_id!r}" if client.agent_id else ""
    listed = f"`offbook lessons{named(client.agent_id)}`"
    raise NotFound(f"there is no lesson {lesson!r}{whose}: {listed} lists them, --agent NAME those of another")


def show_whole(lesson: Lesson, agent: str | None) -> None:
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
            + printable(f"offbook expand --session {session} --from {source.seq}{named(agent)}")
        )
    if (more := lesson.times - len(lesson.sources)) > 0:
        click.secho(f"  and {counted(more, 'more time')}", dim=True)
