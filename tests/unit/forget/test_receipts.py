"""A receipt is this installation's own, or it is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.forget.receipts import is_genuine, signed
from offbook.model.receipt import ForgetReceipt, ForgottenSpan, Probe, Reached, Residue
from offbook.model.types import now

KEY = b"k" * 32


def receipt(**fields: Any) -> ForgetReceipt:
    given = {
        "id": "forget-1",
        "agent_id": "main",
        "at": now(),
        "by": "owner",
        "reason": "moved away",
        "dry_run": False,
        "how": "matching",
        "reached": Reached(messages=3),
        "spans": [ForgottenSpan(session_id="chat", first_seq=1, last_seq=3)],
        "probes": [Probe(words=5, digest="0" * 32)],
        "outside": ["the host's own transcripts"],
        "residue": [],
        "audit_seq": 7,
    } | fields
    return ForgetReceipt(**given)


CHANGES: dict[str, Any] = {
    "id": "forget-2",
    "agent_id": "other",
    "at": msgspec.json.decode(b'"2001-01-01T00:00:00Z"', type=type(now())),
    "by": "somebody",
    "reason": "",
    "dry_run": True,
    "how": "retention",
    "reached": Reached(messages=2),
    "spans": [],
    "probes": [],
    "outside": [],
    "residue": [Residue(where="x", what="y")],
    "audit_seq": 8,
    "wordless": 2,
    "secrets": {"password": 1},
}


def test_what_was_signed_is_genuine_also_after_a_file() -> None:
    made = signed(receipt(), KEY)
    assert is_genuine(made, KEY)
    assert is_genuine(msgspec.json.decode(msgspec.json.encode(made), type=ForgetReceipt), KEY)
    laid_out = msgspec.json.format(msgspec.json.encode(made), indent=4)
    assert is_genuine(msgspec.json.decode(laid_out, type=ForgetReceipt), KEY)
    assert signed(made, KEY) == made


@pytest.mark.parametrize(("field", "value"), CHANGES.items())
def test_a_changed_receipt_is_not_genuine(field: str, value: Any) -> None:
    made = signed(receipt(), KEY)
    assert not is_genuine(msgspec.structs.replace(made, **{field: value}), KEY)


def test_every_field_is_signed() -> None:
    fields = {field.name for field in msgspec.structs.fields(ForgetReceipt)}
    assert fields - {"signature", "unfinished"} == CHANGES.keys()


def test_a_kind_that_was_not_counted_yet_changes_nothing() -> None:
    """A receipt is kept for years, and what is reached grows by kinds."""
    made = msgspec.to_builtins(signed(receipt(), KEY))
    made["reached"] = {"messages": 3}
    assert is_genuine(msgspec.convert(made, ForgetReceipt), KEY)
    made["reached"] = {"messages": 3, "backups": 1}
    assert not is_genuine(msgspec.convert(made, ForgetReceipt), KEY)


@given(st.text())
def test_no_other_signature_will_do(signature: str) -> None:
    made = signed(receipt(), KEY)
    assert is_genuine(msgspec.structs.replace(made, signature=signature), KEY) == (signature == made.signature)


def test_another_installation_did_not_sign_it() -> None:
    assert not is_genuine(signed(receipt(), b"x" * 32), KEY)
    assert not is_genuine(receipt(), KEY)
