"""`offbook mcp`: its help, and what it says without its extra. The protocol itself is in tests/acceptance."""

from __future__ import annotations

import pytest

from offbook.api.mcp.asking import INSTALL_HINT
from offbook.cli.gateways import BY_HAND
from tests.unit.api.mcp.provider import without_sdk
from tests.unit.cli.conftest import Run


def test_without_its_extra_it_says_how_to_install_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    without_sdk(monkeypatch)
    result = run("mcp")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"offbook: {INSTALL_HINT}\n"


def test_at_a_terminal_it_says_what_it_waits_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []

    async def serve(_invocation: object, session_id: str) -> None:
        served.append(session_id)

    monkeypatch.setattr("offbook.cli.gateways._serve_mcp", serve)
    quiet = run("mcp")
    assert (quiet.exit_code, quiet.output) == (0, "")
    monkeypatch.setattr("offbook.cli.gateways._is_terminal", lambda: True)
    told = run("mcp")
    assert (told.exit_code, told.stdout, told.stderr) == (0, "", f"{BY_HAND}\n")
    assert served == ["mcp", "mcp"]


def test_the_help_shows_how_a_client_is_told_of_it(run: Run) -> None:
    text = run("mcp", "--help").stdout
    assert "Examples:" in text
    assert "claude mcp add offbook -- offbook mcp" in text
    assert "--session" in text
