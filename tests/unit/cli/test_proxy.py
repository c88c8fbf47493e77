"""`proxy` as it refuses to start. What it does is tested beside its modules, and as a whole in tests/acceptance."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Run


@pytest.mark.parametrize("upstream", ["ftp://x", "unix:///run/api.sock", "api.openai.com/v1", "/run/api.sock"])
def test_an_api_is_reached_over_http_only(run: Run, upstream: str) -> None:
    result = run("proxy", "--upstream", upstream)
    assert result.exit_code == 2
    assert "Invalid value for '--upstream'" in result.stderr
    assert "begins with http:// or https://" in result.stderr
    assert "unix" not in result.stderr.replace(repr(upstream), "")


def test_beyond_loopback_it_wants_a_certificate(run: Run) -> None:
    result = run("proxy", "--upstream", "https://api.openai.com/v1", "--listen", "0.0.0.0:8771")
    assert result.exit_code == 2
    assert "--tls-cert and --tls-key" in result.stderr


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:", ":8771", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_a_slip_of_the_keyboard(run: Run, listen: str) -> None:
    result = run("proxy", "--upstream", "https://api.openai.com/v1", "--listen", listen)
    assert result.exit_code == 2
    assert "is no address to listen on" in result.stderr


def test_half_a_pair_is_a_slip_of_the_keyboard(run: Run) -> None:
    result = run("proxy", "--upstream", "https://api.openai.com/v1", "--tls-cert", "cert.pem")
    assert result.exit_code == 2
