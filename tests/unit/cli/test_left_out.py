from __future__ import annotations

import pytest

from offbook.cli.output import left_out


@pytest.mark.parametrize(
    ("what", "one"),
    [
        ("relations of the graph", "1 relation of the graph"),
        ("messages on other branches", "1 message on other branches"),
        (
            "pictures, recordings and files beside the conversations",
            "1 picture, recording or file beside the conversations",
        ),
        ("summaries", "1 summary"),
        ("summaries of conversations", "1 summary of conversations"),
        ("files that are no Markdown", "1 file that is no Markdown"),
        ("lines that say no type", "1 line that says no type"),
        ("messages between agents", "1 message between agents"),
        ("details of messages (name, model, origin, meta)", "1 detail of messages (name, model, origin, meta)"),
        ("lines of kind progress-updates", "1 line of kind progress-updates"),
        ("front matter", "1 front matter"),
        ("noise", "1 noise"),
        ("context that Codex adds", "1 context that Codex adds"),
        ("pages of Offbook's own", "1 page of Offbook's own"),
    ],
)
def test_one_of_them(what: str, one: str) -> None:
    assert left_out(1, what) == one
    assert left_out(1_234, what) == f"1,234 {what}"
