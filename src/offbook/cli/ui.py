"""`offbook ui`: the memory as a page in the browser, signed in by a link that works once."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import Invocation, home_option, json_option, pass_invocation, url_option
from offbook.cli.output import print_json

if TYPE_CHECKING:
    from offbook.client.endpoint import Endpoint

ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 - to be replaced: no browser can go there
OPENING = "offbook-ui-"
"""How the files begin that take a browser to the link."""
EPILOG = """\b
Examples:
  offbook ui
  offbook ui --print                       the link only, for a browser elsewhere
  OFFBOOK_TOKEN=… offbook ui               only the agents of that token

\b
The link works once, within five minutes. From another machine, forward the
port first: ssh -L 8770:127.0.0.1:8770 HOST, then open the link that
`offbook ui --print` gives there.
"""


@click.command("ui", epilog=EPILOG)
@click.option("--print", "--no-browser", "only_print", is_flag=True, help="Print the link; open no browser.")
@home_option
@url_option
@json_option
@pass_invocation
def ui_command(invocation: Invocation, only_print: bool) -> None:
    """Open the memory as a page in the browser: what it holds, what was before the model in each turn, and why.

    The page may do what the token may do that asked for it.
    """
    link = page_link(invocation.endpoint, asyncio.run(_code(invocation)))
    if invocation.is_json:
        print_json({"url": link})
        return
    is_opened = not only_print and sys.stdout.isatty() and _open(link)
    click.echo("Opened in the browser. The link, which works once:" if is_opened else "Open this link; it works once:")
    click.echo(f"  {link}")


def page_link(endpoint: Endpoint, answer: dict[str, Any]) -> str:
    """Where the page is for whoever reached the provider at `endpoint`."""
    from offbook.model.errors import SettingsError

    base = str(endpoint) if endpoint.scheme != "unix" else answer.get("url")
    if base is None:
        raise SettingsError(
            "the provider listens on its socket only, which no browser can open: start it with a port "
            "(`offbook serve --port 8770`), and run `offbook ui` again"
        )
    for address in ANY_ADDRESS:
        base = base.replace(f"//{address}:", "//localhost:")
    return f"{base}/ui/#code={answer['code']}"


async def _code(invocation: Invocation) -> dict[str, Any]:
    import msgspec

    from offbook.client.transport import Transport, content_of

    transport = Transport(invocation.endpoint, token=invocation.token, timeout_seconds=10.0)
    try:
        document: dict[str, Any] = msgspec.json.decode(content_of(await transport.post("/ui/code", b"{}")))
    finally:
        transport.close()
    return document


def _open(link: str) -> bool:
    """Through a file that only its owner can read: every user of a machine sees what a program is started with."""
    import html
    import tempfile
    import webbrowser

    for earlier in Path(tempfile.gettempdir()).glob(f"{OPENING}*.html"):
        with suppress(OSError):  # another user's
            earlier.unlink()
    descriptor, name = tempfile.mkstemp(prefix=OPENING, suffix=".html")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">')
    try:
        return webbrowser.open(Path(name).as_uri())
    except webbrowser.Error:
        return False
