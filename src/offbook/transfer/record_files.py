"""Records as files: a folder for each agent, a line for each record, long strings of messages in files of their own.

    export.json                    which agents, and the digest of each one's lines
    agents/<name>/memory.jsonl     the records, in their order
    agents/<name>/parts/<sha256>   a string of a message, UTF-8

The same records make the same bytes: nothing here tells when or by which version it was written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, BinaryIO, NamedTuple, cast

import msgspec
from msgspec import Meta

from offbook.client.history.conversations import BYTES_AT_A_TIME, MESSAGES_AT_A_TIME
from offbook.model.errors import InvalidInput
from offbook.model.home import safe_name
from offbook.model.record import AgentRecord, Followed, MarkRecord, MessageRecord, Record
from offbook.model.types import Value

FORMAT = 1
INDEX, AGENTS, MEMORY, PARTS = "export.json", "agents", "memory.jsonl", "parts"
LONGEST_STRING_BYTES = 65_536
"""A longer one gets a file of its own, so that a line can be read in an editor."""
PART = "$part"

_decoder = msgspec.json.Decoder(Record)
Keep = Callable[[str, bytes], None]
Fetch = Callable[[str], str]


class ExportedAgent(Value, frozen=True):
    """`records` lines in `folder`, whose bytes have this digest."""

    agent_id: str
    folder: str
    records: int
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ExportIndex(Value, frozen=True):
    format: int
    agents: list[ExportedAgent]


# ── out ───────────────────────────────────────────────────────────────────────────────────────


def write_agent(root: Path, agent_id: str, records: Iterable[Record]) -> ExportedAgent:
    folder = f"{AGENTS}/{safe_name(agent_id)}"
    place = root / folder
    place.parent.mkdir(exist_ok=True, mode=0o700)
    place.mkdir(mode=0o700)

    def keep(digest: str, data: bytes) -> None:
        path = place / PARTS / digest
        if not path.exists():
            path.parent.mkdir(exist_ok=True, mode=0o700)
            with _private(path) as file:
                file.write(data)

    count, digest = 0, sha256()
    with _private(place / MEMORY) as file:
        for record in records:
            line = line_of(record, keep)
            file.write(line)
            digest.update(line)
            count += 1
        file.flush()
        os.fsync(file.fileno())
    return ExportedAgent(agent_id=agent_id, folder=folder, records=count, sha256=digest.hexdigest())


def write_index(root: Path, agents: Iterable[ExportedAgent]) -> None:
    index = ExportIndex(format=FORMAT, agents=list(agents))
    with _private(root / INDEX) as file:
        file.write(msgspec.json.format(msgspec.json.encode(index), indent=2) + b"\n")


def line_of(record: Record, keep: Keep) -> bytes:
    """The record in one line. `keep` is given each string that is moved out."""
    line = msgspec.json.encode(record)
    if isinstance(record, MessageRecord) and (len(line) > LONGEST_STRING_BYTES or b'"$' in line):
        document = msgspec.to_builtins(record)
        message = document["message"]
        for field in ("content", "meta"):
            if field in message:
                message[field] = moved_out(message[field], keep)
        line = msgspec.json.encode(document)
    return line + b"\n"


def moved_out(value: Any, keep: Keep) -> Any:
    """With a reference for each long string. What looks like a reference and is none gets one more `$`."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        if len(data) <= LONGEST_STRING_BYTES:
            return value
        digest = sha256(data).hexdigest()
        keep(digest, data)
        return {PART: digest}
    if isinstance(value, list):
        return [moved_out(item, keep) for item in value]
    if isinstance(value, dict):
        moved = {key: moved_out(item, keep) for key, item in value.items()}
        return {f"${key}": item for key, item in moved.items()} if _is_like_a_part(moved) else moved
    return value


def brought_back(value: Any, fetch: Fetch) -> Any:
    """What `moved_out` was given."""
    if isinstance(value, list):
        return [brought_back(item, fetch) for item in value]
    if not isinstance(value, dict):
        return value
    if list(value) == [PART] and isinstance(value[PART], str):
        return fetch(value[PART])
    back = {key: brought_back(item, fetch) for key, item in value.items()}
    return {key[1:]: item for key, item in back.items()} if _is_like_a_part(back) and PART not in back else back


def _is_like_a_part(value: dict[str, Any]) -> bool:
    return len(value) == 1 and (key := next(iter(value))).startswith("$") and key.lstrip("$") == PART[1:]


def _private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


# ── in ────────────────────────────────────────────────────────────────────────────────────────


class Source(Value, frozen=True):
    """The records of one agent, as they lie on the disk."""

    agent_id: str
    memory: Path
    size_bytes: int
    records: int | None = None
    sha256: str | None = None


