"""Recent in detail, older coarser; each level within its budget; nothing twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.cover import chosen, cost
from offbook.model.summary import SourceSpan, Summary, SummaryDraft, summary_id

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
CAPS = {1: 30_000, 2: 30_000, 3: 30_000}


def made(
    level: int, number: int, first: int, last: int, *, tokens: int = 2_000, sources: list[str] | None = None
) -> Summary:
    draft = SummaryDraft(
        level=level,
        spans=[SourceSpan(session_id="chat", first_seq=first + 1, last_seq=last + 1)],
        text=f"What happened from {first} to {last}.",
        rank=[0],
        brief="",
        source_messages=1,
        source_tokens=6_000,
        tokens=tokens,
        first_at=BEGINNING + timedelta(hours=first),
        last_at=BEGINNING + timedelta(hours=last),
        summarizer="extractive",
        prompt_version="1",
        fingerprint="",
        sources=sources or [],
    )
    return Summary(id=summary_id(level, number), agent_id="main", made_at=BEGINNING, draft=draft)


def forest(leaves: int, *, tokens: int = 2_000) -> list[Summary]:
    """As the worker makes it: six of a level merge into one of the next."""
    levels: dict[int, list[Summary]] = {1: [made(1, at + 1, at, at, tokens=tokens) for at in range(leaves)]}
    for level in (2, 3):
        below, merged = levels[level - 1], []
        for start in range(0, len(below) - 5, 6):
            six = below[start : start + 6]
            one = made(
                level,
                len(merged) + 1,
                _hour(six[0].draft.first_at),
                _hour(six[-1].draft.last_at),
                tokens=tokens,
                sources=[each.id for each in six],
            )
            for offset, each in enumerate(six):
                below[start + offset] = msgspec.structs.replace(each, parent=one.id)
            merged.append(one)
        levels[level] = merged
    return [one for level in levels.values() for one in level]


def _hour(at: datetime) -> int:
    return int((at - BEGINNING).total_seconds() // 3_600)


def hours(shown: list[Summary]) -> list[int]:
    return sorted(hour for one in shown for hour in range(_hour(one.draft.first_at), _hour(one.draft.last_at) + 1))


def test_where_all_fits_everything_is_shown_in_its_finest_form() -> None:
    shown = chosen(forest(36), CAPS, 90_000)
    assert [one.draft.level for one in shown] == [1] * 36
    assert hours(shown) == list(range(36))


def test_what_a_coarser_level_leaves_flows_down() -> None:
    """30,000 tokens are 14 summaries; 36 are shown at level 1 because levels 3 and 2 need none of theirs."""
    assert len(chosen(forest(36), CAPS, 90_000)) > 30_000 // cost(forest(1)[0])
    tight = chosen(forest(36), {1: 30_000, 2: 0, 3: 0}, 90_000)
    assert sum(cost(one) for one in tight) <= 30_000


def test_recent_is_fine_and_old_is_coarse() -> None:
    shown = chosen(forest(216), {1: 20_000, 2: 20_000, 3: 20_000}, 60_000)
    assert hours(shown) == list(range(216))
    oldest_first = sorted(shown, key=lambda one: one.draft.first_at)
    assert [one.draft.level for one in oldest_first] == sorted((one.draft.level for one in shown), reverse=True)
    assert oldest_first[0].draft.level == 3
    assert oldest_first[-1].draft.level == 1


def test_levels_come_coarsest_first_and_oldest_first_inside_a_level() -> None:
    shown = chosen(forest(100), {1: 10_000, 2: 10_000, 3: 10_000}, 30_000)
    keys = [(-one.draft.level, one.draft.first_at) for one in shown]
    assert keys == sorted(keys)


def test_where_not_even_the_coarsest_fit_the_oldest_go() -> None:
    shown = chosen(forest(216 * 3), {1: 0, 2: 0, 3: 3 * 2_008}, 90_000)
    assert hours(shown) == list(range(216 * 3 - 36 * 3, 216 * 3))


def test_a_summary_whose_sources_are_not_all_known_stands_for_itself() -> None:
    known = [one for one in forest(6) if one.id != "L1-0002"]
    assert [one.id for one in chosen(known, CAPS, 90_000)] == ["L2-0001"]


def test_nothing_is_nothing() -> None:
    assert chosen([], CAPS, 90_000) == []
    assert chosen(forest(10), CAPS, 0) == []


@given(
    leaves=st.integers(0, 120),
    tokens=st.integers(1, 5_000),
    caps=st.tuples(*[st.integers(0, 40_000)] * 3),
    most=st.integers(0, 120_000),
)
def test_budgets_hold_and_no_stretch_is_shown_twice(
    leaves: int, tokens: int, caps: tuple[int, int, int], most: int
) -> None:
    budgets = dict(zip((1, 2, 3), caps, strict=True))
    shown = chosen(forest(leaves, tokens=tokens), budgets, most)
    assert len(hours(shown)) == len(set(hours(shown)))
    assert sum(cost(one) for one in shown) <= min(most, sum(caps))
    spent = {level: sum(cost(one) for one in shown if one.draft.level >= level) for level in (1, 2, 3)}
    assert spent[3] <= budgets[3]
    assert spent[2] <= budgets[3] + budgets[2]
