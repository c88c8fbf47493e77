"""A conversation, and what makes a message of it the same when it comes again.

A client sends its whole conversation with every request, the answers in its own words for them: `content` as a string
or as parts, fields left out, null or added, arguments written anew, thoughts left out. So a message is known by what it
says, calls and answers, and by all before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from offbook.model.types import Message

DIGEST_BYTES = 16
"""128 bits: no two messages of one installation will ever share them by chance."""
ID_PREFIX = "proxy:"
INSTRUCTIONS = frozenset({"system", "developer"})
"""They are the client's, they come with every request and may change with it (a date): no part of what was said."""
WORDS = ("text", "input_text", "output_text")
"""As the APIs call a part that is words. A tuple: what a client gives for a type may be anything."""
THOUGHTS = ("thinking", "reasoning")
"""And one that is none: Mistral's models think in parts."""
THOUGHTS_BEGIN, THOUGHTS_END = "<think>", "</think>"
"""Of models that think in their answer. Clients leave that out when they send it back, some always and some later."""


class Known(NamedTuple):
    """A message in its conversation."""

    fingerprint: str
    """Of the message alone."""
    node: str
    """Of it and all before it: the same words at another place are another message."""

    @property
    def id(self) -> str:
        return ID_PREFIX + self.node


def is_instruction(message: Mapping[str, Any]) -> bool:
    return message.get("role") in INSTRUCTIONS


def fingerprint(message: Mapping[str, Any]) -> str:
    is_answer = message.get("role") == "assistant"
    content = _said(message.get("content"), is_answer=is_answer)
    said = [
        message.get("role"),
        (_without_thoughts(content) if is_answer else content) or _said(message.get("refusal")),
        [_call(call) for call in message.get("tool_calls") or ()],
        message.get("tool_call_id"),
        _function(message.get("function_call")),
        None if is_answer else message.get("name"),  # there is one model, whatever a client calls it
    ]
    return blake2b(msgspec.json.encode(said, order="sorted"), digest_size=DIGEST_BYTES).hexdigest()


def followed(before: str, print_of_message: str) -> Known:
    """The message with this fingerprint, said after the node `before`."""
    node = blake2b(f"{before}/{print_of_message}".encode(), digest_size=DIGEST_BYTES).hexdigest()
    return Known(print_of_message, node)


def chained(prints: Sequence[str], before: str) -> list[Known]:
    chain: list[Known] = []
    for each in prints:
        chain.append(followed(chain[-1].node if chain else before, each))
    return chain


def words_of(content: Any, *, is_answer: bool = True) -> Any:
    """As one text, without the parts that are an answer's thoughts; as it is where something else is in it."""
    if not isinstance(content, list):
        return "" if content is None else content
    parts = [part for part in content if not (is_answer and isinstance(part, dict) and part.get("type") in THOUGHTS)]
    is_text = all(
        isinstance(part, dict) and part.get("type") in WORDS and isinstance(part.get("text"), str) for part in parts
    )
    return "".join(part["text"] for part in parts) if is_text else content


def _said(content: Any, *, is_answer: bool = False) -> Any:
    words = words_of(content, is_answer=is_answer)
    return words.strip() if isinstance(words, str) else words


def _without_thoughts(content: Any) -> Any:
    if not isinstance(content, str) or THOUGHTS_END not in content:
        return content
    *thoughts, rest = content.split(THOUGHTS_END)
    # Without a beginning, they began in the prompt.
    before = [text.partition(THOUGHTS_BEGIN)[0] if THOUGHTS_BEGIN in text else "" for text in thoughts]
    return "".join([*before, rest]).strip()


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    custom = call.get("custom")
    if isinstance(custom, dict):
        return [call.get("id"), "custom", custom.get("name"), custom.get("input")]
    return [call.get("id"), _function(call.get("function"))]


def _function(called: Any) -> Any:
    if not isinstance(called, dict):
        return called
    return [called.get("name"), _arguments(called.get("arguments"))]


def _arguments(given: Any) -> Any:
    """What they say, where they are JSON; else how they say it."""
    if not isinstance(given, str):
        return _plain(given)
    if not given.strip():
        return {}
    try:
        return _plain(msgspec.json.decode(given))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return given


