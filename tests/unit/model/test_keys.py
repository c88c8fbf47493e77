"""Keys of an encrypted data folder: what opens them, and what does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.model.errors import InvalidInput, KeyNeeded
from offbook.model.keys import (
    KEY_FILE,
    KEYS_FILE,
    KEYS_FOLDER,
    PASSPHRASE,
    PASSPHRASE_FILE,
    SEALED_INDEX,
    given_passphrase,
    is_encrypted,
    key_file_secret,
    keys_for,
    keys_of,
    new_keys,
    new_passphrase_secret,
    passphrase_secret,
    read_keys,
    shred,
    without_secrets,
    write_keys,
)
from tests.unit.encrypted_home import encrypted, forget_keys

RIGHT, OTHER = "correct horse battery", "another staple altogether"


@pytest.fixture(autouse=True)
def nothing_opened_yet() -> None:
    forget_keys()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real cost is half a second each."""
    monkeypatch.setattr("offbook.model.keys.SCRYPT_N", 2**12)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_passphrase_opens_it_and_no_other(tmp_path: Path) -> None:
    made = new_keys(tmp_path, new_passphrase_secret(RIGHT))
    forget_keys()
    before = contents(tmp_path)
    with pytest.raises(KeyNeeded, match="does not open"):
        keys_of(tmp_path, {PASSPHRASE: OTHER})
    with pytest.raises(KeyNeeded, match=PASSPHRASE):
        keys_of(tmp_path, {})
    assert contents(tmp_path) == before
    opened = keys_of(tmp_path, {PASSPHRASE: RIGHT})
    assert opened is not None
    assert opened.database_key == made.database_key
    assert RIGHT.encode() not in b"".join(before.values())
    assert (tmp_path / KEYS_FILE).stat().st_mode & 0o077 == 0


def test_the_real_cost_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    new_keys(tmp_path, new_passphrase_secret(RIGHT))
    document = read_keys(tmp_path)
    assert document is not None
    assert document.scrypt is not None
    assert (document.scrypt.n, document.scrypt.r, document.scrypt.p) == (131_072, 8, 1)


def test_the_passphrase_may_be_in_a_file_of_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "pass"
    path.write_text(RIGHT + "\n")
    path.chmod(0o644)
    with pytest.raises(KeyNeeded, match="others can read"):
        given_passphrase({PASSPHRASE_FILE: str(path)}, tmp_path / "home")
    path.chmod(0o600)
    assert given_passphrase({PASSPHRASE_FILE: str(path)}, tmp_path / "home") == RIGHT
    with pytest.raises(InvalidInput, match="keep it elsewhere"):
        given_passphrase({PASSPHRASE_FILE: str(path)}, tmp_path)


def test_a_link_from_elsewhere_into_the_folder_is_no_other_place(tmp_path: Path) -> None:
    home, link = tmp_path / "home", tmp_path / "key"
    home.mkdir()
    (home / "key").write_text("k" * 64)
    (home / "key").chmod(0o600)
    link.symlink_to(home / "key")
    with pytest.raises(InvalidInput, match="keep it elsewhere"):
        key_file_secret(link, home)


def test_nobody_waits_at_a_pipe_in_the_place_of_a_key_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(KeyNeeded, match="no file"):
        key_file_secret(tmp_path / "key", tmp_path / "home")


@pytest.mark.parametrize("named", [f"{KEYS_FOLDER}/{32 * 'a'}.key", SEALED_INDEX])
def test_a_folder_that_lost_its_keys_is_no_plain_one(tmp_path: Path, named: str) -> None:
    (tmp_path / named).parent.mkdir(exist_ok=True)
    (tmp_path / named).write_text("sealed")
    with pytest.raises(KeyNeeded, match="header of any backup"):
        keys_of(tmp_path, {})


def test_keys_of_something_else_do_not_make_a_folder_an_encrypted_one(tmp_path: Path) -> None:
    (tmp_path / KEYS_FOLDER).mkdir()
    (tmp_path / KEYS_FOLDER / "server.key").write_text("of TLS")
    assert keys_of(tmp_path, {}) is None


def test_one_letter_in_two_spellings_is_the_same_passphrase() -> None:
    assert passphrase_secret("café au lait noir") == passphrase_secret("cafe\u0301 au lait noir")


def test_a_short_passphrase_is_refused() -> None:
    with pytest.raises(InvalidInput, match="12 characters"):
        new_passphrase_secret("short")


def test_another_secret_takes_the_place_of_the_first(tmp_path: Path) -> None:
    keys = new_keys(tmp_path, new_passphrase_secret(RIGHT))
    write_keys(tmp_path, keys, new_passphrase_secret(OTHER))
    forget_keys()
    with pytest.raises(KeyNeeded):
        keys_of(tmp_path, {PASSPHRASE: RIGHT})
    opened = keys_of(tmp_path, {PASSPHRASE: OTHER})
    assert opened is not None
    assert opened.id == keys.id


