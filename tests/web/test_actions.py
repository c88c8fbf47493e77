"""What is done in the page takes effect in the store, and the page shows it."""

from __future__ import annotations

import os
from typing import Any

from playwright.sync_api import Browser, Page

from tests.acceptance.daemon import Daemon
from tests.processes import run_offbook
from tests.web.browsing import addresses, go, signed_in, wait_text
from tests.web.talk import CHANGED, MODEL, NEW_FACT, OLD_FACT, SESSION, SUMMARY, WORK, told, wait_until

SESSIONS = 45
"""More than a page of them holds."""


def test_any_session_is_found_in_pages_from_the_server(page: Page, daemon: Daemon) -> None:
    for number in range(SESSIONS):
        told(daemon, "onMessage", agentId="crowd", sessionId=f"talk-{number:02}", message=_said(f"Talk {number}."))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/v1/sessions" in request.url else None)
    go(page, "now?agent=crowd")
    wait_text(page, "45 sessions")
    page.locator(".rows .row-name", has_text="talk-44").wait_for()
    assert page.locator(".rows .row-name", has_text="talk-00").count() == 0
    page.get_by_role("button", name="Older sessions").click()
    page.locator(".rows .row-name", has_text="talk-00").wait_for()
    go(page, "conversation?agent=crowd")
    page.get_by_role("button", name="choose another").click()
    dialog = page.get_by_role("dialog", name="Choose a session")
    dialog.get_by_label("Find a session").fill("TALK-03")
    dialog.locator(".row").nth(1).wait_for(state="detached")
    dialog.locator(".row-name", has_text="talk-03").click()
    wait_text(page, "Talk 3.")
    assert [each for each in asked if '"limit":200' in each] == []
    go(page, "now?agent=main")


def _said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_summary_is_written_again_by_a_model(page: Page, daemon: Daemon) -> None:
    go(page, f"conversation/{SESSION}?seq=3")
    page.locator(".band button[aria-label^='L2']").first.click()
    panel = page.locator(".talk-panel")
    name = panel.locator("h2").inner_text()
    assert _summary(daemon, name)["summarizer"] == "extractive"
    panel.get_by_role("button", name="Write again").click()
    panel.get_by_text(f"will be written again by {MODEL}").or_(panel.get_by_text(SUMMARY[:40])).first.wait_for()
    panel.locator("p.text", has_text=SUMMARY[:40]).wait_for()
    panel.locator("dd", has_text=MODEL).wait_for()
    again = _summary(daemon, name)
    assert (again["summarizer"], again["usage"]["dollars"] > 0) == (MODEL, True)
    go(page, "care")
    page.get_by_role("img", name="Dollars a day").wait_for()
    page.get_by_role("img", name="Share of the prompt cache a day").wait_for()
    wait_text(page, "75 % of the")


def _summary(daemon: Daemon, name: str) -> Any:
    return told(daemon, "summaries", ids=[name])["summaries"][0]


def test_the_past_is_asked_by_a_slider_and_a_wrong_correction_taken_back(page: Page, daemon: Daemon) -> None:
    question = "Which number is my locker?"
    go(page, "recall")
    page.get_by_label("A question").fill(question)
    page.get_by_role("button", name="Search").click()
    texts = (page.locator("p.text", has_text=text) for text in (NEW_FACT, OLD_FACT))
    new, old = (page.locator("article.entry", has=text) for text in texts)
    new.wait_for()
    assert old.count() == 0
    new.get_by_text(f"replaces: “{OLD_FACT}”").wait_for()
    for _ in range(5):
        page.get_by_role("slider").press("ArrowLeft")
    wait_text(page, "As it was known on")
    new.wait_for(state="detached")
    old.wait_for()
    page.get_by_role("slider").press("End")
    page.get_by_label("also what was corrected").check()
    new.wait_for()
    assert _replaced(daemon, question)
    old.get_by_role("button", name="It holds after all").click()
    old.get_by_text("replaced since").wait_for(state="detached")
    assert not _replaced(daemon, question)


def _replaced(daemon: Daemon, question: str) -> bool:
    asked = {"sessionId": CHANGED, "query": question, "includeSuperseded": True, "preview": True}
    entries = told(daemon, "recall", **asked)["entries"]
    return any(entry.get("supersededBy") for entry in entries if entry["text"] == OLD_FACT)


def test_a_search_leaves_no_word_in_the_browsers_history(opened: Browser, daemon: Daemon) -> None:
    page = signed_in(opened, daemon)
    page.keyboard.press("/")
    page.keyboard.type("Fiona")
    page.keyboard.press("Enter")
    page.locator("article.entry", has_text="Fiona").first.wait_for()
    page.locator("article.entry a").first.click()
    page.locator("main h1", has_text="Conversation").wait_for()
    page.go_back()
    page.locator("article.entry", has_text="Fiona").first.wait_for()
    go(page, "recall?q=Which plot?")
    page.wait_for_function("() => document.querySelector('main input').value === 'Which plot?'")
    assert [each for each in addresses(page) if "Fiona" in each or "plot" in each] == []
    page.context.close()


