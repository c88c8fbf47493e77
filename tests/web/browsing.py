"""A page of a daemon in a real browser, signed in as `offbook ui` does it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.acceptance.daemon import Daemon, bearer
from tests.web.tools import chromium, tools

PATIENCE_MS = 60_000
"""For anything to appear: machines are busy, and nothing here is a measure of speed."""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


@contextmanager
def browser() -> Iterator[Browser]:
    program = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=program.program, args=ARGUMENTS, env=program.environ or None, timeout=PATIENCE_MS
        )
        try:
            yield opened
        finally:
            opened.close()


def link(daemon: Daemon, token: str | None = None) -> str:
    """As `offbook ui` prints it."""
    reply = daemon.send("POST", "/ui/code", {}, bearer(token or daemon.token))
    assert reply.status == 200, reply.body
    answer = reply.json()
    return f"{answer['url']}/ui/#code={answer['code']}"


def signed_in(opened: Browser, daemon: Daemon, token: str | None = None, **context: Any) -> Page:
    page = opened.new_context(**context).new_page()
    page.set_default_timeout(PATIENCE_MS)
    watch(page)
    page.goto(link(daemon, token))
    page.wait_for_selector("main h1")
    return page


def watch(page: Page) -> None:
    """What the page complains of is kept on it, for `complaints`."""
    told: list[str] = []
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on(
        "console",
        lambda message: told.append(f"console: {message.text}") if message.type in ("error", "warning") else None,
    )
    page.complaints = told  # type: ignore[attr-defined]


def complaints(page: Page) -> list[str]:
    found: list[str] = page.complaints  # type: ignore[attr-defined]
    return found


def go(page: Page, place: str) -> None:
    page.evaluate("place => { location.hash = place }", f"#/{place}")
    page.wait_for_selector("main h1")


def addresses(page: Page) -> list[str]:
    """All that the browser's history has of this tab."""
    entries = page.context.new_cdp_session(page).send("Page.getNavigationHistory")["entries"]
    return [entry["url"] for entry in entries]


def wait_text(page: Page, text: str, within: str = "main") -> None:
    page.locator(within).get_by_text(text).filter(visible=True).first.wait_for()  # a title of a chart is not read


def serious_faults(page: Page, rules: list[str] | None = None) -> list[str]:
    """What axe-core finds serious or critical, by these of its rules or by all."""
    source = (tools() / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    page.evaluate(source + "; undefined")
    found = page.evaluate(
        """async rules => {
          for (const card of document.querySelectorAll('.card')) card.style.contentVisibility = 'visible';
          // Of a hundred messages that look alike, some are looked at.
          for (const more of document.querySelectorAll('.context-text > :nth-child(n+12)')) more.style.display = 'none';
          const only = rules ? {runOnly: {type: 'rule', values: rules}} : {};
          return JSON.stringify((await axe.run(document, {resultTypes: ['violations'], preload: false, ...only})).violations);
        }""",
        rules,
    )
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in json.loads(found)
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
