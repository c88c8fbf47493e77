"""`offbook` on the command line. The modules go by noun, and each is loaded when a command of it is used."""

from __future__ import annotations

from offbook.cli.root import root


def main() -> None:
    root(prog_name="offbook")
