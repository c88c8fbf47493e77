from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.supersession.facts import MAX_FACTS, contradicts, facts_in, is_single_valued, stated_in


@pytest.mark.parametrize(
    ("text", "about", "value"),
    [
        ("My favourite colour is green.", "user|favorit color", "green"),
        ("my favorite color is now blue", "user|favorit color", "blue"),
        ("I live in Lisbon.", "user|live", "lisbon"),
        ("i live in lisbon", "user|live", "lisbon"),
        ("We moved to Berlin last month", "user|live", "berlin"),
        ("I've just moved to Porto!", "user|live", "porto"),
        ("I work at Acme Corp.", "user|work", "acm corp"),
        ("I'm working for Initech now.", "user|work", "initech"),
        ("I'm 34 years old.", "user|age", "34"),
        ("I just turned 35!", "user|age", "35"),
        ("Call me Ada.", "user|name", "ada"),
        ("Hi, my name is Bob", "user|name", "bob"),
        ("My birthday is on 5 May.", "user|birthday", "5 may"),
        ("Maria's birthday is June 3.", "maria|birthday", "june 3"),
        ("My sister's birthday is on 7 June", "user|sister birthday", "7 june"),
        ("The deploy port is 8080.", "deploy port", "8080"),
        ("our deploy port was changed to 9090", "deploy port", "9090"),
        ("The tax deadline is April 15", "tax deadlin", "april 15"),
        ("My gross salary is about 600,000 yen", "user|gross salari", "600000 yen"),
        ("I prefer tea over coffee.", "user|prefer coffe tea", "tea"),
        ("I prefer coffee to tea now.", "user|prefer coffe tea", "coffe"),
        ("I prefer tabs for indentation", "user|prefer indentation", "tab"),
        ("We use Postgres for the archive.", "use archiv", "postgr"),
        ("We switched to SQLite for the archive", "use archiv", "sqlite sq lite"),
        ("Please set the request timeout to 30s", "request timeout", "30s 30"),
        ("max_retries: 5", "max_retries max retri", "5"),
        ("port = 8081", "port", "8081"),
        ("I no longer work at Acme.", "user|work", "no longer acm"),
        ("I don't live in Lisbon anymore.", "user|live", "no longer lisbon"),
        ("I'm vegan now", "user|diet", "vegan"),
        ("I'm no longer vegetarian.", "user|diet", "no longer vegetarian"),
        ("My office is in Room 12", "user|offic", "room 12"),
        ("我住在上海。", "user|live", "上海"),
        ("我叫小明", "user|name", "小明"),
        ("我的生日是五月五日", "user|生日", "五月五日"),
        ("My dog is called Rex.", "user|dog name", "rex"),
        ("Actually, my dog is named Max.", "user|dog name", "max"),
        ("My dog's name is Rex", "user|dog name", "rex"),
        ("Oh, by the way, my phone number is 555-1234.", "user|phone number", "555-1234"),
    ],
)
def test_what_is_stated(text: str, about: str, value: str) -> None:
    assert [(fact.about, fact.value) for fact in facts_in(text, "user")] == [(about, value)]


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "Is my favourite colour green?",
        "If my name were Bob, I'd laugh.",
        "My day is good.",
        "My opinion is that Lisbon is nice.",
        "The thing is, I like Lisbon.",
        "The problem is Bob.",
        "The problem is in Lisbon",
        "My birthday is not in May.",
        "My dog is cute.",
        "My sister is doing a bit better now, thank God",
        "My back isn't happy.",
        "My budget is really tight",
        "My bandwidth is low",
        "My favourite part is the end.",
        "My favorite is the banana split.",
        "My favorite was when we were down 10",
        "I live for music.",
        "I live in a small flat with my cat.",
        "I work at a bakery on weekends.",
        "I'm 100% behind you",
        "I'm 5 minutes away",
        "I moved to the second row",
        "I moved from Sweden",
        "Call me when you arrive.",
        "call me later",
        "My name is on the list",
        "I prefer that subjects are unaware.",
        "I might live in Lisbon one day.",
        "I used to live in Lisbon.",
        "When I was young my address was Main Street 5.",
        "Maybe my favourite colour is red.",
        "I wish my age is 20",
        "My plan is to run.",
        "Set the table to impress",
        "Ada: hello",
        "Note: done",
        "Protagonist: We are out",
        "> My name is Bob",
        "The store is far",
        "Imagine I live in Paris.",
        "My name's the same as yours",
        "如果我住在上海",
        "我在想你",
        "你叫什么名字？",
        "",
    ],
)
def test_what_is_no_fact(text: str) -> None:
    assert facts_in(text, "user") == []


