"""`offbook` on the command line. Each command is a module here, loaded when it is used."""

from __future__ import annotations

from offbook.cli.root import root


def main() -> None:
    root(prog_name="offbook")
