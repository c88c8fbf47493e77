"""Is the data folder encrypted, does its key open it, and what in it can be read without?"""

from __future__ import annotations

from offbook.api.doctor.finding import FAULTS_SHOWN, Finding
from offbook.model.errors import OffbookError
from offbook.model.home import Home
from offbook.model.keys import keys_of, need_cipher, refuse_lost_keys
from offbook.model.memory_folder import is_in_memory
from offbook.transfer.plain_copies import still_plain

MEND = (
    "`offbook encrypt` overwrites what a break-off left; remove old backups and copies by hand, deliver outboxes: "
    "`offbook flush`"
)


def check_encryption(home: Home) -> list[Finding]:
    try:
        refuse_lost_keys(home.folder)
        if not home.is_encrypted:
            what = "the data folder is in plain text; `offbook encrypt` encrypts it"
            return [Finding(check="encryption", level="ok", what=what)]
        need_cipher()
        keys_of(home.folder)
    except OffbookError as error:
        mend = "set OFFBOOK_PASSPHRASE, OFFBOOK_PASSPHRASE_FILE or OFFBOOK_KEY_FILE; without, no more can be checked"
        return [Finding(check="encryption", level="fail", what=error.detail, mend=mend)]
    findings = [Finding(check="encryption", level="ok", what="the data folder is encrypted, and its key opens it")]
    if plain := still_plain(home):
        shown = ", ".join(plain[:FAULTS_SHOWN])
        findings.append(Finding(check="encryption", level="warn", what=f"in plain text: {shown}", mend=MEND))
    if not is_in_memory():
        what = f"the search index lies in plain text in {home.indexes.parent} while a provider runs"
        findings.append(Finding(check="encryption", level="warn", what=what, mend="mount a tmpfs at /dev/shm"))
    return findings
