"""One gateway a test process, one model and provider a test file. A file that wants another setup than level `recall`
overrides `setup`; the gateway is given it without a restart."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest

from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.installing import REPOSITORY, Host, installed
from tests.host.providers import OffbookProvider
from tests.host.rpc import Rpc
from tests.host.scripted_model import ScriptedModel

PLUGIN_DIR = REPOSITORY / "plugins" / "openclaw"
# For a turn's memory and for every other call, the most that can be set: what is shown must not hang on how busy the
# machine is. A test of the deadlines themselves leaves them as they are.
UNHURRIED = {"turnDeadlineMs": 10_000, "callDeadlineMs": 10_000}
# The first test of a run may install the host, the first of a file starts a gateway.
TEST_SECONDS = 1_500
# The files that take longest begin, so that both processes are done at about the same time.
LONGEST_FIRST = (
    "test_long_conversation",
    "test_import",  # reads all that its gateway was ever told: least, where it is the first
    "test_surfaces",
    "test_model_rules",
    "test_lifecycle",
    "test_restart",
    "test_provider_killed",
    "test_compaction",
    "test_large_turn",
    "test_plugin",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    order = {name: at for at, name in enumerate(LONGEST_FIRST)}

    def place(item: pytest.Item) -> int:
        return order.get(item.path.stem, len(order)) if here in item.path.parents else -1  # not ours: before, as it is

    items.sort(key=place)
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
def provider_environ() -> Mapping[str, str]:
    """Settings of the provider. Where nothing is searched, a file says `WITHOUT_MODEL`: to embed all that is said would
    take longer than the host takes for its turns."""
    return {}


@pytest.fixture(scope="module")
def provider(provider_environ: Mapping[str, str]) -> Iterator[OffbookProvider]:
    provider = OffbookProvider(provider_environ)
    try:
        provider.start()
        yield provider
    finally:
        provider.close()


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    return Setup(plugin_dir=PLUGIN_DIR, level="recall", plugin_config={"home": str(provider.home), **UNHURRIED})


@pytest.fixture(scope="session")
def shared_gateway(host: Host) -> Iterator[Gateway]:
    gateway = Gateway(host)
    try:
        yield gateway
    finally:
        gateway.close()


@pytest.fixture(scope="module")
def gateway(shared_gateway: Gateway, model: ScriptedModel, setup: Setup) -> Iterator[Gateway]:
    shared_gateway.clear()
    shared_gateway.use(model, setup)
    yield shared_gateway
    shared_gateway.retire()


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
