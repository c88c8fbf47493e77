from __future__ import annotations

import os
from pathlib import Path

import pytest

from offbook.client.history.files import json_lines, kind_of_file
from offbook.model.files import open_regular


def test_a_file_is_read_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"hello")
    (tmp_path / "link").symlink_to(tmp_path / "notes")
    with open_regular(tmp_path / "link") as source:
        assert source.read() == b"hello"


@pytest.mark.timeout(20)
def test_a_pipe_is_not_waited_for_and_a_device_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    for name in ("pipe.jsonl", "zero.jsonl"):
        with pytest.raises(OSError, match="no regular file"):
            open_regular(tmp_path / name)
        assert kind_of_file(tmp_path / name) is None
        (damage,) = json_lines(tmp_path / name, name)
        assert "no regular file" in str(damage)
