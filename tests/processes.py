"""`offbook` as a process of its own, started quickly."""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

OFFBOOK = Path(sys.executable).with_name("offbook")
"""The program as it is installed. Where a new interpreter is part of what is proven, `subprocess` runs this."""
RUN_SECONDS = 120.0
PR_SET_CHILD_SUBREAPER = 36


class _ForkServer:
    """`tests/fork_server.py`; it ends when this process does."""

    def __init__(self) -> None:
        # What the server forks and leaves becomes a child of this process, which can wait for it as for any other.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._lock = Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(__file__).with_name("fork_server.py")
        environ = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", script, str(theirs.fileno())],
                env=environ,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, request: dict[str, Any], streams: list[int]) -> int:
        with self._lock:
            socket.send_fds(self._control, [json.dumps(request).encode()], streams)
            return int(self._control.recv(64))


_fork_server = cache(_ForkServer)


class Offbook(subprocess.Popen[Any]):
    """`subprocess.Popen` of `offbook` with these arguments; on Linux, forked instead of started anew."""

    def __init__(self, *arguments: str | Path, **options: Any) -> None:
        super().__init__([OFFBOOK, *arguments], **options)

    def _execute_child(self, *given: Any) -> None:
        start: Any = super()._execute_child  # type: ignore[misc]
        if sys.platform != "linux":
            start(*given)
            return
        named = inspect.signature(start).bind(*given).arguments
        request = {
            "arguments": [str(argument) for argument in named["args"]],
            "environ": dict(os.environ if named["env"] is None else named["env"]),
            "folder": str(named["cwd"] or Path.cwd()),
            "has_own_session": named["start_new_session"],
        }
        streams = [named[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        pipes = [named[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        try:
            inherited = [stream if stream != -1 else usual for usual, stream in enumerate(streams)]
            self.pid = _fork_server().fork(request, inherited)
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def run_offbook(
    *arguments: str | Path, stdin: str | bytes | None = None, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of `offbook` with these arguments, what it prints captured."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with Offbook(*arguments, **pipes, **options) as process:
        try:
            output, errors = process.communicate(stdin, timeout=RUN_SECONDS)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done
