from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.contrib.importers.openclaw_state import State


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "openclaw")
