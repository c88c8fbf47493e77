"""One conversation and one request in it, and by what each is found again. What is known of them changes as they go
on, and all who hold one see it; who is who is decided in `conversations`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from offbook.contrib.proxy.fingerprints import ID_PREFIX, Known
from offbook.model.types import Message

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


# ── By what conversations are found again. Several may have the same: greetings are alike, and ──

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
