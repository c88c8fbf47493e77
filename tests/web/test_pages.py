"""Each page on a real daemon, in a real browser: what it shows is what the store holds, what it does takes effect."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.acceptance.daemon import Daemon
from tests.web.browsing import complaints, go, serious_faults, signed_in, wait_text
from tests.web.talk import LARGE, SESSION, WORK, told

PAGES = ["now", f"conversation/{SESSION}", f"turns/{SESSION}", f"swaps/{SESSION}", "recall?q=allotment", "memory"]
PAGES += ["forget", f"audit?session={WORK}", "care"]
HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_now_shows_sessions_and_a_message_as_it_arrives(page: Page, daemon: Daemon) -> None:
    go(page, "now")
    page.locator(".rows .row-name", has_text=SESSION).wait_for()
    assert page.locator(".fill-mark").count() >= 2
    page.locator(".live-live").wait_for()
    told(daemon, "onMessage", sessionId="fresh-talk", message={"role": "user", "content": "Something new."})
    page.locator(".events .is-new", has_text="1 message recorded").first.wait_for()
    page.locator(".rows .row-name", has_text="fresh-talk").wait_for()


def test_a_hidden_tab_holds_no_connection_and_goes_on_where_it_was(opened: Browser, daemon: Daemon) -> None:
    page = signed_in(opened, daemon)
    page.locator(".live-live").wait_for()
    page.locator(".rows .row-name", has_text=SESSION).wait_for()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/ui/events")):
        page.evaluate(HIDE, True)
    told(daemon, "onMessage", sessionId="behind", message={"role": "user", "content": "Said behind its back."})
    with page.expect_request("**/ui/events") as again:
        page.evaluate(HIDE, False)
    assert json.loads(again.value.post_data or "")["after"] > 0
    page.locator(".rows .row-name", has_text="behind").wait_for()
    page.locator(".live-live").wait_for()


def test_answers_that_end_early_are_gone_on_from_and_none_is_asked_for_twice(page: Page) -> None:
    asked: list[int] = []

    def two_at_once(route: Route) -> None:
        after = json.loads(route.request.post_data or "")["afterSeq"]
        asked.append(after)
        reply = route.fetch()
        page_of_log = reply.json()
        page_of_log["messages"] = page_of_log["messages"][:2] if after < 4 else []
        route.fulfill(response=reply, json=page_of_log)

    page.route("**/v1/log", two_at_once)
    go(page, f"conversation/{WORK}")
    page.locator(".chunk .seq", has_text="#4").wait_for()
    page.wait_for_timeout(1_000)
    page.unroute("**/v1/log")
    assert page.locator(".chunk .seq").all_inner_texts() == ["#1", "#2", "#3", "#4"]
    assert asked == [0, 2, 4]
    go(page, "now")


def test_an_address_that_is_not_encoded_is_taken_as_it_stands(page: Page) -> None:
    go(page, "conversation/100%")
    wait_text(page, "There is no session of this name")


def test_a_conversation_shows_its_messages_and_the_sources_of_a_summary(page: Page, daemon: Daemon) -> None:
    go(page, f"conversation/{SESSION}?seq=3")
    wait_text(page, "a yard the size of a towel")
    context = told(daemon, "getCompressedContext", sessionId=SESSION, maxChars=9_600)
    summary = next(part for part in context["parts"] if part.get("id"))
    page.locator(f".band button[aria-label^='{summary['id']},']").click()
    panel = page.locator(".talk-panel")
    panel.get_by_text("Written by").wait_for()
    panel.get_by_role("button", name="Show its sources word for word").click()
    first = told(daemon, "expand", summaryId=summary["id"], limit=1)["messages"][0]["message"]["content"]
    panel.locator(".text", has_text=first[:60]).first.wait_for()
    panel.get_by_role("button", name="Close").click()
    page.locator("details summary", has_text="Summaries of this session").click()
    page.get_by_role("button", name=summary["id"], exact=True).click()
    panel.get_by_text("Written by").wait_for()


def test_tools_pictures_and_large_parts_of_a_conversation_are_shown(page: Page) -> None:
    go(page, f"conversation/{WORK}")
    page.locator("details.block summary", has_text="shell").wait_for()
    page.locator("img.picture").wait_for()
    assert page.evaluate("document.querySelector('img.picture').naturalWidth") == 1
    page.locator(".chunk-item", has_text="a long listing").locator("summary").click()
    page.get_by_role("button", name=f"Show all {len(LARGE):,} characters").click()
    page.get_by_role("button", name="Show less").wait_for()
    assert len(page.locator(".chunk-item", has_text="a long listing").inner_text()) >= len(LARGE)


def test_a_past_turn_shows_its_bundle_and_its_difference(page: Page, daemon: Daemon) -> None:
    turns = told(daemon, "audit", sessionId=SESSION, verbs=["prepareTurn"])["events"]
    go(page, f"turns/{SESSION}")
    wait_text(page, "Before the model at")
    assert page.locator(".turn-list .row").count() == len(turns)
    wait_text(page, "Since the turn before")
    wait_text(page, "the context was swapped, from generation 0 to 1")
    page.locator(".legend", has_text="word for word").first.wait_for()
    wait_text(page, f"Came to mind: {len(turns[-1]['details']['entries'])} entr")
    page.get_by_role("button", name="What was considered, and left out").click()
    wait_text(page, "How it was found")


def test_trying_a_prompt_records_no_retrieval(page: Page, daemon: Daemon) -> None:
    before = told(daemon, "status")["retrievals"]
    go(page, f"turns/{SESSION}")
    page.get_by_role("tab", name="Try a prompt").click()
    page.get_by_label("Prompt", exact=True).fill("Which number has the allotment plot?")
    page.get_by_role("button", name="See what comes to mind").click()
    wait_text(page, "Comes to mind")
    assert told(daemon, "status")["retrievals"] == before


def test_a_swap_is_shown_side_by_side_and_searched(page: Page) -> None:
    go(page, f"swaps/{SESSION}")
    wait_text(page, "5,600 tokens")
    page.locator("[aria-label='Before the swap'] .message").first.wait_for()
    page.locator("[aria-label='After the swap'] .message").first.wait_for()
    page.get_by_placeholder("a name, a number, a file").fill("Which plot is the allotment")
    page.get_by_role("status").filter(has_text="still there").wait_for()
    page.get_by_placeholder("a name, a number, a file").fill("no such words")
    page.get_by_role("status").filter(has_text="not in the new text").wait_for()


def test_the_keyboard_goes_everywhere(page: Page) -> None:
    go(page, "now")
    page.locator(".rows .row").first.wait_for()
    page.locator("main").press("j")
    page.locator(".rows .row:focus").first.wait_for()
    page.keyboard.press("Enter")
    page.locator("main h1", has_text="Conversation").wait_for()
    page.keyboard.press("/")
    page.locator("header input:focus").wait_for()
    page.keyboard.type("Fiona")
    page.keyboard.press("Enter")
    page.locator("main h1", has_text="Recall").wait_for()
    page.locator("header input").press("Escape")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Keys").wait_for(state="detached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_found_by_axe_and_nothing_is_complained_of(
    opened: Browser, daemon: Daemon, scheme: str
) -> None:
    page = signed_in(opened, daemon, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    found = {}
    for place in PAGES:
        go(page, place)
        page.locator("main .progress").first.wait_for(state="detached")
        # Only the colours differ in the dark.
        if faults := serious_faults(page, ["color-contrast"] if scheme == "dark" else None):
            found[place] = faults
    assert found == {}
    assert complaints(page) == []
    page.context.close()


def test_a_phone_shows_every_page_without_scrolling_sideways(opened: Browser, daemon: Daemon) -> None:
    page = signed_in(opened, daemon, viewport={"width": 390, "height": 800})
    for place in PAGES:
        go(page, place)
        page.locator("main .progress").first.wait_for(state="detached")
        widths = page.evaluate(
            "[document.querySelector('main').scrollWidth, document.querySelector('main').clientWidth]"
        )
        assert widths[0] <= widths[1] + 1, place
    page.context.close()
