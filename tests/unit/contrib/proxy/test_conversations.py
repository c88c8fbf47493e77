from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.conversation import Known, Turn, behind_conversation, behind_response, fingerprint
from offbook.contrib.proxy.conversations import Conversations

Said = dict[str, Any]


class Naming(Conversations):
    """Each is named at once, as where nobody knows its answer."""

    def answered(
        self, turn: Turn, messages: Sequence[Mapping[str, Any]], response_id: str | None = None
    ) -> list[Known]:
        places = super().answered(turn, messages, response_id)
        if places:
            self.name(turn.conversation, places[0])
        return places


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def answer(text: str) -> Said:
    return {"role": "assistant", "content": text}


class Log:
    """What a provider would have: each id once in its session, in the order of arrival."""

    def __init__(self, most: int = 1_000) -> None:
        self.conversations = Naming(most)
        self.sessions: dict[str, dict[str, str]] = {}

    def ask(self, messages: list[Said], reply: str | None = None, **named: Any) -> Turn:
        turn = self.conversations.begin(messages, [fingerprint(message) for message in messages], **named)
        self._record(turn, messages)
        if reply is not None:
            (known,) = self.conversations.answered(turn, [answer(reply)])
            self._record(turn, messages)
            turn.conversation.recorded.add(known.id)
            self.sessions.setdefault(turn.session_id, {})[known.id] = reply
        return turn

    def _record(self, turn: Turn, messages: list[Said]) -> None:
        for number, place in self.conversations.unrecorded(turn):
            session = self.sessions.setdefault(turn.session_id, {})
            assert place.id not in session, "told twice"
            session[place.id] = messages[number]["content"]

    @property
    def texts(self) -> list[list[str]]:
        return [list(session.values()) for session in self.sessions.values()]


texts = st.text(min_size=1, max_size=8)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8), st.booleans(), st.data())
def test_a_conversation_is_recorded_once_however_often_it_is_sent(
    turns: list[tuple[str, str]], has_instructions: bool, data: st.DataObject
) -> None:
    log = Log()
    history: list[Said] = []
    for number, (asked, replied) in enumerate(turns):
        # Instructions may change with each request: they are no part of what was said.
        before = [{"role": "system", "content": f"It is {number} o'clock."}] if has_instructions else []
        history.append(user(asked))
        for _ in range(data.draw(st.integers(0, 2))):
            log.ask([*before, *history])  # tried, and no answer came
        log.ask([*before, *history], replied)
        history.append(answer(replied))
    assert log.texts == [[text for turn in turns for text in turn]]


def test_an_answer_is_known_in_the_clients_own_words_for_it() -> None:
    log = Log()
    log.ask([user("Hi")], " Hello. ")
    shown = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}], "refusal": None, "audio": None}
    log.ask([user("Hi"), shown, user("More")], "Yes.")
    assert log.texts == [["Hi", " Hello. ", "More", "Yes."]]


def test_calls_are_known_by_what_they_say() -> None:
    def call(arguments: str) -> Said:
        called = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [called]}

    assert fingerprint(call("{}")) == fingerprint({**call("{}"), "content": ""})
    assert fingerprint(call("{}")) != fingerprint(call('{"at": 1}'))


def test_two_that_begin_alike_are_two() -> None:
    log = Log()
    log.ask([user("Hi")], "Hello, who are you?")
    log.ask([user("Hi")], "Good day, your name?")
    log.ask([user("Hi"), answer("Hello, who are you?"), user("Bob")], "Hi Bob.")
    log.ask([user("Hi"), answer("Good day, your name?"), user("Alice")], "Hi Alice.")
    assert log.texts == [
        ["Hi", "Hello, who are you?", "Bob", "Hi Bob."],
        ["Hi", "Good day, your name?", "Alice", "Hi Alice."],
    ]


def test_two_that_begin_alike_at_the_same_time_are_two() -> None:
    log = Log()
    messages = [user("Hi")]
    first, second = log.ask(messages), log.ask(messages)
    for turn, reply in ((first, "One."), (second, "Two.")):
        log.conversations.answered(turn, [answer(reply)])
    assert first.session_id != second.session_id
    for text, turn in (("One.", first), ("Two.", second)):
        assert log.ask([*messages, answer(text), user("Go on")], "Yes.").session_id == turn.session_id


