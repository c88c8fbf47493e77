"""7, for the verbs of recall: whatever breaks the contract is refused and changes nothing."""

from __future__ import annotations

from typing import Any

from offbook.contrib.conformance.check import check, expect, expect_no_faults
from offbook.contrib.conformance.checks.refused_fields import NOT_A_COUNT, NOT_A_STRING
from offbook.contrib.conformance.provider import Provider, named
from offbook.contrib.conformance.refusal import bad, said, table_faults, unchanged, unique_word

NOT_A_BOOLEAN: tuple[Any, ...] = ("true", 1, [], {})
WRONG_IN_A_RECALL: dict[str, tuple[Any, ...]] = {
    "sessionId": (*NOT_A_STRING, None, ""),
    "agentId": NOT_A_STRING,
    "query": (*NOT_A_STRING, None, ""),
    "limit": (*NOT_A_COUNT, 0),
    "scope": (*NOT_A_STRING, "everything", "Agent", ""),
    "at": (True, {}, [], "yesterday", "2024-13-01T00:00:00Z", ""),
    "includeSuperseded": NOT_A_BOOLEAN,
    "explain": NOT_A_BOOLEAN,
}
WRONG_IN_A_PIN: dict[str, tuple[Any, ...]] = {
    "agentId": NOT_A_STRING,
    "keyword": NOT_A_STRING,
    "sessionId": NOT_A_STRING,
    "entryIds": ("x", 1, True, {}, [1], [None], [["x"]]),
}


@check(7, "recall", "onMessage")
async def a_wrong_recall_is_refused(provider: Provider) -> None:
    """A `recall` without a query, with an empty one, with a field of the wrong type or an unknown one is refused."""
    async with unchanged(provider) as scope:
        sound = {**named(scope), "query": "First"}
        await provider.ask("recall", sound)
        table = [
            bad(f"{field} = {value!r}", "recall", {**sound, field: value})
            for field, values in WRONG_IN_A_RECALL.items()
            for value in values
        ]
        table += [
            bad(f"without {field}", "recall", {key: value for key, value in sound.items() if key != field}, field)
            for field in ("sessionId", "query")
        ]
        table.append(bad("an unknown field", "recall", {**sound, "surplusField": 1}, "surplusField"))
        expect_no_faults(await table_faults(provider, table))


@check(7, "unlink", "onMessage")
async def a_wrong_unlink_is_refused(provider: Provider) -> None:
    """An `unlink` without an entry, with a field of the wrong type or an unknown one is refused."""
    async with unchanged(provider) as scope:
        agent = {"agentId": scope.agent_id}
        table = [bad(f"entryId = {value!r}", "unlink", {**agent, "entryId": value}) for value in (*NOT_A_STRING, None)]
        table += [
            bad(f"byId = {value!r}", "unlink", {**agent, "entryId": "m1", "byId": value}) for value in NOT_A_STRING
        ]
        table.append(bad("without entryId", "unlink", agent, "entryId"))
        table.append(bad("an unknown field", "unlink", {**agent, "entryId": "m1", "surplusField": 1}, "surplusField"))
        expect_no_faults(await table_faults(provider, table))


@check(7, "pin", "unpin", "recall", "onMessage")
async def a_wrong_pin_is_refused(provider: Provider) -> None:
    """A `pin` or `unpin` with a field of the wrong type or an unknown one is refused, and pins and unpins nothing."""
    async with unchanged(provider) as scope:
        agent = {"agentId": scope.agent_id}
        word = unique_word()
        other = provider.new_session(scope.agent_id)
        await provider.record_one(other, said(f"The spare key is with {word}."))
        table = [
            bad(f"{field} = {value!r}", verb, {**agent, "keyword": word, field: value})
            for verb in ("pin", "unpin")
            for field, values in WRONG_IN_A_PIN.items()
            for value in values
        ]
        table += [
            bad("an unknown field", verb, {**agent, "keyword": word, "surplusField": 1}, "surplusField")
            for verb in ("pin", "unpin")
        ]
        for is_pinned in (False, True):
            if is_pinned:
                await provider.ask("pin", {**agent, "keyword": word})
            expect_no_faults(await table_faults(provider, table))
            (entry,) = await provider.recall(other, word, scope="session")
            expect("pinned after all refusals", is_pinned, entry.pinned)
