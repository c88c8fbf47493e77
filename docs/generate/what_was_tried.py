"""The page that tells what was tried against the provider, from the campaigns' kept results."""

from __future__ import annotations

from benchmarks.prove.campaign import Campaign, kept
from benchmarks.results import Cell, shown
from docs.generate.shapes import table

CAMPAIGNS = ("kills", "requests", "files", "forgets", "faults", "isolation", "endurance")
"""In the order of the page; one that was never run is left out."""
INTRODUCTION = """
The provider is killed, fuzzed, damaged and attacked by programs, and what came of it is here: each campaign as it was
last run, with its size, its seed and its command. `make prove` runs them all at full size, for hours, and rewrites the
figures; `make test` runs a short form of each. Nothing here is larger than it was run.

What was found and mended is in the [changelog](../../CHANGELOG.md); what the last run found stands with its campaign
until that is run again. What is not promised at all is in
[security](security.md) and [isolation](isolation.md#what-is-not-kept-apart).
"""
NOTHING = "nothing"
NOTE = "<!-- Made by `make docs` from benchmarks/results/prove. Run the campaign again, do not change this page. -->"


def what_was_tried_page() -> str:
    campaigns = [campaign for name in CAMPAIGNS if (campaign := kept(name)) is not None]
    parts = [NOTE, "# What was tried", INTRODUCTION.strip(), _overview(campaigns)]
    for campaign in campaigns:
        parts += _told(campaign)
    return "\n\n".join(parts) + "\n"


def _overview(campaigns: list[Campaign]) -> str:
    return table(
        ["campaign", "how much", "found", "when"],
        [[f"[{one.title}](#{_anchor(one.title)})", one.tried.size, _found(one), one.machine.date] for one in campaigns],
    )


def _found(campaign: Campaign) -> str:
    count = len(campaign.tried.wrong)
    return NOTHING if not count else f"**{count} not as they should be**"


def _anchor(title: str) -> str:
    kept_characters = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return kept_characters.replace(" ", "-")


def _told(campaign: Campaign) -> list[str]:
    tried, where = campaign.tried, campaign.machine
    parts = [
        f"## {campaign.title}",
        f"{tried.size}" + (f", seed {tried.seed}" if tried.seed is not None else "") + f". `{campaign.command}`",
        table(["", ""], [[name, shown(value)] for name, value in tried.figures.items()]),
    ]
    if tried.wrong:
        parts += ["Not as it should be:", "\n".join(f"- {_cell(fault)[:500]}" for fault in tried.wrong[:20])]
    if tried.matrix:
        parts += _matrix(tried.matrix)
    if tried.legend:
        parts.append("\n".join(f"- {line}" for line in tried.legend))
    parts.append(
        f"<sub>{where.date}, {where.cores} cores ({where.processor}), {where.memory_gb:g} GB, {where.system}, "
        f"{where.file_system}, Python {where.python}, SQLite {where.sqlite}, Offbook {where.offbook}, "
        f"took {campaign.took_seconds:,.0f} s, load {where.load_before:g} before</sub>"
    )
    return parts


def _matrix(rows: list[dict[str, Cell]]) -> list[str]:
    """What is the same for every verb is told in a line."""
    first, *columns = rows[0]
    same = {name: shown(rows[0][name]) for name in columns if len({row[name] for row in rows}) == 1}
    left = [first, *(name for name in columns if name not in same)]
    lines = [f"- {name}: {_cell(value)}, whatever the {first}" for name, value in same.items()]
    return [
        table(left, [[_cell(shown(row[name])) for name in left] for row in rows]),
        *(["\n".join(lines)] if lines else []),
    ]


def _cell(text: str) -> str:
    """On one line, and nothing of it is markup."""
    return text.replace("\n", " ").replace("<", "&lt;")