def test_a_key_file_is_made_for_the_owner_and_kept_apart(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "elsewhere" / "key"
    home.mkdir()
    with pytest.raises(InvalidInput, match="keep it elsewhere"):
        key_file_secret(home / "key", home, may_make=True)
    secret = key_file_secret(path, home, may_make=True)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(secret.data) >= 32
    new_keys(home, secret)
    forget_keys()
    path.rename(tmp_path / "moved")
    with pytest.raises(KeyNeeded, match="cannot be read"):
        keys_of(home, {})
    assert keys_of(home, {KEY_FILE: str(tmp_path / "moved")}) is not None
    forget_keys()
    (tmp_path / "moved").chmod(0o640)
    with pytest.raises(KeyNeeded, match="chmod 600"):
        keys_of(home, {KEY_FILE: str(tmp_path / "moved")})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n": 2**30}, "more memory"),
        ({"n": 2**17, "r": 32, "p": 4}, "more memory"),
        ({"r": 0}, "more memory"),
        ({"n": 2**12 + 1}, "is damaged"),
        ({"salt": "no digits"}, "is damaged"),
    ],
)
def test_a_file_that_asks_for_what_none_of_ours_does_is_refused(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    new_keys(tmp_path, new_passphrase_secret(RIGHT))
    forget_keys()
    document = read_keys(tmp_path)
    assert document is not None
    assert document.scrypt is not None
    greedy = msgspec.structs.replace(document, scrypt=msgspec.structs.replace(document.scrypt, **change))
    (tmp_path / KEYS_FILE).write_bytes(msgspec.json.encode(greedy))
    with pytest.raises(KeyNeeded, match=told):
        keys_of(tmp_path, {PASSPHRASE: RIGHT})


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b'{"id": 1}', b"\xff"])
def test_a_damaged_file_is_told_as_one(tmp_path: Path, document: bytes) -> None:
    (tmp_path / KEYS_FILE).write_bytes(document)
    with pytest.raises(KeyNeeded, match="put it back"):
        keys_of(tmp_path, {PASSPHRASE: RIGHT})


def test_the_folder_of_a_file_says_which_keys_and_no_stranger_above(tmp_path: Path) -> None:
    outer, inner = encrypted(tmp_path / "outer"), encrypted(tmp_path / "outer" / ".restore-1")
    found = [
        keys_for(tmp_path / "outer" / name / "offbook.db") for name in ("", ".restore-1", ".restore-2", "before-x")
    ]
    assert [each.id for each in found if each is not None] == [outer.id, inner.id, outer.id, outer.id]
    assert keys_for(tmp_path / "outer" / "home" / "offbook.db") is None, "somebody else's folder, that ours lies in"
    assert keys_for(tmp_path / "offbook.db") is None
    assert not is_encrypted(tmp_path)


def test_an_agent_has_a_key_of_its_own_until_it_is_destroyed(tmp_path: Path) -> None:
    keys = encrypted(tmp_path / "home")
    assert keys.agent_key("main") is None
    one, other = keys.make_agent_key("main"), keys.make_agent_key("名前")
    assert one != other
    assert keys.make_agent_key("main") == one
    files = sorted((tmp_path / "home" / KEYS_FOLDER).iterdir())
    assert all(b"main" not in path.name.encode() and one not in path.read_bytes() for path in files)
    assert keys.destroy_agent_key("main")
    assert not keys.destroy_agent_key("main")
    assert keys.agent_key("main") is None
    assert keys.agent_key("名前") == other


def test_an_agents_key_cannot_be_taken_for_anothers(tmp_path: Path) -> None:
    keys = encrypted(tmp_path / "home")
    keys.make_agent_key("main")
    keys.make_agent_key("second")
    folder = tmp_path / "home" / KEYS_FOLDER
    (folder / f"{keys.room('main')}.key").replace(folder / f"{keys.room('second')}.key")
    with pytest.raises(KeyNeeded, match="another folder"):
        keys.agent_key("second")


def test_what_is_shredded_is_overwritten_and_a_link_leads_nowhere(tmp_path: Path) -> None:
    path, link, aim = (tmp_path / name for name in ("file", "link", "aim"))
    path.write_bytes(b"secret" * 1000)
    aim.write_text("not ours")
    link.symlink_to(aim)
    with path.open("rb") as still_open:
        assert shred(path)
        assert b"secret" not in still_open.read()
    assert not shred(link)
    assert not path.exists()
    assert not link.is_symlink()
    assert aim.read_text() == "not ours"


def test_a_file_with_another_name_is_unlinked_only(tmp_path: Path) -> None:
    path, twin = tmp_path / "file", tmp_path / "snapshot"
    path.write_bytes(b"secret" * 1000)
    os.link(path, twin)
    assert not shred(path)
    assert not path.exists()
    assert twin.read_bytes() == b"secret" * 1000


def test_children_are_not_given_the_secret() -> None:
    environ = {PASSPHRASE: "x", PASSPHRASE_FILE: "y", KEY_FILE: "z", "PATH": "/bin"}
    assert without_secrets(environ) == {"PATH": "/bin"}
