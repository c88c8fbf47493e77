"""A `summaries/` folder as the hierarchical memory plugin writes it, made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NIGHT_MS = 1_778_457_600_000


def entry(level: str, number: int, sources: list[str], **fields: Any) -> dict[str, Any]:
    """In the order of the plugin's own code."""
    written: dict[str, Any] = {
        "id": f"{number:04}",
        "level": level,
        "createdAt": NIGHT_MS + number * 60_000 + (level == "L2") * 3_600_000,
        "tokenEstimate": 11,
        "sourceLevel": f"L{int(level[1]) - 1}",
        "sourceIds": sources,
    }
    if level == "L1":
        written["sourceSessionId"] = "5f0c6a7e-session"
    return {**written, "mergedInto": None, **fields}


def page(of: dict[str, Any], text: str) -> str:
    lines = [f"  {name}: {of[name]}" for name in ("id", "level", "createdAt", "tokenEstimate", "sourceLevel")]
    lines.append(f"  sourceIds: {json.dumps(of['sourceIds'], separators=(',', ':'))}")
    if "sourceSessionId" in of:
        lines.append(f"  sourceSessionId: {of['sourceSessionId']}")
    return "\n".join(["<!--", *lines, "-->"]) + f"\n\n{text}"


def index_of(*entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "agentId": "main",
        "lastSummarizedEntryId": "e4",
        "lastSummarizedSessionId": "5f0c6a7e-session",
        "levels": {level: [each for each in entries if each["level"] == level] for level in ("L1", "L2", "L3")},
        "worker": {"lastRunAt": 1778461200123, "lastRunDurationMs": None, "lastError": None},
    }


def summaries(folder: Path, *told: tuple[dict[str, Any], str]) -> Path:
    for of, text in told:
        file = folder / of["level"] / f"{of['id']}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page(of, text))
    (folder / "index.json").write_text(json.dumps(index_of(*(of for of, _ in told)), indent=2, ensure_ascii=False))
    return folder


FIRST = (entry("L1", 1, ["e1", "e2"], mergedInto="0001"), "I helped with the sourdough: 72 hours, 冷藏 🥖.")
SECOND = (
    entry("L1", 2, ["e3", "e4"], mergedInto="0001"),
    "Then the oven broke.\n\n- 230 °C is the most it does now.\n",
)
MERGED = (entry("L2", 1, ["0001", "0002"]), "We baked.")
