"""What an agent must not lose hold of when its context is swapped: its task, what is open, what was done, what runs.

A fold over the log, message by message. What a user says sets goals; what tools and others say is data: it confirms
what the agent's own calls did and names what runs, and never sets a task.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from offbook.ingest.noise import SHORTEST_SUBSTANCE_CHARS
from offbook.model.content import own_text
from offbook.model.summary import StateRecord
from offbook.model.types import Message, Value
from offbook.rules.state import goals, handles
from offbook.rules.state.effects import pending
from offbook.rules.state.exchanges import Result, calls_of, results_of
from offbook.rules.state.goals import rendered
from offbook.rules.state.records import (
    MAX_ACTIONS,
    MAX_LOOPS,
    MAX_MINOR_ACTIONS,
    MAX_PENDING_CALLS,
    Kept,
    PendingCall,
    Sort,
    Turn,
    is_about,
    record,
    refreshed,
    shared,
    without_minor,
    words_of,
)
from offbook.rules.state.reports import (
    WAITS_FOR_APPROVAL,
    Report,
    Spoken,
    asks_user,
    is_answer,
    leaves_open,
    spoken,
    tells_done,
)
from offbook.rules.state.rules import (
    Closing,
    approval_kept,
    asks,
    closing_in,
    is_agreement,
    is_approval,
    is_follow_up,
    is_question,
    is_reply,
    is_request,
    sentences_in,
    taken_back,
)

MAX_QUESTIONS = 3
"""Of one message."""
MAX_REPORTS = 6
"""Of one message: a longer list of what was done is a summary of what is recorded already."""
SAME_ACTION_SEQS = 30
STEM_CHARS = 3
"""How much of a stem every form of the word shares; "sent" is found by "sen"."""

__all__ = ["Turn", "WorkingState", "advanced", "rendered"]


class WorkingState(Value, frozen=True):
    """The state through a message, and what the next one is read with. Each list is in order of time."""

    through_seq: int = 0
    goals: list[Kept] = msgspec.field(default_factory=list)
    """The last is the current one."""
    loops: list[Kept] = msgspec.field(default_factory=list)
    actions: list[Kept] = msgspec.field(default_factory=list)
    handles: list[Kept] = msgspec.field(default_factory=list)
    calls: list[PendingCall] = msgspec.field(default_factory=list)

    @property
    def records(self) -> list[StateRecord]:
        """The most recent first, kind by kind."""
        kinds = (self.goals, self.loops, self.actions, self.handles)
        return [goals.shown(one) for kept in kinds for one in reversed(kept)]


def advanced(state: WorkingState, turns: Sequence[Turn]) -> WorkingState:
    """The state after those messages. What it has seen already changes nothing."""
    fold = _Fold(state)
    for turn in turns:
        if turn.seq > fold.through_seq:
            fold.take(turn)
    return fold.state()


def _is_own(message: Message) -> bool:
    return message.origin in (None, "", message.role) and message.tool_call_id is None


def _holds(text: str, beginnings: Collection[str]) -> bool:
    """Whether a word may begin like one of those: asked before a sentence is read for its words."""
    lower = text.lower()
    return any(beginning in lower for beginning in beginnings)


class _Fold:
    """The lists while messages are read; they are replaced, never changed, so that states may share them."""

    def __init__(self, state: WorkingState) -> None:
        self.through_seq = state.through_seq
        self.goals, self.loops, self.actions = state.goals, state.loops, state.actions
        self.handles, self.calls = state.handles, state.calls

    def state(self) -> WorkingState:
        return WorkingState(
            through_seq=self.through_seq,
            goals=self.goals,
            loops=self.loops,
            actions=self.actions,
            handles=self.handles,
            calls=self.calls,
        )

    def take(self, turn: Turn) -> None:
        self.through_seq = turn.seq
        message = turn.message
        is_plain = isinstance(message.content, str) and message.meta is None and message.role != "tool"
        for result in [] if is_plain else results_of(message):
            self._answered(result, turn)
        said = "" if message.role == "tool" else own_text(message.content)
        # Too short to be worth recalling, "stop" and "deploy it" still mean something here.
        is_noise = turn.is_noise and len(said.strip()) >= SHORTEST_SUBSTANCE_CHARS
        if not _is_own(message) or message.role == "system" or (is_noise and message.role == "user"):
            self.handles = handles.without_ended(self.handles, said[: handles.READ_CHARS], is_notice=True)
        elif message.role == "user":
            self._heard(sentences_in(said), turn)
        elif message.role == "assistant":
            calls = [] if is_plain else calls_of(message)
            self._said([spoken(one) for one in sentences_in(said)], turn, is_final=not (calls or is_noise))
            for call in calls:
                self.calls = [one for one in self.calls if not call.id or one.id != call.id]
                self.calls = [*self.calls, pending(call, turn.seq)][-MAX_PENDING_CALLS:]

    # ── what the user says ────────────────────────────────────────────────────────────────────

    def _heard(self, sentences: list[str], turn: Turn) -> None:
        is_asked = [asks(one) for one in sentences]
        stated = [one for one, asks in zip(sentences, is_asked, strict=True) if not asks]
        asking = [one for one in self.loops if one.sort == "asking"] if is_reply(stated) else []
        if any(is_approval(one) for one in sentences[:2]):
            about = {*words_of(" ".join(sentences[:3])), *(word for one in asking for word in one.words)}
            self.loops = [
                one
                for one in self.loops
                if one.sort != "approval" and (one.sort != "guard" or not shared(one.words, about))
            ]
        if asking:
            self.loops = [one for one in self.loops if one.sort != "asking"]
        if closing := closing_in(sentences):
            self._close(closing)
        self._drop(taken_back(sentences))
        for sentence in stated if handles.mentions(self.handles, "\n".join(stated)) else []:
            self.handles = handles.without_ended(self.handles, sentence)
        requests = [at for at, one in enumerate(sentences) if is_request(one)]
        if asking and is_agreement(sentences):
            self.goals = goals.agreed(self.goals, asking[-1], sentences, turn)
        elif requests and not (asking and is_follow_up(" ".join(sentences))):
            self.goals = goals.requested(self.goals, sentences, requests[0], turn)
        asked = [
            one for at, one in enumerate(sentences) if at not in requests and is_question(one, is_asked=is_asked[at])
        ]
        for question in asked[:MAX_QUESTIONS]:
            self._open("asked", f"I was asked: {question}", turn, words_of(question))
        for sentence in sentences:
            if kept := approval_kept(sentence):
                self._open("guard", f"The user wants to be asked first: {kept}", turn, words_of(kept))

    def _close(self, closing: Closing) -> None:
        if not self.goals:
            self.loops = [one for one in self.loops if one.sort != "asked"] if closing.how == "dropped" else self.loops
            return
        current = self.goals[-1]
        if closing.how == "thanked" and current.sort == "open" and not closing.is_all:
            return
        if closing.how == "dropped":
            asked = [one for one in self.loops if one.sort == "asked"]
            if asked and asked[-1].record.first_seq > current.record.last_seq:
                self.loops = [one for one in self.loops if one is not asked[-1]]
                return
            begun = current.record.first_seq
            promised = ("promise", "telling")
            self.loops = [one for one in self.loops if one.sort not in promised or one.record.first_seq < begun]
        self.goals = [] if closing.is_all else self.goals[:-1]

    def _drop(self, words: list[str]) -> None:
        """ "Forget the Lisbon trip": what was wanted of it, and what is open of it, is so no more."""
        if words:
            self.goals = [one for one in self.goals if not is_about(words, one.words)]
            self.loops = [one for one in self.loops if one.sort == "guard" or not is_about(words, one.words)]

    # ── what the agent says ───────────────────────────────────────────────────────────────────

    def _said(self, sentences: list[Spoken], turn: Turn, *, is_final: bool) -> None:
        reports = [one.report for one in sentences if one.report][:MAX_REPORTS]
        for report in reports:
            self._act(report, turn)
        self._keep_promises(sentences)
        self.goals = goals.reported(self.goals, sentences, reports, is_final=is_final)
        if is_final and any(is_answer(one) for one in sentences):
            asked = any(one.sort == "asked" for one in self.loops)
            left = [words_of(one.text) for one in sentences if asked and leaves_open(one)]
            self.loops = [
                one for one in self.loops if one.sort != "asked" or any(is_about(one.words, more) for more in left)
            ]
        text = "\n".join(one.text for one in sentences)
        may_tell, may_end = handles.may_tell(text), handles.mentions(self.handles, text)
        for one in sentences:
            if may_end:
                self.handles = handles.without_ended(self.handles, one.text)
            if may_tell and not one.is_asking and (running := handles.running_handle(one.text, turn)):
                self.handles = handles.with_handle(self.handles, running)
            self._promise(one, turn, is_final=is_final)
        for one in [one for one in sentences if is_final and asks_user(one)][-MAX_QUESTIONS:]:
            self._open("asking", goals.I_ASKED + one.text, turn, words_of(one.text))

    def _promise(self, said: Spoken, turn: Turn, *, is_final: bool) -> None:
        if said.is_waiting:
            self._open("asking", f"I wait for the user: {said.text}", turn, words_of(said.text))
        # What is said beside a call is what the call does.
        elif (promise := said.promise) and (promise.is_deferred or is_final):
            sort: Sort = "telling" if promise.is_telling else "promise"
            self._open(sort, f"I said: {promise.text}", turn, promise.words, is_minor=not promise.is_deferred)

    def _keep_promises(self, sentences: list[Spoken]) -> None:
        promised = [one for one in self.loops if one.sort in ("promise", "telling")]
        if not promised:
            return
        beginnings = {word[:STEM_CHARS] for one in promised for word in one.words}
        told = [words_of(one.text) for one in sentences if _holds(one.text, beginnings) and tells_done(one)]
        is_all_done = any(one.says_done for one in sentences[:2])
        kept = {id(one) for one in promised if any(is_about(one.words, words) for words in told)}
        kept |= {id(one) for one in promised if is_all_done and one.is_minor}
        self.loops = [one for one in self.loops if id(one) not in kept]

    def _act(self, report: Report, turn: Turn) -> None:
        words = words_of(report.text)
        for at, one in enumerate(self.actions):
            is_recent = turn.seq - one.record.last_seq <= SAME_ACTION_SEQS
            if is_recent and shared(one.words, words) * 5 >= 3 * max(2, min(len(one.words), len(words))):
                self.actions = [*self.actions[:at], *self.actions[at + 1 :], refreshed(one, turn)]
                return
        self._done(
            Kept(
                record=record("confirmed action", report.text, turn),
                words=words,
                sort="said",
                is_minor=not report.is_outward,
            )
        )

    # ── what tools did ────────────────────────────────────────────────────────────────────────

    def _answered(self, result: Result, turn: Turn) -> None:
        call = self._call_of(result, turn.message.name)
        if call is None:
            return
        self.calls = [one for one in self.calls if one is not call]
        self.handles = handles.without_polled(self.handles, call, result.text)
        if WAITS_FOR_APPROVAL.search(result.text[: handles.READ_CHARS]) and (call.action or call.starts):
            self._open("approval", f"Approval is waited for: {call.action or call.starts}", turn, call.words)
            return
        if result.is_failed:
            return
        self.handles = handles.without(self.handles, call.stops)
        if running := handles.started(call, result.text, turn):
            self.handles = handles.with_handle(self.handles, running)
        if call.action:
            new = record("confirmed action", call.action, turn, first_seq=call.seq)
            self._done(Kept(record=new, words=call.words, sort="called", is_minor=call.is_minor))
        self.loops = [one for one in self.loops if one.sort != "promise" or not is_about(one.words, call.words)]

    def _call_of(self, result: Result, name: str | None) -> PendingCall | None:
        if result.id is not None:
            return next((one for one in self.calls if one.id == result.id), None)
        # It does not say what it answers: the first call of the last message that made any.
        latest = [one for one in self.calls if one.seq == self.calls[-1].seq]
        return next((one for one in latest if one.name == name), latest[0] if latest else None)

    # ── keeping ───────────────────────────────────────────────────────────────────────────────

    def _done(self, new: Kept) -> None:
        same = [one for one in self.actions if one.record.text == new.record.text]
        others = [one for one in self.actions if one.record.text != new.record.text]
        if same:
            first = same[0].record.first_seq
            new = msgspec.structs.replace(new, record=msgspec.structs.replace(new.record, first_seq=first))
        self.actions = without_minor([*others, new], MAX_ACTIONS, MAX_MINOR_ACTIONS)

    def _open(self, sort: Sort, text: str, turn: Turn, words: list[str], *, is_minor: bool = False) -> None:
        new = Kept(record=record("open loop", text, turn), words=words, sort=sort, is_minor=is_minor)
        others = [one for one in self.loops if one.record.text != new.record.text]
        self.loops = without_minor([*others, new], MAX_LOOPS, 0)
