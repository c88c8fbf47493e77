"""A day as a page, and a cold message as one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.receipt import FORGOTTEN
from offbook.model.types import BlobRef, Entry, LoggedMessage, Message
from offbook.projections.wiki.day_page import (
    LARGEST_INLINE_BYTES,
    Shown,
    cold_file,
    cold_page,
    day_of,
    day_page,
    is_cold_file,
    is_log_file,
    log_file,
    page_bytes,
    shown,
)
from tests.unit.projections.wiki.reading import read
from tests.unit.projections.wiki.test_escaping import ANY

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def logged(
    text: str, seq: int = 1, *, blobs: list[BlobRef] | None = None, noise: str | None = None, **fields: Any
) -> LoggedMessage:
    message = Message(**({"role": "user", "content": text} | fields))
    return LoggedMessage(seq=seq, received_at=NOON, entry=Entry(message=message, blobs=blobs or [], noise=noise))


def said(text: str, seq: int = 1, session: int = 1, session_id: str = "chat", **fields: Any) -> Shown:
    return shown(session, session_id, logged(text, seq, **fields))


@given(st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=4))
def test_whatever_is_said_each_message_has_its_heading_and_its_text(messages: list[tuple[str, str, str]]) -> None:
    names = [
        said(text, number, number, session_id=key or "x", name=name)
        for number, (text, key, name) in enumerate(messages, 1)
    ]
    page = day_page("main", "2026-11-15", 1, names)
    found = read(page)
    anchors = [heading for heading in found.headings if not heading.startswith("Session ")]
    assert anchors == ["main, 2026-11-15", *(f"s{number}-{number}" for number in range(1, len(messages) + 1))]
    assert len(found.fences) == len(messages)
    assert found.links == ["../../index.md"]
    assert not found.html
    assert page.endswith("\n")


def test_messages_stand_by_session_in_their_order() -> None:
    page = day_page("main", "2026-11-15", 2, [said("c", 1, 2), said("b", 10), said("a", 9), said("d", 2, 2)])
    assert [fence.strip() for fence in read(page).fences] == ["a", "b", "c", "d"]
    assert "session-main-2026-11-15.md" in read(page).links
    assert "**user** · 2026-11-15 12:00:00 UTC" in page


def test_the_day_is_that_of_utc_when_it_was_said() -> None:
    late = datetime(2026, 11, 16, 1, tzinfo=timezone(timedelta(hours=9)))
    assert day_of(logged("x", ts=late)) == "2026-11-15"
    assert day_of(logged("x")) == "2026-11-15"


def test_of_what_was_forgotten_only_the_place_is_shown() -> None:
    page = day_page("main", "2026-11-15", 1, [said("secret", noise=FORGOTTEN, name="Ada", id="secret-id")])
    assert read(page).fences == ["[forgotten]\n"]
    assert "secret" not in page
    assert "Ada" not in page


def test_a_large_text_is_referred_to_with_the_command_that_shows_it() -> None:
    large = BlobRef(path=[], sha256="a" * 64, chars=5_000_000, bytes=5_000_001)
    small = BlobRef(path=[], sha256="b" * 64, chars=10, bytes=LARGEST_INLINE_BYTES)
    page = day_page("it's", "2026-11-15", 1, [said("[stand-in]", 7, session_id="a `b`\n# c", blobs=[large, small])])
    found = read(page)
    assert "Not in this page: 5,000,000 characters. The whole message:" in found.texts
    assert found.fences[1].startswith("""offbook expand --agent 'it'"'"'s' --session 'a `b`""")
    assert page_bytes(logged("x", blobs=[large, small])) == LARGEST_INLINE_BYTES + 101
    assert [heading for heading in found.headings if heading == "c"] == []


def test_a_large_text_that_is_small_enough_is_shown_whole() -> None:
    small = BlobRef(path=[], sha256="b" * 64, chars=10, bytes=10)
    message = logged("[stand-in]", blobs=[small])
    assert shown(1, "chat", message, Message(role="user", content="the whole")).text == "the whole"
    assert shown(1, "chat", message, Message(role="user", content="the whole")).large == []


def test_a_cold_page_has_what_is_known_the_text_and_the_way_to_its_log() -> None:
    message = said("```\n# hello\n```", 45, 12, session_id="agent:main:direct:xxx", id="yes", ts=NOON)
    page = cold_page("main", "m100000001", message, log_file("main", "2026-11-15", 2))
    head, _, body = page.removeprefix("---\n").partition("---\n")
    known = yaml.safe_load(head)
    assert known == {
        "id": "m100000001",
        "role": "user",
        "session": "agent:main:direct:xxx",
        "seq": 45,
        "ts": NOON,
        "messageId": "yes",
        "logRef": "../session-logs/session-main-2026-11-15-2.md#s12-45",
    }
    assert read(body).fences == ["```\n# hello\n```\n"]
    assert read(body).links == [known["logRef"]]
    assert "\n````text\n" in page


@given(ANY.filter(bool), ANY.filter(bool))
def test_no_name_breaks_a_cold_page(key: str, name: str) -> None:
    page = cold_page("main", "m1", said("x", session_id=key, name=name, id=key), "a.md")
    head = page.removeprefix("---\n").partition("\n---\n")[0]
    assert yaml.safe_load(head)["session"] == key
    assert yaml.safe_load(head)["name"] == name
    assert read(page).fences == ["x\n"]


def test_our_names_are_known() -> None:
    assert is_log_file("a/b", log_file("a/b", "2026-11-15", 3))
    assert not is_log_file("main", "session-main-notes.md")
    assert not is_log_file("main", log_file("other", "2026-11-15", 1))
    assert is_cold_file(cold_file("m100000001"))
    assert not is_cold_file("my-notes.md")
