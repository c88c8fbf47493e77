"""What was said, as the swap-memory plugin keeps it: `swap.jsonl`, a line for each message, in order of time.

A line names its session, so two messages of one id in two sessions are two lines, and come back as two.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, get_args

import msgspec

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.files import (
    LONGEST_EVENT_BYTES,
    decoded,
    digest_of,
    iso,
    key_of,
    kind_of_file,
    moment_of,
    owner_in,
)
from offbook.client.history.formats import FORMATS, Owner
from offbook.client.recorder import encoded
from offbook.ingest.noise import noise_kind
from offbook.model.files import open_regular
from offbook.model.types import Message, Role
from offbook.transfer.documents.archive_days import Spool, replace_file
from offbook.transfer.provider_export import Exported, ExportedMessage, LeftOutCounts, Written, id_of, spoken

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


# ── `swap.jsonl`, where the swap-memory plugin keeps what was said ──
# A line for each message, of many sessions.
# The file is read once to find out which lines are whose, and then each session's lines by their places in it.


NAME = "swap.jsonl"
PLACES = (NAME, f"swap/{NAME}", f"agents/*/swap/{NAME}")
"""Where it lies under the folder of an agent, or of a host."""
ROLES = frozenset(get_args(Role))
_BLOCK_BYTES = 65_536


class SwapLine(msgspec.Struct, rename="camel"):
    """What is read of a line; a vector is passed over."""

    id: Any = None
    ts: Any = None
    role: Any = None
    content: Any = None
    session_key: Any = None
    embedded_at: Any = None
    embedding: msgspec.Raw = msgspec.Raw(b"null")
    pinned: Any = None


_decoder = msgspec.json.Decoder(SwapLine)


class _Session(NamedTuple):
    offsets: array[int]
    numbers: array[int]


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    files = [path] if path.is_file() else _files_under(path)
    if not files:
        report.cannot_read(str(path), f"holds no {NAME}: {FORMATS['swap-jsonl'].give}")
    return [each for file in files for each in _conversations_in(file, report, owner)]


def _files_under(folder: Path) -> list[Path]:
    return next((found for place in PLACES if (found := sorted(folder.glob(place)))), [])


def _conversations_in(file: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    owner = owner_in(file.parent, owner)
    unnamed = f"swap:{owner('')}"
    if kind := kind_of_file(file):
        report.cannot_read(str(file), f"is {kind}, and no {NAME}: {FORMATS['swap-jsonl'].give}")
        return []
    sessions: dict[str, _Session] = {}
    sizes: dict[str, int] = {}
    try:
        with open_regular(file) as source:
            for number, offset, raw in _lines(source):
                line = _decoded(raw, f"{file} line {number}")
                if isinstance(line, Damage):
                    report.agent(owner(unnamed)).skipped += 1
                    report.problem(line.where, line.reason)
                    continue
                key = key_of(line.session_key) or unnamed
                session = sessions.setdefault(key, _Session(array("Q"), array("Q")))
                session.offsets.append(offset)
                session.numbers.append(number)
                sizes[key] = sizes.get(key, 0) + len(raw)
                _leave(line, report)
    except OSError as error:
        report.cannot_read(str(file), f"cannot be read: {error}")
    return [
        Conversation(owner(key), key, sizes[key], partial(_messages, file, key, unnamed, session))
        for key, session in sessions.items()
    ]


def _leave(line: SwapLine, report: ImportReport) -> None:
    if bytes(line.embedding) not in (b"null", b"[]"):
        report.leave("embeddings", "of another model: made anew")
    report.note_time(line.ts, moment_of(line.ts))


def _messages(file: Path, key: str, unnamed: str, session: _Session, damaged: Damaged) -> Iterator[Ready]:
    try:
        with open_regular(file) as source:
            for offset, number in zip(session.offsets, session.numbers, strict=True):
                source.seek(offset)
                where = f"{file} line {number}"
                raw = source.readline(LONGEST_EVENT_BYTES)
                line = _decoded(raw, where)
                if isinstance(line, Damage) or (key_of(line.session_key) or unnamed) != key:
                    damaged(Damage(where, "was changed while it was read: run this again"))
                    continue
                found = _ready(line, key, len(raw), where)
                if isinstance(found, Damage):
                    damaged(found)
                else:
                    yield found
    except OSError as error:
        damaged(Damage(str(file), f"cannot be read: {error}", is_whole=True))


def _ready(line: SwapLine, key: str, size_bytes: int, where: str) -> Ready | Damage:
    if not isinstance(line.role, str) or line.role not in ROLES:
        return Damage(where, f"its role is {line.role!r}, which is none of {', '.join(sorted(ROLES))}")
    if not isinstance(line.content, str) or not line.content:
        return Damage(where, "has no text as its content")
    at = moment_of(line.ts) or moment_of(line.embedded_at)
    wire = {"id": key_of(line.id) or _own_id(line, key), "role": line.role, "content": line.content}
    if at is not None:
        wire["ts"] = iso(at)
    return Ready(wire, at, size_bytes, where, pinned=bool(line.pinned))


def _own_id(line: SwapLine, key: str) -> str:
    """By what it says, not by its number: the plugin takes lines away at the front."""
    return digest_of(key, str(line.ts), str(line.role), str(line.content))


def _decoded(raw: bytes, where: str) -> SwapLine | Damage:
    if len(raw) == LONGEST_EVENT_BYTES and not raw.endswith(b"\n"):
        return Damage(where, f"longer than {LONGEST_EVENT_BYTES:,} bytes")
    try:
        try:
            return _decoder.decode(raw)
        except msgspec.DecodeError:  # half a character, perhaps, as JavaScript writes it
            return _decoder.decode(encoded(decoded(raw)))
    except (ValueError, RecursionError) as error:
        return Damage(where, f"not a line of {NAME}: {error}")


def _lines(source: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Each with its number and its place; of one that is too long only its beginning."""
    number, offset = 0, 0
    while raw := source.readline(LONGEST_EVENT_BYTES):
        number += 1
        length = len(raw)
        if length == LONGEST_EVENT_BYTES and not raw.endswith(b"\n"):
            while part := source.readline(_BLOCK_BYTES):
                length += len(part)
                if part.endswith(b"\n"):
                    break
        if raw.strip():
            yield number, offset, raw
        offset += length
