"""A real provider on an encrypted data folder: it works as on a plain one, and none of its files says what was said."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offbook.model.keys import KEYS_FOLDER, PASSPHRASE, PASSPHRASE_FILE
from offbook.model.memory_folder import is_in_memory, memory_folder
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, message, running
from tests.processes import run_offbook
from tests.unit.encrypted_home import WORD, saying

pytestmark = pytest.mark.slow

OTHER_WORD = "quixotical"
LARGE = f"the {WORD} report says " * 4_000
SMALL = {"OFFBOOK_CHUNK_TOKENS": "120", "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "150", "OFFBOOK_WORKER_INTERVAL": "1s"}


class Place:
    """A data folder, and the secret that opens it elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.secret = folder, folder / "h", folder / "pass"
        self.secret.write_text("correct horse battery\n")
        self.secret.chmod(0o600)

    def environ(self, **more: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        return {**inherited, "OFFBOOK_HOME": str(self.home), PASSPHRASE_FILE: str(self.secret), **more}

    def offbook(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[Any]:
        return run_offbook(*arguments, env=self.environ(**more), text=True)

    def done(self, *arguments: str) -> str:
        ended = self.offbook(*arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return str(ended.stdout)


@pytest.fixture
def place() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="ob"))
    yield Place(folder)
    shutil.rmtree(memory_folder(folder / "h"), ignore_errors=True)
    shutil.rmtree(folder)


def say(daemon: Daemon, *texts: str) -> None:
    for text in texts:
        reply = daemon.ask("onMessage", sessionId="chat", messages=[message(text)])
        assert reply.status == 200, reply.body


def recalled(daemon: Daemon, query: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = json.dumps(daemon.ask("recall", sessionId="chat", query=query).json())
        if WORD in answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"not recalled: {answer}")


def test_it_works_as_a_plain_one_and_nothing_is_to_be_read(place: Place) -> None:
    environ = {**WITHOUT_MODEL, **SMALL, PASSPHRASE_FILE: str(place.secret)}
    place.done("record", "--help")
    with running({**WITHOUT_MODEL}, home=place.home) as daemon:
        say(daemon, f"I live in {WORD}.")
    place.done("encrypt")
    assert saying(place.home) == []

    with running(environ, home=place.home) as daemon:
        say(daemon, *(f"On day {number} the {WORD} train was late by {number} minutes." for number in range(40)), LARGE)
        recalled(daemon, f"{WORD} train")
        daemon.ask("maintain")
        assert daemon.ask("status").json()["encrypted"] is True
        assert saying(place.home) == []
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
    assert saying(place.home) == [], "nor in what a kill leaves"

    with running(environ, home=place.home) as daemon:
        recalled(daemon, f"where the {WORD} is")
        assert is_in_memory() is False or (memory_folder(place.home) / "index").is_dir()
        place.done("backup", str(place.folder / "b.tar.gz"))
        place.done("audit", "--verify")
        found = place.offbook("doctor", "--json").stdout
        checks = {each["check"]: each["level"] for each in json.loads(found)["findings"]}
        assert (checks["encryption"], checks["audit"], checks["integrity"]) == ("ok", "ok", "ok"), found
        receipt = daemon.ask("forget", matching=WORD, reason="").json()["receipt"]
        assert receipt["reached"]["messages"] == 42
        assert receipt["residue"] == []
        assert list((place.home / KEYS_FOLDER).iterdir()) == []
    assert saying(place.home) == []
    assert saying(place.folder) == [], "nor in the backup"
    assert not memory_folder(place.home).exists(), "the index goes with the provider"


def test_without_its_secret_it_does_not_start_and_changes_nothing(place: Place) -> None:
    with running({**WITHOUT_MODEL}, home=place.home) as daemon:
        say(daemon, f"I live in {WORD}.")
    place.done("encrypt")
    before = {path: path.read_bytes() for path in place.home.rglob("*") if path.is_file()}
    for secret in ("", "wrong passphrase altogether"):
        ended = place.offbook("serve", "--port", "0", **{PASSPHRASE_FILE: "", PASSPHRASE: secret})
        assert ended.returncode == 1
        assert "passphrase" in ended.stderr
    left = {path: data for path, data in before.items() if path.name != "offbook.lock"}
    assert left == {path: path.read_bytes() for path in left}


def test_an_export_is_sealed_and_comes_back(place: Place) -> None:
    with running({**WITHOUT_MODEL}, home=place.home) as daemon:
        say(daemon, f"I live in {WORD}.", LARGE)
        target = place.folder / "memory.sealed"
        place.done("export", "--encrypt", str(target))
        place.done("export", str(place.folder / "plain"))
        assert WORD.encode() not in target.read_bytes()
        wrong = place.offbook(
            "import", "offbook", str(target), **{PASSPHRASE_FILE: "", PASSPHRASE: "wrong wrong wrong"}
        )
        assert (wrong.returncode, "does not open" in wrong.stderr) == (1, True)
        again = json.loads(place.done("import", "offbook", str(target), "--agent", "again", "--json"))
        assert again["agents"][0]["taken"] > 2
        exported = place.folder / "second"
        place.done("export", "--agent", "again", str(exported))
        first, second = ((root / "agents").rglob("memory.jsonl") for root in (place.folder / "plain", exported))
        said = [[line for line in next(each).read_text().splitlines() if WORD in line] for each in (first, second)]
        assert said[0] == said[1] != []
