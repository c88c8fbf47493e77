"""What the user keeps returning to, and what they have left: D4 with its window, its fixation and its decay.

A fold over the user's turns, so that it goes on where it was and a compaction of the context does not touch it. The
turns are counted, not the messages: noise, tools and the agent's own words neither speak of a topic nor age it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from offbook.model.content import own_text
from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import TopicTracking
from offbook.model.turn import Topic
from offbook.model.types import Value
from offbook.rules.likeness import Embed, vectors_of
from offbook.rules.state.records import Turn
from offbook.rules.supersession.corrections import correction_in
from offbook.rules.topics.words import Candidate, key_of, reading_of, shared_grams

MAX_TOPICS = 60
MAX_TOPICS_BYTES = 13_000
"""As JSON. With the hints of the newest turns a state stays below 20 KB."""
MAX_NEW = 6
"""Topics that one turn can bring."""
MAX_SPOKEN = 32
"""Turns of a topic that are kept: a window of more counts no more."""
MAX_KEYS = 4
MAX_FORMS = 3
MAX_RECENT = 8
MAX_HINTS = 16
MAX_SHOWN = 30
HALF_WORTH_TURNS = 50
"""Where there is no room, a mention counts half as much this many turns later."""
SESSIONS_OF_A_FIXATION = 3
STALE_AFTER = timedelta(days=14)
"""Across sessions, where turns cannot be counted."""

MAX_EMBEDDED = 12
"""Texts a turn. With the default model such a turn took 79 ms on one busy core."""
ASKED = "I have a question about {}."
"""A word by itself has a poor vector. Of the frames tried (none, "my …", "the …", "Topic: …", "news about the …", "We
are talking about …", this one), this one set words for the same thing best apart from their neighbours."""
ALIKE = 0.68
"""Of 44 pairs for the same thing (lawyer, attorney; trip, travel) 24 are as alike as this with the default model, of 42
neighbours (coffee, tea; visa, passport) one: frontend and backend. At 0.62 it is 29 and 5."""


class KeptTopic(Value, frozen=True):
    keys: list[str]
    """All it is known by; the first is its own."""
    forms: dict[str, int]
    """How often it was called what; the last one called so is last."""
    spoken: list[int]
    """The newest turns that speak of it, by their number."""
    total: int
    first_at: datetime
    last_at: datetime


class Hints(Value, frozen=True):
    """What a turn said that is no topic until it is said again."""

    turn: int
    at: datetime
    keys: list[str]
    unspaced: str = ""


class TopicState(Value, frozen=True):
    through_seq: int = 0
    turns: int = 0
    """Of the user, and of substance."""
    topics: list[KeptTopic] = msgspec.field(default_factory=list)
    recent: list[Hints] = msgspec.field(default_factory=list)


class _Mark(NamedTuple):
    """A turn that speaks of a topic."""

    turn: int
    at: datetime


def advanced(
    state: TopicState, turns: Sequence[Turn], settings: TopicTracking, embed: Embed | None = None
) -> TopicState:
    """The state after these turns. What it has seen already changes nothing."""
    for turn in turns:
        if turn.seq <= state.through_seq:
            continue
        if _is_said_by_user(turn):
            if settings.enabled:
                state = _after(state, turn, settings, embed)
            state = msgspec.structs.replace(state, turns=state.turns + 1)
        state = msgspec.structs.replace(state, through_seq=turn.seq)
    return state


def topics_of(state: TopicState, settings: TopicTracking) -> list[Topic]:
    """What they keep returning to first, then what is fresh, then what they have left."""
    if not settings.enabled:
        return []
    shown = [_shown(kept, state.turns, settings) for kept in _without_parts(state.topics)]
    return _in_order([topic for topic in shown if topic.mentions or topic.total > 1])


def merged(of_sessions: Sequence[Sequence[Topic]], at: datetime) -> list[Topic]:
    """An agent's topics over its sessions, newest first."""
    by_key: dict[str, list[Topic]] = {}
    for topics in of_sessions:
        in_session = {key_of(topic.label): topic for topic in reversed(topics)}
        for key, topic in in_session.items():
            by_key.setdefault(key, []).append(topic)
    return _in_order([_over_sessions(same, at) for same in by_key.values()])


def _over_sessions(same: list[Topic], at: datetime) -> Topic:
    newest = same[0]
    last_at = max(topic.last_at for topic in same)
    is_left = newest.is_stale or at - last_at > STALE_AFTER
    is_fixated = len(same) >= SESSIONS_OF_A_FIXATION or (newest.is_fixated and not is_left)
    return msgspec.structs.replace(
        newest,
        freshness=0.0 if is_left else newest.freshness,
        total=sum(topic.total for topic in same),
        is_fixated=is_fixated,
        is_stale=is_left and not is_fixated,
        first_at=min(topic.first_at for topic in same),
        last_at=last_at,
        sessions=len(same),
    )


def _in_order(topics: list[Topic]) -> list[Topic]:
    fixated = [topic for topic in topics if topic.is_fixated]
    fresh = [topic for topic in topics if not (topic.is_fixated or topic.is_stale)]
    stale = [topic for topic in topics if topic.is_stale and not topic.is_fixated]
    fixated.sort(key=lambda topic: (topic.sessions, topic.mentions, topic.freshness, topic.total), reverse=True)
    fresh.sort(key=lambda topic: (topic.freshness, topic.mentions, topic.total, topic.last_at), reverse=True)
    stale.sort(key=lambda topic: topic.last_at, reverse=True)
    return [*fixated, *fresh, *stale][:MAX_SHOWN]


def _shown(kept: KeptTopic, turns: int, settings: TopicTracking) -> Topic:
    mentions = sum(turn > turns - settings.window_size for turn in kept.spoken)
    return Topic(
        label=_label(kept),
        mentions=mentions,
        total=kept.total,
        freshness=settings.decay_factor ** (turns - kept.spoken[-1]),
        is_fixated=mentions >= settings.fixation_threshold,
        is_stale=not mentions and kept.total > 1,
        first_at=kept.first_at,
        last_at=kept.last_at,
    )


def _label(kept: KeptTopic) -> str:
    return max(reversed(kept.forms), key=lambda form: kept.forms[form])


def _without_parts(topics: Sequence[KeptTopic]) -> list[KeptTopic]:
    """A word that they mostly say as part of one longer topic is that topic: "the starter", of a sourdough starter."""
    wholes: dict[int, int] = {}
    by_word, unspaced = _parts_of([topic.keys[0] for topic in topics])
    for at, part in enumerate(topics):
        key = part.keys[0]
        holding = [of for of in by_word.get(key, ()) if of != at]
        holding += [of for of, whole in unspaced if of != at and len(key) < len(whole) and key in whole]
        if len(holding) == 1 and 2 * topics[holding[0]].total >= part.total:
            wholes[at] = holding[0]
    joined = list(topics)
    for at, of in wholes.items():
        if of not in wholes:
            joined[of] = _together(joined[of], topics[at])
    return [topic for at, topic in enumerate(joined) if at not in wholes or wholes[at] in wholes]


def _parts_of(keys: Sequence[str]) -> tuple[dict[str, list[int]], list[tuple[int, str]]]:
    """Which keys hold a word, by the word; and those that are written without spaces, and hold whatever is in them."""
    by_word: dict[str, list[int]] = {}
    unspaced: list[tuple[int, str]] = []
    for at, key in enumerate(keys):
        if " " in key:
            for word in dict.fromkeys(key.split(" ")):
                by_word.setdefault(word, []).append(at)
        elif not key.isascii() and _is_unspaced(key):
            unspaced.append((at, key))
    return by_word, unspaced


def _together(whole: KeptTopic, part: KeptTopic) -> KeptTopic:
    others = set(part.spoken).difference(whole.spoken)
    return msgspec.structs.replace(
        whole,
        spoken=sorted([*whole.spoken, *others]),
        total=max(whole.total + len(others), part.total),
        first_at=min(whole.first_at, part.first_at),
        last_at=max(whole.last_at, part.last_at),
    )


def _is_said_by_user(turn: Turn) -> bool:
    message = turn.message
    is_own = message.role == "user" and message.origin in (None, "", "user") and message.tool_call_id is None
    return is_own and not turn.is_noise and bool(own_text(message.content).strip())


def _takes_back(turn: Turn) -> bool:
    correction = correction_in(own_text(turn.message.content), "user")
    return correction is not None and correction.kind == "retract" and bool(correction.target)


def _after(state: TopicState, turn: Turn, settings: TopicTracking, embed: Embed | None) -> TopicState:
    now = _Mark(state.turns + 1, turn.at)
    reading = reading_of(own_text(turn.message.content), settings.min_word_length)
    if _takes_back(turn):
        # "Forget what I said about my sister" is not to make her a topic, nor what was said of nothing but her.
        named = {candidate.key for candidate in reading.candidates}
        taken = {at for kept in state.topics if not named.isdisjoint(kept.keys) for at in kept.spoken}
        return msgspec.structs.replace(
            state, topics=[kept for kept in state.topics if not taken.issuperset(kept.spoken)]
        )
    in_window = [hints for hints in state.recent if hints.turn > now.turn - settings.window_size]
    grams = shared_grams(reading.unspaced, [hints.unspaced for hints in in_window])
    said = [
        *reading.candidates,
        *(Candidate(kept.keys[0], kept.keys[0], is_unspaced=True) for kept in _unspaced_in(reading.unspaced, state)),
        *(Candidate(gram, gram, needs=2, is_unspaced=True) for gram in grams),
    ]
    topics = list(state.topics)
    unknown: list[tuple[Candidate, list[_Mark]]] = []
    for candidate in said:
        at = _known(candidate, topics)
        if at is None:
            unknown.append((candidate, _before(candidate, in_window)))
        else:
            topics[at] = _spoken_of(topics[at], candidate, now)
    ready = [one for one in unknown if one[0].needs <= one[0].times + len(one[1])]
    ready.sort(key=_importance, reverse=True)
    for candidate, at in _alike([one[0] for one in ready[:MAX_NEW] if not one[1]], topics, now, settings, embed):
        topics[at] = _spoken_of(topics[at], candidate, now)
    for candidate, before in ready[:MAX_NEW]:
        if _known(candidate, topics) is None:
            topics.append(_begun(candidate, before, now))
    new = {candidate.key for candidate, _ in ready[:MAX_NEW]}
    left = sorted((one for one in unknown if one[0].key not in new), key=_importance, reverse=True)
    keys = [candidate.key for candidate, _ in left[:MAX_HINTS] for _ in range(min(candidate.times, 2))]
    hints = Hints(turn=now.turn, at=now.at, keys=keys[:MAX_HINTS], unspaced=reading.unspaced)
    return msgspec.structs.replace(
        state,
        topics=_within_limits(topics, now.turn, settings.window_size),
        recent=[*in_window, hints][-MAX_RECENT:] if hints.keys or hints.unspaced else in_window,
    )


def _unspaced_in(text: str, state: TopicState) -> list[KeptTopic]:
    """The topics a text without spaces speaks of."""
    return [kept for kept in state.topics if _is_unspaced(kept.keys[0]) and kept.keys[0] in text]


def _is_unspaced(key: str) -> bool:
    return "\u3005" <= key[0] <= "\u9fff"


def _before(candidate: Candidate, recent: Sequence[Hints]) -> list[_Mark]:
    """Where it was said when it was no topic yet, once for each time."""
    marks: list[_Mark] = []
    for hints in recent:
        times = candidate.key in hints.unspaced if candidate.is_unspaced else hints.keys.count(candidate.key)
        marks += [_Mark(hints.turn, hints.at)] * times
    return marks


def _importance(one: tuple[Candidate, list[_Mark]]) -> tuple[bool, bool, bool, bool, int]:
    """What they say again first, then names, phrases, longer words."""
    candidate, before = one
    return (bool(before), candidate.times > 1, candidate.is_name, " " in candidate.key, len(candidate.form))


def _known(candidate: Candidate, topics: Sequence[KeptTopic]) -> int | None:
    """The topic that this is a form of. Someone's first name is theirs as long as there is one of that name."""
    for at, kept in enumerate(topics):
        if candidate.key in kept.keys:
            return at
    if not candidate.is_name and not candidate.is_opening:
        return None
    parts = candidate.key.split(" ")
    same_name = [at for at, kept in enumerate(topics) if _is_named(kept) and _shares_name(parts, kept.keys)]
    return same_name[0] if len(same_name) == 1 else None


def _is_named(kept: KeptTopic) -> bool:
    return any(form != form.lower() for form in kept.forms)


def _shares_name(parts: Sequence[str], keys: Sequence[str]) -> bool:
    full_names = [key for key in keys if " " in key]
    if len(parts) == 1:
        return any(parts[0] in key.split(" ") for key in full_names)
    return not full_names and any(part in keys for part in parts)


def _spoken_of(kept: KeptTopic, candidate: Candidate, now: _Mark) -> KeptTopic:
    is_first = kept.spoken[-1] != now.turn
    keys = kept.keys if candidate.key in kept.keys else [*kept.keys, candidate.key][:MAX_KEYS]
    forms = dict(kept.forms)
    if not (candidate.is_opening and any(form.lower() == candidate.form for form in forms)):
        forms[candidate.form] = forms.pop(candidate.form, 0) + 1
    if len(forms) > MAX_FORMS:
        del forms[min(list(forms)[:-1], key=lambda form: forms[form])]
    return msgspec.structs.replace(
        kept,
        keys=keys,
        forms=forms,
        spoken=[*kept.spoken, now.turn][-MAX_SPOKEN:] if is_first else kept.spoken,
        total=kept.total + is_first,
        last_at=now.at,
    )


def _begun(candidate: Candidate, before: Sequence[_Mark], now: _Mark) -> KeptTopic:
    marks = list(dict.fromkeys([*before, now]))
    return KeptTopic(
        keys=[candidate.key],
        forms={candidate.form: 1},
        spoken=[mark.turn for mark in marks],
        total=len(marks),
        first_at=marks[0].at,
        last_at=now.at,
    )


def _alike(
    new: Sequence[Candidate], topics: Sequence[KeptTopic], now: _Mark, settings: TopicTracking, embed: Embed | None
) -> list[tuple[Candidate, int]]:
    """Which new words mean what they were speaking of. Names mean only themselves."""
    first_turn = now.turn - settings.window_size
    words = [one for one in new if not one.is_name and one.key.isascii()]
    near = [at for at, kept in enumerate(topics) if kept.spoken[-1] > first_turn and not _is_named(kept)]
    near = [at for at in near if topics[at].keys[0].isascii() and len(topics[at].keys) < MAX_KEYS]
    near.sort(key=lambda at: (topics[at].total, topics[at].spoken[-1]), reverse=True)
    near = near[: MAX_EMBEDDED - len(words)]
    if embed is None or not words or not near:
        return []
    labels = [*(one.form for one in words), *(_label(topics[at]) for at in near)]
    try:
        vectors = vectors_of(embed, [ASKED.format(label) for label in labels])
    except ModelUnavailable:
        return []  # Words alone do; the next turn asks again.
    likeness = vectors[: len(words)] @ vectors[len(words) :].T
    best = likeness.argmax(axis=1)
    return [(one, near[best[at]]) for at, one in enumerate(words) if likeness[at, best[at]] >= ALIKE]


def _within_limits(topics: Sequence[KeptTopic], turns: int, window_size: int) -> list[KeptTopic]:
    """What has been left for longest and was mentioned least goes first."""

    def worth(at: int) -> tuple[bool, float]:
        age = turns - topics[at].spoken[-1]
        return (age < window_size or topics[at].total > 1, topics[at].total * 0.5 ** (age / HALF_WORTH_TURNS))

    room = MAX_TOPICS_BYTES
    kept: list[int] = []
    for at in sorted(range(len(topics)), key=worth, reverse=True)[:MAX_TOPICS]:
        room -= len(msgspec.json.encode(topics[at]))
        if room >= 0:
            kept.append(at)
    return [topics[at] for at in sorted(kept)]