def test_who_states_facts() -> None:
    assert facts_in("I live in Lisbon.", "assistant") == []
    assert facts_in("I live in Lisbon.", "assistant", "assistant") == []
    assert facts_in("I live in Lisbon.", "tool", "Ada") == []
    assert [fact.about for fact in facts_in("I live in Lisbon.", "assistant", "Ada")] == ["ada|live"]
    assert [fact.about for fact in facts_in("I live in Lisbon.", "user", "user")] == ["user|live"]


@pytest.mark.parametrize(
    "text",
    [
        "We switched our database to Postgres.",
        "We've just switched our database from MySQL to Postgres",
        "We switched from MySQL to Postgres for our database.",
        "We switched to Postgres for the database now.",
    ],
)
def test_what_is_used_is_known_by_both_names(text: str) -> None:
    assert [fact.about for fact in facts_in(text, "user")] == ["use databas", "databas"]
    assert len({fact.value for fact in facts_in(text, "user")}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "We haven't switched our database to Postgres.",
        "We might have switched our database to Postgres.",
        "We switched our database to read-only mode.",
        "I moved my car to Berlin.",
        "I changed my mind to Plan B",
        "We switched from MySQL to Postgres.",
        "My dog is called often.",
        "My day is called Friday",
    ],
)
def test_what_is_no_switch(text: str) -> None:
    assert facts_in(text, "user") == []


def test_a_word_of_change_goes_with_what_follows_it() -> None:
    assert [stated.is_change for stated in stated_in("Actually, my dog is called Max.", "user")] == [True]
    assert [stated.is_change for stated in stated_in("I moved, and my dog is called Max.", "user")] == [False]


def test_several_facts_in_one_message() -> None:
    found = facts_in(
        "Hi! My name is Ada, and I live in Lisbon. My birthday is on 5 May; my favourite colour is green.", "user"
    )
    assert {fact.about for fact in found} == {"user|name", "user|live", "user|birthday", "user|favorit color"}


@pytest.mark.parametrize(
    ("about", "new", "old", "expected"),
    [
        ("user|live", "berlin", "lisbon", True),
        ("user|live", "lisbon portugal", "lisbon", False),
        ("user|live", "portugal", "lisbon", False),
        ("user|live", "spain", "portugal", True),
        ("user|age", "35", "34", True),
        ("user|work", "no longer acm", "acm corp", True),
        ("user|work", "no longer acm", "initech", False),
        ("user|work", "acm", "no longer initech", False),
    ],
)
def test_contradictions(about: str, new: str, old: str, expected: bool) -> None:
    assert contradicts(about, new, old) is expected


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ("user|favorit color", True),
        ("user|birthday", True),
        ("deploy port", True),
        ("user|sister", False),
        ("user|dog name", False),
        ("user|name", True),
        ("deadlin", False),
        ("user|offic", False),
        ("", False),
    ],
)
def test_what_has_one_value_at_a_time(about: str, expected: bool) -> None:
    assert is_single_valued(about) is expected


@given(st.text(), st.sampled_from(["user", "assistant"]), st.text(max_size=8))
def test_any_text(text: str, role: str, speaker: str) -> None:
    found = facts_in(text, role, speaker)
    assert len(found) <= MAX_FACTS
    assert all(fact.about and fact.value for fact in found)
    assert len({fact.about for fact in found}) == len(found)


@pytest.mark.parametrize(
    "piece",
    [
        "my a ",
        "my ",
        "the a is ",
        "a ",
        "a-",
        "and my ",
        "so, ",
        "我的",
        "a=b ",
        "i prefer a ",
        " ",
        "we use a a a for ",
        "we switched our a a a to ",
        "actually, my ",
    ],
)
def test_time_grows_with_the_text(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    facts_in(text, "user")
    facts_in(text[:2000], "user")
    facts_in(text[:390] + "\n" + text[:390], "user")
    assert time.process_time() - started < 2
