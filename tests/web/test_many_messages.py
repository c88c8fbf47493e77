"""A session of 100,000 messages: any place of it is shown, and only what is seen is in the page."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser

from offbook.ingest.entries import prepare
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.types import AuditDraft, Entry, Message, Scope, SessionGaps
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.web.browsing import go, signed_in, wait_text
from tests.web.talk import run_apart

MESSAGES, AT_ONCE = 100_000, 1_000
MOST_IN_THE_PAGE = 400


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="ob") as folder:
        home = Path(folder) / "home"
        Home(home).prepare()
        run_apart(_fill(home))
        # What is derived of them is of no use here: no work on it within the hour.
        with running({**WITHOUT_MODEL, "OFFBOOK_WORKER_INTERVAL": "1h"}, home=home) as started:
            yield started


async def _fill(home: Path) -> None:
    store = SqliteStore(Home(home).database)
    scope = Scope(agent_id="main", session_id="long")
    message = Message(role="user", content=_text(0))
    template = prepare(message, frame_key=b"", externalise_over=65_536, redacts=False).entry
    event = AuditDraft(verb="onMessage", actor="local", session_id="long")
    try:
        for first in range(1, MESSAGES + 1, AT_ONCE):
            entries = [_entry(template, number) for number in range(first, first + AT_ONCE)]
            await store.append(scope, entries, event, gaps=SessionGaps())
    finally:
        await store.close()


def _entry(template: Entry, number: int) -> Entry:
    """All are equally long: to prepare each would take longer than all the rest."""
    message = msgspec.structs.replace(template.message, content=_text(number))
    return msgspec.structs.replace(template, message=message)


def _text(number: int) -> str:
    return f"Message number {number:06}."


def test_any_place_of_a_long_session_is_shown_and_little_of_it_is_in_the_page(opened: Browser, daemon: Daemon) -> None:
    page = signed_in(opened, daemon, viewport={"width": 1280, "height": 900})
    wait_text(page, "100,000 messages")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/v1/log" in request.url else None)
    go(page, "conversation/long")
    wait_text(page, _text(MESSAGES))
    go(page, "conversation/long?seq=50001")
    wait_text(page, _text(50_001))
    page.evaluate("document.querySelector('.chunks').scrollTop = 0")
    wait_text(page, _text(1))
    for share in (0.25, 0.75, 0.999):
        page.evaluate(
            "share => { const box = document.querySelector('.chunks'); box.scrollTop = box.scrollHeight * share }",
            share,
        )
        page.wait_for_function(
            """share => [...document.querySelectorAll('.seq')].some(
              each => Math.abs(Number(each.textContent.slice(1)) - share * 100000) < 2000)""",
            arg=share,
        )
    assert page.locator(".message").count() <= MOST_IN_THE_PAGE
    assert len(asked) < 60, "pages of it, never all"