def _plain(value: Any) -> Any:
    """Many programs have one kind of number only, and write 1.0 as 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


# ── A history that lacks its beginning, laid beside the conversation it is of. Pure ──

MOST_OF_ITS_OWN = 4
"""Messages that a client may have put in the place of those it left out, such as a summary."""
LEAST_ALIKE = 2
"""Messages in a row that must be the same: one alone ("OK") says nothing."""


class Aligned(NamedTuple):
    places: list[Known | None]
    """None for each of the first ones that the client made up itself."""
    alike: int
    """How many in a row are the same."""


def aligned(prints: Sequence[str], path: Sequence[Known]) -> Aligned | None:
    """The messages with these fingerprints as those of the path, then as what is new behind them.

    None where it is of something else.
    """
    where: dict[str, list[int]] = {}
    for position, known in enumerate(path):
        where.setdefault(known.fingerprint, []).append(position)
    best = (0, 0, 0)
    for own in range(min(MOST_OF_ITS_OWN + 1, len(prints))):
        for position in where.get(prints[own], ()):
            best = max(best, (_alike(prints, own, path, position), -own, position))
    alike, negative_own, position = best
    if alike < LEAST_ALIKE:
        return None
    own = -negative_own
    found: list[Known | None] = [*([None] * own), *path[position : position + alike]]
    node = path[position + alike - 1].node
    for each in prints[own + alike :]:
        known = followed(node, each)
        node = known.node
        found.append(known)
    return Aligned(found, alike)


def _alike(prints: Sequence[str], own: int, path: Sequence[Known], position: int) -> int:
    count = 0
    for each, known in zip(prints[own:], path[position:], strict=False):
        if each != known.fingerprint:
            break
        count += 1
    return count


# ── One conversation and one request in it. What is known of them changes as they go ──


CONVERSATION = "conversation/"
MOST_UNSENT = 4_096
"""Messages that may wait for a name."""


class Conversation:
    """`session_id` is None until an answer has passed that nobody else was given."""

    def __init__(self, session_id: str | None) -> None:
        self.session_id = session_id
        self.path: list[Known] = []
        """What it says now, in order; what was taken back is not in it."""
        self.candidates: list[Known] = []
        """The answers of its history after which it may be named already, where it is new to us."""
        self.offered: set[str] = set()
        """Nodes of answers of which the client chooses one: the one that comes back is the first."""
        self.ends: dict[str, str] = {}
        """The node that stands last, by what a request says it follows."""
        self.unsent: dict[str, Message] = {}
        """What was said while it has no name yet, by id."""
        self.answered_tip: str | None = None
        """The end of the request that was answered last while it had none."""
        self.brought: Known | None = None
        """That answer, where the next request brought it before it was read here."""
        self.recorded: set[str] = set()
        self.keys: set[str] = set()
        """By which it is found."""
        self.tips: set[str] = set()
        """Those of them that it has until the next answer: who asks the same then is somebody else."""

    def tell_later(self, message_id: str, message: Message) -> None:
        if message_id in self.recorded:
            return
        self.unsent[message_id] = message
        if len(self.unsent) > MOST_UNSENT:
            del self.unsent[next(iter(self.unsent))]


class Turn:
    """A request in its conversation. `places` has None for what is no part of it, such as instructions."""

    def __init__(
        self,
        conversation: Conversation,
        places: list[Known | None],
        seed: str,
        *,
        is_named: bool,
        behind: str | None = None,
    ) -> None:
        self.conversation = conversation
        self.places = places
        self.seed = seed
        self.is_named = is_named
        self.behind = behind
        """What it follows at the API; None where it brings its history."""
        self.is_first = conversation.session_id is None
        self.brought: Known | None = None
        """An answer in it after which its conversation may be named: it was not read as it passed."""
        self._start = seed if behind is None else conversation.ends[behind]

    @property
    def tip(self) -> str:
        return next((place.node for place in reversed(self.places) if place is not None), self._start)

    @property
    def session_id(self) -> str:
        """Until it has one, a name that only this request has."""
        return self.conversation.session_id or ID_PREFIX + self.tip


# ── by what it is found ──


def behind_response(response_id: str) -> str:
    return f"response/{response_id}"


def behind_conversation(conversation_id: str) -> str:
    return f"{CONVERSATION}{conversation_id}"


def named(session_id: str) -> str:
    return f"named/{session_id}"


def answered_alone(seed: str, print_of_answer: str) -> str:
    """With the seed: what one user was answered says nothing about another's conversation."""
    return f"answered/{print_of_answer}/{seed}"


# ── By what conversations are found again. Several may have the same: greetings are alike ──

MOST_OWNERS = 16
"""Of one key, the newest. Those who have said nothing else yet are as good as one another."""


class Owners:
    def __init__(self) -> None:
        self._by_key: dict[str, list[Conversation]] = {}

    def of(self, key: str) -> Sequence[Conversation]:
        """The oldest first."""
        return self._by_key.get(key, ())

    def newest(self, key: str) -> Conversation | None:
        return next(reversed(self.of(key)), None)

    def is_taken(self, session_id: str, conversation: Conversation) -> bool:
        """Whether another one has this name."""
        return self.newest(named(session_id)) not in (None, conversation)

    def add(self, key: str, conversation: Conversation) -> None:
        owners = self._by_key.setdefault(key, [])
        if conversation not in owners:
            owners.append(conversation)
            conversation.keys.add(key)
            if len(owners) > MOST_OWNERS:
                owners.pop(0).keys.discard(key)

    def give(self, key: str, conversation: Conversation) -> None:
        """To this one alone."""
        for before in self._by_key.pop(key, ()):
            before.keys.discard(key)
        self.add(key, conversation)

    def drop(self, keys: Iterable[str], conversation: Conversation) -> None:
        for key in conversation.keys.intersection(keys):
            conversation.keys.discard(key)
            owners = self._by_key[key]
            owners.remove(conversation)
            if not owners:
                del self._by_key[key]


def continued_by(owners: Sequence[Conversation], chain: Sequence[Known], at: int) -> Conversation | None:
    """Which of them a request goes on with that has their answer at `at`. None where that cannot be told: then it is
    one of its own, since nobody may be shown what somebody else said."""
    if len(owners) == 1:
        return owners[0]
    node = chain[at].node
    for each in owners:  # who has said nothing since has nothing that could be mixed up
        if node in each.offered or (each.path and each.path[-1].node == node):
            return each
    then = chain[at + 1].node if at + 1 < len(chain) else None
    asked = [each for each in owners if any(place.node == then for place in each.path)]
    return asked[0] if len(asked) == 1 else None
