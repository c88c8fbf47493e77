"""What others said, as one quoted line that cannot leave its place.

Nothing in the quote can end it, begin another line, or pose as a tag, a role or a section; what a reader would not
see is gone; what gives orders to a model stays readable, as ⟦…⟧, and is marked. What was altered looks altered: `<` is
`‹`, `System:` at the beginning of a line is `[System]:`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from offbook.context.orders import orders_in
from offbook.ingest.frames import neutralise
from offbook.model.lazy_pattern import lazy_pattern
from offbook.statements.words import cut

READ_TIMES = 4
READ_MORE_CHARS = 2000
"""Of a long text this many times the room, and so many characters more, are read: alterations make it shorter."""
LONGEST_TAG_CHARS = 300
LONGEST_ORDER_CHARS = 300
"""One that begins where the room ends is still seen whole."""

LINES_KEPT = 256
"""What comes to mind in one turn comes to mind in the next."""

HIDDEN = "hidden"
MARKUP = "markup"
INSTRUCTION = "instruction"

# ── what is not seen ──────────────────────────────────────────────────────────────────────────

_COLOUR = r"\x1b\[[0-9;:]{0,40}m"
_ESCAPE = r"\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|(?:\x1b\[|\x9b)[0-?]{0,40}[ -/]{0,8}[@-~]|\x1b[@-Z\\-_]"
_PICTURE = (
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    r"\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_ONE_EMOJI = rf"{_PICTURE}[\U0001f3fb-\U0001f3ff]?[\ufe0e\ufe0f]?"
# The flags of England, Scotland and Wales are spelt in tag characters; no other text in these is ordinary.
_FLAG = "\U0001f3f4(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(letter)) for letter in place) for place in ("gbeng", "gbsct", "gbwls"))
)
_EMOJI = rf"{_FLAG}|{_ONE_EMOJI}(?:\u200d{_ONE_EMOJI}){{0,9}}|[0-9#*]\ufe0f\u20e3"
# Signs that scripts, browsers and word processors put between letters, one or two at a time: no disguise, unless they
# split plain ones.
_ORDINARY = "\u00ad\u061c\u180e\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff"
_QUIET = (
    rf"(?<![!-~{_ORDINARY}])[{_ORDINARY}]{{1,2}}(?![{_ORDINARY}])|(?<![{_ORDINARY}])[{_ORDINARY}]{{1,2}}(?![!-~{_ORDINARY}])"
    rf"|(?<![{_ORDINARY}])\u00ad(?![{_ORDINARY}])"
    r"|(?<=[\u3400-\u9fff])[\U000e0100-\U000e01ef](?![\U000e0100-\U000e01ef])"
)
_UNSEEN = (
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SEEN_OR_NOT = lazy_pattern(
    rf"(?P<emoji>{_EMOJI})|(?P<quiet>{_COLOUR}|{_QUIET})|(?P<hidden>{_ESCAPE}|{_UNSEEN})|(?P<broken>[\ud800-\udfff])"
)

# ── what poses as something else ──────────────────────────────────────────────────────────────

_ROLES = (
    "system", "assistant", "user", "human", "tool", "developer", "function", "instruction", "instructions", "memory",
    "memories", "context", "prompt", "message", "offbook", "admin", "invoke", "thinking", "document",
)  # fmt: skip


def _spelt(name: str) -> str:
    """A name, in letters of any width, with or without blanks between them."""
    return " ?".join(f"[{letter}{chr(ord(letter) + 0xFEE0)}]" for letter in name)


_ANY_ROLE = "|".join(map(_spelt, sorted(_ROLES, key=len, reverse=True)))
_OPEN = r"(?:[<＜﹤]|&(?:amp;){0,3}(?:lt|#0{0,8}60|#x0{0,8}3c);|\\u003c|\\x3c|%3c)"
_CLOSE = r"(?:[>＞﹥]|&(?:amp;){0,3}(?:gt|#0{0,8}62|#x0{0,8}3e);|\\u003e|\\x3e|%3e)"
_SLASH = r"(?: ?[/／⁄∕] ?)"
_ADDRESS = r"[\w.+-]{1,64}@[\w.-]{1,255}>"
_OPENING = lazy_pattern(
    r"(?P<more>[<＜﹤]{0,3})(?:"
    rf"(?P<role>(?:{_OPEN}|&lt)(?! ?{_ADDRESS})(?= ?{_SLASH}?(?:{_ANY_ROLE})(?![^\W_])))"
    rf"|{_OPEN}(?!{_ADDRESS})(?={_SLASH}?[^\W\d]|[!?][\w\[-])"
    rf"|(?P<token>{_OPEN}(?=[|｜]\w| ?[|｜] ?[^\s<>|｜]{{1,40}} ?[|｜] ?{_CLOSE})))",
    re.IGNORECASE,
)
_CLOSING = re.compile(rf"(‹[^‹›<>＜＞\n]{{1,{LONGEST_TAG_CHARS}}}?){_CLOSE}(?P<twice>{_CLOSE})?", re.IGNORECASE)
_BRACKETED = re.compile(
    r"\[ ?(/? ?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|CONTROL_\d{1,4}|BOS|EOS)) ?\]", re.I
)
_ROLE_LINE = lazy_pattern(
    r"^(?P<before>[^\S\n]{0,8}[#>*_=|~+-]{0,8}[^\S\n]{0,8}[*_]{0,3})"
    r"(?P<role>(?:new |end of |begin )?(?:system|human|assistant|user|tool|developer|function|ai|model|instructions?)"
    r"(?: (?:message|prompt|note|instructions?|override|turn|result))?"
    r"|系统(?:提示|消息)?|系統|用户|用戶|助手|システム|ユーザー|アシスタント|시스템|사용자|어시스턴트|система|пользователь"
    r"|ассистент|sistema|usuario|usuário|asistente|assistente|système|utilisateur|benutzer|assistent|النظام|المستخدم)"
    r"(?P<after>[*_]{0,3}[^\S\n]{0,4}[:：﹕])",
    re.IGNORECASE | re.MULTILINE,
)
_WIDE = {wide: wide - 0xFEE0 for wide in (*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}
FENCE = re.compile(r"`{3,}")
# Whatever looks like the marks around a quote, or around an order in one, belongs to us.
_OUR_SIGNS = str.maketrans("“”„‟❝❞〝〞〟⟦⟧", "‘’‚‛‘’‘’’[]")


class Quoted(NamedTuple):
    text: str
    """One line, quotation marks and all."""
    marks: tuple[str, ...]
    """Which of `hidden`, `instruction` and `markup` were found, sorted."""


@lru_cache(LINES_KEPT)
def quoted(text: str, max_chars: int) -> Quoted:
    """The text in quotation marks, in whole sentences where possible, cut to `max_chars` with them."""
    text = text.lstrip()
    room = max(0, max_chars)
    most = READ_TIMES * room + READ_MORE_CHARS
    visible, has_hidden = _visible(text[:most])
    plain, has_markup = _as_plain_words(visible)
    # Cutting comes after altering: no half tag is left.
    is_more = len(text) > most or len(plain) > room + LONGEST_ORDER_CHARS
    plain = plain[: room + LONGEST_ORDER_CHARS]
    line = _closed(_fitting(_wrapped(plain, orders_in(plain), "⟦", "⟧"), room - 2, is_more=is_more))
    found = {HIDDEN: has_hidden, INSTRUCTION: "⟦" in line, MARKUP: has_markup}
    return Quoted(f"“{line}”" if max_chars >= 2 else "", tuple(mark for mark, is_found in found.items() if is_found))


def defused(text: str) -> str:
    """A text of ours that holds words of others, such as a summary: line by line as it is, but with nothing in it that
    poses as a tag or a role or is not seen, and with orders to a model marked."""
    visible, _ = _visible(_with_one_line_end(text))
    lines = [_without_tags(_BRACKETED.sub(r"(\1)", line))[0] for line in _without_roles(visible).split("\n")]
    plain = neutralise(FENCE.sub(lambda fence: "'" * len(fence[0]), "\n".join(lines)))
    return _wrapped(plain, orders_in(plain), "⟦", "⟧")


def _with_one_line_end(text: str) -> str:
    """Whatever ends a line is a line feed; one at the end stays."""
    return "\n".join(f"{text}\n".splitlines())


def _visible(text: str) -> tuple[str, bool]:
    """The text without what is not seen, and whether that was more than scripts and terminals need."""
    if text.isascii() and text.isprintable():
        return text, False
    found = False

    def seen(one: re.Match[str]) -> str:
        nonlocal found
        if one["emoji"]:
            return one[0]
        found = found or bool(one["hidden"])
        return "\ufffd" if one["broken"] else ""

    return _SEEN_OR_NOT.sub(seen, text), found


def _as_plain_words(text: str) -> tuple[str, bool]:
    """The text on one line, with nothing in it that is markup to anyone, and whether there was any."""
    lines = _with_one_line_end(text)
    without_roles = _without_roles(lines)
    line = " ".join(without_roles.replace("\u2800", " ").split())
    unfenced = FENCE.sub(lambda fence: "'" * len(fence[0]), line)
    unbracketed = _BRACKETED.sub(r"(\1)", unfenced)
    untagged, has_tag = _without_tags(unbracketed)
    return neutralise(untagged).translate(_OUR_SIGNS), has_tag or without_roles != lines or unbracketed != line


def _without_roles(lines: str) -> str:
    """With every name of a role that begins a line in brackets."""
    return _wrapped(lines, [one.span("role") for one in _ROLE_LINE.finditer(lines.translate(_WIDE))], "[", "]")


def _without_tags(line: str) -> tuple[str, bool]:
    found = False

    def opened(one: re.Match[str]) -> str:
        nonlocal found
        found = found or bool(one["role"] or one["token"])
        return "‹" * (1 + len(one["more"]))

    opening = _OPENING.sub(opened, line)
    if opening == line:
        return line, False
    closing = _CLOSING.sub(lambda one: f"{one[1]}›{'›' if one['twice'] else ''}", opening)
    return closing, found or closing != opening


def _wrapped(text: str, spans: list[tuple[int, int]], before: str, after: str) -> str:
    kept: list[str] = []
    end_of_last = 0
    for start, end in spans:
        kept += [text[end_of_last:start], before, text[start:end], after]
        end_of_last = end
    return "".join([*kept, text[end_of_last:]])


def _fitting(line: str, max_chars: int, *, is_more: bool) -> str:
    """As much as fits, saying so where that is not all."""
    if len(line) <= max_chars and not is_more:
        return line
    room = max_chars - len(" …") - ("⟦" in line)  # an order that is cut ends with its sign
    if room < 1:
        return "…"[: max(0, max_chars)]
    # A cut may part an emoji and leave half of it.
    short, _ = _visible(cut(line, room))
    return short if short.endswith("…") else f"{short} …".lstrip()


def _closed(line: str) -> str:
    return line if line.count("⟦") == line.count("⟧") else f"{line}⟧"