def test_the_index_is_rebuilt(page: Page, daemon: Daemon) -> None:
    before = len(told(daemon, "audit", verbs=["reindex"])["events"])
    go(page, "care")
    page.get_by_role("button", name="Rebuild the index").click()
    wait_text(page, "being built again")
    wait_until(lambda: len(told(daemon, "audit", verbs=["reindex"])["events"]) == before + 1)
    wait_until(lambda: not told(daemon, "status")["index"]["waiting"])
    page.get_by_text("being built again").wait_for(state="detached")


def test_recall_shows_why_and_pins(page: Page, daemon: Daemon) -> None:
    go(page, "recall?q=ledger Postgres")
    entry = page.locator("article.entry", has_text="Postgres 16").first
    entry.wait_for()
    entry.locator("summary", has_text="Why: ").click()
    entry.locator(".evidence .track").first.wait_for()
    entry.get_by_role("button", name="Pin", exact=True).click()
    entry.get_by_role("button", name="Unpin").wait_for()
    assert told(daemon, "status")["pinned"] == 1
    go(page, "memory")
    page.get_by_role("tab", name="Pins").click()
    page.locator("article.entry", has_text="Postgres 16").get_by_role("button", name="Unpin").click()
    wait_text(page, "Nothing is pinned")
    assert told(daemon, "entries")["entries"] == []


def test_lessons_are_accepted_edited_and_rejected(page: Page, daemon: Daemon) -> None:
    wait_until(lambda: len(told(daemon, "lessons")["lessons"]) >= 3 and not told(daemon, "ping")["backlog"])
    lessons = told(daemon, "lessons")["lessons"]
    accepted, edited, rejected = (lesson["id"] for lesson in lessons[:3])
    go(page, "memory")
    page.get_by_role("tab", name="Lessons").click()
    page.locator(f"article[aria-label='{accepted}']").get_by_role("button", name="Accept").click()
    page.locator(f"article[aria-label='{accepted}'] .badge-accepted").wait_for()
    page.locator(f"article[aria-label='{edited}']").get_by_role("button", name="Edit").click()
    page.get_by_label("What it should say").fill("The plot is number 41.")
    page.get_by_role("button", name="Save").click()
    page.locator(f"article[aria-label='{edited}'] .lesson-text", has_text="number 41").wait_for()
    page.locator(f"article[aria-label='{rejected}']").get_by_role("button", name="Reject").click()
    page.locator(f"article[aria-label='{rejected}'] .badge-rejected").wait_for()
    now = {lesson["id"]: lesson["status"] for lesson in told(daemon, "lessons", limit=100)["lessons"]}
    assert (now[accepted], now[edited], now[rejected]) == ("accepted", "edited", "rejected")


def test_forgetting_asks_shows_and_proves(page: Page, daemon: Daemon) -> None:
    go(page, f"conversation/{WORK}")
    page.locator(".chunk-item", has_text="QX-4471").get_by_role("link", name="forget…").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('main input')].some(each => each.value.includes('QX-4471'))"
    )
    assert "QX" not in page.url
    page.get_by_role("button", name="Show what would go").click()
    wait_text(page, "2. What would go")
    button = page.get_by_role("button", name="Forget 1 message for good")
    assert button.is_disabled()
    assert told(daemon, "recall", sessionId=WORK, query="QX-4471")["entries"]
    page.get_by_label("This cannot be undone").fill("forget 1")
    button.click()
    wait_text(page, "nothing is left")
    assert "QX-4471" not in str(told(daemon, "log", sessionId=WORK))
    page.get_by_role("button", name="Verify").first.click()
    wait_text(page, "proven gone")


def test_audit_is_verified_filtered_and_exported(page: Page, daemon: Daemon) -> None:
    go(page, "audit")
    wait_text(page, "verified")
    page.get_by_label("What").select_option("forget")
    page.locator("td strong", has_text="forget").first.wait_for()
    page.locator("td strong", has_text="onMessage").first.wait_for(state="detached")
    page.get_by_label("What").select_option("said")
    page.locator("td strong", has_text="onMessage").first.wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == len(told(daemon, "audit", verbs=["onMessage", "import"], limit=1000)["events"])


def test_care_lists_the_backups_that_hold_the_agents_memory(page: Page, daemon: Daemon) -> None:
    go(page, "care?agent=main")
    page.get_by_text("None yet.").wait_for()
    done = run_offbook("backup", "--rotate", env={**os.environ, "OFFBOOK_HOME": str(daemon.home)}, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = told(daemon, "status")["backups"]
    page.reload()
    row = page.get_by_role("row").filter(has_text=made["file"])
    row.get_by_text(f"{made['messages']:,}", exact=True).wait_for()
    assert made["messages"] == told(daemon, "status")["counts"]["messages"]
    # Of somebody whose first message came later it holds nothing.
    assert told(daemon, "status", agentId="after the backup")["backups"] == []


def test_care_runs_maintenance_and_tells_where_settings_came_from(page: Page, daemon: Daemon) -> None:
    go(page, "care")
    page.get_by_role("button", name="Run tiers now").click()
    page.get_by_role("status").filter(has_text="1 task ran").wait_for()
    assert told(daemon, "audit", verbs=["maintain"])["events"][-1]["details"]["tasks"] == ["tiers"]
    page.get_by_label("Find a setting").fill("turn.deadline")
    page.locator("tr", has_text="turn.deadline").get_by_text("environment OFFBOOK_TURN_DEADLINE").wait_for()
