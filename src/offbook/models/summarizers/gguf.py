"""Weights of language models, as llama.cpp reads them: where they are, and what their first page says."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO, Any

from offbook.errors import ModelUnavailable
from offbook.models import weights

MAGIC = b"GGUF"
MOST_FIELDS = 10_000
LONGEST_TEXT = 1 << 20
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


def find(folder: Path) -> Path | None:
    """The small model that Offbook knows: in the folder of models, else in its package. Not yet checked."""
    return weights.find(weights.SMOLLM2, folder)


def ensure(folder: Path) -> Path:
    """The same, checked just now, and kept in the folder from then on. ModelUnavailable names the command."""
    return weights.ensure(weights.SMOLLM2, folder)


def context_length(path: Path) -> int | None:
    """How much the model was made to read. None: it does not say. ModelUnavailable: this is no such file."""
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise ModelUnavailable(f"{path} is not a GGUF file: fetch one for llama.cpp")
            _version, _tensors, fields = _read(file, "<IQQ")
            for _ in range(min(fields, MOST_FIELDS)):
                name = _text(file)
                (kind,) = _read(file, "<I")
                value = _value(file, kind)
                if name.endswith(".context_length"):
                    return int(value)
    except (struct.error, KeyError, ValueError, MemoryError) as error:
        raise ModelUnavailable(f"{path} is a damaged GGUF file ({error}): fetch it again") from None
    except OSError as error:
        raise ModelUnavailable(f"the local model cannot be read ({error}): mend that, then try again") from None
    return None


def _read(file: IO[bytes], layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _text(file: IO[bytes]) -> str:
    (length,) = _read(file, "<Q")
    if length > LONGEST_TEXT:
        raise ValueError(f"a text of {length:,} bytes")
    return file.read(length).decode(errors="replace")


def _value(file: IO[bytes], kind: int) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind == _LIST:
        of, count = _read(file, "<IQ")
        if of in _FORMATS:
            file.seek(struct.calcsize(_FORMATS[of]) * count, 1)
            return None
        if of != _TEXT:
            raise ValueError("a list of lists")
        for _ in range(count):
            if _text(file) == "" and not file.peek(1):  # type: ignore[attr-defined]
                raise ValueError("it ends early")
        return None
    return _read(file, "<" + _FORMATS[kind])[0]
