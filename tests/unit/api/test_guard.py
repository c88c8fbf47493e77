from __future__ import annotations

import pytest

from offbook.api.guard import LOCAL_OWNER, check_agent, identify
from offbook.model.errors import Forbidden, Unauthorized
from offbook.model.home import token_digest
from offbook.model.origins import LOOPBACK_NAMES, check_host, check_origin, is_loopback
from offbook.model.types import Caller

ADA = Caller(name="token:ada", agents=frozenset({"ada"}))
KNOWN = {token_digest("secret"): ADA}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1", "[::1]"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "example.org", "::", "", "127.0.0.1.example.org"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_the_socket_needs_no_token() -> None:
    assert identify(None, dict, is_socket=True) == LOCAL_OWNER


def test_a_token_on_the_socket_is_checked_all_the_same() -> None:
    assert identify("Bearer secret", lambda: KNOWN, is_socket=True) == ADA
    with pytest.raises(Unauthorized):
        identify("Bearer wrong", lambda: KNOWN, is_socket=True)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic secret", "secret", "Bearer secret2"])
def test_over_tcp_only_a_known_token_will_do(header: str | None) -> None:
    with pytest.raises(Unauthorized):
        identify(header, lambda: KNOWN, is_socket=False)


def test_the_scheme_is_not_case_sensitive() -> None:
    assert identify("bearer secret", lambda: KNOWN, is_socket=False) == ADA


@pytest.mark.parametrize("host", ["localhost", "localhost:8770", "127.0.0.1:1", "[::1]:8770", "LOCALHOST"])
def test_our_own_names(host: str) -> None:
    check_host(host, LOOPBACK_NAMES)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io:8770",
        "[::1",
        "a@localhost",
        "localhost/x",
        "localhost:1:2",
    ],
)
def test_foreign_names_are_refused(host: str | None) -> None:
    with pytest.raises(Forbidden):
        check_host(host, LOOPBACK_NAMES)


def test_a_remote_provider_answers_to_any_name() -> None:
    check_host("memory.example.org", None)


@pytest.mark.parametrize("origin", [None, "http://localhost:3000", "http://127.0.0.1", "https://[::1]:8770"])
def test_pages_of_this_machine(origin: str | None) -> None:
    check_origin(origin, LOOPBACK_NAMES)


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "file://", "http://localhost.evil.example", "http://[", ""]
)
def test_foreign_pages_are_refused(origin: str) -> None:
    with pytest.raises(Forbidden):
        check_origin(origin, LOOPBACK_NAMES)


def test_a_bound_token_is_for_its_agents_only() -> None:
    check_agent(ADA, "ada")
    with pytest.raises(Forbidden, match="bob"):
        check_agent(ADA, "bob")
    check_agent(LOCAL_OWNER, "anybody")
