"""The agents that there are, for commands that are given a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from offbook.client.clients import Client

FORBIDDEN = 403


def agents_there(client: Client, wanted: Sequence[str]) -> list[str]:
    """Those that we may see and that have anything. A token of some agents only has to ask for one of them."""
    from offbook.model.errors import ProviderRefused

    try:
        agents: list[str] = client.status()["agents"]
    except ProviderRefused as error:
        if error.document.get("status") != FORBIDDEN or not wanted:
            raise
        agents = client.status(wanted[0])["agents"]
    return agents


def refuse_unknown(wanted: Sequence[str], there: Sequence[str], param_hint: str) -> None:
    """A name that was mistyped is a wrong use of the command: exit status 2."""
    unknown = [name for name in wanted if name not in there]
    if unknown:
        names = ", ".join(there) or "none"
        raise click.BadParameter(f"there is no agent {unknown[0]!r}; there is: {names}", param_hint=param_hint)
