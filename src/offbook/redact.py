"""Secrets, replaced before anything is stored or indexed. The kind stays: `[redacted:github-token]`.

Tokens are known by their spelling, passwords by what stands before them. What could hold one is found by plain
substring searches; patterns run only there. Every repetition is possessive or bounded: nothing backtracks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from offbook.content import Path, is_binary_path, replace, strings
from offbook.types import Message

ROUNDS = 4
"""What stands beside a secret may be recognised only once that is gone. Text without secrets takes one round."""


def redact_text(text: str) -> tuple[str, dict[str, int]]:
    """The text without its secrets, and how many of each kind it had."""
    counts: Counter[str] = Counter()
    for _ in range(ROUNDS):
        redacted = _redact_once(text, counts)
        if redacted == text:
            break
        text = redacted
    return text, dict(counts)


def redact_message(message: Message) -> tuple[Message, dict[str, int]]:
    """The message without its secrets: content, name and meta, not its ids and not its binaries.

    The very same message where there was nothing to replace.
    """
    counts: Counter[str] = Counter()
    changed: dict[str, Any] = {}
    for field in ("content", "name", "meta"):
        value = getattr(message, field)
        replacements = _redactions(value, counts)
        if replacements:
            changed[field] = replace(value, replacements)
    return (msgspec.structs.replace(message, **changed) if changed else message), dict(counts)


# ── what is no secret after all ───────────────────────────────────────────────────────────────

_MASKS = frozenset("*xX•●·.#-_?…")
_STANDS_FOR_ANOTHER = re.compile(
    r"\[redacted|<[^<>]*>\Z|\{.*\}\Z|\[.*\]\Z|\$(?:\{|\(|[A-Za-z_]\w*\W?\Z)|%\(?\w+[%)]|__\w+__\Z|@[\w.]+\Z|env:"
    r"|(?:\.{0,2}|~)/|[A-Za-z]:\\|https?://|.{0,40}(?:\.\.\.|…)|.{0,40}[xX*]{6}"
)
_TALKS_OF_IT = re.compile(
    r"(?i)pass(?:w(?:or)?d|wort|phrase|code)|pwd|secret|token|api.?key|credential|your|example|placeholder"
    r"|change.?me|redacted|hidden|removed|omitted|enter|insert|replace|密码|密碼|パスワード"
)
_ORDINARY_WORD = re.compile(
    r"(?i)(?:accepted|boolean|bytes|changed|correct|default|denied|disabled|empty|enabled|encrypted|expired|function|hashed"
    r"|incorrect|integer|invalid|length|missing|needed|nothing|number|object|optional|pass|plaintext|please"
    r"|protected|public|rejected|required|stored|strings?|unchanged|undefined|unknown|unset|updated?|varchar"
    r"|verified|wrong)\Z"
)
_REMARK = re.compile(r"(?i)\b(?:must|should|please|is|are|be|the|at least|cannot|characters|field)\b")
_CODE = re.compile(r"[A-Za-z_$&*][\w$]*+(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*+)*+(?:[(\[{]|!?\Z)")
_TYPE_NAME = re.compile(r"(?:[A-Z][a-z]+)+")
_PROPERTY = re.compile(r"(?i)(?:sha|md|aes|rsa|utf|base|bcrypt|pbkdf|argon|scrypt|[0-9]+-?(?:char|digit|bit|byte))")
_NOT_A_START = tuple(":=>|(){},;&")
_SECRET_KEY = re.compile(r"(?i)(?:api|auth|access|account|encryption|master|private|signing)[_-]?\Z")
_PAGE_TOKEN = re.compile(r"(?i)(?:page|next|sync)[_-]?\Z")


def _is_placeholder(value: str) -> bool:
    if _STANDS_FOR_ANOTHER.match(value) or _MASKS.issuperset(value) or _ORDINARY_WORD.match(value):
        return True
    return len(value) < 200 and not _has_digit(value) and _TALKS_OF_IT.search(value) is not None


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


def _looks_random(value: str) -> bool:
    return len(value) >= 16 and _has_digit(value) and any(map(str.isalpha, value))


def _is_given(match: re.Match[str], value: str) -> bool:
    return not _is_placeholder(value)


def _is_credentials(match: re.Match[str], value: str) -> bool:
    return not _is_placeholder(value) and (_has_digit(value) or not value.islower())


def _is_assigned(match: re.Match[str], value: str) -> bool:
    if _is_placeholder(value):
        return False
    return _is_quoted_secret(match, value) if match["quoted"] is not None else _is_bare_secret(match, value)


def _is_assigned_key(match: re.Match[str], value: str) -> bool:
    is_likely = _has_digit(value) or (len(value) >= 20 and not value.islower())
    return is_likely and bool(_SECRET_KEY.search(_before(match, 20))) and _is_assigned(match, value)


def _is_assigned_token(match: re.Match[str], value: str) -> bool:
    return _looks_random(value) and not _PAGE_TOKEN.search(_before(match, 5)) and _is_assigned(match, value)


def _is_quoted_secret(match: re.Match[str], value: str) -> bool:
    if not any(map(str.isspace, value)):
        return True
    # Several words are a passphrase only where the name is quoted too, as in JSON.
    return match["close"].rstrip("*]")[-1:] in ("'", '"') and not _REMARK.search(value)


def _is_bare_secret(match: re.Match[str], value: str) -> bool:
    separator, after = match["separator"], match.string[match.end() : match.end() + 1]
    if len(value) < 6 or value.startswith(_NOT_A_START) or ("`" in match["close"] and after == " "):
        return False
    if separator.strip(" \t\n:") in ("is", "was", *"是为為は"):
        return _has_digit(value) and any(map(str.isalpha, value)) and not _PROPERTY.match(value)
    if not value.isalpha():
        return not _CODE.match(value) or (_has_digit(value) and value.replace("_", "").isalnum())
    if not value.isascii() or value != match["bare"]:
        return False
    # A word is the value of a setting where nothing else stands on the line, else prose or a variable.
    if separator == "=" and _before(match, 1) in ("?", "&"):
        return True
    line = _before(match, 80).rpartition("\n")[2].strip().removeprefix("export ")
    is_alone = after in ("", "\n", "\r") and not any(map(str.isspace, line))
    return is_alone and (separator == "=" or (":" in separator and not _TYPE_NAME.fullmatch(value)))


def _before(match: re.Match[str], chars: int) -> str:
    return match.string[max(0, match.start() - chars) : match.start()]


# ── rules ─────────────────────────────────────────────────────────────────────────────────────


class _Rule(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    """The secret is its group `quoted`, `bare` or `value`, else all of it."""
    is_secret: Callable[[re.Match[str], str], bool] | None = None


def _rule(kind: str, pattern: str, is_secret: Callable[[re.Match[str], str], bool] | None = None) -> _Rule:
    return _Rule(kind, re.compile(pattern), is_secret)


# Random text of this length has a digit; hyphenated words that begin like a token have none.
_DIGIT = r"(?=[A-Za-z_.-]*+[0-9])"

# Known by their spelling, each behind a hint that is looked for only in the long unbroken runs of the text.
_TOKEN_RULES = {
    "offbook_": _rule("offbook-token", r"offbook_(?<![A-Za-z0-9_]offbook_)(?=[a-z_-]*+[A-Z0-9])[A-Za-z0-9_-]{32,}+"),
    "sk-ant-": _rule("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    "sk-": _rule("openai-key", rf"sk-(?<![A-Za-z0-9_-]sk-){_DIGIT}[A-Za-z0-9_-]{{20,}}+"),
    "A[KS]IA": _rule("aws-key", r"A[KS]IA(?<![A-Za-z0-9/+]....)[A-Z0-9]{16}(?![A-Za-z0-9/+])"),
    "gh[pousr]_": _rule("github-token", r"gh[pousr]_[A-Za-z0-9_]{36,}+"),
    "github_pat_": _rule("github-token", r"github_pat_[A-Za-z0-9_]{22,}+"),
    "gl[a-z]{2,5}-": _rule(
        "gitlab-token", rf"gl(?:pat|ptt|oas|[drf]t|cbt|soat|imt|agent)-{_DIGIT}[A-Za-z0-9_.-]{{20,}}+"
    ),
    "xox[a-z][.-]": _rule("slack-token", rf"xox[a-z](?:\.xox[a-z])?-{_DIGIT}[A-Za-z0-9-]{{10,}}+"),
    "xapp-": _rule("slack-token", rf"xapp-{_DIGIT}[A-Za-z0-9-]{{10,}}+"),
    r"hooks\.slack": _rule("slack-webhook", r"hooks\.slack\.com/[a-z]{5,12}/(?P<value>[A-Za-z0-9/_+-]{20,}+)"),
    "/api/webhooks/": _rule("discord-webhook", r"/api/webhooks/[0-9]{15,20}/(?P<value>[A-Za-z0-9_-]{50,}+)"),
    "AIza": _rule("google-key", r"AIza(?<![A-Za-z0-9]AIza)[A-Za-z0-9_-]{35,}+"),
    r"ya29\.": _rule("google-oauth", r"ya29\.[A-Za-z0-9_-]{20,}+"),
    "GOCSPX-": _rule("google-oauth", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    "1//0": _rule("google-oauth", rf"1//0(?<![A-Za-z0-9]1//0){_DIGIT}[A-Za-z0-9_-]{{30,}}+"),
    "k_(?:live|test)_": _rule("stripe-key", rf"[sr](?<![A-Za-z0-9_][sr])k_(?:live|test)_{_DIGIT}[A-Za-z0-9]{{16,}}+"),
    "whsec_": _rule("stripe-key", r"whsec_[A-Za-z0-9+/=]{24,}+"),
    "SK[0-9a-f]{32}": _rule("twilio-key", r"SK(?<![A-Za-z0-9]SK)[0-9a-f]{32}(?![A-Za-z0-9])"),
    r"SG\.": _rule("sendgrid-key", r"SG\.(?<![A-Za-z0-9]SG\.)[A-Za-z0-9_-]{16,32}+\.[A-Za-z0-9_-]{16,}+"),
    "npm_": _rule("npm-token", r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{36,}+"),
    "pypi-AgE": _rule("pypi-token", r"pypi-AgE[A-Za-z0-9_-]{30,}+"),
    "hf_": _rule("huggingface-token", r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{30,}+"),
    # The bot's number before the colon and the account before the first dot are not secret.
    ":AA": _rule("telegram-bot-token", r":(?P<value>AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{32,34})(?![A-Za-z0-9_-])"),
    r"\.[A-Za-z0-9_-]{6}\.": _rule(
        "discord-token",
        r"\.(?:(?<=[MNO][A-Za-z0-9_-]{23}\.)|(?<=[MNO][A-Za-z0-9_-]{25}\.))"
        rf"(?P<value>[A-Za-z0-9_-]{{6}}\.{_DIGIT}[A-Za-z0-9_-]{{27,}}+)",
    ),
    "eyJ": _rule("jwt", r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{10,}+(?:\.{1,2}[A-Za-z0-9_-]{10,}+){1,4}+"),
}
_ANY_HINT = re.compile("|".join(_TOKEN_RULES))

_BREAK = r"(?:\s|\\+[nrt]|[\"'+,>|]){0,200}+"
_PEM = r"(?:[A-Z0-9]+ ){0,4}?PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY = _rule(
    "private-key",
    rf"-----BEGIN {_PEM}(?:{_BREAK}(?:Proc-Type|DEK-Info|Version|Comment|Hash): ?[^\n\\]{{0,200}}+){{0,8}}+"
    rf"(?:{_BREAK}[A-Za-z0-9/=][A-Za-z0-9+/=]{{15,}}+)++"  # a mention of the header alone is no key
    rf"(?:{_BREAK}[A-Za-z0-9/=][A-Za-z0-9+/=]{{0,15}}+(?={_BREAK}(?:-----|…|\.\.\.)))?+"
    rf"(?:{_BREAK}-----END {_PEM})?+",
)

_BARE = r"(?P<bare>(?:(?![&,;]\w{1,40}=)[^\s\"'`<>\u2e80-\uffef]){6,}+)"  # no password is in Chinese
_ASSIGNED = (
    r"(?P<close>\\*+[\"'`*\]]{0,3}+)"
    r"(?P<separator>[ \t]{0,4}(?::=|=>|={1,3}|[:：＝])[ \t*]{0,4}|\s(?:is|was):?\s|[是为為は]\s?"
    r"|(?i:(?<=--password)|(?<=--secret)|(?<=--token)|(?<=--api-key))[ \t]{1,3})"
    r"(?:[bBfFrRuU]{0,2}(?P<slashes>\\*+)(?P<quote>[\"'`])"
    r"(?P<quoted>(?:(?!(?P=slashes)(?P=quote))(?:\\[^\n]|[^\\\n])){6,1000}+)(?P=slashes)(?P=quote)|" + _BARE + ")"
)
_HEADER = r"[\"'\\]{0,4}\s{0,3}[:=,]\s{0,3}[\"'\\]{0,4}"
_CREDENTIALS = (
    rf"(?i:authorization){_HEADER}(?i:bearer|basic|token|apikey)\s{{1,3}}(?P<value>(?:[\w~+/=-]|\.(?=\w)){{8,}}+)"
)
_AWS_SECRET = rf"(?i:secret[_-]?(?:access[_-]?)?key){_HEADER}(?P<value>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])"
_PASSWORD = _rule("password", rf"(?i:pwd|pass(?:word|wd|phrase|code|wort|(?<=_pass))){_ASSIGNED}", _is_assigned)
_URL_PASSWORD = _rule("url-password", r"://[^\s/:@\"'<>]{0,256}+:(?P<value>[^\s/@\"'<>]{1,256}+)@", _is_given)

_SECRET = _rule("secret", rf"(?i:secret(?:[_-]?(?:access[_-]?)?key)?){_ASSIGNED}", _is_assigned)
_ELEMENT = _rule("password", r"(?i:password)>(?P<value>[^<>\s]{6,200}+)</", _is_given)

# Known by what stands before them: the word where the rules are tried, in lower case.
_NAMED_RULES = (
    (b"authorization", (_rule("bearer-token", _CREDENTIALS, _is_credentials),)),
    (b"secret", (_rule("aws-secret", _AWS_SECRET, _is_credentials), _SECRET)),
    (b"key", (_rule("secret", rf"(?i:key){_ASSIGNED}", _is_assigned_key),)),
    (b"pass", (_PASSWORD, _ELEMENT)),
    (b"pwd", (_PASSWORD,)),
)
_NAMED_LONG_RULES = (
    (b"bearer ", (_rule("bearer-token", rf"(?i:bearer) (?P<value>{_DIGIT}(?:[A-Za-z0-9_~+/-]|\.(?=\w)){{20,}}+=*+)"),)),
    (b"token", (_rule("secret", rf"(?i:token){_ASSIGNED}", _is_assigned_token),)),
)
_ABROAD = ("密码", "密碼", "パスワード", "비밀번호", "пароль", "Пароль", "contraseña", "Contraseña")
_PASSWORD_ABROAD = _rule("password", rf"(?:{'|'.join(_ABROAD)}){_ASSIGNED}", _is_assigned)

# ── one round ─────────────────────────────────────────────────────────────────────────────────

Found = Iterator[tuple[int, int, str]]
"""Where secrets lie, from and to, and of which kind. They may overlap."""

# A table of classes turns "where are unbroken runs long enough to be a token" into two scans in C.
_RUN_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+="
_CLASSES = bytes(ord("a") if code in _RUN_CHARS else ord(" ") for code in range(256))
_SHORTEST_RUN = b"a" * 16


def _redact_once(text: str, counts: Counter[str]) -> str:
    pieces: list[str] = []
    end_of_last = 0
    # Sorting is stable: where two rules name the same place, the one tried first tells the kind.
    for start, end, kind in sorted(_secrets(text), key=itemgetter(0)):
        if start >= end_of_last:
            pieces += (text[end_of_last:start], f"[redacted:{kind}]")
            counts[kind] += 1
            end_of_last = end
    return "".join((*pieces, text[end_of_last:])) if pieces else text


def _secrets(text: str) -> Found:
    ascii_text = text.encode("ascii", "replace")  # one byte a character: places are the same in both
    lowered = ascii_text.lower()
    runs = _long_runs(ascii_text)
    if runs:
        if b"PRIVATE KEY" in ascii_text:
            yield from _judged(_PRIVATE_KEY, _PRIVATE_KEY.pattern.finditer(text))
        if _ANY_HINT.search(runs):
            for hint, rule in _TOKEN_RULES.items():
                if re.search(hint, runs):
                    yield from _judged(rule, rule.pattern.finditer(text))
    if b"@" in ascii_text:
        yield from _judged(_URL_PASSWORD, _URL_PASSWORD.pattern.finditer(text))
    # A pattern that ignores case is slow to search with; finding its first word in lower case is not.
    for word, rules in (*_NAMED_LONG_RULES, *_NAMED_RULES) if runs else _NAMED_RULES:
        if word in lowered:
            for rule in rules:
                yield from _judged(rule, _matches_at(word, lowered, rule.pattern, text))
    if not text.isascii() and any(word in text for word in _ABROAD):
        yield from _judged(_PASSWORD_ABROAD, _PASSWORD_ABROAD.pattern.finditer(text))


def _long_runs(ascii_text: bytes) -> str:
    classes = ascii_text.translate(_CLASSES)
    found = []
    start = classes.find(_SHORTEST_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        found.append(ascii_text[start : end if end >= 0 else len(ascii_text)])
        start = classes.find(_SHORTEST_RUN, end) if end >= 0 else -1
    return b" ".join(found).decode("ascii")


def _matches_at(word: bytes, lowered: bytes, pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    place = lowered.find(word)
    while place >= 0:
        match = pattern.match(text, place)
        if match:
            yield match
        # Within quotes there may be another; an unquoted value is one piece, and is read once.
        is_quoted = match and "quoted" in pattern.groupindex and match["quoted"] is not None
        place = lowered.find(word, match.end() if match and not is_quoted else place + len(word))


def _judged(rule: _Rule, matches: Iterable[re.Match[str]]) -> Found:
    for match in matches:
        start, end = _span_of_secret(match)
        if rule.is_secret is None or rule.is_secret(match, match.string[start:end]):
            yield start, end, rule.kind


def _span_of_secret(match: re.Match[str]) -> tuple[int, int]:
    groups = match.re.groupindex
    if "bare" not in groups:
        return match.span("value" if "value" in groups else 0)
    if match["quoted"] is not None:
        return match.span("quoted")
    return match.start("bare"), match.start("bare") + len(match["bare"].rstrip(".,;:!?)]}"))


# ── structured data ───────────────────────────────────────────────────────────────────────────

_ID_KEYS = frozenset({"id", "toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "call_id"})
_DATA_KEYS = frozenset({"arguments", "input", "args", "parameters", "output", "details"})
_PASSWORD_FIELDS = ("password", "passwd", "passphrase", "passcode", "passwort", "pwd")
_KEY_FIELDS = ("apikey", "accesskey", "secretkey", "privatekey", "authkey")
_TOKEN_FIELDS = ("accesstoken", "authtoken", "refreshtoken", "apitoken", "bottoken", "idtoken", "sessiontoken")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)\s+\S{6,}\Z")


def _redactions(value: Any, counts: Counter[str]) -> dict[Path, str]:
    replacements: dict[Path, str] = {}
    for path, text in strings(value):
        if path and path[-1] in _ID_KEYS and _DATA_KEYS.isdisjoint(path):
            continue
        kind = _kind_by_name(path[-1], text) if path and isinstance(path[-1], str) else None
        redacted, found = (f"[redacted:{kind}]", {kind: 1}) if kind else redact_text(text)
        if found and not is_binary_path(value, path):
            replacements[path] = redacted
            counts.update(found)
    return replacements


def _kind_by_name(field: str, value: str) -> str | None:
    """The kind of secret a field holds, by its name."""
    name = field.lower().replace("_", "").replace("-", "").replace(" ", "")
    if not 6 <= len(value) <= 4096 or _is_placeholder(value):
        return None
    if name == "pass" or name.endswith(_PASSWORD_FIELDS):
        return "password" if len(value) <= 200 and not _REMARK.search(value) else None
    if name.endswith("authorization"):
        return "bearer-token" if _SCHEME.match(value) else None
    if any(map(str.isspace, value)):
        return None
    is_key = name.endswith(_KEY_FIELDS) and _has_digit(value)
    is_token = (name == "token" or name.endswith(_TOKEN_FIELDS)) and _looks_random(value)
    return "secret" if name.endswith("secret") or is_key or is_token else None
