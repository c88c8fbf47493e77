"""7, for the request itself: whatever is no request of the contract is refused and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from offbook.contrib.conformance.check import (
    BadRequest,
    NotApplicable,
    check,
    expect_no_faults,
    refusal_faults,
    said,
    table_faults,
    unchanged,
)
from offbook.contrib.conformance.provider import Provider, named

DEEP = 100_000
NESTED = 2_000
PIECE_BYTES = 4 * 1024 * 1024
MOST_PIECES = 32
"""128 MB: eight times what a provider takes by default."""


@check(7, "onMessage")
async def what_is_not_json_is_refused(provider: Provider) -> None:
    """A body that is no JSON object is refused: empty, cut off, an array, text, or anything else."""
    async with unchanged(provider) as scope:
        whole = msgspec.json.encode({**named(scope), "message": said("x")})
        bodies = {
            "an empty body": b"",
            "spaces only": b" \n ",
            "cut in the middle": whole[: len(whole) // 2],
            "without its last byte": whole[:-1],
            "something after it": whole + b"x",
            "two of them": whole + whole,
            "an array": b"[" + whole + b"]",
            "an empty array": b"[]",
            "a string": b'"x"',
            "a number": b"1",
            "null": b"null",
            "text": b"sessionId=x&message=y",
            "single quotes": b"{'sessionId': 'x'}",
            "a comment": b"/* */" + whole,
            "a raw newline in a string": whole.replace(b'"x"', b'"x\ny"'),
        }
        table = [BadRequest(label, "onMessage", body) for label, body in bodies.items()]
        expect_no_faults(await table_faults(provider, table))


@check(7, "onMessage")
async def what_is_not_utf8_is_refused(provider: Provider) -> None:
    """Bytes that are not UTF-8 and escapes that are no character are refused, in keys and in texts."""
    async with unchanged(provider) as scope:
        whole = msgspec.json.encode({**named(scope), "message": said("TEXT", name="NAME")})
        broken = {
            "a lone byte": b"\xff",
            "a cut sequence": b"\xe2\x82",
            "an overlong form": b"\xc0\xaf",
            "an encoded surrogate": b"\xed\xa0\x80",
            "beyond the last character": b"\xf5\x80\x80\x80",
            "half a pair": b"\\ud83d",
            "the other half": b"\\ude00",
            "a pair the wrong way round": b"\\ude00\\ud83d",
            "an escape that is none": b"\\x41",
            "an escape cut short": b"\\u12",
        }
        table = [
            BadRequest(f"{label} in the {where.decode().lower()}", "onMessage", whole.replace(where, bytes_))
            for label, bytes_ in broken.items()
            for where in (b"TEXT", b"NAME", scope.session_id.encode())
        ]
        table.append(BadRequest("UTF-16", "onMessage", whole.decode().encode("utf-16")))
        expect_no_faults(await table_faults(provider, table))


@check(7, "onMessage", "hooks/post-compaction")
async def deep_nesting_is_survived(provider: Provider) -> None:
    """A body nested 100,000 levels deep is refused; one of 2,000 is refused or kept, never a failure."""
    async with unchanged(provider) as scope:
        place = b'{"sessionId":"%s","agentId":"%s",' % (scope.session_id.encode(), scope.agent_id.encode())
        refused = [
            BadRequest("deep content", "onMessage", place + b'"message":{"role":"user","content":' + b"[" * DEEP),
            BadRequest("deep body", "onMessage", b"[" * DEEP + b"]" * DEEP),
            BadRequest("deep objects", "onMessage", b'{"sessionId":' * DEEP + b"1" + b"}" * DEEP),
        ]
        faults = await table_faults(provider, refused)
        nested = b"[" * NESTED + b"]" * NESTED
        elsewhere = b'{"sessionId":"%s","agentId":"%s",' % (
            provider.new_session().session_id.encode(),
            scope.agent_id.encode(),
        )
        survived = {
            "onMessage": b'"message":{"role":"user","content":[{"type":"x","value":' + nested + b"}]}}",
            "hooks/post-compaction": b'"newContext":' + nested + b"}",
        }
        for verb, rest in survived.items():
            answer = await provider.send("POST", f"/v1/{verb}", elsewhere + rest)
            if answer.status != 200:
                faults += refusal_faults(f"{verb}, {NESTED} levels", answer)
        expect_no_faults(faults)


@check(7, "onMessage")
async def an_endless_request_is_refused(provider: Provider) -> None:
    """A request that announces a terabyte is refused as too large, long before it has all come."""
    async with unchanged(provider):

        def pieces() -> Iterator[bytes]:
            for _ in range(MOST_PIECES):
                yield b" " * PIECE_BYTES

        answer = await provider.send_unending("/v1/onMessage", 2**40, pieces())
        expect_no_faults(refusal_faults("a terabyte", answer, statuses=(413,)))


@check(7)
async def an_unknown_verb_is_refused(provider: Provider) -> None:
    """A verb that there is not, or a path outside the contract, is answered with 404."""
    faults = []
    for path in ("/v1/noSuchVerb", "/v1/hooks/no-such-hook", "/v1/", "/v9/noSuchVerb"):
        for method in ("POST", "GET"):
            answer = await provider.send(method, path, b"{}" if method == "POST" else b"")
            faults += refusal_faults(f"{method} {path}", answer, statuses=(404,))
    expect_no_faults(faults)


@check(7, "onMessage", "getCompressedContext")
async def another_method_is_refused(provider: Provider) -> None:
    """A verb asked with another method than POST is refused and does nothing."""
    async with unchanged(provider) as scope:
        body = msgspec.json.encode({**named(scope), "message": said("x")})
        faults = []
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            answer = await provider.send(method, "/v1/onMessage", b"" if method == "GET" else body)
            faults += refusal_faults(f"{method} onMessage", answer, statuses=(404, 405))
        expect_no_faults(faults)


@check(7, "onMessage", "getCompressedContext")
async def a_wrong_token_is_refused(provider: Provider) -> None:
    """Without the right token every verb is refused, and nothing is stored."""
    if provider.token is None:
        raise NotApplicable("the suite was given no token")
    wrong = [
        f"Bearer {provider.token}x",
        "Bearer wrong",
        f"Basic {provider.token}",
        f"Bearer{provider.token}",
        "Bearer ",
    ]
    async with unchanged(provider) as scope:
        body = msgspec.json.encode({**named(scope), "message": said("x")})
        faults = []
        for authorization in wrong if provider.endpoint.scheme == "unix" else [*wrong, ""]:
            label = authorization.replace(provider.token, "<token>") or "no token"
            for verb in ("onMessage", "getCompressedContext", "status", "audit"):
                answer = await provider.send("POST", f"/v1/{verb}", body, authorization=authorization)
                faults += refusal_faults(f"{verb}, {label}", answer, statuses=(401, 403))
        expect_no_faults(faults)


@check(7, "onMessage", "getCompressedContext")
async def a_web_page_is_refused(provider: Provider) -> None:
    """On loopback, a request with a foreign Host or Origin is refused: any web page can reach a loopback port."""
    if provider.endpoint.scheme == "unix" or not provider.endpoint.is_loopback:
        raise NotApplicable("no web page reaches this endpoint")
    port = provider.endpoint.port
    async with unchanged(provider) as scope:
        body = msgspec.json.encode({**named(scope), "message": said("x")})
        faults = []
        for host in (
            "evil.example",
            f"evil.example:{port}",
            f"127.0.0.1.evil.example:{port}",
            f"localhost.evil.example:{port}",
        ):
            answer = await provider.send("POST", "/v1/onMessage", body, host=host)
            faults += refusal_faults(f"Host {host}", answer)
        for origin in ("https://evil.example", f"http://evil.example:{port}", "null", "http://localhost.evil.example"):
            answer = await provider.send("POST", "/v1/onMessage", body, headers=[("origin", origin)])
            faults += refusal_faults(f"Origin {origin}", answer)
        expect_no_faults(faults)
