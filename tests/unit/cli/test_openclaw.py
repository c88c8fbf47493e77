"""`openclaw setup` and `openclaw doctor`, as people run them. What they decide is tested beside their modules."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from offbook import Client
from offbook.cli import openclaw
from offbook.model.errors import ProviderRefused, ProviderUnavailable
from tests.unit.cli.conftest import Run
from tests.unit.openclaw.hosted import plugin_folder, report, transcript

FILE = '{\n  // mine\n  "gateway": {"port": 1},\n  "plugins": {"slots": {"memory": "none"}}\n}\n'


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of a host, with the plugin in `plugin` beside it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("OPENCLAW_")]:
        monkeypatch.delenv(name)
    state = tmp_path / ".openclaw"
    state.mkdir()
    (state / "openclaw.json").write_text(FILE)
    plugin_folder(tmp_path / "plugin")
    plugin_folder(tmp_path / "plugin" / "memory-slot", "offbook-memory")
    return state


def setup(run: Run, host: Path, level: str, *more: str) -> Any:
    plugin = () if level == "off" else ("--plugin", str(host.parent / "plugin"))
    return run("openclaw", "setup", "--level", level, *plugin, *more)


# ── setup ─────────────────────────────────────────────────────────────────────────────────────


SECRETS = ("sk-1", "tg-2", "pw-3", "old-4", "said-5", "user-6")
SECRET_FILE = """{
  "channels": {"telegram": {"botToken": "tg-2"}}, "models": {"apiKeys": ["sk-1"]},
  // "password": "said-5"
  "hooks": {"token": "old-4", "token": "pw-3", "tokenFile": "/shown"}, "proxy": "http://user-6:x@host"
}
"""


ON_ONE_LINE = '{"channels": {"telegram": {"botToken": "tg-2"}}, "models": {"apiKeys": ["sk-1"]}}'


@pytest.mark.parametrize("content", [SECRET_FILE, ON_ONE_LINE])
@pytest.mark.parametrize("level", ["capture", "off"])
def test_secrets_are_not_shown(run: Run, host: Path, content: str, level: str) -> None:
    entry = '"plugins": {"entries": {"offbook": {"config": {"secret": "sk-1"}}}},'
    (host / "openclaw.json").write_text(content.replace("{", "{" + entry, 1))
    shown = setup(run, host, level, "--dry-run").output
    assert "offbook" in shown
    as_json = setup(run, host, level, "--json", "--yes")
    document = json.loads(as_json.stdout)
    assert document["written"]
    assert not [secret for secret in SECRETS if secret in shown + as_json.output]
    assert not [line for line in document["diff"] if line.startswith(" ")]
    written = (host / "openclaw.json").read_text()
    assert "tg-2" in written
    assert "***" not in written


def test_without_a_terminal_nothing_is_written(run: Run, host: Path) -> None:
    result = setup(run, host, "capture")
    assert result.exit_code == 1
    assert "capture" in result.stdout
    assert "nothing is written; --yes" in result.stderr
    assert (host / "openclaw.json").read_text() == FILE
    assert [each.name for each in host.iterdir()] == ["openclaw.json"]


def test_it_is_written_once_and_undone_to_the_letter(run: Run, host: Path) -> None:
    result = setup(run, host, "hot-swap", "--memory-slot", "--start-daemon", "--host-model", "--yes")
    assert result.exit_code == 0
    assert "openclaw.json.offbook-backup-" in result.stdout
    assert "offbook openclaw doctor" in result.stdout
    there = (host / "openclaw.json").read_text()
    assert "// mine" in there
    again = setup(run, host, "hot-swap", "--memory-slot", "--start-daemon", "--host-model", "--yes")
    assert (again.exit_code, "nothing to change" in again.stdout) == (0, True)
    assert (host / "openclaw.json").read_text() == there
    assert setup(run, host, "hot-swap", "--no-host-model", "--yes").exit_code == 0  # its backup has our slots
    assert setup(run, host, "off", "--yes").exit_code == 0
    assert (host / "openclaw.json").read_text() == FILE


def test_somebody_who_agrees_and_one_who_does_not(run: Run, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = [False, True]

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return answers.pop(0)

    monkeypatch.setattr("click.confirm", confirm)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    assert setup(run, host, "capture").exit_code == 1
    assert (host / "openclaw.json").read_text() == FILE
    assert setup(run, host, "capture").exit_code == 0
    assert asked == ["Write this?", "Write this?"]


def test_a_dry_run_is_no_failure(run: Run, host: Path) -> None:
    result = setup(run, host, "recall", "--dry-run")
    assert (result.exit_code, result.stderr) == (0, "nothing is written\n")
    assert setup(run, host, "recall", "--dry-run", "--yes").exit_code == 0
    assert (host / "openclaw.json").read_text() == FILE


def test_as_json(run: Run, host: Path, tmp_path: Path) -> None:
    result = setup(run, host, "capture", "--yes", "--json", "--url", "http://10.0.0.5:8770")
    document = json.loads(result.stdout)
    changes = {change["path"]: change.get("after") for change in document["changes"]}
    assert changes["plugins.entries.offbook.config.level"] == "capture"
    assert changes["plugins.entries.offbook.config.home"] == str(tmp_path / "home")
    assert changes["plugins.entries.offbook.config.endpoint"] == "http://10.0.0.5:8770"
    assert document["written"] is True
    assert Path(document["backup"]).read_text() == FILE
    unwritten = json.loads(setup(run, host, "recall", "--json").stdout)
    assert (unwritten["written"], unwritten["backup"]) == (False, None)


def test_a_slot_that_another_plugin_has(run: Run, host: Path) -> None:
    (host / "openclaw.json").write_text('{"plugins": {"slots": {"contextEngine": "lossless"}}}')
    result = setup(run, host, "hot-swap", "--yes")
    assert result.exit_code == 1
    assert "--take-slot" in result.stderr
    assert "--yes" not in result.stderr
    assert 'plugins.entries.offbook.config.level = "hot-swap"' in result.stdout
    assert "offbook" not in (host / "openclaw.json").read_text()
    assert setup(run, host, "hot-swap", "--yes", "--take-slot").exit_code == 0


@pytest.mark.parametrize("variable", ["OPENCLAW_CONFIG_READONLY", "OPENCLAW_NIX_MODE"])
def test_a_file_that_is_made_elsewhere(run: Run, host: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    result = setup(run, host, "capture", "--yes")
    assert (result.exit_code, variable in result.stderr) == (1, True)
    assert (host / "openclaw.json").read_text() == FILE


def test_a_write_protected_file(run: Run, host: Path) -> None:
    (host / "openclaw.json").chmod(0o444)
    for how in ("--yes", "--dry-run"):
        result = setup(run, host, "capture", how)
        assert (result.exit_code, "chmod u+w" in result.stderr) == (1, True)
    assert [each.name for each in host.iterdir()] == ["openclaw.json"]


def test_what_is_included_is_planned_on(run: Run, host: Path) -> None:
    assert setup(run, host, "recall", "--yes").exit_code == 0
    plain = (host / "openclaw.json").read_text().replace("// mine", "")
    (host / "plugins.json5").write_text(json.dumps(json.loads(plain)["plugins"]))
    (host / "openclaw.json").write_text('{plugins: {$include: "./plugins.json5"}}')
    assert "nothing to change" in setup(run, host, "recall", "--yes").stdout
    result = setup(run, host, "capture", "--json")
    document = json.loads(result.stdout)
    changes = [(change["path"], change.get("after")) for change in document["changes"]]
    assert changes == [
        ("plugins.entries.offbook.hooks.allowPromptInjection", None),
        ("plugins.entries.offbook.config.level", "capture"),
    ]
    assert "$include" in document["obstacles"][0]


def test_back_to_the_usual_provider(run: Run, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFBOOK_HOME")

    def config() -> Any:
        plain = (host / "openclaw.json").read_text().replace("// mine", "")
        return json.loads(plain)["plugins"]["entries"]["offbook"]["config"]

    elsewhere = ("--home", "/elsewhere", "--url", "http://h:1")
    assert setup(run, host, "capture", "--yes", *elsewhere).exit_code == 0
    assert config() == {"level": "capture", "home": "/elsewhere", "endpoint": "http://h:1"}
    assert setup(run, host, "recall", "--yes").exit_code == 0
    assert config() == {"level": "recall", "home": "/elsewhere", "endpoint": "http://h:1"}
    assert setup(run, host, "recall", "--yes", "--home", "/other").exit_code == 0
    assert config() == {"level": "recall", "home": "/other"}
    assert setup(run, host, "recall", "--yes", "--home", str(host.parent / ".offbook")).exit_code == 0
    assert config() == {"level": "recall"}
    assert setup(run, host, "recall", "--yes", *elsewhere).exit_code == 0
    assert setup(run, host, "recall", "--yes", "--url", f"unix://{host.parent}/.offbook/offbook.sock").exit_code == 0
    assert config() == {"level": "recall"}


def test_down_again(run: Run, host: Path) -> None:
    def plugins() -> Any:
        return json.loads((host / "openclaw.json").read_text().replace("// mine", ""))["plugins"]

    assert setup(run, host, "capture", "--yes").exit_code == 0
    before = plugins()
    assert setup(run, host, "recall", "--memory-slot", "--yes").exit_code == 0
    assert setup(run, host, "recall", "--host-model", "--yes").exit_code == 0
    assert plugins()["slots"] == {"memory": "offbook-memory"}
    assert setup(run, host, "capture", "--no-memory-slot", "--no-host-model", "--yes").exit_code == 0
    before["entries"]["offbook"]["config"]["hostModel"] = False
    assert plugins() == before


def test_who_had_a_slot_is_known_after_many_changes(run: Run, host: Path) -> None:
    assert setup(run, host, "hot-swap", "--memory-slot", "--yes").exit_code == 0
    for number in range(15):
        assert setup(run, host, "hot-swap", "--host-model" if number % 2 else "--no-host-model", "--yes").exit_code == 0
    assert len(list(host.glob("*backup*"))) == 11
    assert setup(run, host, "off", "--yes").exit_code == 0
    assert (host / "openclaw.json").read_text() == FILE


def test_what_to_do_next_names_the_same_host(run: Run, host: Path) -> None:
    result = setup(run, host, "capture", "--yes", "--config", str(host / "openclaw.json"))
    assert f"offbook openclaw doctor --config {host}/openclaw.json" in result.stdout


def test_a_host_that_does_not_reload(run: Run, host: Path) -> None:
    (host / "openclaw.json").write_text('{"gateway": {"reload": {"mode": "off"}}}')
    assert "so run: openclaw gateway restart" in setup(run, host, "capture", "--yes").stdout


def test_mcp_adds_a_server_that_asks_the_same_provider(run: Run, host: Path, tmp_path: Path) -> None:
    (host / "openclaw.json").write_text("{}")
    assert setup(run, host, "capture", "--mcp", "--yes", "--home", str(tmp_path / "kept")).exit_code == 0
    server = json.loads((host / "openclaw.json").read_text())["mcp"]["servers"]["offbook"]
    assert server["args"] == ["mcp", "--home", str(tmp_path / "kept")]
    assert setup(run, host, "off", "--yes").exit_code == 0
    assert "mcp" not in json.loads((host / "openclaw.json").read_text())


def test_mcp_without_its_extra_says_how_to_install_it(run: Run, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    from offbook.cli.options import Invocation

    with pytest.raises(click.UsageError, match=r"pip install 'offbook\[mcp\]'"):
        openclaw._wishes(
            Invocation(),
            level="capture",
            is_mcp=True,
            host_model=None,
            start_daemon=None,
            take_slot=False,
            endpoint=None,
        )


def test_no_host_here(run: Run, host: Path) -> None:
    (host / "openclaw.json").unlink()
    result = setup(run, host, "capture", "--yes")
    assert (result.exit_code, "--config" in result.stderr) == (1, True)


# ── doctor ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The ids that the provider has; it answers."""
    ids: set[str] = set()
    monkeypatch.setattr(Client, "ping", lambda _: {})
    monkeypatch.setattr(
        Client, "missing", lambda _, session, asked, agent_id=None: [each for each in asked if each not in ids]
    )
    return ids


