from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from offbook.api.daemon import listen_on_socket
from offbook.model.errors import SettingsError, StoreOwned, StoreReadOnly
from offbook.model.home import (
    LONGEST_SOCKET_PATH,
    BoundToken,
    Home,
    Lock,
    TokenBook,
    home_folder,
    make_private,
    token_digest,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def test_the_folder_and_the_token_are_for_their_owner_only(home: Home) -> None:
    token = home.owner_token()
    assert token.startswith("offbook_")
    assert home.owner_token() == token
    assert home.folder.stat().st_mode & 0o777 == 0o700
    assert home.token.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "\n", "short"])
def test_a_token_that_keeps_nobody_out_is_refused(home: Home, text: str) -> None:
    home.token.write_text(text)
    with pytest.raises(SettingsError, match="remove the file"):
        home.owner_token()


@pytest.mark.parametrize("mode", [None, 0o755, 0o777, 0o2750, 0o700])
def test_others_are_kept_out_of_a_private_folder_new_or_not(tmp_path: Path, mode: int | None) -> None:
    folder = tmp_path / "index"
    if mode is not None:
        folder.mkdir()
        folder.chmod(mode)
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_private_folder_that_its_owner_may_not_write_stays_so(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    folder.chmod(0o555)
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o500


def test_a_folder_of_somebody_else_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    folder.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o755


def test_where_there_are_no_modes_a_folder_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, mode: int) -> None:
        raise PermissionError("no modes here")

    folder = tmp_path / "index"
    folder.mkdir()
    folder.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refused)
    make_private(folder)


def test_looking_at_a_home_makes_nothing(tmp_path: Path) -> None:
    Home(tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    with pytest.raises(StoreReadOnly, match="OFFBOOK_HOME"):
        Home(tmp_path / "home").prepare()


def test_a_path_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="shorter"):
        Home(tmp_path / ("x" * 120)).check_socket_path()


def test_the_longest_path_that_passes_can_be_listened_on() -> None:
    # Not pytest's folder: it can be too long by itself.
    with tempfile.TemporaryDirectory(prefix="ob") as made:
        fill = LONGEST_SOCKET_PATH - len(os.fsencode(made)) - len("//offbook.sock")
        home = Home(Path(made) / ("x" * fill))
        home.prepare()
        assert len(os.fsencode(home.socket)) == LONGEST_SOCKET_PATH
        home.check_socket_path()
        listen_on_socket(home.socket).close()
        assert home.socket.is_socket()
        assert [file.name for file in home.folder.iterdir()] == ["offbook.sock"]
        with pytest.raises(SettingsError, match="shorter"):
            Home(Path(made) / ("x" * (fill + 1))).check_socket_path()


def test_the_limit_is_the_systems() -> None:
    assert {"darwin": 103}.get(sys.platform, 107) == LONGEST_SOCKET_PATH


def test_one_owner_at_a_time(home: Home) -> None:
    lock = Lock(home)
    with pytest.raises(StoreOwned, match="another Offbook"):
        Lock(home)
    lock.release()
    lock.release()
    Lock(home).release()


def test_a_revoked_token_is_forgotten_at_once(home: Home) -> None:
    book = TokenBook(home)
    owner = home.owner_token()
    assert book.callers()[token_digest(owner)].agents is None
    bound = BoundToken(name="ada", digest=token_digest("t"), agents=["ada"], created_at="2026-11-15T00:00:00Z")
    home.write_bound_tokens([bound])
    assert book.callers()[token_digest("t")].agents == frozenset({"ada"})
    assert home.bound_tokens.stat().st_mode & 0o777 == 0o600
    home.write_bound_tokens([])
    assert token_digest("t") not in book.callers()


def test_a_broken_token_file_is_named(home: Home) -> None:
    home.bound_tokens.write_text("not json")
    with pytest.raises(SettingsError, match=r"tokens\.json"):
        home.read_bound_tokens()


def test_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_folder({}) == tmp_path / ".offbook"
    assert home_folder({"OFFBOOK_HOME": ""}) == tmp_path / ".offbook"
    assert home_folder({"OFFBOOK_HOME": "~/elsewhere"}) == tmp_path / "elsewhere"
    assert home_folder({"OFFBOOK_HOME": "/data"}) == Path("/data")
    assert home_folder({"OFFBOOK_HOME": "here"}) == Path.cwd() / "here"


def test_a_home_that_is_not_known() -> None:
    with pytest.raises(SettingsError, match="OFFBOOK_HOME"):
        home_folder({"OFFBOOK_HOME": "~nobody-of-this-name/offbook"})
