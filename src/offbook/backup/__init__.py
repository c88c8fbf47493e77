"""Everything in one file, and back again: `archive` is the file, `making` writes one, `restoring` puts it back."""

from __future__ import annotations

from offbook.backup.archive import ArchivedAgent, ArchivedFile, BackupDamaged, Manifest, check_archive, read_manifest
from offbook.backup.making import blob_references, default_name, write_backup
from offbook.backup.restoring import Restored, restore

__all__ = [
    "ArchivedAgent",
    "ArchivedFile",
    "BackupDamaged",
    "Manifest",
    "Restored",
    "blob_references",
    "check_archive",
    "default_name",
    "read_manifest",
    "restore",
    "write_backup",
]
