"""Whether what stands where a secret would stand is one: or a placeholder, a word, or code."""

from __future__ import annotations

import math
import re
from collections import Counter

MOST_REMEMBERED = 10_000
"""Verdicts on the values of one text."""

_MASKS = frozenset("*xX•●·.#-_?…")
_STANDS_FOR_ANOTHER = re.compile(
    r"\[redacted|<[^<>]*>\Z|\{.*\}\Z|\[.*\]\Z|\$(?:\{|\(|[A-Za-z_]\w*\W?\Z)|%\(?\w+[%)]|__\w+__\Z|@[\w.]+\Z|env:|!(?:vault|secret|env|ref|sub|getatt)\b"
    r"|(?:\.{0,2}|~)/|[A-Za-z]:\\|(?:https?|file|op|vault|secret|ssm|arn|projects)(?::|/)/?[\w/]"
    r"|.{0,40}(?:\.\.\.|…)|.{0,40}[xX*]{6}"
)
_TALKS_OF_IT = re.compile(
    r"(?i)pass(?:w(?:or)?d|wort|phrase|code)|pwd|secret|token|api.?key|credential|your|example|placeholder"
    r"|change.?me|redacted|hidden|removed|omitted|enter|insert|replace|kennwort|mot de passe|密码|密碼|パスワード"
)
_ORDINARY_WORD = re.compile(
    r"(?i)(?:accepted|boolean|bytes|changed|correct|default|denied|disabled|empty|enabled|encrypted|expired|false|hashed"
    r"|function|incorrect|integer|invalid|length|missing|needed|nothing|number|object|optional|pass|plaintext|please"
    r"|protected|public|rejected|required|stored|strings?|unchanged|undefined|unknown|unset|updated?|varchar"
    r"|verified|wrong|obligatoire|erforderlich|falsch|ung(?:ü|ue)ltig|requis|incorrecta?)\Z"
)
_REMARK = re.compile(
    r"(?i)\b(?:must|should|please|is|are|be|the|at least|cannot|can't|characters|field|too|not|invalid|wrong|missing"
    r"|for|required|requires|minimum|show|hide|forgot|reset|confirm|current|new|old|does|don't|this|use|used|via|from|see"
    r"|ask|vergessen|oublié|olvidada|muss|doit|debe)\b|[?:]\Z|[a-z]\.\Z"
)
_CODE = re.compile(r"[A-Za-z_$&*][\w$]*+(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*+)*+(?:[(\[{]|!?\Z)")
_PROPERTY = re.compile(
    r"(?i)(?:sha|md|aes|rsa|utf|base|bcrypt|pbkdf|argon|scrypt|ed25519|oauth|v[0-9]|[0-9]+-?(?:char|digit|bit|byte|day))"
)
_NAME_WITH_NUMBER = re.compile(r"[a-z]+(?:[_-][a-z0-9]+)+|[a-z]+[0-9]{0,2}")
_UNFILLED = re.compile(r"[xX]{6}|\*{6}|your|YOUR|placeholder|PLACEHOLDER")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


def is_given(value: str) -> bool:
    return not is_placeholder(value)


def is_strong(value: str) -> bool:
    """As a password is made that somebody took care of; few words of prose are like that."""
    has_sign = re.search(r"[!@#$%^&*+?~]", value) is not None
    return (
        is_mixed(value) and not is_placeholder(value) and (has_sign or (value != value.lower() and not value.istitle()))
    )


def is_filled(token: str) -> bool:
    """No token of an example: `ghp_xxxxxxxx`, `sk-your-key-here`."""
    return _UNFILLED.search(token) is None


def is_credentials(value: str) -> bool:
    return not is_placeholder(value) and (has_digit(value) or not value.islower())


def is_placeholder(value: str) -> bool:
    if _STANDS_FOR_ANOTHER.match(value) or _MASKS.issuperset(value) or _ORDINARY_WORD.match(value):
        return True
    return len(value) < 200 and not has_digit(value) and _TALKS_OF_IT.search(value) is not None


def is_remark(value: str) -> bool:
    """Several words that tell of a password: a label, a hint, a complaint."""
    return _REMARK.search(value) is not None


def is_code(value: str) -> bool:
    """A name, a call or an attribute; a name with a number could be a password, and is none here."""
    return _CODE.match(value) is not None and not (has_digit(value) and value.replace("_", "").isalnum())


def is_mixed(value: str) -> bool:
    """Letters and digits, as in a password, and not what tells of one: `sha256-hashed`."""
    return has_digit(value) and any(map(str.isalpha, value)) and not _PROPERTY.match(value)


def is_plain_name(value: str) -> bool:
    """`test_login_flow_2`, `field1`: what somebody would call something."""
    return _NAME_WITH_NUMBER.fullmatch(value) is not None


def is_random(value: str) -> bool:
    """Letters and digits in no order that a word or a name has. Below so many bits are repetitions and counting; of
    16 random hexadecimal digits one in 250 is below 2.6, and one in seven below 3."""
    if len(value) < 16 or not has_digit(value) or not any(map(str.isalpha, value)):
        return False
    head = value[:100]
    bits = -sum(count / len(head) * math.log2(count / len(head)) for count in Counter(head).values())
    return bits >= (2.6 if len(value) < 32 else 3.0)


def is_uuid(value: str) -> bool:
    return _UUID.match(value) is not None


def has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))
