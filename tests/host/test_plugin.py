"""The plugin by itself: built as written, its own tests, and installed by the host from the folder and from a package."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from offbook.models.calibration import UsagePoint, fitted, with_point
from offbook.models.tokens import estimate_tokens
from tests.host.building import PLUGIN, build
from tests.host.installing import HOST_VERSION, REPOSITORY, Host
from tests.places import DATA

OWN_TESTS_SECONDS = 400
OWN_TESTS_AT_ONCE = 6  # files: most of their time they wait for pauses and deadlines
CLI_SECONDS = 300


def test_what_is_built_is_what_is_written(host: Host, tmp_path: Path) -> None:
    """Else: `make plugin`."""
    build(host, tmp_path)
    built = {path.name: path.read_text() for path in tmp_path.iterdir()}
    shipped = {path.name: path.read_text() for path in (PLUGIN / "dist").iterdir()}
    assert sorted(shipped) == sorted(built)
    assert [name for name in built if built[name] != shipped[name]] == []


def test_the_plugins_own_tests(host: Host) -> None:
    done = subprocess.run(
        [str(host.node), "--test", f"--test-concurrency={OWN_TESTS_AT_ONCE}", "test/*.test.js"],
        cwd=PLUGIN,
        env={**os.environ, "PATH": host.search_path},
        capture_output=True,
        text=True,
        timeout=OWN_TESTS_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert "\nℹ skipped 0\n" in done.stdout


def test_both_sides_of_the_wire_count_alike(host: Host) -> None:
    """The plugin's estimate and its calibration are those of the provider, written in TypeScript."""
    texts = [one["text"] for one in json.loads((DATA / "token_counts.json").read_text("utf-8"))["texts"]]
    texts += ["", "x", "Fällt’s — schön 😀 … ok?", "a\tB\r\n", "camelCaseWord", "\x00\x7f", "日本語, 한국어, русский"]
    dice = random.Random(3)
    talks = [[(dice.randrange(100_000), dice.randrange(100_000)) for _ in range(size)] for size in range(20)]
    script = f"""
      import {{ readFileSync }} from "node:fs";
      import {{ estimateTokens }} from "{PLUGIN}/dist/tokens.js";
      import {{ fitted, withPoint }} from "{PLUGIN}/dist/calibration.js";
      const {{ texts, talks }} = JSON.parse(readFileSync(0, "utf8"));
      const fits = talks.map((points) => fitted(
        points.reduce((kept, [estimate, reported]) => withPoint(kept, {{ estimate, reported }}), []), 9_000));
      console.log(JSON.stringify({{ tokens: texts.map(estimateTokens), fits: fits.map((fit) => [fit.overhead, fit.ratio]) }}));
    """
    done = subprocess.run(
        [str(host.node), "--input-type=module", "-e", script],
        input=json.dumps({"texts": texts, "talks": talks}),
        capture_output=True,
        text=True,
        timeout=CLI_SECONDS,
        check=True,
    )
    theirs = json.loads(done.stdout)
    assert [theirs["tokens"][at] - estimate_tokens(text) for at, text in enumerate(texts)] == [0] * len(texts)
    for talk, fit in zip(talks, theirs["fits"], strict=True):
        kept: tuple[UsagePoint, ...] = ()
        for point in talk:
            kept = with_point(kept, UsagePoint(*point))
        assert fit == pytest.approx(list(fitted(kept, 9_000)), rel=1e-9)


