"""What a secret looks like, read from `data/secret_rules.txt` when it is first needed."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

_MACROS = {
    "NUM": r"(?=[A-Za-z_+/%~-]{0,99}+[0-9])",
    "HEADER": r"[\"'\\]{0,4}\s{0,3}[:=,]\s{0,3}[\"'\\]{0,4}",
    "WORDS": r"(?:GAP(?!COMMAND)[^\s|;&]{1,100}+){0,12}?",
    "GAP": r"(?>(?:[ \t]|\\\r?\n){1,8})",
    "PORT": r"(?:ort\b|[ \t]{0,3}(?:[\d.]{1,15}:)?\d{1,5}(?::\d{1,5})?(?:/\w{1,4})?(?![^\s\"'|;&]))",
    "ARG": r"(?>(?P<quote>[\"'](?=[^\"'\n]{3,200}[\"']))?)(?P<value>(?(quote)[^\"'\n]{3,200}+|[^\s\"'|;&]{3,200}+))",
}
_HEX = "[0-9A-Fa-f]"
ESCAPES = (rf"%25{_HEX}{{2}}", rf"%{_HEX}{{2}}", rf"\\u{_HEX}{{4}}", rf"\\x{_HEX}{{2}}", r"\\[0-7]{3}", r"\\[abefnrtv]")
"""Of one character, each of a fixed length."""
_COMMAND = re.compile(r"[a-z0-9-]+")
_ALNUM = re.compile(r"[A-Za-z0-9]+")


class Rule(NamedTuple):
    kind: str
    hint: str
    """What the text must hold for the pattern to be tried."""
    source: str

    @property
    def is_longer_than_a_run(self) -> bool:
        return any(beyond in self.source for beyond in (r"\s", r"\?"))

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.source)


class Rules(NamedTuple):
    tokens: dict[bytes, list[Rule]]
    """By the first letters and digits of what they begin with, three at most."""
    shapes: list[Rule]
    places: list[Rule]
    commands: list[Rule]
    hints: tuple[str, ...]
    """Those of `places`, each once."""

    @property
    def all(self) -> list[Rule]:
        tokens = [rule for rules in self.tokens.values() for rule in rules]
        return [*tokens, *self.shapes, *self.places, *self.commands]


@cache
def rules() -> Rules:
    sections: dict[str, list[Rule]] = {"tokens": [], "names": [], "shapes": [], "places": [], "commands": []}
    not_before, name = {"tokens": "[A-Za-z0-9]", "names": r"[\w-]"}, "tokens"
    for line in files("offbook.ingest").joinpath("data/secret_rules.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line and not line.startswith("#"):
            kind, hint, pattern = line.split(maxsplit=2)
            if name in not_before:
                starts = hint.split("|")
                sections[name] += [_rule(kind, start, _free(start, not_before[name]) + pattern) for start in starts]
            else:
                sections[name].append(_rule(kind, hint, pattern))
    by_head: dict[bytes, list[Rule]] = defaultdict(list)
    for rule in (*sections["tokens"], *sections["names"]):
        by_head[head_of(rule.hint)].append(rule)
    hints = tuple(dict.fromkeys(rule.hint for rule in sections["places"]))
    return Rules(dict(by_head), sections["shapes"], sections["places"], sections["commands"], hints)


def head_of(start: str) -> bytes:
    piece = _ALNUM.match(start)
    assert piece is not None, start
    return piece[0][:3].encode()


def _free(start: str, not_before: str) -> str:
    """Looks back only after it, so that the pattern begins with plain letters, which are found fast."""
    escaped = re.escape(start)
    after_escapes = "".join(rf"|(?<={escape}{escaped})" for escape in ESCAPES)
    return rf"{escaped}(?:(?<!{not_before}{escaped}){after_escapes})"


def _rule(kind: str, hint: str, pattern: str) -> Rule:
    for name, meaning in _MACROS.items():
        pattern = pattern.replace(name, meaning)
    # What was taken out already is not looked at again.
    for group in ("value", "strong", "pairs"):
        pattern = pattern.replace(f"(?P<{group}>", rf"(?!\[redacted:)(?P<{group}>")
    command = _COMMAND.match(pattern)
    return Rule(kind, hint, pattern.replace("COMMAND", command[0] if command else ""))


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.ASCII)


# ── Whether what stands where a secret would stand is one ──
# Or a placeholder, a word, or code.


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
_CODE = re.compile(r"[A-Za-z_$&*][\w$]*+(?>(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*+)*)(?:[(\[{]|!?\Z)")
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


# ── A text as somebody reads it who means to use what it says ──
# Without what is not seen, without line breaks in a token.
# A view is a shorter or plainer text, and the places that were cut out of it; what is found in it is told in the
# places of the text itself.


Span = tuple[int, int, str]

_UNSEEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufe00-\ufe0f\ufeff]+"
    r"|(?:\x1b|\\{1,4}+(?:[xX]1[bB]|u001[bB]|033|e))\[[0-9;?]{0,20}+[A-Za-z]"  # colours of a terminal, also written out
)
_COLOURS = ("\x1b[", "1b[", "033[", "\\e[", "1B[")
_STYLED = re.compile("[\uff0b\uff0d-\uff19\uff1d\uff20-\uff3a\uff3f\uff41-\uff5a]")
"""Fullwidth letters, digits and what else tokens hold."""

# Either of them after an ASCII character, as the bytes of UTF-8: these are found much faster.
_ODD = (
    re.compile(rb"\xe2(?<=[\x00-\x7f]\xe2)(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf])"),
    re.compile(rb"\xef(?<=[\x00-\x7f]\xef)(?:\xb8[\x80-\x8f]|\xbb\xbf)"),
    re.compile(rb"\xef(?:\xbc[\x8b\x8d-\x99\x9d\xa0-\xba\xbf]|\xbd[\x81-\x9a])"),
    re.compile(rb"\xc2\xad"),
)

# A token may go on after a line break: what stands before it is no word, and what comes after has a digit and stands
# by itself, where a setting would have a `=` or `:`.
_RUN = r"[A-Za-z0-9_./+=-]"
_BROKEN = re.compile(
    r"\n(?=[ \t>|+\"']{0,12}+[A-Za-z_/+-]{0,40}+[0-9][A-Za-z0-9_/+-]{3})"
    rf"(?:(?<={_RUN}{{6}}\n)|(?<={_RUN}{{6}}[\r\\\"']\n)|(?<={_RUN}{{6}} \\\n))[ \t>|+\"']{{0,12}}+"
    r"(?=[A-Za-z0-9_/+-]{6,}+={0,2}(?:[\s\"'`,;.)\\]|\Z))"
)
_BEFORE_BREAK = "\r\\\"' "


class Reading:
    """A text, and what of it is looked through more than once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ascii = text.encode("ascii", "replace")
        """One byte a character: places are the same in both."""
        self.words = self.ascii.lower().decode("ascii")

    @cached_property
    def lowered(self) -> str:
        """Letter for letter: the one that becomes two is left as one."""
        return self.words if self.text.isascii() else self.text.replace("İ", "i").lower()


