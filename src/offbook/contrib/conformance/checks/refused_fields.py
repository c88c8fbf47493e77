"""7, for what stands in the fields: whatever breaks the contract is refused and changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.contrib.conformance.check import (
    BadRequest,
    bad,
    check,
    expect,
    expect_no_faults,
    expect_that,
    refusal_faults,
    said,
    table_faults,
    unchanged,
    unique_word,
    wrong_fields,
)
from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider, named
from offbook.model.types import Scope

REQUIRED_VERBS = (
    "onMessage",
    "getCompressedContext",
    "hooks/pre-compaction",
    "hooks/post-compaction",
    "hooks/session-start",
    "hooks/session-end",
    "status",
    "audit",
)
LONGEST_SESSION_ID = 512

NOT_A_STRING: tuple[Any, ...] = (1, True, [], {}, ["x"])
NOT_A_LIST: tuple[Any, ...] = ("x", 1, True, {})
NOT_A_COUNT: tuple[Any, ...] = ("100", 1.5, True, [], {}, -1)
WRONG_IN_A_REQUEST: dict[str, dict[str, tuple[Any, ...]]] = {
    "onMessage": {"sessionId": (*NOT_A_STRING, None), "agentId": NOT_A_STRING, "message": ("x", 1, [], ["x"])},
    "getCompressedContext": {"sessionId": (*NOT_A_STRING, None), "maxChars": (*NOT_A_COUNT, None)},
    "hooks/pre-compaction": {"sessionId": NOT_A_STRING, "messages": (*NOT_A_LIST, [1], ["x"], [[]], [{}])},
    "hooks/post-compaction": {"sessionId": NOT_A_STRING, "agentId": NOT_A_STRING, "newContext": (5, 1.5, True)},
    "hooks/session-start": {"sessionId": NOT_A_STRING, "maxChars": NOT_A_COUNT},
    "hooks/session-end": {"sessionId": NOT_A_STRING, "reason": NOT_A_STRING},
    "status": {"agentId": NOT_A_STRING},
    "audit": {"agentId": NOT_A_STRING, "sessionId": NOT_A_STRING, "limit": NOT_A_COUNT, "since": ({}, [], True)},
}
WRONG_IN_A_MESSAGE: dict[str, tuple[Any, ...]] = {
    "role": (*NOT_A_STRING, None, "robot", "User", ""),
    "content": (1, True, None, {}, {"type": "text", "text": "x"}, [1], ["x"], [None], [[{"type": "text"}]]),
    "id": NOT_A_STRING,
    "ts": (1, True, {}, "yesterday", "2024-13-01T00:00:00Z"),
    "name": NOT_A_STRING,
    "toolCallId": NOT_A_STRING,
    "model": NOT_A_STRING,
    "origin": NOT_A_STRING,
    "meta": ("x", 1, True, [], [1]),
}


def _sound(verb: str, scope: Scope) -> dict[str, Any]:
    """A request that would be taken."""
    if verb in ("status", "audit"):
        return {"agentId": scope.agent_id}
    extra: dict[str, Any] = {}
    if verb == "onMessage":
        extra = {"message": said("x")}
    elif verb == "getCompressedContext":
        extra = {"maxChars": 1_000}
    return {**named(scope), **extra}


@check(7, *REQUIRED_VERBS)
async def a_wrong_type_is_refused(provider: Provider) -> None:
    """A field of the wrong type, in any verb, is refused with a problem document."""
    async with unchanged(provider) as scope:
        table = [
            bad(f"{field} = {value!r}", verb, {**_sound(verb, scope), field: value})
            for verb, fields in WRONG_IN_A_REQUEST.items()
            for field, values in fields.items()
            for value in values
        ]
        expect_no_faults(await table_faults(provider, table))


@check(7, "onMessage")
async def a_wrong_message_is_refused(provider: Provider) -> None:
    """A message with a field of the wrong type, an unknown role or no real time is refused, alone or in a batch."""
    async with unchanged(provider) as scope:
        table: list[BadRequest] = []
        for field, values in WRONG_IN_A_MESSAGE.items():
            for value in values:
                message = {**said("x"), field: value}
                table.append(bad(f"message.{field} = {value!r}", "onMessage", {**named(scope), "message": message}))
            batch = [said("good"), {**said("x"), field: values[0]}, said("good")]
            table.append(bad(f"a batch with one bad {field}", "onMessage", {**named(scope), "messages": batch}))
        expect_no_faults(await table_faults(provider, table))


@check(7, *REQUIRED_VERBS)
async def a_missing_field_is_refused(provider: Provider) -> None:
    """A request without a field that is required is refused, and the problem names the field."""
    required = {verb: ["sessionId"] for verb in REQUIRED_VERBS if verb not in ("status", "audit")}
    required["getCompressedContext"].append("maxChars")
    async with unchanged(provider) as scope:
        table = []
        for verb, fields in required.items():
            for field in fields:
                without = {key: value for key, value in _sound(verb, scope).items() if key != field}
                table.append(bad(f"without {field}", verb, without, names=field))
        for field in ("role", "content"):
            message = {key: value for key, value in said("x").items() if key != field}
            table.append(bad(f"a message without {field}", "onMessage", {**named(scope), "message": message}, field))
        expect_no_faults(await table_faults(provider, table))


@check(7, *REQUIRED_VERBS)
async def an_unknown_field_is_refused_by_name(provider: Provider) -> None:
    """A field that the contract does not have is refused, and the problem names it."""
    async with unchanged(provider) as scope:
        table = [
            bad("an unknown field", verb, {**_sound(verb, scope), "surplusField": 1}, names="surplusField")
            for verb in REQUIRED_VERBS
        ]
        message = {**said("x"), "surplusField": 1}
        table.append(bad("in a message", "onMessage", {**named(scope), "message": message}, "surplusField"))
        table.append(bad("snake_case", "onMessage", {"session_id": "x", "message": said("x")}, "session_id"))
        expect_no_faults(await table_faults(provider, table))


@check(7, "onMessage")
async def message_or_messages_but_one_of_them(provider: Provider) -> None:
    """`onMessage` with both `message` and `messages`, with neither, or with an empty list is refused."""
    async with unchanged(provider) as scope:
        one = said("x")
        table = [
            bad("both", "onMessage", {**named(scope), "message": one, "messages": [one]}),
            bad("neither", "onMessage", named(scope)),
            bad("an empty list", "onMessage", {**named(scope), "messages": []}),
            bad("a list as message", "onMessage", {**named(scope), "message": [one]}),
            bad("a message as messages", "onMessage", {**named(scope), "messages": one}),
        ]
        expect_no_faults(await table_faults(provider, table))


@check(7, "onMessage", "getCompressedContext")
async def session_keys_have_a_length(provider: Provider) -> None:
    """A session key may have 1 to 512 bytes of UTF-8, in any script; longer and empty ones are refused."""
    async with unchanged(provider) as scope:
        agent = {"agentId": scope.agent_id}
        table = [
            bad(f"a sessionId of {len(key.encode())} bytes", verb, {**_sound(verb, scope), "sessionId": key})
            for verb in ("onMessage", "getCompressedContext", "hooks/session-start", "hooks/pre-compaction")
            for key in ("", "k" * (LONGEST_SESSION_ID + 1), "é" * (LONGEST_SESSION_ID // 2 + 1), "k" * 100_000)
        ]
        expect_no_faults(await table_faults(provider, table))
        unique = provider.new_session().session_id
        for filler in ("k", "é", "🙂", ' "\\/\n'):
            key = (unique + filler * LONGEST_SESSION_ID).encode()[:LONGEST_SESSION_ID].decode(errors="ignore")
            await provider.ask("onMessage", {**agent, "sessionId": key, "message": said("x")})
            context = await provider.context(Scope(agent_id=scope.agent_id, session_id=key))
            expect_that(context.session_id == key, f"the same key of {len(key.encode())} bytes", context.session_id)
            expect("messages under it", 1, len(context.messages))


@check(7, "getCompressedContext", "audit")
async def numbers_beyond_reason_are_survived(provider: Provider) -> None:
    """A number beyond all sense is taken for what it is or refused; the provider never fails over it."""
    async with unchanged(provider) as scope:
        place = b'{"sessionId":"%s","agentId":"%s",' % (scope.session_id.encode(), scope.agent_id.encode())
        refused = [
            BadRequest(number, "getCompressedContext", place + f'"maxChars":{number}}}'.encode())
            for number in ("1e999", "-1e999", "NaN", "Infinity", "-0.5", "0x10", "1_000", "-9223372036854775809")
        ]
        faults = await table_faults(provider, refused)
        for number in ("9007199254740991", "9223372036854775808", "1" + "0" * 400, "1e3", str(PLENTY_CHARS)):
            body = place + f'"maxChars":{number}}}'.encode()
            answer = await provider.send("POST", "/v1/getCompressedContext", body)
            if answer.status != 200 and not 400 <= answer.status < 500:
                faults.append(f"maxChars {number[:30]}: came {answer.status}")
        expect_no_faults(faults)


# ── The verbs of recall ──


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
    "depth": (*NOT_A_STRING, "shallow", "Deep", ""),
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
        table = wrong_fields("recall", sound, WRONG_IN_A_RECALL, ["sessionId", "query"])
        expect_no_faults(await table_faults(provider, table))


@check(7, "unlink", "onMessage")
async def a_wrong_unlink_is_refused(provider: Provider) -> None:
    """An `unlink` without an entry, with a field of the wrong type or an unknown one is refused."""
    async with unchanged(provider) as scope:
        agent = {"agentId": scope.agent_id}
        wrong = {"entryId": (*NOT_A_STRING, None), "byId": NOT_A_STRING}
        table = wrong_fields("unlink", {**agent, "entryId": "m1"}, wrong, ["entryId"])
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
            request
            for verb in ("pin", "unpin")
            for request in wrong_fields(verb, {**agent, "keyword": word}, WRONG_IN_A_PIN)
        ]
        for is_pinned in (False, True):
            if is_pinned:
                await provider.ask("pin", {**agent, "keyword": word})
            expect_no_faults(await table_faults(provider, table))
            (entry,) = await provider.recall(other, word, scope="session")
            expect("pinned after all refusals", is_pinned, entry.pinned)


# ── A turn made ready ──


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
        table = wrong_fields("prepareTurn", sound, WRONG_IN_A_TURN, ["sessionId", "prompt"])
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
