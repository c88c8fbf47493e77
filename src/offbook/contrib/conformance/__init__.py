"""The contract as a suite that can be pointed at any provider.

    report = await run(Endpoint.parse("http://127.0.0.1:8770"), token)

It speaks nothing but the contract (`POST /v1/<verb>`), under agent and session names of its own that no
host has: what a provider in use holds is neither read nor changed. But what the suite itself wrote stays there, under
agents named `conformance-…`, for no verb removes an agent: use a provider that is there to be tested.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from types import ModuleType

import msgspec

from offbook.client.endpoint import Endpoint
from offbook.client.transport import content_of
from offbook.contrib.conformance.check import Check, NotApplicable, Outcome, Report, Result, Unmet
from offbook.contrib.conformance.checks import (
    context,
    every_verb,
    expand,
    forget,
    overview,
    recall,
    record,
    refused_fields,
    refused_requests,
    turn,
)
from offbook.contrib.conformance.provider import NotOffered, Provider
from offbook.model.errors import Forbidden, OffbookError, ProviderRefused

__all__ = ["CHECKS", "PROMISES", "Report", "Result", "run"]

PROMISES = {
    0: "Every verb answers in the contract's shape.",
    1: "What `onMessage` acknowledged is never lost, never doubled, and recallable at once.",
    2: "A context covers every message exactly once, in order, within `maxChars`, with its tool calls whole.",
    3: "No verb but background work calls a model. (Cannot be seen from outside; there is no check.)",
    4: "Nothing of one agent reaches another.",
    5: "Between two swaps the memory section does not change by a byte.",
    6: "Every verb that reads or writes leaves one audit event; the chain verifies.",
    7: "Bad input gets a problem document and changes nothing.",
}
OPTIONAL_VERBS = frozenset({"recall", "prepareTurn", "swap", "expand", "pin", "unpin", "unlink", "forget"})
OPTIONAL_VERBS |= {"sessions", "activity", "entries"}
LONGEST_CHECK_SECONDS = 300.0


def _checks_of(*modules: ModuleType) -> tuple[Check, ...]:
    """By promise, as they are reported."""
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Check))
    return tuple(sorted(found, key=lambda check: check.promise))


CHECKS = _checks_of(
    every_verb, record, recall, expand, context, turn, forget, refused_fields, refused_requests, overview
)


async def run(
    endpoint: Endpoint,
    token: str | None = None,
    *,
    checks: Iterable[Check] = CHECKS,
    on_result: Callable[[Result], None] = lambda result: None,
) -> Report:
    """Points the checks at a provider. Raises where none answers, or not to this token, or not for every agent."""
    provider = Provider(endpoint, token)
    started = time.perf_counter()
    results = []
    try:
        hello = await provider.get("/v1/ping")
        if hello.status in (401, 403):
            content_of(hello)  # raises: with this token every check would say the same
        await _check_reach(provider)
        for check in checks:
            results.append(await _run(check, provider))
            on_result(results[-1])
    finally:
        provider.close()
    return Report(
        endpoint=str(endpoint),
        agent_id=provider.agent_id,
        results=results,
        seconds=round(time.perf_counter() - started, 3),
    )


async def _check_reach(provider: Provider) -> None:
    """Raises Forbidden for a token that is bound to some agents: what it is refused says nothing about the provider."""
    try:
        await provider.ask("status", {"agentId": provider.agent_id})
    except ProviderRefused as refused:
        if refused.document.get("status") == Forbidden.status:
            raise Forbidden(
                f"{provider.endpoint} takes this token for some agents only, and the suite asks for agents of its own: "
                "name a token that is for all with --token; Offbook's is the owner's (`offbook token show --reveal`)"
            ) from None
    except (NotOffered, OffbookError):
        pass  # the checks tell


async def _run(check: Check, provider: Provider) -> Result:
    started = time.perf_counter()
    outcome, detail = await _outcome(check, provider)
    return Result(
        check=check.id,
        promise=check.promise,
        holds=check.holds,
        outcome=outcome,
        detail=detail,
        seconds=round(time.perf_counter() - started, 3),
    )


async def _outcome(check: Check, provider: Provider) -> tuple[Outcome, str]:
    try:
        async with asyncio.timeout(LONGEST_CHECK_SECONDS):
            await check.examine(provider)
    except Unmet as unmet:
        return "failed", str(unmet)
    except NotOffered as missing:
        is_required = missing.verb in check.verbs and missing.verb not in OPTIONAL_VERBS
        return ("failed" if is_required else "not offered"), f"{missing.verb} is not offered"
    except NotApplicable as reason:
        return "not offered", str(reason)
    except TimeoutError:
        return "failed", f"expected an end within {LONGEST_CHECK_SECONDS:g} s, came none"
    # Whatever an unknown provider answers, the other checks still run.
    except (OffbookError, msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        return "failed", f"expected an answer of the contract, came {type(error).__name__}: {error}"
    return "passed", ""
