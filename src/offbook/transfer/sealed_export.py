"""An export as one sealed file, which only its passphrase or key file opens. It is put together in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from offbook.model.errors import InvalidInput
from offbook.model.keys import Keys
from offbook.model.memory_folder import memory_root
from offbook.model.sealed_folder import seal_folder, unseal_folder
from offbook.model.sealed_stream import is_sealed
from offbook.transfer.backup.archive import disk_errors


@contextmanager
def sealed_folder(target: Path, keys: Keys) -> Iterator[Path]:
    """A folder to write to; what is in it is sealed at the end."""
    if target.exists():
        raise InvalidInput(f"{target} exists already: name another file")
    if not target.parent.is_dir():
        raise InvalidInput(f"{target} cannot be written: there is no folder {target.parent}; make it first")
    with TemporaryDirectory(prefix="offbook-export-", dir=memory_root()) as folder:
        yield Path(folder)
        with disk_errors(target):
            seal_folder(Path(folder), target, keys)


@contextmanager
def unsealed_folder(path: Path) -> Iterator[Path]:
    """The folder that was sealed; the path itself where it is not sealed."""
    if not path.is_file() or not is_sealed(path):
        yield path
        return
    with TemporaryDirectory(prefix="offbook-import-", dir=memory_root()) as folder:
        unseal_folder(path, Path(folder))
        yield Path(folder)
