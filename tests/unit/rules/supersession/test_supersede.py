from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.supersession.supersede import Earlier, facts_in, superseded_by


def said(text: str, ago: int | None = 2, role: str = "user", speaker: str = "") -> Earlier:
    """A message of this session so many turns ago, or of another session."""
    facts = tuple(facts_in(text, role, speaker))
    return Earlier(text=text, role=role, speaker=speaker, is_same_session=ago is not None, turns_ago=ago, facts=facts)


FAR = None
"""Another session."""

REPLACED = [
    # the same statement with another value
    ("The staging server runs on port 8080.", "Actually, the staging server now runs on port 9090.", FAR),
    ("The meeting with Dana is on Wednesday at noon", "The meeting with Dana is now on Thursday at noon", FAR),
    ("Our flight to Lisbon leaves from Berlin", "Our flight to Lisbon now leaves from Munich", FAR),
    ("Deadline for the report is 12 December.", "Correction: the deadline for the report is 19 December.", FAR),
    # another value of the same fact
    ("I live in Lisbon.", "I live in Berlin now.", FAR),
    ("I live in Lisbon.", "I moved to Berlin.", FAR),
    ("I live in Lisbon.", "Update: I live in Berlin", FAR),
    ("I live in Lisbon with my cat.", "We've moved to Berlin last month.", FAR),
    ("I don't like rain. I live in Lisbon.", "I don't live in Lisbon anymore.", FAR),
    ("I work at Acme.", "I just joined Initech.", FAR),
    ("I work for Acme.", "I no longer work at Acme.", FAR),
    ("My favourite colour is green.", "My favorite color is blue.", FAR),
    ("my favorite color is green", "my favourite colour is red now", FAR),
    ("My birthday is on 5 May.", "My birthday is on 6 May.", FAR),
    ("Maria's birthday is June 3.", "Maria's birthday is June 4.", FAR),
    ("My phone number is 555-1234.", "My new phone number is 555-9876", FAR),
    ("My email is ada@old.org", "My email is ada@new.org", FAR),
    ("The deploy port is 8080.", "The deploy port is 9090.", FAR),
    ("The deploy port is 8080.", "our deploy port was changed to 9090", FAR),
    ("The deadline is Friday.", "The deadline is now Monday.", 6),
    ("I'm 34 years old.", "I just turned 35!", FAR),
    ("Call me Ada.", "My name is Grace.", FAR),
    ("I prefer tea over coffee.", "I prefer coffee over tea now.", FAR),
    ("I prefer tabs for indentation", "I prefer spaces for indentation", FAR),
    ("We use Postgres for the archive.", "We switched to SQLite for the archive.", FAR),
    ("max_retries: 5", "max_retries: 7", FAR),
    ("I'm vegetarian.", "I'm vegan now.", FAR),
    ("I'm vegetarian.", "I'm no longer vegetarian.", FAR),
    ("My sister is Anna", "My sister is Maria now", FAR),
    ("我住在上海。", "我搬到了北京。", FAR),
    ("我叫小明", "我叫小红", FAR),
    ("My wifi password hint is bluebird7", "My wifi password hint is now redfox9", FAR),
    ("My personal best 5K time is 27:12", "My new personal best 5K time is 25:50", FAR),
    ("I weigh 80 kg.", "I weigh 76 kg now.", FAR),
    ("I drive a Honda Civic.", "I drive a Tesla now.", FAR),
    ("My boss is Karen.", "My boss is Steve now.", FAR),
    ("My dog is called Rex.", "Actually, my dog is called Max.", FAR),
    ("My dog's name is Rex.", "My dog is called Max now.", FAR),
    ("Our database is MySQL.", "We switched our database to Postgres.", 6),
    ("Our database is MySQL.", "We switched our database from MySQL to Postgres.", FAR),
    ("Our database is MySQL.", "We switched from MySQL to Postgres for our database.", FAR),
    ("We use MySQL for our database.", "We switched our database to Postgres.", FAR),
    # a correction of what was just said
    ("The port is 8080.", "Actually it's 8081.", 2),
    ("The meeting is on Friday.", "Actually, it is on Monday", 2),
    ("The meeting is on Friday.", "Sorry, I meant Monday.", 1),
    ("Book a table for Friday at Luigi.", "No, it's Monday, not Friday.", 2),
    ("Book a table for Friday at Luigi.", "Wait, no, it's Monday.", 2),
    ("The server listens on port 8080.", "Oh sorry, actually the port is 8081", 4),
    ("The curtains are blue.", "no, it's green not blue", 2),
    ("Please store it in MySQL.", "Let's use Postgres instead of MySQL.", 4),
    ("My number is 5551234.", "Correction: it's 5551235", 2),
    ("Let us store it in MySQL 8.", "Scratch that, we store it in Postgres 16.", 2),
    # a correction that names its target
    ("The project meeting is on Tuesday.", "The project meeting was moved from Tuesday to Wednesday.", FAR),
    ("My flight to Oslo leaves Friday.", "My flight is on Monday, not Friday", FAR),
    # a retraction
    ("I want to visit Lisbon.", "Forget that.", 1),
    ("I want to visit Lisbon.", "Scratch that.", 1),
    ("I want to visit Lisbon.", "Please ignore that.", 1),
    ("I want to visit Lisbon.", "Delete that.", 1),
    ("My favourite colour is blue.", "Forget that my favourite colour is blue.", FAR),
    ("My dog is called Rex.", "Forget that my dog is called Rex.", FAR),
    ("My dog's name is Rex.", "Forget that my dog is called Rex.", FAR),
    ("I had Anna's soup.", "Forget that I had Anna's soup", FAR),
    ("My phone number is 555-1234.", "delete the phone number", FAR),
    ("My phone number is 555-1234.", "Delete my phone number.", FAR),
    ("My address is Main Street 5.", "Forget my address.", FAR),
    ("We plan a Lisbon trip in May.", "Forget what I said about the Lisbon trip.", FAR),
    ("My salary is 5000.", "Ignore what I told you about my salary", FAR),
    ("The blue curtains are from Ikea.", "Never mind the blue curtains.", FAR),
    ("My sister Anna lives in Oslo.", "Delete the note about my sister", FAR),
    ("My address is Main Street 5.", "Please delete my address from your memory.", FAR),
]


