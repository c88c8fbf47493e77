"""A real daemon that looks after its memory: maintenance on demand, backups by themselves, a restore as at a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, bearer, message, running
from tests.acceptance.test_cli import offbook, output_of

SECONDS = 60.0


def until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.1)
    raise TimeoutError


def recalled(daemon: Daemon, query: str) -> str:
    return daemon.ask("recall", sessionId="chat", query=query).body.decode()


def test_a_daemon_backs_up_by_itself_and_goes_on_from_a_moment_of_it() -> None:
    settings = {"OFFBOOK_MAINTENANCE_INTERVAL": "1s", "OFFBOOK_BACKUP_EVERY_HOURS": "1", "OFFBOOK_BACKUP_KEEP": "2"}
    with running(WITHOUT_MODEL | settings) as daemon:
        daemon.ask("onMessage", sessionId="chat", message=message("My cat is called Miro."))
        then = datetime.now(UTC)
        time.sleep(0.01)
        daemon.ask("onMessage", sessionId="chat", message=message("My cat is called Bruno now."))
        until(lambda: list((daemon.home / "backups").glob("offbook-*.tar.gz")))
        done = daemon.ask("maintain", tasks=["index", "tiers", "backup"]).json()
        assert [(run["task"], run.get("error")) for run in done["runs"]] == [
            ("index", None),
            ("tiers", None),
            ("backup", None),
        ]
        assert daemon.ask("maintain", tasks=["nothing"]).status == 422
        health = {task["task"]: task for task in daemon.ask("status").json()["maintenance"]}
        assert health["backup"]["did"] == {"backups": 1}
        assert "lastSuccess" in health["index"]
        metrics = daemon.send("GET", "/metrics", headers=bearer(daemon.token)).body.decode()
        assert "offbook_maintenance_failing 0.0" in metrics
        assert 'offbook_maintenance_runs_total{task="backup"}' in metrics
        assert "tiers" in output_of(daemon.home, "maintain")
        later = output_of(daemon.home, "backup", "--rotate").splitlines()[0]
        before = sorted(path.name for path in (daemon.home / "backups").glob("offbook-*.tar.gz"))
        assert len(before) == 2
        home = daemon.home / "then"
        assert "cut of agent main" in output_of(home, "restore", later, "--at", then.isoformat())
        assert offbook(home, "audit", "--verify").returncode == 0
        with running(WITHOUT_MODEL, home=home) as restored:
            assert "Miro" in recalled(restored, "What is my cat called?")
            assert "Bruno" not in recalled(restored, "What is my cat called?")
