"""Finding again what should be gone, without keeping it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from offbook.forget.probes import (
    MOST_PROBES,
    PROBES_OF_A_TEXT,
    Prober,
    candidates,
    candidates_of,
    chosen,
    is_id,
    phrases,
)
from offbook.log.erasure import WORDS, saying, windows_of, without_common, words_of

KEY = b"k" * 32
PROBER = Prober(KEY)
SENTENCE = "the vault code of the house by the harbour is seven four nine"

words = st.text("abcdefghijklmnopqrstuvwxyzäöü记忆かキ한글", min_size=1, max_size=9)
sentences = st.lists(words, min_size=2, max_size=60).map(" ".join)
changes = st.sampled_from(
    [
        str.upper,
        str.title,
        json.dumps,
        lambda text: json.dumps({"a": [text]}, ensure_ascii=False),
        lambda text: "\n\n".join(text.split()),
        lambda text: "> " + text.replace(" ", "  "),
        lambda text: "# Title\n\n- **" + text.replace(" ", "** _", 1) + "_\n",
        lambda text: text.replace(" ", ", "),
        lambda text: f"Before it. {text}; and after it.",
    ]
)


@given(sentences, changes, changes)
def test_a_probe_of_a_text_is_found_in_it_however_it_is_written(text, one, other) -> None:  # type: ignore[no-untyped-def]
    assume(text.isascii() or one is not json.dumps)
    assume(text.isascii() or other is not json.dumps)
    assume(text.upper().casefold() == text.casefold())
    assume(text.title().casefold() == text.casefold())
    found = candidates([text])
    assume(found)
    is_in = PROBER.finder(PROBER.probes(found))
    assert is_in(text)
    assert is_in(one(text))
    assert is_in(other(text))
    says = saying(found)
    assert all(says(each) for each in (text, one(text), other(text)))


@given(sentences)
def test_nothing_of_the_words_is_in_a_probe(text: str) -> None:
    for probe in PROBER.probes(candidates([text])):
        assert probe.words == len(probe.digest) or len(probe.digest) == 32
        assert set(probe.digest) <= set("0123456789abcdef")
    other_words = "completely different things were said about this on another day altogether"
    assert not PROBER.finder(PROBER.probes(candidates([SENTENCE])))(other_words)


def test_another_key_finds_and_tells_nothing() -> None:
    probes = PROBER.probes(candidates([SENTENCE]))
    assert PROBER.finder(probes)(SENTENCE)
    assert not Prober(b"x" * 32).finder(probes)(SENTENCE)
    assert {probe.digest for probe in probes}.isdisjoint(
        probe.digest for probe in Prober(b"x" * 32).probes(candidates([SENTENCE]))
    )
    assert "vault" not in msgspec.json.encode(probes).decode()


def test_what_others_say_is_no_probe() -> None:
    windows = candidates([SENTENCE])
    without_common(windows, ["Well, the vault code of the house by the river is one."])
    is_in = PROBER.finder(PROBER.probes(windows))
    assert not is_in("the vault code of the house")
    assert is_in("harbour is seven four nine")


def test_scripts_without_spaces_are_read_letter_by_letter() -> None:
    text = "保险箱的密码是七四九"
    assert words_of(text) == list(text)
    assert PROBER.finder(PROBER.probes(candidates([text])))("他说保险箱的密码是七四九。")


def test_one_word_is_no_probe_and_few_are_one() -> None:
    assert candidates(["hello"]) == set()
    assert candidates([""]) == set()
    assert candidates(["hello there"]) == {("hello", "there")}


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00.123456Z",
        "2026-01-31T12:00:00+01:00",
        "2026-01-31T12:00Z",
        "2026-01-31t12",
        "2026-01-31 12:00:00",
        "20260131T120000Z",
        " 2026-01-31\n",
        "2026-W05-3",
        "12:30:05",
        "２０２６-01-31T12:00:00Z",
        "2026-01-31T12:00:00Z/2026-02-01T12:00:00Z",
        "1769860800.123",
        "-1,234.50",
        "1.5e-7",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_times_numbers_and_ids_are_no_probes(text: str) -> None:
    assert candidates([text]) == set()


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2199, 12, 31), timezones=st.sampled_from([UTC, None])),
    st.sampled_from(["auto", "minutes", "milliseconds"]),
)
def test_no_time_is_a_probe_in_any_precision(at: datetime, precision: str) -> None:
    assert candidates([at.isoformat(timespec=precision)]) == set()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("my wedding is on 2027-05-03 in Graz", "wedding"),
        ("2027-05-03 in Graz", "graz"),
        ("at 12:30", "at"),
        ("0170 123 45 67 89", "0170"),
        ("logged 2026-01-31T12:00:00.123Z by the door", "door"),
    ],
)
def test_what_was_said_around_a_time_is_a_probe(text: str, word: str) -> None:
    found = candidates([text])
    assert any(word in window for window in found)
    assert ("2026", "01", "31t12", "00", "00") not in found
    assert PROBER.finder(PROBER.probes(found))(text)


def test_what_a_host_writes_beside_a_message_is_an_id() -> None:
    assert all(map(is_id, ("agent:main:main", "msg_01-a", "run-7.2", "4711")))
    assert not any(map(is_id, ("ada", "12 Harbour Street", "ada@example.com", "harbour-street", "记忆7", "")))


@given(st.lists(words, min_size=3, max_size=8), st.integers(min_value=0, max_value=400), st.booleans())
def test_a_long_text_is_heard_as_a_short_one(some: list[str], at: int, is_repeated: bool) -> None:
    probes = set(PROBER.probes(candidates([SENTENCE, " ".join(some), "hello there"])))
    filler = (some if is_repeated else [f"w{number}" for number in range(400)]) * 3
    text = " ".join([*filler[:at], SENTENCE, *filler[at:]])
    with pytest.MonkeyPatch.context() as patch:
        expected = PROBER.hearer(probes)(text)
        patch.setattr("offbook.forget.probes.LONG_TEXT_WORDS", 1)
        hears = PROBER.hearer(probes)
        assert [hears(text), hears(text), hears(f"{text} hello there")] == [
            expected,
            expected,
            expected | set(PROBER.probes([("hello", "there")])),
        ]


def test_a_long_text_is_not_digested_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[bytes] = []
    digest = Prober._digest
    monkeypatch.setattr(Prober, "_digest", lambda self, window: digested.append(window) or digest(self, window))
    says = PROBER.finder(PROBER.probes(candidates([SENTENCE])))
    digested.clear()
    assert not says("the quick brown fox jumps over " * 10_000)
    assert len(digested) == 6
    assert not says("and the quick brown fox jumps over " + "the quick brown fox jumps over " * 10_000)
    assert len(digested) == 7


def test_a_long_text_has_few_probes_spread_over_it() -> None:
    text = " ".join(f"word{number}" for number in range(5_000))
    found = candidates([text])
    assert 0 < len(found) <= PROBES_OF_A_TEXT
    starts = sorted(int(window[0].removeprefix("word")) for window in found)
    assert starts[0] == 0
    assert starts[-1] > 4_000
    many = candidates([f"some text of number {number} that goes on" for number in range(6_000)])
    assert len(PROBER.probes(many)) <= MOST_PROBES


def test_a_text_of_megabytes_is_no_trouble() -> None:
    assert len(candidates(["na " * 1_000_000])) == 1
    assert candidates(["\x00" * 1_000_000]) == set()


@given(sentences)
def test_those_that_are_heard_are_those_that_are_found(text: str) -> None:
    probes = set(PROBER.probes(candidates([text, SENTENCE])))
    heard = PROBER.hearer(probes)(text)
    assert heard <= probes
    assert bool(heard) == saying(candidates([text, SENTENCE]))(text)
    assert bool(heard) == PROBER.finder(sorted(probes, key=lambda probe: probe.digest))(text)
    assert not PROBER.finder(sorted(probes - heard, key=lambda probe: probe.digest))(text)


@given(st.lists(st.lists(st.tuples(words, words), max_size=6), max_size=8), st.integers(min_value=0, max_value=30))
def test_before_any_message_has_two_probes_as_many_as_can_be_have_one(
    by_message: list[list[tuple[str, ...]]], most: int
) -> None:
    taken = chosen(by_message, most)
    everything = {window for windows in by_message for window in windows}
    assert taken <= everything
    assert len(taken) == min(most, len(everything))
    firsts = {windows[0] for windows in by_message if windows}
    assert taken <= firsts or taken >= firsts


def test_candidates_by_message_are_those_of_all() -> None:
    messages = [[SENTENCE, "hello there"], ["hello"], []]
    found = candidates_of(messages)
    assert found[1:] == [[], []]
    assert set(found[0]) == candidates([SENTENCE, "hello there"])


def test_phrases_are_as_they_were_written() -> None:
    text = 'He said "so": The VAULT code of the house.'
    windows = set(windows_of(text, WORDS))
    (phrase,) = phrases([text], windows, 10)
    assert phrase in text
    assert len(words_of(phrase)) == WORDS
    assert '"' not in phrase
    assert phrases([text] * 50 + [SENTENCE], windows | set(windows_of(SENTENCE)), 1) == [phrase]
