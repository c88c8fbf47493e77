"""The coding agents, and what is new in their transcripts, recorded.

What differs between them: how their sessions are called, where they lie, how a line of one is read."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import msgspec
from msgspec.structs import asdict

from offbook.client.blocking import Client
from offbook.client.history.conversations import Damage, Ready
from offbook.client.history.files import LONGEST_EVENT_BYTES, TranscriptLine, decoded, line_of, text_or_none
from offbook.contrib.importers import claude_code, codex
from offbook.contrib.importers.claude_code import Skipped
from offbook.model.errors import InvalidInput, OffbookError
from offbook.model.private_files import OPEN_OURS, make_private, write_private
from offbook.model.types import Value

# ── What a coding agent tells its hooks: one JSON document, on stdin or as an argument ──

LONGEST_DOCUMENT_BYTES = 16 * 1024 * 1024
"""A prompt with a pasted file in it is large; what is larger than this is none."""
_TURN_ENDED = "agent-turn-complete"
"""The one event that `notify` knows."""


class Document(Value, frozen=True):
    """As far as it matters here. `event` is "" where the host does not name it."""

    event: str
    session_id: str
    transcript: Path | None = None
    prompt: str = ""
    source: str = ""
    """Why a session starts: startup, resume, clear, compact."""
    reason: str = ""
    """Why it ended."""


def read_document(raw: bytes | str) -> Document:
    """Raises InvalidInput where it is none of a hook's."""
    if len(raw) > LONGEST_DOCUMENT_BYTES:
        raise InvalidInput(f"the document is larger than {LONGEST_DOCUMENT_BYTES:,} bytes")
    try:
        fields = decoded(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the document is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidInput("the document is not a JSON object")
    if fields.get("type") == _TURN_ENDED:
        return Document(event="Stop", session_id=_text(fields, "thread-id"))
    session_id = _text(fields, "session_id")
    path = _path(fields.get("transcript_path"))
    if not session_id and path is None:
        raise InvalidInput("the document names no session: it is not that of a hook")
    return Document(
        event=_text(fields, "hook_event_name"),
        session_id=session_id,
        transcript=path,
        prompt=_text(fields, "prompt"),
        source=_text(fields, "source"),
        reason=_text(fields, "reason"),
    )


def _text(fields: dict[str, Any], name: str) -> str:
    return text_or_none(fields.get(name)) or ""


def _path(value: Any) -> Path | None:
    named = text_or_none(value)
    if named is None or "\0" in named:
        return None
    path = Path(named)
    return path.expanduser() if named.startswith("~/") else path


AgentName = Literal["claude-code", "codex"]


class Session(NamedTuple):
    """`read_line` is None where nothing of it is to be recorded, because there is no transcript."""

    key: str
    transcript: Path | None = None
    read_line: Callable[[TranscriptLine], Ready | Skipped | Damage] | None = None
    is_sub_agent: bool = False
    """Somebody else's errand: what comes of it stands in the session that asked for it."""


def session_of(agent: AgentName, document: Document, environ: Mapping[str, str]) -> Session:
    """The session a document speaks of, under the key that `offbook import` gives it."""
    return _of_codex(document, environ) if agent == "codex" else _of_claude_code(document)


def _of_claude_code(document: Document) -> Session:
    path = document.transcript
    key = claude_code.session_key(document.session_id if path is None else path.stem)
    if path is None or not path.is_file():
        return Session(key)
    # A session that goes on with another one holds copies of it; that one has been told of under its own name.
    beside = frozenset(each.stem for each in path.parent.glob("*.jsonl"))
    return Session(key, path, lambda line: claude_code.message_of(line, path.stem, beside))


def _of_codex(document: Document, environ: Mapping[str, str]) -> Session:
    path = document.transcript or rollout_of(document.session_id, codex_home(environ))
    if path is None or not path.is_file():
        return Session(codex.session_key(document.session_id))
    head = codex.head_of(path)
    key = codex.session_key(head.session_id)
    copies = codex.copies_of(head, lambda session_id: _recorded_rollout(session_id, codex_home(environ)))
    return Session(key, path, lambda line: codex.message_of(line, head, copies), head.is_sub_agent)


def _recorded_rollout(session_id: str, home: Path) -> Path | None:
    path = rollout_of(session_id, home)
    return None if path is None or codex.head_of(path).is_sub_agent else path


def codex_home(environ: Mapping[str, str]) -> Path:
    named = environ.get("CODEX_HOME")
    return Path(named) if named else Path("~/.codex").expanduser()


def rollout_of(session_id: str, home: Path) -> Path | None:
    """The newest file of a session. `notify` names only the session."""
    if not session_id or not all(letter.isalnum() or letter == "-" for letter in session_id):
        return None  # it becomes part of a pattern
    for day in _days(home / "sessions"):
        for path in sorted(day.glob(f"rollout-*-{session_id}.jsonl"), reverse=True):
            return path
    return None


def _days(sessions: Path) -> Iterator[Path]:
    """The newest first: `YYYY/MM/DD`."""
    yield from sorted(sessions.glob("*/*/*"), reverse=True)


# ── What is new in a transcript, recorded ──
# Whatever happens in between, nothing is lost and nothing stored twice.
# A message goes to the outbox, on disk for good, before the place is kept: a hook that is killed, or a machine that
# loses its power, leaves messages that the next one reads again, under the same ids. The ids are those of `offbook
# import`, so that neither doubles what the other stored.


KEPT_DAYS = 90
"""A session that goes on after that is read from its beginning again; what is stored is stored once."""
_PAUSE_SECONDS = 0.02


class ReadByAnother(OffbookError):
    """Another hook reads this transcript now."""


class Mark(Value, frozen=True):
    """Behind a line: how many bytes and how many lines come before, and how that line ended."""

    offset: int = 0
    number: int = 0
    length: int = 0
    digest: str = ""
    """Of the last `length` bytes before `offset`. "" in what an older version kept: it is not known."""


class Place(Mark, frozen=True):
    """How far it was read, and where to go on where the host has taken back what stood there."""

    earlier: tuple[Mark, ...] = ()
    """The oldest first, the closer the nearer: few of them, however long the transcript is."""

    def begun_here(self) -> tuple[Mark, ...]:
        """`earlier` for the places behind this one."""
        here = Mark(offset=self.offset, number=self.number, length=self.length, digest=self.digest)
        return thinned((*self.earlier, here)) if self.digest else self.earlier


def thinned(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Of those that are about as far from the newest one the oldest, which will be the next distance's in its turn."""
    kept: dict[int, Mark] = {}
    for mark in marks:
        kept.setdefault((marks[-1].offset - mark.offset).bit_length(), mark)
    return tuple(kept.values())


class Places:
    """`reader`: for whom it is read. A session that two hooks record, each for an agent of its own, is read by both."""

    def __init__(self, folder: Path, reader: str = "") -> None:
        self._folder = folder
        self._reader = reader

    @contextmanager
    def held(self, transcript: Path, *, patience_seconds: float) -> Iterator[None]:
        """Hooks of one session may run beside each other. Raises ReadByAnother, OSError."""
        make_private(self._folder.parent)
        make_private(self._folder)
        handle = os.open(self._file(transcript, "lock"), OPEN_OURS, 0o600)
        try:
            _lock(handle, time.monotonic() + patience_seconds)
            yield
        finally:
            os.close(handle)

    def of(self, transcript: Path) -> Place:
        """The beginning, where nobody has read it, or the file that said so cannot be read."""
        try:
            return msgspec.json.decode(self._file(transcript, "json").read_bytes(), type=Place)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return Place()

    def keep(self, transcript: Path, place: Place) -> None:
        write_private(self._file(transcript, "json"), msgspec.json.encode(place).decode(), is_durable=False)

    def thin_out(self) -> None:
        oldest = time.time() - KEPT_DAYS * 86_400
        for path in self._folder.glob("*"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _file(self, transcript: Path, ending: str) -> Path:
        # A digest: the path may be longer than a name can be, and no two of them may meet.
        named = os.fsencode(transcript.absolute()) + b"\0" + self._reader.encode(errors="replace")
        digest = sha256(named).hexdigest()[:32]
        return self._folder / f"{digest}.{ending}"


def _lock(handle: int, until: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise ReadByAnother("another hook reads this transcript: the next one reads what is left") from None
            time.sleep(_PAUSE_SECONDS)


# ── What a transcript holds behind a place, a line at a time and only so much at once ──

_BLOCK_BYTES = 65_536
"""Also the most of a line's end that is looked at to know it again."""


def lines_behind(path: Path, place: Place, limit_bytes: int) -> Iterator[tuple[TranscriptLine | Damage | None, Place]]:
    """Each line and the place behind it; None for an empty one. A line that is not finished is left for the next time.

    Claude Code takes lines back: it cuts the end off and writes it anew, and by the next hook the file may be longer
    than it was. So where another line ends at the place, or none, reading goes on at the newest of the earlier places
    that is still there, else from the beginning: what is read again has the ids it had. Raises OSError."""
    with path.open("rb") as source:
        place = _still_there(source, place)
        earlier = place.begun_here()
        source.seek(place.offset)
        end = place.offset + limit_bytes
        while place.offset < end:
            raw = ending = source.readline(LONGEST_EVENT_BYTES)
            is_whole = raw.endswith(b"\n")
            if not is_whole and (len(raw) < LONGEST_EVENT_BYTES or not (ending := _pass_over(source))):
                return
            ending = ending[-_BLOCK_BYTES:]
            place = Place(
                offset=source.tell(),
                number=place.number + 1,
                length=len(ending),
                digest=_digest(ending),
                earlier=earlier,
            )
            where = f"{path.name} line {place.number}"
            if not is_whole:
                yield Damage(where, f"longer than {LONGEST_EVENT_BYTES:,} bytes"), place
            else:
                yield (line_of(place.number, raw, where) if raw.strip() else None), place


def _still_there(source: IO[bytes], place: Place) -> Place:
    if _ends_as(source, place):
        return place
    for at in range(len(place.earlier) - 1, -1, -1):
        mark = place.earlier[at]
        if _ends_as(source, mark):
            return Place(**asdict(mark), earlier=place.earlier[:at])
    return Place()


def _ends_as(source: IO[bytes], mark: Mark) -> bool:
    """Whether the line that ends there is the one that did. Where that is not known, whether any does."""
    length = mark.length if mark.digest else 1
    if mark.offset < length:
        return mark.offset == 0
    source.seek(mark.offset - length)
    found = source.read(length)
    if not mark.digest:
        return found == b"\n"
    return len(found) == length and _digest(found) == mark.digest


def _digest(ending: bytes) -> str:
    return blake2b(ending, digest_size=16).hexdigest()


def _pass_over(source: IO[bytes]) -> bytes:
    """To the end of the line: its last part, or nothing where it has no end yet."""
    while part := source.readline(_BLOCK_BYTES):
        if part.endswith(b"\n"):
            return part
    return b""


BYTES_AT_ONCE = 8 * 1024 * 1024
"""Of a transcript, in one call: what a hook reads in well under a second. What is left is read by the next."""


class Captured(NamedTuple):
    """`is_kept` False: the outbox took no more, and the same lines are read again the next time."""

    messages: int = 0
    damaged: int = 0
    is_kept: bool = True


def capture(
    client: Client,
    session: Session,
    places: Places,
    *,
    limit_bytes: int = BYTES_AT_ONCE,
    patience_seconds: float = 0.2,
) -> Captured:
    """Raises ReadByAnother, OSError."""
    if session.transcript is None or session.read_line is None:
        return Captured()
    with places.held(session.transcript, patience_seconds=patience_seconds):
        begun = place = places.of(session.transcript)
        messages = damaged = 0
        for line, behind in lines_behind(session.transcript, begun, limit_bytes):
            place = behind
            read_line = line if line is None or isinstance(line, Damage) else session.read_line(line)
            if isinstance(read_line, Ready):
                client.record(session.key, read_line.wire)
                messages += 1
            damaged += isinstance(read_line, Damage)
        is_kept = not messages or _is_kept(client, messages)
        if is_kept and place != begun:
            places.keep(session.transcript, place)
    return Captured(messages, damaged, is_kept)


def _is_kept(client: Client, messages: int) -> bool:
    """Whether the outbox has them on disk for good, every one, or the provider has them."""
    if client.outbox_status()["invalid"] >= messages:  # all of them: it is not the messages
        return False
    return client.sync() or (client.settle(1.0) and client.sync())
