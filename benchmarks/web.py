"""The web page on a long history, measured in the browser: when it is first painted, and how soon it answers a hand."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from playwright.sync_api import Page
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.web.browsing import browser, go, signed_in

from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.samples import percentile
from benchmarks.stores import MAIN_SESSION, store_with

TITLE = "First paint and interaction of the web page on a long history"
MESSAGES = 100_000
MOST_PAINT_MS, MOST_INTERACTION_MS = 300, 100
PLACES = ("now", "conversation", "recall", "audit", "memory", "care", "now")
CALM = ".live-live"
CALM_SECONDS = 300

WATCH = """() => {
  window.inputs = [];
  new PerformanceObserver(list => list.getEntries().forEach(each => window.inputs.push(each.duration)))
    .observe({type: 'event', durationThreshold: 16, buffered: true});
}"""
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
SHOWN_AT = """async ([share]) => {
  const box = document.querySelector('.chunks');
  const started = performance.now();
  box.scrollTop = box.scrollHeight * share;
  for (;;) {
    await new Promise(requestAnimationFrame);
    const seen = box.getBoundingClientRect();
    const shown = [...box.querySelectorAll('.message')].some(each => {
      const at = each.getBoundingClientRect();
      return at.top < seen.bottom && at.bottom > seen.top;
    });
    if (shown) return [performance.now() - started, document.querySelectorAll('.message').length];
  }
}"""


def measure(run: Run) -> Findings:
    home = store_with(run, MESSAGES)
    with running(WITHOUT_MODEL, home=home) as daemon, browser() as opened:
        _wait_until_calm(daemon)
        page = signed_in(opened, daemon, viewport={"width": 1280, "height": 900})
        page.locator(CALM).wait_for()
        paints = [_first_paint(page) for _ in range(run.choose(5, 15))]
        scrolls = _scrolls(page, run.choose(10, 40))
        inputs = _inputs(page, run.choose(2, 6))
    shown = [milliseconds for milliseconds, _ in scrolls]
    most = max(messages for _, messages in scrolls)
    return Findings(
        bars=[
            _bar("first paint, median", median(paints), MOST_PAINT_MS),
            _bar(
                "from a key or a click to the next paint, 98th percentile", percentile(inputs, 98), MOST_INTERACTION_MS
            ),
        ],
        rows=[
            _row("first contentful paint", paints),
            _row("from a key or a click to the next paint (those of 16 ms and more)", inputs),
            _row("from a jump in a session of 60,000 messages to messages shown, fetched", shown),
        ],
        notes=[
            f"{MESSAGES:,} messages in 20 sessions; a Chromium without a display on the same cores as the provider.",
            f"At most {most} messages were in the page at a time.",
        ],
    )


def _wait_until_calm(daemon: Daemon) -> None:
    """The index of a history that came at once is made first: a page that is kept open is seldom beside that."""
    deadline = time.monotonic() + CALM_SECONDS
    while daemon.send("GET", "/v1/ping", over_socket=True).json()["backlog"] and time.monotonic() < deadline:
        time.sleep(1)


def _bar(what: str, milliseconds: float, limit: int) -> Bar:
    return Bar(what, f"< {limit} ms", f"{milliseconds:.0f} ms", milliseconds < limit)


def _row(what: str, samples: list[float]) -> dict[str, Any]:
    return {
        "what": what,
        "samples": len(samples),
        "p50 ms": round(median(samples), 1),
        "p98 ms": round(percentile(samples, 98), 1),
    }


def _first_paint(page: Page) -> float:
    page.reload()
    page.locator(".rows .row").first.wait_for()
    return float(page.wait_for_function(PAINTED).json_value())


def _scrolls(page: Page, many: int) -> list[tuple[float, int]]:
    go(page, f"conversation/{MAIN_SESSION.session_id}")
    page.locator(".chunks .message").first.wait_for()
    return [tuple(page.evaluate(SHOWN_AT, [(number * 37 % 100) / 100])) for number in range(many)]


def _inputs(page: Page, rounds: int) -> list[float]:
    """What a person does: pages by the menu, a search typed, rows by the keyboard."""
    page.evaluate(WATCH)
    for _ in range(rounds):
        for place in PLACES:
            page.locator(f"nav a[href*='/{place}']").click()
            page.locator("main .progress").first.wait_for(state="detached")
        page.keyboard.press("/")
        page.keyboard.type("message number")
        page.keyboard.press("Enter")
        page.locator("main h1", has_text="Recall").wait_for()
        page.keyboard.press("Escape")
        for key in "jjkkjj":
            page.keyboard.press(key)
    page.wait_for_timeout(500)
    return [float(each) for each in page.evaluate("window.inputs")]
