"""What the user keeps returning to, and what they have left: D4 with its window, its fixation and its decay.

A fold over the user's turns, so that it goes on where it was and a compaction of the context does not touch it. The
turns are counted, not the messages: noise, tools and the agent's own words neither speak of a topic nor age it. Topics
are names, and words that few messages have; their labels are as they are said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import msgspec

from offbook.model.sentences import is_question
from offbook.model.settings.sections import TopicTracking
from offbook.model.statement import ReadSentence
from offbook.model.turn import Topic
from offbook.model.types import Value
from offbook.search.words import terms
from offbook.statements.common_words import common, is_common, is_unspaced
from offbook.statements.turns import Turn
from offbook.statements.words import has_hump, is_named, plain_apostrophe, tokens_of

MAX_TOPICS = 60
MAX_NEW = 12
"""Topics that one turn can bring."""
MAX_SPOKEN = 32
"""Turns of a topic that are kept: a window of more counts no more."""
MAX_FORMS = 3
MAX_FORM_CHARS = 32
MAX_RECENT_CHARS = 200
MAX_SHOWN = 12
MAX_NAME_WORDS = 3
READ_CHARS = 2_000
"""Of what the agent says."""
STATED, OWN = 0.2, 0.3
"""Of a sentence that speaks of something, and does so in the speaker's own words."""
HALF_WORTH_TURNS = 50
"""Where there is no room, a mention counts half as much this many turns later."""
SESSIONS_OF_A_FIXATION = 3
STALE_AFTER = timedelta(days=14)
"""Across sessions, where turns cannot be counted."""
SHORTEST_NAME_CHARS = 3
GRAM_CHARS = (6, 5, 4, 3, 2)
WORDS_KEPT = 4_096


class KeptTopic(Value, frozen=True):
    key: str
    forms: dict[str, int]
    """How often it was called what; the last one called so is last."""
    spoken: list[int]
    """The newest turns that speak of it, by their number."""
    total: int
    first_at: datetime
    last_at: datetime
    is_name: bool = False
    is_taken_up: bool = False
    """The agent spoke of it, too."""


class TopicState(Value, frozen=True):
    through_seq: int = msgspec.field(default=0, name="readThrough")
    """By this name no note of another shape is taken for one of these."""
    turns: int = 0
    """Of the user, and of substance."""
    topics: list[KeptTopic] = msgspec.field(default_factory=list)
    recent: list[str] = msgspec.field(default_factory=list)
    """What the newest turns say in scripts without spaces: what two of them share may be a topic."""


class Candidate(NamedTuple):
    """A name or a rare word, as it is said and as it is known by."""

    key: str
    form: str
    is_name: bool = False


class _Mark(NamedTuple):
    """A turn that speaks of a topic."""

    turn: int
    at: datetime


def advanced(state: TopicState, turns: Sequence[Turn], settings: TopicTracking) -> TopicState:
    """The state after these turns. What it has seen already changes nothing."""
    for turn in turns:
        if turn.seq <= state.through_seq:
            continue
        if turn.is_users and not turn.is_noise:
            if settings.enabled:
                state = _after(state, turn, settings)
            state = msgspec.structs.replace(state, turns=state.turns + 1)
        elif turn.is_agents and settings.enabled:
            state = _taken_up(state, turn.said)
        state = msgspec.structs.replace(state, through_seq=turn.seq)
    return state


def topics_of(state: TopicState, settings: TopicTracking) -> list[Topic]:
    """What they keep returning to first, then what is fresh, then what they have left."""
    if not settings.enabled:
        return []
    kept = [one for one in state.topics if _is_told(one, state.turns, settings)]
    return _in_order([_shown(one, state.turns, settings) for one in kept])


def merged(states: Sequence[TopicState], settings: TopicTracking, at: datetime) -> list[Topic]:
    """An agent's topics over its sessions, newest first. What two of them speak of is one, however briefly they do."""
    if not settings.enabled:
        return []
    by_key: dict[str, list[Topic]] = {}
    told: set[str] = set()
    for state in states:
        for one in state.topics:
            by_key.setdefault(one.key, []).append(_shown(one, state.turns, settings))
            if _is_told(one, state.turns, settings):
                told.add(one.key)
    return _in_order([_over_sessions(same, at) for key, same in by_key.items() if key in told or len(same) > 1])


def since(state: TopicState, at: datetime | None) -> TopicState:
    """Only what was spoken of at that time or later."""
    if at is None:
        return state
    return msgspec.structs.replace(state, topics=[one for one in state.topics if one.last_at >= at])


