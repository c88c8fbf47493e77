"""One host, model and provider a test file. A file that wants another setup than level `recall` overrides `setup`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.installing import REPOSITORY, Host, installed
from tests.host.providers import OffbookProvider
from tests.host.rpc import Rpc
from tests.host.scripted_model import ScriptedModel

PLUGIN_DIR = REPOSITORY / "plugins" / "openclaw"
# The first test of a run may install the host, the first of a file starts a gateway.
TEST_SECONDS = 1_500


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.fixture(scope="session")
def host() -> Host:
    return installed()


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    model = ScriptedModel()
    yield model
    model.close()
    assert not model.errors, "a scripted reply failed"


@pytest.fixture(scope="module")
def provider() -> Iterator[OffbookProvider]:
    provider = OffbookProvider()
    try:
        provider.start()
        yield provider
    finally:
        provider.close()


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    return Setup(plugin_dir=PLUGIN_DIR, level="recall", plugin_config={"home": str(provider.home)})


@pytest.fixture(scope="module")
def gateway(host: Host, model: ScriptedModel, setup: Setup) -> Iterator[Gateway]:
    gateway = Gateway(model, setup, host=host)
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.close()


@pytest.fixture(scope="module")
def rpc(gateway: Gateway) -> Iterator[Rpc]:
    with Rpc(gateway) as rpc:
        yield rpc


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test comes with the end of the gateway's log."""
    report = yield
    gateway = getattr(item, "funcargs", {}).get("gateway")
    if report.failed and isinstance(gateway, Gateway):
        report.sections.append(("gateway log", gateway.log_tail(60)))
    return report
