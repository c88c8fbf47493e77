"""The host's configuration for a test, as one pure function of what the test wants."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.host.scripted_model import MODEL

TOKEN = "token-of-the-test"
Config = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """What a test chooses. `plugin_dir` None: the host alone. `extra` is merged in last."""

    plugin_dir: Path | None = None
    plugin_id: str = "offbook"
    level: str = "off"
    plugin_config: Mapping[str, Any] = field(default_factory=dict)
    agents: Sequence[str] = ()
    context_window_tokens: int = 24_000
    max_output_tokens: int = 2_000
    compaction: Mapping[str, Any] = field(
        default_factory=lambda: {"keepRecentTokens": 2_000, "midTurnPrecheck": {"enabled": True}}
    )
    extra: Mapping[str, Any] = field(default_factory=dict)


def host_config(setup: Setup, folder: Path, port: int, model_base_url: str) -> Config:
    config: Config = {
        "gateway": {
            "mode": "local",
            "bind": "loopback",
            "port": port,
            "auth": {"mode": "token", "token": TOKEN},
            "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
        },
        "logging": {"file": str(folder / "openclaw.log")},
        "discovery": {"mdns": {"mode": "off"}},
        "update": {"checkOnStart": False},
        "models": {"mode": "replace", "providers": {"scripted": _model_provider(setup, model_base_url)}},
        "agents": {
            "defaults": {
                "model": {"primary": f"scripted/{MODEL}"},
                "workspace": str(folder / "workspace"),
                "skipBootstrap": True,
                "compaction": dict(setup.compaction),
                # Else each gateway that lives for half an hour takes a turn of its own, in the middle of some test.
                "heartbeat": {"every": "0m"},
            }
        },
        # Files that nobody changes and events that nobody reads: a sixth of what a turn costs.
        "skills": {"load": {"watch": False}},
        "diagnostics": {"enabled": False},
        # Nor does anybody tidy up here: it would take two seconds whenever the host turns to another agent.
        "session": {"maintenance": {"mode": "warn", "maxDiskBytes": False}},
        # Where the host searches its own memory, it looks for words: for meaning it would ask a server in the network.
        # Here for all, because it restarts for a change of it.
        "memory": {"search": {"provider": "none"}},
        "plugins": {"enabled": True, "slots": {"memory": "none"}},
    }
    if setup.agents:
        config["agents"]["list"] = [
            {"id": agent, "default": at == 0, "workspace": str(folder / "workspace" / agent)}
            for at, agent in enumerate(setup.agents)
        ]
    if setup.plugin_dir is not None:
        config = merged(config, _plugin(setup, setup.plugin_dir))
    return merged(config, setup.extra)


def level_patch(level: str, plugin_id: str = "offbook") -> Config:
    """What changes in the host's configuration for another level: the plugin's own word, and who owns the context."""
    engine = plugin_id if level == "hot-swap" else None
    return {
        "plugins": {"slots": {"contextEngine": engine}, "entries": {plugin_id: {"config": {"level": level}}}},
    }


def merged(config: Mapping[str, Any], patch: Mapping[str, Any]) -> Config:
    """`config` with `patch` in it, folder by folder; None takes a key out. Lists are replaced."""
    result = copy.deepcopy(dict(config))
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = merged(result.get(key) or {}, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _plugin(setup: Setup, plugin_dir: Path) -> Config:
    entry = {
        "enabled": True,
        "hooks": {"allowConversationAccess": True, "allowPromptInjection": True},
        "config": dict(setup.plugin_config),
    }
    base = {
        "plugins": {
            "allow": [setup.plugin_id],
            "load": {"paths": [str(plugin_dir)]},
            "entries": {setup.plugin_id: entry},
        }
    }
    return merged(base, level_patch(setup.level, setup.plugin_id))


def _model_provider(setup: Setup, base_url: str) -> Config:
    model = {
        "id": MODEL,
        "name": "Scripted",
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": setup.context_window_tokens,
        "maxTokens": setup.max_output_tokens,
    }
    return {"baseUrl": base_url, "apiKey": "none", "api": "openai-completions", "models": [model]}
