"""A lesson's page: written, edited by a person, read back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.lesson import Lesson, LessonSource
from offbook.projections.wiki.lesson_page import (
    BrokenPage,
    SourceLink,
    digest,
    is_lesson_file,
    is_ours,
    judgements,
    lesson_page,
    page_without,
    read_page,
    written,
)
from offbook.projections.wiki.markdown import plain_lines
from tests.unit.projections.wiki.reading import read
from tests.unit.projections.wiki.test_escaping import ANY

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SOURCE = LessonSource(session_id="chat", seq=45, at=NOON)
HERE = SourceLink(source=SOURCE, file="session-main-2026-11-15.md", anchor="s1-45")


def lesson(text: str = "Ada likes tea.", **fields: Any) -> Lesson:
    given = {"id": "lesson-0001", "agent_id": "main", "kind": "preference", "status": "learnt", "confidence": 0.8}
    given |= {"first_seen": NOON, "last_seen": NOON, "times": 2, "sources": [SOURCE], "learnt_by": "rules"}
    return Lesson(**(given | {"text": text} | fields))


def page_of(one: Lesson) -> str:
    return lesson_page(one, [HERE])


def wishes(page: str, now: Lesson, *before: Lesson) -> list[tuple[str, str | None]]:
    return list(judgements(read_page(page, now.id), now, page_of(now), [written(each) for each in before]))


# ── writing ──


def test_a_page_has_front_matter_the_statement_and_the_sources() -> None:
    page = page_of(lesson(about="Ada", replaced_by="lesson-0009"))
    head, _, body = page.removeprefix("---\n").partition("---\n")
    assert yaml.safe_load(head) == {
        "id": "lesson-0001",
        "kind": "preference",
        "status": "learnt",
        "confidence": 0.8,
        "first_seen": NOON,
        "last_seen": NOON,
        "times": 2,
        "learnt_by": "rules",
        "about": "Ada",
        "replaced_by": "lesson-0009",
    }
    assert body == (
        "\nAda likes tea.\n\n## Sources\n\n- [2026-11-15 12:00 UTC, session chat, message 45]"
        "(../sources/session-logs/session-main-2026-11-15.md#s1-45)\n"
    )


def test_a_source_that_is_in_no_page_yet_is_named_without_a_link() -> None:
    assert read(lesson_page(lesson(), [SourceLink(source=SOURCE)])).links == []
    assert "None is left." in lesson_page(lesson(), [])


@given(ANY.filter(plain_lines), ANY, st.text(min_size=1, max_size=20))
def test_whatever_it_says_it_reads_back_and_nothing_was_edited(text: str, about: str, key: str) -> None:
    source = SourceLink(source=msgspec.structs.replace(SOURCE, session_id=key), file="a.md", anchor="s1-45")
    one = lesson(text, about=about, learnt_by=about or "rules")
    page = lesson_page(one, [source])
    found = read_page(page, one.id)
    assert found.statement == plain_lines(text)
    assert read(page).headings == ["Sources"]
    assert len(read(page).links) == 1
    assert not read(page).html
    assert judgements(found, one, page, []) == []
    assert judgements(found, one, page, [written(one)]) == []


# ── what a person wants ──


@given(ANY.filter(plain_lines))
def test_another_statement_is_an_edit(text: str) -> None:
    now = lesson()
    page = page_of(now).replace("Ada likes tea.", plain_lines(text).replace("<<<<<<<", ""))
    try:
        found = read_page(page, now.id)
    except BrokenPage:
        return
    expected = [] if found.statement == "Ada likes tea." else [("edit", found.statement)]
    assert wishes(page, now, now) == expected


def test_the_person_wins_over_a_newer_version_of_ours() -> None:
    before, now = lesson(), lesson("Ada likes green tea.", times=3)
    page = page_of(before).replace("Ada likes tea.", "Ada likes **coffee**, since March.")
    assert wishes(page, now, before) == [("edit", "Ada likes **coffee**, since March.")]


def test_an_older_version_of_ours_is_no_edit() -> None:
    before, now = lesson(), lesson("Ada likes green tea.", times=3)
    assert wishes(page_of(before), now, before) == []
    assert wishes(page_of(before), now, now, before) == []  # killed while it was written


def test_where_nothing_is_known_only_what_no_version_of_ours_can_say_is_an_edit() -> None:
    now = lesson()
    assert wishes(page_of(now).replace("tea", "coffee"), now) == [("edit", "Ada likes coffee.")]
    assert wishes(page_of(lesson("Ada likes coffee.", times=1)), now) == []
    assert wishes(page_of(now).replace("status: learnt", "status: rejected"), now) == []


def test_a_status_is_a_verdict() -> None:
    now = lesson()
    assert wishes(page_of(now).replace("status: learnt", 'status: "Accepted"'), now, now) == [("accept", None)]
    assert wishes(page_of(now).replace("status: learnt", "status: rejected # no"), now, now) == [("reject", None)]
    assert wishes(page_of(now).replace("status: learnt", "status: edited"), now, now) == []
    edited = page_of(now).replace("tea", "coffee")
    assert wishes(edited.replace("learnt\n", "accepted\n", 1), now, now) == [("edit", "Ada likes coffee.")]
    assert wishes(edited.replace("learnt\n", "rejected\n", 1), now, now)[1:] == [("reject", None)]


def test_a_verdict_given_elsewhere_is_not_taken_back_by_an_old_page() -> None:
    before, now = lesson(status="accepted"), lesson(status="rejected")
    assert wishes(page_of(before), now, before) == []


@pytest.mark.parametrize("kind", ["fact", "fact # I think", "guess"])
def test_another_kind_is_not_taken_and_told_before_anything_is_taken(kind: str) -> None:
    now = lesson()
    page = page_of(now).replace("status: learnt", "status: accepted").replace("kind: preference", f"kind: {kind}")
    with pytest.raises(BrokenPage, match="write `kind: preference` again and the rest is taken"):
        wishes(page, now, now)
    assert wishes(page, now) == []  # it may be a page of another memory


def test_the_same_kind_in_other_letters_is_no_change() -> None:
    now = lesson()
    page = page_of(now).replace("status: learnt", "status: accepted")
    assert wishes(page.replace("kind: preference", "kind: Preference"), now, now) == [("accept", None)]
    assert wishes(page.replace("kind: preference\n", ""), now, now) == [("accept", None)]


def test_what_editors_do_to_a_page_is_no_edit() -> None:
    now = lesson(about="Ada")
    page = page_of(now).replace("about: Ada", 'about: "Ada"\ntags:\n  - tea\naliases: []')
    page = "\ufeff" + page.replace("\n", "\r\n").removesuffix("\r\n")
    assert wishes(page, now, now) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("---\nid", "id"),
        ("rules\n---\n", "rules\n"),
        ("kind: preference", "<<<<<<< HEAD\nkind: fact\n=======\nkind: preference\n>>>>>>> theirs"),
        ("Ada likes tea.", "<<<<<<< HEAD\nAda likes tea.\n=======\nAda\n>>>>>>> theirs"),
        ("id: lesson-0001", "id: lesson-0002"),
        ("status: learnt", "status: perhaps"),
        ("status: learnt", 'status: "learnt'),
        ("status: learnt\n", ""),
        ("kind: preference", "what is this"),
        ("Ada likes tea.", ""),
    ],
)
def test_a_broken_page_is_none_of_ours_to_read(old: str, new: str) -> None:
    page = page_of(lesson())
    assert old in page
    with pytest.raises(BrokenPage):
        read_page(page.replace(old, new), "lesson-0001")
    assert not is_ours(page.replace(old, new), "lesson-0001")


def test_headings_of_a_person_are_theirs() -> None:
    page = page_of(lesson()).replace("Ada likes tea.", "Ada likes tea.\n\n## Sources\n\nHer mother.")
    assert read_page(page, "lesson-0001").statement == "Ada likes tea.\n\n## Sources\n\nHer mother."
    without = page_of(lesson()).partition("\n## Sources")[0]
    assert read_page(without, "lesson-0001").statement == "Ada likes tea."


@pytest.mark.parametrize("note", ["Ask Ada about oolong.", "- Ask Ada about oolong.", "## Notes", "[[oolong]]"])
def test_what_is_written_below_the_sources_is_not_lost(note: str) -> None:
    page = page_of(lesson())
    assert page.endswith("#s1-45)\n")
    belows = [f"{page}{note}", f"{page}\n{note}\n", f"{page[:-1]} {note}\n"]
    belows += [page.replace("## Sources\n", f"## Sources\n\n{note}\n")]
    for below in belows:
        with pytest.raises(BrokenPage, match="write it above that heading"):
            read_page(below, "lesson-0001")
        assert not is_ours(below, "lesson-0001")


def test_what_editors_do_to_the_sources_is_no_edit() -> None:
    page = page_of(lesson())
    for changed in (
        page.replace("- [", "* ["),
        page.replace("- [", "-   ["),
        f"{page}\n \n",
        page.replace("\n-", "\n\n-"),
    ):
        assert wishes(changed, lesson(), lesson()) == []
    assert read_page(lesson_page(lesson(), []), "lesson-0001").statement == "Ada likes tea."
    assert read_page(lesson_page(lesson(), [SourceLink(source=SOURCE)]), "lesson-0001").statement == "Ada likes tea."


OWN = 'tags:\n- tea\n- green\naliases: ["Ada\'s tea"]\n# mine\n\ncssclasses:\n'


def test_fields_of_a_persons_own_stay() -> None:
    now, then = lesson(about="Ada"), lesson("Ada likes green tea.", times=3)
    page = page_of(now).replace("status: learnt\n", f"status: learnt\n{OWN}")
    found = read_page(page, now.id)
    assert found.own == OWN
    again = lesson_page(then, [HERE], found.own)
    assert read_page(again, now.id).own == OWN
    assert lesson_page(then, [HERE], read_page(again, now.id).own) == again
    assert yaml.safe_load(again.split("---\n")[1])["tags"] == ["tea", "green"]
    assert wishes(page, now, now) == []
    assert wishes(page.replace("Ada likes tea.", "Ada likes rum."), now, now) == [("edit", "Ada likes rum.")]


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ('aliases: ["Geheimweg 77"]\ntags: [tea]\n', "tags: [tea]\n"),
        ("tags: [tea]\naliases:\n- Geheimweg 77\n- Ada\n# mine\n", "tags: [tea]\naliases:\n- Ada\n# mine\n"),
        ("aliases:\n  - Ada\n  - the GEHEIMWEG 77 parcel\n", "aliases:\n  - Ada\n"),
        ("# Geheimweg 77\ntags: [tea]\n", "tags: [tea]\n"),
        ("note: >\n  Geheimweg\n  77\ntags: [tea]\n", "tags: [tea]\n"),
        ("where:\n- name: Geheimweg 77\n  is: secret\ntags: [tea]\n", "tags: [tea]\n"),
        ("where:\n- Geheimweg 77:\n  - secret\ntags: [tea]\n", "tags: [tea]\n"),
        ("Geheimweg: 77\nnote: |\n  [\n  Ada\n", "note: |\n  [\n  Ada\n"),
    ],
)
@pytest.mark.parametrize("before", ["status: learnt\n", "learnt_by: rules\n"])
def test_of_fields_of_a_persons_own_those_go_that_say_what_is_forgotten(own: str, left: str, before: str) -> None:
    def says(text: str) -> bool:
        return "geheimweg 77" in " ".join(text.casefold().replace(":", " ").split())

    page, without = (page_of(lesson()).replace(before, f"{before}{each}") for each in (own, left))
    assert page_without(page, "lesson-0001", says) == without
    assert yaml.safe_load(without.split("---\n")[1])["id"] == "lesson-0001"
    edited = page.replace("Ada likes tea.", "Ada likes rum.").replace("\n", "\r\n") + "\nmine"
    assert page_without(edited, "lesson-0001", says).endswith(
        f"{without.split('---')[2]}\nmine".replace("tea.", "rum.")
    )
    assert page_without(without, "lesson-0001", says) == without
    with pytest.raises(BrokenPage):
        page_without(page, "lesson-0002", says)


def test_what_we_write_into_a_page_is_not_taken_out_there() -> None:
    page = page_of(lesson(about="Ada"))
    assert page_without("\ufeff" + page, "lesson-0001", lambda _: True) == "\ufeff" + page
    assert page_without(page.replace("about: Ada\n", "about: Ada\n  # mine\ntags: [a]\n"), "lesson-0001", bool) == page


def test_whose_page_it_is() -> None:
    assert is_ours(page_of(lesson()), "lesson-0001")
    assert not is_ours("# My own lesson\n", "lesson-0001")
    assert is_lesson_file("lesson-0001.md")
    assert not is_lesson_file("lesson-plan.md")
    assert digest("a") != digest("b")
