"""A GGUF model through llama.cpp (`xllamacpp`), in a process of its own.

Loading one takes seconds in which Python stands still, and llama.cpp ends its process where something is wrong with a
model: neither may happen to the daemon. The process listens on this machine only, wants a key that is made for it,
runs at low priority and ends with us.
"""

from __future__ import annotations

import os
import secrets
import selectors
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.keys import without_secrets
from offbook.model.summary import Usage
from offbook.models import weights
from offbook.models.protocols import Prompt, Written
from offbook.models.summarizers.llama_process import Order, Ready
from offbook.models.summarizers.remote import OpenAIChat, fingerprint_of

# ── Weights of language models, as llama.cpp reads them: where they are, and what they begin with ──

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


LONGEST_CONTEXT_TOKENS = 16_384
"""Of a model that reads more: what it has read stays in memory, a gigabyte and more for as much with most models."""
USUAL_CONTEXT_TOKENS = 4_096
"""Of a model that does not say."""
LOADING_SECONDS = 300.0
MODULE = "offbook.models.summarizers.llama_process"
NOT_INSTALLED = "what runs local models is not installed: run `pip install 'offbook[local]'`"


def is_runnable() -> bool:
    """Whether what runs a model is installed; found out without loading it."""
    return find_spec("xllamacpp") is not None


class Llama:
    """A `Summarizer`. Its process is started by the first prompt."""

    def __init__(self, path: Path, *, threads: int = 1, timeout_seconds: float = 120.0) -> None:
        if not is_runnable():
            raise ModelUnavailable(NOT_INSTALLED)
        self._path = path
        self._threads = threads
        self._timeout_seconds = timeout_seconds
        self.name = f"local:{path.stem}"
        self.context_tokens = min(context_length(path) or USUAL_CONTEXT_TOKENS, LONGEST_CONTEXT_TOKENS)
        state = path.stat()
        self.fingerprint = fingerprint_of("llama", path.name, str(state.st_size), str(state.st_mtime_ns))
        self._process: subprocess.Popen[bytes] | None = None
        self._chat: OpenAIChat | None = None
        self._is_closed = False
        self._changing = threading.Lock()

    def dollars_for(self, usage: Usage) -> float:
        return 0.0

    def write(self, prompt: Prompt) -> Written:
        try:
            return self._ready().write(prompt)
        except ModelUnavailable as error:
            if self._is_closed or not error.retryable:
                raise
            raise ModelUnavailable(
                f"the local model {self._path.stem} wrote nothing in {self._timeout_seconds:g} seconds, or its process "
                "ended: give it more in summarizer.timeout and summarizer.threads, or use a smaller one",
                retryable=True,
            ) from None

    def close(self) -> None:
        """Ends the process, whatever it is at."""
        self._is_closed = True
        if (process := self._process) is not None:
            process.kill()  # also where it is loading, so that who holds the lock comes to an end
        with self._changing:
            self._stop()

    def _ready(self) -> OpenAIChat:
        with self._changing:
            if self._is_closed:
                raise ModelUnavailable("the local model is closed")
            if self._process is not None and self._process.poll() is not None:
                self._stop()  # it ended by itself: another try is a new one
            if self._chat is None:
                self._chat = self._started()
            return self._chat

    def _started(self) -> OpenAIChat:
        order = Order(
            path=str(self._path),
            context_tokens=self.context_tokens,
            threads=self._threads,
            key=secrets.token_urlsafe(32),
        )
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=without_secrets(os.environ),
        )
        line = b""
        if not self._is_closed:
            assert process.stdin
            with suppress(BrokenPipeError):
                process.stdin.write(msgspec.json.encode(order) + b"\n")
                process.stdin.flush()
            line = _first_line(process)
        try:
            ready = msgspec.json.decode(line, type=Ready)
        except msgspec.DecodeError:
            self._stop()
            raise ModelUnavailable(self._why_not(line)) from None
        return OpenAIChat(
            ready.url + "/v1",
            self._path.stem,
            key=order.key,
            context_tokens=self.context_tokens,
            attempts=1,
            timeout_seconds=self._timeout_seconds,
        )

    def _why_not(self, said: bytes) -> str:
        if self._is_closed:
            return "the local model is closed"
        output = said.decode(errors="replace").strip() or f"its process ended, or said nothing in {LOADING_SECONDS:g} s"
        return f"the local model {self._path} could not be loaded ({output}): try it with llama.cpp, or use another"

    def _stop(self) -> None:
        if self._chat is not None:
            self._chat.close()
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()
            self._process.wait()
        self._process = self._chat = None


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    """What it says when it is ready; nothing, if it ends before or takes too long."""
    assert process.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(LOADING_SECONDS):
            return b""
    return os.read(process.stdout.fileno(), 65_536)  # far less than a pipe takes at once
