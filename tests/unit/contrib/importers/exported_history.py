"""A small memory that can be written and read again, and random ones of it."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from offbook.client.history.conversations import Conversation, Damage, ImportReport
from offbook.client.history.formats import Reader
from offbook.ingest.entries import check
from offbook.ingest.noise import noise_kind
from offbook.log.erasure import forgotten
from offbook.model.receipt import FORGOTTEN
from offbook.model.summary import SourceSpan, SummaryView, Usage
from offbook.model.types import Message
from offbook.transfer.provider_export import ExportedMessage

AGENT = "main"
AT = datetime(2026, 5, 10, 23, 58, tzinfo=UTC)


@dataclass
class History:
    """What `Exported` promises, from lists: sessions in the order they were first met."""

    agent_id: str = AGENT
    sessions: dict[str, list[Message]] = field(default_factory=dict)
    kept: list[SummaryView] = field(default_factory=list)
    pinned: set[tuple[str, int]] = field(default_factory=set)
    forgotten: set[tuple[str, int]] = field(default_factory=set)

    def add(self, session: str, message: Message) -> None:
        """As a store does it: one id once."""
        held = self.sessions.setdefault(session, [])
        if message.id is None or all(message.id != other.id for other in held):
            held.append(check(message))

    def messages(self) -> Iterator[ExportedMessage]:
        for session, messages in self.sessions.items():
            for seq, message in enumerate(messages, start=1):
                place = (session, seq)
                if place in self.forgotten:
                    yield ExportedMessage(session, seq, forgotten(message), FORGOTTEN, False)
                else:
                    yield ExportedMessage(session, seq, message, noise_kind(message), place in self.pinned)

    def summaries(self) -> Iterator[SummaryView]:
        yield from sorted(self.kept, key=lambda view: (view.level, view.id))


def owner(_: str) -> str:
    return AGENT


def report() -> ImportReport:
    return ImportReport(state="", is_dry_run=False)


def read(reader: Reader, path: Path) -> tuple[History, ImportReport]:
    """What the reader finds, in a memory that was empty."""
    told = report()
    history = History()
    for conversation in reader(path, told, owner):
        for message in messages_of(conversation):
            history.add(conversation.key, message)
    return history, told


def messages_of(conversation: Conversation, damages: list[Damage] | None = None) -> list[Message]:
    def damaged(damage: Damage) -> None:
        assert damages is not None, damage
        damages.append(damage)

    return [msgspec.convert(ready.wire, Message) for ready in conversation.messages(damaged)]


def files_under(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def summary(id_: str, text: str, spans: Sequence[tuple[str, int, int]], **fields: Any) -> SummaryView:
    usual: dict[str, Any] = {
        "sources": [],
        "source_messages": 2,
        "source_tokens": 100,
        "tokens": 20,
        "summarizer": "extractive",
        "prompt_version": "1",
        "fingerprint": "f",
        "usage": Usage(),
        "first_at": AT,
        "last_at": AT + timedelta(hours=1),
        "made_at": AT + timedelta(hours=2),
        "lost": 0,
        "losses": [],
    }
    where = [SourceSpan(session_id=session, first_seq=first, last_seq=last) for session, first, last in spans]
    return SummaryView(id=id_, level=int(id_[1]), spans=where, text=text, **{**usual, **fields})


# ── random ones ───────────────────────────────────────────────────────────────────────────────

TEXTS = st.one_of(
    st.sampled_from(
        [
            "The sourdough rests for 72 hours in the cold.",
            "我们上次说好了，周五之前把预算表交给王小姐。",
            "🐾🥖 The cat ate the bread, and the 🎂 as well.",
            "a\x00b in the middle of a longer text",
            'line\nbreak\r\n\u2028 and "quotes" --> <!-- \\ end of it',
            "[cron:daily] wake up",
            "ok",
            "",
            " ",
        ]
    ),
    st.text(st.characters(codec="utf-8"), max_size=40),
)
BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
        st.just({"type": "tool-call", "id": "c1", "name": "read", "arguments": {}}),
        st.just({"type": "image", "mediaType": "image/png", "data": "aGk="}),
        st.just({"type": "thinking", "thinking": "hm"}),
    ),
    max_size=3,
)
SESSIONS = st.sampled_from(
    ["agent:main:main", "chat", f"archive:{AGENT}", "会话 🐾", "a\nb: --> c", "../x", "CON", f"summaries:{AGENT}"]
)
IDS = st.one_of(
    st.none(),
    st.sampled_from(["m1", "m2", "消息", "2026-05-10T23:58:00.000Z_user"]),
    st.text(string.hexdigits, min_size=1),
)
TIMES = st.one_of(
    st.integers(0, 3).map(lambda minutes: AT + timedelta(minutes=minutes)),
    st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC)),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["user", "user", "assistant", "assistant", "tool", "system"]),
    content=st.one_of(TEXTS, TEXTS, BLOCKS),
    id=IDS,
    ts=TIMES,
    model=st.sampled_from([None, None, "gpt"]),
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History()
    for session, message in draw(st.lists(st.tuples(SESSIONS, MESSAGES), max_size=25)):
        history.add(session, message)
    return history
