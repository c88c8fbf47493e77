from __future__ import annotations

from offbook.client.segment import queued_of


def test_a_line_nested_too_deep_is_none() -> None:
    assert queued_of(b'[1,1,"main",' + b"[" * 100_000) is None
