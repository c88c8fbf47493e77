"""Written from a real memory, read into an empty one, written again: the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from offbook.api.memory import Memory
from offbook.client.history import formats
from offbook.model.types import Message
from offbook.transfer.documents import archive_days, summaries_folder, swap_jsonl
from offbook.transfer.provider_export import Exported, ExportedMessage, Written
from tests.unit.contrib.importers.exported_history import AT, History, files_under, messages_of, owner, report
from tests.unit.contrib.importers.summaries_state import FIRST, MERGED, summaries
from tests.unit.small_memory import assistant, caught_up, exchange, small_memory, user

Writer = Callable[[Exported, Path], Written]
FORMATS: list[tuple[formats.Reader, Writer]] = [
    (swap_jsonl.conversations, swap_jsonl.write),
    (archive_days.conversations, archive_days.write),
    (summaries_folder.conversations, summaries_folder.write),
]
NAMES = ["swap-jsonl", "archive", "summaries"]


class Held(History):
    """What a memory held when it was looked at."""

    def __init__(self, entries: list[ExportedMessage]) -> None:
        super().__init__()
        self._entries = entries

    def messages(self):  # type: ignore[no-untyped-def]
        yield from self._entries


async def held_by(memory: Memory) -> Held:
    await caught_up(memory)
    entries = []
    sessions = (await memory.status("main")).sessions
    for session in sorted(sessions, key=lambda each: each.started_at):
        page = await memory.log(memory.scope(session.session_id), limit=1_000)
        entries += [
            ExportedMessage(session.session_id, line.seq, line.message, line.noise, False) for line in page.messages
        ]
    held = Held(entries)
    held.kept = list((await memory.summaries("main", limit=100)).summaries)
    return held


async def taken_in(memory: Memory, reader: formats.Reader, path: Path) -> None:
    for conversation in reader(path, report(), owner):
        await memory.on_message(memory.scope(conversation.key), messages_of(conversation))


def talk() -> dict[str, list[Message]]:
    long = [message for number in range(30) for message in exchange(number)]
    timed = [msgspec.structs.replace(each, ts=AT + timedelta(seconds=seconds)) for seconds, each in enumerate(long)]
    call = {"type": "tool-call", "id": "c1", "name": "read", "arguments": {"path": "a.txt"}}
    return {
        "agent:main:main": timed,
        "会话 🐾": [
            user("上次我们说好，周五之前把预算表交给王小姐。", id="m1", ts=AT),
            assistant("好的，我会在周四晚上提醒您一次。", id="m2", ts=AT),
            Message(role="assistant", content=[{"type": "text", "text": "Let me read it for you."}, call], ts=AT),
            Message(role="tool", content="three lines of text", tool_call_id="c1", ts=AT),
            user("ok", ts=AT),
            user("[cron:daily] wake up", ts=AT),
        ],
        "second": [user("The cat 🐈 sleeps on the\x00 sourdough.", id="m1", ts=AT - timedelta(days=400))],
    }


@pytest.mark.parametrize(("reader", "writer"), FORMATS, ids=NAMES)
async def test_the_same_bytes(tmp_path: Path, reader: formats.Reader, writer: Writer) -> None:
    async with small_memory(tmp_path / "first") as memory:
        for session, messages in talk().items():
            await memory.on_message(memory.scope(session), messages)
        before = await held_by(memory)
    written = writer(before, tmp_path / "once")
    assert written.records > 3
    async with small_memory(tmp_path / "second") as memory:
        for _ in range(2):  # and running it twice changes nothing
            await taken_in(memory, reader, tmp_path / "once")
        after = await held_by(memory)
    assert writer(after, tmp_path / "twice").records == written.records
    assert files_under(tmp_path / "twice") == files_under(tmp_path / "once")


async def test_what_the_hierarchical_plugin_wrote_goes_back_though_we_summarised_it(tmp_path: Path) -> None:
    long = [({**FIRST[0], "id": f"{number:04}"}, FIRST[1] * 20) for number in range(2, 20)]
    folder = summaries(tmp_path / "theirs" / "summaries", FIRST, *long, MERGED)
    async with small_memory(tmp_path / "home") as memory:
        await taken_in(memory, summaries_folder.conversations, folder)
        held = await held_by(memory)
    assert held.kept, "the memory made summaries of these summaries"
    summaries_folder.write(held, tmp_path / "again")
    assert files_under(tmp_path / "again") == files_under(tmp_path / "theirs")
