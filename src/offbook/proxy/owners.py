"""By what conversations are found again. Several may have the same: greetings are alike, and so are their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from offbook.proxy.conversation import Conversation, named
from offbook.proxy.fingerprints import Known

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


def meant(owners: Sequence[Conversation], chain: Sequence[Known], at: int) -> Conversation | None:
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
