"""The process that reads, embeds and drafts for the one that serves. It takes requests from its standard input and
ends with it: nobody has to end it, whatever became of who started it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

LANES = ("query", "embed", "derive")
REQUEST = struct.Struct(">QBQ")
"""Its number, its lane and its length; then the function and its arguments."""
ANSWER = struct.Struct(">QQ")
"""The number of the request and the length; then (whether it failed, what it returned or raised)."""
OTHER_BUILD = 75
"""The status it ends with where the package was changed since the provider was started: what they send each other may
mean something else."""
IDLE_SECONDS = 900.0
"""Without a request after which it ends, and frees what its models take."""
NICE = 3
"""Of threads that nobody waits for. They share an interpreter with those that somebody does: at 10, beside six busy
processes, they kept a query waiting for 194 ms, at 3 for 90, as without (and 24 ms on a quiet machine, 34 without)."""
_IMPORTING = threading.Lock()
"""What is named in a request is imported to read it: two threads that import each other's modules get half of one."""
SWITCH_SECONDS = 0.001
"""How long a thread keeps the interpreter while another waits for it: a query waits for the others no longer."""


def read_exactly(stream: IO[bytes], size: int) -> bytes | None:
    """None where it ends before."""
    parts: list[bytes] = []
    while size:
        part = stream.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Answers:
    """Where answers go; one at a time."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._owed = 0

    @property
    def is_owed(self) -> bool:
        """Somebody waits for one."""
        return self._owed > 0

    def owe(self) -> None:
        with self._lock:
            self._owed += 1

    def send(self, number: int, failed: bool, found: Any) -> None:
        try:
            answer = pickle.dumps((failed, found), protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # noqa: BLE001 (whatever its types raise)
            answer = pickle.dumps((True, RuntimeError(f"an answer that cannot be sent: {error!r}")))
        with self._lock, contextlib.suppress(OSError):  # who asked is gone: so is this process, in a moment
            self._owed -= 1
            self._stream.write(ANSWER.pack(number, len(answer)))
            self._stream.write(answer)
            self._stream.flush()


def step_back() -> None:
    """This thread gives way to those that somebody waits for."""
    if sys.platform == "linux":  # elsewhere that would be the number of a process
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def _done(answers: Answers, number: int, request: bytes) -> None:
    try:
        with _IMPORTING:
            work, args, kwargs = pickle.loads(request)  # noqa: S301 (of who started us)
        found = work(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001
        # The one broad handler of the worker: whatever a piece of work raises is raised where it was asked for.
        error.add_note(traceback.format_exc())
        answers.send(number, True, error if isinstance(error, Exception) else RuntimeError(repr(error)))
    else:
        answers.send(number, False, found)


def serve(requests: IO[bytes], answers: Answers, *, idle_seconds: float = IDLE_SECONDS) -> None:
    """Until the requests end, or none has come for so long."""
    lanes = [
        ThreadPoolExecutor(1, thread_name_prefix="query"),
        ThreadPoolExecutor(initializer=step_back, thread_name_prefix="embed"),
        ThreadPoolExecutor(1, initializer=step_back, thread_name_prefix="derive"),
    ]
    while True:
        while not select.select([requests], [], [], idle_seconds)[0]:
            if not answers.is_owed:
                return
        header = read_exactly(requests, REQUEST.size)
        if header is None:
            return
        number, lane, size = REQUEST.unpack(header)
        request = read_exactly(requests, size)
        if request is None:
            return
        answers.owe()
        lanes[lane].submit(_done, answers, number, request)
        del request  # it may be large, and the next may be long in coming


def build_id() -> str:
    """Changes with any file of the package."""
    package = Path(__file__).parents[1]
    files = sorted((str(path), path.stat().st_mtime_ns) for path in package.rglob("*.py"))
    return sha256(repr(files).encode()).hexdigest()


def main() -> None:
    for sent in (signal.SIGINT, signal.SIGTERM):  # to all of a terminal or of a service: its owner decides
        signal.signal(sent, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_SECONDS)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if sys.argv[1:] != [build_id()]:
        os._exit(OTHER_BUILD)
    with contextlib.suppress(ImportError):  # who needs it says so
        # Here, alone: of threads that begin it at once one may fail, and then it cannot be loaded any more.
        import numpy  # noqa: F401
    # What a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with os.fdopen(0, "rb", buffering=0) as requests:
        serve(requests, Answers(answers))
    os._exit(0)  # a thread that is still at work is not waited for


if __name__ == "__main__":
    main()
