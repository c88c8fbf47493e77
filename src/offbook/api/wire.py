"""Bytes to the requests of the verbs, and answers to bytes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from offbook.api.fields import LARGEST_INTEGER, Request
from offbook.api.large_requests import MOST_VALUES, decode_large, may_have_many_values
from offbook.api.nulls import without_nulls
from offbook.api.session_requests import Ping
from offbook.api.verbs import VERBS
from offbook.model.errors import InvalidInput, WrongShape
from offbook.model.status import CaptureClaim

_decoders = {name: msgspec.json.Decoder(verb.request) for name, verb in VERBS.items()}
_encoder = msgspec.json.Encoder()
_OWNER = re.compile(rb'"(?:agentId|sessionId)"\s{0,9}:\s{0,9}"([^"]{1,200})')
OWNER_WITHIN_BYTES = 2_000


def decode_request(verb: str, body: bytes) -> Request:
    """A request of this verb, or the error that names the field at fault."""
    if not body.strip():
        if verb == "ping":
            return Ping()
        raise InvalidInput("the body is empty: send a JSON object")
    try:
        return _decoded(verb, body)
    except msgspec.ValidationError as error:
        raise WrongShape(str(error)) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the body is not valid UTF-8 at byte {_bad_byte(body, error)}: send UTF-8") from None
    except msgspec.DecodeError as error:
        raise InvalidInput(f"the body is not valid JSON: {error}") from None
    except RecursionError:
        raise WrongShape("the body is nested too deeply: flatten it") from None


def _decoded(verb: str, body: bytes) -> Request:
    if len(body) > MOST_VALUES and may_have_many_values(body):
        large = decode_large(verb, body)
        if large is not None:
            return large
    try:
        return _decoders[verb].decode(body)
    except msgspec.ValidationError:
        if b"null" not in body:
            raise
        # Rare, so that the way of every other request is the short one.
        given = msgspec.json.decode(body)
        shape = VERBS[verb].request
        return msgspec.convert(without_nulls(given, shape), shape)


def owner_hint(body: bytes) -> str:
    """Whose request it probably is, before it is read: so that one sender's large ones wait for one another."""
    named = _OWNER.search(body, 0, OWNER_WITHIN_BYTES)
    return named[1].decode(errors="replace") if named else ""


def _bad_byte(body: bytes, error: UnicodeDecodeError) -> int:
    """The error counts within the string that the byte stands in; who sent it has the body."""
    try:
        body.decode()
    except UnicodeDecodeError as of_the_body:
        return of_the_body.start
    return error.start


def encode_answer(answer: Any) -> bytes:
    return _encoder.encode(answer)


def capture_claim(header: str, messages: int) -> CaptureClaim:
    """Read `Offbook-Capture: client=<id>; first=12; last=20; sent=25`."""
    fields = dict(part.strip().split("=", 1) for part in header.split(";") if "=" in part)
    try:
        claim = CaptureClaim(
            client=fields["client"],
            first=int(fields["first"]),
            last=int(fields["last"]),
            sent=int(fields["sent"]),
        )
    except (KeyError, ValueError):
        raise InvalidInput(
            "the header Offbook-Capture cannot be read: send `client=<id>; first=<n>; last=<n>; sent=<n>`"
        ) from None
    is_sound = 1 <= claim.first <= claim.last <= claim.sent <= LARGEST_INTEGER and 0 < len(claim.client) <= 128
    if not is_sound or claim.last - claim.first + 1 != messages:
        raise InvalidInput(
            f"the header Offbook-Capture claims messages {claim.first} to {claim.last} of {claim.sent}, "
            f"the body holds {messages}: first to last must count the messages of this request"
        )
    return claim
