from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from offbook.ingest.noise import noise_kind
from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import AnchorKeywords, Anchors
from offbook.model.turn import Anchor, AnchorKind
from offbook.model.types import Message
from offbook.models import weights
from offbook.models.minilm import MiniLM
from offbook.rules.anchors.fold import MAX_CANDIDATES, AnchorState, advanced, anchors_of
from offbook.rules.anchors.prototypes import KINDS
from offbook.rules.likeness import Embed
from offbook.rules.state.records import MAX_TEXT_CHARS, Turn
from tests.unit.rules.anchors.sentences import HELD_OUT, UNCERTAIN, WRITTEN_FOR_THE_RULES, Labelled

BEGAN = datetime(2026, 5, 8, 10, 0, tzinfo=UTC)
DEFAULT = Anchors()


def turns(texts: Sequence[str | Message], first: int = 1, began: datetime = BEGAN) -> list[Turn]:
    messages = [Message(role="user", content=one) if isinstance(one, str) else one for one in texts]
    return [
        Turn(seq, began + timedelta(minutes=seq), message, noise_kind(message) is not None)
        for seq, message in enumerate(messages, first)
    ]


def after(*texts: str | Message, settings: Anchors = DEFAULT, embed: Embed | None = None) -> AnchorState:
    return advanced(AnchorState(), turns(texts), settings, embed)


def shown(state: AnchorState, settings: Anchors = DEFAULT, at: datetime = BEGAN) -> list[Anchor]:
    return anchors_of([("s", state)], settings, at)


def kept(
    *texts: str | Message, settings: Anchors = DEFAULT, embed: Embed | None = None
) -> list[tuple[AnchorKind, str]]:
    return [(one.kind, one.text) for one in after(*texts, settings=settings, embed=embed).kept]


def kind_of(sentence: str, embed: Embed | None = None) -> set[AnchorKind]:
    turn = Turn(1, BEGAN, Message(role="user", content=sentence), False)
    return {one.kind for one in advanced(AnchorState(), [turn], DEFAULT, embed).kept}


@pytest.fixture(scope="module")
def minilm() -> Iterator[MiniLM]:
    path = weights.packaged(weights.MINILM)
    assert path is not None, f"install {weights.MINILM.requirement}, a dependency of Offbook"
    model = MiniLM(path)
    yield model
    model.close()


# ── which sentences ───────────────────────────────────────────────────────────────────────────


def counted(sentence: str) -> set[AnchorKind]:
    """The way of the original document: the kinds of which a word occurs."""
    lower, words = sentence.lower(), AnchorKeywords()
    return {kind for kind in KINDS if any(re.search(rf"\b{word}", lower) for word in getattr(words, kind))}


def precision_and_recall(found_in: Callable[[str], set[AnchorKind]], rows: Sequence[Labelled]) -> tuple[float, float]:
    found = [(found_in(sentence), kind) for sentence, kind in rows]
    right = sum(kind in kinds for kinds, kind in found)
    return right / sum(len(kinds) for kinds, _ in found), right / sum(kind is not None for _, kind in rows)


@pytest.mark.parametrize(("sentence", "kind"), WRITTEN_FOR_THE_RULES)
def test_rules_do_what_was_meant(sentence: str, kind: AnchorKind | None) -> None:
    assert kind_of(sentence) == ({kind} if kind else set())


def test_rules_do_far_better_than_counting_words() -> None:
    """On sentences made up by whoever made the rules, so the margin is of them and not of the world."""
    assert len(WRITTEN_FOR_THE_RULES) >= 150
    for rows, margin in ((WRITTEN_FOR_THE_RULES, 0.6), (HELD_OUT, 0.5)):
        by_counting = precision_and_recall(counted, rows)
        by_rules = precision_and_recall(kind_of, rows)
        assert by_rules[0] >= by_counting[0] + margin, (by_rules, by_counting)
        assert by_rules[1] >= by_counting[1] + margin, (by_rules, by_counting)


def test_what_rules_do_not_see_in_sentences_they_were_not_made_for() -> None:
    precision, recall = precision_and_recall(kind_of, HELD_OUT)
    assert precision >= 0.95
    assert recall >= 0.8


