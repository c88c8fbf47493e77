"""CPU work beside the process that serves: reading sentences, embedding, drafting summaries.

What is run is a function of a module and its arguments, and it changes nothing: the log and the cursors in it say what
is left to do, so a worker that is killed costs no more than the piece it had in hand, which is given to the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

import structlog

from offbook.model.errors import WorkerUnavailable
from offbook.model.keys import without_secrets
from offbook.models.worker_process import ANSWER, LANES, OTHER_BUILD, REQUEST, build_id, read_exactly

Lane = Literal["query", "embed", "derive"]
"""Which thread of the worker does it. Somebody waits for a query; the others give way to it."""

P = ParamSpec("P")
T = TypeVar("T")

TRIES = 3
"""Of one piece, each by a fresh process, before it is given up for now."""
THREADS = 4
"""That wait for the worker, so that those of requests do not."""
END_SECONDS = 2.0
STOPPING = "the provider is stopping"

log = structlog.get_logger("offbook.worker")


class Worker(Protocol):
    """Runs functions of modules, with arguments and results that can be sent to another process."""

    is_own_process: bool

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    def call(self, lane: Lane, work: Callable[..., T], /, *args: Any) -> T:
        """The same for who has a thread to wait in."""
        ...

    async def close(self) -> None: ...


class InProcess:
    """In threads of this process: for who wants no second one."""

    is_own_process = False

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(work, *args, **kwargs)

    def call(self, lane: Lane, work: Callable[..., T], /, *args: Any) -> T:
        return work(*args)

    async def close(self) -> None:
        return


IN_PROCESS = InProcess()


class OwnProcess:
    """In a process of its own: started when there is something to do, started again where it ended, and ended by
    itself when there was nothing to do for a while, which frees the memory of its models."""

    is_own_process = True

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="offbook-worker")
        self._door = threading.Lock()
        self._build = build_id()
        self._running: _Running | None = None
        self._is_closed = False

    @property
    def process_id(self) -> int | None:
        """Of the one that runs now."""
        running = self._running
        return running.process_id if running is not None and not running.has_ended else None

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asked = self._threads.submit(self._asked, "derive", work, args, kwargs)
        except RuntimeError:
            raise WorkerUnavailable(STOPPING) from None
        found: T = await asyncio.wrap_future(asked)
        return found

    def call(self, lane: Lane, work: Callable[..., T], /, *args: Any) -> T:
        found: T = self._asked(lane, work, args, {})
        return found

    async def close(self) -> None:
        """Waits for no answer; what was asked for is asked again after the next start."""
        with self._door:
            self._is_closed = True
            running = self._running
        self._threads.shutdown(wait=False, cancel_futures=True)
        if running is not None:
            await asyncio.to_thread(running.end)

    def _asked(self, lane: Lane, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        request = pickle.dumps((work, args, kwargs), protocol=pickle.HIGHEST_PROTOCOL)
        for _ in range(TRIES):
            answer = self._started().ask(lane, request)
            try:
                has_failed, found = pickle.loads(answer.result())  # noqa: S301 (our own process's)
            except EOFError:
                continue
            if has_failed:
                raise found
            return found
        raise WorkerUnavailable(f"it ended {TRIES} times at the same piece of work ({work.__qualname__})")

    def _started(self) -> _Running:
        with self._door:
            if self._is_closed:
                raise WorkerUnavailable(STOPPING)
            if self._running is None or self._running.has_ended:
                if self._running is not None and self._running.is_of_another_build:
                    raise WorkerUnavailable("Offbook was changed while it runs: start the provider again")
                self._running = _Running(self._build)
            return self._running


class _Running:
    """One process, from its start to its end."""

    def __init__(self, build: str) -> None:
        command = [sys.executable, "-P", "-m", "offbook.models.worker_process", build]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=without_secrets(os.environ)
            )
        except OSError as error:
            raise WorkerUnavailable(f"it cannot be started: {error}") from None
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[bytes]] = {}
        self._door = threading.Lock()
        self._sending = threading.Lock()
        self.has_ended = False
        self.is_of_another_build = False
        threading.Thread(target=self._read, name="offbook-worker-answers", daemon=True).start()
        log.debug("started", action="worker.start", process=self._process.pid)

    @property
    def process_id(self) -> int:
        return self._process.pid

    def ask(self, lane: Lane, request: bytes) -> Future[bytes]:
        """EOFError where it ends before it has answered."""
        answer: Future[bytes] = Future()
        with self._door:
            if self.has_ended:
                answer.set_exception(EOFError())
                return answer
            number = next(self._numbers)
            self._waiting[number] = answer
        # Where it has ended, whoever reads its answers sees it.
        with self._sending, contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(REQUEST.pack(number, LANES.index(lane), len(request)))
            self._process.stdin.write(request)
            self._process.stdin.flush()
        return answer

    def end(self) -> None:
        # One that does not read keeps who writes to it: it is killed, which ends the write.
        if self._sending.acquire(timeout=END_SECONDS):
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._sending.release()
        else:
            self._process.kill()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        answers = self._process.stdout
        while header := read_exactly(answers, ANSWER.size):
            number, size = ANSWER.unpack(header)
            answer = read_exactly(answers, size)
            if answer is None:
                break
            with self._door:
                waiting = self._waiting.pop(number)
            waiting.set_result(answer)
        status = self._process.wait()
        answers.close()
        with self._door:
            self.has_ended, self.is_of_another_build = True, status == OTHER_BUILD
            left, self._waiting = list(self._waiting.values()), {}
        if status:
            log.warning("ended", action="worker.lost", status=status, pieces=len(left))
        for one in left:
            one.set_exception(EOFError())
