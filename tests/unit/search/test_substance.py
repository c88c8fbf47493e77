from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.substance import asks, is_boilerplate, is_denial, is_memory_question, latin_chars

DENIALS = [
    "I don't have any information about that.",
    "I don’t have any memory of a recipe, sorry.",
    "It looks like I don't have access to our earlier conversations.",
    "I don't recall you mentioning a dog.",
    "As an AI I cannot remember previous conversations.",
    "As an AI language model, I don't have access to past conversations.",
    "I couldn't find anything about the port.",
    "I have no record of that.",
    "I'm sorry, but I do not have any previous conversations stored.",
    "You haven't told me your birthday yet.",
    "There is no mention of Lisbon in my memory.",
    "我没有关于这个的记录。",
    "抱歉，我不记得了。",
    "申し訳ありませんが、覚えていません。",
    "죄송하지만 기억이 없습니다.",
    "لا أتذكر ذلك.",
    "ليس لدي معلومات عن ذلك",
]
ANSWERS = [
    "Your recipe has a 72-hour cold ferment.",
    "I don't have the build log, so run `make test` and send me the output.",
    "I found three records in the table.",
    "The function doesn't return anything.",
    "I remember: it was port 8080.",
    "你的生日是五月。",
    "Sorry, I don't have any record of the first version. "
    + "But the second one, which you sent in May, had two ovens. " * 8,
]


@pytest.mark.parametrize("text", DENIALS)
def test_denials(text: str) -> None:
    assert is_denial(text, "assistant")
    assert not is_denial(text, "user")


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(text: str) -> None:
    assert not is_denial(text, "assistant")


@pytest.mark.parametrize(
    "text",
    [
        "Do you remember my recipe?",
        "do you remember my recipe",
        "What did I tell you about Lisbon?",
        "Did I mention my sister?",
        "Hey! Can you recall the port we talked about?",
        "Have I told you about Ada?",
        "Which book did you recommend?",
        "Remember my recipe?",
        "I'm curious. Do you still remember where I live?",
        "你还记得我的食谱吗？",
        "私のレシピを覚えていますか？",
        "내 레시피 기억해?",
        "هل تتذكر وصفتي؟",
    ],
)
def test_questions_about_memory(text: str) -> None:
    assert is_memory_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "My recipe has a 72-hour cold ferment.",
        "Do you remember my recipe? I changed it yesterday: it now has a cold ferment of three whole days.",
        "I remember my grandmother's garden in Porto.",
        "What is the capital of Portugal?",
        "I told you about Lisbon: we leave on Friday.",
        "Please remember that my port is 8080.",
        "我记得那天下雨了。",
        "How do I bake bread?",
        "That's cool! Have you discussed it with anyone yet?",
        "These moments remind me of how kind people are. Do you volunteer?",
        "You remember that there is a blank book on the shelf. Can Roland see it?",
    ],
)
def test_what_asks_nothing_about_memory(text: str) -> None:
    assert not is_memory_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hi!",
        "hello there",
        "Hey Caroline!",
        "thanks",
        "Thank you so much!",
        "ok",
        "Ok, thanks!",
        "Good morning 🙂",
        "👍",
        "",
        "你好！",
        "ありがとうございます",
        "안녕하세요",
        "شكرا",
        "Hi! How can I help you today?",
    ],
)
def test_boilerplate(text: str) -> None:
    assert is_boilerplate(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hi, my port is 8080",
        "ok do it in Lisbon",
        "thanks, the recipe worked",
        "No sugar, please",
        "Nice has 340,000 people",
        "你好，我叫小明",
        "42",
    ],
)
def test_what_says_something(text: str) -> None:
    assert not is_boilerplate(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where is it?",
        "where is the port set",
        "So, what did we decide",
        "Can you help me with this",
        "Is Lisbon far",
        "你住在哪里？",
        "你记得吗",
        "どこですか",
        "أين أنت؟",
        "I like tea. Where is it?",
        'Really?"',
    ],
)
def test_questions(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I like tea.",
        "What a day!",
        "When I was young, I lived in Porto.",
        "Which is why I moved.",
        "Have a nice day",
        "Is it not? " + "No: the port was changed in May, and everyone was told so. " * 10,
        "我住在上海。",
    ],
)
def test_statements(text: str) -> None:
    assert not asks(text)


@given(st.text(), st.sampled_from(["user", "assistant", "tool", ""]))
def test_any_text(text: str, role: str) -> None:
    assert isinstance(is_denial(text, role), bool)
    assert isinstance(is_memory_question(text), bool)
    assert isinstance(is_boilerplate(text), bool)
    assert isinstance(asks(text), bool)


@pytest.mark.parametrize(
    "piece", ["a", "i ", "what ", "i have ", "no ", "Hi ", "Hi,", ", ", "?", "我", " ", "\n", "so ", "A "]
)
def test_time_grows_with_the_text(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    is_denial(text, "assistant")
    is_memory_question(text)
    is_boilerplate(text)
    asks(text)
    assert time.process_time() - started < 2


def test_a_character_that_is_a_word_is_as_long_as_one() -> None:
    assert [latin_chars(text) for text in ("", "a cat", "猫", "고양이!", "été")] == [0, 5, 3, 10, 3]
