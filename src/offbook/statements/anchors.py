"""What must not be lost from sight: who they are, what does not fit together, what is unresolved (D3).

A fold over the user's own sentences as they were read, turn by turn. What is said again refreshes what is kept, what is
said anew about the same thing replaces it, and a tension goes when something is done or decided about it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache

import msgspec

from offbook.model.sentences import is_question
from offbook.model.settings.sections import CONTRADICTION_WORDS, IDENTITY_WORDS, TENSION_WORDS, Anchors
from offbook.model.statement import ReadSentence, StatementKind
from offbook.model.turn import Anchor, AnchorKind
from offbook.model.types import Value
from offbook.statements.turns import Turn
from offbook.statements.words import cut, is_about, is_of_speaker, names_in, shared, words_of

SURE, OWN = 0.5, 0.5
KEPT, KEPT_WITH_KEYWORD = 0.6, 0.3
"""How likely a fact matters in weeks to say who they are: less where it holds a phrase of the settings."""
FELT = 0.45
STATED = 0.4
MOST_SENTENCES = 12
"""A longer message is told by somebody else, or about somebody else, more often than not."""
FEWEST_WORDS = 2
MAX_STATED, MAX_SETTLED = 40, 8
RESERVED_SHARE = 5
"""A fifth of the anchors is for the newest contradictions and a fifth for the newest tensions, however many identities
there are."""
SAME_WORDS = 0.6
_TROUBLE: tuple[StatementKind, ...] = ("fact", "outcome", "feeling")
_COMPARED: tuple[StatementKind, ...] = ("fact", "preference", "constraint", "decision")
_DEFAULTS: dict[AnchorKind, tuple[str, ...]] = {
    "identity": IDENTITY_WORDS,
    "contradiction": CONTRADICTION_WORDS,
    "tension": TENSION_WORDS,
}


class KeptAnchor(Value, frozen=True):
    """A sentence, where it stands, and what it is found by."""

    kind: AnchorKind
    text: str
    seq: int
    """Where `text` was said."""
    at: datetime
    """When it, or the same in other words, was last said."""
    times: int = 1
    words: list[str] = msgspec.field(default_factory=list)


class SettledTension(Value, frozen=True):
    """Something was done or decided about it: other sessions may hold it as a tension."""

    words: list[str]
    at: datetime


class Stated(Value, frozen=True):
    """What a later sentence is compared with."""

    seq: int
    words: list[str]
    names: list[str]


class AnchorState(Value, frozen=True):
    """The anchors of one session through a message, in the order in which they were last said."""

    through_seq: int = msgspec.field(default=0, name="readThrough")
    """By this name no note of another shape is taken for one of these."""
    kept: list[KeptAnchor] = msgspec.field(default_factory=list)
    settled: list[SettledTension] = msgspec.field(default_factory=list)
    stated: list[Stated] = msgspec.field(default_factory=list)


def advanced(state: AnchorState, turns: Sequence[Turn], settings: Anchors) -> AnchorState:
    """The state after those messages. What it has seen already changes nothing."""
    for turn in turns:
        if turn.seq > state.through_seq:
            if settings.enabled and turn.is_users:
                state = _heard(state, turn, settings)
            state = msgspec.structs.replace(state, through_seq=turn.seq)
    return state


def anchors_of(states: Sequence[tuple[str, AnchorState]], settings: Anchors, at: datetime) -> list[Anchor]:
    """The anchors of one session or of several: the fresh ones first, each newest first."""
    if not settings.enabled:
        return []
    told = [(session_id, one) for session_id, state in states for one in state.kept]
    settled = [one for _, state in states for one in state.settled]
    merged: list[tuple[str, KeptAnchor]] = []
    for session_id, one in sorted(told, key=lambda pair: (pair[1].at, pair[1].seq)):
        if not any(one.at < end.at and _is_settled(one, end.words) for end in settled):
            merged = _merged(merged, session_id, one)
    fresh = {id(one) for _, one in merged if at - one.at <= settings.max_age}
    going = _going([one for _, one in merged], settings.max_count, fresh)
    anchors = [
        Anchor(
            kind=one.kind,
            text=one.text,
            session_id=session_id,
            seq=one.seq,
            at=one.at,
            times=one.times,
            is_fresh=id(one) in fresh,
        )
        for session_id, one in reversed(merged)
        if id(one) not in going
    ]
    return sorted(anchors, key=lambda one: not one.is_fresh)


# ── one turn ──────────────────────────────────────────────────────────────────────────────────


def _heard(state: AnchorState, turn: Turn, settings: Anchors) -> AnchorState:
    kept, settled, stated = state.kept, state.settled, state.stated
    is_short = len(turn.sentences) <= MOST_SENTENCES
    # What they feel about something that is done is not unresolved.
    is_told = any(one.kind == "outcome" and one.sure >= SURE and one.own >= OWN for one in turn.sentences)
    for sentence in turn.sentences:
        words = words_of(sentence.text)
        if sentence.own < OWN or is_question(sentence.text) or len(words) < FEWEST_WORDS:
            continue
        if sentence.kind in ("outcome", "decision") and sentence.sure >= STATED:
            settled = [*settled, SettledTension(words=words, at=turn.at)][-MAX_SETTLED:]
            kept = [one for one in kept if not _is_settled(one, words)]
        is_compared = sentence.kind in _COMPARED and sentence.sure >= STATED
        names = names_in(sentence.text) if is_compared else frozenset[str]()
        differs = _differing(names, words, stated, turn.seq) if is_compared else set[int]()
        kind: AnchorKind | None = (
            "contradiction" if differs else _kind(sentence, settings, is_short=is_short, is_told=is_told)
        )
        if differs:  # what was said of it before holds no more
            kept = [one for one in kept if one.seq not in differs or not _is_alike(one.words, words)]
        if kind is not None:
            new = KeptAnchor(kind=kind, text=cut(sentence.text), seq=turn.seq, at=turn.at, words=words)
            kept = [one for _, one in _merged([("", one) for one in kept], "", new)]
        if is_compared:
            stated = [*stated, Stated(seq=turn.seq, words=words, names=sorted(names))][-MAX_STATED:]
    kept = _within(kept, settings.max_count)
    return AnchorState(through_seq=state.through_seq, kept=kept, settled=settled, stated=stated)


def _kind(one: ReadSentence, settings: Anchors, *, is_short: bool, is_told: bool) -> AnchorKind | None:
    words = settings.keywords
    given = {"identity": words.identity, "contradiction": words.contradiction, "tension": words.tension}
    for kind, default in _DEFAULTS.items():  # whoever adds a word means it, wherever it stands
        if _holds(one.text, set(given[kind]).difference(default)):
            return kind
    is_worry = one.kind == "feeling" and one.sure >= FELT and not is_told
    if is_worry or (is_short and one.kind in _TROUBLE and _holds(one.text, words.tension)):
        return "tension"
    if one.kind != "fact" or one.sure < SURE or not is_short:
        return None
    if one.keep >= KEPT and is_of_speaker(one.text):
        return "identity"
    return "identity" if one.keep >= KEPT_WITH_KEYWORD and _holds(one.text, words.identity) else None


def _holds(text: str, phrases: Collection[str]) -> bool:
    """Whether a text holds one of the settings' phrases, in whole words."""
    if not phrases:
        return False
    spaced = _spaced(text)
    return any(f" {phrase.casefold()} " in spaced for phrase in phrases)


