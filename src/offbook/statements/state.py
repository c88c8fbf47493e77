"""What an agent must not lose hold of when its context is swapped: its task, what is open, what was done, what runs.

A fold over sentences that were read, message by message. What the user says sets the goal; what tools and others say is
data: it tells what the agent's calls did and what runs, and never sets a task. Nothing is put in other words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from offbook.model.sentences import is_question
from offbook.model.statement import ReadSentence, StatementKind
from offbook.model.summary import StateKind, StateRecord
from offbook.model.types import Value
from offbook.statements import handles
from offbook.statements.exchanges import Call, Result, calls_of, results_of, strings_in
from offbook.statements.turns import Turn
from offbook.statements.words import cut, is_about, is_named, shared, tokens_of, words_of

SURE, OWN, STATED = 0.5, 0.5, 0.5
OPENING_OWN = 0.75
"""Of what a message begins with, where it sets no task: a mail that is handed over begins, too."""
_SET_OUT: tuple[StatementKind, ...] = ("task", "decision")
_WANTED: tuple[StatementKind, ...] = (*_SET_OUT, "preference")
_MAY_BE_WANTED: tuple[StatementKind, ...] = ("constraint", "order", "other")
_STATED: tuple[StatementKind, ...] = ("fact", "outcome")
UNDERTAKEN, LASTING = 0.5, 0.5
SUBSTANCE_WORDS = 3
"""Telling words of a goal, a loop or an action: with fewer it says little by itself."""
TRIFLE_WORDS = 5
"""A request of fewer that was answered at once, and that they did not come back to, is no goal."""
LAST_SENTENCES, FEWEST_ASKED_WORDS = 3, 2
"""Where the agent asks the user something, it does so at the end."""
AWAY_TURNS = 2
"""An answered goal that so many turns were not about may be followed by what a message begins with."""
ANSWER_CHARS = 200
"""A text of this length may be the very thing that was asked for."""
SHORT_ANSWER_CHARS = 40
MAX_LOOPS, MAX_SAID, MAX_CALLED, MAX_HANDLES, MAX_PENDING_CALLS = 6, 8, 6, 8, 32
LOOP_SEQS = 60
"""A loop that nothing was heard of for so many messages is open no more."""
WORKING_SEQS = 8
"""Where a tool was called so lately, what the agent says runs does run."""
SHORT_RESULT_CHARS = 200
"""What changes something answers in a line; what reads something answers with it."""
ARGUMENTS_SHOWN, ARGUMENT_CHARS, LONGEST_TEXT_ARGUMENT_CHARS = 4, 60, 200
MOST_SENTENCES = 15
MOST_REPORTS = 4
"""Of one message: a longer list of what was done is a summary of what is recorded already."""

Origin = Literal["task", "opening", "stated", "asked", "asking", "promise", "said", "called", ""]


class Kept(Value, frozen=True):
    """A record and what it is known by."""

    record: StateRecord
    words: list[str] = msgspec.field(default_factory=list)
    """Stems; of a handle its identifiers."""
    sort: Origin = ""
    turns: int = 1
    """Of the user, that were about it."""
    is_answered: bool = False
    away: int = 0
    """Of the user, since the last that was."""


class PendingCall(Value, frozen=True):
    """A call whose result has not come, and what it would mean."""

    id: str
    name: str
    seq: int
    text: str
    starts: bool = False
    ids: list[str] = msgspec.field(default_factory=list)
    ends: list[str] = msgspec.field(default_factory=list)


class WorkingState(Value, frozen=True):
    """The state through a message, and what the next one is read with. Each list is in order of time."""

    through_seq: int = 0
    goal: Kept | None = None
    loops: list[Kept] = msgspec.field(default_factory=list)
    actions: list[Kept] = msgspec.field(default_factory=list)
    handles: list[Kept] = msgspec.field(default_factory=list)
    calls: list[PendingCall] = msgspec.field(default_factory=list)
    called_seq: int = 0
    """The newest message that called a tool or carried a result."""

    @property
    def records(self) -> list[StateRecord]:
        """The most recent first, kind by kind."""
        goals = [] if self.goal is None or _is_trifle(self.goal) else [self.goal]
        return [one.record for kept in (goals, self.loops, self.actions, self.handles) for one in reversed(kept)]


def advanced(state: WorkingState, turns: Sequence[Turn]) -> WorkingState:
    """The state after those messages. What it has seen already changes nothing."""
    fold = _Fold(state)
    for turn in turns:
        if turn.seq > fold.through_seq:
            fold.take(turn)
    return fold.state()


def _is_trifle(goal: Kept) -> bool:
    """Only stated; or asked in a few words, answered and not come back to."""
    return goal.sort == "stated" or (goal.turns < 2 and goal.is_answered and len(goal.words) < TRIFLE_WORDS)


def _record(kind: StateKind, text: str, turn: Turn, first_seq: int | None = None) -> StateRecord:
    first = turn.seq if first_seq is None else first_seq
    return StateRecord(kind=kind, text=cut(text), first_seq=first, last_seq=turn.seq, at=turn.at)


def _is_same(words: Sequence[str], other: Sequence[str]) -> bool:
    """Whether most of the shorter is in both."""
    return shared(words, other) * 5 >= 3 * max(2, min(len(words), len(other)))


class _Fold:
    """The lists while messages are read; they are replaced, never changed, so that states may share them."""

    def __init__(self, state: WorkingState) -> None:
        self.through_seq, self.called_seq = state.through_seq, state.called_seq
        self.goal, self.loops, self.actions = state.goal, state.loops, state.actions
        self.handles, self.calls = state.handles, state.calls

    def state(self) -> WorkingState:
        return WorkingState(
            through_seq=self.through_seq,
            goal=self.goal,
            loops=self.loops,
            actions=self.actions,
            handles=self.handles,
            calls=self.calls,
            called_seq=self.called_seq,
        )

    def take(self, turn: Turn) -> None:
        self.through_seq = turn.seq
        message = turn.message
        is_plain = isinstance(message.content, str) and message.meta is None and message.role != "tool"
        calls = [] if is_plain or message.role != "assistant" else calls_of(message)
        results = [] if is_plain else results_of(message)
        if calls or results:
            self.called_seq = turn.seq
        for result in results:
            self._answered(result, turn)
        if turn.is_users:
            self._heard(turn)
        elif turn.is_agents:
            self._said(turn, is_final=not (calls or turn.is_noise))
        for call in calls:
            self._called(call, turn)
        self.loops = [one for one in self.loops if turn.seq - one.record.last_seq <= LOOP_SEQS][-MAX_LOOPS:]

    # ── what the user says ────────────────────────────────────────────────────────────────────

    def _heard(self, turn: Turn) -> None:
        words = words_of(turn.said)
        self.loops = [one for one in self.loops if one.sort not in ("asked", "asking")]
        for one in turn.sentences:
            if one.kind in ("outcome", "decision") and one.own >= OWN:
                self._close(words_of(one.text))
        if self.goal is not None:
            is_back = shared(self.goal.words, words) > 0
            away = 0 if is_back else self.goal.away + 1
            self.goal = msgspec.structs.replace(self.goal, turns=self.goal.turns + is_back, away=away)
        tasks = [one for one in turn.sentences if _is_task(one)]
        own = [one for one in tasks if one.undertaken >= UNDERTAKEN]
        requests = [one for one in tasks if one not in own]
        for one in own:
            self._promise("They said: ", one, turn)
        text = _with_lead(turn.sentences, requests)
        if len(words_of(text)) >= SUBSTANCE_WORDS:
            self._set_goal("task", text, turn)
        elif self.goal is None:
            said = [one for one in turn.sentences if one not in own]
            wanted = _opening(said, _WANTED) or _opening(said, _MAY_BE_WANTED)
            self._set_goal("opening" if wanted else "stated", wanted or _opening(said, _STATED), turn)
        elif self.goal.is_answered and self.goal.away >= AWAY_TURNS:
            self._set_goal("opening", _opening([one for one in turn.sentences if one not in own], _SET_OUT), turn)
        else:
            self._ask(turn)

    def _set_goal(self, sort: Origin, text: str, turn: Turn) -> None:
        words, old = words_of(text), self.goal
        if not text:
            return
        if (
            old is not None
            and old.sort == "task"
            and not old.is_answered
            and old.turns < 2
            and not is_about(old.words, words)
        ):
            self._open("task", f"They asked: {old.record.text}", old.words, turn, of=old.record)
        is_again = old is not None and _is_same(old.words, words)
        first = old.record.first_seq if old is not None and is_again else None
        turns = old.turns if old is not None and is_again else 1
        self.goal = Kept(record=_record("goal", text, turn, first), words=words, sort=sort, turns=turns)

    def _ask(self, turn: Turn) -> None:
        asked = " ".join(one.text for one in turn.sentences if is_question(one.text) and one.own >= OWN)
        words = words_of(asked)
        if len(words) >= SUBSTANCE_WORDS:
            self._open("asked", f"They asked: {asked}", words, turn)

    # ── what the agent says ───────────────────────────────────────────────────────────────────

    def _said(self, turn: Turn, *, is_final: bool) -> None:
        words = words_of(turn.said)
        if is_final and len(turn.said) >= SHORT_ANSWER_CHARS:
            self.loops = [one for one in self.loops if one.sort != "asked"]
        reports = _reports(turn.sentences)
        for one in reports:
            self._close(words_of(one.text))
        if is_final and len(turn.said) >= ANSWER_CHARS:
            self.loops = [one for one in self.loops if one.sort != "task" or not is_about(one.words, words)]
        is_answer = is_final and (bool(reports) or len(turn.said) >= ANSWER_CHARS)
        if self.goal is not None and is_answer and shared(self.goal.words, words):
            self.goal = msgspec.structs.replace(self.goal, is_answered=True)
        for one in [one for one in reports if _is_concrete(one.text)][:MOST_REPORTS]:
            self._act("said", one.text, turn)
        for one in turn.sentences:
            if is_final and _is_task(one) and not is_question(one.text):
                self._promise("I said: ", one, turn)
        asked = [one.text for one in turn.sentences[-LAST_SENTENCES:] if is_final and is_question(one.text)]
        if asked and len(words := words_of(asked[-1])) >= FEWEST_ASKED_WORDS:
            self._open("asking", f"I asked: {asked[-1]}", words, turn)
        is_working = turn.seq - self.called_seq <= WORKING_SEQS and self.called_seq > 0
        for one in turn.sentences:
            self._heard_of(one.text, turn, is_new=(is_working or one.kind == "outcome") and not is_question(one.text))

    def _heard_of(self, text: str, turn: Turn, *, is_new: bool) -> None:
        """What is said of something that runs, or that something does."""
        known = [one for one in self.handles if handles.names_any(text, one.words)]
        ids = handles.ids_in(text) if is_new else []
        if not known and not ids:
            return
        words = list(dict.fromkeys([*(word for one in known for word in one.words), *ids]))[: handles.MAX_IDS]
        first = known[0].record.first_seq if known else None
        new = Kept(record=_record("live handle", text, turn, first), words=words)
        others = [one for one in self.handles if one not in known]
        self.handles = [*others, new][-MAX_HANDLES:]

    # ── what tools did ────────────────────────────────────────────────────────────────────────

    def _called(self, call: Call, turn: Turn) -> None:
        effect = handles.effect_of(call)
        pending = PendingCall(
            id=call.id,
            name=call.name[: handles.LONGEST_NAME_CHARS],
            seq=turn.seq,
            text=_call_text(call),
            starts=effect.starts,
            ids=effect.ids,
            ends=effect.ends,
        )
        others = [one for one in self.calls if not call.id or one.id != call.id]
        self.calls = [*others, pending][-MAX_PENDING_CALLS:]

    def _answered(self, result: Result, turn: Turn) -> None:
        call = self._call_of(result, turn.message.name)
        if call is None:
            return
        self.calls = [one for one in self.calls if one is not call]
        if result.is_failed:
            return
        if call.ends:
            ended = set(call.ends)
            self.handles = [one for one in self.handles if ended.isdisjoint(handles.bare(one.words))]
        if call.starts:
            self._started(call, result.text, turn)
        elif len(result.text.strip()) <= SHORT_RESULT_CHARS:
            self._act("called", call.text, turn, first_seq=call.seq)
        self.loops = [
            one for one in self.loops if one.sort != "promise" or not is_about(one.words, words_of(call.text))
        ]

    def _started(self, call: PendingCall, text: str, turn: Turn) -> None:
        ids = list(dict.fromkeys([*call.ids, *handles.ids_in(text)]))[: handles.MAX_IDS]
        unsaid = [one for one in ids if one.rsplit(" ", 1)[-1] not in call.text]
        shown = f"{call.text} ({', '.join(unsaid)})" if unsaid else call.text
        same = handles.bare(ids)
        others = [one for one in self.handles if same.isdisjoint(handles.bare(one.words))]
        new = Kept(record=_record("live handle", shown, turn, call.seq), words=ids)
        self.handles = [*others, new][-MAX_HANDLES:]

    def _call_of(self, result: Result, name: str | None) -> PendingCall | None:
        if result.id is not None:
            return next((one for one in self.calls if one.id == result.id), None)
        # It does not say what it answers: the first call of the last message that made any.
        latest = [one for one in self.calls if one.seq == self.calls[-1].seq]
        return next((one for one in latest if one.name == name), latest[0] if latest else None)

    # ── keeping ───────────────────────────────────────────────────────────────────────────────

    def _act(self, sort: Origin, text: str, turn: Turn, first_seq: int | None = None) -> None:
        words = words_of(text)
        same = [
            one for one in self.actions if one.record.text == text or (sort == "said" and _is_same(one.words, words))
        ]
        others = [one for one in self.actions if one not in same]
        first = same[0].record.first_seq if same else first_seq
        new = Kept(record=_record("confirmed action", text, turn, first), words=words, sort=sort)
        most = {"said": MAX_SAID, "called": MAX_CALLED}
        of_sort = [one for one in others if one.sort == sort]
        if len(of_sort) >= most[sort]:
            others.remove(of_sort[0])
        self.actions = [*others, new]

    def _open(self, sort: Origin, text: str, words: list[str], turn: Turn, of: StateRecord | None = None) -> None:
        opened = _record("open loop", text, turn)
        if of is not None:
            opened = msgspec.structs.replace(opened, first_seq=of.first_seq, last_seq=of.last_seq, at=of.at)
        others = [one for one in self.loops if not _is_same(one.words, words)]
        self.loops = [*others, Kept(record=opened, words=words, sort=sort)]

    def _promise(self, who: str, one: ReadSentence, turn: Turn) -> None:
        words = words_of(one.text)
        if len(words) >= SUBSTANCE_WORDS:
            self._open("promise", who + one.text, words, turn)

    def _close(self, words: list[str]) -> None:
        """What is done or decided is open no more."""
        self.loops = [one for one in self.loops if not is_about(one.words, words)]


# ── one sentence ──────────────────────────────────────────────────────────────────────────────


def _with_lead(sentences: Sequence[ReadSentence], chosen: Sequence[ReadSentence]) -> str:
    """The sentences, with what the message says before them where they say too little: "Please fix it."."""
    if not chosen:
        return ""
    text = " ".join(one.text for one in chosen)
    at = sentences.index(chosen[0])
    return f"{sentences[at - 1].text} {text}" if at and len(words_of(text)) < SUBSTANCE_WORDS else text


def _opening(sentences: Sequence[ReadSentence], kinds: Collection[StatementKind]) -> str:
    """What a message begins with that says or asks something: what a conversation is about, if nothing else says it."""
    for one in sentences:
        # How the agent is to behave is no goal; a request may look a little like it.
        # Nor is what they always like: a wish of now does not matter weeks later.
        is_lasting = (one.kind == "order" and one.sure >= SURE) or (one.kind == "preference" and one.keep >= LASTING)
        is_said = one.kind in kinds and one.states >= STATED and not is_lasting
        if one.own >= OPENING_OWN and (is_said or is_question(one.text)) and len(words_of(one.text)) >= SUBSTANCE_WORDS:
            return one.text
    return ""


def _is_task(one: ReadSentence) -> bool:
    return one.kind == "task" and one.own >= OWN and one.sure >= SURE


def _reports(sentences: Sequence[ReadSentence]) -> list[ReadSentence]:
    """What of the agent's words tells what was done; of a long text only its beginning and its end do."""
    ends = sentences if len(sentences) <= MOST_SENTENCES else [*sentences[:3], *sentences[-2:]]
    return [
        one for one in ends if one.kind == "outcome" and one.sure >= SURE and one.own >= OWN and _is_plain(one.text)
    ]


def _is_plain(text: str) -> bool:
    """A sentence, rather than a heading or a row of a table."""
    return not text.startswith(("*", "`", "|", "#")) and not text.endswith(("*", ":", "：", "?", "？"))


def _is_concrete(text: str) -> bool:
    """Whether it names something: a number, a name, an identifier, something in quotation marks."""
    return len(words_of(text)) >= SUBSTANCE_WORDS and any(
        is_named(token) and not (begins and token.isalpha()) for token, begins, _ in tokens_of(text)
    )


def _call_text(call: Call) -> str:
    """A call as it is told: its command, else its name with the arguments that tell it from others."""
    if command := handles.command_of(call.arguments):
        return cut(command)
    shown = [
        f"{key} {cut(text, ARGUMENT_CHARS)}"
        for key, text in strings_in(call.arguments)
        if text.strip() and len(text) <= LONGEST_TEXT_ARGUMENT_CHARS
    ]
    name = call.name[: handles.LONGEST_NAME_CHARS]
    return cut(f"{name}: {', '.join(shown[:ARGUMENTS_SHOWN])}" if shown else name)
