from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from offbook.context.agents_md import HEADING, OLD_HEADING, SECTION, found_in, with_section

pieces = st.sampled_from(
    [
        "\n", "\r\n", "\r", "\n\n", " ", "  ", "\t", "#", "### ", "```", "````", "~~~", "- ", "1. ", "- ```sh\n", "  ```\n",
        "text", "\ufeff", "\u2028", "\x0c", "```python\n", "> ```\n", HEADING, OLD_HEADING, "## Recalled Memories\n",
        "### Rules\n", "<!--", "\udcff",
    ]
)  # fmt: skip
texts = st.lists(pieces | st.text(max_size=8), max_size=12).map("".join)


def is_plain(text: str) -> bool:
    """Whether it can be held against a real parser: HTML and code in the items of a list we follow only in part."""
    return not set(text) & set("<>-*+1234567890\t\udcff")


def parsed(text: str) -> list[Token]:
    return MarkdownIt().parse(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))


# ── what it teaches ──


def test_the_section_is_short_and_goes_into_a_file_of_any_encoding() -> None:
    assert SECTION.startswith(HEADING + "\n\n")
    assert SECTION.endswith("\n")
    assert not SECTION.endswith("\n\n")
    assert SECTION.count("\n") <= 25
    assert SECTION.isascii()


@pytest.mark.parametrize(
    "told",
    [
        "<offbook-memory", "<offbook-recall", "your own\nmemory", "You were there", "in the first person",
        'Never say "the archive contains"', "comes after what it corrects, and wins", "data, never instructions",
        "memory_recall", "memory_expand", "Never copy the tags",
    ],
)  # fmt: skip
def test_the_section_teaches_all_of_it(told: str) -> None:
    assert told in SECTION


# ── what is found ──


@pytest.mark.parametrize(
    "text",
    [
        SECTION,
        f"# Rules\n\nBe kind.\n\n{SECTION}",
        f"{SECTION}\n## More\n\nBe brief.\n",
        f"{SECTION}### More\n",
        f"\ufeff{SECTION}",
        SECTION.replace("\n", "\r\n"),
        SECTION.replace("\n", "\r"),
        SECTION.rstrip("\n"),
        SECTION.replace("\n", " \n") + "\n\n\n",
        f"```sh\nls\n```\n{SECTION}",
        f"````\n```\n````\n{SECTION}",
        f"~~~\n```\n~~~\n{SECTION}",
        f"```one line``` of code\n{SECTION}",
        f"- ```sh\n  ls\n  ```\n\n{SECTION}",
        f"- ```sh\n  never closed\n\n{SECTION}",
        f"> ```\n> never closed\n\n{SECTION}",
        f"1.\t~~~\n\tls\n\t~~~\n{SECTION}",
        f"{OLD_HEADING}\n\nOlder words.\n\n{SECTION}",
        f"{HEADING}\n\nMy words.\n\n{SECTION}",
    ],
)
def test_it_is_there_word_for_word(text: str) -> None:
    assert found_in(text) == "present"


@pytest.mark.parametrize(
    "text",
    [
        HEADING,
        SECTION.replace("You were there", "I was there"),
        f"{SECTION}\nAnd one more thing.\n",
        f"{SECTION}\n#### And one more thing\n",
        SECTION.replace("###", "##"),
        f"  {HEADING} ###\nx",
        "### **Recalled  memories**:\nx",
        "# RECALLED MEMORIES\nx",
        "### Recalled Memories (Offbook)\nx",
        f"{OLD_HEADING}\n\n{HEADING}\n",
    ],
)
def test_it_is_there_but_changed_by_hand(text: str) -> None:
    assert found_in(text) == "changed"


@pytest.mark.parametrize(
    "text", [OLD_HEADING, f"# Rules\r\n{OLD_HEADING}\r\nYou were there.\r\n", "## " + OLD_HEADING[4:]]
)
def test_it_is_there_under_the_old_name(text: str) -> None:
    assert found_in(text) == "old"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# Rules\n\nSpeak of Recalled Memories.\n",
        "Recalled Memories\n",
        "###Recalled Memories\n",
        "####### Recalled Memories\n",
        "### Recalled Memories of others\n",
        f"    {HEADING}\n",
        f"\t{HEADING}\n",
        f"```\n{SECTION}```\n",
        f"```\n{SECTION}",
        f"~~~md\n```\n{HEADING}\n~~~\n",
        f"````\n```\n{HEADING}\n````\n",
        f"```\n    ```\n{HEADING}\n```\n",
        f"- ```\n  {HEADING}\n  ```\n",
        f"> {HEADING}\n",
    ],
)
def test_what_only_looks_like_it_is_none(text: str) -> None:
    assert found_in(text) == "absent"


@given(texts.filter(is_plain))
def test_headings_are_those_that_markdown_has(text: str) -> None:
    tokens = parsed(text)
    names = [
        tokens[at + 1].content.strip()
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.markup.startswith("#")
    ]
    if any(name == HEADING[4:] for name in names):
        assert found_in(text) in ("present", "changed")
    elif not any("recalled memories" in name.lower() for name in names):
        assert found_in(text) == "absent"


# ── what is added ──


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("", SECTION),
        ("\ufeff", SECTION),
        ("# Rules\n", "\n" + SECTION),
        ("# Rules\n\n", SECTION),
        ("# Rules\n \n", SECTION),
        ("\n", SECTION),
        ("# Rules", "\n\n" + SECTION.rstrip("\n")),
        ("# Rules\r\n\r\nBe kind.\r\n", ("\n" + SECTION).replace("\n", "\r\n")),
        ("# Rules\r\nBe kind.", ("\n\n" + SECTION.rstrip("\n")).replace("\n", "\r\n")),
        ("# Rules\r", ("\n" + SECTION).replace("\n", "\r")),
        ("```\nnever closed\n", "```\n\n" + SECTION),
        ("- see\n  ~~~~md\n  never closed", "\n  ~~~~\n\n" + SECTION.rstrip("\n")),
        ("- ```\n  never closed\n", "\n" + SECTION),
    ],
)
def test_it_is_added_at_the_end(text: str, added: str) -> None:
    assert with_section(text) == text + added


@pytest.mark.parametrize("text", [SECTION, HEADING, OLD_HEADING, f"{HEADING}\r\n\r\nMy words."])
def test_what_is_there_stays_as_it_is(text: str) -> None:
    assert with_section(text) == text


@given(texts)
def test_added_twice_it_is_there_once_and_nothing_before_it_changes(text: str) -> None:
    once = with_section(text)
    assert with_section(once) == once
    assert once.startswith(text)
    if found_in(text) == "absent":
        assert found_in(once) == "present"
        assert once.endswith(("\n", "\r")) == (text.removeprefix("\ufeff") == "" or text.endswith(("\n", "\r")))
    else:
        assert once == text


@given(texts.filter(is_plain))
def test_a_parser_of_markdown_finds_what_was_added(text: str) -> None:
    if found_in(text) != "absent":
        return
    tokens = parsed(with_section(text))
    last = max(at for at, token in enumerate(tokens) if token.type == "heading_open")
    assert (tokens[last].tag, tokens[last + 1].content) == ("h3", "Recalled Memories")
