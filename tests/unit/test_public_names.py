from __future__ import annotations

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
