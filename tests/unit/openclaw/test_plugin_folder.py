"""Where the plugin is found, and which path is written."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from offbook.model.errors import NotFound
from offbook.openclaw import checks as of_plugin
from offbook.openclaw.changes import Wishes
from offbook.openclaw.checks import (
    Copy,
    check_files,
    chosen_folder,
    installed_copy,
    loaded_copies,
    memory_folder,
    plugin_in,
)
from offbook.openclaw.setup import prepare
from tests.places import REPOSITORY
from tests.unit.openclaw.hosted import plugin_folder

INSIDE = Path(of_plugin.__file__).parents[1] / "hosts" / "openclaw" / "plugin"
OURS = INSIDE if INSIDE.is_dir() else REPOSITORY / "plugins" / "openclaw"
"""In a wheel it is inside the package, in a checkout beside it."""


def test_load_paths_in_every_way_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    ours = plugin_folder(tmp_path / "p")
    plugin_folder(tmp_path / "m", "offbook-memory")
    plugin_folder(tmp_path / "x", "other")
    paths = ["~/p", "p", str(ours), "m", "x", "gone", 7]
    found = loaded_copies({"plugins": {"load": {"paths": paths}}}, tmp_path)
    assert [(copy.plugin, copy.written) for copy in found] == [
        ("offbook", "~/p"),
        ("offbook", "p"),
        ("offbook", str(ours)),
        ("offbook-memory", "m"),
    ]
    assert {copy.folder for copy in found[:3]} == {ours}
    assert loaded_copies({"plugins": {"load": {"paths": "p"}}}, tmp_path) == []


def test_a_file_of_the_plugin_stands_for_it(tmp_path: Path) -> None:
    folder = plugin_folder(tmp_path / "p")
    assert plugin_in(folder / "dist" / "index.js") == "offbook"
    (folder / "openclaw.plugin.json").write_text("[]")
    assert plugin_in(folder) is None


def test_what_the_host_installed(tmp_path: Path) -> None:
    assert installed_copy(tmp_path) is None
    folder = plugin_folder(tmp_path / "extensions" / "offbook")
    assert installed_copy(tmp_path) == Copy("offbook", folder, None)


def test_what_the_host_installed_elsewhere(tmp_path: Path) -> None:
    elsewhere = plugin_folder(tmp_path / "npm" / "offbook")
    (tmp_path / "state").mkdir()
    connection = apsw.Connection(str(tmp_path / "state" / "openclaw.sqlite"))
    connection.execute("CREATE TABLE config_machine_state (state_key TEXT, value_json TEXT)")
    index = {"index": {"installRecords": {"offbook": {"installPath": str(elsewhere)}}}}
    row = ("plugins.installedIndex", json.dumps(index))
    connection.execute("INSERT INTO config_machine_state VALUES (?, ?)", row)
    connection.close()
    assert installed_copy(tmp_path) == Copy("offbook", elsewhere, None)


def test_reading_the_records_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    connection = apsw.Connection(str(tmp_path / "state" / "openclaw.sqlite"))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE config_machine_state (state_key TEXT, value_json TEXT)")
    connection.close()
    installed_copy(tmp_path)
    assert [each.name for each in (tmp_path / "state").iterdir()] == ["openclaw.sqlite"]


def test_records_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "openclaw.sqlite").write_bytes(b"none" * 1000)
    assert installed_copy(tmp_path) is None


def test_the_folder_that_is_written(tmp_path: Path) -> None:
    folder = plugin_folder(tmp_path / "p")
    assert chosen_folder(str(folder), []) == str(folder)
    assert chosen_folder(str(folder), [Copy("offbook", folder, "~/p")]) == "~/p"
    assert chosen_folder(None, [Copy("offbook", folder, "~/p")]) == "~/p"
    with pytest.raises(NotFound, match="--plugin takes"):
        chosen_folder(str(tmp_path), [])


def test_a_plugin_that_is_not_built_would_make_the_host_refuse_everything(tmp_path: Path) -> None:
    folder = plugin_folder(tmp_path / "p", is_built=False)
    with pytest.raises(NotFound, match="npm run build"):
        chosen_folder(str(folder), [])


def test_the_memory_plugin_is_in_a_folder_of_it(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="memory-slot"):
        memory_folder(plugin_folder(tmp_path / "p"))
    inner = plugin_folder(tmp_path / "p" / "memory-slot", "offbook-memory")
    assert memory_folder(tmp_path / "p") == str(inner)


def test_the_folder_of_a_package_that_is_gone_gives_way_to_the_one_beside_us(tmp_path: Path) -> None:
    gone = tmp_path / "lib" / "python3.10" / "site-packages" / "offbook" / "hosts" / "openclaw" / "plugin"
    paths = [str(gone), str(gone / "memory-slot"), str(gone / "other"), str(tmp_path / "elsewhere")]
    found = loaded_copies({"plugins": {"load": {"paths": paths}}}, tmp_path)
    assert found == [Copy("offbook", gone, str(gone)), Copy("offbook-memory", gone / "memory-slot", paths[1])]
    assert all(copy.is_gone for copy in found)
    assert chosen_folder(None, found) == str(OURS)
    assert check_files(found).level == "fail"
    assert "offbook openclaw setup" in (check_files(found).mend or "")


def test_what_is_no_longer_there_is_written_anew(tmp_path: Path) -> None:
    gone = tmp_path / "site-packages" / "offbook" / "hosts" / "openclaw" / "plugin"
    config = {
        "plugins": {
            "load": {"paths": [str(gone), "mine", str(gone / "memory-slot")]},
            "entries": {"offbook-memory": {"enabled": True}},
            "slots": {"memory": "offbook-memory"},
        }
    }
    (tmp_path / "openclaw.json").write_text(json.dumps(config))
    prepared = prepare(tmp_path / "openclaw.json", tmp_path, Wishes(level="capture"), {})
    paths = prepared.plan.config["plugins"]["load"]["paths"]
    assert sorted(paths) == sorted(["mine", str(OURS), str(OURS / "memory-slot")])
    (tmp_path / "openclaw.json").write_text(prepared.text)
    assert prepare(tmp_path / "openclaw.json", tmp_path, Wishes(level="capture"), {}).plan.changes == []
