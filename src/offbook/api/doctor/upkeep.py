"""What is done beside the answers: does maintenance work, and is there a copy of the memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.api.doctor.finding import Finding
from offbook.client.endpoint import Endpoint
from offbook.client.transport import Transport, value_of
from offbook.log import opening
from offbook.log.store import Store
from offbook.model.errors import ProviderError, SettingsError, StoreError
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.status import TaskHealth
from offbook.projections.indexes import folder_name
from offbook.projections.lanes import MOST_NAMED
from offbook.projections.wiki.projection import BROKEN
from offbook.transfer.backup.rotation import known_backups

ANSWER_SECONDS = 5.0
MESSAGES_WITHOUT_BACKUP = 1_000
"""More than that is worth a copy, and a word where there is none."""


class _Status(msgspec.Struct):
    maintenance: list[TaskHealth] = []
    agents: list[str] = []


async def check_maintenance(home: Home, settings: Settings) -> list[Finding]:
    """Of a provider that answers. An agent exists from the first question that names it, so only one that has an index
    is asked about; the answer names the others, which are asked what waits in theirs."""
    agent_id = await _agent_there(home, settings)
    if agent_id is None:
        return []
    endpoint = Endpoint(scheme="unix", path=str(home.socket))
    try:
        async with Transport(endpoint, token=None, timeout_seconds=ANSWER_SECONDS) as transport:
            status = await _status(transport, agent_id)
            others = [await _status(transport, each) for each in status.agents if each != agent_id]
    except ProviderError as error:
        what = f"the provider cannot tell of it: {error}"
        return [Finding(check="maintenance", level="warn", what=what, mend="see the provider's log")]
    return of_tasks(status.maintenance, [task for each in others for task in each.maintenance])


async def _agent_there(home: Home, settings: Settings) -> str | None:
    def is_there(agent_id: str) -> bool:
        return (home.indexes / folder_name(agent_id)).is_dir()

    if is_there(settings.default_agent) or not opening.is_there(home, settings.store):
        return settings.default_agent if is_there(settings.default_agent) else None
    try:
        store = opening.open_snapshot(home, settings.store)
    except (StoreError, SettingsError):
        return None  # the checks of the store tell of it
    try:
        return next(filter(is_there, await store.agents()), None)
    except StoreError:
        return None
    finally:
        await store.close()


async def _status(transport: Transport, agent_id: str) -> _Status:
    return value_of(await transport.post("/v1/status", msgspec.json.encode({"agentId": agent_id})), _Status)


def of_tasks(tasks: list[TaskHealth], of_others: Sequence[TaskHealth] = ()) -> list[Finding]:
    """What fails is told for all agents at once; what waits for a person, by those of each."""
    found = [
        Finding(
            check="maintenance",
            level="warn",
            what=f"{task.task} fails, {_counted(task.failures, 'time')} in a row: {task.error}",
            mend=f"mend what it names; it is tried again by itself, at once with `offbook maintain --task {task.task}`",
        )
        for task in tasks
        if task.error is not None
    ]
    broken = sum(task.did.get(BROKEN, 0) for task in (*tasks, *of_others))
    if broken:
        mend = "mend or remove them; the provider's log names every one (wiki.broken)"
        named = [each for task in (*tasks, *of_others) for each in task.waits][:MOST_NAMED]
        what = "; ".join([f"{_counted(broken, 'page')} of lessons in the wiki not understood", *named])
        found.append(Finding(check="maintenance", level="warn", what=what, mend=mend))
    return found or [Finding(check="maintenance", level="ok", what=f"{_counted(len(tasks), 'task')}, none failing")]


async def check_backups(store: Store, home: Home) -> Finding:
    if store.kind != "sqlite":
        return Finding(check="backups", level="ok", what="those of the database are made with its own tools")
    known = known_backups(home)
    if known:
        newest = known[-1]
        where = newest.path if newest.is_there else f"{newest.path}, which cannot be seen now"
        return Finding(
            check="backups", level="ok", what=f"the newest is of {newest.made_at:%Y-%m-%d %H:%M} UTC: {where}"
        )
    messages = sum([(await store.counts(agent_id)).messages for agent_id in await store.agents()])
    if messages <= MESSAGES_WITHOUT_BACKUP:
        return Finding(check="backups", level="ok", what="none known, of little")
    what = f"none is known, of {messages:,} messages: if this disk is lost, so are they"
    mend = "`offbook backup /another/disk/` makes one; the setting backup.everyHours makes them by itself"
    return Finding(check="backups", level="warn", what=what, mend=mend)


def _counted(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"