@pytest.fixture
def running(run: Run, host: Path) -> Path:
    """Set up at hot-swap, with one turn that went through our engine."""
    assert setup(run, host, "hot-swap", "--yes").exit_code == 0
    transcript(host, "main", {"agent:main:chat": [("a", "user"), ("b", "assistant")]})
    tell(host)
    return host


def tell(host: Path, **parts: Any) -> None:
    at = "2026-01-31T12:00:01Z"
    told: dict[str, Any] = {
        "pid": os.getpid(),
        "startedAt": "2026-01-31T11:00:00Z",
        "savedAt": datetime.now(UTC).isoformat(),
        "level": "hot-swap",
        "provider": {"endpoint": f"unix:{host.parent}/home/offbook.sock", "ok": True},
        "turns": {"prepared": 1, "last": {"at": at}},
        "engine": {"assembled": 1, "committed": 1, "last": {"at": at}},
    }
    report(host, **(told | parts))


def levels(result: Any) -> dict[str, str]:
    return {finding["check"]: finding["level"] for finding in json.loads(result.stdout)["findings"]}


def test_all_is_well(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a", "b"}
    result = run("openclaw", "doctor")
    assert result.exit_code == 0, result.stdout
    assert "all 2 messages are stored" in result.stdout
    assert result.stdout.splitlines()[1].split()[:5] == ["main", "agent:main:chat", "2", "2", "0"]
    assert "0 warnings, 0 failures" in result.stdout
    (session,) = json.loads(run("openclaw", "doctor", "--json").stdout)["sessions"]
    assert (session["host"], session["stored"], session["missing"]) == (2, 2, [])


def test_a_turn_that_did_not_arrive(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a"}
    result = run("openclaw", "doctor", "--json")
    assert result.exit_code == 1
    assert levels(result)["last turn"] == "fail"
    assert json.loads(result.stdout)["sessions"][0]["missing"] == ["b"]


def test_what_to_do_names_what_is_not_usual(run: Run, running: Path, stored: set[str], tmp_path: Path) -> None:
    assert setup(run, running, "hot-swap", "--yes", "--url", "http://localhost:1").exit_code == 0
    moved = running.rename(tmp_path / "else where")
    result = run("openclaw", "doctor", "--json", "--state", str(moved))
    (found,) = [each for each in json.loads(result.stdout)["findings"] if each["check"] == "last turn"]
    command = f"offbook --home {tmp_path}/home import openclaw --url http://localhost:1 --state '{moved}'"
    assert command in found["mend"]


def test_a_plugin_that_delivers_elsewhere(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a", "b"}
    tell(running, provider={"endpoint": "unix:/elsewhere", "ok": True})
    result = run("openclaw", "doctor", "--json")
    assert (result.exit_code, levels(result)["reached"]) == (1, "fail")


def test_the_memory_slot_is_looked_at(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a", "b"}
    assert "memory slot" not in levels(run("openclaw", "doctor", "--json"))
    assert setup(run, running, "hot-swap", "--yes", "--memory-slot").exit_code == 0
    assert levels(run("openclaw", "doctor", "--json"))["memory slot"] == "ok"
    path = running / "openclaw.json"
    path.write_text(path.read_text().replace('"memory": "offbook-memory"', '"memory": "none"'))
    result = run("openclaw", "doctor", "--json")
    assert (result.exit_code, levels(result)["memory slot"]) == (1, "fail")


def test_the_host_s_own_engine(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a", "b"}
    tell(running, engine={})
    result = run("openclaw", "doctor", "--json")
    assert (result.exit_code, levels(result)["engine"]) == (1, "fail")


def test_a_turn_that_was_not_prepared(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a", "b"}
    tell(running, turns={})
    assert levels(run("openclaw", "doctor", "--json"))["recall"] == "fail"


def test_nobody_answers(run: Run, running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: Client) -> None:
        raise ProviderUnavailable("nobody answers")

    monkeypatch.setattr(Client, "ping", away)
    result = run("openclaw", "doctor")
    assert result.exit_code == 3
    assert f"→ offbook --home {running.parent / 'home'} serve" in result.stdout


@pytest.mark.parametrize(("status", "mend"), [(401, "tokenFile"), (404, "Update it")])
def test_a_provider_that_refuses(
    run: Run, running: Path, stored: set[str], monkeypatch: pytest.MonkeyPatch, status: int, mend: str
) -> None:
    def refusing(*_: Any, **__: Any) -> None:
        raise ProviderRefused({"status": status, "title": "no"})

    monkeypatch.setattr(Client, "missing", refusing)
    result = run("openclaw", "doctor")
    assert (result.exit_code, mend in result.stdout) == (1, True)


def test_an_endpoint_that_is_none(run: Run, running: Path, stored: set[str]) -> None:
    path = running / "openclaw.json"
    path.write_text(path.read_text().replace('"level":', '"endpoint": "ftp://x", "level":'))
    assert levels(run("openclaw", "doctor", "--json"))["provider"] == "fail"


def test_a_report_that_is_none(run: Run, running: Path, stored: set[str]) -> None:
    (running / "offbook" / "report.json").write_text("{")
    assert levels(run("openclaw", "doctor", "--json"))["gateway"] == "fail"
    (running / "offbook" / "report.json").unlink()
    result = run("openclaw", "doctor")
    assert "never started by a gateway" in result.stdout


def test_a_gateway_that_is_gone(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a", "b"}
    tell(running, savedAt="2026-01-31T12:00:00Z")
    result = run("openclaw", "doctor", "--json")
    assert (result.exit_code, levels(result)["gateway"]) == (0, "warn")


def test_level_off_and_a_file_that_is_none(run: Run, host: Path, stored: set[str]) -> None:
    result = run("openclaw", "doctor", "--json")
    assert (result.exit_code, levels(result)) == (1, {"config": "ok", "level": "fail"})
    (host / "openclaw.json").write_text("{")
    result = run("openclaw", "doctor", "--json")
    assert (result.exit_code, levels(result)) == (1, {"config": "fail"})
    assert result.stdout.count(str(host / "openclaw.json")) == 1
    (host / "openclaw.json").unlink()
    result = run("openclaw", "doctor")
    assert "→ name the file with --config" in result.stdout


def test_what_is_included_is_read(run: Run, running: Path, stored: set[str]) -> None:
    stored |= {"a", "b"}
    config = running / "openclaw.json"
    plain = config.read_text().replace("// mine", "")
    (running / "plugins.json5").write_text(json.dumps(json.loads(plain)["plugins"]))
    config.write_text('{plugins: {$include: "./plugins.json5"}}')
    assert run("openclaw", "doctor").exit_code == 0


def test_another_host_is_named_by_its_file(run: Run, running: Path, stored: set[str], tmp_path: Path) -> None:
    stored |= {"a", "b"}
    moved = running.rename(tmp_path / "elsewhere")
    assert run("openclaw", "doctor").exit_code == 1
    assert run("openclaw", "doctor", "--config", str(moved / "openclaw.json")).exit_code == 0
    assert run("openclaw", "doctor", "--state", str(moved)).exit_code == 0
