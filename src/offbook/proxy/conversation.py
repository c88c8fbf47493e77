"""One conversation and one request in it, and by what each is found again. What is known of them changes as they go
on, and all who hold one see it; who is who is decided in `conversations`."""

from __future__ import annotations

from offbook.proxy.fingerprints import ID_PREFIX, Known
from offbook.types import Message

CONVERSATION = "conversation/"
MOST_UNTOLD = 4_096
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
        self.untold: dict[str, Message] = {}
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
        self.untold[message_id] = message
        if len(self.untold) > MOST_UNTOLD:
            del self.untold[next(iter(self.untold))]


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
