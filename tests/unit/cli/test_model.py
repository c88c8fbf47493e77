from __future__ import annotations

import json
from pathlib import Path

import pytest

from offbook.home import Home
from offbook.models import weights
from tests.unit.cli.conftest import Run


def test_status_shows_the_model_and_makes_nothing(run: Run, home: Home) -> None:
    result = run("model", "status")
    assert result.exit_code == 0
    assert "Xenova/all-MiniLM-L6-v2 (local)" in result.stdout
    assert "its SHA-256 is right" in result.stdout
    assert not home.folder.exists()


def test_status_as_json_fails_where_there_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package_of_weights")
    result = run("model", "status", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["kind"], document["where"], document["isVerified"]) == ("local", None, None)
    assert "offbook model install" in document["problem"]


def test_status_of_what_is_switched_off_is_no_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_EMBEDDING_MODEL", "none")
    result = run("model", "status")
    assert (result.exit_code, result.stdout) == (0, "model        none: embeddings are switched off\n")


def test_install_puts_it_into_the_data_folder(run: Run, home: Home) -> None:
    path = weights.cached(home.models)
    assert run("model", "install").stdout == f"{path}\ninstalled, its SHA-256 is right\n"
    assert json.loads(run("model", "install", "--json").stdout)["path"] == str(path)
    assert json.loads(run("model", "status", "--json").stdout)["where"] == str(path)


def test_install_refuses_a_wrong_file(run: Run, home: Home, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    result = run("model", "install", "--from", str(tmp_path / "model.onnx"))
    assert result.exit_code == 1
    assert "SHA-256 differs" in result.stderr
    assert weights.cached(home.models).exists() is False
    assert run("model", "install", "--from", str(tmp_path / "nothing")).exit_code == 2


def test_test_tells_how_near_texts_are(run: Run) -> None:
    texts = ["my cat is called Ada", "what is my pet's name?", "the deployment failed"]
    document = json.loads(run("model", "test", *texts, "--json").stdout)
    near, far = document["similarities"]
    assert near > far + 0.3
    told = run("model", "test", *texts).stdout
    assert f"{near:.3f}  'my cat is called Ada' and \"what is my pet's name?\"" in told
    assert "3 texts in" in told
    assert run("model", "test", "alone", "--json").exit_code == 0
    assert run("model", "test").exit_code == 2


def test_test_says_why_there_is_no_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_EMBEDDING_MODEL", "nomic-embed-text")
    result = run("model", "test", "a", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["type"] == "urn:offbook:problem:model-unavailable"