def sources(path: Path) -> list[Source]:
    """Of an export's folder, or of one `memory.jsonl`. Nothing of them is checked yet."""
    if path.is_dir():
        return [_listed(path, agent) for agent in _index(path).agents]
    try:
        first = next(iter(_records(path, None)), None)
    except InvalidInput:
        first = None
    if not isinstance(first, AgentRecord):
        raise InvalidInput(
            f"{path} does not begin with an agent's record, as a {MEMORY} does: give the folder that `offbook export` "
            "made"
        )
    return [Source(agent_id=first.agent_id, memory=path, size_bytes=path.stat().st_size)]


def _index(folder: Path) -> ExportIndex:
    path = folder / INDEX
    try:
        index = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        raise InvalidInput(f"{folder} has no {INDEX}: give the folder that `offbook export` made") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}): export again") from None
    if index.get("format") != FORMAT:
        told = index.get("format")
        raise InvalidInput(f"{path} says format {told!r}, this Offbook reads {FORMAT}: import it with a newer one")
    try:
        found = msgspec.convert(index, ExportIndex)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path} cannot be read ({error}): export again") from None
    if len({agent.folder for agent in found.agents}) < len(found.agents):
        raise InvalidInput(f"{path} names a folder twice: export again")
    return found


def _listed(root: Path, agent: ExportedAgent) -> Source:
    parts = PurePosixPath(agent.folder).parts
    if len(parts) != 2 or parts[0] != AGENTS or parts[1] in ("..", ".") or "\\" in agent.folder or "\0" in agent.folder:
        raise InvalidInput(f"{root / INDEX} names the folder {agent.folder!r}, which is not in {AGENTS}: export again")
    memory = root / AGENTS / parts[1] / MEMORY
    if not memory.is_file():
        raise InvalidInput(f"{memory} is missing: copy the export whole")
    return Source(
        agent_id=agent.agent_id,
        memory=memory,
        size_bytes=memory.stat().st_size,
        records=agent.records,
        sha256=agent.sha256,
    )


def read_records(source: Source) -> Iterator[Record]:
    """One after the other, with its parts back in their places. What is not as it was written is an error; the digest
    is known at the end only."""
    digest, count = sha256(), 0
    for record in _records(source.memory, digest):
        agent_id = record.agent_id if isinstance(record, AgentRecord) else None
        if agent_id != (None if count else source.agent_id):
            raise InvalidInput(f"{source.memory} is not the memory of one agent, {source.agent_id!r}: export again")
        count += 1
        yield record
    if source.sha256 is not None and (digest.hexdigest(), count) != (source.sha256, source.records):
        raise InvalidInput(f"{source.memory} is not what {INDEX} says: it was changed or cut; copy or export it again")


def _records(memory: Path, digest: Any) -> Iterator[Record]:
    def fetch(name: str) -> str:
        return _part(memory.parent / PARTS, name)

    with memory.open("rb") as file:
        for number, line in enumerate(file, 1):
            if digest is not None:
                digest.update(line)
            try:
                yield _record(line, fetch)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise InvalidInput(f"line {number} of {memory} is no record ({error}): export again") from None


def _record(line: bytes, fetch: Fetch) -> Record:
    if b'"$' not in line:
        return cast(Record, _decoder.decode(line))
    document = msgspec.json.decode(line)
    message = document.get("message") if isinstance(document, dict) else None
    if isinstance(message, dict):
        for field in ("content", "meta"):
            if field in message:
                message[field] = brought_back(message[field], fetch)
    return cast(Record, msgspec.convert(document, Record))


def _part(folder: Path, name: str) -> str:
    path = folder / name
    if re.fullmatch("[0-9a-f]{64}", name) is None:
        raise InvalidInput(f"{name!r} in {folder.parent} is no part's name: export again")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"{path} is missing: copy the export whole") from None
    if sha256(data).hexdigest() != name:
        raise InvalidInput(f"{path} was changed or cut: copy or export it again")
    return data.decode("utf-8", "surrogatepass")


# ── Records of an export on their way to a provider: as many at a time as a request may hold ──


class Batch(NamedTuple):
    records: list[Record]
    follows: Followed | None
    """The message before them, where they go on with its session."""
    size_bytes: int


def batches(
    records: Iterator[Record], *, most_records: int = MESSAGES_AT_A_TIME, most_bytes: int = BYTES_AT_A_TIME
) -> Iterator[Batch]:
    """One record may be larger than a batch is: it goes alone."""
    batch: list[Record] = []
    follows = last = None
    size = 0
    for record in records:
        size_bytes = len(msgspec.json.encode(record))
        if batch and (len(batch) >= most_records or size + size_bytes > most_bytes):
            yield Batch(batch, follows, size)
            batch, size = [], 0
            follows = last if _goes_on(record, last) else None
        batch.append(record)
        size += size_bytes
        if isinstance(record, MessageRecord):
            last = _followed(record)
    if batch:
        yield Batch(batch, follows, size)


def _goes_on(record: Record, last: Followed | None) -> bool:
    if last is None or not isinstance(record, MessageRecord | MarkRecord):
        return False
    return record.session_id == last.session_id


def _followed(record: MessageRecord) -> Followed | None:
    at = record.message.ts
    return None if at is None else Followed(session_id=record.session_id, seq=record.seq, at=at)
