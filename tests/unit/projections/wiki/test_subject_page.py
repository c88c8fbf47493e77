"""A subject as a page, and what its page is called."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.models.subject_kinds import SubjectKind
from offbook.projections.wiki.index_page import LessonLine
from offbook.projections.wiki.own_fields import BrokenPage
from offbook.projections.wiki.subject_page import Linked, Told, lessons_about, page_ids, read_own, subject_page
from offbook.statements.subjects import Mention, Subject
from tests.unit.projections.wiki.reading import read
from tests.unit.projections.wiki.test_escaping import ANY


def subject(label: str = "Ada", key: str | None = None, kind: SubjectKind = "person") -> Subject:
    mention = Mention(1, 1, 1, 0, 9, label, True, True)
    return Subject(key if key is not None else label.casefold(), label, kind, (mention,))


def told(text: str, day: int, **fields: object) -> Told:
    known = {"session": "Tea", "order": (day, 0), "file": "a.md", "anchor": f"s1-{day}", "speaker": ""} | fields
    return Told(text=text, at=datetime(2026, 3, day, tzinfo=UTC), **known)  # type: ignore[arg-type]


def test_what_holds_now_is_first_and_what_held_before_is_said_to_be_so() -> None:
    page = subject_page(
        subject(),
        "people/ada",
        [
            told("Ada lives in Rome.", 1, is_replaced=True),
            told("Ada moved to Oslo.", 3, is_lasting=True),
            told("Ada has a cat.", 2),
        ],
        [Linked(label="Rome", path="topics/rome")],
        [LessonLine(id="lesson-0001", kind="fact", status="learnt", text="Ada drinks tea.")],
    )
    found = read(page)
    assert found.headings == ["Ada", "What was said", "Spoken of together", "Lessons"]
    assert found.texts[1] == (
        "“Ada moved to Oslo.” (2026-03-03) “Ada has a cat.” (2026-03-02) Earlier, “Ada lives in Rome.” (2026-03-01)"
    )
    assert found.texts[2] == "2026-03-01: “Ada lives in Rome.” (no longer so) · Tea"
    assert found.links == [
        "../index.md",
        *(f"../sources/session-logs/a.md#s1-{day}" for day in (1, 2, 3)),
        "../topics/rome.md",
        "../lessons/lesson-0001.md",
    ]


def test_a_persons_own_fields_are_read_back() -> None:
    page = subject_page(subject(), "people/ada", [], [], [], "tags: [tea]\n")
    assert read_own(page, "people/ada") == "tags: [tea]\n"
    for other in (page, "Somebody's note.", ""):
        with pytest.raises(BrokenPage):
            read_own(other, "people/bob")


def test_names_are_files_inside_their_folder_and_no_two_are_the_same() -> None:
    labels = [
        "Ada",
        "../../etc/passwd",
        "a/b",
        "a b",
        "a-b",
        "con",
        "index",
        "陈嘉",
        "x" * 300,
        "",
        "..",
        "A.da",
        "nul.",
    ]
    found = page_ids([subject(label, f"{number} {label}") for number, label in enumerate(labels)])
    names = list(found.values())
    assert {"people/ada", "people/陈嘉"} < set(names)
    assert len({name.casefold() for name in names}) == len(labels)
    for name in names:
        folder, _, file = name.partition("/")
        assert folder == "people"
        assert "/" not in file
        assert not file.startswith(".")
        assert 0 < len(file.encode()) < 200
        assert file not in ("con", "nul", "index")


def test_two_names_that_differ_only_in_case_have_two_pages() -> None:
    found = page_ids([subject("Ada", "ada 1"), subject("ADA", "ada 2")])
    assert len({name.casefold() for name in found.values()}) == 2


@given(ANY, ANY, st.text(max_size=40))
def test_nothing_in_a_name_or_a_sentence_is_more_than_text(label: str, text: str, speaker: str) -> None:
    said = [told(text, 1, session=label, speaker=speaker)]
    page = subject_page(subject(label), "people/x", said, [Linked(label=label, path="topics/y")], [])
    found = read(page)
    assert len(found.headings) == 3
    assert found.links == ["../index.md", "../sources/session-logs/a.md#s1-1", "../topics/y.md"]
    assert not found.html
    assert read_own(page, "people/x") == ""


def test_lessons_are_those_that_hold_and_name_it() -> None:
    line = LessonLine(id="lesson-0001", kind="fact", status="learnt", text="Ada drinks tea.")
    gone = LessonLine(id="lesson-0002", kind="fact", status="rejected", text="Ada drinks rum.")
    lines = [(line, {"ada", "drink", "tea"}), (gone, {"ada", "drink", "rum"})]
    assert lessons_about(subject(), lines, False) == [line]
    assert lessons_about(subject("Bob"), lines, False) == []