@pytest.mark.parametrize(("old", "new", "ago"), REPLACED)
def test_what_is_replaced(old: str, new: str, ago: int | None) -> None:
    unrelated = [said("We bought apples and a very good bread.", FAR), said("Thanks!", 3), said("What is a port?", 3)]
    assert superseded_by(new, "user", "", [*unrelated, said(old, ago)]) == [3]


KEPT = [
    # much the same words, and nothing replaced
    ("I ran 5 km today before work", "I ran 10 km today before work", FAR),
    ("My sister lives in Oslo with Tom", "My brother now lives in Oslo with Tom", FAR),
    ("The staging server runs on port 8080.", "If the staging server now ran on port 9090, it would break.", FAR),
    ("The staging server runs on port 8080.", "Does the staging server now run on port 9090?", FAR),
    # the same, or more of the same
    ("I live in Lisbon.", "I live in Lisbon.", FAR),
    ("I live in Lisbon.", "I live in Lisbon, Portugal.", FAR),
    ("I live in Lisbon.", "I live in Portugal.", FAR),
    ("I live in Lisbon.", "I live in a small flat.", FAR),
    ("I work at Acme.", "I work at Acme Corp in Oslo.", FAR),
    ("I work at Acme.", "I work at a bank.", FAR),
    ("My favourite colour is green.", "My favourite colour is dark green.", FAR),
    ("The port is 8080.", "Actually the port is 8080.", 2),
    ("I live in Seattle.", "I live in Ballard.", FAR),
    ("I live in Seattle.", "I live in the Ballard neighbourhood.", FAR),
    # another thing
    ("My favourite band is Queen.", "My favourite band is playing in Oslo!", FAR),
    ("My name is Ada.", "call me Tuesday", FAR),
    ("My email is ada@x.org", "My work email is ada@acme.com", FAR),
    ("My boss is Karen.", "My boss is annoyed now.", FAR),
    ("I live in Lisbon.", "We moved to a bigger apartment.", FAR),
    ("The staging server is at 10.0.0.5", "The production server is now at 10.0.0.9", FAR),
    ("My favourite colour is green.", "My favourite book is Emma.", FAR),
    ("My birthday is on 5 May.", "Maria's birthday is June 3.", FAR),
    ("My birthday is on 5 May.", "My sister's birthday is on 6 June.", FAR),
    ("The deploy port is 8080.", "The debug port is 9090.", FAR),
    ("The deadline is Friday.", "The deadline is Monday.", FAR),
    ("The deadline is Friday.", "The deadline is now Monday.", FAR),
    ("The tax deadline is April 15", "The visa deadline is May 2", FAR),
    ("I prefer tea over coffee.", "I prefer dogs over cats.", FAR),
    ("We use Postgres for the archive.", "We use Redis for the cache.", FAR),
    # several may be true
    ("My sister is Anna", "My sister is Maria", FAR),
    ("My dog's name is Rex", "My dog's name is Max", FAR),
    ("My friend is Bob", "My friend is Tim", FAR),
    ("My budget is 500 euros", "My budget is 900 euros", FAR),
    ("My office is in Room 12", "My office is in Oslo", FAR),
    # no fact at all
    ("My day is good.", "My day is bad.", 2),
    ("My opinion is that Lisbon is nice.", "My opinion is that Oslo is nice.", 2),
    ("I live in Lisbon.", "If I lived in Berlin, I'd be cold.", FAR),
    ("I live in Lisbon.", "I might live in Berlin one day.", FAR),
    ("I live in Lisbon.", "I used to live in Berlin.", FAR),
    ("I live in Lisbon.", "Do I live in Berlin?", FAR),
    ("I live in Lisbon.", "I'd love to live in Berlin.", FAR),
    ("I live in Lisbon.", "My cousin lives in Berlin.", FAR),
    ("I work at Acme.", "I worked at Initech before.", FAR),
    ("I'm 34 years old.", "I'm 5 minutes away", FAR),
    ("My name is Ada.", "Call me later.", FAR),
    ("My name is Ada.", "Maria's name is Spanish.", FAR),
    ("I'm vegetarian.", "I'm hungry.", FAR),
    # "actually" and the like that correct nothing
    ("I went to Lisbon in 2019.", "Actually, I've been to Lisbon twice.", 2),
    ("The food was good.", "Actually it's great!", 2),
    ("The meeting is on Friday.", "Actually, that's a good idea.", 2),
    ("I completed the application on Saturday. It's submitted.", "No, it's only Monday.", 2),
    ("I meant well.", "I meant to call you.", 2),
    ("I lost five minutes.", "It's not just \"five minutes.\" It's about the others.", 2),
    ("It was hard.", "It wasn't easy, but I'm proud.", 2),
    ("I feel alone.", "We're not alone.", 2),
    # nothing of that kind before, or too far away
    ("I like tea.", "Actually it's 8081.", 2),
    ("The port is 8080.", "Actually it's 8081.", 6),
    ("The port is 8080.", "Actually it's 8081.", FAR),
    ("The meeting is on Friday.", "No, it's Monday, not Friday.", FAR),
    ("The meeting is on Friday.", "No, it's Monday, not Thursday.", 2),
    ("The port is 8080.", "Actually, it is on Monday", 2),
    ("What about port 8080?", "Actually it's 8081.", 2),
    ("I want to visit Lisbon.", "Never mind.", 1),
    ("I want to visit Lisbon.", "Forget it.", 1),
    ("I want to visit Lisbon.", "Forget that.", 2),
    ("I want to visit Lisbon.", "Forget that.", 8),
    ("I want to visit Lisbon.", "Forget that.", FAR),
    # a retraction of something else, or none
    ("We plan an Oslo trip in May.", "Forget what I said about the Lisbon office.", FAR),
    ("The budget for Oslo is 500.", "Forget the budget", FAR),
    ("We plan a Lisbon trip in May.", "I'll never forget the Lisbon trip.", FAR),
    ("We plan a Lisbon trip in May.", "Don't forget the Lisbon trip!", FAR),
    ("The second paragraph is about whales.", "Delete the second paragraph.", 2),
    ("The file is config.yaml", "Delete the file.", 2),
    ("The project meeting is on Thursday.", "The project meeting was moved from Tuesday to Wednesday.", FAR),
    ("The project party is on Tuesday.", "The budget meeting was moved from Tuesday to Wednesday.", FAR),
    ("I drank coffee.", "I had tea instead of coffee.", 2),
    ("We bought the house in Sweden.", "We moved from Sweden to Portugal.", FAR),
    ("Where is the Lisbon trip listed?", "Forget the Lisbon trip", 2),
    ("Thanks!", "Forget that.", 1),
    ("My favourite colour is green.", "Forget that my favourite colour is blue.", FAR),
    ("My dog is called Max.", "Forget that my dog is called Rex.", FAR),
    ("My dog is called Rex.", "Don't forget that my dog is called Rex!", FAR),
    ("I like tea, and so do Anna, Bob, Carla and Dora of the choir.", "Forget that I like tea.", FAR),
    ("Maria's phone number is 555-1234.", "Delete the phone number.", FAR),
    ("My work phone number is 555-1234.", "Delete my phone number.", FAR),
    ("The form asks for a phone number.", "Delete the phone number.", 1),
    ("Our database is MySQL.", "Delete the database.", 1),
    ("My branch is feature-7.", "Delete my branch.", 1),
    # a switch of something else
    ("The meeting is at 3pm on Friday.", "The meeting moved to 4pm on Monday for the other team.", 2),
    ("The meeting is at 3pm on Friday.", "The meeting is now at 4pm in another town.", 2),
    ("Our database is MySQL.", "We switched our database to read-only mode.", 2),
    ("Our database is MySQL.", "We switched our database to Postgres.", FAR),
    ("Our database is Oracle.", "We switched our database from MySQL to Postgres.", 2),
    ("Our database is MySQL.", "We switched our browser to Firefox.", 2),
    ("The archive is in Room 12.", "We switched to SQLite for the archive.", 2),
    ("My car is a Tesla.", "I moved my car to Berlin.", 2),
    ("Our flight is AA 12.", "We changed our flight to Monday.", 2),
    ("My dog is called Rex.", "My dog is called Max.", FAR),
    ("My dog is called Rex.", "Actually, my cat is called Max.", FAR),
]


