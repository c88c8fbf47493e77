"""Run in the fresh environment: imports each module that is named on stdin, and prints what came of those that would
not. It may use nothing of this checkout."""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    refused: dict[str, dict[str, str]] = {}
    for name in json.load(sys.stdin):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            kinds = {kind.__name__ for kind in type(error).__mro__}
            kind = "OffbookError" if "OffbookError" in kinds else type(error).__name__
            refused[name] = {"kind": kind, "text": str(error), "missing": getattr(error, "name", None) or ""}
    where = sys.modules["offbook"].__file__
    json.dump({"refused": refused, "where": where}, sys.stdout)


if __name__ == "__main__":
    main()
