from __future__ import annotations

import pytest

from offbook.ingest.secret_scan import redact_text


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("payment-card", "4111 1111 1111 1111"),
        ("payment-card", "5555555555554444"),
        ("payment-card", "3782-822463-10005"),
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("iban", "GB29NWBK60161331926819"),
        ("us-ssn", "123-45-6789"),
    ],
)
def test_they_go_where_that_is_asked_for_only(kind: str, number: str) -> None:
    text = f"it is {number}, as said"
    assert redact_text(text) == (text, {})
    assert redact_text(text, with_personal_numbers=True) == (f"it is [redacted:{kind}], as said", {kind: 1})


@pytest.mark.parametrize(
    "text", ["4111 1111 1111 1112", "DE89 3704 0044 0532 0130 02", "000-45-6789", "1234567890123456", "2026-11-18"]
)
def test_numbers_with_a_wrong_check_digit_stay(text: str) -> None:
    assert redact_text(text, with_personal_numbers=True) == (text, {})
