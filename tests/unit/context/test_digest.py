from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.context.digest import Digest, SpokenMessage, analyse, digest, fit, written
from offbook.context.layout import filled
from offbook.model.sentences import sentences

START = datetime(2023, 5, 8, 12, tzinfo=UTC)
WORDS = "Berlin 5433 the and violin, painted moved. Ada not because pottery user_name yesterday so 12 GB? 東京 👍"

texts = st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join) | st.text(max_size=80)
conversations = st.lists(st.tuples(st.sampled_from(["They", "I", "Ada", "tool bash"]), texts), max_size=12)


def said(turns: Sequence[tuple[str, str]], first_seq: int = 1) -> list[SpokenMessage]:
    return [
        SpokenMessage(seq, speaker, text, START + timedelta(hours=9 * seq))
        for seq, (speaker, text) in enumerate(turns, first_seq)
    ]


def digest_of(turns: Sequence[tuple[str, str]], first_seq: int = 1) -> Digest:
    return digest([analyse(one) for one in said(turns, first_seq)])


def taken(texts: Sequence[str], separator_chars: int = 2) -> int:
    return sum(len(text) + separator_chars for text in texts if text)


def test_a_conversation_in_whole_sentences_under_its_days() -> None:
    turns = [
        ("They", "Hey! I went to a LGBTQ support group yesterday and it was so powerful."),
        ("I", "Wow, that's cool!"),
        ("They", "We decided to move the database to Frankfurt. The port is 5433, not 5432."),
    ]
    assert written(digest_of(turns), 1_000).text == (
        "[8 May 2023]\n"
        "They: I went to a LGBTQ support group yesterday and it was so powerful.\n"
        "[9 May]\n"
        "They: We decided to move the database to Frankfurt. The port is 5433, not 5432."
    )


def test_sentences_of_one_message_share_a_line_that_says_where_some_are_left_out() -> None:
    said_by_one = (
        "Ada plays the violin at home in Berlin. It was such a nice and lovely time we had there. "
        "Bob paints pots in Hamburg for 300 euros."
    )
    analyses = [analyse(SpokenMessage(1, "They", said_by_one, None))]
    assert fit([digest(analyses)], 1_000) == [f"They: {said_by_one}"]
    assert fit([digest(analyses)], 100) == [
        "They: Ada plays the violin at home in Berlin. … Bob paints pots in Hamburg for 300 euros."
    ]


@given(conversations, st.integers(0, 600))
def test_every_sentence_is_word_for_word_what_its_speaker_said(turns: list[tuple[str, str]], max_chars: int) -> None:
    spoken = {seq: " ".join(text.split()) for seq, (_, text) in enumerate(turns, 1)}
    _, chosen = filled([digest_of(turns)], max_chars)
    for _, line in chosen:
        for sentence in sentences(line.text):
            assert " ".join(sentence.text.split()) in spoken[line.seq]


def test_without_room_the_particular_comes_first() -> None:
    turns = [
        ("They", "That is a really nice thing to say and I feel good about it."),
        ("They", "Please restart the server, the port is 5433 and the key lies in /etc/app/key.pem."),
        ("I", "It looks like we are going to have a lot of fun with all of that."),
    ]
    (text,) = fit([digest_of(turns)], 110)
    assert "5433" in text
    assert "/etc/app/key.pem" in text


def test_what_was_said_before_is_not_said_again() -> None:
    turns = [("They", "Bob plays the violin in Berlin.")] * 5 + [("They", "Ada collects old maps.")]
    (text,) = fit([digest_of(turns)], 100)
    assert text.count("violin") == 1
    assert "maps" in text


def test_room_goes_where_the_substance_is() -> None:
    empty = digest_of([("They", "Sure, sounds good to me, thanks a lot!")] * 20)
    full = digest_of([("They", f"Server{n} listens on port {5000 + n} in Berlin{n}.") for n in range(20)], 21)
    first, second = fit([empty, full], 400)
    assert len(second) > 5 * len(first)


def test_a_tool_counts_less_than_a_person_but_for_trouble() -> None:
    listing = "\n".join(f"file{n}.txt has {n * 7919} bytes in all" for n in range(200))
    turns = [
        ("tool bash", f"{listing}\nConnectionError: port 5433 was refused"),
        ("They", "We decided to keep the old backups until Friday, because Bob asked for them."),
    ]
    (text,) = fit([digest_of(turns)], 200)
    assert "We decided to keep the old backups until Friday" in text
    assert "5433 was refused" in text