def continued(log: Log, *exchanges: tuple[str, str]) -> Turn:
    history: list[Said] = []
    for asked, replied in exchanges:
        history.append(user(asked))
        turn = log.ask(history, replied)
        history.append(answer(replied))
    return turn


def test_two_that_begin_and_are_answered_alike_are_two() -> None:
    for is_at_once in (True, False):
        log = Log()
        greeting = [user("Hi")]
        if is_at_once:
            first, second = log.ask(greeting), log.ask(greeting)
        else:
            first = log.ask(greeting)
        log.conversations.answered(first, [answer("Hello!")])
        if not is_at_once:
            second = log.ask(greeting)
        log.conversations.answered(second, [answer("Hello!")])
        assert first.conversation is not second.conversation
        greeted = [*greeting, answer("Hello!")]
        ann = log.ask([*greeted, user("I am Ann")], "Hi Ann.")
        bob = log.ask([*greeted, user("I am Bob")], "Hi Bob.")
        assert ann.session_id != bob.session_id
        again = log.ask([*greeted, user("I am Bob")], "Hi again.")  # tried again
        assert again.conversation is bob.conversation
        edited = log.ask([*greeted, user("I am Eve")], "Hi Eve.")  # whose question it was, nobody knows
        assert edited.session_id not in (ann.session_id, bob.session_id)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=24))
def test_whoever_is_greeted_alike_no_session_has_the_words_of_two(order: list[int]) -> None:
    log = Log()
    histories: list[list[Said]] = [[] for _ in range(4)]
    for who in order:
        history = histories[who]
        asked, replied = (f"{who}: {len(history)}", f"{who}: so") if history else ("Hi", "Hello!")
        history.append(user(asked))
        turn = log.conversations.begin(history, [fingerprint(message) for message in history])
        log._record(turn, history)
        log.conversations.answered(turn, [answer(replied)])
        log._record(turn, history)
        history.append(answer(replied))
    for texts in log.texts:
        assert len({text[0] for text in texts if text[1:2] == ":"}) <= 1


def test_one_that_lacks_its_beginning_is_not_put_to_another_that_ends_alike() -> None:
    log = Log()
    bob = continued(log, ("Bob 1", "b1"), ("continue", "Done."))
    ann = continued(log, ("Ann 1", "a1"), ("continue", "Done."))
    newest = [user("continue"), answer("Done."), user("My pin is 1")]
    assert log.ask(newest).session_id not in (bob.session_id, ann.session_id)
    assert log.ask([answer("b1"), *newest]).session_id == bob.session_id
    assert log.ask([answer("a1"), *newest[:2], user("So")]).session_id == ann.session_id


def test_the_same_examples_do_not_make_one_conversation() -> None:
    log = Log()
    examples = [user("2+2"), answer("4"), user("3+3"), answer("6")]
    log.ask([*examples, user("4+4")], "8")
    log.ask([*examples, user("5+5")], "10")
    assert len(log.sessions) == 2


def test_what_is_taken_back_stays_and_the_rest_goes_on_in_the_same_session() -> None:
    log = Log()
    begun = [user("Hi"), answer("Hello.")]
    log.ask(begun[:1], "Hello.")
    log.ask([*begun, user("A poem")], "Roses are red.")
    log.ask([*begun, user("A poem")], "Violets are blue.")  # made anew
    turn = log.ask([*begun, user("A song")], "La la la.")  # the question edited
    assert log.texts == [["Hi", "Hello.", "A poem", "Roses are red.", "Violets are blue.", "A song", "La la la."]]
    shown = [log.sessions[turn.session_id][known.id] for known in turn.conversation.path]
    assert shown == ["Hi", "Hello.", "A song", "La la la."]


