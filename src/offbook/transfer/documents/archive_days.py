"""What was said, as the continuity plugin archives it: `archive/YYYY-MM-DD.json`, a file for each day (UTC).

The plugin archives every text of users and agents, also what is too short to be recalled, and so does this. It knows
no ids. One is written where the reader would give another, so that what came from an archive goes back as it was.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from offbook.client.history.fields import iso
from offbook.model.private_files import make_folders
from offbook.transfer.documents.archive_days_reader import FOLDER
from offbook.transfer.documents.exchange_ids import AGENT, USER, ExchangeKey, exchange_ids
from offbook.transfer.documents.spoken import LeftOutCounts, id_of, spoken
from offbook.transfer.provider_export import Exported, ExportedMessage, Written

# ── Files written for others: at once or not at all, and the same bytes each time ──


def replace_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Readable by its owner only, as all that is remembered. A kill leaves what was there before."""
    make_folders(path.parent)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


class Spool:
    """Records put into another order without holding them: they wait in a file that has no name, their keys here."""

    def __init__(self, folder: Path) -> None:
        make_folders(folder)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 closed by `close`
        self._places: list[tuple[tuple[Any, ...], int, int]] = []
        self._end = 0

    def __len__(self) -> int:
        return len(self._places)

    def add(self, key: tuple[Any, ...], record: bytes) -> None:
        """No two keys are the same."""
        self._file.write(record)
        self._places.append((key, self._end, len(record)))
        self._end += len(record)

    def in_order(self) -> Iterator[bytes]:
        self._places.sort()
        for _, offset, length in self._places:
            self._file.seek(offset)
            yield self._file.read(length)

    def close(self) -> None:
        self._file.close()


class _Record(NamedTuple):
    at: str
    sender: str
    text: str
    session: str
    id: str


_decoder = msgspec.json.Decoder(_Record)


def write(exported: Exported, folder: Path) -> Written:
    """`folder/archive/2026-05-10.json` and so on."""
    leaving = LeftOutCounts()
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
        return Written(files=files, records=len(spool), left_out=leaving.described())


def _record(agent_id: str, each: ExportedMessage, text: str) -> _Record:
    assert each.message.ts is not None, "an exported message has its time"
    sender = USER if each.message.role == "user" else AGENT
    return _Record(iso(each.message.ts), sender, text, each.session_id, id_of(agent_id, each))


def _decoded(spool: Spool) -> Iterator[_Record]:
    return (_decoder.decode(record) for record in spool.in_order())


def _document(day: str, records: Sequence[_Record], unnamed: str) -> dict[str, Any]:
    own_ids = exchange_ids([ExchangeKey(record.at, record.sender, record.session) for record in records])
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