def test_what_the_agent_said_itself_counts_less() -> None:
    own, told = (analyse(SpokenMessage(1, speaker, "Bob paints pots in Berlin.", None)) for speaker in ("I", "They"))
    assert own.sentences[0].factor < told.sentences[0].factor


def test_a_word_that_begins_a_speakers_name_is_no_name_unless_it_is_written_as_one() -> None:
    turns = [("Caroline", "The car broke down near Ulm."), ("Bob", "Sorry to hear that, Caro, the car was old.")]
    values = digest_of(turns).values
    assert values["car"] > 0
    assert values["caro"] == 0


def test_only_messages_before_one_are_shown_where_it_says_so() -> None:
    turns = [("They", f"Ada{n} lives in Town{n}.") for n in range(1, 9)]
    (text,) = fit([digest_of(turns)], 10_000, before_seq=4)
    assert "Town3" in text
    assert "Town4" not in text


def test_nothing_gives_nothing() -> None:
    assert fit([], 100) == []
    assert fit([digest([])], 100) == [""]
    assert written(digest([]), 100) == ("", [])
    assert fit([digest_of([("They", "Ada lives in Berlin.")])], 0) == [""]


@given(conversations, conversations, st.integers(0, 600), st.integers(0, 4))
def test_what_is_written_fits(
    first: list[tuple[str, str]], second: list[tuple[str, str]], max_chars: int, separator_chars: int
) -> None:
    digests = [digest_of(first), digest_of(second, len(first) + 1)]
    assert taken(fit(digests, max_chars, separator_chars=separator_chars), separator_chars) <= max_chars
    assert len(written(digests[0], max_chars).text) <= max_chars


@given(conversations, conversations, st.integers(200, 500), st.integers(0, 300))
def test_more_room_keeps_what_less_room_keeps(
    first: list[tuple[str, str]], second: list[tuple[str, str]], max_chars: int, more: int
) -> None:
    rankings = [digest_of(first), digest_of(second, len(first) + 1)]
    _, less = filled(rankings, max_chars)
    _, greater = filled(rankings, max_chars + more)
    assert greater[: len(less)] == less


@given(conversations)
def test_gains_fall_along_the_ranking_and_it_is_the_same_every_time(turns: list[tuple[str, str]]) -> None:
    one = digest_of(turns)
    gains = [line.gain for line in one.lines]
    assert all(after <= before * (1 + 1e-6) for before, after in pairwise(gains))
    assert one == digest_of(turns)


@given(conversations)
def test_a_rank_has_every_line_once_and_headings_before_their_lines(turns: list[tuple[str, str]]) -> None:
    lines = written(digest_of(turns), 2_000)
    rows = lines.text.split("\n") if lines.text else []
    assert sorted(lines.rank) == list(range(len(rows)))
    seen: set[int] = set()
    for at in lines.rank:
        seen.add(at)
        if not rows[at].startswith("["):
            headings = [above for above in range(at) if rows[above].startswith("[")]
            assert max(headings) in seen


@pytest.mark.parametrize(
    "junk",
    [
        "a" * 5_000_000,
        "x\n" * 200_000,
        "漢字" * 500_000,
        "👩‍👩‍👧‍👦" * 50_000,
        " ".join(f"w{n}" for n in range(300_000)),
        ".,;:" * 300_000,
        "\ud800 x " * 20_000,
    ],
    ids=["word", "lines", "Han", "emoji", "unique", "marks", "surrogates"],
)
def test_junk_of_any_length_takes_no_longer_than_what_is_looked_at(junk: str) -> None:
    started = time.process_time()
    one = digest([analyse(SpokenMessage(1, "They", junk, START))])
    assert taken(fit([one, one], 4_000)) <= 4_000
    assert time.process_time() - started < 2


@settings(max_examples=20)
@given(st.integers(1, 40))
def test_no_emoji_is_broken(count: int) -> None:
    family = "👩‍👩‍👧‍👦"
    (text,) = fit([digest_of([("They", f"Ada {family * count}x lives in Berlin.")])], 10_000)
    assert text.count("👩") % 2 == 0
    assert "\u200d…" not in text
