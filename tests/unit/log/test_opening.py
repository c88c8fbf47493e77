"""Which store a data folder has, and what is said where that cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from offbook.cli.root import root
from offbook.log.opening import check_url, is_there, open_snapshot, open_store
from offbook.model.errors import SettingsError
from offbook.model.home import Home
from offbook.model.settings.sections import StoreSettings
from offbook.model.settings.values import without_password

URL = "postgresql://user:s3cret@localhost/name"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


@pytest.mark.parametrize("opening", [open_store, open_snapshot])
def test_without_the_driver_it_is_said_what_to_install(home: Home, monkeypatch: pytest.MonkeyPatch, opening) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"pip install 'offbook\[postgres\]'"):
        opening(home, StoreSettings(url=URL))


@pytest.mark.parametrize("opening", [open_store, open_snapshot])
def test_another_kind_of_database_is_refused_without_its_password(home: Home, opening) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingsError, match="expected postgresql://") as caught:
        opening(home, StoreSettings(url="mysql://user:s3cret@localhost/name"))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("opening", [open_store, open_snapshot])
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:50%s3cret@h/db",
        "postgresql://u:[s3cret@[::1/db",
        "postgresql://u:p@s3cret@h/db",
        "postgresql://u:p/s3cret@h/db",
        "postgresql://u:12/s3cret@h/db",
        "postgresql://u:pw@h/db?s3cret",
    ],
)
def test_what_libpq_says_of_a_url_is_not_told(home: Home, opening, url: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingsError, match="percent-encode") as caught:
        opening(home, StoreSettings(url=url))
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_libpq_takes_is_taken() -> None:
    for url in (URL, "postgres:///db?host=/run/pg", "postgresql://u:p%40%23@h1:1,h2:2/d%40b?sslmode=require"):
        check_url(url)


def test_a_database_is_there_until_it_says_otherwise(home: Home) -> None:
    assert not is_there(home, StoreSettings())
    assert is_there(home, StoreSettings(url=URL))


def test_a_node_keeps_its_name(home: Home) -> None:
    assert home.node() == home.node() == Home(home.folder).node()


@pytest.mark.parametrize("command", [["backup"], ["backup", "--rotate"], ["restore", __file__]])
def test_what_is_done_to_files_is_refused(home: Home, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_STORE_URL", URL)
    done = CliRunner().invoke(root, [*command, "--home", str(home.folder)])
    assert done.exit_code == 1
    assert "the memory is in PostgreSQL" in done.output
    assert "s3cret" not in done.output


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (URL, "postgresql://user:***@localhost/name"),
        ("postgresql://user@localhost/name", "postgresql://user@localhost/name"),
        ("postgresql://user:p@ss:w@h1,h2/name", "postgresql://user:***@h1,h2/name"),
        ("postgresql://:only@h/n?sslmode=require", "postgresql://:***@h/n?sslmode=require"),
        ("postgresql:///n?user=u&password=abc&host=h", "postgresql:///n?user=u&password=***&host=h"),
        ("postgresql://u:pa#s3cret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:pa?s3cret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:pa/s3cret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u@corp:s3cret@h/db", "postgresql://u@corp:***@h/db"),
        ("http://127.0.0.1:8770", "http://127.0.0.1:8770"),
        ("no://", "no://"),
        (None, None),
        (3, 3),
    ],
)
def test_a_password_is_hidden_wherever_settings_are_shown(value: object, shown: object) -> None:
    assert without_password(value) == shown


@pytest.mark.parametrize("format_", [[], ["--json"]])
def test_the_command_shows_no_password(home: Home, monkeypatch: pytest.MonkeyPatch, format_: list[str]) -> None:
    monkeypatch.setenv("OFFBOOK_STORE_URL", URL)
    for name in ([], ["store.url"], ["store"]):
        done = CliRunner().invoke(root, ["config", *name, *format_, "--home", str(home.folder)])
        assert done.exit_code == 0, done.output
        assert "user:***@localhost" in done.output
        assert "s3cret" not in done.output