class View(NamedTuple):
    text: str
    cuts: Callable[[], Iterator[tuple[int, int]]]
    """What is left out, from and to, in the places of the text that was there before."""


def plainly(text: str) -> View | None:
    """Without zero-width characters and the like, and with plain letters; None where it is so already."""
    if not is_coloured(text):
        if text.isascii():
            return None
        data = text.encode("utf-8", "surrogatepass")
        if not any(odd.search(data) for odd in _ODD):
            return None
    plain = text
    for letter in set(_STYLED.findall(text)):
        normal = unicodedata.normalize("NFKC", letter)
        if len(normal) == 1:
            plain = plain.replace(letter, normal)
    return View(_UNSEEN.sub("", plain), lambda: (match.span() for match in _UNSEEN.finditer(text)))


def is_coloured(text: str) -> bool:
    return any(colour in text for colour in _COLOURS)


def is_broken(text: str) -> bool:
    """Whether a line break may lie in a token."""
    return _BROKEN.search(text) is not None


def unbroken(text: str) -> View | None:
    """With the line breaks taken out that may lie in a token; None where there are none."""
    if "\n" not in text:
        return None
    cuts = []
    for match in _BROKEN.finditer(text):
        start, end = match.span()
        while text[start - 1] in _BEFORE_BREAK:
            start -= 1
        cuts.append((start, end))
    if not cuts:
        return None
    starts, ends = (end for _, end in [(0, 0), *cuts]), (start for start, _ in [*cuts, (len(text), 0)])
    return View("".join(text[start:end] for start, end in zip(starts, ends, strict=True)), lambda: iter(cuts))


def restored(spans: Sequence[Span], cuts: Iterable[tuple[int, int]]) -> list[Span]:
    """The places of what was found in a view, in the text that it is a view of."""
    wanted = sorted({place for start, end, _ in spans for place in (start, end - 1)})
    places: dict[int, int] = {}
    removed, left = 0, iter(cuts)
    cut = next(left, None)
    for place in wanted:
        while cut is not None and cut[0] - removed <= place:
            removed += cut[1] - cut[0]
            cut = next(left, None)
        places[place] = place + removed
    return [(places[start], places[end - 1] + 1, kind) for start, end, kind in spans]