@given(st.integers(3, 12), st.integers(1, 20), st.booleans())
def test_a_client_that_leaves_out_the_oldest_doubles_nothing(turns: int, kept: int, has_summary: bool) -> None:
    log = Log()
    history: list[Said] = []
    kept = max(kept, 3)
    for number in range(turns):
        history.append(user(f"Question {number}"))
        is_cut = len(history) > kept
        summary = [user(f"Summary up to {number}")] if has_summary and is_cut else []
        log.ask([*summary, *history[-kept:]], f"Answer {number}")
        history.append(answer(f"Answer {number}"))
    assert log.texts == [[str(message["content"]) for message in history]]


def test_a_name_decides_and_a_user_tells_apart() -> None:
    log = Log()
    log.ask([user("Hi")], "Hello.", session_id="chat:1")
    log.ask([user("Hi")], "Hello.", session_id="chat:2")
    log.ask([user("Hi"), answer("Hello."), user("Go on")], "Yes.", session_id="chat:1")
    assert log.texts == [["Hi", "Hello.", "Go on", "Yes."], ["Hi", "Hello."]]
    assert list(log.sessions) == ["chat:1", "chat:2"]
    log.ask([user("Hi")], "Hello.", seed="ann")
    log.ask([user("Hi")], "Hello.", seed="bob")
    assert len(log.sessions) == 4


def test_one_that_was_let_go_is_named_the_same_again() -> None:
    log = Log(most=1)
    turn = log.ask([user("Hi")], "Hello.")
    log.ask([user("Another")], "Yes.")
    assert len(log.conversations) == 1
    messages = [user("Hi"), answer("Hello."), user("Go on")]
    again = log.conversations.begin(messages, [fingerprint(message) for message in messages])
    assert [known.id for known in again.conversation.candidates] == [turn.session_id]
    known = again.conversation.candidates[0]
    log.conversations.adopt(again, known.id, known, messages)
    assert [number for number, _ in log.conversations.unrecorded(again)] == [2]
    assert again.session_id == turn.session_id


def test_nothing_is_recorded_before_the_first_answer() -> None:
    log = Log()
    log.ask([user("Hi")])
    assert log.texts == []


def test_what_one_user_was_answered_is_not_anothers() -> None:
    log = Log()
    log.ask([user("Hi")], "Hello.", seed="ann")
    mine = log.ask([user("Hi"), answer("Hello."), user("I am Ann")], "Hi Ann.", seed="ann")
    # New to this process: of a conversation that passed before a restart.
    other = log.ask([user("Hi"), answer("Hello."), user("I am Bob")], seed="bob")
    assert other.conversation is not mine.conversation
    cut = [user("Hi Ann, a summary"), answer("Hello."), user("I am Ann"), answer("Hi Ann."), user("Go on")]
    assert log.ask(cut, seed="bob").conversation is not mine.conversation
    assert log.ask(cut, seed="ann").conversation is mine.conversation


def test_a_name_is_not_overruled_by_an_answer_that_is_known() -> None:
    log = Log()
    log.ask([user("Hi")], "Hello.")
    turn = log.ask([user("Hi"), answer("Hello."), user("Go on")], "Yes.", session_id="chat:1")
    assert turn.session_id == "chat:1"


def begun_again(log: Log, *more: Said) -> Turn:
    messages = [user("Hi"), answer("Hello."), user("Go on"), *more]
    return log.conversations.begin(messages, [fingerprint(message) for message in messages])


def test_a_request_begun_before_its_conversation_was_found_stays_in_it() -> None:
    log = Log()
    first, second = begun_again(log), begun_again(log)
    (known,) = first.conversation.candidates
    log.conversations.adopt(first, known.id, known, [user("Hi"), answer("Hello."), user("Go on")])
    for turn, reply in ((first, "Yes."), (second, "No.")):
        log.conversations.answered(turn, [answer(reply)])
        assert turn.session_id == known.id
    assert first.conversation is second.conversation


def test_a_request_begun_before_its_conversation_was_named_stays_in_it_whoever_is_answered_first() -> None:
    for is_in_order in (True, False):
        log = Log()
        turns = [(begun_again(log), "Yes."), (begun_again(log, answer("Yes."), user("More")), "More.")]
        for turn, reply in turns if is_in_order else reversed(turns):
            log.conversations.answered(turn, [answer(reply)])
        assert turns[0][0].conversation is turns[1][0].conversation


