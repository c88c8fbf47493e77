"""7, for a turn made ready: whatever breaks the contract is refused and changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.contrib.conformance.check import check, expect_no_faults
from offbook.contrib.conformance.checks.refused_fields import LONGEST_SESSION_ID, NOT_A_COUNT, NOT_A_STRING
from offbook.contrib.conformance.provider import Provider, named
from offbook.contrib.conformance.refusal import BadRequest, bad, refusal_faults, table_faults, unchanged

WRONG_IN_A_TURN: dict[str, tuple[Any, ...]] = {
    "sessionId": (*NOT_A_STRING, None, "", "k" * (LONGEST_SESSION_ID + 1)),
    "agentId": NOT_A_STRING,
    "prompt": (*NOT_A_STRING, None),
    "currentTokens": NOT_A_COUNT,
    "contextWindow": (*NOT_A_COUNT, 0),
}
NOT_UTF8 = {"a lone byte": b"\xff", "a cut sequence": b"\xe2\x82", "half a pair": b"\\ud83d"}


@check(7, "prepareTurn", "onMessage", "getCompressedContext")
async def a_wrong_turn_is_refused(provider: Provider) -> None:
    """A turn that lacks a field, or has one that is unknown, of the wrong type or beyond sense, is refused."""
    async with unchanged(provider) as scope:
        sound: dict[str, Any] = {**named(scope), "prompt": "TEXT", "currentTokens": 1_000, "contextWindow": 200_000}
        await provider.ask("prepareTurn", sound)
        table = [
            bad(f"{field} = {str(value)[:20]!r}", "prepareTurn", {**sound, field: value})
            for field, values in WRONG_IN_A_TURN.items()
            for value in values
        ]
        table += [
            bad(f"without {field}", "prepareTurn", {key: value for key, value in sound.items() if key != field}, field)
            for field in ("sessionId", "prompt")
        ]
        table.append(bad("an unknown field", "prepareTurn", {**sound, "surplusField": 1}, "surplusField"))
        body = msgspec.json.encode(sound)
        table += [
            BadRequest(f"{label} in the prompt", "prepareTurn", body.replace(b"TEXT", broken))
            for label, broken in NOT_UTF8.items()
        ]
        faults = await table_faults(provider, table)
        if provider.token is not None:
            answer = await provider.send("POST", "/v1/prepareTurn", body, authorization="Bearer wrong")
            faults += refusal_faults("prepareTurn, a wrong token", answer, statuses=(401, 403))
        expect_no_faults(faults)
