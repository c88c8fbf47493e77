from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from offbook.search.index.text import TextIndex
from offbook.search.words import query_terms, terms
from tests.unit.search.index.sayings import said

TEXTS = [
    "The cat sat on the mat.",
    "A dog barked at the cat, cat and cat.",
    "Rain in Lisbon",
    "My cat Ada is in Lisbon.",
]


@pytest.fixture
def text(tmp_path: Path) -> Iterator[TextIndex]:
    opened = TextIndex(tmp_path / "text", rows=0)
    opened.add(0, [said(row, text, session=1 + row % 2) for row, text in enumerate(TEXTS)])
    opened.commit(len(TEXTS))
    yield opened
    opened.close()


def found(text: TextIndex, query: str, limit: int = 10, **options: object) -> list[int]:
    return text.search(query_terms(query), limit, **options).tolist()  # type: ignore[arg-type]


def test_those_that_say_most_of_the_words_come_first(text: TextIndex) -> None:
    assert found(text, "cat Lisbon")[0] == 3
    assert set(found(text, "cat Lisbon")) == {0, 1, 2, 3}
    assert found(text, "cat Lisbon", needs_all=True) == [3]
    assert found(text, "unheard-of") == []
    assert len(found(text, "cat", limit=2)) == 2
    assert text.search([], 10).tolist() == []


def test_only_of_a_session_and_only_up_to_a_row(text: TextIndex) -> None:
    assert set(found(text, "cat", session=2)) == {1, 3}
    assert found(text, "cat", session=9) == []
    assert set(found(text, "cat", before_row=3)) == {0, 1}
    assert found(text, "cat Lisbon", session=2, needs_all=True) == [3]


def test_how_many_messages_hold_each_word(text: TextIndex) -> None:
    assert text.frequencies(terms("cat Lisbon unheard")).tolist() == [3, 2, 0]


def test_what_is_not_committed_is_not_found_and_not_counted(text: TextIndex) -> None:
    text.add(4, [said(4, "a cat too many")])
    assert 4 not in found(text, "cat")
    assert text.committed == 4
    text.commit(5)
    assert 4 in found(text, "cat")
    assert text.committed == 5


def test_it_rests_and_goes_on(text: TextIndex) -> None:
    text.rest()
    text.rest()
    assert set(found(text, "cat")) == {0, 1, 3}
    text.add(4, [said(4, "a cat too many")])
    text.commit(5)
    assert 4 in found(text, "cat")


def test_a_crash_between_its_commit_and_ours_leaves_each_message_once(tmp_path: Path) -> None:
    folder = tmp_path / "text"
    first = TextIndex(folder, rows=0)
    first.add(0, [said(row, f"cat {row}") for row in range(10)])
    first.commit(10)
    first.add(10, [said(row, f"cat {row}") for row in range(10, 25)])
    first.commit(25)
    first.close()
    again = TextIndex(folder, rows=10)
    assert sorted(found(again, "cat", 100)) == list(range(10))
    again.add(10, [said(row, f"cat {row}") for row in range(10, 25)])
    again.commit(25)
    assert sorted(found(again, "cat", 100)) == list(range(25))
    again.close()
    once_more = TextIndex(folder, rows=25)
    assert sorted(found(once_more, "cat", 100)) == list(range(25))
    once_more.close()


def test_one_that_holds_fewer_is_refused(text: TextIndex, tmp_path: Path) -> None:
    text.close()
    with pytest.raises(ValueError, match="holds 4 messages, not 5"):
        TextIndex(tmp_path / "text", rows=5)


def test_what_was_not_committed_is_gone_after_a_close(tmp_path: Path) -> None:
    first = TextIndex(tmp_path / "text", rows=0)
    first.add(0, [said(0, "a cat")])
    first.close()
    again = TextIndex(tmp_path / "text", rows=0)
    assert found(again, "cat") == []
    again.close()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我昨天在上海买了一只猫", "上海的猫"),
        ("昨日、東京で猫を買いました", "東京"),
        ("어제 서울에서 고양이를 샀어요", "서울에서"),
        ("اشتريت قطة في القاهرة أمس", "القاهرة"),
        ("Ich wohne in München", "munchen"),
        ("Έμεινα στην Αθήνα", "Αθήνα"),
        ("ฉันอยู่ที่กรุงเทพ", "กรุงเทพ"),
        ("call getUserName in v1.2.3", "getUserName"),
    ],
)
def test_words_of_any_script_are_found(tmp_path: Path, text: str, query: str) -> None:
    index = TextIndex(tmp_path / "text", rows=0)
    index.add(0, [said(0, "something quite different"), said(1, text)])
    index.commit(2)
    assert found(index, query) == [1]
    index.close()


def test_one_that_cannot_be_rolled_back_is_closed_all_the_same(text: TextIndex) -> None:
    """As on a full disk. A writer that has merged cannot be asked for anything again."""

    class Writer:
        def __init__(self) -> None:
            self.waited = 0

        def rollback(self) -> None:
            raise ValueError("no room")

        def wait_merging_threads(self) -> None:
            self.waited += 1

    text.close()
    writer = text._writer = Writer()
    with pytest.raises(ValueError, match="no room"):
        text.close()
    assert writer.waited == 1
    text.close()
    assert writer.waited == 1
