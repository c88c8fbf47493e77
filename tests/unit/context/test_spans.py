from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offbook.context.cover import LONGEST_WAIT_CHUNKS, LONGEST_WAIT_MESSAGES, MOST_MESSAGES, Cutter, MessageSpan
from offbook.model.content import tool_calls, tool_results
from offbook.model.types import Message


def user(text: str = "go on") -> Message:
    return Message(role="user", content=text)


def assistant(text: str = "I do") -> Message:
    return Message(role="assistant", content=text)


def call(*ids: str) -> Message:
    return Message(
        role="assistant", content=[{"type": "tool-call", "id": id, "name": "search", "arguments": {}} for id in ids]
    )


def result(id: str) -> Message:
    return Message(role="tool", content="found", tool_call_id=id)


def cut(messages: list[Message], chunk_tokens: int = 100, tokens: int = 40) -> list[MessageSpan]:
    cutter = Cutter(chunk_tokens)
    found = [cutter.take(seq, message, tokens) for seq, message in enumerate(messages, 1)]
    return [message_span for message_span in found if message_span is not None]


def test_a_stretch_ends_where_the_user_speaks_again() -> None:
    messages = [user(), assistant(), user(), assistant(), user()]
    assert cut(messages) == [MessageSpan(1, 4, 160)]


def test_less_than_a_chunk_is_no_stretch() -> None:
    assert cut([user(), assistant(), user()], chunk_tokens=81) == []
    assert cut([user(), assistant(), user()], chunk_tokens=80) == [MessageSpan(1, 2, 80)]


def test_a_call_that_waits_for_its_result_keeps_the_cut_away() -> None:
    messages = [user(), assistant(), call("a"), user("are you there?"), result("a"), assistant(), user()]
    assert cut(messages, tokens=35) == [MessageSpan(1, 6, 210)]


def test_a_call_that_is_never_answered_does_not_keep_it_away_for_ever() -> None:
    messages = [call("lost"), *[user() for _ in range(LONGEST_WAIT_MESSAGES + 5)]]
    assert cut(messages, tokens=3)[0].last_seq == LONGEST_WAIT_MESSAGES + 1


def test_calls_that_are_never_answered_one_after_the_other_do_not_keep_it_away_either() -> None:
    messages = [call(f"lost {number}") if number % 20 == 0 else user() for number in range(400)]
    assert max(message_span.tokens for message_span in cut(messages)) <= LONGEST_WAIT_CHUNKS * 100 + 40


def test_messages_that_say_nothing_fill_a_stretch_too() -> None:
    message_spans = cut([assistant() for _ in range(2 * MOST_MESSAGES + 5)], tokens=0)
    assert [message_span.last_seq for message_span in message_spans] == [MOST_MESSAGES, 2 * MOST_MESSAGES]


def test_an_exchange_that_goes_on_and_on_is_cut_between_pairs() -> None:
    messages = [user()]
    for number in range(10):
        messages += [call(f"c{number}"), result(f"c{number}")]
    message_spans = cut(messages)
    assert message_spans
    assert all(message_span.tokens >= 200 for message_span in message_spans)
    assert all(messages[message_span.last_seq].role == "assistant" for message_span in message_spans)


def test_an_end_closes_what_is_left() -> None:
    cutter = Cutter(100)
    assert cutter.end() is None
    cutter.take(1, user(), 5)
    assert cutter.end() == MessageSpan(1, 1, 5)
    assert cutter.end() is None
    assert cutter.rest is None
    cutter.take(2, user(), 5)
    assert cutter.rest == MessageSpan(2, 2, 5)


def test_a_cutter_that_begins_later_cuts_at_the_same_places() -> None:
    messages = [user() if number % 3 == 0 else assistant() for number in range(60)]
    all_of_them = cut(messages)
    later = Cutter(100, after_seq=all_of_them[2].last_seq)
    found = [later.take(seq, messages[seq - 1], 40) for seq in range(all_of_them[2].last_seq + 1, 61)]
    assert [message_span for message_span in found if message_span] == all_of_them[3:]


ids = st.sampled_from("abcdef")
histories = st.lists(
    st.one_of(
        st.just(user()),
        st.just(assistant()),
        st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda called: call(*called)),
        ids.map(result),
    ),
    max_size=60,
)


@given(histories, st.integers(1, 200), st.integers(0, 80))
def test_stretches_lie_end_to_end_and_part_no_pair(messages: list[Message], chunk_tokens: int, tokens: int) -> None:
    cutter = Cutter(chunk_tokens)
    message_spans = []
    for seq, message in enumerate(messages, 1):
        if (message_span := cutter.take(seq, message, tokens)) is not None:
            message_spans.append(message_span)
    at = 0
    for message_span in message_spans:
        assert message_span.first_seq == at + 1
        assert message_span.last_seq >= message_span.first_seq
        assert message_span.tokens >= chunk_tokens
        if message_span.tokens >= LONGEST_WAIT_CHUNKS * chunk_tokens:
            at = message_span.last_seq
            continue  # it was cut because nobody waits for ever
        inside = messages[message_span.first_seq - 1 : message_span.last_seq]
        answered = {one for message in inside for one in tool_results(message)}
        waiting: set[str] = set()
        for message in inside:
            waiting -= set(tool_results(message))
            waiting |= set(tool_calls(message)) - set(tool_results(message))
        assert not waiting, answered
        at = message_span.last_seq
    rest = cutter.rest
    assert (rest.first_seq if rest else len(messages) + 1) == at + 1
