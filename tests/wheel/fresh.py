"""What a stranger gets: the checkout packed, the wheel made of that, and an environment with nothing else in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

CHECKOUT = Path(__file__).parents[2]
PACKED = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "*.egg-info", "node_modules")
INSTALL_SECONDS = 240.0
RUN_SECONDS = 120.0

Finished = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Fresh:
    """`checkout` is the copy that it was made of, `files` is what the wheel holds."""

    folder: Path
    wheel: Path
    files: dict[str, bytes]

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    @property
    def program(self) -> Path:
        return self.python.with_name("offbook")

    @property
    def environ(self) -> dict[str, str]:
        """Of somebody who never heard of this checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OFFBOOK_", "PYTHON"))}
        home = self.folder / "home"
        return kept | {"HOME": str(home), "OFFBOOK_HOME": str(home / ".offbook"), "COLUMNS": "100"}

    def run(self, program: Path, *arguments: str | Path, text: str = "", **environ: str) -> Finished:
        return subprocess.run(
            [program, *arguments],
            env=self.environ | environ,
            cwd=self.folder / "home",
            input=text,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )

    def offbook(self, *arguments: str | Path, **environ: str) -> Finished:
        return self.run(self.program, *arguments, **environ)

    @property
    def sources(self) -> dict[str, bytes]:
        return {name: content for name, content in self.files.items() if name.endswith(".py")}

    def modules(self) -> list[str]:
        paths = [name.removesuffix(".py") for name in self.sources]
        return sorted(path.replace("/", ".").removesuffix(".__init__") for path in paths)


def made(folder: Path) -> Fresh:
    """Source distribution, wheel of it, environment of that. Nothing is written into the checkout, and nothing that an
    earlier build left there gets in."""
    tools, packed = folder / "tools", folder / "packed"
    (folder / "home").mkdir()
    _pip("install", "--target", tools, "setuptools>=77")
    _source_distribution(_copy(folder / "checkout"), packed, tools)
    (source,) = packed.glob("*.tar.gz")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", packed, source, python_path=tools)
    (wheel,) = packed.glob("*.whl")
    _run(sys.executable, "-m", "venv", "--without-pip", folder / "environment")
    with ZipFile(wheel) as opened:
        fresh = Fresh(folder, wheel, {name: opened.read(name) for name in opened.namelist()})
    # What is imported is compiled then; compiling all of it would take longer than all the rest.
    _pip("--python", fresh.python, "install", "--no-compile", wheel)
    return fresh


def _copy(target: Path) -> Path:
    for part in ("src", "plugins"):
        shutil.copytree(CHECKOUT / part, target / part, ignore=LEFT_BEHIND)
    for name in PACKED:
        shutil.copy2(CHECKOUT / name, target)
    return target


def _source_distribution(checkout: Path, packed: Path, tools: Path) -> None:
    packed.mkdir()
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(packed)!r})"
    _run(sys.executable, "-c", build, cwd=checkout, python_path=tools)


def _pip(*arguments: str | Path, python_path: Path | None = None) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments, python_path=python_path)


def _run(*command: str | Path, cwd: Path | None = None, python_path: Path | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(os.environ) | ({} if python_path is None else {"PYTHONPATH": str(python_path)}),
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
