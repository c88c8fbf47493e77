"""`offbook unpin`: let what was pinned age again."""

from __future__ import annotations

import click

from offbook.cli.options import Invocation, pass_invocation
from offbook.cli.pin import selected, selecting_options, tell

EPILOG = """\b
Examples:
  offbook unpin m100000001
  offbook unpin --keyword "wifi password"
  offbook unpin --session house-rules
"""


@click.command("unpin", epilog=EPILOG)
@selecting_options
@pass_invocation
def command(invocation: Invocation, entries: tuple[str, ...], keyword: str | None, session: str | None) -> None:
    """Let pinned entries age again: those named, those that hold a keyword, those of a session."""
    with invocation.client() as client:
        tell(invocation, client.unpin(**selected(entries, keyword, session)), "unpinned")
