from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.supersession.corrections import Correction, correction_in


@pytest.mark.parametrize(
    ("text", "kind", "target", "old"),
    [
        ("Actually it's 8081.", "correct", "", ""),
        ("Actually, it is on Monday", "correct", "", ""),
        ("Oh sorry, actually the port is 8081", "correct", "the port", ""),
        ("Actually, make it Tuesday.", "correct", "", ""),
        ("I meant Tuesday.", "correct", "", ""),
        ("Sorry, I meant 8081, not 8080", "correct", "", "8080"),
        ("No, it's Monday, not Friday.", "correct", "", "Friday"),
        ("no, it's green not blue", "correct", "", "blue"),
        ("It's Monday, not Friday.", "correct", "", "Friday"),
        ("My flight is on Monday, not Friday", "correct", "My flight", "Friday"),
        ("No, it's 8081.", "correct", "", ""),
        ("Wait, no, it's Monday.", "correct", "", ""),
        ("Correction: the meeting is at 5 pm.", "correct", "", ""),
        ("Correction: the meeting is at 5 pm, not 4 pm.", "correct", "the meeting", "4 pm"),
        ("Scratch that, use Postgres.", "correct", "", ""),
        ("Scratch that. Use Postgres.", "correct", "", ""),
        ("The meeting was moved from Tuesday to Wednesday.", "correct", "The meeting", "Tuesday"),
        ("Our deadline has been pushed from May 5 to May 9", "correct", "Our deadline", "May 5"),
        ("Let's use Postgres instead of MySQL.", "correct", "", "MySQL"),
        ("It's not Friday, it's Monday.", "correct", "", "Friday"),
        ("不对，是星期一，不是星期五", "correct", "", "星期五"),
        ("Scratch that.", "retract", "", ""),
        ("Forget that.", "retract", "", ""),
        ("Please ignore that", "retract", "", ""),
        ("Delete that.", "retract", "", ""),
        ("Forget that my favourite colour is blue.", "retract", "my favourite colour is blue", ""),
        ("Please forget that my dog is called Rex", "retract", "my dog is called Rex", ""),
        ("Forget the fact that I live in Lisbon.", "retract", "I live in Lisbon", ""),
        ("delete the phone number", "retract", "the phone number", ""),
        ("Please delete my phone number.", "retract", "my phone number", ""),
        ("Remove my dog's name", "retract", "my dog's name", ""),
        ("Erase my favourite colour.", "retract", "my favourite colour", ""),
        ("Forget what I said about the Lisbon trip.", "retract", "the Lisbon trip", ""),
        ("Ignore what I told you about my salary", "retract", "my salary", ""),
        ("Forget everything I said.", "retract", "", ""),
        ("Delete the note about my sister", "retract", "my sister", ""),
        ("Please delete my address from your memory.", "retract", "my address", ""),
        ("Forget the Lisbon trip", "retract", "the Lisbon trip", ""),
        ("Never mind the blue curtains.", "retract", "the blue curtains", ""),
        ("Let's forget about the Lisbon trip.", "retract", "the Lisbon trip", ""),
        ("忘掉我刚才说的里斯本", "retract", "里斯本", ""),
    ],
)
def test_what_corrects(text: str, kind: str, target: str, old: str) -> None:
    assert correction_in(text, "user") == Correction(kind=kind, target=target, old=old)
    assert correction_in(text, "assistant") is None


@pytest.mark.parametrize(
    "text",
    [
        "Actually, I've been to Lisbon twice.",
        "Actually, it's been a while.",
        "Actually it's great!",
        "Actually, that's a good idea.",
        "Actually, that's my favourite.",
        "Actually the food is so good",
        "It was actually fun.",
        "I actually live in Lisbon.",
        "No, it's only Monday.",
        "No, it's fine.",
        "No, that's all.",
        "No, I haven't been there.",
        "I meant to call you.",
        "I meant it.",
        "I meant every word.",
        "It's not just words, it's actually on the page.",
        "It wasn't easy, but I'm proud.",
        "It's not a lot, but we have some.",
        "It's about joy, not about money",
        "We're not alone.",
        "This is fun, not scary",
        "Don't forget the milk.",
        "I forgot the milk.",
        "I'll never forget the Lisbon trip.",
        "I can't forget that.",
        "Delete the second paragraph.",
        "Delete the file.",
        "Remove the header from the page.",
        "Drop the table users",
        "Ignore the warnings in the log, and run it again.",
        "I never mind the rain.",
        "Never mind.",
        "nevermind",
        "Never mind that.",
        "Forget it.",
        "Please forget it!",
        "Ignore it.",
        "Don't forget that my dog is called Rex.",
        "Never forget that my dog is called Rex.",
        "I forgot that my dog is called Rex.",
        "Did you forget that my dog is called Rex?",
        "Delete the database.",
        "Delete my branch.",
        "Remove my account",
        "Delete the phone number column from the table.",
        "Delete the phone number and run it again.",
        "Forget what I said about the trip to the very old town by the sea in June.",
        "I had tea instead of coffee.",
        "I changed from my uniform to jeans.",
        "We moved from Sweden to Portugal.",
        "That was wrong of him.",
        "Did I say it's Monday, not Friday?",
        "Should I forget that?",
        "Correction fluid is white",
        "I was moved.",
        "The correction of the essay is done",
        "",
        "Scratch the surface",
        "我忘了带伞",
    ],
)
def test_what_corrects_nothing(text: str) -> None:
    assert correction_in(text, "user") is None


@given(st.text())
def test_any_text(text: str) -> None:
    found = correction_in(text, "user")
    assert found is None or found.kind in ("correct", "retract")
    assert correction_in(text, "assistant") is None


PIECES = [
    "no, ",
    "it's a, not ",
    "the a ",
    "forget ",
    "actually ",
    "my a a a ",
    "a",
    " ",
    "scratch that. ",
    "i meant a ",
    "sorry ",
    "忘了",
    "the a was moved from a ",
]


@pytest.mark.parametrize("piece", PIECES)
def test_time_grows_with_the_text(piece: str) -> None:
    started = time.process_time()
    correction_in(piece * (100_000 // len(piece)), "user")
    correction_in((piece * 240)[:240], "user")
    assert time.process_time() - started < 1