# ── several answers, of which the client chooses one ──


def offer(log: Log, messages: list[Said], *replies: str) -> Turn:
    turn = log.ask(messages)
    log.conversations.offered(turn, [[answer(reply)] for reply in replies])
    return turn


@given(st.integers(2, 5), st.integers(0, 4), st.integers(1, 4))
def test_of_several_answers_the_one_that_comes_back_was_given(count: int, chosen: int, turns: int) -> None:
    log = Log()
    history: list[Said] = []
    for number in range(turns):
        history.append(user(f"Question {number}"))
        replies = [f"Answer {number}.{each}" for each in range(count)]
        offer(log, history, *replies)
        history.append(answer(replies[chosen % count]))
    log.ask([*history, user("The end")])
    assert log.texts == [[*(message["content"] for message in history), "The end"]]


def test_who_is_offered_several_and_began_alike_goes_on_alone() -> None:
    log = Log()
    offer(log, [user("Hi")], "One.", "Two.")
    offer(log, [user("Hi")], "Three.", "Four.")
    log.ask([user("Hi"), answer("Two."), user("A")])
    log.ask([user("Hi"), answer("Three."), user("B")])
    assert log.texts == [["Hi", "Two.", "A"], ["Hi", "Three.", "B"]]
    assert log.ask([user("Hi")]).conversation.session_id is None


def test_a_conversation_that_is_named_goes_on_with_the_one_that_comes_back() -> None:
    log = Log()
    log.ask([user("Hi")], "Hello.")
    history = [user("Hi"), answer("Hello."), user("More")]
    offer(log, history, "One.", "Two.")
    log.ask([*history, answer("Two."), user("So?")])
    assert log.texts == [["Hi", "Hello.", "More", "Two.", "So?"]]


# ── histories that lie at the API ──


class AtApi(Log):
    def follow(self, message: Said, reply: str, after: str | None, own_id: str, **named: Any) -> Turn:
        """A request behind `after`, which is answered under `own_id`."""
        turn = self.conversations.begin([message], [fingerprint(message)], behind=after, **named)
        self._record(turn, [message])
        (known,) = self.conversations.answered(turn, [answer(reply)], own_id)
        self._record(turn, [message])
        turn.conversation.recorded.add(known.id)
        self.sessions.setdefault(turn.session_id, {})[known.id] = reply
        return turn


def test_a_conversation_at_the_api_is_followed_by_the_ids_of_its_answers() -> None:
    log = AtApi()
    log.follow(user("Hi"), "Hello.", None, "r1")
    log.follow(user("Yes"), "Good.", behind_response("r1"), "r2")
    log.follow(user("Yes"), "Good.", behind_response("r2"), "r3")  # the same words at another place
    log.follow(user("No"), "Bad.", behind_response("r1"), "r4")  # a branch
    turn = log.follow(user("So"), "Well.", behind_response("r4"), "r5")
    assert log.texts == [["Hi", "Hello.", "Yes", "Good.", "Yes", "Good.", "No", "Bad.", "So", "Well."]]
    path = [log.sessions[turn.session_id][known.id] for known in turn.conversation.path]
    assert path == ["Hi", "Hello.", "No", "Bad.", "So", "Well."]


def test_it_is_the_same_where_a_client_brings_its_whole_history_later() -> None:
    log = AtApi()
    log.follow(user("Hi"), "Hello.", None, "r1")
    log.follow(user("More"), "Yes.", behind_response("r1"), "r2")
    log.ask([user("Hi"), answer("Hello."), user("More"), answer("Yes."), user("And")], "So.")
    assert log.texts == [["Hi", "Hello.", "More", "Yes.", "And", "So."]]