def test_a_model_decides_what_rules_leave_open(minilm: MiniLM) -> None:
    precision, recall = precision_and_recall(lambda one: kind_of(one, minilm.embed), UNCERTAIN)
    assert precision >= 0.9
    assert recall >= 0.6
    assert sum(len(kind_of(sentence)) for sentence, _ in UNCERTAIN) <= 2, "without it they are left out"


def test_a_model_takes_nothing_away(minilm: MiniLM) -> None:
    with_model = precision_and_recall(lambda one: kind_of(one, minilm.embed), HELD_OUT)
    alone = precision_and_recall(kind_of, HELD_OUT)
    assert with_model[0] >= alone[0] - 0.02
    assert with_model[1] >= alone[1]


def test_a_question_of_who_they_are_counts_only_alone() -> None:
    assert kept("Hello there, my friend. Who am I?") == [("identity", "Who am I?")]
    assert kept("Who am I supposed to ask about the parking permit?") == []


def test_what_is_stated_before_a_question_counts() -> None:
    assert kept("I'm a nurse in Graz, can you help me with my shifts?") == [
        ("identity", "I'm a nurse in Graz, can you help me with my shifts?")
    ]
    assert kept("Am I a nurse, or what did I tell you?") == []


def test_one_sentence_is_kept_of_many() -> None:
    text = "The weather is lovely today. My name is Nina. Shall we look at the photos of the garden?"
    assert kept(text) == [("identity", "My name is Nina.")]


@pytest.mark.parametrize(
    "message",
    [
        Message(role="assistant", content="My name is Nina and I am a nurse."),
        Message(role="system", content="My name is Nina and I am a nurse."),
        Message(role="tool", content="My name is Nina and I am a nurse."),
        Message(role="user", content="My name is Nina and I am a nurse.", origin="heartbeat"),
        Message(role="user", content="My name is Nina and I am a nurse.", tool_call_id="call-1"),
        Message(role="user", content="```\nMy name is Nina and I am a nurse.\n```\nWhat does that print?"),
        Message(role="user", content="> My name is Nina and I am a nurse.\n\nWho wrote that to us last week?"),
        Message(role="user", content='Translate "My name is Nina and I am a nurse" into Polish.'),
    ],
)
def test_only_the_users_own_words_count(message: Message) -> None:
    assert kept(message) == []


def test_origin_user_is_their_own() -> None:
    assert len(kept(Message(role="user", content="My name is Nina.", origin="user"))) == 1


def test_noise_says_nothing() -> None:
    turn = Turn(1, BEGAN, Message(role="user", content="My name is Nina and I am a nurse."), True)
    assert advanced(AnchorState(), [turn], DEFAULT) == AnchorState(through_seq=1)


def test_text_blocks_are_read() -> None:
    assert kept(Message(role="user", content=[{"type": "text", "text": "My name is Nina."}])) == [
        ("identity", "My name is Nina.")
    ]


# ── said again, said otherwise, settled ───────────────────────────────────────────────────────


def test_what_is_repeated_is_refreshed() -> None:
    state = after("I'm stuck on the login page.", "I live in Porto.", "Still, I'm stuck on the login page!")
    assert [(one.kind, one.seq, one.times) for one in state.kept] == [("identity", 2, 1), ("tension", 3, 2)]
    assert state.kept[1].at == BEGAN + timedelta(minutes=3)


def test_who_repeats_a_part_has_not_taken_back_the_rest() -> None:
    (one,) = after("I am a nurse in Graz.", "As I said, I am a nurse.").kept
    assert (one.text, one.seq, one.times, one.at) == ("I am a nurse in Graz.", 1, 2, BEGAN + timedelta(minutes=2))


def test_a_tension_of_no_words_is_of_the_one_before() -> None:
    (one,) = after("I'm stuck on the login page.", "It still does not work.").kept
    assert (one.text, one.times) == ("I'm stuck on the login page.", 2)


def test_a_new_value_replaces_the_old_one() -> None:
    assert kept("My name is Tina.", "I have two kids.", "My name is Nina.") == [
        ("identity", "I have two kids."),
        ("identity", "My name is Nina."),
    ]


def test_what_is_denied_later_does_not_stay() -> None:
    assert kept("I am a nurse in Graz.", "I'm no longer a nurse.") == [("identity", "I'm no longer a nurse.")]