def asked(host: Host, folder: Path, *arguments: str) -> str:
    """The host's command line, in a home of its own."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {
        "PATH": host.search_path,
        "HOME": str(home),
        "OPENCLAW_STATE_DIR": str(folder / "state"),
        "OPENCLAW_CONFIG_PATH": str(folder / "openclaw.json"),
        "TMPDIR": str(folder),
        "NODE_COMPILE_CACHE": str(host.compile_cache),
    }
    done = subprocess.run(
        host.command(*arguments), env=environment, capture_output=True, text=True, timeout=CLI_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


def packed(host: Host, folder: Path) -> Path:
    done = subprocess.run(
        host.npm("pack", str(PLUGIN), "--pack-destination", str(folder), "--ignore-scripts", "--json"),
        env={**os.environ, "PATH": host.search_path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=CLI_SECONDS,
        check=True,
    )
    entry: dict[str, Any] = json.loads(done.stdout)[0]
    names = {file["path"] for file in entry["files"]}
    assert {"dist/index.js", "openclaw.plugin.json", "memory-slot/index.js", "README.md", "LICENSE"} <= names
    assert not any(name.startswith(("src/", "test/")) for name in names)
    return folder / entry["filename"]


def test_the_package_says_what_it_is_made_for(host: Host) -> None:
    """The pinned host, its Node, and for each setting how the host's Control UI shows it."""
    needs = json.loads((host.package / "package.json").read_text())["engines"]
    for folder in (PLUGIN, PLUGIN / "memory-slot"):
        package, manifest = (
            json.loads((folder / name).read_text()) for name in ("package.json", "openclaw.plugin.json")
        )
        told = package["openclaw"]
        assert package["engines"] == needs
        assert package["peerDependencies"] == {"openclaw": f">={HOST_VERSION}"}
        assert told["compat"] == {"pluginApi": f">={HOST_VERSION}", "minGatewayVersion": HOST_VERSION}
        assert told["build"] == {"openclawVersion": HOST_VERSION, "pluginSdkVersion": HOST_VERSION}
        assert told["install"] == {"minHostVersion": f">={HOST_VERSION}"}
        assert package["version"] == manifest["version"]
        assert package["license"] == "Apache-2.0"
        assert len(manifest["categories"]) == 1
        settings = sorted(manifest["configSchema"]["properties"])
        assert sorted(manifest["uiHints"]) == settings
        assert all(hint["label"] and hint["help"] for hint in manifest["uiHints"].values())
        groups = manifest.get("configGroups", [{"properties": settings}])
        assert sorted(name for group in groups for name in group["properties"]) == settings
        assert set(manifest["toolMetadata"]) == set(manifest["contracts"]["tools"])
    assert HOST_VERSION in (PLUGIN / "README.md").read_text()
    assert (PLUGIN / "LICENSE").read_bytes() == (REPOSITORY / "LICENSE").read_bytes()


def installed_by(host: Host, folder: Path, *what: str) -> dict[str, Any]:
    """What the host says of the plugin, installed into a state folder of its own."""
    (folder / "openclaw.json").write_text('{"gateway": {"mode": "local"}}')
    asked(host, folder, "plugins", "install", *what, "--force", "--accept-capabilities")
    inspected: dict[str, Any] = json.loads(asked(host, folder, "plugins", "inspect", "offbook", "--runtime", "--json"))
    plugin = inspected["plugin"]
    assert plugin["status"] == "loaded", inspected
    assert plugin["enabled"] is True
    assert inspected["diagnostics"] == inspected["compatibility"] == []
    # B11: what is installed changes nothing yet. Commands and methods are there, no tool, no engine and no page.
    assert "swap-status" in json.dumps(inspected)
    assert "memory_recall" not in plugin.get("toolNames", [])
    assert not plugin.get("contextEngineIds")
    assert inspected["httpRouteCount"] == 0
    return inspected


def test_the_host_links_its_folder(host: Host, tmp_path: Path) -> None:
    installed_by(host, tmp_path, str(PLUGIN), "--link")


def test_the_host_installs_its_package(host: Host, tmp_path: Path) -> None:
    inspected = installed_by(host, tmp_path, str(packed(host, tmp_path)))
    assert inspected["install"]["source"] == "archive"
    assert Path(inspected["plugin"]["rootDir"]).is_relative_to(tmp_path / "state")
    declared = json.loads((PLUGIN / "openclaw.plugin.json").read_text())
    assert sorted(inspected["commands"]) == sorted(alias["name"] for alias in declared["commandAliases"])
    assert inspected["cliCommands"] == [command["name"] for command in declared["cliCommands"]]
    listed = json.loads(asked(host, tmp_path, "plugins", "list", "--json"))
    assert listed["diagnostics"] == listed["registry"]["diagnostics"] == []
    (ours,) = [plugin for plugin in listed["plugins"] if plugin["id"] == "offbook"]
    assert (ours["enabled"], ours["status"], ours["version"]) == (True, "loaded", declared["version"])
    assert "checks passed" in asked(host, tmp_path, "plugins", "doctor")
