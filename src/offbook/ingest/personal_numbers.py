"""Numbers that name a person's money or a person: payment cards, bank accounts (IBAN), US social security numbers.

Off unless `redaction.personalNumbers` asks for it: they are no secrets of a machine, and some agents are there to
handle them. Cards and accounts are known by their check digits.
"""

from __future__ import annotations

import re

from offbook.ingest.named_secrets import Found

_CARD = re.compile(r"(?<![\w.-])[3-6]\d{3}(?:[ -]?\d){8,14}+(?!\w|[.-]\d)", re.ASCII)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}+(?!\w)", re.ASCII)
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])", re.ASCII)
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def personal_numbers(text: str) -> Found:
    for match in _CARD.finditer(text):
        if _has_luhn_digit(match[0]):
            yield *match.span(), "payment-card"
    for match in _IBAN.finditer(text):
        if _is_iban(match[0]):
            yield *match.span(), "iban"
    for match in _SSN.finditer(text):
        yield *match.span(), "us-ssn"


def _has_luhn_digit(number: str) -> bool:
    digits = [int(each) for each in number if each.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(odd) + sum(_DOUBLED[each] for each in even)) % 10 == 0


def _is_iban(text: str) -> bool:
    account = text.replace(" ", "")
    if not 15 <= len(account) <= 34:
        return False
    return int("".join(str(int(each, 36)) for each in account[4:] + account[:4])) % 97 == 1
