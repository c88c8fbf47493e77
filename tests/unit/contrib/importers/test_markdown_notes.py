from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.importers.markdown import Note, notes

TEXT = """\
---
name: memory
---
# About Ann

Lives in Porto.
With two cats.

## Food ##
- vegetarian
- likes 豆腐
  - not the smoked one

  nor the soft one
* nuts are out
1. first
2) second

```python
# not a heading

- not an item
```

<!-- a comment -->

Work
----
nights only
***
### Deep
#hashtag
"""


def test_paragraphs_and_items_with_their_headings() -> None:
    assert [(each.headings, each.text) for each in notes(TEXT)] == [
        (("About Ann",), "Lives in Porto.\nWith two cats."),
        (("About Ann", "Food"), "vegetarian"),
        (("About Ann", "Food"), "likes 豆腐\n- not the smoked one\n\nnor the soft one"),
        (("About Ann", "Food"), "nuts are out"),
        (("About Ann", "Food"), "first"),
        (("About Ann", "Food"), "second"),
        (("About Ann", "Food"), "```python\n# not a heading\n\n- not an item\n```"),
        (("About Ann", "Work"), "nights only"),
        (("About Ann", "Work", "Deep"), "#hashtag"),
    ]


def test_a_note_knows_its_line() -> None:
    assert [each.line for each in notes(TEXT)][:3] == [6, 10, 11]


def test_line_ends_and_a_mark_at_the_beginning_do_not_matter() -> None:
    plain = list(notes(TEXT))
    assert list(notes("\ufeff" + TEXT.replace("\n", "\r\n"))) == plain
    assert list(notes(TEXT.replace("\n", "\r"))) == plain


def test_front_matter_that_does_not_end_is_text() -> None:
    assert list(notes("---\na\n\nb")) == [Note((), "a", 2), Note((), "b", 4)]


@given(st.text(alphabet="#-*`~ \n\tab1.)<>!=|\r\0语", max_size=200))
def test_no_text_is_lost_but_marks(text: str) -> None:
    found = list(notes(text))
    told = "".join(each.text + "".join(each.headings) for each in found)
    if not any(mark in text for mark in ("---", "***", "<!--", "#", "=", "-", "*")):
        assert {each for each in text if each.isalpha()} == {each for each in told if each.isalpha()}
    assert all(each.text.strip() for each in found)
    assert [each.line for each in found] == sorted(each.line for each in found)


# ── what is no note ───────────────────────────────────────────────────────────────────────────


def read(text: str) -> tuple[list[str], list[str]]:
    left: list[str] = []
    return [note.text for note in notes(text, left.append)], left


def test_a_comment_is_no_note_wherever_it_stands() -> None:
    fence = "```sh\nmake  # <!-- shown -->\n```"
    assert read(f"{fence}\n<!-- hidden -->\n\nafter") == ([fence, "after"], ["comments"])
    assert read("- tea\n  <!-- hidden -->\n  with milk\n- milk <!-- hidden -->") == (
        ["tea\nwith milk", "milk"],
        ["comments", "comments"],
    )
    assert read("<!-- one\n\ntwo\n\n# three --> tea") == (["tea"], ["comments"])
    assert read("tea <!-- one --> or <!-- two --> milk")[0] == ["tea  or  milk"]
    assert read("# Food <!-- hidden -->\ntea")[0] == ["tea"]


def test_what_only_looks_like_a_comment_is_a_note() -> None:
    assert read("write `<!-- x -->` there") == (["write `<!-- x -->` there"], [])
    assert read("tea\n<!-- that never ends\n\nmilk") == (["tea\n<!-- that never ends", "milk"], [])
    assert read("a --> b") == (["a --> b"], [])


def test_front_matter_is_left_out_and_told() -> None:
    assert read("---\ntitle: x\n---\ntea") == (["tea"], ["front matter"])
    assert read("tea") == (["tea"], [])


FIELDS = [
    "title: x",
    "# made by hand\ntitle: x\n\ntags:\n- a\n- b",
    "tags:\n  - a\n\tb\nMy key: |\n  text",
    '"a key": {b: c}\nempty:',
    "\ntitle: x",
    "\n\n# made by hand\n\ntitle: x\n",
    "title:x",
    "'title':x\nog:title: y\nlast-edited:2026-05-10T12:00",
    "tags: [\n  a,\n  b\n]\nauthor: {\n  name: Ann\n}",
    "tags: [\na,\n[b, c],\nd\n]\ntitle: x",
    "tags: [a,\nb]\ntitle: x",
    "title: x\n...",
]


@pytest.mark.parametrize("front", FIELDS)
def test_fields_and_what_stands_under_them_are_front_matter(front: str) -> None:
    assert read(f"---\n{front}\n---\ntea") == (["tea"], ["front matter"])


@pytest.mark.parametrize(
    "between",
    [
        "\n# Facts\n- tea\n",
        "# Facts\n- tea\n",
        "- tea",
        "tea\nb: c",
        "tea\n",
        "b: c\ntea",
        "b: [c]\ntea",
        "]\ntea",
        "https://tea.example\n",
        "12:30 tea\n",
        "drink this:tea\n",
    ],
)
def test_a_page_may_begin_with_a_rule(between: str) -> None:
    told, left = read(f"---\n{between}\n---\n\nmilk")
    assert "tea" in told[0]
    assert (told[-1], left) == ("milk", [])


def test_the_rule_that_ends_notes_at_the_top_underlines_no_heading() -> None:
    assert list(notes("---\ntea\n---\n\nmilk")) == [Note((), "tea", 2), Note((), "milk", 5)]
    assert list(notes("---\n\ntea\n---\nmilk\n---\nhot")) == [Note((), "tea", 3), Note(("milk",), "hot", 7)]
    assert read("---\n```\n---\n```\ntea") == (["```\n---\n```\ntea"], [])


def test_an_empty_page_between_two_rules() -> None:
    assert read("---\n---\ntea") == (["tea"], [])
    assert read("+++\ntitle = 1\n\nx\n+++\ntea") == (["tea"], ["front matter"])


@given(st.lists(st.tuples(st.sampled_from(["text", "comment", "code"]), st.booleans()), max_size=12))
def test_what_is_hidden_is_hidden_and_all_else_is_there(parts: list[tuple[str, bool]]) -> None:
    written = {"text": "said{0}.", "comment": "<!-- hid{0}.\n\n# {0} -->", "code": "```\nsaid{0}. <!-- x -->\n```"}
    text = "".join(
        written[kind].format(number) + ("\n\n" if is_apart else "\n") for number, (kind, is_apart) in enumerate(parts)
    )
    told, left = read(text)
    for number, (kind, _) in enumerate(parts):
        if kind == "comment":
            assert f"hid{number}." not in "\n".join(told)
        else:
            assert sum(f"said{number}." in one for one in told) == 1
    assert left.count("comments") == sum(kind == "comment" for kind, _ in parts)
