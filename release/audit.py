"""`make audit`: known faults of the locked dependencies, by pip-audit. Says so where nothing could be looked up."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release.lock import LOCK

UNKNOWN = 2
"""Exit status where nothing is known: neither that there are faults nor that there are none."""


def main(command: Sequence[str]) -> int:
    """`command`: pip-audit, and what stands before its options."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        options = ["--require-hashes", "--disable-pip", "--progress-spinner=off", "--format=json", f"--output={report}"]
        try:
            run = subprocess.run([*command, *options, "-r", str(LOCK)], capture_output=True, text=True, check=False)
        except OSError as error:
            return _not_checked(f"pip-audit could not be run ({error})")
        # Its exit status is 1 for faults as for a service that does not answer: only a report says which.
        if not report.exists():
            return _not_checked((run.stderr.strip().splitlines() or ["it said nothing"])[-1])
        found = json.loads(report.read_text())["dependencies"]
    skipped = [each["name"] for each in found if "skip_reason" in each]
    faults = [(each, fault) for each in found for fault in each.get("vulns", ())]
    for package, fault in faults:
        mend = ", ".join(fault["fix_versions"]) or "none yet"
        print(f"{package['name']} {package['version']}: {fault['id']} (mended in: {mend})")
    if skipped:
        return _not_checked(f"pip-audit skipped {', '.join(skipped)}")
    print(f"{len(found)} packages, {len(faults)} known faults")
    return 1 if faults else 0


def _not_checked(why: str) -> int:
    print(f"NOT CHECKED for known faults: {why}. Try again where its data can be reached.", file=sys.stderr)
    return UNKNOWN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [sys.executable, "-m", "pip_audit"]))
