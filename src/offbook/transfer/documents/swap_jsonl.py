"""What was said, as the swap-memory plugin keeps it: `swap.jsonl`, a line for each message, in order of time.

A line names its session, so two messages of one id in two sessions are two lines, and come back as two.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from offbook.client.history.fields import iso
from offbook.ingest.noise import noise_kind
from offbook.model.types import Message
from offbook.transfer.documents.archive_days import Spool, replace_file
from offbook.transfer.documents.spoken import LeftOutCounts, id_of, spoken
from offbook.transfer.documents.swap_jsonl_reader import NAME
from offbook.transfer.provider_export import Exported, ExportedMessage, Written

SOURCE = "swap-memory"
_encoder = msgspec.json.Encoder()


def write(exported: Exported, folder: Path) -> Written:
    """`folder/swap.jsonl`."""
    leaving = LeftOutCounts()
    with closing(Spool(folder)) as spool:
        for each in exported.messages():
            text = spoken(each, leaving, has_pins=True)
            if text is None or _is_noise(each, text, leaving):
                continue
            at = iso(_time(each))
            line = _line(exported.agent_id, each, text, at)
            # By session, not by the order they were made in: that one is another once this is read again.
            spool.add((_time(each), each.session_id, each.seq), _encoder.encode(line) + b"\n")
        replace_file(folder / NAME, spool.in_order())
        return Written(files=1, records=len(spool), left_out=leaving.described())


def _is_noise(each: ExportedMessage, text: str, leaving: LeftOutCounts) -> bool:
    """Noise as it was said, or as it would be read: a picture with "ok" beside it is no more than "ok" here."""
    if each.noise is None and noise_kind(Message(role=each.message.role, content=text)) is None:
        return False
    leaving.leave("noise", "the plugin keeps none: what a host says to itself, or too short to say anything")
    return True


def _line(agent_id: str, each: ExportedMessage, text: str, at: str) -> dict[str, Any]:
    """The document's fields, and one more where it is pinned."""
    line: dict[str, Any] = {
        "id": id_of(agent_id, each),
        "ts": at,
        "role": each.message.role,
        "content": text,
        "embedding": None,
        "embeddedAt": None,
        "sessionKey": each.session_id,
        "contentLength": len(text),
        "sourcePlugin": SOURCE,
    }
    return {**line, "pinned": True} if each.pinned else line


def _time(each: ExportedMessage) -> Any:
    assert each.message.ts is not None, "an exported message has its time"
    return each.message.ts