@pytest.mark.parametrize(("old", "new", "ago"), KEPT)
def test_what_is_kept(old: str, new: str, ago: int | None) -> None:
    assert superseded_by(new, "user", "", [said(old, ago)]) == []


def test_the_tables_are_as_long_as_the_promise() -> None:
    assert len(REPLACED) >= 40
    assert len(KEPT) >= 60


def test_only_ones_own_words_are_replaced() -> None:
    mine = said("I live in Lisbon.", FAR, speaker="Ada")
    hers = said("I live in Lisbon.", FAR, speaker="Grace")
    assistants = said("I live in Lisbon.", 1, role="assistant")
    assert superseded_by("I moved to Berlin.", "user", "Ada", [mine, hers, assistants]) == [0]
    assert superseded_by("Forget that.", "user", "Ada", [said("I like Lisbon.", 1, role="assistant")]) == []
    assert superseded_by("Actually it's 8081.", "assistant", "", [said("The port is 8080.", 1, role="assistant")]) == []


def test_the_nearest_is_corrected_and_only_that() -> None:
    earlier = [said("The port is 8080.", 4), said("The port of the cache is 6379.", 2)]
    assert superseded_by("Actually it's 6380.", "user", "", earlier) == [1]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Noted.", [0]),
        ("Got it, peanuts.", [0]),
        ("Noted. Do you want me to book the flight?", []),
        ("Noted. I can book the flight as well.", []),
        ("Noted. Let me know about the flight.", []),
        ("Peanuts are legumes and grow under the ground. " * 4, []),
    ],
)
def test_what_an_assistant_says_between(answer: str, expected: list[int]) -> None:
    earlier = [said("I'm allergic to peanuts, this is important.", 2), said(answer, 1, role="assistant")]
    for taking_back in ("Forget that.", "Ignore that.", "Scratch that.", "Forget what I said."):
        assert superseded_by(taking_back, "user", "", earlier) == expected
    for answering in ("Never mind.", "Forget it.", "Nevermind"):
        assert superseded_by(answering, "user", "", earlier) == []