@lru_cache(16)
def _spaced(text: str) -> str:
    """With one space around each word."""
    words = "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split()
    return f" {' '.join(words)} "


def _differing(names: frozenset[str], words: list[str], stated: Sequence[Stated], seq: int) -> set[int]:
    """The earlier messages that said the same of something with another name or number."""
    return {
        before.seq
        for before in stated
        if before.seq != seq
        and names.difference(before.names)
        and set(before.names) - names
        and _is_alike(before.words, words)
    }


def _is_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether most of the telling words of the shorter are in both."""
    count = shared(one, other)
    return count >= 2 and count >= SAME_WORDS * min(len(one), len(other))


# ── what it does to what is kept ──────────────────────────────────────────────────────────────


def _merged(told: list[tuple[str, KeptAnchor]], session_id: str, new: KeptAnchor) -> list[tuple[str, KeptAnchor]]:
    """With one more; where it is said already, with the newer words, unless they say less."""
    left: list[tuple[str, KeptAnchor]] = []
    for other_id, one in told:
        if not _is_same(one, new):
            left.append((other_id, one))
            continue
        is_less = set(new.words) < set(one.words)
        session_id = other_id if is_less else session_id
        kept = one if is_less else new
        new = msgspec.structs.replace(kept, at=max(one.at, new.at), times=one.times + new.times)
    return [*left, (session_id, new)]


def _is_same(one: KeptAnchor, other: KeptAnchor) -> bool:
    if one.kind != other.kind:
        return False
    if one.text.casefold() == other.text.casefold():
        return True
    first, second = set(one.words), set(other.words)
    common = len(first & second)
    return common > 1 and (common == min(len(first), len(second)) or common >= SAME_WORDS * len(first | second))


def _is_settled(one: KeptAnchor, words: list[str]) -> bool:
    return one.kind == "tension" and is_about(words, one.words) and shared(words, one.words) > 0


# ── how many there may be ─────────────────────────────────────────────────────────────────────


def _within(kept: list[KeptAnchor], most: int) -> list[KeptAnchor]:
    going = _going(kept, most, {id(one) for one in kept})
    return [one for one in kept if id(one) not in going] if going else kept


def _going(kept: list[KeptAnchor], most: int, fresh: set[int]) -> set[int]:
    """Whom there is no room for: stale contradictions and tensions first, then the older fresh ones, identity last."""
    over = len(kept) - most
    if over <= 0:
        return set()
    others = [one for one in kept if one.kind != "identity"]
    stale = [one for one in others if id(one) not in fresh]
    reserved: list[KeptAnchor] = []
    for kind in ("contradiction", "tension"):
        newest = [one for one in others if one.kind == kind and id(one) in fresh]
        reserved += newest[len(newest) - min(len(newest), most // RESERVED_SHARE) :]
    safe = {id(one) for one in reserved}
    older = [one for one in others if id(one) in fresh and id(one) not in safe]
    identity = [one for one in kept if one.kind == "identity"]
    return {id(one) for one in [*stale, *older, *identity, *reserved][:over]}
