"""Signing receipts: whoever has the data folder can say that a receipt is its own, and that nobody changed it."""

from __future__ import annotations

import hmac
from hashlib import sha256

import msgspec

from offbook.model.receipt import ForgetReceipt, KeptReceipt

_canonical = msgspec.json.Encoder(order="deterministic")
PURPOSE = b"offbook forget receipt v1"


def in_a_line(receipt: ForgetReceipt) -> KeptReceipt:
    return KeptReceipt(
        id=receipt.id,
        at=receipt.at,
        by=receipt.by,
        reason=receipt.reason,
        how=receipt.how,
        messages=receipt.reached.messages,
        residue=len(receipt.residue),
        is_finished=receipt.unfinished is None,
    )


def signed(receipt: ForgetReceipt, key: bytes) -> ForgetReceipt:
    return msgspec.structs.replace(receipt, signature=_signature(receipt, key))


def is_genuine(receipt: ForgetReceipt, key: bytes) -> bool:
    return hmac.compare_digest(receipt.signature.encode(), _signature(receipt, key).encode())


def _signature(receipt: ForgetReceipt, key: bytes) -> str:
    """SHA-256 HMAC of the receipt without it and without counts of 0, as compact JSON with sorted keys: a kind that is
    only counted in a later version may not make an older receipt another one."""
    own_key = hmac.new(key, PURPOSE, sha256).digest()
    document = msgspec.to_builtins(msgspec.structs.replace(receipt, signature=""))
    document["reached"] = {kind: count for kind, count in document["reached"].items() if count}
    return hmac.new(own_key, _canonical.encode(document), sha256).hexdigest()
