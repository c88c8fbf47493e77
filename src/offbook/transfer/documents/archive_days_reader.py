"""The archives of the continuity plugin: `archive/YYYY-MM-DD.json`, what was said on a day, of all sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready, is_unknown_time
from offbook.client.history.fields import decoded, iso, key_of, moment_of, owner_in
from offbook.client.history.files import kind_of_file
from offbook.client.history.formats import FORMATS, Owner
from offbook.model.plain_names import is_digits
from offbook.transfer.documents.exchange_ids import AGENT, USER, ExchangeKey, bases, exchange_ids

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
        report.unreadable += 1
        report.problem(str(path), f"holds no archive of a day: {FORMATS['archive'].give}")
        return []
    owner = owner_in(files[0].parent, owner)
    unnamed = unnamed_session(owner)
    found: dict[str, list[Path]] = {}
    sizes: dict[str, int] = {}
    for file in files:
        day = read_day(file, unnamed)
        if isinstance(day, Damage):
            report.unreadable += 1
            report.problem(day.where, day.reason)
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
