"""The page about what was tried says what the kept results say, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.machine import machine
from benchmarks.prove import campaign
from benchmarks.prove.campaign import Campaign, Tried
from docs.generate import what_was_tried

SOUND = Tried(
    size="12 kills",
    seed=3,
    figures={"lost": 0},
    wrong=[],
    matrix=[
        {"verb": "ping", "full": "200", "token": "401"},
        {"verb": "forget", "full": "507 store-full, retryable", "token": "401"},
    ],
    legend=["Mind this."],
)


def page(monkeypatch: pytest.MonkeyPatch, folder: Path, tried: Tried) -> str:
    monkeypatch.setattr(campaign, "FOLDER", folder)
    monkeypatch.setattr(what_was_tried, "kept", lambda name: campaign.kept(name, folder))
    campaign.keep(
        Campaign(name="kills", title="Kills", command="run it", took_seconds=5, machine=machine(folder), tried=tried)
    )
    return what_was_tried.what_was_tried_page()


def test_what_was_run_is_told_with_its_size_seed_and_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = page(monkeypatch, tmp_path, SOUND)
    assert "| [Kills](#kills) | 12 kills | nothing |" in told
    assert "12 kills, seed 3. `run it`" in told
    assert "| forget | 507 store-full, retryable |" in told
    assert "- token: 401, whatever the verb" in told
    assert "- Mind this." in told
    assert "mixed load" not in told.split("## Kills")[1], "what was never run is not told"


def test_what_was_found_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrong = Tried(size="1 kill", seed=None, figures={}, wrong=["a message\nis <lost>"])
    told = page(monkeypatch, tmp_path, wrong)
    assert "**1 not as they should be**" in told
    assert "- a message is &lt;lost>" in told


def test_every_campaign_has_a_place_on_the_page() -> None:
    from benchmarks.prove.__main__ import CAMPAIGNS

    assert CAMPAIGNS.keys() <= set(what_was_tried.CAMPAIGNS)
