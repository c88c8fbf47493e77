"""The lock of a release, and what is made from it: none of it may lag behind `pyproject.toml`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from release import audit, lock, sbom
from release.licences import wanted

LOCKED = lock.read(lock.LOCK.read_text())


def test_the_lock_holds_what_is_asked_for() -> None:
    """`make lock` makes it anew."""
    for each in map(Requirement, wanted(lock.EXTRAS)):
        version, hashes = LOCKED[canonicalize_name(each.name)]
        assert each.specifier.contains(version, prereleases=True), each
        assert hashes


def test_every_file_has_a_hash_and_none_a_place() -> None:
    for name, (version, hashes) in LOCKED.items():
        assert version, name
        assert hashes, name
        assert all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes), name
    for text in (lock.LOCK.read_text(), sbom.SBOM.read_text(), sbom.PAGE.read_text()):
        assert "://" not in text
        assert "--index" not in text


def test_the_bill_of_materials_is_that_of_the_lock() -> None:
    document = json.loads(sbom.SBOM.read_text())
    licences = {each["name"]: sbom._licence(each) for each in document["components"]}
    assert sbom.bill(lock.LOCK.read_text(), licences) == document
    assert document["bomFormat"] == "CycloneDX"
    assert {each["purl"] for each in document["components"]} == {
        f"pkg:pypi/{name}@{version}" for name, (version, _) in LOCKED.items()
    }


def test_the_page_is_that_of_the_bill() -> None:
    assert sbom.PAGE.read_text().startswith(sbom.page(json.loads(sbom.SBOM.read_text())))


def test_the_hashes_are_those_of_all_files_of_the_version() -> None:
    page = "".join(
        f'<a href="../files/{name}#sha256={digit * 64}" data-x="1">{name}</a><br/>'
        for digit, name in [
            ("1", "some_thing-1.2.0-py3-none-any.whl"),
            ("2", "some_thing-1.2.0.tar.gz"),
            ("3", "some_thing-1.2.0.post1.tar.gz"),
            ("4", "some_thing-1.20-py3-none-any.whl"),
            ("5", "some-thing-1.2.0.win32.exe"),
        ]
    )
    assert lock.hashes_of(page, "some-thing", "1.2.0") == {"1" * 64, "2" * 64}


def test_what_only_another_system_or_python_needs_is_missed() -> None:
    def package(*needs: str) -> dict[str, object]:
        return {"metadata": {"requires_dist": list(needs)}}

    here = {"one": package("two", "three; sys_platform == 'win32'", "six; extra == 'more'"), "two": package()}
    assert lock.needed_elsewhere(here) == set()
    elsewhere = here | {"two": package("four; sys_platform == 'darwin'", "five; python_version >= '3.14'")}
    assert {each.split()[0] for each in lock.needed_elsewhere(elsewhere)} == {"four", "five"}


# ── known faults ──

CLEAN = {"name": "one", "version": "1", "vulns": []}
FAULTY = {"name": "two", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]}
SKIPPED = {"name": "three", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("found", "status", "told"),
    [
        ([CLEAN], 0, "1 packages, 0 known faults"),
        ([CLEAN, FAULTY], 1, "two 2: PYSEC-1 (mended in: 2.1)"),
        ([CLEAN, SKIPPED], audit.UNKNOWN, "NOT CHECKED"),
        (None, audit.UNKNOWN, "NOT CHECKED for known faults: no route"),
    ],
)
def test_an_audit_says_what_is_known_and_what_is_not(
    found: list[object] | None, status: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(
        "import sys\n"
        "(report,) = [each.partition('=')[2] for each in sys.argv if each.startswith('--output=')]\n"
        f"found = {json.dumps({'dependencies': found})!r}\n"
        + ("open(report, 'w').write(found)\n" if found is not None else "print('no route', file=sys.stderr)\n")
        + "sys.exit(1)\n"
    )
    assert audit.main([sys.executable, str(fake)]) == status
    assert told in "".join(capsys.readouterr())


def test_an_audit_without_its_tool_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main([str(tmp_path / "pip-audit")]) == audit.UNKNOWN
    assert "NOT CHECKED" in capsys.readouterr().err
