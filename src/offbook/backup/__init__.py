"""Everything in one file, and back again.

`archive` is the file, `making` writes one, `restoring` puts it back, `moving` is the step that no crash may halve.
"""

from __future__ import annotations

from offbook.backup.archive import ArchivedAgent, ArchivedFile, BackupDamaged, Manifest, check_archive, read_manifest
from offbook.backup.making import blob_references, default_name, write_backup
from offbook.backup.moving import UnfinishedRestore, finishing_command, marker_of
from offbook.backup.restoring import Restored, restore, resume

__all__ = [
    "ArchivedAgent",
    "ArchivedFile",
    "BackupDamaged",
    "Manifest",
    "Restored",
    "UnfinishedRestore",
    "blob_references",
    "check_archive",
    "default_name",
    "finishing_command",
    "marker_of",
    "read_manifest",
    "restore",
    "resume",
    "write_backup",
]
