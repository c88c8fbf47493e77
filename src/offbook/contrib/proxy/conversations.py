"""Which conversation a request belongs to, and what of it is new.

A request brings its whole history and rarely a name. A conversation is named after the first of its answers that passed
here and that no other was given: whoever brings that answer back goes on with that conversation, also after a restart
and from another machine. Two that begin with the same words, or with the same examples, are two: only answers tell them
apart, and where those are the same too ("Hi", "Hello!"), what was said behind them.

What was taken back (an answer made anew, a question edited) stays in the log, since it was said; the conversation goes
on from where it parted. Where the history lies at the API, the request says what it follows, and its messages stand
behind that. No I/O here: the state is what passed, and can be lost.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from offbook.contrib.proxy.conversation import (
    CONVERSATION,
    DIGEST_BYTES,
    Aligned,
    Conversation,
    Known,
    Owners,
    Turn,
    aligned,
    answered_alone,
    behind_response,
    chained,
    continued_by,
    fingerprint,
    followed,
    is_instruction,
    named,
)

MOST_CONVERSATIONS = 1_000
"""Known at a time. One that was let go is found again by its answers, at the provider."""
MOST_CANDIDATES = 24
"""Answers in a history that is new to us, after which its conversation may be named: the oldest and the newest."""


class Conversations:
    def __init__(self, most: int = MOST_CONVERSATIONS) -> None:
        self._most = most
        self._recent: OrderedDict[int, Conversation] = OrderedDict()
        self._owners = Owners()
        """By node: of answers that passed, and of the ends of requests that have none yet. By answers alone, of one
        seed. By name, and by what of the API's a request may follow."""

    def __len__(self) -> int:
        return len(self._recent)

    def begin(
        self,
        messages: Sequence[Mapping[str, Any]],
        fingerprints: Sequence[str],
        *,
        seed: str = "",
        session_id: str | None = None,
        behind: str | None = None,
    ) -> Turn:
        """`session_id` where the client names it; `seed` where it says for whom: another one, another conversation.
        `behind` where the history lies at the API."""
        said = [number for number, message in enumerate(messages) if not is_instruction(message)]
        prints = [fingerprints[number] for number in said]
        if behind is not None:
            return self._begin_behind(behind, len(messages), said, prints, seed, session_id)
        chain = chained(prints, seed)
        conversation, at = self._known(chain, session_id)
        known: Sequence[Known | None] = chain
        if at is None:
            if session_id is None:
                conversation, shown = self._by_answer(messages, said, prints, seed)
            else:
                shown = aligned(prints, conversation.path) if conversation else None
            if shown is not None:
                known = shown.places
        elif conversation is not None and chain[at].node in conversation.offered:
            conversation.offered = set()
            self._forget_tips(conversation)
            self.name(conversation, chain[at])
            self._owners.add(chain[at].node, conversation)
        is_new = conversation is None
        conversation = conversation or Conversation(session_id)
        places = _placed(len(messages), said, known)
        turn = Turn(conversation, places, seed, is_named=session_id is not None)
        if at is not None and session_id is None and conversation.session_id is None:
            self._bring(turn, messages, at)
        self._follow(turn, messages, at, session_id)
        if is_new and session_id is None:
            conversation.candidates = _candidates(messages, places)
        return turn

    def _bring(self, turn: Turn, messages: Sequence[Mapping[str, Any]], at: int) -> None:
        """An answer that could not be read as it passed stands behind the request that it was given to. What comes
        last is the beginning of an answer, which is still to be given."""
        conversation = turn.conversation
        numbers = [number for number, place in enumerate(turn.places) if place is not None]
        asked = turn.places[numbers[at]]
        if asked is None or asked.node not in conversation.tips or len(numbers) < at + 3:
            return
        if messages[numbers[at + 1]].get("role") != "assistant":
            return
        turn.brought = conversation.brought = turn.places[numbers[at + 1]]
        conversation.answered_tip = asked.node
        self._forget_tips(conversation)
        self._note_answers(turn, messages, at)

    def _begin_behind(
        self, behind: str, count: int, said: Sequence[int], prints: Sequence[str], seed: str, session_id: str | None
    ) -> Turn:
        conversation = self._owners.newest(behind if session_id is None else named(session_id))
        conversation = conversation or Conversation(session_id)
        # What began before our time has no end that we know. One of chance: words said there later are others.
        start = conversation.ends.setdefault(behind, secrets.token_hex(DIGEST_BYTES))
        chain = chained(prints, start)
        places = _placed(count, said, chain)
        turn = Turn(conversation, places, seed, is_named=session_id is not None, behind=behind)
        path = conversation.path
        end = next((at + 1 for at, place in enumerate(path) if place.node == start), len(path))
        conversation.path = [*path[:end], *chain]
        self._owners.give(behind, conversation)
        if session_id is not None:
            self._owners.give(named(session_id), conversation)
        self._used(conversation)
        return turn

    def adopt(self, turn: Turn, session_id: str, answer: Known, messages: Sequence[Mapping[str, Any]]) -> None:
        """The provider knows the conversation that is named after this answer of the request's history."""
        conversation = turn.conversation
        if self._owners.is_taken(session_id, conversation):
            return  # who has this name is in this process, and was not meant
        conversation.session_id, turn.is_first = session_id, False
        self._owners.give(named(session_id), conversation)
        said = [place for place in turn.places if place is not None]
        at = said.index(answer)
        conversation.recorded.update(place.id for place in said[: at + 1])
        self._forget_tips(conversation)
        self._note_answers(turn, messages, at)

    def name(self, conversation: Conversation, answer: Known) -> None:
        """After this answer, unless it has a name, or another one has this."""
        if conversation.session_id is None and not self._owners.is_taken(answer.id, conversation):
            conversation.session_id = answer.id
            self._owners.give(named(answer.id), conversation)

    def unrecorded(self, turn: Turn) -> list[tuple[int, Known]]:
        """What is new, by its number in the request, and from now on recorded. Nothing before the first answer."""
        conversation = turn.conversation
        if conversation.session_id is None:
            return []
        new = [
            (number, place)
            for number, place in enumerate(turn.places)
            if place is not None and place.id not in conversation.recorded
        ]
        conversation.recorded.update(place.id for _, place in new)
        return new

    def answered(
        self, turn: Turn, messages: Sequence[Mapping[str, Any]], response_id: str | None = None
    ) -> list[Known]:
        """The answer has passed, whole. Its messages are the next ones, and the first of them may give the conversation
        its `name`. `response_id` where the API keeps what was said, and a request may follow it."""
        answer = chained([fingerprint(message) for message in messages], turn.tip)
        if answer:
            self._say(turn, answer)
        elif response_id is not None and turn.conversation.session_id is None and turn.behind is None:
            self._part(turn)  # by its id it can be told from all that began alike
        conversation = turn.conversation
        end = answer[-1].node if answer else turn.tip
        if response_id is not None:
            self._end(behind_response(response_id), conversation, end)
        if turn.behind is not None:
            # A conversation at the API goes on behind its newest answer, an answer stays where it is.
            is_moving = turn.behind.startswith(CONVERSATION)
            self._end(turn.behind, conversation, end if is_moving else conversation.ends[turn.behind])
        self._used(conversation)
        return answer

    def offered(self, turn: Turn, answers: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        """Several answers have passed. Which one is meant, the next request tells: it has that one in its history."""
        before = turn.conversation
        if before.session_id is not None or before.candidates or turn.behind is not None:
            return
        conversation = self._part(turn)
        for messages in answers:
            node = followed(turn.tip, fingerprint(messages[0])).node
            conversation.offered.add(node)
            self._note_tip(node, conversation)
        self._used(conversation)

    def _say(self, turn: Turn, answer: Sequence[Known]) -> None:
        conversation = turn.conversation
        if not turn.is_named and turn.is_first and turn.behind is None and not _is_of(turn, answer[0]):
            # Two requests began alike at the same time, and the other one was answered first.
            conversation = self._part(turn)
        if conversation.session_id is None:
            conversation.answered_tip = turn.tip
            self._forget_tips(conversation)
        conversation.brought = None
        if not conversation.path or conversation.path[-1].node == turn.tip:
            conversation.path += answer
        if not turn.is_named:
            for known in answer:
                self._note_answer(turn, known)

    def _part(self, turn: Turn) -> Conversation:
        """A conversation of its own, whoever else began alike."""
        turn.conversation = Conversation(None)
        turn.conversation.path = [place for place in turn.places if place is not None]
        return turn.conversation

    # ── finding ──

    def _known(self, chain: Sequence[Known], session_id: str | None) -> tuple[Conversation | None, int | None]:
        if session_id is not None:
            conversation = self._owners.newest(named(session_id))
            is_begun_alike = conversation is not None and bool(chain) and conversation.path[:1] == [chain[0]]
            return conversation, 0 if is_begun_alike else None
        for at in range(len(chain) - 1, -1, -1):
            owners = self._owners.of(chain[at].node)
            if owners:
                conversation = continued_by(owners, chain, at)
                return conversation, None if conversation is None else at
        return None, None

    def _by_answer(
        self, messages: Sequence[Mapping[str, Any]], said: Sequence[int], prints: Sequence[str], seed: str
    ) -> tuple[Conversation | None, Aligned | None]:
        """Of a client that leaves out the oldest messages, or replaced them by words of its own. "Done." is said in
        many conversations: it is the one that has more of this history than the others have, or none."""
        for number, each in zip(reversed(said), reversed(prints), strict=True):
            owners = self._owners.of(answered_alone(seed, each)) if messages[number].get("role") == "assistant" else ()
            if owners:
                laid = [(owner, shown) for owner in owners if (shown := aligned(prints, owner.path)) is not None]
                laid.sort(key=lambda one: one[1].alike, reverse=True)
                is_one = len(laid) == 1 or (len(laid) > 1 and laid[0][1].alike > laid[1][1].alike)
                return laid[0] if is_one else (None, None)
        return None, None

    # ── keeping ──

    def _follow(
        self, turn: Turn, messages: Sequence[Mapping[str, Any]], at: int | None, session_id: str | None
    ) -> None:
        conversation = turn.conversation
        shown = [place for place in turn.places if place is not None]
        first = next((n for n, place in enumerate(conversation.path) if shown and place.node == shown[0].node), 0)
        conversation.path = [*conversation.path[:first], *shown]
        if session_id is not None:
            self._owners.give(named(session_id), conversation)
        elif conversation.session_id is None:
            self._note_tip(turn.tip, conversation)
        elif at is not None:
            self._note_answers(turn, messages, at)
        self._used(conversation)

    def _note_answers(self, turn: Turn, messages: Sequence[Mapping[str, Any]], at: int) -> None:
        """Those behind place `at`: what stands before the first answer that passed here may be anybody's examples."""
        numbers = [number for number, place in enumerate(turn.places) if place is not None]
        for number in numbers[at:]:
            place = turn.places[number]
            if place is not None and messages[number].get("role") == "assistant":
                self._note_answer(turn, place)

    def _note_answer(self, turn: Turn, answer: Known) -> None:
        self._owners.add(answer.node, turn.conversation)
        self._owners.add(answered_alone(turn.seed, answer.fingerprint), turn.conversation)

    def _end(self, behind: str, conversation: Conversation, node: str) -> None:
        conversation.ends[behind] = node
        self._owners.give(behind, conversation)

    def _note_tip(self, node: str, conversation: Conversation) -> None:
        self._owners.add(node, conversation)
        conversation.tips.add(node)

    def _forget_tips(self, conversation: Conversation) -> None:
        """From here on, who begins with the same words begins another conversation."""
        self._owners.drop(conversation.tips, conversation)
        conversation.tips.clear()

    def _used(self, conversation: Conversation) -> None:
        self._recent[id(conversation)] = conversation
        self._recent.move_to_end(id(conversation))
        while len(self._recent) > self._most:
            _, oldest = self._recent.popitem(last=False)
            self._owners.drop(set(oldest.keys), oldest)


def _placed(count: int, said: Sequence[int], known: Sequence[Known | None]) -> list[Known | None]:
    places: list[Known | None] = [None] * count
    for number, place in zip(said, known, strict=True):
        places[number] = place
    return places


def _is_of(turn: Turn, answer: Known) -> bool:
    """Whether its conversation, named or found while it was under way, is the one that it was begun in."""
    conversation = turn.conversation
    if conversation.answered_tip == turn.tip:
        return answer == conversation.brought  # else another request with these words was answered first
    if conversation.session_id is None or answer in conversation.path:
        return True
    return any(place is not None and place.id == conversation.session_id for place in turn.places)


def _candidates(messages: Sequence[Mapping[str, Any]], places: Sequence[Known | None]) -> list[Known]:
    answers = [
        place
        for message, place in zip(messages, places, strict=True)
        if place is not None and message.get("role") == "assistant"
    ]
    if len(answers) <= MOST_CANDIDATES:
        return answers
    return [*answers[: MOST_CANDIDATES // 2], *answers[-MOST_CANDIDATES // 2 :]]
