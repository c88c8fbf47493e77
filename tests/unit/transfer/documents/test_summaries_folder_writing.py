"""Summaries as the hierarchical memory plugin keeps them, and the way there and back."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.model.types import Message
from offbook.transfer.documents.summaries_folder import conversations, write
from tests.unit.contrib.importers.exported_history import (
    AT,
    History,
    files_under,
    histories,
    owner,
    read,
    report,
    summary,
)
from tests.unit.contrib.importers.summaries_state import FIRST, MERGED, SECOND, summaries


def index_in(folder: Path) -> dict[str, Any]:
    index: dict[str, Any] = json.loads((folder / "summaries" / "index.json").read_text())
    return index


def own() -> History:
    history = History()
    for number in range(1, 5):
        history.add("chat", Message(role="user", content=f"message {number}", id=f"m{number}", ts=AT))
    history.kept = [
        summary("L1-0001", "One and two.", [("chat", 1, 2)], parent="L2-0001"),
        summary("L1-0002", "三和四 🐾", [("chat", 3, 4)], parent="L2-0001"),
        summary("L2-0001", "All four.", [("chat", 1, 4)], sources=["L1-0001", "L1-0002"]),
    ]
    return history


def test_our_own_in_the_shape_of_the_plugin(tmp_path: Path) -> None:
    written = write(own(), tmp_path)
    assert (written.files, written.records) == (4, 3)
    made = 1_778_464_680_000
    assert (tmp_path / "summaries/L1/0001.md").read_text() == (
        "<!--\n"
        "  id: 0001\n"
        "  level: L1\n"
        f"  createdAt: {made}\n"
        "  tokenEstimate: 20\n"
        "  sourceLevel: L0\n"
        '  sourceIds: ["m1","m2"]\n'
        "  sourceSessionId: chat\n"
        f"  firstAt: {made - 7_200_000}\n"
        f"  lastAt: {made - 3_600_000}\n"
        "-->\n"
        "\n"
        "One and two."
    )
    index = index_in(tmp_path)
    assert list(index) == [
        "version", "agentId", "lastSummarizedEntryId", "lastSummarizedSessionId", "levels", "worker",
    ]  # fmt: skip
    assert (index["lastSummarizedEntryId"], index["lastSummarizedSessionId"]) == ("m4", "chat")
    assert {level: [each["id"] for each in entries] for level, entries in index["levels"].items()} == {
        "L1": ["0001", "0002"],
        "L2": ["0001"],
        "L3": [],
    }
    first, merged = index["levels"]["L1"][0], index["levels"]["L2"][0]
    assert (first["mergedInto"], merged["mergedInto"], merged["sourceIds"]) == ("0001", None, ["0001", "0002"])
    assert [(left.what, left.count) for left in written.left_out] == [("messages", 4)]


def test_an_agent_without_summaries_has_an_index_all_the_same(tmp_path: Path) -> None:
    assert write(History(), tmp_path).files == 1
    assert index_in(tmp_path)["levels"] == {"L1": [], "L2": [], "L3": []}


def test_what_the_plugin_wrote_goes_back_as_it_was(tmp_path: Path) -> None:
    folder = summaries(tmp_path / "theirs" / "summaries", FIRST, SECOND, MERGED)
    history, _ = read(conversations, folder)
    write(history, tmp_path / "again")
    assert files_under(tmp_path / "again") == files_under(tmp_path / "theirs")


def test_our_own_of_imported_ones_are_left_out_and_the_others_follow_in_number(tmp_path: Path) -> None:
    history, _ = read(conversations, summaries(tmp_path / "theirs", FIRST, SECOND, MERGED))
    history.add("chat", Message(role="user", content="something new", id="m1", ts=AT))
    session = "summaries:main"
    history.kept = [
        summary("L1-0001", "Of memories.", [(session, 1, 3)]),
        summary("L1-0002", "Of what is new.", [("chat", 1, 1)], parent="L2-0001"),
        summary("L2-0001", "Of both.", [(session, 1, 3), ("chat", 1, 1)], sources=["L1-0001", "L1-0002"]),
    ]
    written = write(history, tmp_path)
    levels = index_in(tmp_path)["levels"]
    assert [each["id"] for each in levels["L1"]] == ["0001", "0002", "0004"]
    assert [(each["id"], each["sourceIds"]) for each in levels["L2"]] == [
        ("0001", ["0001", "0002"]),
        ("0002", ["0004"]),
    ]
    assert levels["L1"][2]["mergedInto"] == "0002"
    assert (tmp_path / "summaries/L1/0004.md").read_text().endswith("Of what is new.")
    assert {left.what: left.count for left in written.left_out} == {"messages": 1, "summaries": 1}


def test_a_merge_that_came_with_a_later_import_is_known_of_its_parts(tmp_path: Path) -> None:
    unmerged = ({**FIRST[0], "mergedInto": None}, FIRST[1])
    history, _ = read(conversations, summaries(tmp_path / "then", unmerged))
    later = conversations(summaries(tmp_path / "now", FIRST, SECOND, MERGED), report(), owner)
    for ready in later[0].messages(lambda _: None):
        history.add(later[0].key, Message(**{name: value for name, value in ready.wire.items() if name != "ts"}, ts=AT))
    write(history, tmp_path)
    assert [each["mergedInto"] for each in index_in(tmp_path)["levels"]["L1"]] == ["0001", "0001"]


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    history = History()
    for id_ in ("L1-../../x", "../L1-1", "L1-/etc/x", "L1-CON", "L0-1", None):
        meta = {"summary": {"id": "../../x", "level": "../"}, "comment": 7, "index": {"levels": 3}}
        history.add("s", Message(role="assistant", content="x", id=id_, origin="memory:summaries", meta=meta, ts=AT))
    written = write(history, tmp_path / "here")
    assert list(files_under(tmp_path)) == ["here/summaries/index.json"]
    assert [left.count for left in written.left_out] == [6]


def test_a_session_that_could_end_the_comment_is_left_to_the_index(tmp_path: Path) -> None:
    history = History()
    history.add("a --> b\nid: 7", Message(role="user", content="x", id="m-->1", ts=AT))
    history.kept = [summary("L1-0001", "Said.", [("a --> b\nid: 7", 1, 1)])]
    write(history, tmp_path)
    page = (tmp_path / "summaries/L1/0001.md").read_text()
    assert page.count("-->") == 1
    assert 'sourceIds: ["m--\\u003e1"]' in page
    assert "sourceSessionId" not in page
    again, _ = read(conversations, tmp_path)
    (message,) = again.sessions["summaries:main"]
    assert message.content == "Said."
    assert message.meta is not None
    assert message.meta["summary"]["sourceIds"] == ["m-->1"]


VIEWS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.text(st.characters(codec="utf-8")),
        st.lists(st.sampled_from(["chat", "agent:main:main", "a --> b\n", "summaries:main"]), min_size=1, max_size=2),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(histories(), VIEWS)
def test_written_read_and_written_again_is_the_same(history: History, views: list[tuple[int, str, list[str]]]) -> None:
    for number, (level, text, sessions) in enumerate(views, start=1):
        history.kept.append(summary(f"L{level}-{number:04}", text, [(session, 1, 3) for session in sessions]))
    with TemporaryDirectory() as folder:
        once, twice = Path(folder, "once"), Path(folder, "twice")
        written = write(history, once)
        again, report_ = read(conversations, once)
        if written.records:
            again.kept = [summary("L1-0001", "A memory of memories.", [("summaries:main", 1, 1)])]
        assert write(again, twice).records == written.records == sum(bool(text.strip()) for _, text, _ in views)
        assert files_under(twice) == files_under(once)
        assert not report_.problems
