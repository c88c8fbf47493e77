"""The plugin, built as it is shipped: `python -m tests.host.building` writes plugins/openclaw/dist again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.host.installing import NPM_OPTIONS, REPOSITORY, Host, InstallFailed, installed

PLUGIN = REPOSITORY / "plugins" / "openclaw"
BUILD_SECONDS = 300


def build(host: Host, out: Path) -> None:
    """Raises InstallFailed where the compiler cannot be had, and AssertionError with what it says where it complains."""
    tools = _tools(host)
    compiler = tools / "node_modules" / "typescript" / "bin" / "tsc"
    types = tools / "node_modules" / "@types"
    done = subprocess.run(
        [str(host.node), str(compiler), "--project", str(PLUGIN), "--typeRoots", str(types), "--outDir", str(out)],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _tools(host: Host) -> Path:
    """The versions that the plugin's package.json names, beside the host."""
    wanted = json.loads((PLUGIN / "package.json").read_text())["devDependencies"]
    folder = host.folder / "typescript"
    stamp = folder / "complete"
    text = json.dumps(wanted)
    if stamp.is_file() and stamp.read_text() == text:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}\n')
    packages = [f"{name}@{version}" for name, version in wanted.items()]
    done = subprocess.run(
        host.npm("install", *packages, "--prefix", str(folder), *NPM_OPTIONS),
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        raise InstallFailed(f"npm could not install {', '.join(packages)}:\n{done.stdout}\n{done.stderr}")
    stamp.write_text(text)
    return folder


def main() -> None:
    dist = PLUGIN / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    build(installed(), dist)
    print(f"{len(list(dist.iterdir()))} files in {dist.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    sys.exit(main())
