"""A person, a project or a topic as a page: what holds now, what was said when, and what belongs to it."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from offbook.model.home import safe_name
from offbook.model.types import Value
from offbook.models.subject_kinds import SubjectKind
from offbook.projections.wiki.index_page import LONGEST_STATEMENT_CHARS, LessonLine
from offbook.projections.wiki.lesson_page import lesson_file
from offbook.projections.wiki.markdown import clean, front_matter, link, one_line, yaml_value
from offbook.projections.wiki.own_fields import BrokenPage, own_fields, parted
from offbook.search.words import WORD_PIECE
from offbook.statements.subjects import Subject

FOLDERS: dict[SubjectKind, str] = {"person": "people", "project": "projects", "topic": "topics"}
OURS = frozenset(("id", "kind", "name", "statements", "sessions", "first_said", "last_said"))
MOST_HOLDING, MOST_NEWEST, MOST_HOLDING_CHARS = 4, 2, 600
"""Of the paragraph at the top."""
MOST_STATEMENTS = 40
MOST_EARLIER = 2
LONGEST_LABEL_CHARS = 80
LONGEST_FILE_CHARS = 48
"""Of four bytes each, with what is added to it, they are a name on every file system."""


class Told(Value, frozen=True):
    """A sentence about a subject, word for word, and where it was said."""

    text: str
    at: datetime
    session: str
    """What the session is called."""
    order: tuple[int, int]
    """Of the log: the place of its message, and its own in there."""
    file: str = ""
    anchor: str = ""
    speaker: str = ""
    is_lasting: bool = False
    """It matters in weeks."""
    is_replaced: bool = False
    """Something said later holds instead."""


class Linked(Value, frozen=True):
    """Another page, as this one calls it."""

    label: str
    path: str


# ── names ─────────────────────────────────────────────────────────────────────────────────────


def page_ids(subjects: Sequence[Subject]) -> dict[str, str]:
    """The page of each subject, by its key: folder and name, without the ending. No two are the same to a file system
    that knows no capitals."""
    found: dict[str, str] = {}
    for one in sorted(subjects, key=lambda each: each.key):
        name = _file_name(one.label, one.key)
        page = f"{FOLDERS[one.kind]}/{name}"
        found[one.key] = page if page not in found.values() else f"{FOLDERS[one.kind]}/{_marked(name, one.key)}"
    return found


def _file_name(label: str, key: str) -> str:
    """Small letters and digits of any script, with hyphens. What this leaves out is made up for by a mark."""
    plain = unicodedata.normalize("NFC", clean(label)).casefold()
    name = unicodedata.normalize("NFC", "-".join(WORD_PIECE.findall(plain)))
    is_safe = not name.isascii() or safe_name(name) == name
    if name == "-".join(plain.split()) and 0 < len(name) <= LONGEST_FILE_CHARS and is_safe and name != "index":
        return name
    return _marked(name[: LONGEST_FILE_CHARS - 8].strip("-") or "name", key)


def _marked(name: str, key: str) -> str:
    return f"{name}-{sha256(key.encode('utf-8', 'replace')).hexdigest()[:6]}"


# ── the page ──────────────────────────────────────────────────────────────────────────────────


def subject_page(
    subject: Subject,
    page_id: str,
    told: Sequence[Told],
    others: Sequence[Linked],
    lessons: Sequence[LessonLine],
    own: str = "",
) -> str:
    """`told` in any order; `own`: lines that somebody has in its front matter, and keeps."""
    order = sorted(told, key=lambda one: (one.at, one.order))
    fields = {
        "id": yaml_value(page_id),
        "kind": yaml_value(subject.kind),
        "name": yaml_value(clean(subject.label)),
        "statements": str(len(order)),
        "sessions": str(len({one.session for one in subject.mentions})),
        "first_said": order[0].at.astimezone(UTC).date().isoformat() if order else "",
        "last_said": order[-1].at.astimezone(UTC).date().isoformat() if order else "",
    }
    blocks = [
        front_matter({name: value for name, value in fields.items() if value}, own).rstrip("\n"),
        f"# {one_line(subject.label, LONGEST_LABEL_CHARS)}",
        link("Index", "../index.md"),
        *_holding(order[::-1]),
    ]
    if order:
        blocks += ["## What was said", "\n".join(_statement(one) for one in order)]
    if others:
        lines = [f"- {link(one_line(one.label, LONGEST_LABEL_CHARS), f'../{one.path}.md')}" for one in others]
        blocks += ["## Spoken of together", "\n".join(lines)]
    if lessons:
        blocks += ["## Lessons", "\n".join(_lesson(one) for one in lessons)]
    return "\n\n".join(blocks) + "\n"


def read_own(text: str, page_id: str) -> str:
    """The fields of a page of ours that are a person's; one that is not ours, or not understood, is a `BrokenPage`."""
    head, fields, _ = parted(text, page_id)
    if not {"id", "kind", "name"} <= fields.keys():
        raise BrokenPage("it is no page of a person, project or topic")
    return own_fields(head, OURS)


def lessons_about(
    subject: Subject, lessons: Sequence[tuple[LessonLine, Collection[str]]], is_unspaced: bool
) -> list[LessonLine]:
    """Those that hold and name it; each is given with its words."""
    words = set(subject.key.split(" "))
    return [
        line
        for line, said in lessons
        if line.holds and (subject.label in line.text if is_unspaced else words.issubset(said))
    ]


def _holding(newest_first: Sequence[Told]) -> Iterator[str]:
    """One paragraph of what holds now: the newest, then what is lasting, the newest first; and what held before."""
    now = [one for one in newest_first if not one.is_replaced]
    lasting = [one for one in now[MOST_NEWEST:] if one.is_lasting]
    chosen: dict[str, Told] = {}
    for one in (*now[:MOST_NEWEST], *(lasting or now[MOST_NEWEST:])):
        if len(chosen) < MOST_HOLDING and sum(map(len, chosen)) + len(one.text) <= MOST_HOLDING_CHARS:
            chosen.setdefault(one.text, one)
    replaced = {one.text: one for one in reversed(newest_first) if one.is_replaced and one.text not in chosen}
    told = [f"“{_shown(one.text)}” ({_day(one)})" for one in chosen.values()]
    told += [f"Earlier, “{_shown(one.text)}” ({_day(one)})" for one in list(replaced.values())[-MOST_EARLIER:]]
    if told:
        yield " ".join(told)


def _statement(one: Told) -> str:
    who = f", {one_line(one.speaker, LONGEST_LABEL_CHARS)}" if one.speaker else ""
    session = one_line(one.session, LONGEST_LABEL_CHARS)
    where = link(session, f"../sources/session-logs/{one.file}", one.anchor) if one.file else session
    return f"- {_day(one)}{who}: “{_shown(one.text)}”{' (no longer so)' if one.is_replaced else ''} · {where}"


def _day(one: Told) -> str:
    return f"{one.at.astimezone(UTC):%Y-%m-%d}"


def _lesson(line: LessonLine) -> str:
    return f"- {link(line.id, f'../lessons/{lesson_file(line.id)}')}: {one_line(line.text, LONGEST_STATEMENT_CHARS)}"


def _shown(text: str) -> str:
    return one_line(text, LONGEST_STATEMENT_CHARS)
