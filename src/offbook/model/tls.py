"""Certificates: a self-signed one for development, and a look at those a provider is given."""

from __future__ import annotations

import os
import secrets
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from offbook.model.errors import InvalidInput, SettingsError
from offbook.model.plain_names import is_plain_name

VALID_DAYS = 825
"""The longest that common clients accept from a certificate somebody made themselves."""
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
CERTIFICATE_FILE = "cert.pem"
KEY_FILE = "key.pem"


def make_pair(hosts: Sequence[str] = (), *, at: datetime | None = None) -> tuple[bytes, bytes]:
    """A self-signed certificate for these hosts and loopback, and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    began = at or datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Offbook development")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began - timedelta(minutes=5))  # a clock that is a little behind
        .not_valid_after(began + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in _unique(hosts)]), critical=False)
        # No authority of its own: some clients (rustls) refuse one that also serves.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_pair(folder: Path, hosts: Sequence[str] = (), *, force: bool = False) -> tuple[Path, Path]:
    """Write both files, the key readable by its owner only. Without `force`, nothing that exists is replaced."""
    certificate_path, key_path = folder / CERTIFICATE_FILE, folder / KEY_FILE
    for path in (certificate_path, key_path):
        if path.exists() and not force:
            raise InvalidInput(f"{path} exists already: choose another folder with --out, or replace it with --force")
    certificate, key = make_pair(hosts)
    folder.mkdir(parents=True, exist_ok=True)
    _replace(key_path, key, 0o600)
    _replace(certificate_path, certificate, 0o644)
    return certificate_path, key_path


def check_pair(certificate: Path, key: Path) -> None:
    """Refuse files that TLS could not be served with."""
    for path in (certificate, key):
        try:
            path.read_bytes()
        except OSError as error:
            raise SettingsError(
                f"{path} cannot be read ({error.strerror}): for development, make one with `offbook tls-cert`"
            ) from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise SettingsError(
            f"{certificate} and {key} are no certificate and its key ({error}): give both in PEM, "
            "the key without a password"
        ) from None


def _unique(hosts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*LOOPBACK_HOSTS, *hosts)))


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode()
    except UnicodeError as error:
        raise InvalidInput(f"--host {host!r} is no host name ({error})") from None
    first, *others = name.split(".")
    is_one = is_plain_name(first, also="*_-", first="*_-", most_chars=len(name))
    if not is_one or not all(is_plain_name(part, first="_-", most_chars=len(name)) for part in others):
        raise InvalidInput(f"--host {host!r} is no host name: letters, digits, hyphens and dots, or an address")
    return x509.DNSName(name)


def _replace(path: Path, content: bytes, mode: int) -> None:
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    unfinished.replace(path)
