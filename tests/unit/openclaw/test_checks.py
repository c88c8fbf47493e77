"""Each check of the configuration finds what it is for, and says the line to add."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offbook.openclaw.changes import LEVELS, Level, Wishes, planned
from offbook.openclaw.checks import (
    Copy,
    check_enabled,
    check_files,
    check_level,
    check_permissions,
    check_slot,
    level_of,
)


def configured(level: Level = "hot-swap") -> dict[str, Any]:
    return planned({}, Wishes(level, plugin_folder="/p"), {}).config


def entry(config: dict[str, Any]) -> Any:
    return config["plugins"]["entries"]["offbook"]


@pytest.mark.parametrize("level", ["capture", "recall", "hot-swap"])
def test_what_setup_writes_is_well(level: Level) -> None:
    config = configured(level)
    findings = [check_level(config), check_enabled(config), *check_permissions(config), check_slot(config)]
    assert {finding.level for finding in findings} == {"ok"}


def test_the_level_as_the_plugin_reads_it() -> None:
    for level in LEVELS:
        assert level_of({"plugins": {"entries": {"offbook": {"config": {"level": level}}}}}) == level
    assert level_of({"plugins": {"entries": {"offbook": {"config": {"level": "recall", "enabled": False}}}}}) == "off"
    assert level_of({"plugins": {"entries": {"offbook": {"config": {"level": "off", "storeOnly": True}}}}}) == "capture"
    assert level_of({}) == "off"


def test_level_off_and_a_level_that_is_none() -> None:
    assert "setup --level" in (check_level({}).mend or "")
    assert check_level({}).level == "fail"
    config = configured()
    entry(config)["config"]["level"] = "full"
    assert "'full'" in check_level(config).what
    assert check_level(config).level == "fail"


@pytest.mark.parametrize(
    ("change", "what", "mend"),
    [
        ({"enabled": False}, "plugins.enabled is false", "openclaw config set plugins.enabled true"),
        ({"deny": ["offbook"]}, "plugins.deny names offbook", "take 'offbook' out of plugins.deny"),
        ({"allow": ["x"]}, "plugins.allow does not name", """openclaw config set plugins.allow '["x", "offbook"]'"""),
        ({"entries": {}}, "enabled is missing", "openclaw config set plugins.entries.offbook.enabled true"),
        ({"entries": {"offbook": {"enabled": False}}}, "enabled is false", "entries.offbook.enabled true"),
    ],
)
def test_every_way_to_keep_a_plugin_out(change: dict[str, Any], what: str, mend: str) -> None:
    config = configured()
    config["plugins"] |= change
    found = check_enabled(config)
    assert found.level == "fail"
    assert what in found.what
    assert mend in (found.mend or "")


def test_an_empty_list_keeps_nobody_out() -> None:
    config = configured()
    config["plugins"]["allow"] = []
    assert check_enabled(config).level == "ok"


def test_conversation_access() -> None:
    config = configured("capture")
    del entry(config)["hooks"]["allowConversationAccess"]
    (found,) = check_permissions(config)
    assert found.level == "fail"
    assert found.mend == "openclaw config set plugins.entries.offbook.hooks.allowConversationAccess true"


def test_prompt_injection_matters_from_recall_on() -> None:
    config = configured("recall")
    entry(config)["hooks"]["allowPromptInjection"] = False
    (found,) = check_permissions(config)
    assert (found.level, found.mend) == (
        "fail",
        "openclaw config set plugins.entries.offbook.hooks.allowPromptInjection true",
    )
    entry(config)["config"]["level"] = "capture"
    assert check_permissions(config)[0].level == "ok"


@pytest.mark.parametrize("holder", [None, "legacy", "lossless-claw"])
def test_hot_swap_without_the_slot(holder: str | None) -> None:
    config = configured()
    config["plugins"]["slots"] = {} if holder is None else {"contextEngine": holder}
    found = check_slot(config)
    assert (found.level, found.mend) == ("fail", "openclaw config set plugins.slots.contextEngine offbook")


def test_the_slot_without_hot_swap() -> None:
    config = configured("recall")
    config["plugins"]["slots"] = {"contextEngine": "offbook"}
    found = check_slot(config)
    assert found.level == "fail"
    assert "openclaw config unset plugins.slots.contextEngine" in (found.mend or "")


def test_the_plugin_s_files(tmp_path: Path) -> None:
    assert check_files([]).level == "fail"
    one, two = (Copy("offbook", tmp_path / name, f"/{name}") for name in ("one", "two"))
    one.folder.mkdir()
    unbuilt = check_files([one])
    assert (unbuilt.level, "npm run build" in (unbuilt.mend or "")) == ("fail", True)
    for copy in (one, two):
        (copy.folder / "dist").mkdir(parents=True)
        (copy.folder / "dist" / "index.js").touch()
    assert check_files([one]).level == "ok"
    assert check_files([one, Copy("offbook", one.folder, None)]).level == "ok"  # the same folder, twice named
    both = check_files([one, two])
    assert (both.level, str(two.folder) in both.what) == ("warn", True)
    assert check_files([Copy("offbook-memory", one.folder, "/m")]).level == "fail"
