"""Where the host's file is, and how it is replaced."""

from __future__ import annotations

import errno
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from offbook.client.config_files.file import ConfigFile, diff, hindrance, replace_file, thin_out
from offbook.model.errors import InvalidInput, NotFound, OffbookError
from offbook.openclaw.places import state_folder
from offbook.openclaw.setup import config_path, read, resolved

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_where_the_host_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_path({}) == tmp_path / ".openclaw" / "openclaw.json"
    assert config_path({"OPENCLAW_HOME": "/svc"}) == Path("/svc/.openclaw/openclaw.json")
    assert config_path({"OPENCLAW_STATE_DIR": "~/s"}) == tmp_path / "s" / "openclaw.json"
    assert config_path({"OPENCLAW_STATE_DIR": "/s", "OPENCLAW_CONFIG_PATH": "/c/x.json"}) == Path("/c/x.json")
    assert state_folder({"OPENCLAW_STATE_DIR": " undefined "}) == tmp_path / ".openclaw"


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    with pytest.raises(NotFound, match="--config"):
        read(path)
    for content in (b"[]", b"\xff", b"{"):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=re.escape(str(path))):
            read(path)


def test_it_is_replaced_with_its_mode_and_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text('{"a": 1}\n')
    path.chmod(0o640)
    backup = replace_file(read(path), '{"a": 2}\n', AT)
    assert backup.name == "openclaw.json.offbook-backup-20260131T120000.000000Z"
    assert (backup.read_text(), path.read_text()) == ('{"a": 1}\n', '{"a": 2}\n')
    assert {each.stat().st_mode & 0o777 for each in (path, backup)} == {0o640}
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, backup.name]


def test_a_link_keeps_leading_to_it(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text("{}")
    link = tmp_path / "openclaw.json"
    link.symlink_to(real)
    replace_file(read(link), '{"a": 2}', AT)
    assert link.is_symlink()
    assert real.read_text() == '{"a": 2}'


def test_what_somebody_else_wrote_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{}")
    file = read(path)
    path.write_text('{"theirs": 1}')
    with pytest.raises(OffbookError, match="run it again"):
        replace_file(file, '{"ours": 1}', AT)
    assert path.read_text() == '{"theirs": 1}'
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_protected_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{}")
    assert hindrance(path) is None
    path.chmod(0o444)
    with pytest.raises(OffbookError, match=r"chmod u\+w"):
        replace_file(read(path), '{"a": 2}', AT)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("{}", [path])
    path.chmod(0o644)
    monkeypatch.setattr("os.access", lambda asked, mode: asked == path)
    assert str(tmp_path) in (hindrance(path) or "")


def test_a_file_that_is_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{}")
    really = Path.replace

    def busy(self: Path, target: Path) -> Path:
        if target == path:
            raise OSError(errno.EBUSY, "Device or resource busy", str(path))
        return really(self, target)

    monkeypatch.setattr(Path, "replace", busy)
    with pytest.raises(OffbookError, match="mount the folder"):
        replace_file(read(path), '{"a": 2}', AT)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("{}", [path])


def test_the_newest_backups_are_kept_and_what_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "openclaw[1].json"
    path.write_text("{}")
    made = [replace_file(read(path), "{}", AT + timedelta(seconds=number)) for number in range(13)]
    thin_out(path, {made[1]})
    assert sorted(each for each in tmp_path.iterdir() if each != path) == [made[1], *made[3:]]


def test_line_ends_stay(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_bytes(b'{\r\n  "a": 1\r\n}')
    assert read(path).text == '{\r\n  "a": 1\r\n}'


def test_the_difference_names_the_file() -> None:
    file = ConfigFile(Path("/x/openclaw.json"), "{\n}\n", {})
    assert diff(file, "{\n  a: 1\n}\n")[:2] == ["--- openclaw.json (now)", "+++ openclaw.json (then)"]
    assert diff(file, file.text) == []


def test_a_configuration_in_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.json5").write_text("{x: 1, deep: {a: 1}}")
    (tmp_path / "b.json5").write_text('{deep: {b: 2}, "$include": "./c.json5"}')
    (tmp_path / "c.json5").write_text("{y: [1]}")
    config = {"plugins": {"$include": ["./a.json5", "./b.json5"], "x": 9}, "rest": [{"$include": "./c.json5"}]}
    assert resolved(config, tmp_path) == {
        "plugins": {"x": 9, "deep": {"a": 1, "b": 2}, "y": [1]},
        "rest": [{"y": [1]}],
    }
    with pytest.raises(InvalidInput, match=r"gone\.json5"):
        resolved({"$include": "gone.json5"}, tmp_path)
    (tmp_path / "loop.json5").write_text('{"$include": "./loop.json5"}')
    with pytest.raises(InvalidInput, match="too deep"):
        resolved({"$include": "./loop.json5"}, tmp_path)
