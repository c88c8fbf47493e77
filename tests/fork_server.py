"""Starts `offbook` by forking a process that has its modules loaded already: milliseconds instead of a second.

Run by `tests.processes`, once for each process of pytest. What is started is a process of its own, with its own
arguments, environment and streams; it only did not import anything. Each request is one packet with three file
descriptors; the answer is the process id. The forked process has no parent here: whoever asked waits for it.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import sys
import threading
import time
from typing import Any

import click

import offbook.api.daemon  # noqa: F401 - `serve` loads it late
from offbook.cli.root import root

LARGEST_REQUEST = 1 << 20


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in root.list_commands(click.Context(root)):
        root.get_command(click.Context(root), name)
    gc.freeze()
    while True:
        packet, streams, _, _ = socket.recv_fds(control, LARGEST_REQUEST, 3)
        if not packet:
            return
        pid = fork_without_parent()
        if not pid:
            control.close()
            run(json.loads(packet), streams)
            return
        control.send(str(pid).encode())
        for stream in streams:
            os.close(stream)


def fork_without_parent() -> int:
    """Like `os.fork`, but the new process belongs to pytest, which is the next subreaper above, by the time of the answer."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        pid = os.fork()
        if pid:
            os.write(writing, str(pid).encode())
            os._exit(0)
        os.close(reading)
        os.close(writing)
        return 0
    os.wait()
    os.close(writing)
    pid = int(os.read(reading, 64))
    os.close(reading)
    return pid


def run(request: dict[str, Any], streams: list[int]) -> None:
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    if request["folder"]:
        os.chdir(request["folder"])
    if request["has_own_session"]:
        os.setsid()
    sys.argv = request["arguments"]
    try:
        root(prog_name="offbook")
    except SystemExit as ended:
        end(int(ended.code or 0))


def end(status: int) -> None:
    """As an interpreter ends, without clearing all modules away: that takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
