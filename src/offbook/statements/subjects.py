"""What somebody's sentences are about, over all their sessions: the people, projects and topics that get a page.

A fold over the user's turns notes where each name or rare word is said, without the sentence itself: the words stay in
the log, and what is forgotten there is forgotten here once its places are dropped. Which of them are subjects, and of
what kind, is decided from all their mentions at once, in no order. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from offbook.model.sentences import is_question
from offbook.model.settings.sections import TopicTracking
from offbook.model.statement import ReadSentence
from offbook.models.subject_kinds import SUBJECT_KINDS, SubjectKind, read_subject
from offbook.statements.common_words import is_common, is_unspaced
from offbook.statements.topics import candidates_of, key_of, shared_grams
from offbook.statements.turns import Turn
from offbook.statements.words import cut, is_of_speaker, words_of

SAID, STATED, KEPT = 0.3, 0.5, 0.5
"""In the speaker's own voice; so that it states something; so that it matters in weeks."""
FEWEST_WORDS = 3
"""Telling words of a sentence that says something by itself."""
FEWEST_SESSIONS, FEWEST_STATEMENTS = 2, 3
"""A name is a subject where it is said in so many sessions, or stated so often in one."""
FEWEST_WORD_SESSIONS, FEWEST_WORD_STATEMENTS = 3, 4
"""A word that is no name: in so many, and both."""
MARGIN = {"person": 1.2, "project": 0.3, "topic": 0.0, "none": 0.3}
"""By how much of a logarithm the sentences have to be ahead for it, on average; else it is a topic: so that a place or
a product is hardly ever among the people, at the price of people among the topics."""
WORD_MARGIN = 0.5
"""Of a topic that is no name."""
NAMED, NAMED_WITHIN = 0.15, 0.3
"""Share of the mentions that are written as a name where it is one: of all, and of those that begin no sentence."""
MOST_JUDGED = 20
MOST_KEYS, MOST_MENTIONS, MOST_RECENT = 4_000, 100, 40
MOST_OF_A_KIND, MOST_PLAIN_WORDS = 60, 20
MOST_TOLD_CHARS = 300
MOST_GRAM_CHARS = 200
MOST_TITLE_CHARS = 60
TITLED_WITHIN = 200
"""A session's title is in one of its first messages."""
TENTHS = 10
_MIN_WORD_LENGTH = TopicTracking().min_word_length


class Mention(msgspec.Struct, array_like=True, frozen=True):
    """Where a subject is said. `start` and `end`: of the sentence, in the text that was read of the message."""

    place: int
    session: int
    seq: int
    start: int
    end: int
    form: str
    is_name: bool
    is_stated: bool
    is_lasting: bool = False
    """It matters in weeks."""
    is_speaker: bool = False
    """The sentence is by that person, of themselves."""
    kinds: tuple[int, ...] = ()
    """What the sentence takes it for, as tenths of logarithms, in the order of `SUBJECT_KINDS`."""


class Recent(msgspec.Struct, array_like=True, frozen=True):
    """A sentence in a script without spaces: what two of them share may be a subject."""

    place: int
    session: int
    seq: int
    start: int
    end: int
    is_stated: bool
    is_lasting: bool
    text: str


class Title(msgspec.Struct, array_like=True, frozen=True):
    seq: int
    text: str


class SubjectNotes(msgspec.Struct, rename="camel"):
    """What is known of an agent's subjects."""

    mentions: dict[str, list[Mention]] = msgspec.field(default_factory=dict)
    recent: list[Recent] = msgspec.field(default_factory=list)
    titles: dict[int, Title] = msgspec.field(default_factory=dict)
    """Of sessions."""


class Subject(NamedTuple):
    key: str
    label: str
    kind: SubjectKind
    mentions: tuple[Mention, ...]
    """In the order of the log."""


# ── one message ───────────────────────────────────────────────────────────────────────────────


def take(notes: SubjectNotes, place: int, session: int, turn: Turn) -> None:
    """Note what a message of the user speaks of. Each message once, as it arrives."""
    if not turn.is_users or turn.is_noise:
        return
    if session not in notes.titles and turn.seq <= TITLED_WITHIN and (title := title_of(turn)):
        notes.titles[session] = Title(turn.seq, title)
    for one in turn.sentences:
        if one.own < SAID:
            continue
        for key, mention in _said_in(one, place, session, turn):
            _note(notes, key, mention)
        _take_unspaced(notes, one, place, session, turn.seq)


