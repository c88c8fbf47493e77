"""Everything in one file, and back again.

`archive` is the file, `making` writes one, `restoring` puts it back, `moving` is the step that no crash may halve.
`rotation` keeps the newest ones in the data folder, `known` knows of others, `erasing` takes something out of one.
"""

from __future__ import annotations

from offbook.transfer.backup.archive import (
    ArchivedAgent,
    ArchivedFile,
    BackupDamaged,
    Manifest,
    check_archive,
    read_manifest,
)
from offbook.transfer.backup.forgetting import erase_in_backup
from offbook.transfer.backup.making import blob_references, default_name, write_backup
from offbook.transfer.backup.restoring import Restored, UnfinishedRestore, finishing_command, marker_of, restore, resume
from offbook.transfer.backup.rotation import (
    KnownBackup,
    ListedBackup,
    Rotated,
    keep_backing_up,
    known_backups,
    listed,
    note_backup,
    rotate,
)
from offbook.transfer.backup.salvaging import damage, salvage_folder

__all__ = [
    "ArchivedAgent",
    "ArchivedFile",
    "BackupDamaged",
    "KnownBackup",
    "ListedBackup",
    "Manifest",
    "Restored",
    "Rotated",
    "UnfinishedRestore",
    "blob_references",
    "check_archive",
    "damage",
    "default_name",
    "erase_in_backup",
    "finishing_command",
    "keep_backing_up",
    "known_backups",
    "listed",
    "marker_of",
    "note_backup",
    "read_manifest",
    "restore",
    "resume",
    "rotate",
    "salvage_folder",
    "write_backup",
]
