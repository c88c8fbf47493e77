from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from benchmarks import planted
from benchmarks.planted import AT_ONCE, AT_ONCE_FACTS, BATCH, ONE_BY_ONE, SESSIONS, facts_by_place, facts_in, history

FACT, OTHER = "0123456789abcdef01", "fedcba987654321000"


@pytest.mark.parametrize("before", range(20))
def test_a_fact_is_found_wherever_it_lies_in_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(planted, "READ_BYTES", 16)
    path = tmp_path / "file"
    path.write_bytes(b"." * before + FACT.encode() + b"..")
    assert facts_in(path, [FACT, OTHER]) == {FACT}


def test_a_fact_is_found_within_other_digits_and_only_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"aaa" + FACT.encode() + b"fff " + OTHER.encode()[:-1])
    assert facts_in(path, [FACT, OTHER]) == {FACT}


def test_packed_files_are_unpacked_and_places_are_named(tmp_path: Path) -> None:
    (tmp_path / "backups" / "old").mkdir(parents=True)
    (tmp_path / "backups" / "old" / "one.tar.gz").write_bytes(gzip.compress(FACT.encode()))
    (tmp_path / "offbook.db").write_bytes(b"\x00" + OTHER.encode())
    (tmp_path / "clean").write_bytes(b"nothing")
    assert facts_by_place(tmp_path, [FACT, OTHER]) == {"backups": {FACT}, "offbook.db": {OTHER}}


def test_every_fact_is_told_once_and_the_history_is_whole() -> None:
    facts = [f"{number:018x}" for number in range(AT_ONCE_FACTS + 2)]
    batches = list(history(4 * BATCH, facts))
    messages = [message for _, batch in batches for message in batch]
    assert len({message["id"] for message in messages}) == 4 * BATCH
    assert all(0 <= session < SESSIONS for session, _ in batches)
    text = "\n".join(message["content"] for message in messages)
    assert [text.count(fact) for fact in facts] == [1] * len(facts)
    assert (text.count(AT_ONCE), text.count(ONE_BY_ONE)) == (AT_ONCE_FACTS, 2)
