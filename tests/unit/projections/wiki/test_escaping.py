"""Nothing in any text breaks out of its block."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from offbook.projections.wiki.markdown import (
    clean,
    escaped,
    fenced,
    front_matter,
    link,
    one_line,
    plain_lines,
    unescaped,
    yaml_value,
)
from tests.unit.projections.wiki.reading import read

MARKDOWN = st.lists(
    st.sampled_from(
        [
            *"`~#*_[]()<>!|\\-+=:&;$%^ \t\n\r1.)a文🙂\x00\x0b\x0c\x1b\x7f\x85\u2028\u00a0",
            *("```", "~~~~", "---", "===", "[[x]]", "![a](b)", "<b>", "<!--", "-->", "</script>", "&lt;", "&#35;"),
            *(
                "http://x.y",
                "www.x.y",
                "<http://x.y>",
                "[a]: b",
                "1. ",
                "# ",
                "    ",
                "%%",
                "==",
                "| a |",
                "\n\n",
                "- ",
            ),
            *("## Sources", "\n---\n", "```text\n", "[a](b)", "[^1]", "$$", "<?x?>", "<![CDATA["),
        ]
    ),
    max_size=30,
).map("".join)
ANY = st.one_of(MARKDOWN, st.text(max_size=60))


@given(ANY)
@example("```\n# out\n```")
@example("a\n````\nb\n~~~~~")
@example("")
def test_a_fence_is_ended_by_nothing_in_it(text: str) -> None:
    page = read(f"before\n\n{fenced(text)}\n\nafter\n")
    assert page.fences == [clean(text) + "\n"]
    assert page.texts == ["before", "after"]
    assert not page.headings
    assert not page.html
    assert not page.links


@given(ANY)
@example("Title\n===")
@example("a\n-|-\nb")
@example("\\[a](b)")
@example("a\\")
def test_escaped_text_is_paragraphs_and_reads_as_it_was(text: str) -> None:
    page = read(escaped(text) + "\n")
    assert set(page.blocks) <= {"paragraph_open"}
    assert not page.headings
    assert not page.html
    assert not page.links
    shown = [" ".join(each.split()) for each in page.texts]
    assert shown == [" ".join(each.split()) for each in plain_lines(text).split("\n\n") if each.split()]


@given(ANY)
def test_what_was_escaped_reads_back(text: str) -> None:
    assert unescaped(escaped(text)) == plain_lines(text)
    assert plain_lines(plain_lines(text)) == plain_lines(text)


@given(ANY, st.integers(min_value=2, max_value=40))
def test_one_line_is_a_title_a_label_and_an_item(text: str, most: int) -> None:
    line = one_line(text, most)
    assert line
    assert "\n" not in line
    page = read(f"## Session {line}\n\n- {link(line, 'a b.md', 's1-1')}: {line}\n")
    assert len(page.headings) == 1
    assert page.links == ["a%20b.md#s1-1"]
    assert not page.html
    assert page.blocks == ["heading_open", "bullet_list_open"]


@pytest.mark.parametrize("address", ["https://x.y/z", "see WWW.x.y", "mailto:a@x.y"])
def test_git_hosts_make_no_link_of_an_address(address: str) -> None:
    assert not re.search(r"(?i)(https?|ftp)://|www\.|mailto:", escaped(address))
    assert unescaped(escaped(address)) == address


@pytest.mark.parametrize("sign", ["#tag", "[[page]]", "%%hidden%%", "==bright==", "$x$", "^block", "~~gone~~"])
def test_what_obsidian_reads_as_more_is_escaped(sign: str) -> None:
    shown = escaped(f"a {sign} b")
    assert not re.search(r"(?<!\\)(#|\[|%%|==|\$|\^|~~)", shown)
    assert unescaped(shown) == f"a {sign} b"


def test_what_cannot_be_seen_is_shown_as_a_sign() -> None:
    assert clean("a\x00b\x1b[31m\r\nc\rd\u2028e\ud800\x7f") == "a␀b␛[31m\nc\nd\ne\ufffd␡"
    assert "\x00" not in fenced("\x00")


@given(st.text(max_size=40))
@example("true")
@example("12:30:45")
@example("2026-11-15")
@example("a: b # c")
@example("a\u2028b\x85\x7f\ufeff")
def test_front_matter_is_yaml(text: str) -> None:
    read_back = yaml.safe_load(front_matter({"session": yaml_value(text)}).strip("-\n"))
    assert read_back == {"session": text}


def test_plain_words_stand_without_quotes() -> None:
    assert yaml_value("agent:main:direct:xxx") == "agent:main:direct:xxx"
    assert yaml_value("no") == '"no"'
