"""A lesson as a page, and what a person made of it: the statement is the body, and theirs to edit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from offbook.model.lesson import PAGE_FIELDS, Lesson, LessonSource, LessonStatus, Verdict
from offbook.model.plain_names import number_behind
from offbook.model.types import Value
from offbook.projections.wiki.markdown import (
    escaped,
    front_matter,
    link,
    one_line,
    plain_lines,
    unescaped,
    yaml_value,
)
from offbook.projections.wiki.own_fields import BrokenPage, own_fields, parted, without_own

SOURCES = "## Sources"
LONGEST_SESSION_CHARS = 80
LONGEST_KIND_CHARS = 40
OURS = frozenset((*PAGE_FIELDS, "about", "replaced_by"))
NO_SOURCE = "None is left."
STATUSES: dict[str, LessonStatus] = {
    "learnt": "learnt",
    "accepted": "accepted",
    "edited": "edited",
    "rejected": "rejected",
}
_VERDICTS: dict[LessonStatus, Verdict] = {"accepted": "accept", "rejected": "reject"}

_SOURCE_LINE = re.compile(r"[-*+] +\[?\d+-\d\d-\d\d \d\d:\d\d UTC, session .*, message \d+(?:\]\(\S*\))?")


class SourceLink(Value, frozen=True):
    """A source, and where the wiki has it: the file of its day and the heading there, where it has it already."""

    source: LessonSource
    file: str = ""
    anchor: str = ""


class ReadPage(Value, frozen=True):
    """A lesson's page as it was found."""

    fields: dict[str, str]
    status: LessonStatus
    statement: str
    own: str = ""
    """The lines of fields that are a person's or their editor's, such as tags and aliases."""


class Written(Value, frozen=True):
    """What was written last, as far as a person may change it."""

    digest: str
    status: LessonStatus


# ── writing ───────────────────────────────────────────────────────────────────────────────────


def lesson_file(lesson_id: str) -> str:
    return f"{lesson_id}.md"


def is_lesson_file(name: str) -> bool:
    """Whether we gave that name."""
    return name.endswith(".md") and number_behind("lesson-", name.removesuffix(".md")) is not None


def lesson_page(lesson: Lesson, sources: Sequence[SourceLink], own: str = "") -> str:
    """`own`: lines that somebody has in its front matter, and keeps."""
    fields = {
        "id": yaml_value(lesson.id),
        "kind": yaml_value(lesson.kind),
        "status": yaml_value(lesson.status),
        "confidence": f"{lesson.confidence:.2f}",
        "first_seen": _moment(lesson.first_seen),
        "last_seen": _moment(lesson.last_seen),
        "times": str(lesson.times),
        "learnt_by": yaml_value(lesson.learnt_by),
        "about": yaml_value(lesson.about) if lesson.about else "",
        "replaced_by": yaml_value(lesson.replaced_by) if lesson.replaced_by else "",
    }
    known = front_matter({name: value for name, value in fields.items() if value}, own)
    order = sorted(sources, key=lambda each: (each.source.at, each.source.session_id, each.source.seq))
    lines = "\n".join(f"- {_source(each)}" for each in order) or NO_SOURCE
    return f"{known}\n{escaped(lesson.text)}\n\n{SOURCES}\n\n{lines}\n"


def written(lesson: Lesson) -> Written:
    return Written(digest=digest(plain_lines(lesson.text)), status=lesson.status)


def digest(statement: str) -> str:
    return sha256(statement.encode("utf-8", "replace")).hexdigest()[:32]


def _source(each: SourceLink) -> str:
    session = one_line(each.source.session_id, LONGEST_SESSION_CHARS)
    label = f"{each.source.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC, session {session}, message {each.source.seq}"
    return link(label, f"../sources/session-logs/{each.file}", each.anchor) if each.file else label


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


# ── reading ───────────────────────────────────────────────────────────────────────────────────


def read_page(text: str, lesson_id: str) -> ReadPage:
    """What a person left there; a page that cannot be understood is a `BrokenPage`, and theirs to mend."""
    head, fields, body = parted(text, lesson_id)
    status = STATUSES.get(fields.get("status", "").casefold())
    if status is None:
        raise BrokenPage(f"its `status` is none of {', '.join(STATUSES)}")
    above, below = _around_sources(body)
    statement = unescaped(above)
    if not statement:
        raise BrokenPage("it has no statement")
    lost = next((line for line in below if not _is_source(line.strip())), None)
    if lost is not None:
        raise BrokenPage(f"below `{SOURCES}` it says {lost[:60]!r}, which would be lost: write it above that heading")
    return ReadPage(fields=fields, status=status, statement=statement, own=own_fields(head, OURS))


def page_without(text: str, lesson_id: str, says: Callable[[str], bool]) -> str:
    """The page without what a person has in its front matter and `says` knows."""
    return without_own(text, lesson_id, OURS, says)


def is_ours(text: str, lesson_id: str) -> bool:
    """Whether a page of this name was written by us, of a lesson that is no more."""
    try:
        return set(PAGE_FIELDS) <= read_page(text, lesson_id).fields.keys()
    except BrokenPage:
        return False


def judgements(
    page: ReadPage, lesson: Lesson, page_now: str, before: Sequence[Written]
) -> list[tuple[Verdict, str | None]]:
    """What a person wants of the lesson, read from its page: an edit, a status, both or nothing.

    `before` is what may have been written last; `page_now` what would be written now. Where nothing is known of what
    was written, a page counts as edited only if all else in it is as it would be now: then no other version of ours
    can have said it. Of what kind a lesson is nobody changes, ourselves included: who writes another one is told so.
    """
    kind = page.fields.get("kind", lesson.kind)
    if before and kind.casefold() != lesson.kind:
        raise BrokenPage(
            f"the change cannot be taken: its `kind` says {kind[:LONGEST_KIND_CHARS]!r}, and a lesson stays of "
            f"the kind it was learnt as: write `kind: {lesson.kind}` again and the rest is taken"
        )
    found: list[tuple[Verdict, str | None]] = []
    if page.statement != plain_lines(lesson.text):
        if before:
            is_edited = digest(page.statement) not in {each.digest for each in before}
        else:
            is_edited = page.fields == read_page(page_now, lesson.id).fields
        if is_edited:
            found.append(("edit", page.statement))
    is_judged = bool(before) and page.status not in {each.status for each in before} | {lesson.status}
    verdict = _VERDICTS.get(page.status) if is_judged else None
    if verdict == "reject" or (verdict == "accept" and not found):  # what a person wrote needs no yes
        found.append((verdict, None))
    return found


def _around_sources(body: str) -> tuple[str, list[str]]:
    """All but our list at the end, and its lines; a person may have written headings of their own."""
    lines = body.split("\n")
    headings = [number for number, line in enumerate(lines) if line.rstrip() == SOURCES]
    end = headings[-1] if headings else len(lines)
    return "\n".join(lines[:end]), lines[end + 1 :]


def _is_source(line: str) -> bool:
    return line in ("", NO_SOURCE) or _SOURCE_LINE.fullmatch(line) is not None
