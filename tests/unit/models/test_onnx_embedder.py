"""Embedding models of one's own: installed, opened, damaged; and from a hub, as far as the network allows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import Embedding
from offbook.models.embedder import Quick, open_embedder
from offbook.models.onnx_embedder import MANIFEST, Manifest, read_manifest
from offbook.models.onnx_install import (
    E5_SMALL,
    HubFile,
    KnownModel,
    install_folder,
    install_known,
    installed_models,
)
from offbook.models.status import model_status
from offbook.models.worker import IN_PROCESS
from offbook.models.worker_embedder import WorkerEmbedder
from tests.unit.models.onnx_models import DIMENSIONS, embedding_folder

TEXTS = ["the cat eat fish", "die Katze frisst Fisch", "a dog chases the ball", ""]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return embedding_folder(tmp_path / "small")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def embedding(name: str = "small", dimensions: int = DIMENSIONS) -> Embedding:
    return Embedding(model=f"local:{name}", dimensions=dimensions)


def test_a_folder_is_installed_and_embeds(source: Path, models: Path) -> None:
    installed = install_folder(source, models)
    assert (installed.setting, installed.manifest.dimensions) == ("local:small", DIMENSIONS)
    assert not installed.manifest.is_pinned
    embedder = open_embedder(embedding(), models)
    vectors = embedder.embed(TEXTS)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert vectors[0] @ vectors[1] == pytest.approx(1.0), "it reads both languages"
    assert vectors[0] @ vectors[2] < 0.5
    assert embedder.name == "local:small"
    assert np.allclose(embedder.embed(TEXTS[2:3])[0], vectors[2]), "a text does not depend on its company"
    status = model_status(embedding(), models)
    assert (status.kind, status.is_verified, status.problem) == ("local", True, None)
    assert status.fingerprint == embedder.fingerprint


def test_a_question_and_a_passage_have_their_own_beginnings(source: Path, models: Path) -> None:
    plain = install_folder(source, models, name="plain")
    told = install_folder(source, models, name="told", query_prefix="query: ", passage_prefix="passage: ")
    assert plain.manifest.files == told.manifest.files
    one, other = (open_embedder(embedding(name), models) for name in ("plain", "told"))
    assert one.fingerprint != other.fingerprint
    assert isinstance(other, Quick)
    assert np.allclose(other.embed_query("the cat")[0], one.embed(["query: the cat"])[0])
    assert np.allclose(other.embed(["the cat"])[0], one.embed(["passage: the cat"])[0])
    beside = WorkerEmbedder(IN_PROCESS, embedding("told"), models)
    assert np.allclose(beside.embed_query("the cat"), other.embed_query("the cat"))
    assert np.allclose(beside.embed(["the cat"]), other.embed(["the cat"]))


def test_the_first_token_may_stand_for_the_text(source: Path, models: Path) -> None:
    install_folder(source, models, pooling="cls")
    vectors = open_embedder(embedding(), models).embed(TEXTS[:3])
    assert np.allclose(vectors[0], vectors[2]), "of each it is the same: where a text begins"


def test_what_sentence_transformers_write_down_is_read(source: Path, models: Path) -> None:
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true, "word_embedding_dimension": 9}')
    (source / "config_sentence_transformers.json").write_text('{"prompts": {"query": "q: ", "document": "p: "}}')
    manifest = install_folder(source, models).manifest
    assert (manifest.pooling, manifest.query_prefix, manifest.passage_prefix) == ("cls", "q: ", "p: ")


def test_what_was_installed_can_be_installed_elsewhere(source: Path, models: Path, tmp_path: Path) -> None:
    first = install_folder(source, models, query_prefix="query: ")
    again = install_folder(models / "small", tmp_path / "other")
    assert again.manifest.query_prefix == "query: "
    assert again.manifest.files == first.manifest.files


def test_another_graph_than_was_meant_is_refused(source: Path, models: Path) -> None:
    with pytest.raises(ModelUnavailable, match="nothing was installed"):
        install_folder(source, models, graph_sha256="0" * 64)
    assert not installed_models(models)
    right = sha256((source / "model.onnx").read_bytes()).hexdigest()
    assert install_folder(source, models, graph_sha256=right.upper()).manifest.files["model.onnx"] == right


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_file_that_changed_since_is_not_used(source: Path, models: Path, file: str) -> None:
    install_folder(source, models)
    path = models / "small" / file
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ModelUnavailable, match="not what was installed"):
        open_embedder(embedding(), models)
    status = model_status(embedding(), models)
    assert status.is_verified is False
    assert file in (status.problem or "")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (embedding("nothing"), "offbook model install multilingual"),
        (embedding("../small"), "local:NAME"),
        (embedding(""), "local:NAME"),
        (embedding(dimensions=3), f"set it to {DIMENSIONS}"),
    ],
)
def test_what_cannot_be_opened_says_what_to_do(source: Path, models: Path, wanted: Embedding, told: str) -> None:
    install_folder(source, models)
    with pytest.raises(ModelUnavailable, match=told):
        open_embedder(wanted, models)
    assert told.partition(":")[0] in (model_status(wanted, models).problem or "")


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden", "x" * 65])
def test_a_name_is_that_of_a_folder(source: Path, models: Path, name: str) -> None:
    with pytest.raises(ModelUnavailable, match="no name for a model"):
        install_folder(source, models, name=name)


# ── from a hub ──


class Hub(ThreadingHTTPServer):
    daemon_threads = True
    breaks_after: int | None = None

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.asked: list[tuple[str, str | None]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """One that hangs up is what a test is about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append((self.path, asked))
        data = self.server.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        breaks_after, self.server.breaks_after = self.server.breaks_after, None
        self.wfile.write(data[start:] if breaks_after is None else data[start:breaks_after])
        self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def known_of(source: Path, **digests: str) -> KnownModel:
    files = []
    for name in ("model.onnx", "tokenizer.json"):
        data = (source / name).read_bytes()
        digest = digests.get(name.partition(".")[0], sha256(data).hexdigest())
        files.append(HubFile(name=name, path=f"onnx/{name}", sha256=digest, size_bytes=len(data)))
    manifest = Manifest(name="known", dimensions=DIMENSIONS, query_prefix="query: ", passage_prefix="passage: ")
    return KnownModel(manifest=manifest, repository="some/model", revision="abc", files=tuple(files))


