"""The link that `offbook ui` gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from offbook.cli.ui import page_link
from offbook.client.endpoint import Endpoint
from offbook.model.errors import SettingsError
from tests.acceptance.daemon import WITHOUT_MODEL, running
from tests.processes import run_offbook

SOCKET = Endpoint(scheme="unix", path="/x/offbook.sock")


@pytest.mark.parametrize(
    ("endpoint", "url", "expected"),
    [
        (SOCKET, "http://127.0.0.1:8770", "http://127.0.0.1:8770/ui/#code=abc"),
        (SOCKET, "https://0.0.0.0:8770", "https://localhost:8770/ui/#code=abc"),
        (SOCKET, "https://[::]:8770", "https://localhost:8770/ui/#code=abc"),
        (Endpoint(scheme="https", host="memory.local", port=8770), None, "https://memory.local:8770/ui/#code=abc"),
    ],
)
def test_the_link_is_where_the_browser_can_go(endpoint: Endpoint, url: str | None, expected: str) -> None:
    assert page_link(endpoint, {"code": "abc", "url": url}) == expected


def test_a_provider_without_a_port_says_what_to_do() -> None:
    with pytest.raises(SettingsError, match="--port 8770"):
        page_link(SOCKET, {"code": "abc", "url": None})


def test_a_link_of_a_running_provider(tmp_path: Path) -> None:
    with running(WITHOUT_MODEL) as daemon:
        made = run_offbook("ui", "--json", "--home", str(daemon.home))
        link = json.loads(made.stdout)["url"]
        assert link.startswith(f"http://127.0.0.1:{daemon.port}/ui/#code=")
        code = link.partition("=")[2]
        assert daemon.send("POST", "/ui/session", {"code": code}).status == 200
        assert daemon.send("POST", "/ui/session", {"code": code}).status == 401
        printed = run_offbook("ui", "--print", "--home", str(daemon.home)).stdout.decode()
        assert "it works once" in printed
    gone = run_offbook("ui", "--home", str(tmp_path))
    assert gone.returncode == 3
