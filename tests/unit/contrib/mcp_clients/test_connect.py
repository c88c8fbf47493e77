"""The command itself, on files of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offbook.cli.root import root
from offbook.contrib.mcp_clients.clients import CLIENTS

CLAUDE = '{\n\t"numStartups": 3,\n\t"oauthAccount": {"accessToken": "sk-very-secret"}\n}'


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "OFFBOOK_URL", "OFFBOOK_AGENT", "OFFBOOK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(root, ["connect", *args, "--command", "/opt/offbook"])


def test_shown_and_not_written_without_anybody_to_ask(user: Path) -> None:
    (user / ".claude.json").write_text(CLAUDE)
    shown = run("claude-code")
    assert shown.exit_code == 1
    assert '+\t\t"offbook": {' in shown.output
    assert "nothing is written; --yes" in shown.output
    assert "very-secret" not in shown.output
    assert (user / ".claude.json").read_text() == CLAUDE
    assert run("claude-code", "--dry-run").exit_code == 0
    assert not (user / ".claude").exists()


def test_written_with_a_backup_twice_the_same_and_undone_to_the_byte(user: Path) -> None:
    config, settings = user / ".claude.json", user / ".claude" / "settings.json"
    config.write_text(CLAUDE)
    config.chmod(0o640)
    assert run("claude-code", "--yes").exit_code == 0
    written = config.read_text()
    assert json.loads(written)["mcpServers"]["offbook"]["command"] == "/opt/offbook"
    assert set(json.loads(settings.read_text())["hooks"]) == {
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
        "SubagentStop",
        "PreCompact",
        "SessionEnd",
    }
    assert config.stat().st_mode & 0o777 == 0o640
    [backup] = user.glob(".claude.json.offbook-backup-*")
    assert backup.read_text() == CLAUDE
    again = run("claude-code", "--yes")
    assert again.exit_code == 0
    assert "nothing to change" in again.output
    assert config.read_text() == written
    assert run("claude-code", "--remove", "--yes").exit_code == 0
    assert config.read_text() == CLAUDE
    assert not settings.parent.exists()
    assert "it is not there" in run("claude-code", "--remove", "--yes").output


def test_what_came_later_stays_when_ours_goes(user: Path) -> None:
    path = user / ".cursor" / "mcp.json"
    assert run("cursor", "--yes").exit_code == 0
    config: dict[str, Any] = json.loads(path.read_text())
    config["mcpServers"]["later"] = {"command": "x"}
    path.write_text(json.dumps(config))
    assert run("cursor", "--remove", "--yes").exit_code == 0
    assert json.loads(path.read_text()) == {"mcpServers": {"later": {"command": "x"}}}


def test_codex_gets_a_table_and_hooks(user: Path) -> None:
    config, hooks = user / ".codex" / "config.toml", user / ".codex" / "hooks.json"
    config.parent.mkdir()
    config.write_text('model = "gpt-5" # mine\n[features]\nhooks = false\n')
    before = config.read_text()
    told = run("codex", "--yes", "--agent", "coder", "--home", str(user / "data folder"))
    assert told.exit_code == 0
    assert "turns hooks off" in told.output
    assert "/hooks" in told.output
    assert config.read_text().startswith(before)
    command = json.loads(hooks.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert command == f"/opt/offbook hook codex --home '{user / 'data folder'}' --agent coder"
    assert run("codex", "--yes", "--no-capture", "--agent", "coder", "--home", str(user / "data folder")).exit_code == 0
    assert json.loads(hooks.read_text()) == {}
    assert run("codex", "--remove", "--yes").exit_code == 0
    assert config.read_text() == before


def hook_command(path: Path, event: str = "Stop") -> str:
    command = json.loads(path.read_text())["hooks"][event][0]["hooks"][0]["command"]
    assert isinstance(command, str)
    return command


def test_what_was_said_before_is_taken_over_by_tools_and_hooks(user: Path) -> None:
    config, hooks = user / ".claude.json", user / ".claude" / "settings.json"
    assert run("claude-code", "--yes", "--agent", "coder", "--url", "unix:///a.sock").exit_code == 0
    written = config.read_text(), hooks.read_text()
    assert "nothing to change" in run("claude-code", "--yes").output
    assert (config.read_text(), hooks.read_text()) == written
    assert run("claude-code", "--yes", "--agent", "other").exit_code == 0
    env = json.loads(config.read_text())["mcpServers"]["offbook"]["env"]
    assert env == {"OFFBOOK_URL": "unix:///a.sock", "OFFBOOK_AGENT": "other"}
    assert hook_command(hooks) == "/opt/offbook hook claude-code --url unix:///a.sock --agent other"
    assert run("claude-code", "--yes", "--home", "/data").exit_code == 0  # and with it the provider of that folder
    assert hook_command(hooks) == "/opt/offbook hook claude-code --home /data --agent other"
    assert "OFFBOOK_URL" not in config.read_text()


def test_what_is_said_as_an_argument_counts_for_hooks_and_stays(user: Path) -> None:
    config = user / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('[mcp_servers.offbook]\ncommand = "/opt/offbook"\nargs = ["mcp", "--agent", "coder"]\n')
    before = config.read_text()
    assert run("codex", "--yes").exit_code == 0
    assert config.read_text() == before
    assert hook_command(user / ".codex" / "hooks.json") == "/opt/offbook hook codex --agent coder"
    assert run("codex", "--yes", "--agent", "other").exit_code == 0
    assert 'args = ["mcp", "--agent", "other"]' in config.read_text()
    assert hook_command(user / ".codex" / "hooks.json") == "/opt/offbook hook codex --agent other"


@pytest.mark.parametrize("client", ["cursor", "codex", "claude-code"])
def test_a_launcher_of_any_name_may_be_run_twice(client: str) -> None:
    args = ["connect", client, "--yes", "--command", "/opt/run-memory"]
    assert CliRunner().invoke(root, args).exit_code == 0
    assert "nothing to change" in CliRunner().invoke(root, args).output


def test_no_secret_of_a_neighbour_is_shown(user: Path) -> None:
    secrets = ["sk-abc123", "hunter2", "pat-value", "ghp_" + "a1B2" * 9, "s3cr3t", "swordfish"]
    args = ["-y", "--api-key", secrets[0], f"--password={secrets[1]}", secrets[3], "-H", f"X-Auth: {secrets[5]}"]
    neighbour = {"command": "npx", "args": args, "env": {"GITHUB_PAT": secrets[2], "DB_PASS": secrets[4]}}
    (user / ".cursor").mkdir()
    for indent in (None, 2):
        (user / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"other": neighbour}}, indent=indent))
        for shown in (run("cursor", "--dry-run"), run("cursor", "--dry-run", "--json")):
            assert shown.exit_code == 0
            assert [secret for secret in secrets if secret in shown.output] == []
    (user / ".codex").mkdir()
    listed = ", # a comment\n ".join(json.dumps(each) for each in args)
    env = f'env = {{ GITHUB_PAT = "{secrets[2]}", DB_PASS = "{secrets[4]}" }}'
    (user / ".codex" / "config.toml").write_text(f"[mcp_servers.x]\n{env}\nargs = [{listed}]\n")
    shown = run("codex", "--dry-run")
    assert "offbook" in shown.output
    assert [secret for secret in secrets if secret in shown.output] == []


def test_comments_that_came_later_stay_when_ours_goes(user: Path) -> None:
    config = user / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "a"\n')
    assert run("codex", "--yes").exit_code == 0
    config.write_text("# mine\n" + config.read_text() + "# mine, too\n")
    assert run("codex", "--remove", "--yes").exit_code == 0
    assert config.read_text() == '# mine\nmodel = "a"\n# mine, too\n'


@pytest.mark.parametrize(
    ("client", "place", "comment"), [("codex", ".codex/config.toml", "# m\n"), ("cursor", ".cursor/mcp.json", "// m\n")]
)
def test_a_file_of_ours_goes_only_as_we_made_it(user: Path, client: str, place: str, comment: str) -> None:
    path = user / place
    assert run(client, "--yes").exit_code == 0
    assert run(client, "--yes", "--agent", "coder").exit_code == 0
    made = path.read_text()
    assert run(client, "--remove", "--yes").exit_code == 0
    assert not path.parent.exists()  # nor what was kept of it, which was all ours
    path.parent.mkdir()
    path.write_text(made + comment)
    assert run(client, "--remove", "--yes").exit_code == 0
    assert comment in path.read_text()


def test_another_machine_wants_a_token(user: Path) -> None:
    assert "OFFBOOK_TOKEN" in run("cursor", "--dry-run", "--url", "https://memory.example:7777").output
    for near in ("http://127.0.0.1:7777", "unix:///a.sock"):
        assert "OFFBOOK_TOKEN" not in run("cursor", "--dry-run", "--url", near).output


def test_json_tells_the_same(user: Path) -> None:
    told = run("vscode", "--json", "--config", str(user / "mcp.json"))
    assert told.exit_code == 1
    document = json.loads(told.output)
    assert document["written"] is False
    assert document["files"][0]["path"] == str(user / "mcp.json")
    assert any('"servers"' in line for line in document["files"][0]["diff"])
    assert json.loads(run("vscode", "--json", "--yes", "--config", str(user / "mcp.json")).output)["written"] is True


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b'{"mcpServers": 3}', b'"x"'])
def test_a_broken_file_is_one_line_and_stays(user: Path, content: bytes) -> None:
    path = user / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(content)
    told = run("cursor", "--yes")
    assert told.exit_code == 1
    assert len(told.output.strip().splitlines()) == 1
    assert "mcp.json" in told.output
    assert path.read_bytes() == content


def test_one_broken_file_keeps_the_other_from_being_written(user: Path) -> None:
    (user / ".claude").mkdir()
    (user / ".claude" / "settings.json").write_text("{")
    assert run("claude-code", "--yes").exit_code == 1
    assert not (user / ".claude.json").exists()


def test_a_link_stays_a_link(user: Path) -> None:
    real = user / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = user / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert run("cursor", "--yes").exit_code == 0
    assert link.is_symlink()
    assert "offbook" in real.read_text()


def test_a_write_protected_file_is_told(user: Path) -> None:
    path = user / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o444)
    told = run("cursor", "--yes")
    assert told.exit_code == 1
    assert "write-protected" in told.output
    assert path.read_text() == "{}"


def test_a_client_without_hooks_cannot_be_captured() -> None:
    assert run("cursor", "--capture").exit_code == 2
    assert run("emacs").exit_code == 2


def test_there_and_back_again_and_again_leaves_nothing(user: Path) -> None:
    (user / ".claude.json").write_text(CLAUDE)
    (user / ".codex").mkdir()
    (user / ".codex" / "config.toml").write_text('model = "a"\n')
    (user / ".codeium").mkdir()
    (user / ".codeium" / "theirs").touch()
    before = sorted(path.relative_to(user) for path in user.rglob("*"))
    for client in CLIENTS:
        for _ in range(2):
            assert run(client, "--yes").exit_code == 0
            assert run(client, "--yes", "--agent", "coder").exit_code == 0
            told = run(client, "--remove", "--yes")
            assert told.exit_code == 0, told.output
    assert sorted(path.relative_to(user) for path in user.rglob("*")) == before
    assert [path.read_text() for path in (user / ".claude.json", user / ".codex" / "config.toml")] == [
        CLAUDE,
        'model = "a"\n',
    ]


def test_a_folder_that_holds_something_stays_and_so_does_the_users_own(user: Path) -> None:
    assert run("cursor", "--yes").exit_code == 0
    (user / ".cursor" / "rules").mkdir()
    assert run("cursor", "--remove", "--yes").output.endswith(f"removed: {user / '.cursor' / 'mcp.json'}\n")
    assert (user / ".cursor" / "rules").is_dir()
    assert run("vscode", "--yes", "--config", str(user / "mcp.json")).exit_code == 0
    (user / ".cursor" / "rules").rmdir()
    (user / ".cursor").rmdir()
    assert run("vscode", "--remove", "--yes", "--config", str(user / "mcp.json")).exit_code == 0
    assert list(user.iterdir()) == []
    (user / "project").mkdir()
    project = str(user / "project" / ".cursor" / "mcp.json")
    assert run("cursor", "--yes", "--config", project).exit_code == 0
    assert run("cursor", "--remove", "--yes", "--config", project).exit_code == 0
    assert list(user.rglob("*")) == [user / "project"]


def test_a_backup_with_anything_of_somebodys_stays(user: Path) -> None:
    config = user / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "a"\n')
    assert run("codex", "--yes").exit_code == 0
    config.unlink()  # and a new one, of which all is ours
    assert run("codex", "--yes").exit_code == 0
    assert run("codex", "--remove", "--yes").exit_code == 0
    [kept] = config.parent.iterdir()
    assert kept.read_text() == 'model = "a"\n'


@pytest.mark.parametrize("url", ["ftp://x", "memory.example:7777", "http://", "http://h:99999"])
def test_what_is_no_url_is_not_written(user: Path, url: str) -> None:
    told = run("cursor", "--yes", "--url", url)
    assert told.exit_code == 2
    assert told.output.strip().splitlines()[-1].startswith("Error: Invalid value for '--url': endpoint ")
    assert list(user.iterdir()) == []


def test_without_capture_nobody_is_sent_to_look_for_hooks(user: Path) -> None:
    assert "/hooks" not in run("claude-code", "--yes", "--no-capture").output
    assert run("claude-code", "--yes").output.endswith("look with /mcp and /hooks\n")


def test_the_advice_for_servers_in_one_line_is_right(user: Path) -> None:
    config = user / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('mcp_servers = { other = { command = "x" } }\n')
    told = run("codex", "--yes", "--no-capture")
    assert told.exit_code == 1
    assert "into mcp_servers by hand" in told.output
    config.write_text(config.read_text().replace(" }\n", f", {told.output.split('`')[1]} }}\n"))
    assert "nothing to change" in run("codex", "--yes", "--no-capture").output
    changed = run("codex", "--yes", "--no-capture", "--agent", "coder")
    assert changed.exit_code == 1
    assert 'OFFBOOK_AGENT = "coder"' in changed.output
