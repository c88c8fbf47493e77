from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from offbook.api.daemon import listen_on_socket
from offbook.client.endpoint import Endpoint, default_token
from offbook.model.errors import SettingsError, StoreOwned, StoreReadOnly
from offbook.model.home import (
    LONGEST_SOCKET_PATH,
    BoundToken,
    Home,
    Lock,
    TokenBook,
    home_folder,
    home_may_be_shared,
    lock_holder,
    token_digest,
)
from offbook.model.private_files import make_private


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


def test_deleting_the_lock_file_lets_nobody_in(home: Home) -> None:
    lock = Lock(home)
    assert lock_holder(home) == str(os.getpid())
    home.lock.unlink()
    with pytest.raises(StoreOwned, match="another Offbook"):
        Lock(home)
    assert lock_holder(home) == "unknown"
    lock.release()
    assert lock_holder(home) is None
    Lock(home).release()


def test_the_lock_file_of_an_earlier_version_is_respected(home: Home) -> None:
    with home.lock.open("w") as held:
        held.write("4711\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        assert lock_holder(home) == "4711"
        with pytest.raises(StoreOwned, match="4711"):
            Lock(home)
    Lock(home).release()


def test_where_folders_cannot_be_locked_the_file_is(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = fcntl.flock

    def files_only(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOTSUP, "no locks on folders")
        locked(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", files_only)
    lock = Lock(home)
    assert lock_holder(home) == str(os.getpid())
    with pytest.raises(StoreOwned):
        Lock(home)
    lock.release()
    assert lock_holder(home) is None


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_was_planted_for_the_lock_is_refused_and_not_written(home: Home, kind: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("of somebody else")
    home.lock.symlink_to(other) if kind == "link" else os.mkfifo(home.lock)
    with pytest.raises(SettingsError, match=r"offbook\.lock is .*remove it"):
        Lock(home)
    assert other.read_text() == "of somebody else"
    home.lock.unlink()
    Lock(home).release()  # nothing is held by the attempt


def test_a_token_is_not_read_through_a_link(home: Home, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("a token that somebody else knows\n")
    home.token.symlink_to(known)
    with pytest.raises(SettingsError, match="symbolic link"):
        home.owner_token()
    with pytest.raises(SettingsError, match="symbolic link"):
        TokenBook(home).callers()
    with pytest.raises(SettingsError, match="symbolic link"):
        default_token(Endpoint(scheme="http", host="127.0.0.1", port=8770), {"OFFBOOK_HOME": str(home.folder)})
    home.token.unlink()
    known.write_text("[]")
    home.bound_tokens.symlink_to(known)
    with pytest.raises(SettingsError, match="symbolic link"):
        home.read_bound_tokens()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777, 0o2775])
def test_a_folder_in_which_others_can_write_is_refused_unless_told(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(SettingsError, match=f"chmod go-w '{folder}'"):
        Home(folder).prepare()
    Home(folder, may_be_shared=home_may_be_shared({"OFFBOOK_SHARED_HOME": "1"})).prepare()
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    folder.chmod(mode & ~0o022)
    Home(folder, may_be_shared=home_may_be_shared({})).prepare()


def test_folders_are_made_for_their_owner_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Home(tmp_path / "new" / "newer" / "home").prepare()
        make_private(tmp_path / "other" / "index")
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}
    assert len(made) == 5


def test_a_revocation_is_on_the_disk_before_it_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[bool, list[str]]] = []
    really = os.fsync

    def noted(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), [path.name for path in home.folder.iterdir()]))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    home.write_bound_tokens([])
    assert [is_folder for is_folder, _ in synced] == [False, True]
    assert synced[-1][1] == ["tokens.json"]  # the folder after the file had its name


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


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b"{}", b"null"])
def test_a_list_of_tokens_that_cannot_be_read_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.write_bound_tokens([])
    home.bound_tokens.write_bytes(content)
    with pytest.raises(SettingsError, match="mend or remove it"):
        home.read_bound_tokens()
