"""What a prompt wants of memory decides how much comes to mind."""

from __future__ import annotations

import pytest

from offbook.context.intent import intent_of, retrieval_budget_for
from offbook.model.settings.sections import ContextBudget, Search
from offbook.model.turn import Intent
from offbook.search.query import read_query


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("Do you remember the recipe I told you about?", "recall"),
        ("What did we decide about the database?", "recall"),
        ("As I mentioned last time, the deadline moved.", "recall"),
        ("你还记得我妹妹的名字吗？", "recall"),
        ("Where were we?", "resume"),
        ("Let's pick up where we left off", "resume"),
        ("Can we continue with the migration?", "resume"),
        ("What were we working on yesterday?", "resume"),
        ("继续上次的工作吧，好吗", "resume"),
        ("Please write a function that adds two numbers.", "plain"),
        ("Remember to buy milk tomorrow", "plain"),
        ("Where were the keys found in the end?", "plain"),
        ("Compute precision, recall and f1 from these counts.", "plain"),
        ("Draft a notice about the product recall.", "plain"),
        ("Previously, the function returned null. Fix it.", "plain"),
        ("Can you recall the name of the hotel?", "recall"),
        ("hm?", "brief"),
        ("", "brief"),
        ("👍", "brief"),
    ],
)
def test_intent(prompt: str, intent: Intent) -> None:
    assert intent_of(read_query(prompt)) == intent


def test_who_asks_gets_more_and_longer() -> None:
    plain = retrieval_budget_for("plain", Search(), ContextBudget(), 0.4, is_after_compaction=False)
    asked = retrieval_budget_for("recall", Search(), ContextBudget(), 0.4, is_after_compaction=False)
    assert (plain.keep, asked.keep) == (5, 10)
    assert (plain.said_chars, asked.said_chars) == (600, 3_000)
    assert (plain.beside_chars, asked.beside_chars) == (200, 1_500)
    assert asked.min_probability < plain.min_probability == Search().min_probability
    assert plain.min_score is asked.min_score is None
    assert plain.limit == asked.limit == 30


def test_after_a_compaction_it_is_broader() -> None:
    plain = retrieval_budget_for("plain", Search(), ContextBudget(), 0.4, is_after_compaction=False)
    broad = retrieval_budget_for("plain", Search(), ContextBudget(), 0.4, is_after_compaction=True)
    assert broad.keep == 2 * plain.keep
    assert broad.limit == 2 * plain.limit
    assert broad.min_probability < plain.min_probability


def test_the_documents_rule_goes_by_the_cosine() -> None:
    by_cosine = Search(qualifies="similarity")
    plain = retrieval_budget_for("plain", by_cosine, ContextBudget(), 0.4, is_after_compaction=False)
    broad = retrieval_budget_for("plain", by_cosine, ContextBudget(), 0.4, is_after_compaction=True)
    assert (plain.min_score, broad.min_score) == (0.4, pytest.approx(0.3))
