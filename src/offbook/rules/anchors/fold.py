"""What must not be lost from sight: who they are, what does not fit together, what is unresolved (D3).

A fold over the user's own words, turn by turn. Rules decide which sentence is an anchor (`anchor_rules`); where they
are uncertain a model may (`anchor_prototypes`), and without one the sentence is left out. What is said again refreshes
what is kept, what is said anew about the same thing replaces it, and a tension goes when they say that it is settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from offbook.ingest.noise import SHORTEST_SUBSTANCE_CHARS
from offbook.model.content import own_text
from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import Anchors
from offbook.model.turn import Anchor, AnchorKind
from offbook.model.types import Value
from offbook.rules.anchors.prototypes import Nominee, denies, margin_over, names_in, nominees
from offbook.rules.anchors.tension import settled_in, subject_of
from offbook.rules.likeness import Embed, vectors_of
from offbook.rules.state.records import Turn, cut, is_about, shared, words_of
from offbook.rules.state.rules import sentences_in
from offbook.rules.supersession.corrections import correction_in
from offbook.rules.supersession.facts import contradicts, facts_in, is_single_valued
from offbook.rules.supersession.supersede import says_more

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_CANDIDATES = 8
"""Of one turn: who tells more at once has pasted something, and a model reads no more than these."""
MAX_SETTLED = 8
RESERVED_SHARE = 5
"""A fifth of the anchors is for the newest contradictions and a fifth for the newest tensions, however many identities
there are."""
SAME_WORDS = 0.6
SAME_MEANING = 0.85

_OF_TELLING = frozenset(words_of("say said tell told mentioned remember know knows already longer anymore actually"))
"""They tell that something is said, not what."""


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


class ResolvedTension(Value, frozen=True):
    """Something they said is settled: other sessions may hold it as a tension."""

    words: list[str]
    at: datetime


class AnchorState(Value, frozen=True):
    """The anchors of one session through a message, in the order in which they were last said."""

    through_seq: int = 0
    kept: list[KeptAnchor] = msgspec.field(default_factory=list)
    settled: list[ResolvedTension] = msgspec.field(default_factory=list)


def advanced(state: AnchorState, turns: Sequence[Turn], settings: Anchors, embed: Embed | None = None) -> AnchorState:
    """The state after those messages. What it has seen already changes nothing."""
    for turn in turns:
        if turn.seq > state.through_seq:
            if settings.enabled and _is_users_own(turn):
                state = _heard(state, turn, settings, embed)
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
        if not any(one.at < end.at and _ends(end.words, one) for end in settled):
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


def _is_users_own(turn: Turn) -> bool:
    message = turn.message
    return message.role == "user" and message.origin in (None, "", "user") and message.tool_call_id is None


def _heard(state: AnchorState, turn: Turn, settings: Anchors, embed: Embed | None) -> AnchorState:
    said = own_text(turn.message.content)
    if turn.is_noise and len(said.strip()) >= SHORTEST_SUBSTANCE_CHARS:
        return state
    # Too short to be an anchor, "Fixed!" still ends one.
    sentences = sentences_in(said)
    kinds = {} if turn.is_noise else _kinds(sentences, settings, embed)
    kept, settled = state.kept, state.settled
    for at, sentence in enumerate(sentences):
        for part in settled_in(sentence):
            words = subject_of(part)
            kept = _without_settled(kept, words)
            settled = [*settled, ResolvedTension(words=words, at=turn.at)][-MAX_SETTLED:] if words else settled
        if retracted := _retracted(sentence):
            # What they want forgotten; who says so repeats it.
            kept = [one for one in kept if shared(retracted, words_of(one.text)) < len(retracted)]
        elif kind := kinds.get(at):
            kept = _with(kept, _anchor(kind, sentence, turn), embed)
    kept = _within(kept, settings.max_count)
    return AnchorState(through_seq=state.through_seq, kept=kept, settled=settled)


def _kinds(sentences: list[str], settings: Anchors, embed: Embed | None) -> dict[int, AnchorKind]:
    """Which sentences are anchors."""
    candidates: dict[int, list[Nominee]] = {}
    for at, sentence in enumerate(sentences):
        found = list(nominees(sentence, settings.keywords))
        if any(one.is_certain for one in found) or (found and embed is not None):
            candidates[at] = found
            if len(candidates) == MAX_CANDIDATES:
                break
    decided = {at: _decided(sentences[at], found, embed) for at, found in candidates.items()}
    return {at: kind for at, kind in decided.items() if kind is not None}


def _decided(sentence: str, found: list[Nominee], embed: Embed | None) -> AnchorKind | None:
    for one in found:
        if one.is_certain:
            return one.kind
    if embed is None or not found or (vector := _vector(embed, cut(sentence))) is None:
        return None
    margins = {one.kind: margin_over(vector, one.kind, embed) for one in found}
    best = max(margins, key=margins.__getitem__)
    return best if margins[best] >= 0 else None


def _anchor(kind: AnchorKind, sentence: str, turn: Turn) -> KeptAnchor:
    text = cut(sentence)
    words = subject_of(text) if kind == "tension" else [word for word in words_of(text) if word not in _OF_TELLING]
    return KeptAnchor(kind=kind, text=text, seq=turn.seq, at=turn.at, words=words)


def _vector(embed: Embed, text: str) -> NDArray[np.float32] | None:
    """None where the model is gone: anchors are found without it too."""
    try:
        row: NDArray[np.float32] = vectors_of(embed, [text])[0]
        return row
    except ModelUnavailable:
        return None


# ── what it does to what is kept ──────────────────────────────────────────────────────────────


def _with(kept: list[KeptAnchor], new: KeptAnchor, embed: Embed | None) -> list[KeptAnchor]:
    if new.kind == "tension" and not new.words:
        # "I'm still stuck": on what they said before.
        for one in reversed(kept):
            if one.kind == "tension":
                again = msgspec.structs.replace(one, at=new.at, times=one.times + 1)
                return [*(other for other in kept if other is not one), again]
    alike = [one for one in kept if _is_same(one, new)] or _alike(kept, new, embed)
    for one in alike[-1:]:
        new = _again(one, new)
    return [*(one for one in kept if one not in alike[-1:] and not _replaces(new, one)), new]


def _merged(told: list[tuple[str, KeptAnchor]], session_id: str, new: KeptAnchor) -> list[tuple[str, KeptAnchor]]:
    """The same, where sessions say it."""
    left: list[tuple[str, KeptAnchor]] = []
    for other_id, one in told:
        if _is_same(one, new):
            merged = _again(one, new)
            session_id = other_id if merged.text == one.text and merged.seq == one.seq else session_id
            new = merged
        elif not _replaces(new, one):
            left.append((other_id, one))
    return [*left, (session_id, new)]


def _is_same(one: KeptAnchor, other: KeptAnchor) -> bool:
    if one.kind != other.kind:
        return False
    if one.text.casefold() == other.text.casefold():
        return True
    first, second = set(one.words), set(other.words)
    common = len(first & second)
    # One word in common is much where they say who they are, and little where something is wrong.
    enough = common and (one.kind == "identity" or common > 1)
    is_part = bool(enough) and common == min(len(first), len(second))
    return is_part or (common > 0 and common >= SAME_WORDS * len(first | second))


def _alike(kept: list[KeptAnchor], new: KeptAnchor, embed: Embed | None) -> list[KeptAnchor]:
    """Those of the same meaning, the nearest last. Other names or numbers are other things, however alike."""
    names = names_in(new.text)
    rivals = [one for one in kept if one.kind == new.kind and names_in(one.text) == names]
    if embed is None or not rivals or (vector := _vector(embed, new.text)) is None:
        return []
    likeness = {
        at: float(other @ vector) for at, one in enumerate(rivals) if (other := _vector(embed, one.text)) is not None
    }
    near = sorted((at for at in likeness if likeness[at] >= SAME_MEANING), key=likeness.__getitem__)
    return [rivals[at] for at in near]


def _again(old: KeptAnchor, new: KeptAnchor) -> KeptAnchor:
    """Said once more. Who repeats only a part of it has not taken back the rest."""
    says_less = set(new.words) < set(old.words) and denies(old.text) == denies(new.text)
    kept = old if says_less else new
    return msgspec.structs.replace(kept, at=max(old.at, new.at), times=old.times + new.times)


def _replaces(new: KeptAnchor, old: KeptAnchor) -> bool:
    """ "My name is Tina" does not stay beside "my name is Nina"."""
    if not new.kind == old.kind == "identity" or says_more(old.text, new.text):
        return False  # what else it says holds still
    before = {fact.about: fact.value for fact in facts_in(old.text, "user")}
    return any(
        is_single_valued(fact.about) and contradicts(fact.about, fact.value, before[fact.about])
        for fact in facts_in(new.text, "user")
        if fact.about in before
    )


def _ends(settled: list[str], one: KeptAnchor) -> bool:
    return one.kind == "tension" and is_about(settled, one.words)


def _without_settled(kept: list[KeptAnchor], words: list[str]) -> list[KeptAnchor]:
    """ "It works now" is of what they spoke of last."""
    if words:
        return [one for one in kept if not _ends(words, one)]
    newest = max((at for at, one in enumerate(kept) if one.kind == "tension"), default=None)
    return [one for at, one in enumerate(kept) if at != newest]


def _retracted(sentence: str) -> list[str]:
    correction = correction_in(sentence, "user")
    return words_of(correction.target) if correction and correction.kind == "retract" else []


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
