"""`doctor`, `backup`, `restore`, `tls-cert` and `version` as they print. What they do is tested beside their modules."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from offbook.client import outboxes
from offbook.client.blocking import Client
from offbook.client.endpoint import Endpoint
from offbook.model.home import Home
from tests.unit.cli.conftest import Run


def test_the_doctor_prints_what_to_do_and_fails_without_a_provider(run: Run, stored: Home) -> None:
    result = run("doctor")
    assert result.exit_code == 1
    assert "fail  provider" in result.stdout
    assert f"→ offbook --home {stored.folder} serve" in result.stdout
    assert "ok    audit" in result.stdout
    assert result.stdout.rstrip().endswith("1 failure")


def test_the_doctor_as_json(run: Run, stored: Home) -> None:
    stored.folder.chmod(0o755)
    document = json.loads(run("doctor", "--quick", "--fix", "--json").stdout)
    assert document["fixed"] == [f"{stored.folder} is now 0700"]
    levels = {finding["check"]: finding["level"] for finding in document["findings"]}
    assert (levels["provider"], levels["modes"]) == ("fail", "ok")
    assert "audit" not in levels


def test_the_doctor_makes_nothing(run: Run, home: Home) -> None:
    assert run("doctor").exit_code == 1
    assert not home.folder.exists()


def test_a_backup_goes_here_under_a_dated_name(
    run: Run, stored: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("backup")
    assert result.exit_code == 0
    (made,) = tmp_path.glob("offbook-*.tar.gz")
    assert result.stdout.splitlines()[0] == str(made)
    assert "11 messages of 2 agents, 1 large part" in result.stdout


def test_a_backup_and_its_restoring_as_json(run: Run, stored: Home, tmp_path: Path) -> None:
    made = json.loads(run("backup", str(tmp_path), "--json").stdout)
    assert (made["messages"], made["largeParts"], made["missing"]) == (11, 1, [])
    restored = json.loads(run("restore", made["file"], "--home", str(tmp_path / "new"), "--json").stdout)
    assert (restored["messages"], restored["movedTo"], restored["faults"]) == (11, None, [])
    assert restored["agents"] == made["agents"]


def test_a_folder_that_is_not_there_is_no_file_name(run: Run, stored: Home, tmp_path: Path) -> None:
    for name in ("nosuch/", "nosuch/made.tar.gz"):
        result = run("backup", f"{tmp_path}/{name}")
        assert result.exit_code == 1
        assert f"there is no folder {tmp_path}/nosuch" in result.stderr
    assert not (tmp_path / "nosuch").exists()
    (tmp_path / "nosuch").mkdir()
    assert run("backup", f"{tmp_path}/nosuch/").exit_code == 0
    assert len(list((tmp_path / "nosuch").glob("offbook-*.tar.gz"))) == 1


def test_a_restore_is_resumed_or_begun(run: Run, stored: Home, tmp_path: Path) -> None:
    assert run("restore").exit_code == 2
    assert run("restore", "--resume", "--force").exit_code == 2
    result = run("restore", "--resume")
    assert (result.exit_code, "nothing to finish" in result.stderr) == (1, True)
    (stored.folder / "restore.json").write_text("{}")
    refused = run("serve", "--port", "0")
    assert refused.exit_code == 1
    assert f"offbook restore --resume --home {stored.folder}" in refused.stderr
    assert "by hand" in run("restore", "--resume").stderr


def test_an_incomplete_backup_is_made_and_told(run: Run, stored: Home, tmp_path: Path) -> None:
    next(path for path in stored.blobs.rglob("*") if path.is_file()).unlink()
    result = run("backup", str(tmp_path / "made.tar.gz"))
    assert result.exit_code == 1
    assert "1 large part could not be backed up" in result.stderr
    assert (tmp_path / "made.tar.gz").exists()


def test_a_restore_prints_what_is_there_now(run: Run, stored: Home, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "made.tar.gz"))
    refused = run("restore", str(tmp_path / "made.tar.gz"))
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    result = run("restore", str(tmp_path / "made.tar.gz"), "--force")
    assert result.exit_code == 0
    assert "what was there before:" in result.stdout
    assert "everything is as it was written" in result.stdout


def test_a_backup_that_is_not_there_is_a_usage_error(run: Run) -> None:
    assert run("restore", "missing.tar.gz").exit_code == 2


def test_a_certificate_comes_with_the_command_that_serves_it(run: Run, tmp_path: Path) -> None:
    result = run("tls-cert", "--out", str(tmp_path), "--host", "memory.local")
    assert result.exit_code == 0
    assert f"--tls-key {tmp_path / 'key.pem'}" in result.stdout
    assert "https://memory.local:8770" in result.stdout
    again = run("tls-cert", "--out", str(tmp_path))
    assert again.exit_code == 1
    assert "--force" in again.stderr
    assert json.loads(run("tls-cert", "--out", str(tmp_path), "--force", "--json").stdout)["key"] == str(
        tmp_path / "key.pem"
    )


def test_versions_are_told(run: Run) -> None:
    from offbook.model.version import VERSION

    assert json.loads(run("version", "--json").stdout)["offbook"] == VERSION
    assert run("version").stdout.startswith("offbook  ")
    assert VERSION in run("--version").stdout


NOTHING: dict[str, Any] = {
    "delivered": 0,
    "rejected": 0,
    "resent": 0,
    "waiting": 0,
    "busy": [],
    "last_error": None,
    "outboxes": [],
    "elsewhere": [],
}


@pytest.mark.parametrize(("arguments", "with_rejected"), [([], False), (["--rejected"], True)])
def test_what_was_refused_is_tried_again_when_asked(
    arguments: list[str], with_rejected: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def deliver_outboxes(*_: object, with_rejected: bool, **__: object) -> dict[str, Any]:
        asked.append(with_rejected)
        return NOTHING

    monkeypatch.setattr(outboxes, "deliver_outboxes", deliver_outboxes)
    monkeypatch.setattr(Client, "ping", lambda self: {})
    assert run("flush", *arguments).exit_code == 0
    assert asked == [with_rejected]


def test_what_is_delivered_is_told_in_the_spelling_of_all_documents(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = {"folder": "x", "delivered": 0, "rejected": 0, "resent": 0, "waiting": 1, "last_error": "away"}
    report = NOTHING | {"waiting": 1, "last_error": "away", "outboxes": [outbox]}
    monkeypatch.setattr(outboxes, "deliver_outboxes", lambda *_, **__: report)
    monkeypatch.setattr(Client, "ping", lambda self: {})
    document = json.loads(run("flush", "--json").stdout)
    assert (document["lastError"], document["outboxes"][0]["lastError"]) == ("away", "away")
    assert [name for name in (*document, *document["outboxes"][0]) if "_" in name] == []


@pytest.mark.parametrize(
    ("url", "is_own"),
    [("", True), ("http://localhost:8770", True), ("http://127.0.0.1:8771", False), ("http://memory:8770", False)],
)
def test_the_socket_and_the_port_of_the_folders_provider_are_one(
    url: str, is_own: bool, run: Run, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Collection[str]] = []

    def deliver_outboxes(*_: object, own: Collection[str], **__: object) -> dict[str, Any]:
        found.append(own)
        return NOTHING

    monkeypatch.setattr(outboxes, "deliver_outboxes", deliver_outboxes)
    monkeypatch.setattr(Client, "ping", lambda self: {})
    assert run("flush", *(["--url", url] if url else [])).exit_code == 0
    names = {f"unix://{home.socket}", *(f"http://{host}:8770" for host in ("127.0.0.1", "localhost", "[::1]"))}
    assert [set(own) for own in found] == [names if is_own else set()]


def test_what_waits_does_not_wait_for_settings_that_can_be_read(
    run: Run, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.folder.mkdir(parents=True, exist_ok=True)
    (home.folder / "config.toml").write_text("server = 5\n")
    monkeypatch.setattr(outboxes, "deliver_outboxes", lambda *_, **__: NOTHING)
    monkeypatch.setattr(Client, "ping", lambda self: {})
    assert run("flush").exit_code == 0


@pytest.mark.parametrize("is_everything", [False, True])
def test_what_is_meant_for_another_provider_is_told_and_goes_here_only_when_asked(
    is_everything: bool, run: Run, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends of sessions of coding agents, too."""
    where: list[tuple[str, bool]] = []
    ends: list[Endpoint | None] = []

    def deliver_outboxes(_: Path, endpoint: Endpoint, *, everything: bool, **__: object) -> dict[str, Any]:
        where.append((str(endpoint), everything))
        other = {"folder": "/x/outbox/python", "endpoint": "http://127.0.0.1:9999", "waiting": 2}
        return NOTHING | {"elsewhere": [] if everything else [other]}

    monkeypatch.setattr(outboxes, "deliver_outboxes", deliver_outboxes)
    monkeypatch.setattr(Client, "ping", lambda self: {})
    monkeypatch.setattr("offbook.contrib.coding.hooks.hosts_with_ends", lambda _: ["claude-code"])
    monkeypatch.setattr(
        "offbook.contrib.coding.hooks.Ends.tell", lambda *_, endpoint=None, **__: ends.append(endpoint) or 0
    )
    result = run("flush", *(["--everything"] if is_everything else []))
    assert result.exit_code == 0
    assert where == [(f"unix://{home.socket}", is_everything)]
    assert [None if each is None else str(each) for each in ends] == [None if is_everything else where[0][0]]
    told = "python: 2 messages meant for http://127.0.0.1:9999: `offbook flush --url http://127.0.0.1:9999`"
    assert (told in result.stdout, "nothing waits" in result.stdout) == (not is_everything, is_everything)
