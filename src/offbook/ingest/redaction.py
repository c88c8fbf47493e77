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

from offbook.model.content import Path, is_binary_path, replace, strings
from offbook.model.types import Message

_ID_KEYS = frozenset({"id", "toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "call_id"})
_DATA_KEYS = frozenset({"arguments", "input", "args", "parameters", "output", "details"})
ROUNDS = 4
"""What stands beside a secret may be recognised only once that is gone. Text without secrets takes one round."""


def redact_text(text: str) -> tuple[str, dict[str, int]]:
    """The text without its secrets, and how many of each kind it had."""
    if _is_harmless(text):
        return text, {}
    counts: Counter[str] = Counter()
    return _redact(text, None, counts), dict(counts)


def redact_message(message: Message) -> tuple[Message, dict[str, int]]:
    """The message without its secrets: content, labels and meta, not its ids and not its binaries.

    The very same message where there was nothing to replace.
    """
    labels = (message.name, message.origin, message.model)
    if labels == (None, None, None) and message.meta is None and isinstance(message.content, str):
        text, kinds = redact_text(message.content)
        return (msgspec.structs.replace(message, content=text) if kinds else message), kinds
    counts: Counter[str] = Counter()
    changed: dict[str, Any] = {}
    for field in ("content", "name", "origin", "model", "meta"):
        value = getattr(message, field)
        replacements = _redactions(value, counts)
        if replacements:
            changed[field] = replace(value, replacements)
    return (msgspec.structs.replace(message, **changed) if changed else message), dict(counts)


def _redactions(value: Any, counts: Counter[str]) -> dict[Path, str]:
    replacements: dict[Path, str] = {}
    for path, text in strings(value):
        is_id = bool(path) and path[-1] in _ID_KEYS and _DATA_KEYS.isdisjoint(path)
        if is_id or is_binary_path(value, path):
            continue
        redacted = _redact(text, path[-1] if path else None, counts)
        if redacted != text:
            replacements[path] = redacted
    return replacements


def _redact(text: str, field: str | int | None, counts: Counter[str]) -> str:
    for _ in range(ROUNDS):
        redacted = _redact_once(text, field, counts)
        if redacted == text:
            break
        text = redacted
    return text


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
    r"(?i)(?:accepted|boolean|bytes|changed|correct|default|denied|disabled|empty|enabled|encrypted|expired|hashed"
    r"|function|incorrect|integer|invalid|length|missing|needed|nothing|number|object|optional|pass|plaintext|please"
    r"|protected|public|rejected|required|stored|strings?|unchanged|undefined|unknown|unset|updated?|varchar"
    r"|verified|wrong)\Z"
)
_REMARK = re.compile(r"(?i)\b(?:must|should|please|is|are|be|the|at least|cannot|characters|field)\b")
_CODE = re.compile(r"[A-Za-z_$&*][\w$]*+(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*+)*+(?:[(\[{]|!?\Z)")
_TYPE_NAME = re.compile(r"(?:[A-Z][a-z]+)+")
_PROPERTY = re.compile(r"(?i)(?:sha|md|aes|rsa|utf|base|bcrypt|pbkdf|argon|scrypt|[0-9]+-?(?:char|digit|bit|byte))")
_NOT_A_START = tuple(":=>|(){},;&")
_SECRET_KEY = re.compile(r"(?i)(?:api|auth|access|account|encryption|master|private|signing)[_ -]?\Z")
_PAGE_TOKEN = re.compile(r"(?i)(?:page|next|sync)[_-]?\Z")


def _is_placeholder(value: str) -> bool:
    if _STANDS_FOR_ANOTHER.match(value) or _MASKS.issuperset(value) or _ORDINARY_WORD.match(value):
        return True
    return len(value) < 200 and not _has_digit(value) and _TALKS_OF_IT.search(value) is not None


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


def _is_given(match: re.Match[str], value: str) -> bool:
    return not _is_placeholder(value)


def _is_credentials(match: re.Match[str], value: str) -> bool:
    return not _is_placeholder(value) and (_has_digit(value) or not value.islower())


def _is_assigned(match: re.Match[str], value: str) -> bool:
    if _is_placeholder(value):
        return False
    if match["quoted"] is None:
        return _is_bare_secret(match, value)
    if not any(map(str.isspace, value)):
        return True
    # Several words are a passphrase only where the name is quoted too, as in JSON.
    is_named_in_quotes = match["close"].rstrip("*]")[-1:] in ("'", '"')
    return match.re is _PASSWORD.pattern and is_named_in_quotes and not _REMARK.search(value)


def _is_assigned_key(match: re.Match[str], value: str) -> bool:
    is_likely = _has_digit(value) or (len(value) >= 20 and not value.islower())
    return is_likely and bool(_SECRET_KEY.search(_before(match, 20))) and _is_assigned(match, value)


def _is_assigned_token(match: re.Match[str], value: str) -> bool:
    looks_random = len(value) >= 16 and _has_digit(value) and any(map(str.isalpha, value))
    return looks_random and not _PAGE_TOKEN.search(_before(match, 5)) and _is_assigned(match, value)


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


Verdict = Callable[[re.Match[str], str], bool]


class _Rule(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    """The secret is its group `quoted`, `bare` or `value`, else all of it."""
    is_secret: Verdict | None


def _rule(kind: str, pattern: str, is_secret: Verdict | None = None) -> _Rule:
    return _Rule(kind, re.compile(pattern), is_secret)


# Random text of this length has a digit; hyphenated words that begin like a token have none.
_DIGIT = r"(?=[A-Za-z_.+/~-]{0,99}+[0-9])"

# Known by their spelling: the kind, a hint that is looked for only in the long unbroken runs of the text, and the
# pattern. The number before a bot's colon and the account before a first dot are no secret, and stay.
_TOKENS = r"""
offbook-token      offbook_       offbook_(?<![A-Za-z0-9_]offbook_)(?=[a-z_-]{0,99}+[A-Z0-9])[A-Za-z0-9_-]{32,}+
anthropic-key      sk-ant-        sk-ant-[A-Za-z0-9_-]{16,}+
openai-key         sk-            sk-(?<![A-Za-z0-9_-]sk-)DIGIT[A-Za-z0-9_-]{20,}+
aws-key            A[KS]IA        A[KS]IA(?<![A-Za-z0-9/+]....)[A-Z0-9]{16}(?![A-Za-z0-9/+])
github-token       gh[pousr]_     gh[pousr]_[A-Za-z0-9_]{36,}+
github-token       github_pat_    github_pat_[A-Za-z0-9_]{22,}+
gitlab-token       gl[a-z]{2,5}-  gl(?:[drf]t|pat|ptt|oas|cbt|soat|imt|agent)-DIGIT[A-Za-z0-9_-]{20,}+(?:\.\w++)*+
slack-token        xox[a-z][.-]   xox[a-z](?:\.xox[a-z])?-DIGIT[A-Za-z0-9-]{10,}+
slack-token        xapp-          xapp-DIGIT[A-Za-z0-9-]{10,}+
slack-webhook      hooks\.slack   hooks\.slack\.com/[a-z]{5,12}/(?P<value>[A-Za-z0-9/_+-]{20,}+)
discord-webhook    /api/webhooks  /api/webhooks/[0-9]{15,20}/(?P<value>[A-Za-z0-9_-]{50,}+)
discord-token      \.[\w-]{6}\.   \.(?<=[MNO][A-Za-z0-9_-]{23}\.)(?P<value>[A-Za-z0-9_-]{6}\.DIGIT[A-Za-z0-9_-]{27,}+)
discord-token      \.[\w-]{6}\.   \.(?<=[MNO][A-Za-z0-9_-]{25}\.)(?P<value>[A-Za-z0-9_-]{6}\.DIGIT[A-Za-z0-9_-]{27,}+)
telegram-bot-token :AA            :(?P<value>AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{32,34})(?![A-Za-z0-9_-])
google-key         AIza           AIza(?<![A-Za-z0-9]AIza)[A-Za-z0-9_-]{35,}+
google-oauth       ya29\.         ya29\.[A-Za-z0-9_-]{20,}+
google-oauth       GOCSPX-        GOCSPX-[A-Za-z0-9_-]{20,}+
google-oauth       1//0           1//0(?<![A-Za-z0-9]1//0)DIGIT[A-Za-z0-9_-]{30,}+
stripe-key         k_live_        [sr](?<![A-Za-z0-9_][sr])k_live_DIGIT[A-Za-z0-9]{16,}+
stripe-key         k_test_        [sr](?<![A-Za-z0-9_][sr])k_test_DIGIT[A-Za-z0-9]{16,}+
stripe-key         whsec_         whsec_[A-Za-z0-9+/=]{24,}+
twilio-key         SK[0-9a-f]{32} SK(?<![A-Za-z0-9]SK)[0-9a-f]{32}(?![A-Za-z0-9])
sendgrid-key       SG\.           SG\.(?<![A-Za-z0-9]SG\.)[A-Za-z0-9_-]{16,32}+\.[A-Za-z0-9_-]{16,}+
npm-token          npm_           npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{36,}+
pypi-token         pypi-AgE       pypi-AgE[A-Za-z0-9_-]{30,}+
huggingface-token  hf_            hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{30,}+
jwt                eyJ            eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{10,}+(?:\.{1,2}[A-Za-z0-9_-]{10,}+){1,4}+
"""
_ROWS = [row.replace("DIGIT", _DIGIT).split() for row in _TOKENS.strip().splitlines()]
_TOKEN_RULES = [(re.compile(hint), _rule(kind, pattern)) for kind, hint, pattern in _ROWS]
_ANY_HINT = re.compile("|".join(hint.pattern for hint, _ in _TOKEN_RULES))

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
_CREDENTIALS = rf"(?i:authorization){_HEADER}(?i:bearer|basic|token) (?P<value>(?:[\w~+/=-]|\.(?=\w)){{8,}}+)"
_AWS_SECRET = rf"(?i:secret[_-]?(?:access[_-]?)?key){_HEADER}(?P<value>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])"
_PASSWORD = _rule("password", rf"(?i:pwd|pass(?:word|wd|phrase|code|wort|(?<=[_\"']pass))){_ASSIGNED}", _is_assigned)
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
_TELLING_FIELD = re.compile(r"(?i)authorization|secret|key|pass|pwd|token")
_PLAIN = str.maketrans("\\\"'`\n", "_____")


def _is_harmless(text: str) -> bool:
    """Whether nothing in the text could be part of a secret: so it is with most of what people say."""
    if not text.isascii():
        return False
    ascii_text = text.encode("ascii")
    if b"@" in ascii_text or _SHORTEST_RUN in ascii_text.translate(_CLASSES):
        return False
    lowered = ascii_text.lower()
    return all(word not in lowered for word, _ in _NAMED_RULES)


def _redact_once(text: str, field: str | int | None, counts: Counter[str]) -> str:
    secrets = [*_secrets(text), *(_secrets_of_field(field, text) if isinstance(field, str) else ())]
    if not secrets:
        return text
    # Sorting is stable: where two rules name the same place, the one tried first tells the kind and the end.
    secrets.sort(key=itemgetter(0))
    pieces: list[str] = []
    start_of_last = end_of_last = 0
    for start, end, kind in secrets:
        if start >= end_of_last:
            pieces += (text[end_of_last:start], f"[redacted:{kind}]")
            counts[kind] += 1
            start_of_last, end_of_last = start, end
        elif start > start_of_last:
            end_of_last = max(end, end_of_last)
    return "".join((*pieces, text[end_of_last:])) if pieces else text


def _secrets(text: str) -> Found:
    ascii_text = text.encode("ascii", "replace")  # one byte a character: places are the same in both
    runs = _long_runs(ascii_text)
    if runs:
        if b"PRIVATE KEY" in ascii_text:
            yield from _judged(_PRIVATE_KEY, _PRIVATE_KEY.pattern.finditer(text))
        if _ANY_HINT.search(runs):
            for hint, rule in _TOKEN_RULES:
                if hint.search(runs):
                    yield from _judged(rule, rule.pattern.finditer(text))
    if b"@" in ascii_text:
        yield from _judged(_URL_PASSWORD, _URL_PASSWORD.pattern.finditer(text))
    yield from _named(text, ascii_text.lower(), (*_NAMED_LONG_RULES, *_NAMED_RULES) if runs else _NAMED_RULES)
    if not text.isascii() and any(word in text for word in _ABROAD):
        yield from _judged(_PASSWORD_ABROAD, _PASSWORD_ABROAD.pattern.finditer(text))


def _secrets_of_field(field: str, value: str) -> Found:
    """What the name of its field tells of a value: read as it would stand in JSON."""
    if _TELLING_FIELD.search(field):
        head = f'"{field}": "'
        written = f'{head}{value.translate(_PLAIN)}"'
        lowered = written.encode("ascii", "replace").lower()
        for start, end, kind in _named(written, lowered, (*_NAMED_LONG_RULES, *_NAMED_RULES)):
            if start >= len(head):
                yield start - len(head), end - len(head), kind


def _named(text: str, lowered: bytes, rules_by_word: Iterable[tuple[bytes, tuple[_Rule, ...]]]) -> Found:
    # A pattern that ignores case is slow to search with; finding its first word in lower case is not.
    for word, rules in rules_by_word:
        if word in lowered:
            for rule in rules:
                yield from _judged(rule, _matches_at(word, lowered, rule.pattern, text))


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
    groups = rule.pattern.groupindex
    group = "value" if "value" in groups else 0
    for match in matches:
        if "bare" in groups:
            group = "bare" if match["quoted"] is None else "quoted"
        start, end = match.span(group)
        end = start + len(match["bare"].rstrip(".,;:!?)]}")) if group == "bare" else end
        if rule.is_secret is None or rule.is_secret(match, match.string[start:end]):
            yield start, end, rule.kind
