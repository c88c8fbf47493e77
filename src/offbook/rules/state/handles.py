"""What runs and is held, by the ids it goes by: processes, ports, sub-agents, branches; and what says it has ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from offbook.rules.state.effects import COMPOSE, TEMPORARY
from offbook.rules.state.records import MAX_HANDLES, Kept, PendingCall, Turn, cut, newest, record

READ_CHARS = 4000
MAX_IDS = 12
"""Of one handle."""
RECENT_SEQS = 30
"""An address told so soon after a process began is that process's."""
SHORTEST_ID_CHARS = 2
SHORTEST_NAME_CHARS = 3

_URL = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?::(\d{2,5}))?(?:/[^\s\"'<>)\]`,*]{0,200})?", re.I
)
_NAMED = re.compile(
    r"\b(?P<kind>[a-z_]{0,12}?(?:session|process|job|task|agent|run|shell|container|instance|sandbox|tunnel|"
    r"terminal|thread)s?(?:[_ ]?(?:key|id|name))?|pid|port|branch|worktree|lock(?:[_ ]?file)?|id)\b[\"'*]{0,3}\s{0,2}"
    r"(?P<sign>[:=#]|is\b|with id:?|\bid:?|named\b|"
    r"called\b)?\s{0,2}(?P<quote>[\"'`*]{0,2})(?P<id>[\w/~][\w:./@~+-]{0,119})",
    re.IGNORECASE,
)
_JOB = re.compile(r"^\[\d+\] (\d{2,8})$", re.MULTILINE)
_CONTAINER = re.compile(r"^[0-9a-f]{64}$", re.MULTILINE)
_TEMPORARY_PATH = re.compile(r"^/\S*tmp\S*$", re.MULTILINE)
_LISTENING = re.compile(
    r"\b(?:listening|serving|running|started|available|ready)\b[^\n]{0,80}?(?:port |:)(\d{2,5})\b", re.I
)
STARTED = re.compile(
    r"\b(?:running|started|listening|serving|launched|spawned|accepted|live at|available at|up at|up on|in the "
    r"background|"
    r"opened a|created (?:an? |the |new )*(?:branch|worktree|container|session|tunnel)|checked out|acquired)\b|"
    r"后台|已启动",
    re.IGNORECASE,
)
_STARTED_WORDS = (
    "running", "started", "listening", "serving", "launched", "spawned", "accepted", "live at", "available at",
    "up at", "up on", "background", "opened", "created", "checked out", "acquired", "后台", "已启动",
)  # fmt: skip
"""One of these is in whatever that finds."""
_BACKGROUND = re.compile(
    r"running in (?:the )?background|still running|process running with|started in (?:the )?background|moved to "
    r"(?:the )?"
    r"background|backgrounded|[\"']status[\"']: ?[\"'](?:running|accepted|started|spawned|async_launched)",
    re.IGNORECASE,
)
ENDED = re.compile(
    r"\b(?:exited|completed|finished|terminated|killed|stopped|ended|closed|succeeded|failed|dead|merged|deleted|"
    r"removed|released|shut ?down|cancell?ed|not running|no longer running|no such (?:process|session)|timed out)\b",
    re.IGNORECASE,
)
# Of what a process printed only what the tool says about it counts: a log may well say "build completed".
_STATUS_ENDED = re.compile(
    r"\b(?:process|command|session|task|job|agent|container|shell)(?: \S{1,60})? (?:has |was |is )?(?:exited|"
    r"finished|completed|"
    r"ended|terminated|killed|stopped|not running|not found|done)\b|\bexited with\b|\bexit(?:ed)? ?code\b|no such "
    r"(?:process|session|container)|"
    r"no (?:longer|active) |[\"']?status[\"'>: ]{1,4}(?:completed|exited|failed|killed|done|finished|stopped|"
    r"ended|succeeded)\b",
    re.IGNORECASE,
)
_NOT_ENDED = re.compile(r"\b(?:still|not yet|hasn't|isn't|will|if|once|when|until|should|would|could|going to)\b", re.I)
_STILL = re.compile(r"\bstill running\b|[\"']?status[\"'>: ]{1,4}running\b", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAMED_KINDS = ("branch", "worktree", "lock", "session", "container", "job")
_WORD_IDS = frozenset(("id", "is", "the", "name", "key"))


def ids_in(text: str) -> list[str]:
    """The handles a text names, each with what it is: "pid 4242", "http://localhost:3000"."""
    found: list[str] = []
    for match in _NAMED.finditer(text[:READ_CHARS]):
        name = match["id"].rstrip(".:,-/")
        if _is_id(name, is_marked=bool(match["quote"]) or match["sign"] in (":", "=", "#"), kind=match["kind"]):
            found.append(f"{_kind(match['kind'])} {name}")
    found += [match[0].rstrip(".:;") for match in _URL.finditer(text[:READ_CHARS])]
    return list(dict.fromkeys(found))[:MAX_IDS]


def started(call: PendingCall, text: str, turn: Turn) -> Kept | None:
    """What runs since a call succeeded, by what its result says and what it had been told."""
    is_running = call.is_background or bool(_BACKGROUND.search(text[:READ_CHARS]))
    is_held = [one for one in call.handles if not one.startswith("port ") and one != TEMPORARY]
    if TEMPORARY in call.handles and (path := _TEMPORARY_PATH.search(text[:READ_CHARS])):
        is_held.append(f"{TEMPORARY} {path[0]}")
    is_spawned = bool(call.starts) and not call.handles and bool(STARTED.search(text[:600]))
    if not (is_running or is_held or (is_spawned and _is_spawn(call))):
        return None
    found = list(is_held)
    if is_running or not is_held:
        found += [one for one in call.handles if one.startswith("port ")] + _ids_of_result(text)
    if not found and not call.is_background:
        return None
    return _handle(call.starts, list(dict.fromkeys(found))[:MAX_IDS], turn, first_seq=call.seq)


def mentions(kept: Sequence[Kept], text: str) -> bool:
    """Whether a text may name one of them: what is asked before its sentences are read one by one."""
    return any(_tail(word) in text for one in kept for word in one.words)


def may_tell(text: str) -> bool:
    """Likewise for whether it says that something runs."""
    lower = text.lower()
    return any(word in lower for word in _STARTED_WORDS) and ("://" in text or bool(_NAMED.search(text)))


def running_handle(sentence: str, turn: Turn) -> Kept | None:
    """What the agent says is running."""
    if not STARTED.search(sentence) or ENDED.search(sentence) or _NOT_ENDED.search(sentence):
        return None
    found = ids_in(sentence)
    return _handle(cut(sentence, 160), found, turn) if found else None


def with_handle(kept: list[Kept], new: Kept) -> list[Kept]:
    """The handles with one more, or with more known of one of them."""
    for at, one in enumerate(kept):
        if not _bare(one.words).isdisjoint(_bare(new.words)):
            return [*kept[:at], *kept[at + 1 :], _joined(one, new)]
    unnamed = [
        one for one in kept if not _address(one.words) and new.record.first_seq - one.record.last_seq <= RECENT_SEQS
    ]
    if _address(new.words) and not _process(new.words) and len(unnamed) == 1 and _process_like(unnamed[0]):
        return [*(one for one in kept if one is not unnamed[0]), _joined(unnamed[0], new)]
    return newest([*kept, new], MAX_HANDLES)


def without(kept: list[Kept], targets: Sequence[str]) -> list[Kept]:
    """The handles that are not stopped by stopping those."""
    if not targets or not kept:
        return kept
    named = set(targets)
    return [one for one in kept if not _is_hit(one, named)]


def without_ended(kept: list[Kept], text: str, *, is_notice: bool = False) -> list[Kept]:
    """The handles that a text does not say have ended. A notice of the host speaks of one thing; else by sentence."""
    if not mentions(kept, text) or not ENDED.search(text) or (_STILL if is_notice else _NOT_ENDED).search(text):
        return kept
    return [one for one in kept if not any(_names(text, name) for name in _bare(one.words))]


def without_polled(kept: list[Kept], call: PendingCall, text: str) -> list[Kept]:
    """The handles that a call did not find ended."""
    if not kept or not call.names or _STILL.search(text) or not _STATUS_ENDED.search(text):
        return kept
    asked = set(call.names)
    return [one for one in kept if asked.isdisjoint(_bare(one.words))]


def _is_hit(one: Kept, targets: set[str]) -> bool:
    bare = _bare(one.words)
    if not targets.isdisjoint(bare) or not targets.isdisjoint(one.words):
        return True
    # `pkill -f vite`: by a word of the command that runs.
    running = one.record.text.split(" (", 1)[0]
    return _process_like(one) and any(len(name) >= SHORTEST_NAME_CHARS and _names(running, name) for name in targets)


def _ids_of_result(text: str) -> list[str]:
    head = text[:READ_CHARS]
    found = ids_in(head)
    found += [f"pid {job}" for job in _JOB.findall(head)]
    found += [f"container {container[:12]}" for container in _CONTAINER.findall(head)]
    if not any(_URL.match(one) for one in found):
        found += [f"port {port}" for port in _LISTENING.findall(head)]
    return list(dict.fromkeys(found))


def _handle(what: str, found: list[str], turn: Turn, first_seq: int | None = None) -> Kept:
    unsaid = [one for one in found if one.split(" ", 1)[-1] not in what]
    text = f"{what} ({', '.join(unsaid)})" if unsaid else what
    return Kept(record=record("live handle", text, turn, first_seq), words=found)


def _joined(one: Kept, new: Kept) -> Kept:
    """One handle of two: the words of the first, the ids of both."""
    added = [name for name in new.words if name not in one.words and name.split(" ", 1)[-1] not in one.record.text]
    text = one.record.text
    if added:
        text = (
            f"{text[:-1]}, {', '.join(added)})"
            if text.endswith(")") and " (" in text
            else f"{text} ({', '.join(added)})"
        )
    last = max(one.record.last_seq, new.record.last_seq)
    again = msgspec.structs.replace(one.record, text=cut(text), last_seq=last)
    return msgspec.structs.replace(one, record=again, words=list(dict.fromkeys((*one.words, *new.words)))[:MAX_IDS])


def _bare(words: Iterable[str]) -> set[str]:
    """The ids without what they are; an address also by its port."""
    bare = set()
    for word in words:
        address = _URL.match(word)
        bare.add(word if address or word == COMPOSE else word.rsplit(" ", 1)[-1])
        if address and address[1]:
            bare.add(address[1])
    return bare


def _names(text: str, name: str) -> bool:
    """Whether a text holds a name as a whole."""
    if len(name) < SHORTEST_ID_CHARS or name not in text:
        return False
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _is_id(name: str, *, is_marked: bool, kind: str) -> bool:
    if len(name) < SHORTEST_ID_CHARS or name.lower() in _WORD_IDS:
        return False
    lower = kind.lower()
    if lower in ("pid", "port"):
        return name.isdigit()
    has_digit = any(letter.isdigit() for letter in name)
    is_spelt = has_digit or any(letter in name for letter in "/-_.:")
    if lower.startswith(_NAMED_KINDS) or lower.endswith(("id", "key", "name")):
        return is_marked or (is_spelt and len(name) >= SHORTEST_NAME_CHARS)
    # "task: the rest of it", "job 2 of 5"
    return (is_marked and is_spelt) or (has_digit and len(name) > SHORTEST_NAME_CHARS)


def _kind(raw: str) -> str:
    kind = raw if raw.lower() == "pid" else re.sub(r"[_ ]?(?:key|id|name)\Z", "", raw, flags=re.IGNORECASE)
    return _HUMP.sub(" ", kind).replace("_", " ").strip().lower() or "id"


def _tail(word: str) -> str:
    address = word.rsplit(":", 1)[-1] if word.startswith("http") else word.rsplit(" ", 1)[-1]
    return address.split("/", 1)[0] if address[:1].isdigit() else address


def _address(words: Iterable[str]) -> bool:
    return any(word.startswith(("http", "port ")) for word in words)


def _process(words: Iterable[str]) -> bool:
    return any(not word.startswith(("http", "port ")) for word in words)


def _process_like(one: Kept) -> bool:
    return not any(word.startswith(("branch ", "worktree ", "lock", TEMPORARY)) for word in one.words)


def _is_spawn(call: PendingCall) -> bool:
    return not call.stops and any(
        part in call.name.lower() for part in ("spawn", "launch", "start", "delegate", "agent", "task")
    )
