"""What was said, as the continuity plugin archives it: `archive/YYYY-MM-DD.json`, a file for each day (UTC).

The plugin archives every text of users and agents, also what is too short to be recalled, and so does this. It knows
no ids. One is written where the reader would give another, so that what came from an archive goes back as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from offbook.portability.archive_days import FOLDER
from offbook.portability.exchange_ids import AGENT, USER, Said, exchange_ids
from offbook.portability.exported import Exported, ExportedMessage, Written
from offbook.portability.wires import iso
from offbook.portability.writing.files import Spool, replace_file
from offbook.portability.writing.spoken import Leaving, id_of, spoken


class _Record(NamedTuple):
    at: str
    sender: str
    text: str
    session: str
    id: str


_decoder = msgspec.json.Decoder(_Record)


def write(exported: Exported, folder: Path) -> Written:
    """`folder/archive/2026-05-10.json` and so on."""
    leaving = Leaving()
    unnamed = f"archive:{exported.agent_id}"
    files = 0
    with closing(Spool(folder)) as spool:
        for each in exported.messages():
            text = spoken(each, leaving)
            if text is not None:
                record = _record(exported.agent_id, each, text)
                spool.add((each.message.ts, each.session_id, each.seq), msgspec.json.encode(record))
        for day, records in groupby(_decoded(spool), key=lambda record: record.at[:10]):
            document = _document(day, list(records), unnamed)
            # As JavaScript writes it, which is how the plugin does.
            text = json.dumps(document, ensure_ascii=False, indent=2)
            replace_file(folder / FOLDER / f"{day}.json", [text.encode()])
            files += 1
        return Written(files=files, records=len(spool), left_out=leaving.told())


def _record(agent_id: str, each: ExportedMessage, text: str) -> _Record:
    assert each.message.ts is not None, "an exported message has its time"
    sender = USER if each.message.role == "user" else AGENT
    return _Record(iso(each.message.ts), sender, text, each.session_id, id_of(agent_id, each))


def _decoded(spool: Spool) -> Iterator[_Record]:
    return (_decoder.decode(record) for record in spool.in_order())


def _document(day: str, records: Sequence[_Record], unnamed: str) -> dict[str, Any]:
    own_ids = exchange_ids([Said(record.at, record.sender, record.session) for record in records])
    messages = []
    for record, own_id in zip(records, own_ids, strict=True):
        message = {
            "timestamp": record.at,
            "sender": record.sender,
            "text": record.text,
            "sessionId": None if record.session == unnamed else record.session,
        }
        if record.id != own_id:
            message["id"] = record.id
        messages.append(message)
    return {"date": day, "messageCount": len(messages), "messages": messages}