def dropped(notes: SubjectNotes, is_gone: Callable[[int, int], bool]) -> None:
    """Forget what was said in these messages, given by session and number."""
    for key, mentions in list(notes.mentions.items()):
        left = [one for one in mentions if not is_gone(one.session, one.seq)]
        if left:
            notes.mentions[key] = left
        else:
            del notes.mentions[key]
    notes.recent = [one for one in notes.recent if not is_gone(one.session, one.seq)]
    for session, title in list(notes.titles.items()):
        if is_gone(session, title.seq):
            del notes.titles[session]


def title_of(turn: Turn) -> str:
    """What a session may be called by this message: its first sentence that asks for or states something."""
    for one in turn.sentences:
        says = one.states >= STATED or is_question(one.text)
        if one.own >= STATED and says and len(words_of(one.text)) >= FEWEST_WORDS:
            return cut(one.text, MOST_TITLE_CHARS).rstrip(" .,;:。，；：")
    return ""


def is_stated(one: ReadSentence) -> bool:
    """Whether a sentence says something of its own that can be quoted alone."""
    is_whole = one.own >= STATED and one.states >= STATED and not is_question(one.text)
    return is_whole and one.end - one.start <= MOST_TOLD_CHARS and len(words_of(one.text)) >= FEWEST_WORDS


def _said_in(one: ReadSentence, place: int, session: int, turn: Turn) -> Iterator[tuple[str, Mention]]:
    where = (place, session, turn.seq, one.start, one.end)
    told, lower = is_stated(one), one.text.lower()
    for candidate in {found.key: found for found in candidates_of(one, _MIN_WORD_LENGTH)}.values():
        at = lower.find(candidate.form.lower())
        if at >= 0:
            kinds = tuple(round(score * TENTHS) for score in read_subject(one.text, at, at + len(candidate.form)))
            form = one.text[at : at + len(candidate.form)]
            is_about = told and not _is_addressed(one.text, at, at + len(form))
            lasts = is_about and one.keep >= KEPT
            yield candidate.key, Mention(*where, form, candidate.is_name, is_about, lasts, kinds=kinds)
    name = (turn.message.name or "").strip()
    if told and one.keep >= KEPT and is_of_speaker(one.text) and _is_persons(name):
        yield key_of(name), Mention(*where, name, True, True, True, is_speaker=True)


def _is_addressed(text: str, start: int, end: int) -> bool:
    """Whether a name is only who it is said to, set off by the one comma of the sentence: it is not about them."""
    before, after = text[:start].rstrip(), text[end:].strip(" .!…\"'”’")
    is_first = len(before.split()) < 2 and after.startswith(",")
    return text.count(",") == 1 and (is_first or (before.endswith(",") and not after))


def _is_persons(name: str) -> bool:
    """Whether a host's name for a speaker is one that people have, and no id."""
    letters = "".join(letter for letter in name if letter not in " -'’.")
    return 1 < len(letters) <= 40 and letters.isalpha() and not name.islower() and not is_common(name)


def _take_unspaced(notes: SubjectNotes, one: ReadSentence, place: int, session: int, seq: int) -> None:
    said = "".join(letter if letter.isalpha() and is_unspaced(letter) else " " for letter in one.text)
    said = " ".join(run for run in said.split() if len(run) > 1)[:MOST_GRAM_CHARS]
    if not said:
        return
    new = Recent(place, session, seq, one.start, one.end, is_stated(one), one.keep >= KEPT, said)
    known = [key for key in notes.mentions if is_unspaced(key[0]) and key in said]
    for gram in known or shared_grams(said, [earlier.text for earlier in notes.recent]):
        before = [] if gram in notes.mentions else [earlier for earlier in notes.recent if gram in earlier.text]
        for each in (*before, new):
            where = (each.place, each.session, each.seq, each.start, each.end)
            _note(notes, gram, Mention(*where, gram, True, each.is_stated, each.is_lasting))
    notes.recent = [*notes.recent, new][-MOST_RECENT:]


