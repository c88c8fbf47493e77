"""Values put into one table of a TOML file, and nothing else changed."""

from __future__ import annotations

import pytest

from offbook.client.config_files.toml import with_values
from offbook.model.errors import InvalidInput

ORDER = {"order": ["host", "extractive"]}
LINE = 'order = ["host", "extractive"]'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"[summarizer]\n{LINE}\n"),
        ("port = 1", f"port = 1\n\n[summarizer]\n{LINE}\n"),
        ("[summarizer]", f"[summarizer]\n{LINE}\n"),
        ("[summarizer] # who\nthreads = 2\n[log]\n", f"[summarizer] # who\n{LINE}\nthreads = 2\n[log]\n"),
        ('[summarizer]\norder = [  # mine\n  "local",\n]\nthreads = 2\n', f"[summarizer]\n{LINE}\nthreads = 2\n"),
        ('[log]\r\nlevel = "info"\r\n', f'[log]\r\nlevel = "info"\r\n\r\n[summarizer]\r\n{LINE}\r\n'),
        (f"[summarizer]\n{LINE} # as it is\n", f"[summarizer]\n{LINE} # as it is\n"),
        ('model = """\n[summarizer]\n"""\n', f'model = """\n[summarizer]\n"""\n\n[summarizer]\n{LINE}\n'),
    ],
)
def test_only_what_is_meant_changes(before: str, after: str) -> None:
    assert with_values(before, "summarizer", ORDER) == after
    assert with_values(after, "summarizer", ORDER) == after


def test_another_spelling_is_the_same_key() -> None:
    before = '[summarizer]\nanthropic_endpoint = "https://a"\n'
    assert with_values(before, "summarizer", {"anthropicEndpoint": "https://b"}) == before.replace("//a", "//b")


@pytest.mark.parametrize(
    "text", ["summarizer = {threads = 1}\n", "summarizer.threads = 1\n", "summarizer = 1\n", "a b"]
)
def test_what_cannot_be_edited_is_left_alone(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"by hand|mend"):
        with_values(text, "summarizer", ORDER)
