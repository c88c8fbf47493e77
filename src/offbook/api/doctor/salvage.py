"""A damaged log: what can be read of it goes on, in a fresh file."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from offbook.api.doctor.finding import Finding
from offbook.log.sqlite.salvage import Salvaged
from offbook.log.sqlite.salvaged_chain import AgentLoss
from offbook.model.errors import OffbookError, SettingsError, StoreOwned
from offbook.model.home import Home, lock_holder
from offbook.model.settings import Settings, load
from offbook.transfer.backup import damage, salvage_folder

MOST_NAMED = 20
"""Stretches of lost messages that are told one by one; the audit event has all."""


async def mend_log(home: Home, environ: Mapping[str, str]) -> tuple[list[str], list[Finding]]:
    """What was done, and what keeps it from being done. A sound log is left alone."""
    if not await damage(home):
        return [], []
    try:
        salvaged, kept = await salvage_folder(home, _names(home, environ))
    except StoreOwned:
        what = f"the log is damaged, and is only mended while no provider runs (process {lock_holder(home)} does)"
        mend = (
            "stop the provider, then `offbook doctor --fix` saves what can be read; or `offbook restore` from a backup"
        )
        return [], [Finding(check="salvage", level="fail", what=what, mend=mend)]
    except OffbookError as error:
        return [], [
            Finding(check="salvage", level="fail", what=f"the log is damaged, and was left alone: {error.detail}")
        ]
    return told(salvaged, str(kept)), []


def told(salvaged: Salvaged, kept: str) -> list[str]:
    lost = sum(each.messages for each in salvaged.agents)
    events = sum(each.events for each in salvaged.agents)
    lines = [
        f"the log was damaged: {_counted(salvaged.messages, 'message')} saved into a fresh file, "
        f"{_counted(lost, 'message')} and {_counted(events, 'audit event')} lost",
        *(line for each in salvaged.agents for line in _losses(each)),
        f"the damaged file is in {kept}: keep it until you miss nothing",
    ]
    if salvaged.derived:
        lines.append(f"{_counted(salvaged.derived, 'row')} made from the log went with what is lost: it is made again")
    return lines


def _losses(agent: AgentLoss) -> list[str]:
    spans = agent.spans[:MOST_NAMED]
    lines = [
        f"lost of agent {agent.agent_id}, session {span.session_id}: "
        + (
            f"message {span.first_seq}"
            if span.first_seq == span.last_seq
            else f"messages {span.first_seq} to {span.last_seq}"
        )
        for span in spans
    ]
    if len(agent.spans) > len(spans):
        lines.append(
            f"and {len(agent.spans) - len(spans):,} more stretches of agent {agent.agent_id}: `offbook audit` has all"
        )
    return lines


def _names(home: Home, environ: Mapping[str, str]) -> list[str]:
    """That an agent here may have."""
    try:
        default = load(home.folder, environ=environ).settings.default_agent
    except SettingsError:
        default = Settings().default_agent
    pages = sorted(home.wiki.iterdir()) if home.wiki.is_dir() else []
    return list(dict.fromkeys([default, *(unquote(page.name) for page in pages if page.is_dir())]))


def _counted(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"
