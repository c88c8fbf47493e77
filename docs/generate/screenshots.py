"""The pictures of the web page in the documentation: `python -m docs.generate.screenshots` makes them anew.

They are of a real daemon with the conversation of `tests/web`, in the browser that its tests use.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.web.browsing import browser, go, signed_in
from tests.web.talk import PROMPTS, SESSION, SETTINGS, talking, told, wait_until

FOLDER = Path("docs/images")
SIZE = {"width": 1080, "height": 660}
SETTLED_SECONDS = 1.5
DARK = {"care", "swaps"}
PAGES = {
    "now": "now",
    "conversation": f"conversation/{SESSION}?seq=3",
    "turns": f"turns/{SESSION}",
    "swaps": f"swaps/{SESSION}",
    "recall": "recall?q=Which number has the allotment plot?",
    "memory": "memory",
    "forget": "forget",
    "audit": "audit",
    "care": "care",
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    left_out = ("OFFBOOK_EMBEDDING_MODEL", "OFFBOOK_WORKER_INTERVAL")
    with_model = {name: value for name, value in SETTINGS.items() if name not in left_out}
    with talking(with_model, is_hostile=False) as daemon, browser() as opened:
        told(daemon, "compress", sessionId=SESSION, again=True)
        for prompt in PROMPTS:
            told(daemon, "recall", sessionId=SESSION, query=prompt)
        wait_until(lambda: not told(daemon, "ping")["backlog"])
        pages = {scheme: signed_in(opened, daemon, viewport=SIZE, color_scheme=scheme) for scheme in ("light", "dark")}
        for name, place in PAGES.items():
            page = pages["dark" if name in DARK else "light"]
            go(page, place)
            page.locator("main .progress").first.wait_for(state="detached")
            if name == "conversation":
                page.locator(".band button").first.click()
            if name == "forget":
                page.get_by_label("Text, regardless").fill("QX-4471")
                page.get_by_role("button", name="Show what would go").click()
                page.get_by_text("This cannot be undone").wait_for()
            if name == "care":
                page.get_by_role("img", name="Messages a day").wait_for()
                page.locator("main").evaluate(
                    "main => { main.scrollTop = main.querySelector('.halves').offsetTop - 80 }"
                )
            if name == "recall":
                page.locator("article.entry summary").first.click()
            time.sleep(SETTLED_SECONDS)
            path = FOLDER / f"web-{name}.png"
            page.screenshot(path=path)
            print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
