from __future__ import annotations

import json
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.models.tokens import chunk_tokens, estimate_tokens
from tests.places import DATA

# Counted with cl100k_base, o200k_base (npm gpt-tokenizer 4.0.0) and @anthropic-ai/tokenizer 0.0.4.
COUNTED = [
    ("The quick brown fox jumps over the lazy dog.", (10, 10, 10)),
    (
        "We moved the launch to Friday because the payment provider was down for most of the afternoon, and Maria "
        "wanted one more run of the load test before anyone signs off.",
        (33, 33, 33),
    ),
    (
        "def recall(query: str, *, limit: int = 5) -> list[MemoryEntry]:\n"
        '    """Entries that answer the query, best first."""\n'
        "    found = [entry for entry in self._index.search(query) if entry.score > 0.4]\n"
        "    return sorted(found, key=lambda entry: entry.score, reverse=True)[:limit]\n",
        (71, 72, 77),
    ),
    (
        '{"id": "msg_01", "role": "tool", "content": [{"type": "text", "text": "42 files"}], '
        '"ts": "2026-11-15T00:27:00Z", "usage": {"input": 1289, "output": 77}}',
        (65, 65, 62),
    ),
    ("我们把发布推迟到星期五，因为支付服务商下午大部分时间都不可用，玛丽亚希望在签字之前再做一次压力测试。", (53, 34, 50)),
    ("支払いサービスが午後ほとんど停止していたため、リリースを金曜日に延期しました。承認の前にもう一度負荷テストを行います。", (60, 40, 60)),
    ("결제 서비스가 오후 내내 중단되어 출시를 금요일로 미루었습니다. 승인 전에 부하 테스트를 한 번 더 진행합니다.", (55, 31, 64)),
    ("Мы перенесли запуск на пятницу, потому что платёжный сервис почти весь день не работал.", (38, 21, 44)),
    ("9fceb02d0ae598e95dc970b74767f19372d61af8 e3b0c44298fc1c149afbf4c8996fb92427ae41e4", (46, 46, 47)),
    ("Total: 1,234,567.89 EUR on 2026-11-15 (+3.5 %), 99.95 % up, 1200 ms p99", (38, 38, 34)),
]  # fmt: skip


FROZEN = json.loads((DATA / "token_counts.json").read_text("utf-8"))["texts"]
"""40 texts of each kind, none of them fitted to; counted by `benchmarks/token_counts/count.mjs`."""

# The total of the estimates by what each tokenizer counts of the same texts: they do not agree with one another.
BIASES = {
    "english": {"cl100k_base": 0.99, "o200k_base": 1.00, "claude": 0.96},
    "code": {"cl100k_base": 1.06, "o200k_base": 1.05, "claude": 0.96},
    "chinese": {"cl100k_base": 0.91, "o200k_base": 1.24, "claude": 0.98},
}


def frozen(kind: str) -> list[tuple[int, dict[str, int]]]:
    pairs = [(estimate_tokens(one["text"]), one["counts"]) for one in FROZEN if one["kind"] == kind]
    assert len(pairs) == 40
    return pairs


@pytest.mark.parametrize("kind", BIASES)
def test_in_all_it_is_within_a_tenth_of_the_mean_of_real_tokenizers(kind: str) -> None:
    pairs = frozen(kind)
    real = sum(fmean(counts.values()) for _, counts in pairs)
    assert sum(estimate for estimate, _ in pairs) == pytest.approx(real, rel=0.1)


@pytest.mark.parametrize("kind", BIASES)
def test_of_a_text_it_is_a_tenth_off_on_average_and_never_far(kind: str) -> None:
    errors = [abs(estimate / fmean(counts.values()) - 1) for estimate, counts in frozen(kind)]
    assert fmean(errors) <= 0.1
    assert max(errors) <= 0.25


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in BIASES.items() for name in names])
def test_the_bias_against_each_tokenizer_is_as_stated(kind: str, name: str) -> None:
    pairs = frozen(kind)
    bias = sum(estimate for estimate, _ in pairs) / sum(counts[name] for _, counts in pairs)
    assert bias == pytest.approx(BIASES[kind][name], abs=0.02)


def test_a_drawn_line_is_not_as_many_tokens_as_characters() -> None:
    # Counted: 19, 15 and 19.
    assert 15 <= estimate_tokens("# ── measuring " + "─" * 80) <= 40


def test_capitals_are_words_too() -> None:
    # Counted: 20, 20 and 25.
    text = "SELECT NAME FROM USERS WHERE CITY IS NOT NULL AND CREATED_AT IS NOT NULL ORDER BY LAST_NAME DESC"
    assert 20 <= estimate_tokens(text) <= 26


def test_other_languages_of_plain_letters_are_known_to_be_counted_too_low() -> None:
    # Their words are of more tokens than English ones, and nothing in their letters tells. Counted: 33, 21 and 39.
    text = (
        "Wir haben die Veröffentlichung auf Freitag verschoben, weil der Zahlungsdienst fast den ganzen Nachmittag "
        "ausgefallen war."
    )
    assert 0.7 * 31 <= estimate_tokens(text) <= 31


@pytest.mark.parametrize(("text", "counts"), COUNTED)
def test_the_estimate_is_near_what_tokenizers_count(text: str, counts: tuple[int, int, int]) -> None:
    mean = sum(counts) / len(counts)
    estimate = estimate_tokens(text)
    assert abs(estimate - mean) <= 0.2 * mean
    assert abs(estimate - mean) <= abs(len(text) / 4 - mean) + 2


@pytest.mark.parametrize(("text", "expected"), [("", 0), (" ", 1), ("\n", 1), ("a", 1), ("\ud800", 2)])
def test_next_to_nothing(text: str, expected: int) -> None:
    assert estimate_tokens(text) == expected


def test_an_indent_costs_less_than_words() -> None:
    assert 0 < estimate_tokens(" " * 40) < estimate_tokens("word " * 8)


@given(st.text())
def test_it_stays_within_bounds(text: str) -> None:
    assert (0 if not text else 1) <= estimate_tokens(text) <= 3 * len(text)


@given(st.text(max_size=50), st.text(max_size=50))
def test_more_text_is_not_fewer_tokens(text: str, more: str) -> None:
    together = estimate_tokens(text + "\n" + more)
    assert (
        max(estimate_tokens(text), estimate_tokens(more))
        <= together
        <= estimate_tokens(text) + estimate_tokens(more) + 1
    )


@pytest.mark.parametrize(("chars", "expected"), [(0, 30), (1, 31), (4, 31), (5, 32), (400, 130), (1_000_001, 250_031)])
def test_chunk_tokens(chars: int, expected: int) -> None:
    assert chunk_tokens(chars) == expected