def test_what_follows_an_answer_that_never_passed_is_of_its_own() -> None:
    log = AtApi()
    log.follow(user("Hi"), "Hello.", None, "r1")
    first = log.follow(user("Go on"), "Yes.", behind_response("elsewhere"), "r2")
    again = log.follow(user("Go on"), "No.", behind_response("elsewhere"), "r3")  # made anew
    then = log.follow(user("More"), "Well.", behind_response("r3"), "r4")
    assert first.conversation is again.conversation is then.conversation
    assert log.texts == [["Hi", "Hello."], ["Go on", "Yes.", "No.", "More", "Well."]]


def test_a_conversation_of_the_apis_goes_on_behind_its_newest_answer() -> None:
    log = AtApi()
    behind = behind_conversation("conv_1")
    for number in range(3):
        log.follow(user("Go on"), "Yes.", behind, f"r{number}", session_id="conv_1")
    assert log.sessions.keys() == {"conv_1"}
    assert log.texts == [["Go on", "Yes."] * 3]


def test_one_at_the_api_that_was_let_go_does_not_lose_what_is_said_again() -> None:
    log = AtApi(most=1)
    behind = behind_conversation("conv_1")
    for number in range(2):
        log.follow(user("Go on"), "Yes.", behind, "r", session_id="conv_1")
        log.follow(user(f"Another {number}"), "Yes.", None, "other")
    assert list(log.sessions["conv_1"].values()) == ["Go on", "Yes."] * 2


def test_an_answer_without_a_word_can_be_followed() -> None:
    log = AtApi()
    turn = log.conversations.begin([user("Hi")], [fingerprint(user("Hi"))])
    assert log.conversations.answered(turn, [], "r1") == []
    other = log.conversations.begin([user("Hi")], [fingerprint(user("Hi"))])  # begins alike
    log.conversations.answered(other, [], "r9")
    then = log.follow(user("Yes"), "Done.", behind_response("r1"), "r2")
    assert then.conversation is turn.conversation
    assert other.conversation is not turn.conversation
    log._record(turn, [user("Hi")])
    assert sorted(log.texts[0]) == ["Done.", "Hi", "Yes"]


def test_several_messages_of_one_answer_are_several() -> None:
    log = Log()
    turn = log.ask([user("Hi")])
    places = log.conversations.answered(turn, [answer("One."), answer("Two.")])
    assert turn.session_id == places[0].id
    then = log.ask([user("Hi"), answer("One."), answer("Two."), user("More")])
    assert then.conversation is turn.conversation
    assert then.conversation.path[1:3] == places


# ── answers that could not be read as they passed ──


def test_an_answer_that_was_not_read_is_found_in_the_next_request() -> None:
    log = Log()
    first = log.ask([user("Hi")])
    then = log.ask([user("Hi"), answer("Hello."), user("More")])
    assert then.conversation is first.conversation
    assert then.brought == then.places[1]
    log.conversations.name(then.conversation, then.brought or NOBODY)
    assert then.session_id == (then.brought or NOBODY).id
    again = log.ask([user("Hi")])  # somebody else begins alike
    assert again.conversation is not first.conversation
    assert log.ask([user("Hi"), answer("Hello."), user("More"), answer("Yes."), user("Go on")]).brought is None


def test_what_stood_there_from_the_beginning_is_no_answer_to_it() -> None:
    """Examples are anybody's, and so is the beginning of an answer that is to be gone on with."""
    log = Log()
    shown = [user("1+1"), answer("2")]
    assert log.ask([*shown, user("2+2")]).brought is None
    assert log.ask([*shown, user("2+2"), answer("It is")]).brought is None
    assert log.ask([*shown, user("2+2")], "4").brought is None
    assert log.ask([*shown, user("2+2"), answer("4"), user("3+3")]).brought is None


def test_an_answer_may_come_back_before_it_was_read_to_its_end() -> None:
    log = Log()
    first, other = log.ask([user("Hi")]), log.ask([user("Hi")])
    then = log.ask([user("Hi"), answer("Hello."), user("More")])
    log.conversations.answered(first, [answer("Hello.")])
    assert first.conversation is then.conversation
    log.conversations.answered(other, [answer("Good day.")])
    assert other.conversation is not then.conversation


NOBODY = Known("", "")
