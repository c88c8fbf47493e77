"""The process of a local model: takes one order, says where it listens, and ends when its input does."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import msgspec

LOWER_PRIORITY = 10
IDLE_SECONDS = 600
"""After which the model leaves the memory until it is asked again."""


class Order(msgspec.Struct, frozen=True):
    path: str
    context_tokens: int
    threads: int
    key: str


class Ready(msgspec.Struct, frozen=True):
    url: str


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    said = _own_output()
    os.nice(LOWER_PRIORITY)
    try:
        server = _serving(order)
    except (RuntimeError, ImportError, OSError) as error:
        said.write(f"{error}\n".encode())
        said.flush()
        os._exit(1)
    said.write(msgspec.json.encode(Ready(str(server.listening_address))) + b"\n")
    said.flush()
    sys.stdin.buffer.read()  # until whoever started us is gone
    os._exit(0)


def _own_output() -> IO[bytes]:
    """The output that is ours alone: llama.cpp prints what it likes to the one it knows."""
    own = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return own


def _serving(order: Order) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = order.path
    params.n_ctx = order.context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order.threads
    params.api_keys = [order.key]
    params.endpoint_slots = False  # it would show what others asked
    params.ui = False
    params.offline = True
    params.cache_ram_mib = 0  # one conversation at a time, and its beginning stays where it is
    params.sleep_idle_seconds = IDLE_SECONDS
    params.verbosity = -1
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
