"""What the doctor says of a database."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from offbook.api.doctor.database import check_database
from offbook.api.doctor.finding import Finding
from offbook.api.doctor.record import check_store
from offbook.api.doctor.upkeep import _agent_there
from offbook.log.opening import open_store
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import StoreSettings
from tests.postgres_server import new_database, server


def told(findings: list[Finding], check: str) -> list[tuple[str, str]]:
    return [(finding.level, finding.what) for finding in findings if finding.check == check]


async def test_one_that_is_served_is_told_with_who_holds_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    url = new_database()
    [(level, what)] = told(await check_database(home, url), "lease")
    assert (level, what) == ("ok", "nobody writes to it now")
    store = open_store(home, StoreSettings(url=url))
    found = await check_database(home, url)
    assert told(found, "database")[0][0] == "ok"
    assert "synchronous_commit = on" in told(found, "database")[0][1]
    assert told(found, "database")[1] == ("warn", "fsync is off")  # as the tests' server is
    [(level, what)] = told(found, "lease")
    assert level == "ok"
    assert "of this folder until" in what
    other = Home(tmp_path / "other")
    other.prepare()
    assert "of another folder or machine until" in told(await check_database(other, url), "lease")[0][1]
    await store.close()


async def test_one_without_tables_is_told(tmp_path: Path) -> None:
    found = await check_database(Home(tmp_path), server().new_database())
    assert ("warn", "it holds no memory yet") in told(found, "database")


async def test_what_is_wrong_is_told_without_the_password(tmp_path: Path) -> None:
    url = new_database()
    server().ask(f"ALTER DATABASE {psycopg.conninfo.conninfo_to_dict(url)['dbname']} SET synchronous_commit = off")
    wrong = {
        url: "synchronous_commit",
        "postgresql://user:s3cret@/name?host=/nowhere": "cannot be opened",
        "mysql://user:s3cret@host": "expected postgresql://",
        "postgresql://user:50%s3cret@host/name": "percent-encode",
    }
    for each, what in wrong.items():
        [(level, said)] = told(await check_database(Home(tmp_path), each), "database")
        assert level == "fail"
        assert what in said
        assert "s3cret" not in said


async def test_a_newer_schema_is_told(tmp_path: Path) -> None:
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO offbook.migrations (kind, version) VALUES ('store', 999)")
    [(level, said)] = told(await check_database(Home(tmp_path), url), "database")
    assert level == "fail"
    assert "999" in said


@pytest.mark.parametrize("url", ["mysql://host/name", "postgresql://user:50%@host/name"])
async def test_a_strange_url_leaves_the_other_checks_alone(tmp_path: Path, url: str) -> None:
    settings = Settings(store=StoreSettings(url=url))
    assert await check_store(Home(tmp_path), settings) == []
    assert await _agent_there(Home(tmp_path), settings) is None
