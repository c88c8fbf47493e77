"""All of one agent's index, in step with the log.

The log is followed through the agent's audit chain, in order. What was taken is appended to files and committed
now and then by a checkpoint; after a crash the files count as far as the checkpoint says, and the rest is taken
again. Files that do not fit their checkpoint, another way of reading words, another history under the same name:
in each case the folder is made anew from the log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from offbook.model.memory_entry import StoredVector
from offbook.model.private_files import make_folders
from offbook.model.types import Value
from offbook.search.index.records import IndexDamaged, is_damage
from offbook.search.index.rows import NO_ROW, IndexedMessage, Rows
from offbook.search.index.text import TextIndex
from offbook.search.index.vectors import VectorIndex, is_sound

FORMAT = 8
"""Of the files and of the way words are read: raise it where either changes, and the index is made anew."""
CHECKPOINT = "checkpoint.json"


class VectorMark(Value, frozen=True):
    """How far the vectors of a model have been taken."""

    folder: str
    dimensions: int
    count: int
    through_number: int


class Checkpoint(Value, frozen=True):
    format: int = FORMAT
    through_event: int = 0
    through_hash: str = ""
    rows: int = 0
    words: int = 0
    events: int = 0
    speakers: list[str] = msgspec.field(default_factory=list)
    called: dict[str, list[int]] = msgspec.field(default_factory=dict)
    labels: dict[str, int] = msgspec.field(default_factory=dict)
    vectors: dict[str, VectorMark] = msgspec.field(default_factory=dict)


class AgentIndex:
    """One thread at a time takes and commits; any may read."""

    _checkpoint: Checkpoint
    _through_event: int
    _rows: Rows
    _text: TextIndex
    _vectors: dict[str, VectorIndex]
    _through_number: dict[str, int]

    def __init__(self, folder: Path, *, silence: timedelta) -> None:
        self.folder = folder
        self._silence = silence
        self.is_dirty = False
        self.kept_sample: Any = None
        """What `candidates.ordinary` keeps between two queries."""
        try:
            self._open(_read_checkpoint(folder))
        except (OSError, ValueError, IndexError, msgspec.MsgspecError, RecursionError, IndexDamaged) as error:
            if not is_damage(error):
                self.close()
                raise
            # Whatever it is, it can be had again from the log.
            self.reset()

    # ── what there is ──

    @property
    def through_event(self) -> int:
        return self._through_event

    @property
    def through_hash(self) -> str:
        """Of the event the checkpoint ends in; empty at the beginning."""
        return self._checkpoint.through_hash

    @property
    def checkpointed_event(self) -> int:
        return self._checkpoint.through_event

    @property
    def rows(self) -> Rows:
        return self._rows

    @property
    def text(self) -> TextIndex:
        return self._text

    def vectors(self, model: str) -> VectorIndex | None:
        return self._vectors.get(model)

    def vectors_through(self, model: str) -> int:
        return self._through_number.get(model, 0)

    # ── taking ──

    def take(self, said: Sequence[IndexedMessage], through_event: int) -> None:
        if said:
            first = self._rows.count
            self._rows.append(said)
            self._text.add(first, said)
            self.is_dirty = True
        self._through_event = through_event

    def take_vectors(self, model: str, dimensions: int, stored: Sequence[StoredVector]) -> None:
        """All parts of a message together. Those of a message that has no row (yet) are passed over."""
        index = self._vectors.get(model)
        if index is None:
            index = self._vectors[model] = VectorIndex(self._vector_folder(model), dimensions, count=0)
        sound = [one for one in stored if is_sound(one.data, dimensions)]
        if sound:
            rows = self._rows.find([one.place for one in sound])
            known = np.flatnonzero(rows != NO_ROW)
            data = np.frombuffer(b"".join(sound[at].data for at in known), np.int8).reshape(len(known), dimensions + 4)
            parts = np.array([sound[at].part for at in known], np.int64)
            if len(known):
                index.append(rows[known], parts, data)
                self.is_dirty = True
        if stored:
            self._through_number[model] = stored[-1].number

    def drop_vectors(self, model: str) -> None:
        index = self._vectors.pop(model, None)
        self._through_number.pop(model, None)
        if index is not None:
            index.close()
            left = {name: mark for name, mark in self._checkpoint.vectors.items() if name != model}
            self._checkpoint = msgspec.structs.replace(self._checkpoint, vectors=left)
            _write_checkpoint(self.folder, self._checkpoint)
            shutil.rmtree(self._vector_folder(model), ignore_errors=True)

    def commit(self, through_hash: str) -> None:
        """What was taken survives a crash of the machine when this returns."""
        self._rows.sync()
        for index in self._vectors.values():
            index.sync()
        self._text.commit(self._rows.count)
        self._checkpoint = Checkpoint(
            through_event=self._through_event,
            through_hash=through_hash,
            rows=self._rows.count,
            words=self._rows.word_count,
            events=self._rows.events.count,
            speakers=list(self._rows.speakers),
            labels=dict(self._rows.labels),
            called={name: list(times) for name, times in self._rows.called.items()},
            vectors={
                model: VectorMark(
                    folder=_folder_name(model),
                    dimensions=index.dimensions,
                    count=index.count,
                    through_number=self._through_number.get(model, 0),
                )
                for model, index in self._vectors.items()
            },
        )
        _write_checkpoint(self.folder, self._checkpoint)
        self.is_dirty = False

    def reset(self) -> None:
        """Begin again from an empty folder. Only where nobody reads yet."""
        self.discard()
        self._open(Checkpoint())

    def discard(self) -> None:
        """Let go of it and remove its files. Whoever still reads may go on."""
        # A full disk, a damaged file: what cannot be rolled back goes all the same.
        with suppress(OSError, ValueError, IndexDamaged):
            self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """What was not committed is taken again from the log. Whoever still reads may go on."""
        self.kept_sample = None
        for part in (
            getattr(self, "_rows", None),
            getattr(self, "_text", None),
            *getattr(self, "_vectors", {}).values(),
        ):
            if part is not None:
                part.close()

    # ── how ──

    def _open(self, checkpoint: Checkpoint) -> None:
        if checkpoint.format != FORMAT:
            raise ValueError("made by another version")
        make_folders(self.folder)
        self._checkpoint = checkpoint
        self._through_event = checkpoint.through_event
        self._rows = Rows(
            self.folder,
            rows=checkpoint.rows,
            words=checkpoint.words,
            events=checkpoint.events,
            speakers=checkpoint.speakers,
            called=checkpoint.called,
            labels=checkpoint.labels,
            silence=self._silence,
        )
        self._text = TextIndex(self.folder / "text", rows=checkpoint.rows)
        self._vectors = {}
        for model, mark in checkpoint.vectors.items():
            self._vectors[model] = VectorIndex(self._vector_folder(model), mark.dimensions, count=mark.count)
        self._through_number = {model: mark.through_number for model, mark in checkpoint.vectors.items()}

    def _vector_folder(self, model: str) -> Path:
        return self.folder / "vectors" / _folder_name(model)


def _folder_name(model: str) -> str:
    """Safe on every file system, and of one model only."""
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in model)[:40].lower()
    return f"{readable}-{sha256(model.encode()).hexdigest()[:12]}"


def _read_checkpoint(folder: Path) -> Checkpoint:
    try:
        return msgspec.json.decode((folder / CHECKPOINT).read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        if any(folder.glob("*")):
            raise ValueError("files without a checkpoint") from None
        return Checkpoint()


def _write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    unfinished = folder / f"{CHECKPOINT}.new"
    with unfinished.open("wb") as file:
        file.write(msgspec.json.encode(checkpoint))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / CHECKPOINT)
