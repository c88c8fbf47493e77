"""The commands that a report names: whoever copies one must reach the provider and the host that were looked at."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from offbook.client.endpoint import Endpoint
from offbook.portability.openclaw.places import state_folder


@dataclass(frozen=True)
class Commands:
    serve: str = "offbook serve"
    import_all: str = "offbook import openclaw"


def usual_home() -> Path:
    return Path("~/.offbook").expanduser()


def socket_of(home: Path) -> Endpoint:
    return Endpoint(scheme="unix", path=str(home / "offbook.sock"))


def commands(home: Path, endpoint: Endpoint, state: Path, environ: Mapping[str, str]) -> Commands:
    """With every option whose usual value is another one than what the plugin uses."""
    options = ["offbook"]
    if home != usual_home() or environ.get("OFFBOOK_HOME"):  # the variable would lead elsewhere
        options += ["--home", str(home)]
    serve = shlex.join([*options, "serve"])
    importing = [*options, "import", "openclaw"]
    if endpoint != socket_of(home):
        serve += f" (it has to answer at {endpoint})"
        importing += ["--url", str(endpoint)]
    if state != state_folder(environ):
        importing += ["--state", str(state)]
    return Commands(serve, shlex.join(importing))