def _note(notes: SubjectNotes, key: str, mention: Mention) -> None:
    if key not in notes.mentions and len(notes.mentions) >= MOST_KEYS:
        # What was said least, and first: they are in the order in which they were first said. Some at a time.
        least = sorted(notes.mentions, key=lambda each: len(notes.mentions[each]))[: MOST_KEYS // 8 + 1]
        for each in least:
            del notes.mentions[each]
    said = notes.mentions.setdefault(key, [])
    said.append(mention)
    if len(said) > MOST_MENTIONS:
        del said[next((at for at, one in enumerate(said) if not one.is_stated), 0)]


# ── all of them ───────────────────────────────────────────────────────────────────────────────


def subjects_of(notes: SubjectNotes) -> list[Subject]:
    """Those that get a page, by their keys."""
    found: dict[SubjectKind, list[Subject]] = {}
    for key, mentions in _joined(notes.mentions).items():
        kind = kind_of(mentions)
        if kind != "none" and _is_subject(mentions):
            order = tuple(sorted(mentions, key=lambda one: (one.place, one.start)))
            # Plain words are apart: there are more of them than names, and each says less.
            found.setdefault(kind if _is_name(order) else "none", []).append(Subject(key, _label(order), kind, order))
    most: dict[SubjectKind, int] = {"none": MOST_PLAIN_WORDS}
    chosen = [one for kind, same in found.items() for one in sorted(same, key=_worth)[: most.get(kind, MOST_OF_A_KIND)]]
    return sorted(chosen, key=lambda one: one.key)


def kind_of(mentions: Sequence[Mention]) -> SubjectKind:
    """A topic, unless the sentences together are surer that it is a person, a project or nothing."""
    if any(one.is_speaker for one in mentions):
        return "person"
    judged = [one.kinds for one in mentions if one.kinds][-MOST_JUDGED:]
    if not judged:
        return "topic"
    means = [sum(scores) / TENTHS / len(judged) for scores in zip(*judged, strict=True)]
    best = max(range(len(means)), key=means.__getitem__)
    kind, ahead = SUBJECT_KINDS[best], means[best] - max(means[:best] + means[best + 1 :])
    if not _is_name(mentions):
        return "topic" if kind == "topic" and ahead >= WORD_MARGIN else "none"
    return kind if ahead >= MARGIN[kind] else "topic"


def related(subject: Subject, others: Sequence[Subject], most: int) -> list[Subject]:
    """Those that are spoken of in the same messages, the most often first."""
    places = {one.place for one in subject.mentions}
    shared = [(len(places & {one.place for one in other.mentions}), other) for other in others if other != subject]
    return [other for count, other in sorted(shared, key=lambda pair: (-pair[0], pair[1].key)) if count][:most]


def _is_subject(mentions: Sequence[Mention]) -> bool:
    sessions, told = len({one.session for one in mentions}), sum(one.is_stated for one in mentions)
    if _is_name(mentions):
        return told > 0 and (sessions >= FEWEST_SESSIONS or told >= FEWEST_STATEMENTS)
    return sessions >= FEWEST_WORD_SESSIONS and told >= FEWEST_WORD_STATEMENTS


def _is_name(mentions: Sequence[Mention]) -> bool:
    named = sum(one.is_name for one in mentions)
    small = sum(one.form[:1].islower() and not one.is_name for one in mentions)
    return named >= NAMED * len(mentions) and named >= NAMED_WITHIN * (named + small)


def _joined(mentions: Mapping[str, Sequence[Mention]]) -> dict[str, list[Mention]]:
    """With a part of a name under the only longer one that it is a part of."""
    longer: dict[str, list[str]] = {}
    for key, said in mentions.items():
        for word in set(key.split(" ")) if " " in key and len(said) > 1 else ():
            longer.setdefault(word, []).append(key)
    found: dict[str, list[Mention]] = {}
    for key, said in mentions.items():
        holders = longer.get(key, []) if _is_name(said) else []
        found.setdefault(holders[0] if len(holders) == 1 else key, []).extend(said)
    return found


def _label(mentions: Sequence[Mention]) -> str:
    """As it is mostly called: names as they are written, other words as a title."""
    named = [one.form for one in mentions if one.is_name]
    counted = Counter(named or [one.form[:1].upper() + one.form[1:] for one in mentions])
    return max(counted, key=lambda form: (counted[form], len(form), form))


def _worth(one: Subject) -> tuple[int, int, str]:
    return -len({each.session for each in one.mentions}), -len(one.mentions), one.key
