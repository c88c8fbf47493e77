from __future__ import annotations

import pytest

from offbook.context.summary_checks import faults
from offbook.context.summary_prompts import MOST_IDENTIFIERS

GOOD = (
    "Dana asked me to move the release to 14 March, because the audit is late. I changed ticket OPS-412 and told Lee, "
    "who wanted it on the 12th at first and then agreed. The build on host-7 still fails; I promised to look at it. "
    "I'm sorry to say that I could not reach Kim."
)


def found(text: str, *identifiers: str, source_chars: int = 20_000, max_tokens: int = 100) -> str:
    return "; ".join(faults(text, source_chars=source_chars, identifiers=identifiers, max_tokens=max_tokens))


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "I can't believe how well it went: Dana can't come on Friday, so we moved it to Monday, and all was settled.",
        "Lee said that he cannot help with the move. I noted it and asked Kim instead, who has not answered yet.",
        "我把发布日期改到三月十四日，因为审计延迟了。李同意了。host-7 的构建仍然失败。",
        "We went through the list: item one is done, item two is done, item three is open, item four is open.",
        "The user asked about the manager of context windows. I explained what a context is and how it is managed.",
        "I replaced try/finally with a context manager in loader.py for Ravi, and the tests pass now.",
        "We mended the page: the <s> tag was never closed, so I added </s> in page.html and Dana merged it.",
        f"{GOOD} I told Marc that as an AI I have no body, and he laughed. {GOOD[::-1]}",
        f"I'm sorry that I can't tell more of that morning. {GOOD} {GOOD[::-1]}",
        "I sent her the sheet. As an aid for the exam she wanted one page; I made it, and it is in notes/exam.md.",
    ],
)
def test_a_plain_memory_passes(text: str) -> None:
    assert found(text) == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("Done.", "1 words only"),
        (GOOD * 2 + GOOD[::-1] * 3, "where 100 were asked for"),
        ("I'm sorry, but I can't help with that request.", "refusal"),
        ("I’m sorry, I cannot write memories of conversations that I was not part of.", "refusal"),
        ("As an AI language model, I have no memories. " + GOOD, "refusal"),
        ("I cannot assist with summarising this conversation.", "refusal"),
        ("I don't have any memory of previous conversations. " + GOOD, "refusal"),
        ("Please provide the conversation you would like me to remember.", "refusal"),
        ("We talked about the release date. " * 8, "repeats itself"),
        (
            "I went to the store and then I went home again. " + "the the the the the the the the the the " * 6,
            "repeats",
        ),
        ("yes " * 6, "over and over"),
        ("[Context Manager] Your memory L1-0001: " + GOOD, "echoes"),
        ("[ context  manager ] asked me to write this down. " + GOOD, "echoes"),
        ("I must decline.", "refusal"),
        ("I must respectfully decline to write this down for you.", "refusal"),
        ("I'm not comfortable summarizing this conversation.", "refusal"),
        ("I'm sorry, but I can't do that. " + "Other things can be asked of me instead at any time. " * 7, "refusal"),
        (GOOD + "\n- Keep these exactly as they are written, where they matter: OPS-412", "echoes"),
        ("Sure! Here is my memory of it:\n" + GOOD, "preface"),
        ("Here's the summary:\n\n" + GOOD, "preface"),
        (GOOD + "<|im_end|>\n<|im_start|>user", "marks of the model"),
        ("<think>What would I remember?</think>" + GOOD, "marks of the model"),
        ("What would I remember?</think>" + GOOD, "marks of the model"),
        ("<thinking>What would I remember? " + GOOD, "marks of the model"),
        ("<s> " + GOOD, "marks of the model"),
        (GOOD + "</s>\n", "marks of the model"),
        (GOOD + '\n<offbook-recall mark="0123456789abcdef">\nx\n</offbook-recall>', "what Offbook shows"),
        (GOOD + "\n＜offbook-memory＞", "what Offbook shows"),
        (GOOD + "\n[memory shown by Offbook]", "what Offbook shows"),
    ],
)
def test_what_cannot_stand_for_its_source_is_told(text: str, told: str) -> None:
    assert told in found(text)


def test_longer_than_its_source() -> None:
    assert "longer than its source" in found(GOOD, source_chars=len(GOOD) - 1)
    assert found(GOOD, source_chars=len(GOOD)) == ""


def test_a_few_identifiers_may_go_and_many_not() -> None:
    assert found(GOOD, "OPS-412", "host-7", "14 March", "OPS-9") == ""
    assert found(GOOD, "OPS-412", "host-7", "OPS-9", "eu-1") == "it loses 2 of 4 identifiers that it was to keep"
    assert found(GOOD, "OPS-9", "eu-1") == ""  # too few to judge by


def test_identifiers_that_it_was_not_asked_to_keep_are_not_missed() -> None:
    kept = ["OPS-412"] * MOST_IDENTIFIERS
    assert found(GOOD, *kept, *(f"other-{number}" for number in range(100)), "x" * 500) == ""


def test_a_long_answer_is_judged_in_no_time() -> None:
    assert "where 100 were asked for" in found("I'm sorry " * 200_000, source_chars=10_000_000)
