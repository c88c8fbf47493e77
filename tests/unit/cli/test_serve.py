from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from offbook.api.daemon import Address
from offbook.cli.provider import banner, own_name
from offbook.model.home import Home
from offbook.model.version import VERSION
from tests.unit.cli.conftest import Run

HERE = Address(socket="/data/offbook.sock", url="http://127.0.0.1:8770", home="/data")


def test_the_banner_says_where_it_listens_and_how_to_try_it() -> None:
    text = banner(HERE, is_default_home=False)
    for part in (
        VERSION,
        HERE.socket,
        "http://127.0.0.1:8770",
        "/data/token",
        "export OFFBOOK_HOME=/data",
        "offbook record",
    ):
        assert part in text


def test_the_banner_leaves_out_what_does_not_hold() -> None:
    text = banner(Address(socket="/data/offbook.sock", url=None, home="/data"), is_default_home=True)
    assert "http://127" not in text
    assert "export" not in text


def test_the_banner_names_the_program_as_a_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = tmp_path / ".venv" / "bin", tmp_path / "elsewhere"
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / "offbook").write_text("#!/bin/sh\n")
        (folder / "offbook").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    monkeypatch.chdir(tmp_path)
    for path, name in [(own, "offbook"), (other, ".venv/bin/offbook"), (tmp_path, ".venv/bin/offbook")]:
        monkeypatch.setenv("PATH", str(path))
        assert own_name() == name
    monkeypatch.chdir(own)
    assert own_name() == "./offbook"
    shutil.rmtree(own.parent)
    monkeypatch.chdir(tmp_path)
    assert own_name() == "offbook"
    assert ".venv/bin/offbook log chat" in banner(HERE, is_default_home=True, program=".venv/bin/offbook")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (["--port", "99999"], 1, "0 to 65535"),
        (["--set", "server.prt=1"], 1, "did you mean server.port?"),
        (["--set", "nonsense"], 2, "not NAME=VALUE"),
        (["--port", "many"], 2, "not a valid integer"),
        (["--tls-cert", "missing.pem"], 1, "must come with"),
        (["--tls-cert", "missing.pem", "--tls-key", "missing.pem"], 1, "offbook tls-cert"),
        (["--host", "0.0.0.0"], 1, "not loopback"),
    ],
)
def test_what_cannot_be_served_is_told_before_anything_is_made(
    arguments: list[str], exit_code: int, told: str, run: Run, home: Home
) -> None:
    result = run("serve", *arguments)
    assert result.exit_code == exit_code
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert not home.folder.exists()
