"""A provider whose memory is in PostgreSQL: it conforms, survives `kill -9`, and says when the database is not reached."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest
from benchmarks.provider import spawn, working_folder
from benchmarks.trials.kills import KillTrial

from offbook.contrib.conformance import CHECKS, run
from tests.acceptance.daemon import WITHOUT_MODEL, assert_problem, message, running
from tests.postgres_server import Server, new_database
from tests.processes import Offbook

KILLS = 4
IS_CAMPAIGN = "PROVE_POSTGRES" in os.environ
OF_THE_STORE = (0, 1, 4, 6)
"""Promises: shapes, the record, isolation, audit. The others are kept above the store; `PROVE_POSTGRES=1` checks all."""


async def test_it_conforms() -> None:
    with running({**WITHOUT_MODEL, "OFFBOOK_STORE_URL": new_database()}) as daemon:
        assert daemon.ask("status", agentId="main").json()["store"] == "postgres"
        checks = [check for check in CHECKS if IS_CAMPAIGN or check.promise in OF_THE_STORE]
        report = await run(daemon.tcp_endpoint, daemon.token, checks=checks)
    assert [result for result in report.results if result.outcome != "passed"] == []
    assert len(report.results) == len(checks) > 70


@pytest.mark.slow
@pytest.mark.timeout(60 + 30 * KILLS)
async def test_nothing_acknowledged_is_lost_doubled_or_altered_by_kills() -> None:
    with working_folder() as folder:
        home = folder / "home"
        home.mkdir()
        (home / "config.toml").write_text(f'[store]\nurl = "{new_database()}"\n')
        trial = KillTrial(home, kills=KILLS, writers=6, seed=1, spawn=partial(spawn, is_forked=True, **WITHOUT_MODEL))
        report = await trial.run()
    assert report.reckoning.faults == []
    assert report.exit_code == 0
    assert report.reckoning.stored_unacknowledged == 0, "every message was sent again until it was acknowledged"
    assert report.lost_answers >= KILLS, "the kills hit no request"


def test_while_the_database_is_gone_it_says_try_again_and_then_goes_on() -> None:
    server = Server()
    try:
        with running({**WITHOUT_MODEL, "OFFBOOK_STORE_URL": server.new_database()}) as daemon:
            assert daemon.ask("onMessage", sessionId="chat", message=message("One.", id="1")).status == 200
            server.stop()
            problem = assert_problem(daemon.ask("onMessage", sessionId="chat", message=message("Two.", id="2")), 503)
            assert problem["retryable"]
            server.start()
            assert daemon.ask("onMessage", sessionId="chat", message=message("Two.", id="2")).status == 200
            logged = daemon.ask("log", sessionId="chat").json()["messages"]
            assert [each["message"]["content"] for each in logged] == ["One.", "Two."]
    finally:
        server.remove()


def test_a_second_provider_on_the_same_database_is_refused(tmp_path: Path) -> None:
    url = new_database()
    with running({**WITHOUT_MODEL, "OFFBOOK_STORE_URL": url}) as daemon, tempfile.TemporaryFile() as output:
        environ = {"OFFBOOK_HOME": str(tmp_path / "other"), "OFFBOOK_PORT": "0"}
        other = Offbook("serve", "--store", url, env=environ, stdout=output, stderr=output)
        assert other.wait(60) == 1
        output.seek(0)
        assert b"holds this database until" in output.read()
        assert daemon.ask("onMessage", sessionId="chat", message=message()).status == 200
