from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from offbook.model.errors import InvalidInput, SettingsError
from offbook.model.tls import check_pair, make_pair, write_pair


def names_of(certificate: bytes) -> set[str]:
    extension = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    return {str(name.value) for name in extension.value}


def shake_hands(certificate: Path, key: Path, name: str) -> None:
    """A client that trusts the certificate, in the strictest way, with a server that has its key."""
    of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    of_server.load_cert_chain(certificate, key)
    of_client = ssl.create_default_context(cafile=str(certificate))
    of_client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = of_client.wrap_bio(to_client, to_server, server_hostname=name)
    server = of_server.wrap_bio(to_server, to_client, server_side=True)
    left = [client, server]
    while left:
        for side in list(left):
            try:
                side.do_handshake()
                left.remove(side)
            except ssl.SSLWantReadError:
                continue


def test_it_is_for_loopback_and_the_hosts_named() -> None:
    certificate, _ = make_pair(["memory.local", "192.168.1.20", "localhost", "fd00::1"])
    assert names_of(certificate) == {"localhost", "127.0.0.1", "::1", "memory.local", "192.168.1.20", "fd00::1"}


def test_it_holds_for_825_days() -> None:
    at = datetime(2026, 1, 31, tzinfo=UTC)
    certificate = x509.load_pem_x509_certificate(make_pair(at=at)[0])
    assert certificate.not_valid_after_utc == at + timedelta(days=825)
    assert certificate.not_valid_before_utc <= at


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "memory.local"])
def test_a_client_that_trusts_it_accepts_it(name: str, tmp_path: Path) -> None:
    shake_hands(*write_pair(tmp_path, ["memory.local"]), name)


def test_a_client_refuses_it_for_another_name(tmp_path: Path) -> None:
    pair = write_pair(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(*pair, "memory.local")


def test_the_key_is_the_owners_alone(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path / "made")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    check_pair(certificate, key)


def test_nothing_is_replaced_unless_told(tmp_path: Path) -> None:
    _, key = write_pair(tmp_path)
    before = key.read_bytes()
    with pytest.raises(InvalidInput, match="--force"):
        write_pair(tmp_path)
    assert key.read_bytes() == before
    write_pair(tmp_path, force=True)
    assert key.read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cert.pem", "key.pem"]


@pytest.mark.parametrize("host", ["", "a" * 64 + ".é", "\u2603" * 80, "http://memory", "two words"])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match="no host name"):
        make_pair([host])


def test_files_that_are_no_pair_are_refused(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path / "one")
    other, _ = write_pair(tmp_path / "other")
    with pytest.raises(SettingsError, match="no certificate and its key"):
        check_pair(other, key)
    with pytest.raises(SettingsError, match="offbook tls-cert"):
        check_pair(certificate, tmp_path / "missing.pem")
    (tmp_path / "empty.pem").write_bytes(b"")
    with pytest.raises(SettingsError):
        check_pair(tmp_path / "empty.pem", key)
