"""`make lock`: the versions that a release is installed and audited with, each file by its hash.

pip resolves them, from the index that it is set up to use; the hashes of all files of a version are on that index's own
page, so that one lock serves every machine. Writes `requirements.lock`, the bill of materials and the page of licences.
"""

from __future__ import annotations

import html
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion

from release.licences import CHECKOUT, wanted

EXTRAS = ("mcp",)
"""With the provider's own surfaces, and nothing that only agents use."""
LOCK = CHECKOUT / "requirements.lock"
NOTE = f"""\
# Made by `make lock`; see docs/decisions/0024. Offbook with {", ".join(EXTRAS)}, on Linux and macOS:
#   pip install --require-hashes -r requirements.lock && pip install --no-deps offbook
"""
SYSTEMS = {"linux": "Linux", "darwin": "Darwin"}
MACHINES = ("x86_64", "aarch64", "arm64")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_LINK = re.compile(r"""<a\s[^>]*?href=["']([^"']*)["'][^>]*>([^<]*)</a>""", re.IGNORECASE)


def main() -> int:
    from release import sbom

    report = resolved(wanted(EXTRAS))
    packages = {canonicalize_name(each["metadata"]["name"]): each for each in report}
    if missing := sorted(needed_elsewhere(packages)):
        sys.exit(f"not in the lock, and needed on another system or Python: {', '.join(missing)}")
    blocks = []
    for name, package in sorted(packages.items()):
        version = package["metadata"]["version"]
        hashes = hashes_of(index_page(name), name, version)
        if package["download_info"]["archive_info"]["hashes"]["sha256"] not in hashes:
            sys.exit(f"{name} {version}: the file that pip took is not on the page of the index")
        blocks.append(" \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in sorted(hashes))]))
    LOCK.write_text(NOTE + "\n".join(blocks) + "\n")
    sbom.write()
    print(f"{LOCK.name}: {len(blocks)} packages")
    return 0


def resolved(requirements: list[str]) -> list[dict[str, Any]]:
    """What pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        listed, report = Path(folder, "wanted.txt"), Path(folder, "report.json")
        listed.write_text("\n".join(requirements))
        arguments = ["--dry-run", "--ignore-installed", "--only-binary", ":all:", "--quiet", "--report", str(report)]
        subprocess.run([sys.executable, "-m", "pip", "install", *arguments, "-r", str(listed)], check=True)
        installs: list[dict[str, Any]] = json.loads(report.read_text())["install"]
    return installs


def needed_elsewhere(packages: dict[Any, dict[str, Any]]) -> set[str]:
    """What these packages need on a system or a Python that we support, and is not among them."""
    missing = set()
    for system, machine, python in product(SYSTEMS, MACHINES, PYTHONS):
        here: dict[str, str | AbstractSet[str]] = {
            **{name: str(value) for name, value in default_environment().items()},
            **{"sys_platform": system, "platform_system": SYSTEMS[system], "platform_machine": machine, "extra": ""},
            **{"python_version": python, "python_full_version": f"{python}.0"},
        }
        for package in packages.values():
            for each in map(Requirement, package["metadata"].get("requires_dist", ())):
                is_wanted = each.marker is None or each.marker.evaluate(here)
                if is_wanted and canonicalize_name(each.name) not in packages:
                    missing.add(f"{each.name} ({system}, Python {python})")
    return missing


@cache
def index() -> str:
    """The one that pip asks."""
    from pip._internal.models.index import PyPI

    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    address: str = os.environ.get("PIP_INDEX_URL") or asked.stdout.strip() or PyPI.simple_url
    if urlsplit(address).scheme not in ("http", "https"):
        sys.exit("pip's index is no address on the web: set PIP_INDEX_URL")
    return address.rstrip("/")


def index_page(name: str) -> str:
    request = Request(f"{index()}/{name}/", headers={"Accept": "text/html"})  # noqa: S310 - looked at above
    trusted = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    with urlopen(request, context=trusted, timeout=60) as answer:  # noqa: S310
        page: str = answer.read().decode()
    return page


def hashes_of(page: str, name: str, version: str) -> set[str]:
    """The SHA-256 of every file of a version."""
    return {digest for file, digest in _files(page) if _names(file, name, version)}


def _files(page: str) -> Iterator[tuple[str, str]]:
    for link, text in _LINK.findall(page):
        _, _, digest = html.unescape(link).partition("#sha256=")
        if digest:
            yield html.unescape(text).strip(), digest


def _names(file: str, name: str, version: str) -> bool:
    try:
        is_wheel = file.endswith(".whl")
        found, found_version = parse_wheel_filename(file)[:2] if is_wheel else parse_sdist_filename(file)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False  # an egg, an installer
    return found == canonicalize_name(name) and str(found_version) == version


def read(text: str) -> dict[str, tuple[str, list[str]]]:
    """A lock's versions and hashes, by name."""
    locked = {}
    for block in re.sub(r"(?m)^#.*\n", "", text).replace(" \\\n", " ").splitlines():
        pinned, *hashes = block.split()
        name, _, version = pinned.partition("==")
        locked[name] = (version, [each.removeprefix("--hash=sha256:") for each in hashes])
    return locked


if __name__ == "__main__":
    sys.exit(main())
