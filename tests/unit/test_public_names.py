from __future__ import annotations

import subprocess
import sys

import offbook


def test_the_public_names_are_these() -> None:
    assert sorted(offbook.__all__) == [
        "AsyncClient",
        "BlockingHotSwapSession",
        "Client",
        "CompressedContext",
        "HotSwapSession",
        "Memory",
        "Message",
        "OffbookError",
        "Receipt",
        "Scope",
        "__version__",
        "open_memory",
        "placed",
    ]
    assert all(getattr(offbook, name) is not None for name in offbook.__all__)


def test_importing_offbook_loads_nothing_heavy() -> None:
    heavy = ("apsw", "uvicorn", "msgspec", "asyncio", "numpy", "onnxruntime", "tokenizers")
    code = f"import sys, offbook; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
