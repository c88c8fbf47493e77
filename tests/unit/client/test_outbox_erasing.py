"""What is forgotten goes from outboxes; whatever else is in them, or is being written to them, stays."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.api.embedded import open_parts
from offbook.client.outbox import Outbox
from offbook.client.outbox_erasing import Outboxes
from offbook.client.outbox_folder import OutboxFolder, State
from offbook.client.outboxes import resend_rejected
from offbook.client.segment import Queued
from offbook.log.erasure import folded
from offbook.model.errors import StoreError
from offbook.model.home import Home
from offbook.model.receipt import ForgottenSpan, Selection
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message, now
from offbook.projections.base import Erased

WORD = "zanzibar"
PLENTY = 100_000_000


def record(text: str, *, session: str = "chat", agent: str | None = None, **fields: Any) -> bytes:
    message = {"role": "user", "content": text, **fields}
    envelope = {"sessionId": session, "message": message} | ({} if agent is None else {"agentId": agent})
    return msgspec.json.encode(envelope)


def opened(home: Path, client: str = "agent") -> Outbox:
    return Outbox(home / "outbox" / client, max_bytes=PLENTY)


def refused(outbox: Outbox, *records: bytes) -> Path:
    """They were sent, and no provider takes them."""
    for each in records:
        assert outbox.append(each)
    for queued in outbox.peek(len(records), PLENTY):
        outbox.reject(queued, "of the wrong shape")
        outbox.advance(queued.ordinal, rejected=1)
    return outbox.folder / "rejected.jsonl"


def delivered(outbox: Outbox, *records: bytes) -> None:
    for each in records:
        assert outbox.append(each)
    outbox.advance(outbox.peek(10**6, PLENTY)[-1].ordinal)


class Log:
    """Of a store, what is asked of it."""

    def __init__(self, ids: dict[str, str]) -> None:
        self._ids = ids

    async def messages(self, scope: Any, *, after_seq: int, limit: int) -> list[Any]:
        class One(msgspec.Struct):
            seq: int
            message: Message

        return [One(1, Message(role="user", content="x", id=self._ids[scope.session_id]))][after_seq:]


def outboxes(home: Path, **ids: str) -> Outboxes:
    store: Any = Log(ids)
    return Outboxes(Home(home), store, default_agent="main")


def saying(*words: str) -> Erased:
    return Erased("main", [], lambda text: any(word in folded(text) for word in words), Selection(matching=words))


def erased(home: Path, wanted: Erased | None = None, agent_id: str = "main", **ids: str) -> int:
    """As many as a dry run says; and then none is left."""
    wanted, boxes = wanted or saying(WORD), outboxes(home, **ids)
    wanted = wanted._replace(agent_id=agent_id)
    counted = counted_in(boxes, wanted)
    assert asyncio.run(boxes.forget(wanted)).counts == {boxes.name: counted}
    assert counted_in(boxes, wanted) == 0
    return counted


def counted_in(boxes: Outboxes, wanted: Erased) -> int:
    return asyncio.run(boxes.forget(wanted._replace(is_dry_run=True))).counts[boxes.name]


def left(home: Path, wanted: Erased | None = None, agent_id: str = "main") -> list[tuple[str, str]]:
    found = asyncio.run(outboxes(home).search((wanted or saying(WORD))._replace(agent_id=agent_id)))
    return [(one.where, one.what) for one in found]


def holding(folder: Path, word: str = WORD) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes())


# ── what was refused ──


def test_lines_that_say_it_go_and_the_others_stay_as_they_are(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    path = refused(
        outbox, record("The ferry leaves."), record(f"The code is {WORD.upper()}"), record("记忆 \U0001f30a \x00")
    )
    lines = path.read_bytes().splitlines(keepends=True)
    outbox.close()
    assert erased(tmp_path) == 1
    assert path.read_bytes() == lines[0] + lines[2]
    assert path.stat().st_mode & 0o777 == 0o600
    assert left(tmp_path) == []
    assert erased(tmp_path) == 0


def test_where_nothing_is_left_the_file_goes(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    path = refused(outbox, record(f"The code is {WORD}"))
    outbox.close()
    assert erased(tmp_path) == 1
    assert not path.exists()
    assert holding(tmp_path) == []


def test_a_client_that_has_it_open_goes_on(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    path = refused(outbox, record(f"The code is {WORD}"), record("The ferry leaves."))
    size = path.stat().st_size
    assert erased(tmp_path) == 2  # and the record that was sent, which is still there
    assert path.stat().st_size == size
    refused(outbox, record("The train, too."))
    outbox.close()
    reopened = opened(tmp_path)
    assert resend_rejected(reopened) == 2
    said = [msgspec.json.decode(each.record)["message"]["content"] for each in reopened.peek(9, PLENTY)]
    assert said == ["The ferry leaves.", "The train, too."]
    assert not path.exists()
    reopened.close()
    assert holding(tmp_path) == []


def test_what_is_refused_at_the_same_moment_is_not_lost(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    path = refused(outbox, record(f"The code is {WORD}"))

    def refuse() -> None:
        for number in range(1, 401):
            text = f"{WORD} {number}" if number % 3 == 0 else f"other {number}"
            outbox.reject(Queued(number, record(text), "", number), "no")

    thread = threading.Thread(target=refuse)
    boxes = outboxes(tmp_path)
    thread.start()
    while thread.is_alive():
        asyncio.run(boxes.forget(saying(WORD)))
    outbox.close()
    asyncio.run(boxes.forget(saying(WORD)))
    ordinals = [msgspec.json.decode(line)["ordinal"] for line in path.read_bytes().splitlines()]
    assert ordinals == [number for number in range(1, 401) if number % 3]
    assert holding(tmp_path) == []


texts = st.text(max_size=40) | st.sampled_from(["\x00", "\u2028 line", "\r\n", "../x", "CON", WORD, f"a {WORD}\n"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(texts, st.sampled_from([None, "main", "other"])), max_size=8), st.booleans())
def test_whatever_lies_there_only_those_lines_go(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str | None]], is_held: bool
) -> None:
    home = tmp_path_factory.mktemp("home")
    outbox = opened(home)
    path = refused(outbox, *(record(text, agent=agent) for text, agent in said))
    before = path.read_bytes().split(b"\n")[:-1] if said else []
    if not is_held:
        outbox.close()
    meant = [WORD in folded(text) and agent != "other" for text, agent in said]
    assert erased(home) == sum(meant) * (2 if is_held else 1)
    after = [line for line in path.read_bytes().split(b"\n") if line.strip()] if path.exists() else []
    assert after == [line for line, is_meant in zip(before, meant, strict=True) if not is_meant]
    outbox.close()


def test_it_is_known_by_its_id_its_session_or_its_age(tmp_path: Path) -> None:
    """What has one word has no others to be known by."""
    outbox = opened(tmp_path)
    path = refused(
        outbox,
        record("Yes", id="m1"),
        record("Yes", id="m2"),
        record("Yes", id="m1", session="other"),
        record("No", session="gone"),
        record("No", ts=now() + timedelta(days=3)),
    )
    outbox.close()
    span = ForgottenSpan(session_id="chat", first_seq=1, last_seq=1)
    assert erased(tmp_path, Erased("main", [span], lambda text: False), chat="m1") == 1
    assert erased(tmp_path, Erased("main", [], lambda text: False, Selection(session_id="gone"))) == 1
    assert len(path.read_bytes().splitlines()) == 3
    assert erased(tmp_path, Erased("main", [], lambda text: False, Selection(before=now() - timedelta(days=1)))) == 0
    assert erased(tmp_path, Erased("main", [], lambda text: False, Selection(before=now() + timedelta(days=1)))) == 2


def test_what_another_agent_was_refused_stays_and_is_no_residue(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    path = refused(
        outbox, record(f"Mine: {WORD}", agent="other"), record(f"Mine: {WORD}", session="agent:other:telegram")
    )
    outbox.close()
    before = path.read_bytes()
    assert erased(tmp_path) == 0
    assert path.read_bytes() == before
    assert left(tmp_path) == []
    assert erased(tmp_path, agent_id="other") == 2


def test_what_was_refused_for_a_key_that_names_nobody_is_the_default_agents_to_forget(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    refused(outbox, record(f"Mine: {WORD}", session=f"agent:{'p' * 200}:telegram"))
    outbox.close()
    assert erased(tmp_path, agent_id="other") == 0
    assert erased(tmp_path) == 1
    assert holding(tmp_path) == []


def test_what_cannot_be_read_is_left_and_told(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    path = refused(outbox, record("The ferry leaves."))
    outbox.close()
    broken = [f'{{"at":"2026-01-01","record":{{"sessionId":"c","message":"{WORD}'.encode(), b"\xff\xfe", b"[" * 50_000]
    path.write_bytes(path.read_bytes() + b"\n".join(broken))
    before = path.read_bytes()
    assert erased(tmp_path) == 0
    assert path.read_bytes() == before
    assert left(tmp_path) == [("outbox/agent/rejected.jsonl", "a line that cannot be read: look at it, and remove it")]


@pytest.mark.parametrize("message", [7, None, [WORD], {"role": WORD}, {"content": [{"type": "x", "deep": [WORD]}]}])
def test_what_was_refused_may_be_no_message(message: Any, tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    refused(outbox, msgspec.json.encode({"sessionId": "chat", "message": message}))
    outbox.close()
    assert erased(tmp_path) == int(WORD in str(message))
    assert holding(tmp_path) == []


def test_megabytes_and_odd_names_are_no_trouble(tmp_path: Path) -> None:
    for number, client in enumerate(("CON", "agent~2", "a b")):
        outbox = opened(tmp_path, client)
        refused(outbox, record("x" * 2_500_000 * number + WORD), record("small"))
        outbox.close()
    (tmp_path / "outbox" / "a file").write_text(WORD)
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(b'{"record":' + record(WORD) + b"}\n")
    (tmp_path / "outbox" / "empty").mkdir()
    (tmp_path / "outbox" / "empty" / "rejected.jsonl").symlink_to(elsewhere)
    assert erased(tmp_path) == 3
    assert WORD in elsewhere.read_text()  # nobody's to touch


def test_what_a_stop_left_half_written_goes(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    path = refused(outbox, record("The ferry leaves."), record(f"Its code is {WORD}"))
    outbox.close()
    path.with_suffix(".new").write_bytes(path.read_bytes())
    assert erased(tmp_path) == 2
    assert [each.name for each in tmp_path.rglob("rejected.*")] == ["rejected.jsonl"]
    assert holding(tmp_path, "ferry") == ["rejected.jsonl"]


def test_it_goes_from_every_file_of_what_was_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.client.outbox_folder.REJECTED_MAX_BYTES", 100)
    outbox = opened(tmp_path)
    refused(outbox, record(f"{WORD} one"), record("The ferry leaves."), record(f"{WORD} two"))
    names = ["rejected.jsonl", "rejected.1.jsonl", "rejected.2.jsonl"]
    assert [path.name for path in OutboxFolder(outbox.folder).rejected_paths()] == names
    outbox.close()
    assert left(tmp_path) == [(f"outbox/agent/{names[number]}", "its text") for number in (2, 0)]
    (outbox.folder / "rejected.2.new").write_bytes((outbox.folder / "rejected.2.jsonl").read_bytes())
    assert erased(tmp_path) == 3
    assert left(tmp_path) == []
    assert [each.name for each in tmp_path.rglob("rejected.*")] == ["rejected.1.jsonl"]
    assert holding(tmp_path, "ferry") == ["rejected.1.jsonl"]


def test_an_outbox_that_cannot_be_read_is_told_and_keeps_no_other_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for client in ("one", "two"):
        outbox = opened(tmp_path, client)
        refused(outbox, record(WORD))
        outbox.close()
    from offbook.client import outbox_erasing

    real = outbox_erasing.state_of

    def state_of(folder: Path) -> State:
        if folder.name == "one":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(outbox_erasing, "state_of", state_of)
    assert counted_in(outboxes(tmp_path), saying(WORD)) == 1
    with pytest.raises(StoreError, match="one: Permission denied: see that these can be written"):
        asyncio.run(outboxes(tmp_path).forget(saying(WORD)))
    assert not (tmp_path / "outbox" / "two" / "rejected.jsonl").exists()
    assert left(tmp_path) == [("outbox/one", "not looked through: Permission denied")]


# ── what was delivered, and what waits ──


def test_a_copy_of_what_was_delivered_goes_under_a_client_that_runs(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    delivered(outbox, record("The ferry leaves."), record(f"The code is {WORD}"))
    assert holding(tmp_path) != []
    assert erased(tmp_path) == 1
    assert holding(tmp_path) == []
    assert outbox.append(record("And then?"))
    outbox.abandon()  # as kill -9 does
    again = opened(tmp_path)
    assert [msgspec.json.decode(each.record)["message"]["content"] for each in again.peek(9, PLENTY)] == ["And then?"]
    assert again.status()["damaged"] == 0
    again.advance(3)
    again.close()
    assert list(tmp_path.rglob("*.damaged")) == []


def test_what_went_ahead_of_a_lane_that_is_held_was_delivered(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    assert outbox.append(record(f"{WORD}, held", agent="bob"), "bob")
    assert outbox.append(record(f"{WORD}, delivered", agent="ann"), "ann")
    outbox.advance(outbox.peek(9, PLENTY, {"bob"})[-1].ordinal)
    assert erased(tmp_path, agent_id="ann") == 1
    assert left(tmp_path, agent_id="ann") == []
    assert [what for _, what in left(tmp_path, agent_id="bob")] == [
        "it waits to be delivered: `offbook flush`, then forget it again"
    ]
    assert [queued.lane for queued in outbox.peek(9, PLENTY)] == ["bob"]


def test_what_waits_is_left_and_told(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    assert outbox.append(record(f"The code is {WORD}"))
    assert erased(tmp_path) == 0
    assert [what for _, what in left(tmp_path)] == ["it waits to be delivered: `offbook flush`, then forget it again"]
    (queued,) = outbox.peek(1, PLENTY)
    assert WORD.encode() in queued.record
    outbox.advance(queued.ordinal)
    assert erased(tmp_path) == 1
    outbox.close()


def test_a_damaged_file_that_is_kept_for_people_loses_it_too(tmp_path: Path) -> None:
    folder = tmp_path / "outbox" / "agent"
    folder.mkdir(parents=True)
    lines = [b'[1,1,"",%b]' % record(f"The code is {WORD}"), b"torn", b'[2,2,"",%b]' % record("The ferry leaves.")]
    (folder / "1.damaged").write_bytes(b"\n".join(lines) + b"\n")
    assert erased(tmp_path) == 1
    assert (folder / "1.damaged").read_bytes().split() == b" ".join(lines[1:]).split()


# ── as a part of forgetting ──


async def test_a_memory_counts_erases_and_proves_it(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    refused(outbox, record(f"It was: {WORD} 7741", session="never-taken"), record("The ferry leaves."))
    outbox.close()
    async with open_parts(Home(tmp_path), Settings(embedding=Embedding(model="none"))) as (memory, _):
        would = await memory.forget("main", matching=WORD, dry_run=True)
        assert (would.reached.messages, would.reached.outbox_records) == (0, 1)
        assert holding(tmp_path) == ["rejected.jsonl"]
        receipt = await memory.forget("main", matching=WORD)
        assert (receipt.reached.messages, receipt.reached.outbox_records, receipt.residue) == (0, 1, [])
        assert receipt.signature
        check = await memory.verify_forgotten(receipt, matching=WORD)
        assert (check.is_genuine, check.residue) == (True, [])
        outbox = opened(tmp_path)
        refused(outbox, record(f"Once more: {WORD}"))
        outbox.close()
        check = await memory.verify_forgotten(receipt, matching=WORD)
        assert [(one.where, one.what) for one in check.residue] == [("outbox/agent/rejected.jsonl", "its text")]
        by_session = await memory.forget("main", session_id="never-taken")
        assert (by_session.reached.outbox_records, by_session.signature) == (0, "")
        outbox = opened(tmp_path)
        refused(outbox, record("Yes", session="never-taken"))
        by_session = await memory.forget("main", session_id="never-taken")
        assert by_session.reached.outbox_records == 2
        assert by_session.signature
    outbox.close()