def test_all_that_states_a_fact_is_taken_back() -> None:
    earlier = [said(f"My phone number is 555-{number}.", FAR) for number in range(1230, 1235)]
    assert superseded_by("Delete my phone number.", "user", "", earlier) == [0, 1, 2, 3, 4]
    assert superseded_by("Delete my phone number.", "user", "Ada", earlier) == []


def test_a_name_takes_back_at_most_three() -> None:
    earlier = [said(f"The Lisbon trip costs {count} euros.", FAR) for count in range(6)]
    assert len(superseded_by("Forget what I said about the Lisbon trip.", "user", "", earlier)) == 3


def test_all_earlier_values_of_a_fact_are_replaced() -> None:
    earlier = [said(f"I live in {town}.", FAR) for town in ("Lisbon", "Porto", "Berlin")]
    assert superseded_by("I moved to Berlin.", "user", "", earlier) == [0, 1]


def test_a_message_that_says_much_else_is_kept() -> None:
    long = "I live in Lisbon. " + "The tram passes under my window every morning. " * 8
    assert superseded_by("I moved to Berlin.", "user", "", [said(long, FAR)]) == []


texts = st.one_of(
    st.text(max_size=60), st.sampled_from([text for old, new, _ in [*REPLACED, *KEPT] for text in (old, new)])
)


@given(texts, st.lists(st.tuples(texts, st.none() | st.integers(0, 12)), max_size=5))
def test_any_messages(new: str, old: list[tuple[str, int | None]]) -> None:
    earlier = [said(text, ago) for text, ago in old]
    found = superseded_by(new, "user", "", earlier)
    assert found == sorted(set(found))
    assert all(0 <= index < len(earlier) for index in found)
    assert not any(earlier[index].text.strip() == new.strip() for index in found)


def test_many_earlier_messages_are_read_fast() -> None:
    earlier = [said(f"The Lisbon trip costs {count} euros.", None) for count in range(2000)]
    started = time.process_time()
    superseded_by("Forget what I said about the Lisbon trip.", "user", "", earlier)
    assert time.process_time() - started < 2