@pytest.fixture
def hub(source: Path) -> Iterator[Hub]:
    paths = {name: f"/some/model/resolve/abc/onnx/{name}" for name in ("model.onnx", "tokenizer.json")}
    made = Hub({path: (source / name).read_bytes() for name, path in paths.items()})
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def address(hub: Hub) -> dict[str, str]:
    return {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}"}


def test_a_known_model_comes_from_its_hub(source: Path, models: Path, hub: Hub) -> None:
    shown: list[tuple[int, int]] = []
    known = known_of(source)
    installed = install_known(known, models, progress=lambda *done: shown.append(done), environ=address(hub))
    assert installed.manifest.is_pinned
    assert installed.manifest.source == "some/model@abc"
    assert shown[-1] == (known.size_bytes, known.size_bytes)
    assert open_embedder(embedding("known"), models).embed(["the cat"]).shape == (1, DIMENSIONS)
    asked = len(hub.asked)
    install_known(known, models, environ=address(hub))
    assert len(hub.asked) == asked, "what is whole is not fetched again"


def test_a_download_that_broke_off_goes_on(source: Path, models: Path, hub: Hub) -> None:
    hub.breaks_after = 100
    with pytest.raises(ModelUnavailable, match="goes on"):
        install_known(known_of(source), models, environ=address(hub))
    assert not installed_models(models)
    install_known(known_of(source), models, environ=address(hub))
    assert [asked for _, asked in hub.asked] == [None, "bytes=100-", None]
    assert read_manifest(models / "known").name == "known"


def test_a_file_that_is_another_is_refused(source: Path, models: Path, hub: Hub) -> None:
    with pytest.raises(ModelUnavailable, match="SHA-256 differs"):
        install_known(known_of(source, tokenizer="0" * 64), models, environ=address(hub))
    assert not (models / "known" / "tokenizer.json").exists()
    assert not (models / "known" / MANIFEST).exists()


def test_without_a_network_its_files_come_from_a_folder(source: Path, models: Path) -> None:
    assert install_known(known_of(source), models, source=source, environ={}).manifest.is_pinned
    with pytest.raises(ModelUnavailable, match="holds no"):
        install_known(
            msgspec.structs.replace(known_of(source), manifest=Manifest(name="b", dimensions=1)),
            models,
            source=models,
            environ={},
        )


def test_a_hub_without_tls_is_refused(source: Path, models: Path) -> None:
    with pytest.raises(ModelUnavailable, match="https"):
        install_known(known_of(source), models, environ={"HF_ENDPOINT": "http://hub.example"})


def test_the_multilingual_one_is_pinned() -> None:
    assert {file.name for file in E5_SMALL.files} == {"model.onnx", "tokenizer.json"}
    assert all(len(file.sha256) == 64 for file in E5_SMALL.files)
    assert (E5_SMALL.manifest.dimensions, E5_SMALL.manifest.query_prefix) == (384, "query: ")
    assert len(E5_SMALL.revision) == 40
