"""What a level takes, and nothing more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offbook.client.config_files.editing import MISSING, value_at
from offbook.model.errors import InvalidInput
from offbook.openclaw.changes import LEVELS, PRECHECK, TOOLS, Level, Wishes, planned

HOST: dict[str, Any] = {"gateway": {"port": 1}, "plugins": {"entries": {"other": {"enabled": True}}}}


def after(config: dict[str, Any], level: Level = "capture", **wished: Any) -> dict[str, Any]:
    plan = planned(config, Wishes(level, plugin_folder="/p", **wished), paths_of(config))
    assert plan.obstacles == []
    return plan.config


def paths_of(config: dict[str, Any]) -> dict[str, str]:
    known = {"/p": "offbook", "/old": "offbook", "/p/memory-slot": "offbook-memory"}
    paths = value_at(config, ("plugins", "load", "paths"))
    return {path: known[path] for path in paths if path in known} if isinstance(paths, list) else {}


def test_what_each_level_writes() -> None:
    capture = {
        "enabled": True,
        "hooks": {"allowConversationAccess": True},
        "config": {"level": "capture"},
    }
    new = after(HOST)
    assert new["plugins"] == {
        "entries": {"other": {"enabled": True}, "offbook": capture},
        "load": {"paths": ["/p"]},
    }
    assert new["gateway"] == {"port": 1}
    recall = after(HOST, "recall")["plugins"]
    assert recall["entries"]["offbook"]["hooks"] == {"allowConversationAccess": True, "allowPromptInjection": True}
    assert "slots" not in recall
    assert after(HOST, "hot-swap")["plugins"]["slots"] == {"contextEngine": "offbook"}


def test_an_agent_with_a_tool_profile_gets_the_tools() -> None:
    profiled = {"id": "coder", "tools": {"profile": "coding", "alsoAllow": ["browser", "swap_cross"]}}
    agents = [{"id": "main"}, profiled, {"id": "full", "tools": {"profile": "full"}}]
    config = HOST | {"agents": {"list": agents, "entries": {"chat": {"tools": {"profile": "messaging"}}}}}
    there = after(config)
    also = there["agents"]["list"][1]["tools"]["alsoAllow"]
    assert also[:2] == ["browser", "swap_cross"]
    assert sorted(also[1:]) == sorted(TOOLS)
    assert there["agents"]["entries"]["chat"]["tools"]["alsoAllow"] == list(TOOLS)
    assert [there["agents"]["list"][at] for at in (0, 2)] == [agents[0], agents[2]]
    assert planned(there, Wishes("capture", plugin_folder="/p"), paths_of(there)).changes == []
    gone = after(there, "off")["agents"]
    assert gone["list"][1]["tools"] == {"profile": "coding", "alsoAllow": ["browser"]}
    assert gone["entries"]["chat"]["tools"] == {"profile": "messaging"}


@pytest.mark.parametrize("item", ["offbook", "group:plugins", "*"])
def test_tools_that_are_let_in_already(item: str) -> None:
    config = HOST | {"tools": {"profile": "coding", "alsoAllow": [item]}}
    assert after(config)["tools"] == config["tools"]


def test_a_list_of_ones_own_is_left_alone_and_told() -> None:
    config = HOST | {"tools": {"profile": "coding", "allow": ["read"]}}
    plan = planned(config, Wishes("capture", plugin_folder="/p"), {})
    assert plan.config["tools"] == config["tools"]
    assert ["tools.allow" in note and "swap_status" in note for note in plan.notes] == [True]


def test_the_tools_are_those_of_the_plugin() -> None:
    manifest = Path(__file__).parents[3] / "plugins" / "openclaw" / "openclaw.plugin.json"
    assert sorted(json.loads(manifest.read_text())["contracts"]["tools"]) == sorted(TOOLS)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("memory", [None, "/p/memory-slot"])
def test_twice_changes_nothing(level: Level, memory: str | None) -> None:
    wishes = Wishes(
        level, plugin_folder="/p", home="/h", start_daemon=True, memory_folder=memory, mcp_command="offbook"
    )
    once = planned(HOST, wishes, {}).config
    assert planned(once, wishes, paths_of(once)).changes == []


@pytest.mark.parametrize("level", ["capture", "recall", "hot-swap"])
def test_off_undoes_it_all(level: Level) -> None:
    config = HOST | {"plugins": HOST["plugins"] | {"allow": ["other"], "slots": {"memory": "other-memory"}}}
    there = after(config, level, home="/h", mcp_command="offbook", host_model=True)
    assert there != config
    assert after(there, "off") == config
    with_memory = after(config, level, memory_folder="/p/memory-slot", take_slot=True)
    gone = after(with_memory, "off")["plugins"]
    assert gone == {"entries": {"other": {"enabled": True}}, "allow": ["other"]}


def test_off_without_us_changes_nothing() -> None:
    assert planned(HOST, Wishes("off", plugin_folder=""), {}).changes == []
    assert planned({}, Wishes("off"), {}).changes == []
    empty: dict[str, Any] = {"plugins": {"entries": {}, "load": {"paths": []}, "slots": {}}, "mcp": {"servers": {}}}
    assert planned(empty, Wishes("off", plugin_folder=""), {}).changes == []


def test_what_a_higher_level_needed_goes_with_it() -> None:
    hooks = ("plugins", "entries", "offbook", "hooks", "allowPromptInjection")
    there = after(HOST, "recall")
    assert value_at(after(there, "capture", injection_before=MISSING), hooks) is MISSING
    assert value_at(after(there, "capture", injection_before=False), hooks) is False
    assert value_at(after(there, "capture", injection_before=True), hooks) is True
    assert value_at(after(there, "capture"), hooks) is True  # nobody knows whose it is


def test_what_the_host_installed_is_turned_off_and_kept() -> None:
    there = planned(HOST, Wishes("recall"), {})
    assert "load" not in there.config["plugins"]
    plan = planned(there.config, Wishes("off"), {})
    assert plan.config["plugins"]["entries"]["offbook"] == {"enabled": False}
    assert planned(plan.config, Wishes("off"), {}).changes == []
    assert any("plugins uninstall offbook" in note for note in plan.notes)


def test_lower_levels_give_the_slot_back() -> None:
    there = after(HOST, "hot-swap")
    assert "slots" not in after(there, "recall")["plugins"]
    foreign = {"plugins": {"slots": {"contextEngine": "lossless"}}}
    assert after(foreign, "recall")["plugins"]["slots"] == {"contextEngine": "lossless"}


def test_who_had_a_slot_gets_it_back() -> None:
    config = {"plugins": {"slots": {"contextEngine": "lossless", "memory": "none"}}}
    there = after(config, "hot-swap", memory_folder="/p/memory-slot", take_slot=True)
    before = {"contextEngine": "lossless", "memory": "none"}
    assert after(there, "off", slots_before=before) == config
    assert after(there, "recall", slots_before=before)["plugins"]["slots"]["contextEngine"] == "lossless"
    unknown = planned(there, Wishes("off", plugin_folder="", slots_before={"memory": MISSING}), paths_of(there))
    assert unknown.config == {}
    assert [note.split()[0] for note in unknown.notes] == ["plugins.slots.contextEngine"]


def test_a_slot_of_another_plugin_is_asked_for() -> None:
    foreign = {"plugins": {"slots": {"contextEngine": "lossless"}}}
    plan = planned(foreign, Wishes("hot-swap", plugin_folder="/p"), {})
    assert plan.obstacles == [
        "plugins.slots.contextEngine is 'lossless', another plugin's: --take-slot gives it to offbook"
    ]
    assert after(foreign, "hot-swap", take_slot=True)["plugins"]["slots"] == {"contextEngine": "offbook"}
    own = {"plugins": {"slots": {"contextEngine": "legacy"}}}
    assert after(own, "hot-swap")["plugins"]["slots"] == {"contextEngine": "offbook"}


def test_the_memory_slot() -> None:
    none = {"plugins": {"slots": {"memory": "none"}, "allow": ["x"]}}
    plugins = after(none, memory_folder="/p/memory-slot")["plugins"]
    assert plugins["slots"] == {"memory": "offbook-memory"}
    assert plugins["load"]["paths"] == ["/p", "/p/memory-slot"]
    assert plugins["allow"] == ["x", "offbook", "offbook-memory"]
    foreign = {"plugins": {"slots": {"memory": "memory-lancedb"}}}
    plan = planned(foreign, Wishes("capture", plugin_folder="/p", memory_folder="/p/memory-slot"), {})
    assert "memory-lancedb" in plan.obstacles[0]


def test_lists_of_who_may_load() -> None:
    assert after({"plugins": {"allow": ["x"]}})["plugins"]["allow"] == ["x", "offbook"]
    assert "allow" not in after({})["plugins"]
    empty = planned({"plugins": {"allow": []}}, Wishes("capture", plugin_folder="/p"), {})
    assert empty.config["plugins"]["allow"] == []
    assert "empty list" in empty.notes[0]
    assert after({"plugins": {"deny": ["y", "offbook"]}})["plugins"]["deny"] == ["y"]


def test_the_only_name_of_a_list_stays() -> None:
    """An empty list would let in what was kept out."""
    there = after({"plugins": {"allow": ["offbook"]}})
    plan = planned(there, Wishes("off", plugin_folder=""), paths_of(there))
    assert plan.config["plugins"]["allow"] == ["offbook"]
    assert any("plugins.allow keeps" in note for note in plan.notes)


def test_plugins_that_are_off_as_a_whole() -> None:
    plan = planned({"plugins": {"enabled": False}}, Wishes("capture", plugin_folder="/p"), {})
    assert plan.config["plugins"]["enabled"] is True
    assert any("every other plugin" in note for note in plan.notes)


def test_another_copy_goes() -> None:
    there = {"plugins": {"load": {"paths": ["/x", "/old", "/p/memory-slot"]}}}
    assert after(there)["plugins"]["load"]["paths"] == ["/x", "/p/memory-slot", "/p"]


def test_older_names_do_not_hold_the_level_down() -> None:
    there = {"plugins": {"entries": {"offbook": {"config": {"storeOnly": True, "enabled": False, "home": "/mine"}}}}}
    config = after(there, "recall")["plugins"]["entries"]["offbook"]["config"]
    assert config == {"home": "/mine", "level": "recall"}


def test_what_is_wished_of_the_plugin() -> None:
    new = after(HOST, home="/h", endpoint="http://h:1", command="/bin/offbook", start_daemon=True, host_model=False)
    assert new["plugins"]["entries"]["offbook"]["config"] == {
        "level": "capture",
        "home": "/h",
        "endpoint": "http://h:1",
        "startDaemon": True,
        "command": "/bin/offbook",
        "hostModel": False,
    }
    assert after(HOST, mcp_command="offbook")["mcp"]["servers"]["offbook"] == {"command": "offbook", "args": ["mcp"]}
    elsewhere = after(HOST, home="/h", endpoint="http://h:1", mcp_command="offbook")
    assert elsewhere["mcp"]["servers"]["offbook"]["args"] == ["mcp", "--home", "/h", "--url", "http://h:1"]
    assert "mcp" not in after(elsewhere, "off")


def test_an_mcp_server_of_that_name_that_is_not_ours_stays() -> None:
    there = {"mcp": {"servers": {"offbook": {"url": "http://elsewhere"}}}}
    assert after(there, "off") == there


def test_an_included_part_is_not_ours_to_write() -> None:
    plan = planned({"plugins": {"$include": "./plugins.json5"}}, Wishes("capture", plugin_folder="/p"), {})
    assert plan.obstacles == ["plugins comes from another file ($include): change it there, by hand"]
    assert [change.name for change in plan.changes][:2] == ["plugins.load.paths[0]", "plugins.entries.offbook.enabled"]


@pytest.mark.parametrize("config", [{"plugins": {"allow": "x"}}, {"plugins": {"entries": []}}, {"plugins": 1}])
def test_a_file_that_the_host_would_refuse_is_not_made_worse(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="openclaw config validate"):
        planned(config, Wishes("capture", plugin_folder="/p"), {})


def test_changes_say_what_was_there() -> None:
    plan = planned({"plugins": {"enabled": False}}, Wishes("capture", plugin_folder="/p"), {})
    first, second = plan.changes[:2]
    assert (first.name, first.before, first.after) == ("plugins.enabled", False, True)
    assert second.before is MISSING


def test_room_within_a_turn_is_wanted_where_contexts_are_swapped_and_nowhere_else() -> None:
    there = after(HOST, "hot-swap")
    assert value_at(there, PRECHECK) is True
    assert value_at(after(HOST, "recall"), PRECHECK) is MISSING
    assert value_at(after(there, "recall", precheck_before=MISSING), ("agents",)) is value_at(HOST, ("agents",))
    assert value_at(after(there, "recall", precheck_before=True), PRECHECK) is True


def test_who_does_not_want_room_within_a_turn_is_not_overruled() -> None:
    refused = {"agents": {"defaults": {"compaction": {"midTurnPrecheck": {"enabled": False}}}}}
    assert value_at(after(HOST | refused, "hot-swap"), PRECHECK) is False


def test_where_the_agents_are_in_another_file_it_is_only_said() -> None:
    file = HOST | {"agents": {"$include": "agents.json"}}
    for level, notes in (("hot-swap", 1), ("off", 0)):
        plan = planned(HOST | {"agents": {}}, Wishes(level, plugin_folder="/p"), {}, file)
        assert not plan.obstacles
        assert sum("midTurnPrecheck" in note for note in plan.notes) == notes
