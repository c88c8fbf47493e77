"""Secrets that are known by the name before them: `password: …`, `api_key=…`, `Das Passwort lautet …`, cookies.

Names are looked for in the text in lower case, values are judged as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from offbook.ingest.secret_rules import (
    MOST_REMEMBERED,
    Reading,
    has_digit,
    is_code,
    is_credentials,
    is_given,
    is_mixed,
    is_placeholder,
    is_plain_name,
    is_random,
    is_remark,
    is_uuid,
)
from offbook.model.lazy_pattern import lazy_pattern

Found = Iterator[tuple[int, int, str]]
"""Where secrets lie, from and to, and of which kind. They may overlap."""

# ── how a value is given ──

_PLAIN = r"[^\s\"'`<>&,;\u2e80-\uffef]"  # no password is in Chinese
_IS = "is|was|ist|lautet|heißt|heisst|war|est|c'est|sera|es|è|é|era|är|er|jest|to|je|on|là|adalah|este|равен"
_VALUE = (
    r"(?P<close>(?>(?:[_-]?(?:prod|production|dev|staging|test|live|root|admin|old|new|v?[0-9]{1,2})(?![a-z0-9]))?)"
    r"\\*+[\"'`*\])]{0,3}+)"
    r"(?P<about>\s\([^)\n]{1,30}\)|,?\s(?:(?:was|is|has been)\s)?(?:changed|reset|set|updated|now)"
    r"|\s(?:for|of|to|on|für|zum|vom|pour|de|du|para|del|della|di|voor|van)(?:\s[\w.@'-]{1,30}+){1,6}?(?=\s?[:=]|\s(?:is|was|ist|lautet|luidt|est|es|è)\s))?"
    r"(?:(?P<separator>[ \t]{0,4}(?::=|=>|->|→|={1,3}|[:：＝])[ \t*]{0,4}(?>(?:\r?\n[ \t]{0,8})?)"
    rf"|,?\s(?:{_IS})(?:\s?:)?\s|[是为為は은는]\s?|\s[—–-]{{1,2}}\s"
    r"|(?<=[\"'])\s?,\s?(?=[\"'])|\((?=[\"'])"
    r"|[\"'\\]{0,3},?\s{1,20}[\"'\\]{0,3}value[\"'\\]{0,3}\s{0,2}[:=]\s{0,2}"
    r"|(?:(?<=-password)|(?<=-passphrase)|(?<=-passwd)|(?<=-pass)|(?<=-pwd)|(?<=-secret)|(?<=-token)|(?<=-key))"
    r"[ \t]{1,3})"
    r"(?!\[redacted:)"
    r"(?:[bfru]{0,2}(?P<slashes>\\{0,4}+)(?P<quote>[\"'`])(?!\[redacted:)"
    r"(?P<quoted>(?>(?:(?!(?P=slashes)(?P=quote))(?:\\[^\n]|[^\\\n])){6,1000}))(?P=slashes)(?P=quote)"
    rf"|(?=[^\s\"'`<>\u2e80-\uffef]{{6}})(?P<bare>{_PLAIN}*+(?>(?:[&,;](?!\w{{1,40}}=){_PLAIN}*+)*))))"
)
_END = ".,;:!?)]}"
_PROSE = frozenset({*_IS.split("|"), *"是为為は은는—–-", "--", ",", "("})
_NOT_A_START = tuple(":=>|(){},;&")
_TYPE_NAME = re.compile(r"(?:[A-Z][a-z]+)+")
_ABBREVIATED = re.compile(r"pass[\s:=]")
_SEEN_BEFORE = 80
"""How much of what stands before a name tells what it names."""
_SECRET_KEY = re.compile(
    r"(?:api|auth|access|account|app|application|encryption|master|private|priv|signing|shared|subscription|storage|crypt"
    r"|service|consumer|license|licence|client|admin|deploy|session|webhook|hmac|jwt|aes|cipher|secret|server|write|sas"
    r"|ingestion|instrumentation|root|ssh|wireguard|wpa|wpa2|wifi|wi-fi|network|security|preshared|host|function"
    r"|personal|developer|sdk|bot)[_ -]?\Z"
)
_PAGE_TOKEN = re.compile(r"(?:page|next|sync|continuation|cancellation)[_-]?\Z")


class Named(NamedTuple):
    """A value, where it was found and how it was given."""

    text: str
    lowered: str
    match: re.Match[str]
    value: str

    @property
    def is_quoted(self) -> bool:
        return self.match["quoted"] is not None

    @property
    def is_in_prose(self) -> bool:
        separator = self.match["separator"]
        word = separator.strip(" \t\n:").removeprefix(", ")
        return word in _PROSE or self.match["about"] is not None or "\n" in separator

    def before(self, chars: int) -> str:
        start = self.match.start()
        return self.lowered[max(0, start - chars) : start]

    @property
    def after(self) -> str:
        return self.text[self.match.end() : self.match.end() + 1]


def _is_assigned(named: Named) -> bool:
    value = named.value
    if is_placeholder(value):
        return False
    if not named.is_quoted:
        return _is_bare_secret(named)
    if named.match["separator"].strip() in (",", "("):
        return is_mixed(value) and not is_plain_name(value)
    return not any(map(str.isspace, value))


def _is_password(named: Named) -> bool:
    value = named.value
    if _ABBREVIATED.match(named.match[0]) and named.before(1) not in ("_", '"', "'") and not _is_after_pass(named):
        return False
    if named.is_quoted and any(map(str.isspace, value)):
        return not is_placeholder(value) and not is_remark(value) and len(value) <= 120
    return _is_assigned(named)


def _is_after_pass(named: Named) -> bool:
    """`pass: …` also tells of tests that passed."""
    written = named.text[named.match.start() : named.match.start() + 4]
    return written != "PASS" and is_mixed(named.value) and not is_plain_name(named.value)


def _is_called_secret(named: Named) -> bool:
    return not (named.match["separator"] == ":" and named.before(1) == ":") and _is_assigned(named)


def _is_key(named: Named) -> bool:
    value = named.value
    is_likely = has_digit(value) or (len(value) >= 20 and not value.islower())
    return is_likely and bool(_SECRET_KEY.search(named.before(24))) and _is_assigned(named)


def _is_token(named: Named) -> bool:
    return is_random(named.value) and not _PAGE_TOKEN.search(named.before(14)) and _is_assigned(named)


def _is_bare_secret(named: Named) -> bool:
    value, separator = named.value, named.match["separator"]
    if len(value) < 6 or value.startswith(_NOT_A_START) or ("`" in named.match["close"] and named.after == " "):
        return False
    if named.is_in_prose:
        return is_mixed(value) and not (is_code(value) or "(" in value or "=" in value.rstrip("="))
    if not value.isalpha():
        return not is_code(value)
    if not value.isascii() or len(value) != len(named.match["bare"]):
        return False
    # A word is the value of a setting where nothing else stands on the line, else prose or a variable.
    if separator == "=" and named.before(1) in ("?", "&"):
        return True
    line = named.before(_SEEN_BEFORE).rpartition("\n")[2].strip().removeprefix("export ")
    is_alone = named.after in ("", "\n", "\r") and not any(map(str.isspace, line))
    return is_alone and (separator == "=" or (":" in separator and not _TYPE_NAME.fullmatch(value)))


# ── the names ──


class _Name(NamedTuple):
    kind: str
    word: str
    """How it begins: found fast."""
    pattern: re.Pattern[str]
    is_secret: Callable[[Named], bool]


def _name(kind: str, word: str, rest: str, is_secret: Callable[[Named], bool]) -> _Name:
    return _Name(kind, word, lazy_pattern(word + rest + _VALUE), is_secret)


_NAME_REST = (
    r"(?:word|wd|phrase|code|wort|ord|(?<=mot de pass)e|(?<=palavra-pass)e|(?<=[_\"']pass)|(?<![a-z_]pass)(?=\s?[:=]))"
    r"(?>(?:e?s(?![a-z]))?)"
)
_ABROAD = (
    "kennwort", "wachtwoord", "mdp", "contraseña", "contrasena", "senha", "hasło", "lösenord", "jelszó", "parola",
    "şifre", "mật khẩu", "пароль", "κωδικός", "סיסמה", "كلمة المرور",
    "पासवर्ड", "รหัสผ่าน", "密码", "密碼", "口令", "パスワード", "비밀번호", "암호",
)  # fmt: skip
_SECRETS_ABROAD = (
    "schlüssel", "clé secrète", "clé api", "clé d'api", "jeton", "clave", "ключ",
    "токен", "密钥", "密鑰", "令牌", "シークレット", "トークン", "토큰",
)  # fmt: skip


def _is_secret_abroad(named: Named) -> bool:
    return is_mixed(named.value) and len(named.value) >= 8 and not is_plain_name(named.value) and _is_assigned(named)


_NAMES = (
    _name("secret", "token", "", _is_token),
    _name("secret", "secret", "(?:[_ -]?(?:access[_ -]?)?key)?", _is_called_secret),
    _name("secret", "key", r"(?<=[a-z][_ -]key|[a-z][a-z]key)", _is_key),
    _name("password", "pass", _NAME_REST, _is_password),
    _name("password", "pw", "(?:d|(?![a-z]))", _is_password),
    *(_name("password", word, "", _is_password) for word in _ABROAD),
    *(_name("secret", word, "", _is_secret_abroad) for word in _SECRETS_ABROAD),
)
_ASCII_NAMES = tuple(name for name in _NAMES if name.word.isascii())
_OTHER_NAMES = tuple((max(name.word), name) for name in _NAMES if not name.word.isascii())
"""With a character of theirs, which is found in no time."""
WORDS = tuple(name.word for name in _ASCII_NAMES)


def named_secrets(reading: Reading) -> Found:
    text, words = reading.text, reading.words
    names = [name for name in _ASCII_NAMES if name.word in words]
    if not text.isascii():
        names += [name for telling, name in _OTHER_NAMES if telling in text and name.word in reading.lowered]
    for name in names:
        yield from _of_name(name, text, reading.lowered)


def _of_name(name: _Name, text: str, lowered: str) -> Found:
    search, place = name.pattern.search, 0
    verdicts: dict[str, bool] = {}
    while match := search(lowered, place):
        start, end = match.span("bare")
        if start >= 0:
            end = start + len(match["bare"].rstrip(_END))
            place = match.end()
        else:
            start, end = match.span("quoted")
            place = match.start() + len(name.word)  # within quotes there may be another
        # All that a verdict depends on: a text that says the same again and again is judged once.
        seen = text[max(0, match.start() - _SEEN_BEFORE) : match.end() + 1]
        is_secret = verdicts.get(seen)
        if is_secret is None:
            is_secret = verdicts[seen] = name.is_secret(Named(text, lowered, match, text[start:end]))
            if len(verdicts) > MOST_REMEMBERED:
                verdicts.clear()
        if is_secret:
            yield start, end, name.kind


# ── cookies ──

_COOKIES = re.compile(
    r"cookie[\"'\\]{0,4}(?:\s{0,3}[:=]\s{0,3}|\s)[\"'\\]{0,4}(?=[^\n\"']{0,80}=)(?!\[redacted:)(?P<pairs>[^\n\"'\\]{8,4000}+)"
)
_PAIR = re.compile(r"(?P<name>[\w.-]{1,80})=(?!\[redacted:)(?P<value>[^;\s,]{8,4000}+)")
_NO_SESSION_TEXT = "path domain expires max-age samesite priority version _ga _gid _fbp __utm lang theme locale"
_NO_SESSION = tuple(_NO_SESSION_TEXT.split())
_SESSION = ("sess", "sid", "auth", "token", "csrf", "xsrf", "login", "remember", "jwt", "secret", "user")


def cookies(reading: Reading) -> Found:
    if "cookie" in reading.words:
        verdicts: dict[str, bool] = {}
        for match in _COOKIES.finditer(reading.lowered):
            yield from cookie_values(reading.text, *match.span("pairs"), verdicts)


def cookie_values(text: str, start: int, end: int, verdicts: dict[str, bool]) -> Found:
    for pair in _PAIR.finditer(text, start, end):
        if pair[0] not in verdicts:
            if len(verdicts) > MOST_REMEMBERED:
                verdicts.clear()
            verdicts[pair[0]] = _is_session(pair["name"], pair["value"])
        if verdicts[pair[0]]:
            yield *pair.span("value"), "session-cookie"


def _is_session(name: str, value: str) -> bool:
    lowered = name.lower()
    if lowered.startswith(_NO_SESSION) or not is_given(value):
        return False
    is_named_so = any(part in lowered for part in _SESSION)
    return (is_random(value) and not is_uuid(value)) or (is_named_so and is_credentials(value))


# ── Numbers that name a person's money or a person ──
# Payment cards, bank accounts (IBAN), US social security numbers.
# Off unless `redaction.personalNumbers` asks for it: they are no secrets of a machine, and some agents are there to
# handle them. Cards and accounts are known by their check digits.


_CARD = re.compile(r"(?<![\w.-])[3-6]\d{3}(?>(?:[ -]?\d){8,14})(?!\w|[.-]\d)", re.ASCII)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?>(?: ?[A-Z0-9]){11,30})(?!\w)", re.ASCII)
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
