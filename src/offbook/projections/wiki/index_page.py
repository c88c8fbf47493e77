"""The ways into a wiki: all agents, an agent, its lessons. No page says when it was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from offbook.model.home import safe_name
from offbook.model.lesson import Lesson, LessonKind, LessonStatus
from offbook.model.types import Value
from offbook.models.subject_kinds import SubjectKind
from offbook.projections.wiki.lesson_page import lesson_file
from offbook.projections.wiki.markdown import link, one_line

LONGEST_NAME_CHARS = 200
LONGEST_STATEMENT_CHARS = 300
NEWEST_LESSONS = 10
"""Of each kind, on the agent's page; the lessons' own index has all."""
LOGS = "sources/session-logs"

KINDS: dict[LessonKind, str] = {
    "decision": "Decisions",
    "correction": "Corrections",
    "preference": "Preferences",
    "procedure": "Procedures",
    "fact": "Facts",
}


SUBJECTS: dict[SubjectKind, str] = {"person": "People", "project": "Projects", "topic": "Topics"}


class LessonLine(Value, frozen=True):
    """What an index says of a lesson."""

    id: str
    kind: LessonKind
    status: LessonStatus
    text: str
    about: str | None = None
    replaced_by: str | None = None

    @property
    def holds(self) -> bool:
        return self.status != "rejected" and self.replaced_by is None


class DayLine(Value, frozen=True):
    """A day, and how many messages each of its pages has."""

    day: str
    files: list[str]
    messages: list[int]


class SessionLine(Value, frozen=True):
    """A session, and where its newest message is."""

    session_id: str
    messages: int
    day: str
    file: str
    anchor: str
    title: str = ""


class SubjectLine(Value, frozen=True):
    """A person, project or topic, and its page."""

    kind: SubjectKind
    label: str
    path: str
    statements: int


def line_of(lesson: Lesson) -> LessonLine:
    return LessonLine(
        id=lesson.id,
        kind=lesson.kind,
        status=lesson.status,
        text=lesson.text,
        about=lesson.about,
        replaced_by=lesson.replaced_by,
    )


def agents_index(agents: Sequence[str]) -> str:
    lines = [
        f"- {link(one_line(agent, LONGEST_NAME_CHARS), f'{safe_name(agent)}/index.md')}" for agent in sorted(agents)
    ]
    return "\n".join(["# Memory", "", *(lines or ["No agent has been heard yet."])]) + "\n"


def agent_index(
    agent_id: str,
    *,
    days: Sequence[DayLine],
    newest: Sequence[SessionLine],
    sessions: int,
    cold_pages: int,
    lessons: Sequence[LessonLine],
    subjects: Sequence[SubjectLine] = (),
) -> str:
    """`newest` as given, by month; days from the last to the first."""
    messages = sum(sum(day.messages) for day in days)
    facts = [
        f"- {_counted(messages, 'message')} in {_counted(sessions, 'session')}, on {_counted(len(days), 'day')}",
        f"- {_counted(cold_pages, 'cold page')}, under `sources/swap`",
        f"- {_counted(len(lessons), 'lesson')}",
    ]
    blocks = [f"# {one_line(agent_id, LONGEST_NAME_CHARS)}", link("All agents", "../index.md"), "\n".join(facts)]
    for kind, title in SUBJECTS.items():
        same = sorted((one for one in subjects if one.kind == kind), key=lambda one: (one.label.casefold(), one.path))
        if same:
            blocks += [f"## {title}", "\n".join(_subject(one) for one in same)]
    if lessons:
        blocks += [
            "## Lessons",
            link("All of them", "lessons/index.md"),
            *_by_kind(lessons, "lessons/", NEWEST_LESSONS),
        ]
    if newest:
        blocks.append("## Sessions")
        for month, said in groupby(newest, key=lambda each: each.day[:7]):
            blocks += [f"### {month}", "\n".join(_session(each) for each in said)]
    if days:
        order = sorted(days, key=lambda each: each.day, reverse=True)
        blocks += ["## Days", "\n".join(_day(each) for each in order)]
    return "\n\n".join(blocks) + "\n"


def lessons_index(agent_id: str, lessons: Sequence[LessonLine]) -> str:
    blocks = [f"# Lessons of {one_line(agent_id, LONGEST_NAME_CHARS)}", link("Index", "../index.md")]
    blocks += _by_kind(lessons, "", len(lessons), "##")
    rejected = [line for line in lessons if line.status == "rejected"]
    replaced = [line for line in lessons if line.replaced_by is not None and line.status != "rejected"]
    for title, lines in (("No longer holds", replaced), ("Rejected", rejected)):
        if lines:
            blocks += [f"## {title}", "\n".join(_lesson(line, "") for line in sorted(lines, key=_number))]
    if not lessons:
        blocks.append("Nothing was learnt yet.")
    return "\n\n".join(blocks) + "\n"


def _by_kind(lessons: Sequence[LessonLine], folder: str, most: int, level: str = "###") -> Iterator[str]:
    """Those that hold; where there are more than fit, the newest."""
    for kind, title in KINDS.items():
        lines = sorted((line for line in lessons if line.kind == kind and line.holds), key=_number)
        if lines:
            yield f"{level} {title}"
            yield "\n".join(_lesson(line, folder) for line in lines[-most:])


def _lesson(line: LessonLine, folder: str) -> str:
    about = f" ({one_line(line.about, LONGEST_NAME_CHARS)})" if line.about else ""
    judged = f" · {line.status}" if line.status in ("accepted", "edited") else ""
    statement = one_line(line.text, LONGEST_STATEMENT_CHARS)
    return f"- {link(line.id, f'{folder}{lesson_file(line.id)}')}: {statement}{about}{judged}"


def _session(each: SessionLine) -> str:
    session = one_line(each.session_id, LONGEST_NAME_CHARS)
    label = one_line(each.title, LONGEST_NAME_CHARS) if each.title else session
    name = link(label, f"{LOGS}/{each.file}", each.anchor)
    known = f"session {session}, " if each.title else ""
    return f"- {name}: {known}{_counted(each.messages, 'message')}, the newest on {each.day}"


def _subject(each: SubjectLine) -> str:
    name = link(one_line(each.label, LONGEST_NAME_CHARS), f"{each.path}.md")
    return f"- {name}: {_counted(each.statements, 'statement')}"


def _day(each: DayLine) -> str:
    pages = [
        link(_counted(messages, "message") if number == 1 else f"part {number}: {messages:,}", f"{LOGS}/{file}")
        for number, (file, messages) in enumerate(zip(each.files, each.messages, strict=True), 1)
    ]
    return f"- {each.day}: {', '.join(pages)}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _number(line: LessonLine) -> tuple[int, str]:
    """As the numbers are, not as they are spelled."""
    return len(line.id), line.id