@pytest.mark.parametrize(
    "ending",
    [
        "The login page works now, thanks.",
        "I fixed the login page.",
        "The issue with the login is resolved.",
        "Fixed!",
        "It works now!",
    ],
)
def test_a_settled_tension_goes(ending: str) -> None:
    assert kept("I'm stuck on the login page.", "Let me look at it again.", ending) == []


@pytest.mark.parametrize(
    "other",
    [
        "The shower works now.",
        "I hope the login page is fixed soon.",
        "The login page is not fixed.",
        "Is the login page fixed?",
        "If the login page works now, tell me.",
    ],
)
def test_what_is_not_settled_stays(other: str) -> None:
    (one,) = kept("I'm stuck on the login page.", other)
    assert one[0] == "tension"
    assert "login page" in one[1]


def test_it_works_is_of_the_newest_tension() -> None:
    assert kept("I'm stuck on the login page.", "The printer keeps failing.", "It works now!") == [
        ("tension", "I'm stuck on the login page.")
    ]


def test_one_settled_another_begun() -> None:
    assert kept("I'm stuck on the login page.", "The login page is fixed, but the export keeps crashing.") == [
        ("tension", "The login page is fixed, but the export keeps crashing.")
    ]


def test_what_they_want_forgotten_goes() -> None:
    assert kept("I'm allergic to peanuts.", "Forget that I'm allergic to peanuts.") == []


def test_the_same_in_other_words_is_refreshed_by_a_model(minilm: MiniLM) -> None:
    said = ("I have two kids.", "We have a problem with the printer.", "I have two children.")
    assert len(kept(*said)) == 3
    (tension, identity) = after(*said, embed=minilm.embed).kept
    assert (identity.text, identity.times, tension.times) == ("I have two children.", 2, 1)


