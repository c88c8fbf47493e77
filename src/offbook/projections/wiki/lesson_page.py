"""A lesson as a page, and what a person made of it: the statement is the body, and theirs to edit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from offbook.model.lesson import PAGE_FIELDS, Lesson, LessonSource, LessonStatus, Verdict
from offbook.model.types import Value
from offbook.projections.wiki.markdown import (
    clean,
    escaped,
    front_matter,
    link,
    one_line,
    plain_lines,
    unescaped,
    yaml_value,
)

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

_LESSON_FILE = re.compile(r"lesson-\d{4,15}\.md")
_FIELD = re.compile(r"([A-Za-z_][\w-]*):(?: +(.*))?")
_FURTHER = re.compile(r"[ \t]|- |#|$")
"""What Obsidian and people put below a field: lists, comments, nothing."""
_ITEM = re.compile(r"[ \t]*- ")
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)
"""Left by a merge that is not finished."""
_COMMENT = re.compile(r"\s+#.*")
_SOURCE_LINE = re.compile(r"[-*+] +\[?\d+-\d\d-\d\d \d\d:\d\d UTC, session .*, message \d+(?:\]\(\S*\))?")


class BrokenPage(Exception):
    """What is wrong with the page."""


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
    return _LESSON_FILE.fullmatch(name) is not None


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
    head, fields, body = _parted(text, lesson_id)
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
    return ReadPage(fields=fields, status=status, statement=statement, own=_own(head))


def page_without(text: str, lesson_id: str, says: Callable[[str], bool]) -> str:
    """The page without what a person has in its front matter and `says` knows; all else in it stays, also what nobody
    has taken yet. Of a list only those items go, of anything else the field."""
    head, _, body = _parted(text, lesson_id)
    fields = _with_lines_below(head)
    left = [_unsaid(lines, says) for lines in fields]
    if left == fields:
        return text
    return "".join(["---\n", *(f"{line}\n" for lines in left for line in lines), "---\n", body])


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


def _parted(text: str, lesson_id: str) -> tuple[str, dict[str, str], str]:
    """The front matter, its fields, and what is below it."""
    text = clean(text.removeprefix("\ufeff"))
    if _CONFLICT.search(text):
        raise BrokenPage("it holds the marks of a merge that is not finished")
    first, _, rest = text.partition("\n")
    head, end, body = f"\n{rest}".partition("\n---\n")
    if first.rstrip() != "---" or not end:
        raise BrokenPage("it does not begin with front matter between two lines of ---")
    fields = dict(_fields(head))
    if fields.get("id") != lesson_id:
        raise BrokenPage(f"its front matter does not say `id: {lesson_id}`")
    return head, fields, body


def _fields(head: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in head.split("\n")[1:]:
        field = _FIELD.fullmatch(line.rstrip())
        if field is not None:
            found.append((field[1], _value(field[2] or "")))
        elif not _FURTHER.match(line):
            raise BrokenPage(f"its front matter has a line that is no field: {line[:60]!r}")
    return found


def _own(head: str) -> str:
    """The fields that are not ours, with the lines below each."""
    own = [lines for lines in _with_lines_below(head) if _name(lines) is not None and _name(lines) not in OURS]
    return "".join(f"{line}\n" for lines in own for line in lines)


def _with_lines_below(head: str) -> list[list[str]]:
    """By field: its line and those below it. Lines above all of them are the first, without a field."""
    found: list[list[str]] = []
    for line in head.split("\n")[1:]:
        if not found or _FIELD.fullmatch(line.rstrip()) is not None:
            found.append([])
        found[-1].append(line)
    return found


def _name(lines: Sequence[str]) -> str | None:
    field = _FIELD.fullmatch(lines[0].rstrip())
    return None if field is None else field[1]


def _unsaid(lines: list[str], says: Callable[[str], bool]) -> list[str]:
    """A field and the lines below it without what says it. What we write is not for us to take here: what a lesson says
    is changed in the lesson."""
    first, below = (lines[:1], lines[1:]) if _name(lines) is not None else ([], lines)
    is_ours = not first or _name(lines) in OURS
    if (is_ours and not below) or not says("\n".join(below if is_ours else lines)):
        return lines
    left = [*first, *(line for line in below if not says(line))]
    if _is_list(below) and not says("\n".join(left[len(first) :] if is_ours else left)):
        return left
    return first if is_ours else []


def _is_list(lines: Sequence[str]) -> bool:
    """Each item in a line of its own, and none within another."""
    items = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    begun = {item[0] if (item := _ITEM.match(line)) is not None else "" for line in items}
    return len(begun) <= 1 and "" not in begun


def _value(text: str) -> str:
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            raise BrokenPage(f"a quote in its front matter does not end: {text[:60]!r}") from None
    if text.startswith("'"):
        return text.strip("'").replace("''", "'")
    return _COMMENT.sub("", text).strip()


def _around_sources(body: str) -> tuple[str, list[str]]:
    """All but our list at the end, and its lines; a person may have written headings of their own."""
    lines = body.split("\n")
    headings = [number for number, line in enumerate(lines) if line.rstrip() == SOURCES]
    end = headings[-1] if headings else len(lines)
    return "\n".join(lines[:end]), lines[end + 1 :]


def _is_source(line: str) -> bool:
    return line in ("", NO_SOURCE) or _SOURCE_LINE.fullmatch(line) is not None
