"""What a stranger gets: the checkout packed, the wheel made of that, and an environment with what it declares and nothing
else. The dependencies are those that lie here, linked: `make test` began with an installer that found them all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message as Metadata
from importlib.metadata import Distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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

    @property
    def metadata(self) -> Metadata:
        (content,) = [content for name, content in self.files.items() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(content)

    @property
    def requirements(self) -> list[str]:
        """Without those of its extras."""
        return [each for each in self.metadata.get_all("Requires-Dist", []) if "extra ==" not in each]

    def modules(self) -> list[str]:
        paths = [name.removesuffix(".py") for name in self.sources]
        return sorted(path.replace("/", ".").removesuffix(".__init__") for path in paths)


def made(folder: Path) -> Fresh:
    """Source distribution, wheel of it, environment of that. Nothing is written into the checkout, and nothing that an
    earlier build left there gets in."""
    tools, packed = folder / "tools", folder / "packed"
    (folder / "home").mkdir()
    packed.mkdir()
    _pip("install", "--target", tools, "setuptools>=77")
    _build("sdist", _copy(folder / "checkout"), packed, tools)
    (source,) = packed.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    _build("wheel", unpacked, packed, tools)
    (wheel,) = packed.glob("*.whl")
    _run(sys.executable, "-m", "venv", "--without-pip", folder / "environment")
    with ZipFile(wheel) as opened:
        fresh = Fresh(folder, wheel, {name: opened.read(name) for name in opened.namelist()})
    # What is imported is compiled then; compiling all of it would take longer than all the rest.
    _pip("--python", fresh.python, "install", "--no-deps", "--no-compile", wheel)
    (site_packages,) = (folder / "environment" / "lib").glob("python*/site-packages")
    for distribution in _needed(fresh.requirements):
        _link(distribution, site_packages)
    return fresh


def _needed(requirements: Iterable[str]) -> list[Distribution]:
    """Distributions that these requirements and those of what they name bring, as an installer would."""
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    waiting = _that_apply(requirements, extras=())
    while waiting:
        requirement = waiting.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key not in found:
            distribution = found[key] = Distribution.from_name(requirement.name)
            assert requirement.specifier.contains(distribution.version, prereleases=True), requirement
            waiting += _that_apply(distribution.requires or (), requirement.extras)
    return list(found.values())


def _that_apply(requirements: Iterable[str], extras: Iterable[str]) -> list[Requirement]:
    known = ["", *extras]
    return [
        each
        for each in map(Requirement, requirements)
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in known)
    ]


def _link(distribution: Distribution, site_packages: Path) -> None:
    inside = [
        Path(file) for file in distribution.files or [] if not Path(file).parts[0].startswith(("..", "__pycache__"))
    ]
    for name in {file.parts[0] for file in inside}:
        target = site_packages / name
        if not target.exists():
            target.symlink_to(str(distribution.locate_file(name)))


def _copy(target: Path) -> Path:
    for part in ("src", "plugins"):
        shutil.copytree(CHECKOUT / part, target / part, ignore=LEFT_BEHIND)
    for name in PACKED:
        shutil.copy2(CHECKOUT / name, target)
    return target


def _build(what: str, source: Path, packed: Path, tools: Path) -> None:
    build = f"from setuptools import build_meta; build_meta.build_{what}({str(packed)!r})"
    _run(sys.executable, "-c", build, cwd=source, python_path=tools)


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
