"""A reader that trips over a conversation costs that one, not the import."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from offbook.client.history.conversations import Conversation, Damaged, HistoryImport, ImportReport, Ready
from offbook.client.history.files import ready


@pytest.mark.parametrize("error", [TypeError("x"), OverflowError("x"), AttributeError("x"), KeyError("x")])
def test_a_reader_that_breaks_is_told_and_the_others_are_read(error: Exception) -> None:
    def breaking(_: Damaged) -> Iterator[Ready]:
        yield ready("1", "user", "said before", at=None, where="here")
        raise error

    def whole(_: Damaged) -> Iterator[Ready]:
        yield ready("2", "user", "said after", at=None, where="there")

    report = ImportReport(state="", is_dry_run=True)
    importing = HistoryImport(None, report)
    for key, messages in (("first", breaking), ("second", whole)):
        importing.conversation(Conversation("main", key, 10, messages), report.agent("main"))
    assert (report.total("messages"), report.total("sessions"), report.unreadable) == (2, 2, 1)
    assert report.problems[0].where == "first"
    assert "cannot be read to its end" in report.problems[0].reason
    assert type(error).__name__ in report.problems[0].reason
