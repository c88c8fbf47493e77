"""Names of agents as names of files."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from offbook.model.home import LONGEST_NAME, encoded_name, safe_name

DEVICES = ["CON", "con", "nul.txt", "AUX", "prn", "com1", "COM1.md", "lpt9.tar.gz", "index.md"]
NAMES = st.one_of(
    st.text(min_size=1, max_size=60),
    st.sampled_from([*DEVICES, "..", "a.", "a..", "a ", " a", "%63on", "%2E", "a%2E", "../x", "C:\\x"]),
)


@given(st.lists(NAMES, unique=True, min_size=2, max_size=8))
@example(["con", "%63on", "CON", "a.", "a%2E", "a%2e", "A."])
def test_every_name_is_safe_everywhere_and_of_one_agent_only(agents: list[str]) -> None:
    names = [safe_name(agent) for agent in agents]
    assert len({name.casefold() for name in names}) == len(agents)
    for name in names:
        assert re.fullmatch(r"[a-z0-9_%A-F~-][a-z0-9_.%A-F~-]*", name)
        assert not name.endswith((".", " "))
        assert len(name) <= LONGEST_NAME + 4
        assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name)


def test_devices_of_windows_and_our_own_files_are_spelled_otherwise() -> None:
    assert [safe_name(name) for name in ("con", "nul.txt", "index.md", "console", "com10", "a.")] == [
        "%63on",
        "%6Eul.txt",
        "%69ndex.md",
        "console",
        "com10",
        "a%2E",
    ]


@given(st.text(min_size=1, max_size=60).filter(lambda name: not name.endswith(".")))
def test_other_names_are_as_they_were(name: str) -> None:
    if safe_name(name) != encoded_name(name):
        assert re.match(r"(?i)con|prn|aux|nul|com\d|lpt\d|clock|index", name)
