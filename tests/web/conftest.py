"""One browser for the tests of a process that follow each other, and one daemon with a conversation for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.acceptance.daemon import Daemon
from tests.web.browsing import browser, signed_in
from tests.web.talk import talking


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    with talking() as started:
        yield started


@pytest.fixture(scope="package")
def opened() -> Iterator[Browser]:
    """Closed before a test of another folder is run: as long as it is open, an event loop runs in this thread."""
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def page(opened: Browser, daemon: Daemon) -> Iterator[Page]:
    shown = signed_in(opened, daemon, viewport={"width": 1280, "height": 900})
    yield shown
    shown.context.close()
