"""What others wrote stays text, other agents stay unseen, links work once, and a provider that was away is found again."""

from __future__ import annotations

import json

from playwright.sync_api import Browser

from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, assert_problem, bearer, running
from tests.processes import run_offbook
from tests.web.browsing import PATIENCE_MS, addresses, complaints, go, link, signed_in, wait_text
from tests.web.talk import HOSTILE, OTHER_AGENT, SESSION, WORK, told


def test_hostile_text_is_text_on_every_page(opened: Browser, daemon: Daemon) -> None:
    page = signed_in(opened, daemon)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    go(page, f"conversation/{WORK}")
    wait_text(page, "<script>window.pwned = 1</script>")
    go(page, "recall?q=window.pwned click")
    wait_text(page, "<script>window.pwned = 1</script>")
    hostile = f"{HOSTILE} session"
    told(daemon, "onMessage", sessionId=hostile, message={"role": "user", "content": HOSTILE, "name": HOSTILE})
    for place in ("now", "audit", "memory", "turns", "swaps"):
        go(page, place)
        page.locator("main .progress").first.wait_for(state="detached")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main a[href^='javascript:'], main img[onerror], main script, main style").count() == 0
    assert page.locator("main a:not([href^='#'])").count() == 0
    base = f"http://127.0.0.1:{daemon.port}/"
    assert [url for url in asked if not url.startswith((base, "data:"))] == []
    assert [each for each in complaints(page) if "Content Security Policy" in each] == []


def test_a_link_works_once_and_leaves_nothing_in_the_address(opened: Browser, daemon: Daemon) -> None:
    address = link(daemon)
    first = opened.new_context().new_page()
    first.goto(address)
    first.locator("nav a[aria-current]").wait_for(timeout=PATIENCE_MS)
    assert "code" not in first.url
    # Where somebody is signed in it does no harm.
    first.goto("about:blank")
    first.goto(address)
    first.get_by_text("this link was used already").wait_for(timeout=PATIENCE_MS)
    first.goto(f"http://127.0.0.1:{daemon.port}/ui/")
    first.locator("nav a[aria-current]").wait_for(timeout=PATIENCE_MS)
    second = opened.new_context().new_page()
    second.goto(address)
    second.get_by_text("this link was used already").wait_for(timeout=PATIENCE_MS)
    assert second.locator("nav").count() == 0
    second.goto(f"http://127.0.0.1:{daemon.port}/ui/")
    second.get_by_text("offbook ui").wait_for(timeout=PATIENCE_MS)


def test_a_link_that_is_pasted_into_an_open_tab_signs_in(opened: Browser, daemon: Daemon) -> None:
    made = run_offbook("token", "create", "visitor", "--agents", OTHER_AGENT, "--home", str(daemon.home), "--json")
    page = signed_in(opened, daemon)
    fragment = link(daemon, json.loads(made.stdout)["token"]).partition("#")[2]
    page.evaluate("fragment => { location.hash = fragment }", fragment)
    page.locator(".rows .row-name", has_text="notes").wait_for()
    assert page.locator("header select option").all_inner_texts() == [OTHER_AGENT]
    assert [each for each in addresses(page) if "code=" in each] == []
    page.context.close()


def test_a_page_of_one_agent_shows_nothing_of_another(opened: Browser, daemon: Daemon) -> None:
    home = ["--home", str(daemon.home), "--json"]
    made = run_offbook("token", "create", "reader", "--agents", OTHER_AGENT, *home)
    token = json.loads(made.stdout)["token"]
    page = signed_in(opened, daemon, token)
    answers: list[str] = []
    page.on("response", lambda reply: answers.append(reply.url))
    wait_text(page, "notes")
    assert page.locator("header select option").all_inner_texts() == [OTHER_AGENT]
    for place in (
        "now?agent=main",
        f"conversation/{SESSION}",
        "audit?agent=main",
        "memory",
        f"swaps/{SESSION}",
        "care",
    ):
        go(page, place)
        page.locator("main .progress").first.wait_for(state="detached")
        text = page.inner_text("main")
        assert "Nadine" not in text
        assert "331 messages" not in text
    refused = page.evaluate(
        """async () => {
          const session = JSON.parse(localStorage.getItem('offbook.session'));
          const headers = {authorization: 'Bearer ' + session.token, 'content-type': 'application/json'};
          const ask = (path, body) => fetch(path, {method: 'POST', headers, body: JSON.stringify(body)}).then(a => a.status);
          return [await ask('/v1/status', {agentId: 'main'}), await ask('/ui/events', {agentId: 'main'}),
                  (await fetch('/metrics', {headers})).status];
        }"""
    )
    assert refused == [403, 403, 403]
    run_offbook("token", "revoke", "reader", *home)
    page.reload()
    page.get_by_text("offbook ui").wait_for()


def test_other_names_and_other_pages_are_refused(daemon: Daemon) -> None:
    assert daemon.send("GET", "/ui/").status == 200
    assert_problem(daemon.send("GET", "/ui/", headers={"host": "evil.example"}), 403)
    assert_problem(daemon.send("GET", "/ui/nothing.js"), 404)
    assert_problem(daemon.send("POST", "/ui/code", {}), 401)
    assert_problem(daemon.send("POST", "/ui/session", {"code": "x" * 40}), 401)
    assert_problem(daemon.send("POST", "/ui/session", {}), 401)
    assert_problem(daemon.send("POST", "/ui/events", {"agentId": "main"}), 401)
    evil = {**bearer(daemon.token), "origin": "https://evil.example"}
    assert_problem(daemon.send("POST", "/ui/code", {}, evil), 403)
    policy = daemon.send("GET", "/ui/").headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"):
        assert part in policy
    assert "unsafe" not in policy


def test_a_page_finds_a_provider_again_that_was_killed(opened: Browser) -> None:
    with running(WITHOUT_MODEL) as first:
        told(first, "onMessage", sessionId="chat", message={"role": "user", "content": "Before the fall."})
        page = signed_in(opened, first)
        page.locator(".live-live").wait_for()
        first.process.kill()
        first.process.wait()
        page.get_by_text("The provider does not answer").first.wait_for()
        with running({**WITHOUT_MODEL, "OFFBOOK_PORT": str(first.port)}, home=first.home) as second:
            page.locator(".live-live").wait_for()
            told(second, "onMessage", sessionId="after", message={"role": "user", "content": "It is back."})
            page.locator(".rows .row-name", has_text="after").wait_for()
            # A stop does not wait for the page to go.
            assert second.stop() == 0
