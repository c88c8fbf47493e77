from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import Embedding, Summarizer
from offbook.models import weights
from offbook.models.embedder import LOCAL_NAMES, open_embedder
from offbook.models.status import model_status, summarizer_status
from offbook.models.summarizers import llama


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.mark.parametrize("name", sorted(LOCAL_NAMES))
def test_every_name_of_minilm_is_the_one_that_runs_here(name: str, folder: Path) -> None:
    embedder = open_embedder(Embedding(model=name, endpoint="http://127.0.0.1:9/v1"), folder)
    assert (embedder.name, embedder.dimensions) == (name, 384)
    assert embedder.embed(["a cat"]).shape == (1, 384)
    embedder.close()


def test_the_default_is_one_of_them() -> None:
    assert Embedding().model in LOCAL_NAMES


@pytest.mark.parametrize(
    ("embedding", "told"),
    [
        (Embedding(model="none"), "switched off"),
        (Embedding(dimensions=768), "set it to 384"),
        (Embedding(model="nomic-embed-text"), "set embedding.endpoint"),
        (Embedding(model="nomic-embed-text", endpoint="http://example.com/v1"), "use https"),
    ],
)
def test_what_cannot_be_opened_says_why(embedding: Embedding, told: str, folder: Path) -> None:
    with pytest.raises(ModelUnavailable, match=told):
        open_embedder(embedding, folder, environ={})
    status = model_status(embedding, folder, environ={})
    assert status.kind == "off" if embedding.model == "none" else told in str(status.problem)
    assert not folder.exists()


def test_without_the_runtime_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelUnavailable, match="pip install"):
        open_embedder(Embedding(), folder)


def test_any_other_name_is_a_model_of_the_endpoint(folder: Path) -> None:
    embedding = Embedding(model="nomic-embed-text", endpoint="http://127.0.0.1:11434/v1", dimensions=768)
    embedder = open_embedder(embedding, folder, environ={"OPENAI_API_KEY": " \n"})
    assert (embedder.name, embedder.dimensions) == ("nomic-embed-text", 768)
    status = model_status(embedding, folder, environ={})
    assert (status.kind, status.where, status.problem) == ("endpoint", embedding.endpoint, None)
    assert status.fingerprint == embedder.fingerprint


def test_the_status_of_the_local_model(folder: Path) -> None:
    found = model_status(Embedding(), folder)
    assert (found.kind, found.is_verified, found.problem) == ("local", True, None)
    embedder = open_embedder(Embedding(), folder)
    embedder.close()
    found = model_status(Embedding(), folder)
    assert found.where == str(folder / "all-minilm-l6-v2-int8" / "model.onnx")
    assert found.fingerprint == embedder.fingerprint


@pytest.mark.usefixtures("unpackaged")
def test_the_status_of_what_is_missing_or_damaged(folder: Path) -> None:
    found = model_status(Embedding(), folder)
    assert (found.where, found.is_verified) == (None, None)
    assert "offbook model install" in str(found.problem)
    path = folder / "all-minilm-l6-v2-int8" / "model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half of it")
    found = model_status(Embedding(), folder)
    assert (found.where, found.is_verified) == (str(path), False)
    assert "SHA-256 differs" in str(found.problem)
    assert path.exists(), "looking changes nothing"


def test_the_small_summarizer_is_told_of_where_it_is_wanted_or_was_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, unwanted = Summarizer(order=("host", "local")), Summarizer(order=("local:/x.gguf", "extractive"))
    monkeypatch.setattr(weights, "packaged", lambda model: None)
    monkeypatch.setattr(llama, "find_spec", lambda name: name)
    assert summarizer_status(unwanted, folder) is None
    found = summarizer_status(wanted, folder)
    assert found is not None
    assert (found.model, found.is_wanted, found.is_runnable) == ("SmolLM2-135M-Instruct.Q4_1", True, True)
    assert (found.where, found.is_verified, found.problem) == (None, None, weights.SMOLLM2.missing)

    path = weights.cached(weights.SMOLLM2, folder)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half of it")
    monkeypatch.setattr(llama, "find_spec", lambda name: None)
    found = summarizer_status(unwanted, folder)
    assert found is not None
    assert (found.is_wanted, found.is_runnable, found.where, found.is_verified) == (False, False, str(path), False)
    assert "SHA-256 differs" in str(found.problem)
    assert "pip install 'offbook[local]'" in str(found.problem)
    assert path.exists(), "looking changes nothing"


def test_modules_load_nothing_heavy() -> None:
    code = (
        "import sys, offbook.models.status, offbook.models.minilm, offbook.models.embedder\n"
        "print([name for name in ('numpy', 'onnxruntime', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
