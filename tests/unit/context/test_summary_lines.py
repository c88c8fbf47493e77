from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offbook.context.digest import SummaryLines, brief, cut, merged, ranked

TEXT = "[8 May 2023]\nThey: moved to Berlin\nI: fine\n[9 May]\nThey: port 5433\n[2 January 2024]\nI: restarted Postgres"
LINES = SummaryLines(TEXT, [3, 4, 0, 1, 5, 6, 2])

rows = st.sampled_from(
    [
        "They: moved to Berlin; port 5433",
        "I: fine",
        "[8 May 2023]",
        "[9 May]",
        "# Plan",
        "- call Bob about the violin. Then tell Ada! " * 6,
        "東京サーバーの移行は完了予定です。" * 15,
        "",
    ]
)
written_texts = st.lists(rows | st.text(max_size=60), max_size=15).map("\n".join)


def test_what_fits_is_shown_whole() -> None:
    assert cut(LINES, len(TEXT)) == TEXT


def test_the_best_lines_come_in_the_order_of_the_text_and_get_their_year_back() -> None:
    assert cut(LINES, 30) == "[9 May 2023]\nThey: port 5433"
    assert cut(LINES, 64) == "[8 May 2023]\nThey: moved to Berlin\n[9 May]\nThey: port 5433"


def test_where_no_line_fits_the_best_is_cut_at_a_word() -> None:
    lines = ranked("They moved the whole database of the company to Frankfurt because the old region was slow")
    assert cut(lines, 45) == "They moved the whole database of the company…"
    assert cut(lines, 39) == ""
    assert cut(LINES, 0) == ""


def test_a_brief_is_one_line() -> None:
    assert brief(LINES, 70) == "[8 May 2023] They: moved to Berlin / [9 May] They: port 5433"
    assert brief(SummaryLines("", [])) == ""


def test_a_models_text_is_ranked_by_what_it_says() -> None:
    lines = ranked("# Summary\nIt was all very nice and good.\nWe decided to move to Frankfurt, port 5433.\n")
    assert lines.text.split("\n") == [
        "# Summary",
        "It was all very nice and good.",
        "We decided to move to Frankfurt, port 5433.",
    ]
    assert lines.rank == [0, 2, 1]


def test_a_models_paragraph_becomes_a_line_a_sentence() -> None:
    paragraph = "Ada moved to Berlin with all her violins. Bob stayed in Hamburg to paint pots! " * 3
    assert len(ranked(paragraph).text.split("\n")) == 6


def test_merging_keeps_days_speakers_and_what_is_new() -> None:
    first = "[8 May 2023]\nThey: We moved to Berlin in May. … The port is 5433 from now on."
    second = "[9 May 2023]\nThey: The port is 5433 from now on.\nI: I restarted Postgres on the new port."
    assert merged([first, second], 1_000).text == (
        "[8 May 2023]\nThey: We moved to Berlin in May.\n"
        "[9 May]\nThey: The port is 5433 from now on.\nI: I restarted Postgres on the new port."
    )


def test_what_a_person_lays_down_outlives_what_the_agent_writes() -> None:
    order = "They: The budget is strictly under $20 a month, that is a deal-breaker."
    talk = "\n".join(f"I: Option {n} gives you a dashboard with {n + 3} charts for the sales team." for n in range(30))
    assert order in merged([f"[8 May 2023]\n{talk}", f"[9 May 2023]\n{order}\n{talk}"], 300).text


def test_a_tie_of_texts_without_headings_is_merged_too() -> None:
    lines = merged(["Ada lives in Berlin. She paints.", "- Bob uses Postgres 15"], 40)
    assert lines.text == "- Bob uses Postgres 15" or "Berlin" in lines.text
    assert len(lines.text) <= 40


@given(written_texts)
def test_no_word_of_a_models_text_is_lost(text: str) -> None:
    lines = ranked(text)
    assert "".join(lines.text.split()) == "".join(text.split())
    assert sorted(lines.rank) == list(range(len(lines.text.split("\n")) if lines.text else 0))


@given(written_texts, st.integers(0, 500))
def test_what_is_cut_fits(text: str, max_chars: int) -> None:
    lines = ranked(text)
    assert len(cut(lines, max_chars)) <= max_chars
    short = brief(lines, max_chars)
    assert len(short) <= max_chars
    assert "\n" not in short


@given(st.lists(written_texts, max_size=4), st.integers(0, 800))
def test_what_is_merged_fits_and_can_be_cut(texts: list[str], max_chars: int) -> None:
    lines = merged(texts, max_chars)
    assert len(lines.text) <= max_chars
    assert len(cut(lines, max_chars // 2)) <= max_chars // 2


@given(st.text(max_size=200), st.lists(st.integers(-5, 50)), st.integers(0, 200))
def test_a_rank_that_does_not_match_does_no_harm(text: str, rank: list[int], max_chars: int) -> None:
    assert len(cut(SummaryLines(text, rank), max_chars)) <= max_chars
