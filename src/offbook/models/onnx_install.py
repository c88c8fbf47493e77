"""Puts an embedding model into the folder of models: one that Offbook knows, from a hub, with the SHA-256 of each file
written down here; or any folder with a tokenizer and an ONNX graph, whose files are pinned as they were seen."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.types import Value
from offbook.models.embedder import INSTALLED
from offbook.models.onnx_embedder import (
    MANIFEST,
    PIECE_BYTES,
    Manifest,
    OnnxEmbedder,
    Pooling,
    damaged_files,
    file_digest,
    read_manifest,
)
from offbook.models.onnx_folder import TOKENIZER, graph_in

HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"
"""Names a mirror of the hub, for this as for the hub's own tools."""
TIMEOUT_SECONDS = 60.0
GRAPH = "model.onnx"
CONFIG = "config.json"
BROKEN_OFF = "{}.part"

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""


class HubFile(Value, frozen=True):
    name: str
    """In the folder of the model."""
    path: str
    """At the hub."""
    sha256: str
    size_bytes: int


class KnownModel(Value, frozen=True):
    """A model of a hub, at a revision that never changes."""

    manifest: Manifest
    repository: str
    revision: str
    files: tuple[HubFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


# MIT. The digests are those that several public projects pin for this revision, each by itself; a file that differs is
# refused, so a wrong one would show at the first install.
E5_SMALL = KnownModel(
    manifest=Manifest(
        name="multilingual-e5-small",
        dimensions=384,
        pooling="mean",
        query_prefix="query: ",
        passage_prefix="passage: ",
        max_tokens=512,
    ),
    repository="Xenova/multilingual-e5-small",
    revision="761b726dd34fb83930e26aab4e9ac3899aa1fa78",
    files=(
        HubFile(
            name=GRAPH,
            path="onnx/model_quantized.onnx",
            sha256="f80102d3f2a1229f387d3c81909990d8945513e347b0eab049f7de3c6f98c193",
            size_bytes=118_308_185,
        ),
        HubFile(
            name=TOKENIZER,
            path=TOKENIZER,
            sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
            size_bytes=17_082_730,
        ),
    ),
)
KNOWN = {"multilingual": E5_SMALL}


class Installed(Value, frozen=True):
    manifest: Manifest
    folder: str

    @property
    def setting(self) -> str:
        """As `embedding.model` names it."""
        return INSTALLED + self.manifest.name


def installed_models(models: Path) -> list[Manifest]:
    found = []
    for path in sorted(models.glob(f"*/{MANIFEST}")):
        try:
            found.append(read_manifest(path.parent))
        except ModelUnavailable:
            continue  # told of by whoever asks for that one
    return found


# ── one that is known ──


def install_known(
    known: KnownModel,
    models: Path,
    *,
    source: Path | None = None,
    progress: Progress = lambda done, total: None,
    environ: Mapping[str, str] = os.environ,
) -> Installed:
    """From a folder, else from the hub. What is whole already is kept; a download that broke off goes on."""
    folder = models / known.manifest.name
    done = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in known.files:
            path = folder / file.name
            if not path.is_file() or file_digest(path) != file.sha256:
                before = done

                def show(bytes_done: int, before: int = before) -> None:
                    progress(before + bytes_done, known.size_bytes)

                if source is not None:
                    _copied(file, source, path)
                else:
                    _fetched(known, file, path, show, environ)
            done += file.size_bytes
            progress(done, known.size_bytes)
        manifest = msgspec.structs.replace(
            known.manifest,
            files={file.name: file.sha256 for file in known.files},
            source=f"{known.repository}@{known.revision}",
            is_pinned=True,
        )
        return _finished(manifest, folder)
    except OSError as error:
        raise ModelUnavailable(f"{known.manifest.name} cannot be installed: {error}") from error


def _copied(file: HubFile, source: Path, path: Path) -> None:
    places = [source / name for name in (file.path, Path(file.path).name, file.name)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ModelUnavailable(f"{source} holds no {file.path}: fetch it from {HUB}, and install it again")
    unfinished = path.with_name(BROKEN_OFF.format(path.name))
    shutil.copyfile(found, unfinished)
    _accept(file, unfinished, path)


def _fetched(
    known: KnownModel, file: HubFile, path: Path, show: Callable[[int], None], environ: Mapping[str, str]
) -> None:
    hub = environ.get(HUB_VARIABLE, "").strip().rstrip("/") or HUB
    if not hub.startswith("https://") and not re.match(r"http://(127\.0\.0\.1|localhost)(:\d+)?$", hub):
        raise ModelUnavailable(f"{HUB_VARIABLE} must be an https address")
    url = f"{hub}/{known.repository}/resolve/{known.revision}/{file.path}"
    unfinished = path.with_name(BROKEN_OFF.format(path.name))
    there = unfinished.stat().st_size if unfinished.is_file() else 0
    if there >= file.size_bytes:
        there = 0
    headers = {"User-Agent": "offbook", **({"Range": f"bytes={there}-"} if there else {})}
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 (https, or this machine)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            goes_on = there if answer.status == http.client.PARTIAL_CONTENT else 0
            with unfinished.open("ab" if goes_on else "wb") as written:
                done = goes_on
                while piece := answer.read(min(PIECE_BYTES, file.size_bytes + 1 - done)):
                    written.write(piece)
                    done += len(piece)
                    show(min(done, file.size_bytes))
                written.flush()
                os.fsync(written.fileno())
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        why = getattr(error, "reason", None) or error
        raise ModelUnavailable(
            f"{file.path} could not be fetched from {hub} ({why}): mend that and run it again, it goes on where it "
            f"broke off; or fetch {known.repository} on another machine and run `offbook model install multilingual "
            "--from FOLDER`",
            retryable=True,
        ) from error
    if unfinished.stat().st_size < file.size_bytes:
        raise ModelUnavailable(f"{file.path} broke off: run it again, it goes on from there", retryable=True)
    _accept(file, unfinished, path)


def _accept(file: HubFile, unfinished: Path, path: Path) -> None:
    if file_digest(unfinished) != file.sha256:
        unfinished.unlink()
        raise ModelUnavailable(f"{file.path} is not the file that Offbook knows (its SHA-256 differs): it is not used")
    unfinished.replace(path)


# ── any other ──


class _SentencePooling(msgspec.Struct, frozen=True):
    pooling_mode_cls_token: bool = False


class _SentencePrompts(msgspec.Struct, frozen=True):
    prompts: dict[str, str] = {}


def install_folder(
    source: Path,
    models: Path,
    *,
    name: str | None = None,
    pooling: Pooling | None = None,
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
    graph_sha256: str | None = None,
) -> Installed:
    """Its files are copied and pinned as they are now. How it is used is read from the folder (`offbook-model.json`, or
    the files of sentence-transformers), where nothing else is said."""
    graph = graph_in(source)
    digest = file_digest(graph)
    if graph_sha256 is not None and digest != graph_sha256.lower():
        raise ModelUnavailable(f"the SHA-256 of {graph} is {digest}, not the one that was given: nothing was installed")
    own = read_manifest(source) if (source / MANIFEST).is_file() else None
    given = own or described_in(source)
    given = msgspec.structs.replace(
        given,
        name=_checked_name(name or given.name),
        pooling=pooling or given.pooling,
        query_prefix=given.query_prefix if query_prefix is None else query_prefix,
        passage_prefix=given.passage_prefix if passage_prefix is None else passage_prefix,
        source=str(source.absolute()),
        is_pinned=False,
    )
    files = {GRAPH: graph, TOKENIZER: source / TOKENIZER}
    files |= {name: path for name in (CONFIG,) if (path := source / name).is_file()}
    files |= {path.name: path for path in graph.parent.glob(f"{graph.name}[._]data")}  # weights beside a large graph
    folder = models / given.name
    if folder.resolve() == source.resolve():
        raise ModelUnavailable(f"{source} is where it would be installed: move it elsewhere first")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder) as unfinished:
            for name_there, path in files.items():
                shutil.copyfile(path, Path(unfinished) / name_there)
            for name_there in files:
                (Path(unfinished) / name_there).replace(folder / name_there)
        digests = {name_there: file_digest(folder / name_there) for name_there in files}
        return _finished(msgspec.structs.replace(given, files=digests), folder)
    except OSError as error:
        raise ModelUnavailable(f"{source} cannot be installed: {error}") from error


def described_in(source: Path) -> Manifest:
    """What the files of sentence-transformers say; `dimensions` is found out by trying."""
    pooling = _read(source / "1_Pooling" / CONFIG, _SentencePooling)
    prompts = _read(source / "config_sentence_transformers.json", _SentencePrompts).prompts
    passage = next((prompts[name] for name in ("passage", "document", "corpus") if prompts.get(name)), "")
    return Manifest(
        name=re.sub(r"[^A-Za-z0-9._-]+", "-", source.resolve().name).strip(".-") or "model",
        dimensions=0,
        pooling="cls" if pooling.pooling_mode_cls_token else "mean",
        query_prefix=prompts.get("query", ""),
        passage_prefix=passage,
    )


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return kind()


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise ModelUnavailable(f"{name!r} is no name for a model: letters, digits, '.', '_' and '-', at most 64")
    return name


def _finished(manifest: Manifest, folder: Path) -> Installed:
    """Tried once; written down last, so that what has a manifest is whole."""
    if damaged := damaged_files(folder, manifest):
        raise ModelUnavailable(f"{', '.join(damaged)} changed while it was installed: run it again")
    manifest = msgspec.structs.replace(manifest, dimensions=manifest.dimensions or _dimensions(folder, manifest))
    embedder = OnnxEmbedder(folder, name=manifest.name, manifest=manifest)
    embedder.embed(["Hello."])
    embedder.close()
    unfinished = folder / BROKEN_OFF.format(MANIFEST)
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    unfinished.replace(folder / MANIFEST)
    return Installed(manifest=manifest, folder=str(folder))


def _dimensions(folder: Path, manifest: Manifest) -> int:
    from offbook.models.onnx_folder import OnnxFolder

    (batch,) = OnnxFolder(folder, max_tokens=manifest.max_tokens).over_texts(["Hello."])
    return int(batch.made.shape[-1])