def all_alike(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.full((len(texts), 4), 0.5, dtype=np.float32)


def test_other_names_are_other_things_however_alike() -> None:
    assert len(kept("I have a daughter.", "I work at night.", embed=all_alike)) == 1
    assert len(kept("I have a daughter.", "My cousin is Leo.", "I work at Siemens.", embed=all_alike)) == 3


def test_a_model_that_is_gone_is_done_without() -> None:
    def gone(texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelUnavailable("closed")

    said = ("I am legally blind in one eye.", "My name is Nina.", "I'm stuck on the login page.")
    assert kept(*said, embed=gone) == kept(*said)


def test_a_model_reads_few_sentences_of_a_turn() -> None:
    read: list[str] = []

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        read.extend(texts)
        return all_alike(texts)

    after(" ".join(f"I am quizzical{number} somehow." for number in range(40)), embed=embed)
    assert len([one for one in read if "quizzical" in one]) == MAX_CANDIDATES


# ── how many, how fresh ───────────────────────────────────────────────────────────────────────

WORDS = ["apple", "barn", "candle", "dragon", "engine", "ferry", "garden", "hammer", "island", "jungle", "kettle"]
WORDS += ["ladder", "mirror", "needle", "onion", "pencil", "quilt", "rocket", "saddle", "tunnel"]
IDENTITIES = [f"I have a {word} allergy." for word in WORDS]
TENSIONS = [f"I'm stuck on the {word}." for word in WORDS]
CONTRADICTIONS = [f"But you said the {word} was free." for word in WORDS]


def test_at_most_fifteen() -> None:
    state = after(*IDENTITIES, *TENSIONS, *CONTRADICTIONS)
    assert len(state.kept) == 15
    assert len(shown(state)) == 15
    assert {one.kind for one in state.kept} == set(KINDS), "of each kind some"
    assert len(msgspec.json.encode(state)) < 8000


def test_identity_goes_last() -> None:
    state = after(*IDENTITIES[:13], *TENSIONS)
    kinds = [one.kind for one in state.kept]
    assert (kinds.count("identity"), kinds.count("tension")) == (12, 3)
    assert [one.text for one in state.kept if one.kind == "tension"] == TENSIONS[-3:]


def test_stale_contradictions_and_tensions_go_first() -> None:
    old = advanced(AnchorState(), turns([*TENSIONS[:4], *CONTRADICTIONS[:4], *IDENTITIES[:4]]), DEFAULT)
    new = advanced(AnchorState(), turns(TENSIONS[10:18], began=BEGAN + timedelta(days=1)), DEFAULT)
    anchors = anchors_of([("new", new), ("old", old)], DEFAULT, BEGAN + timedelta(days=1, minutes=9))
    assert [one.kind for one in anchors if one.is_fresh] == ["tension"] * 8
    assert [one.text for one in anchors if one.is_fresh] == TENSIONS[17:9:-1]
    stale = [one.kind for one in anchors if not one.is_fresh]
    assert stale == ["identity"] * 4 + ["contradiction"] * 3, "the oldest went"


def test_fresh_for_two_hours() -> None:
    state = after("My name is Nina.", "I'm stuck on the login page.")
    said = state.kept[0].at
    assert [one.is_fresh for one in shown(state, at=said + timedelta(hours=2))] == [True, True]
    at_last = shown(state, at=said + timedelta(hours=2, seconds=1))
    assert [(one.kind, one.is_fresh) for one in at_last] == [("tension", True), ("identity", False)]
    assert not any(one.is_fresh for one in shown(state, at=said + timedelta(days=9)))
    assert len(shown(state, at=said + timedelta(days=9))) == 2


def test_newest_first() -> None:
    state = after("My name is Nina.", "I'm stuck on the login page.", "I live in Porto.")
    assert [one.seq for one in shown(state)] == [3, 2, 1]


def test_one_thing_said_in_two_sessions_is_one() -> None:
    old = after("I'm stuck on the login page.", "I'm stuck on the login page!", "My name is Tina.")
    new = advanced(AnchorState(), turns(["I'm stuck on the login page.", "My name is Nina."], 7), DEFAULT)
    anchors = anchors_of([("new", new), ("old", old)], DEFAULT, BEGAN)
    assert [(one.session_id, one.text, one.seq, one.times) for one in anchors] == [
        ("new", "My name is Nina.", 8, 1),
        ("new", "I'm stuck on the login page.", 7, 3),
    ]


def test_what_is_settled_in_a_later_session_goes() -> None:
    old = after("I'm stuck on the login page.", "My name is Nina.")
    new = advanced(AnchorState(), turns(["The login page works now."], 7), DEFAULT)
    assert [one.kind for one in anchors_of([("new", new), ("old", old)], DEFAULT, BEGAN)] == ["identity"]
    again = advanced(new, turns(["I'm stuck on the login page."], 9), DEFAULT)
    assert [one.session_id for one in anchors_of([("new", again)], DEFAULT, BEGAN)] == ["new"]


# ── settings ──────────────────────────────────────────────────────────────────────────────────


def test_switched_off_there_are_none() -> None:
    off = Anchors(enabled=False)
    assert after("My name is Nina.", settings=off) == AnchorState(through_seq=1)
    assert shown(after("My name is Nina."), settings=off) == []


def test_the_number_and_the_age_are_settings() -> None:
    few = Anchors(max_count=2, max_age=timedelta(minutes=10))
    state = after(*IDENTITIES[:4], settings=few)
    assert [one.text for one in state.kept] == IDENTITIES[2:4]
    assert [one.is_fresh for one in shown(state, few, BEGAN + timedelta(minutes=14))] == [True, False]
    assert after(*IDENTITIES, settings=Anchors(max_count=0)).kept == []
    assert len(shown(after(*IDENTITIES), few)) == 2


def with_words(**words: tuple[str, ...]) -> Anchors:
    return Anchors(keywords=msgspec.structs.replace(AnchorKeywords(), **words))


def test_a_word_of_their_own_decides() -> None:
    sentence = "The kraken project needs a new budget."
    assert kept(sentence) == []
    assert kept(sentence, settings=with_words(tension=("problem", "Kraken"))) == [("tension", sentence)]
    assert kept("The krakens are here, all of them.", settings=with_words(tension=("kraken",)))
    assert not kept("The krakenologist is here, as always.", settings=with_words(tension=("kraken",)))
    assert not kept("I like it, but it is late.", settings=with_words(contradiction=("But", " however ")))
    assert kept("项目海妖需要新的预算。", settings=with_words(tension=("海妖",)))


def test_a_word_they_took_out_does_not_count() -> None:
    assert kept("I'm stuck on the login page.", settings=with_words(tension=("problem", "issue"))) == []
    assert kept("The problem is the login page.", settings=with_words(tension=("problem", "issue")))
    assert kept("I'm a nurse in Graz.", settings=with_words(identity=("my name",))) == []


def test_a_kind_without_words_is_not_looked_for() -> None:
    said = ("I live in Porto.", "But you said it was free.", "It still does not work.")
    assert [kind for kind, _ in kept(*said)] == list(KINDS)
    assert [kind for kind, _ in kept(*said, settings=with_words(identity=(), contradiction=()))] == ["tension"]


# ── a fold, persisted ─────────────────────────────────────────────────────────────────────────

SAYINGS = [
    *(sentence for sentence, _ in [*WRITTEN_FOR_THE_RULES, *HELD_OUT]),
    "It works now!",
    "The login page is fixed.",
    "Forget that I'm allergic to peanuts.",
    "Okay 👍🏽",
    "",
]


@given(st.lists(st.sampled_from(SAYINGS), max_size=30), st.integers(0, 30), st.integers(0, 6))
@hypothesis_settings(max_examples=60, deadline=None)
def test_in_one_piece_or_in_two(texts: list[str], cut_at: int, most: int) -> None:
    settings, all_turns = Anchors(max_count=most), turns(texts)
    whole = advanced(AnchorState(), all_turns, settings)
    part = advanced(AnchorState(), all_turns[:cut_at], settings)
    read = msgspec.json.decode(msgspec.json.encode(part), type=AnchorState)
    assert read == part
    assert advanced(read, all_turns[cut_at:], settings) == whole
    assert advanced(part, all_turns, settings) == whole
    assert advanced(whole, all_turns, settings) == whole
    assert len(whole.kept) <= most


def test_a_state_survives_being_written() -> None:
    state = after(
        "My name is Nina.", "But you said it was free.", "I'm stuck on the login page.", "The tap is fixed now."
    )
    assert len(state.kept) == 3
    assert state.settled
    assert msgspec.json.decode(msgspec.json.encode(state), type=AnchorState) == state


# ── whatever they write ───────────────────────────────────────────────────────────────────────

HOSTILE = [
    "i am " * 1_000_000,
    "i'm still just " * 300_000,
    "but " * 1_000_000,
    "you said " * 500_000,
    "my my my wife " * 300_000,
    "not a problem " * 300_000,
    "a" * 5_000_000,
    '"“' * 2_000_000,
    "我是" * 2_000_000,
    "[" * 1_000_000 + "<" * 1_000_000,
    "I am a nurse. " * 300_000,
    "the problem with " * 300_000,
    "earlier it was, now it " * 200_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_five_megabytes_take_no_time(text: str) -> None:
    turn = Turn(1, BEGAN, Message(role="user", content=text), False)
    began = time.thread_time()  # not the wall clock: the machine may be busy with others
    state = advanced(AnchorState(), [turn], DEFAULT)
    assert time.thread_time() - began < 1
    assert all(len(one.text) <= MAX_TEXT_CHARS for one in state.kept)


def test_both_ends_of_a_long_message_are_read() -> None:
    log = "2026-05-08 INFO request served\n" * 100_000
    assert [kind for kind, _ in kept(f"My name is Nina.\n{log}\nI'm stuck on the login page.")] == [
        "identity",
        "tension",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "😀" * 400,
        "我🤷🏽‍♀️叫\u200d李明",
        "\u202eI am a nurse",
        "I am \udcff",
        "\x00I am a nurse.\x00",
        "？！。，",
        "I'm 👩🏽‍⚕️",
    ],
)
def test_strange_text_does_no_harm(text: str, minilm: MiniLM) -> None:
    turn = Turn(1, BEGAN, Message(role="user", content=text), False)
    assert advanced(AnchorState(), [turn], DEFAULT, minilm.embed).through_seq == 1


@given(st.text(max_size=300))
@hypothesis_settings(max_examples=100, deadline=None)
def test_any_text_does_no_harm(text: str) -> None:
    turn = Turn(1, BEGAN, Message(role="user", content=text), False)
    assert advanced(AnchorState(), [turn], DEFAULT).through_seq == 1