def _is_told(kept: KeptTopic, turns: int, settings: TopicTracking) -> bool:
    """A name, or a word that the agent took up or that they keep returning to: what is said once in passing is none."""
    is_recent = kept.spoken[-1] > turns - settings.window_size
    if kept.total > 1:
        return kept.is_name or kept.is_taken_up or kept.total >= settings.fixation_threshold
    return kept.is_name and kept.is_taken_up and is_recent


def _over_sessions(same: list[Topic], at: datetime) -> Topic:
    newest = same[0]
    last_at = max(topic.last_at for topic in same)
    is_left = newest.is_stale or at - last_at > STALE_AFTER
    is_fixated = len(same) >= SESSIONS_OF_A_FIXATION or (newest.is_fixated and not is_left)
    return msgspec.structs.replace(
        newest,
        label=next((topic.label for topic in same if not topic.label.islower()), newest.label),
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
    fresh.sort(key=lambda topic: (topic.total > 1, topic.freshness, topic.mentions, topic.last_at), reverse=True)
    stale.sort(key=lambda topic: topic.last_at, reverse=True)
    return [*fixated, *fresh, *stale][:MAX_SHOWN]


def _shown(kept: KeptTopic, turns: int, settings: TopicTracking) -> Topic:
    mentions = sum(turn > turns - settings.window_size for turn in kept.spoken)
    return Topic(
        label=max(reversed(kept.forms), key=lambda form: kept.forms[form]),
        mentions=mentions,
        total=kept.total,
        freshness=settings.decay_factor ** (turns - kept.spoken[-1]),
        is_fixated=mentions >= settings.fixation_threshold,
        is_stale=not mentions and kept.total > 1,
        first_at=kept.first_at,
        last_at=kept.last_at,
    )


# ── one turn ──────────────────────────────────────────────────────────────────────────────────


def _after(state: TopicState, turn: Turn, settings: TopicTracking) -> TopicState:
    now = _Mark(state.turns + 1, turn.at)
    read = [one for one in turn.sentences if one.own >= OWN and (one.states >= STATED or is_question(one.text))]
    candidates = {one.key: one for sentence in read for one in candidates_of(sentence, settings.min_word_length)}
    written = (f"{one.text} " for one in read if not one.text.isascii())
    unspaced = "".join(letter if is_unspaced(letter) else " " for text in written for letter in text)
    unspaced = " ".join(run for run in unspaced.split() if len(run) > 1)[:MAX_RECENT_CHARS]
    topics = list(state.topics)
    known = {kept.key for kept in topics}
    spoken_of = [
        *candidates.values(),
        *(Candidate(key, key) for key in known if is_unspaced(key[0]) and key in unspaced),
    ]
    for gram in shared_grams(unspaced, state.recent) if unspaced else []:
        if gram not in known:  # it was said before, when it was no topic yet
            before = _Mark(now.turn - 1, now.at)
            candidate = Candidate(gram, gram, is_name=True)
            topics.append(_spoken(_begun(candidate, before), candidate, now))
    new = 0
    for candidate in spoken_of:
        at = _known(candidate, topics)
        if at is not None:
            topics[at] = _spoken(topics[at], candidate, now)
        elif new < MAX_NEW:
            topics.append(_begun(candidate, now))
            new += 1
    recent = [*state.recent, unspaced][-settings.window_size :] if unspaced or any(state.recent) else []
    return msgspec.structs.replace(state, topics=_within(topics, now.turn, settings.window_size), recent=recent)


def _taken_up(state: TopicState, said: str) -> TopicState:
    text, words = said[:READ_CHARS], set(terms(said[:READ_CHARS]))
    topics = [
        kept
        if kept.is_taken_up
        or not (words.issuperset(kept.key.split(" ")) or (is_unspaced(kept.key[0]) and kept.key in text))
        else msgspec.structs.replace(kept, is_taken_up=True)
        for kept in state.topics
    ]
    return msgspec.structs.replace(state, topics=topics)


def candidates_of(one: ReadSentence, min_word_length: int) -> Iterator[Candidate]:
    """The names and the rare words of a sentence."""
    name: list[str] = []
    for token, begins, is_joined in tokens_of(one.text):
        bare = _without_ending(token)
        is_name = _is_name(bare, begins=begins)
        if name and not (is_name and is_joined):
            yield _named(name)
            name = []
        if is_name:
            name = [*name, bare][-MAX_NAME_WORDS:]
            continue
        for word in bare.split("-") if bare.count("-") > 1 else [bare]:
            if len(word) >= min_word_length and _is_word(word):
                yield Candidate(key_of(word), word.lower() if begins else word)
    if name:
        yield _named(name)


def _named(words: Sequence[str]) -> Candidate:
    label = " ".join(words)[:MAX_FORM_CHARS]
    return Candidate(key_of(label), label, is_name=True)


def _without_ending(token: str) -> str:
    plain = plain_apostrophe(token)
    return plain.split("'")[0] if "'" in plain[1:] else plain


def _is_name(token: str, *, begins: bool) -> bool:
    if not SHORTEST_NAME_CHARS <= len(token) <= MAX_FORM_CHARS or "://" in token or is_common(token):
        return False
    if token.replace("-", "").isalpha() and not has_hump(token):
        return token[0].isupper() and not begins
    letters = sum(letter.isalpha() for letter in token)
    is_written = all(letter.isalnum() or letter in "_-.&" for letter in token)
    return is_named(token) and is_written and letters > 2 and letters * 2 > len(token) and token[0].isalpha()


def _is_word(word: str) -> bool:
    bare = word.replace("-", "")
    return bare.isalpha() and len(word) <= MAX_FORM_CHARS and not is_unspaced(word[0]) and not is_common(word)


@lru_cache(WORDS_KEPT)
def key_of(label: str) -> str:
    """By which labels are the same: each word as its stem."""
    found = [terms(word) for word in label.replace("-", " ").split()]
    return " ".join(words[0] for words in found if words)[:MAX_FORM_CHARS] or label.casefold()[:MAX_FORM_CHARS]


def _known(candidate: Candidate, topics: Sequence[KeptTopic]) -> int | None:
    """The topic that this is a form of. A part of a name is that of the only one it is a part of."""
    for at, kept in enumerate(topics):
        if candidate.key == kept.key:
            return at
    parts = set(candidate.key.split(" "))
    holding = [
        at
        for at, kept in enumerate(topics)
        if kept.is_name and (parts < set(kept.key.split(" ")) or (candidate.is_name and {kept.key} < parts))
    ]
    return holding[0] if len(holding) == 1 else None


def _spoken(kept: KeptTopic, candidate: Candidate, now: _Mark) -> KeptTopic:
    is_first = kept.spoken[-1] != now.turn
    forms = dict(kept.forms)
    same = next((form for form in forms if form.lower() == candidate.form.lower()), candidate.form)
    times = forms.pop(same, 0) + 1
    forms[candidate.form if candidate.is_name else same] = times
    if len(forms) > MAX_FORMS:
        del forms[min(list(forms)[:-1], key=lambda form: forms[form])]
    return msgspec.structs.replace(
        kept,
        key=candidate.key if candidate.is_name and len(candidate.key) > len(kept.key) else kept.key,
        forms=forms,
        spoken=[*kept.spoken, now.turn][-MAX_SPOKEN:] if is_first else kept.spoken,
        total=kept.total + is_first,
        last_at=now.at,
        is_name=kept.is_name or candidate.is_name,
    )


def _begun(candidate: Candidate, now: _Mark) -> KeptTopic:
    return KeptTopic(
        key=candidate.key,
        forms={candidate.form: 1},
        spoken=[now.turn],
        total=1,
        first_at=now.at,
        last_at=now.at,
        is_name=candidate.is_name,
    )


def shared_grams(text: str, others: Sequence[str]) -> list[str]:
    """The stretches of 2 to 6 signs that a text shares with another; a longer one stands for what it holds."""
    words, signs = common()
    found: dict[str, None] = {}
    is_taken = [False] * len(text)
    for chars in GRAM_CHARS:
        for at in range(len(text) - chars + 1):
            gram = text[at : at + chars]
            if " " in gram or gram[0] in signs or gram[-1] in signs or gram in words or any(is_taken[at : at + chars]):
                continue
            if any(gram in other for other in others):
                found[gram] = None
                is_taken[at : at + chars] = [True] * chars
    return list(found)


def _within(topics: Sequence[KeptTopic], turns: int, window_size: int) -> list[KeptTopic]:
    """What has been left for longest and was mentioned least goes first."""

    def worth(at: int) -> tuple[bool, float]:
        age = turns - topics[at].spoken[-1]
        return (age < window_size or topics[at].total > 1, topics[at].total * 0.5 ** (age / HALF_WORTH_TURNS))

    kept = sorted(range(len(topics)), key=worth, reverse=True)[:MAX_TOPICS]
    return [topics[at] for at in sorted(kept)]
