"""What was said, as the continuity plugin archives it: `archive/YYYY-MM-DD.json`, a file for each day (UTC).

The plugin archives every text of users and agents, also what is too short to be recalled, and so does this. It knows
no ids. One is written where the reader would give another, so that what came from an archive goes back as it was.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, time
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready, is_unknown_time
from offbook.client.history.files import decoded, iso, key_of, kind_of_file, moment_of, owner_in
from offbook.client.history.formats import FORMATS, Owner
from offbook.model.plain_names import is_digits
from offbook.model.private_files import make_folders
from offbook.transfer.provider_export import Exported, ExportedMessage, LeftOutCounts, Written, id_of, spoken

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


# ── The ids of messages that their format gives none ──
# By the exchange that each is part of.
# The continuity plugin keeps what was said twice: each message in the archive of its day, and the exchanges of a
# day in `continuity.db`, which has only the time of an exchange. Paired here as the plugin pairs them, a message
# has the same id whichever of the two it is read from.


USER, AGENT = "user", "agent"


class ExchangeKey(NamedTuple):
    at: str
    sender: str
    session: str


def bases(day: Sequence[ExchangeKey]) -> list[str]:
    """The time of the exchange and who speaks: an answer has the time of its question."""
    found = []
    asked_at: str | None = None
    for said in day:
        if said.sender == USER:
            found.append(base(said.at, USER))
            asked_at = said.at
        else:
            found.append(base(asked_at or said.at, AGENT))
            asked_at = None
    return found


def base(exchange_at: str, sender: str) -> str:
    return f"{exchange_at}_{sender}"


class ExchangeNumbers:
    """Two messages of a session may have one base: the second gets a number."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def id_of(self, session: str, base: str) -> str:
        self._seen[session, base] += 1
        count = self._seen[session, base]
        return base if count == 1 else f"{base}#{count}"


def exchange_ids(day: Sequence[ExchangeKey]) -> list[str]:
    """For all messages of a day, in the order of its file."""
    numbering = ExchangeNumbers()
    return [numbering.id_of(said.session, base) for said, base in zip(day, bases(day), strict=True)]


# ── The archives of the continuity plugin ──
# `archive/YYYY-MM-DD.json`, what was said on a day, of all sessions.


FOLDER = "archive"
SENDERS = {"user": USER, "agent": AGENT, "assistant": AGENT}
ROLES = {USER: "user", AGENT: "assistant"}


class DayMessage(NamedTuple):
    id: str
    base: str
    """What its id is made of where it has none of its own."""
    at: datetime
    sender: str
    text: str
    session: str
    where: str


class Day(NamedTuple):
    messages: list[DayMessage]
    damages: list[Damage]
    without_text: int
    unknown_times: int


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    files = [path] if path.is_file() else day_files(path)
    if not files:
        report.cannot_read(str(path), f"holds no archive of a day: {FORMATS['archive'].give}")
        return []
    owner = owner_in(files[0].parent, owner)
    unnamed = unnamed_session(owner)
    found: dict[str, list[Path]] = {}
    sizes: dict[str, int] = {}
    for file in files:
        day = read_day(file, unnamed)
        if isinstance(day, Damage):
            report.cannot_read(day.where, day.reason)
            continue
        _report_damage(day, report, owner(unnamed))
        for message in day.messages:
            holding = found.setdefault(message.session, [])
            if not holding or holding[-1] != file:
                holding.append(file)
            sizes[message.session] = sizes.get(message.session, 0) + len(message.text.encode())
    return [
        Conversation(owner(key), key, sizes[key], partial(_messages, holding, key, unnamed))
        for key, holding in found.items()
    ]


def unnamed_session(owner: Owner) -> str:
    """For messages that name none."""
    return f"archive:{owner('')}"


def day_files(folder: Path) -> list[Path]:
    """In order of time. The folder may be the plugin's, which holds the one with the archives."""
    for place in (folder, folder / FOLDER):
        try:
            found = sorted(each for each in place.iterdir() if is_day_file(each))
        except OSError:
            continue
        if found:
            return found
    return []


def read_day(file: Path, unnamed: str) -> Day | Damage:
    try:
        document = decoded(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return Damage(str(file), f"{_damage_of(file, error)}: {FORMATS['archive'].give}", is_whole=True)
    messages = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(messages, list):
        return Damage(
            str(file),
            f"is no archive of a day, for it has no list of messages: {FORMATS['archive'].give}",
            is_whole=True,
        )
    return _day_of(messages, file, unnamed)


def _damage_of(file: Path, error: Exception) -> str:
    kind = kind_of_file(file)
    return f"is {kind}, and no archive of a day" if kind else f"cannot be read: {error}"


def _day_of(records: Sequence[Any], file: Path, unnamed: str) -> Day:
    damages, without_text, unknown_times = [], 0, 0
    rows: list[tuple[ExchangeKey, datetime, dict[str, Any], str]] = []
    last = _midnight(file)
    for number, record in enumerate(records, start=1):
        where = f"{file} message {number}"
        fault = _fault(record)
        if fault is not None:
            damages.append(Damage(where, fault))
            continue
        at = moment_of(record.get("timestamp"))
        unknown_times += is_unknown_time(record.get("timestamp"), at)
        last = at or last
        session = key_of(record.get("sessionId")) or unnamed
        rows.append((ExchangeKey(iso(last), SENDERS[record["sender"]], session), last, record, where))
        without_text += not record["text"]
    day = [said for said, _, _, _ in rows]  # those without text too: the plugin pairs them
    messages = [
        DayMessage(key_of(record.get("id")) or own_id, base, at, said.sender, record["text"], said.session, where)
        for (said, at, record, where), base, own_id in zip(rows, bases(day), exchange_ids(day), strict=True)
        if record["text"]
    ]
    return Day(messages, damages, without_text, unknown_times)


def _fault(record: Any) -> str | None:
    if not isinstance(record, dict):
        return "is no message"
    if record.get("sender") not in ("user", "agent", "assistant"):
        return f"its sender is {record.get('sender')!r}, neither user nor agent"
    return None if isinstance(record.get("text"), str) else "has no text"


def is_day_file(file: Path) -> bool:
    """`2026-05-08.json`"""
    return file.suffix == ".json" and [len(part) for part in file.stem.split("-") if is_digits(part)] == [4, 2, 2]


def _midnight(file: Path) -> datetime:
    """The time of what has none: it was said on that day."""
    try:
        return datetime.combine(date.fromisoformat(file.stem if is_day_file(file) else ""), time(), UTC)
    except ValueError:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _report_damage(day: Day, report: ImportReport, agent_id: str) -> None:
    for damage in day.damages:
        report.agent(agent_id).skipped += 1
        report.problem(damage.where, damage.reason)
    if day.without_text:
        report.leave("messages without text", "there is nothing in them", day.without_text)
    report.unknown_times(day.unknown_times)


def _messages(files: Sequence[Path], key: str, unnamed: str, damaged: Damaged) -> Iterator[Ready]:
    for file in files:
        day = read_day(file, unnamed)
        if isinstance(day, Damage):
            damaged(day)
            continue
        for message in day.messages:
            if message.session == key:
                yield ready_of(message)


def ready_of(message: DayMessage) -> Ready:
    wire = {"id": message.id, "role": ROLES[message.sender], "content": message.text, "ts": iso(message.at)}
    return Ready(wire, message.at, len(message.text.encode()), message.where)
