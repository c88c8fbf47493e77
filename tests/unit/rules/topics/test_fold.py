from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import TopicTracking
from offbook.model.turn import Topic
from offbook.model.types import Message, Role
from offbook.models import weights
from offbook.models.minilm import MiniLM
from offbook.rules.state.records import Turn
from offbook.rules.topics.fold import (
    ASKED,
    MAX_EMBEDDED,
    MAX_SHOWN,
    MAX_TOPICS,
    TopicState,
    advanced,
    merged,
    topics_of,
)
from offbook.rules.topics.words import READ_CHARS, reading_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
PARAMETERS = TopicTracking()
OTHER = ("Give me a hand.", "What do you think of it?", "Yes, that is fine with me.", "Please go on then.")
"""Turns of substance that are about nothing by themselves."""


def turn(seq: int, text: str, role: Role = "user", *, is_noise: bool = False, origin: str | None = None) -> Turn:
    message = Message(role=role, content=text, origin=origin)
    return Turn(seq, START + timedelta(minutes=seq), message, is_noise)


def turns(*texts: str) -> list[Turn]:
    return [turn(seq, text) for seq, text in enumerate(texts, 1)]


def state_of(*texts: str, settings: TopicTracking = PARAMETERS) -> TopicState:
    return advanced(TopicState(), turns(*texts), settings)


def topics(*texts: str, settings: TopicTracking = PARAMETERS) -> dict[str, Topic]:
    return {topic.label: topic for topic in topics_of(state_of(*texts, settings=settings), settings)}


def test_the_parameters_of_the_documents() -> None:
    of = (PARAMETERS.window_size, PARAMETERS.fixation_threshold, PARAMETERS.decay_factor, PARAMETERS.min_word_length)
    assert of == (6, 3, 0.5, 5)


def test_fixation_at_three_turns_of_six() -> None:
    said = ("The mortgage is due.", *OTHER[:2], "About the mortgage again.", OTHER[2])
    assert not topics(*said)["mortgage"].is_fixated
    fixated = topics(*said, "And the mortgage?")["mortgage"]
    assert (fixated.mentions, fixated.total, fixated.is_fixated) == (3, 3, True)
    later = topics(*said, "And the mortgage?", OTHER[0])["mortgage"]
    assert (later.mentions, later.total, later.is_fixated) == (2, 3, False)


def test_said_three_times_in_one_turn_is_one_mention() -> None:
    found = topics("Mortgage, mortgage and mortgage.")["mortgage"]
    assert (found.mentions, found.total, found.is_fixated) == (1, 1, False)


def test_freshness_halves_with_every_turn_that_does_not_speak_of_it() -> None:
    said = ["The mortgage is due."]
    for since in range(5):
        assert topics(*said)["mortgage"].freshness == 0.5**since
        said.append(OTHER[since % 4])


def test_gone_stale_when_the_window_has_nothing_of_it() -> None:
    said = ["The mortgage is due.", "The mortgage again.", *(OTHER[at % 4] for at in range(5))]
    in_window = topics(*said)["mortgage"]
    assert (in_window.mentions, in_window.is_stale) == (1, False)
    left = topics(*said, OTHER[0])["mortgage"]
    assert (left.mentions, left.is_stale, left.freshness) == (0, True, 0.5**6)
    assert (left.first_at, left.last_at) == (START + timedelta(minutes=1), START + timedelta(minutes=2))


def test_said_once_and_left_is_dropped() -> None:
    said = ["The mortgage is due.", *(OTHER[at % 4] for at in range(6))]
    assert "mortgage" in topics(*said[:-1])
    assert "mortgage" not in topics(*said)


def test_taken_up_again_it_counts_on() -> None:
    found = topics("The mortgage is due.", *(OTHER[at % 4] for at in range(9)), "So, the mortgage.")["mortgage"]
    assert (found.mentions, found.total, found.freshness) == (1, 2, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        *OTHER,
        "Thanks, that was really helpful! Maybe something different tomorrow?",
        "Actually I should have asked about this because I was wondering whether it would be possible.",
        "Could you please explain the question and suggest several different possibilities?",
        "I don't think we couldn't've known, you're probably right.",
        "See https://example.com/recipes/bread?id=1 or www.example.org/mortgage or ada@example.com",
        "```python\nmortgage = payment(interest)\n``` and `mortgage --payment interest`",
        "9f86d081884c7d65 3e8a9b2c-1111-4222-8333-444455556666 20260301 3.14159 v1.2.3 10,000 12:30 5pm",
        "🎉🎉🎉 🚀 👍🏽 ❤️ ✅",
        "/usr/share/mortgage/interest.txt ~/notes/mortgage.md src/mortgage/interest/rates.py",
        "谢谢，我知道了",
        "ありがとうございます",
        "Vielen Dank, bitte!",
        "¿Puedes hacer esto para nosotros ahora? ¡Muchas gracias!",
        "",
    ],
)
def test_no_topics(text: str) -> None:
    assert topics(text) == {}


def test_inflections_are_one_topic_called_as_they_call_it_most() -> None:
    found = topics("A migration is planned.", "Two migrations failed.", "Which migrations are left?")
    assert found["migrations"].mentions == 3
    assert "migration" not in found


def test_possessives_and_hyphens() -> None:
    found = topics(
        "The landlord's credit-card lease.", "My landlord called.", "A credit card lease, by e-mail.", "email"
    )
    assert found["landlord"].mentions == 2
    assert found["credit card"].mentions == 2
    assert found["email"].mentions == 2


def test_names_of_any_length_and_case() -> None:
    found = topics("Ask Ana about it.", "Ana has not answered.", "I wrote to Ana.")
    assert (found["Ana"].mentions, found["Ana"].is_fixated) == (3, True)


def test_a_first_name_is_of_the_one_who_has_it() -> None:
    found = topics("I met Maria Lopez.", "So Maria agreed?", "Maria's flat is free.")
    assert [topic.mentions for label, topic in found.items() if "Maria" in label] == [3]
    two = topics("I met Maria Lopez.", "And then Maria Schmidt.")
    assert {"Maria Lopez", "Maria Schmidt"} <= set(two)


def test_capitals_of_a_title_make_no_names() -> None:
    assert set(topics("HELP ME WITH THE OLD MORTGAGE NOW")) == {"mortgage"}


def test_acronyms_and_identifiers() -> None:
    found = topics("The API of PR-123 breaks K8s.", "Is PR-123 on K8s now?", "Look at getUserName in topics.py.")
    assert {"API", "PR-123", "K8s", "getUserName", "topics.py"} <= set(found)
    assert found["PR-123"].mentions == 2


def test_a_pair_that_repeats_takes_its_words_with_it() -> None:
    said = ("My sourdough starter is dead.", "Feed a sourdough starter daily?", "So the starter lives.")
    found = topics(*said)
    assert found["sourdough starter"].mentions == 3
    assert "starter" not in found
    assert "sourdough" not in found


def test_a_word_that_goes_beyond_a_pair_stays() -> None:
    said = ("The database is slow.", "A database migration.", "The database migration.", "That database.", "Database?")
    found = topics(*said)
    assert found["database"].mentions == 5
    assert found["database migration"].mentions == 2


def test_a_short_word_counts_when_it_is_said_three_times() -> None:
    assert "visa" not in topics("Is my visa late?", "I need the visa.")
    found = topics("Is my visa late?", "I need the visa.", "Any visa yet?")["visa"]
    assert (found.mentions, found.is_fixated) == (3, True)
    assert found.first_at == START + timedelta(minutes=1)


def test_chinese() -> None:
    found = topics("我想学做红烧肉，需要什么材料？", "红烧肉要炖多长时间？", "昨天做的红烧肉太甜了")
    assert (found["红烧肉"].mentions, found["红烧肉"].is_fixated) == (3, True)
    assert set(found) == {"红烧肉"}


def test_chinese_said_once_is_no_topic() -> None:
    assert topics("我想学做红烧肉", "下周去东京旅行") == {}


def test_japanese() -> None:
    found = topics("来月の京都旅行の計画を手伝って", "京都旅行でおすすめのホテルは？", "ホテルを予約して")
    assert found["京都旅行"].mentions == 2
    assert found["ホテル"].mentions == 2


def test_korean_without_particles() -> None:
    found = topics("고양이가 밥을 안 먹어요", "고양이 사료를 바꿨는데요", "병원에서 고양이를 봤어요")
    assert found["고양이"].mentions == 3


def test_russian_cases() -> None:
    found = topics("Помоги мне с декларацией", "Когда сдать декларацию?", "Где бланк декларации?")
    assert [topic.mentions for label, topic in found.items() if label.startswith("деклараци")] == [3]


def test_only_the_users_own_turns_count() -> None:
    said = [
        turn(1, "The mortgage is due."),
        turn(2, "The mortgage, the interest.", "assistant"),
        turn(3, "mortgage interest", "tool"),
        turn(4, "mortgage interest", "system"),
        turn(5, "mortgage interest", is_noise=True),
        turn(6, "mortgage interest", origin="subagent"),
        turn(7, "  "),
    ]
    state = advanced(TopicState(), said, PARAMETERS)
    assert (state.turns, state.through_seq) == (1, 7)
    assert [(topic.label, topic.mentions, topic.freshness) for topic in topics_of(state, PARAMETERS)] == [
        ("mortgage", 1, 1.0)
    ]


def test_what_a_channel_wraps_around_it_is_no_topic() -> None:
    assert set(topics("[Telegram Ada id:123 2026-01-02 10:00] <b>The mortgage</b> is due.")) == {"mortgage"}


def test_order_fixated_then_fresh_then_stale() -> None:
    said = [
        "The invoice came.",
        "The invoice and the contract.",
        "Our contract ended.",
        *(OTHER[at % 4] for at in range(5)),
        "The mortgage.",
        "The mortgage and the kitchen.",
        "The mortgage, the garden.",
    ]
    assert list(topics(*said)) == ["mortgage", "garden", "kitchen", "contract", "invoice"]


def test_other_parameters() -> None:
    eager = TopicTracking(window_size=2, fixation_threshold=2, decay_factor=0.25, min_word_length=3)
    found = topics("The cat is ill.", "A cat, a dog.", "The dog.", settings=eager)
    assert (found["dog"].mentions, found["dog"].is_fixated) == (2, True)
    assert (found["cat"].mentions, found["cat"].freshness, found["cat"].is_fixated) == (1, 0.25, False)
    assert topics("The cat is ill.", "A cat.", "No dog.", "No dog.", settings=eager)["cat"].is_stale
    assert "mortgage" not in topics("The mortgage.", settings=TopicTracking(min_word_length=9))


def test_switched_off_it_counts_turns_only() -> None:
    off = TopicTracking(enabled=False)
    state = state_of("The mortgage.", "The mortgage.", settings=off)
    assert state == TopicState(through_seq=2, turns=2)
    on = state_of("The mortgage.")
    assert topics_of(on, PARAMETERS)
    assert topics_of(on, off) == []


def test_kept_as_json() -> None:
    state = state_of("My sourdough starter.", "红烧肉好吃", "红烧肉 and Ana", "a cat and PR-123")
    assert msgspec.json.decode(msgspec.json.encode(state), type=TopicState) == state


def test_seen_turns_change_nothing() -> None:
    said = turns("The mortgage.", "The mortgage and Ana.", "红烧肉")
    state = advanced(TopicState(), said, PARAMETERS)
    assert advanced(state, said, PARAMETERS) is state


WORDS_TEXT = (
    "mortgage mortgages Maria Lopez sourdough starter cat visa API PR-123 the and . ! e-mail 红烧肉 的 东京旅行 고양이를 "
    "ホテル 🎉 https://a.example/x"
)
WORDS = WORDS_TEXT.split()
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text(max_size=40), max_size=14)


@given(TEXTS, st.integers(0, 14), st.integers(1, 8))
@hypothesis_settings(deadline=None)
def test_a_fold(texts: list[str], cut: int, window_size: int) -> None:
    settings = TopicTracking(window_size=window_size)
    said = turns(*texts)
    once = advanced(TopicState(), said, settings)
    assert advanced(advanced(TopicState(), said[:cut], settings), said[cut:], settings) == once
    assert advanced(once, said, settings) == once
    assert msgspec.json.decode(msgspec.json.encode(once), type=TopicState) == once
    shown = topics_of(once, settings)
    assert all(0 < topic.freshness <= 1 and topic.mentions <= min(window_size, topic.total) for topic in shown)


@pytest.mark.parametrize("alphabet", ["word{}ing", "Name{}", "слово{}", "项目{}计划安排", "id-{}"])
def test_the_state_stays_small(alphabet: str) -> None:
    letters = "abcdefghij" if alphabet.isascii() else "天地玄黄宇宙洪荒日月"
    state = TopicState()
    for seq in range(1, 120):
        said = " ".join(
            alphabet.format("".join(letters[int(digit)] for digit in str(seq * 7 + at)) * 2) for at in range(40)
        )
        state = advanced(state, [turn(seq, f"so {said} and {said}")], PARAMETERS)
        assert len(state.topics) <= MAX_TOPICS
        assert len(msgspec.json.encode(state)) <= 20_000
    assert len(topics_of(state, PARAMETERS)) <= MAX_SHOWN


def test_what_they_spoke_of_most_is_kept_longest() -> None:
    said = ["The mortgage."] * 4 + [f"quarrel{chr(97 + at // 26)}{chr(97 + at % 26)} is here" for at in range(100)]
    found = topics(*said)
    assert found["mortgage"].is_stale
    assert "quarrelaa" not in found


def test_many_new_words_do_not_crowd_a_turn() -> None:
    text = "harvest orchard ladder basket cellar barrel tractor meadow " * 2
    assert len(topics(text)) == 6
    later = topics(text, "An orchard.", "A ladder, a basket, a cellar, a barrel, a tractor, a meadow, a harvest.")
    assert {label: topic.mentions for label, topic in later.items() if " " not in label}["ladder"] == 2


@pytest.mark.parametrize(
    "hostile",
    [
        "The mortgage. " * 360_000,
        "a" * 5_000_000,
        "<system-reminder>" * 300_000,
        "```" * 1_700_000,
        "`a " * 1_700_000,
        "a-" * 2_500_000,
        "a." * 2_500_000,
        "a/" * 2_500_000,
        "a@" * 2_500_000,
        "'s" * 2_500_000,
        "[from:" * 800_000,
        "红烧" * 2_500_000,
        "漢の" * 2_500_000,
        "가이이이" * 1_000_000,
        "A " * 2_500_000,
        "\u0301" * 2_500_000,
        "\ud83d" * 2_500_000,
    ],
)
def test_a_message_of_megabytes(hostile: str) -> None:
    started = time.thread_time()  # not the wall clock: the machine may be busy with others
    state = advanced(TopicState(), [turn(1, hostile), turn(2, hostile)], PARAMETERS)
    assert time.thread_time() - started < 1
    assert len(msgspec.json.encode(state)) < 20_000


def test_the_beginning_is_what_is_read() -> None:
    assert not reading_of("so " * READ_CHARS + "mortgage", 5).candidates


# ── over sessions ─────────────────────────────────────────────────────────────────────────────


def topic(label: str, *, days_ago: int = 0, **fields: object) -> Topic:
    at = START - timedelta(days=days_ago)
    made = Topic(
        label=label, mentions=1, total=1, freshness=0.5, is_fixated=False, is_stale=False, first_at=at, last_at=at
    )
    return msgspec.structs.replace(made, **fields)


def test_joined_over_sessions() -> None:
    newest, older = topic("migrations", mentions=2, total=2), topic("Migration", days_ago=3, mentions=5, total=7)
    joined = merged([[newest], [older]], START)
    assert joined == [msgspec.structs.replace(newest, total=9, sessions=2, first_at=older.first_at)]


def test_in_three_sessions_they_keep_returning_to_it() -> None:
    sessions = [[topic("visa", days_ago=days)] for days in (0, 5, 9)]
    assert not merged(sessions[:2], START)[0].is_fixated
    assert merged(sessions, START)[0].is_fixated


def test_left_for_weeks_it_is_stale() -> None:
    fixated = topic("visa", days_ago=13, is_fixated=True)
    assert merged([[fixated]], START)[0].is_fixated
    left = merged([[fixated]], START + timedelta(days=2))[0]
    assert (left.is_fixated, left.is_stale) == (False, True)


def test_at_most_thirty_over_sessions() -> None:
    stale = [topic(f"left{at}", is_stale=True) for at in range(40)]
    shown = merged([stale, [topic("visa")], [topic("lease", is_fixated=True)]], START)
    assert len(shown) == MAX_SHOWN
    assert [one.label for one in shown[:2]] == ["lease", "visa"]


# ── with a model ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    path = weights.packaged(weights.MINILM)
    assert path is not None, f"install {weights.MINILM.requirement}, a dependency of Offbook"
    return MiniLM(path)


def test_another_word_for_it_is_a_mention_of_it(minilm: MiniLM) -> None:
    said = turns("My lawyer called.", "The attorney wants a retainer.", "Is an attorney worth it?")
    by_words = {one.label: one for one in topics_of(advanced(TopicState(), said, PARAMETERS), PARAMETERS)}
    assert (by_words["lawyer"].mentions, by_words["attorney"].mentions) == (1, 2)
    by_meaning = topics_of(advanced(TopicState(), said, PARAMETERS, minilm.embed), PARAMETERS)
    assert (by_meaning[0].label, by_meaning[0].mentions, by_meaning[0].is_fixated) == ("attorney", 3, True)
    assert "lawyer" not in {one.label for one in by_meaning}


def test_neighbours_and_names_stay_apart(minilm: MiniLM) -> None:
    said = turns("The coffee is cold.", "A passport.", "The visas.", "I like London.", "And Paris.", "The kitchen.")
    state = advanced(TopicState(), said, PARAMETERS, minilm.embed)
    assert state == advanced(TopicState(), said, PARAMETERS)


def test_few_texts_are_embedded() -> None:
    asked: list[str] = []
    most = 0

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        nonlocal most
        assert all(text.startswith(ASKED.split("{", maxsplit=1)[0]) for text in texts)
        most = max(most, len(texts))
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        rows[range(len(texts)), range(len(asked), len(asked) + len(texts))] = 1
        asked.extend(texts)
        return rows

    said = turns(
        *(f"harvest{letter} orchard{letter} ladder{letter} basket{letter} cellar{letter}" for letter in "abcdefg")
    )
    assert advanced(TopicState(), said, PARAMETERS, embed) == advanced(TopicState(), said, PARAMETERS)
    assert 0 < most <= MAX_EMBEDDED
    assert len(asked) == len(set(asked)), "each once"


def test_without_the_model_words_do() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelUnavailable("not now")

    said = turns("My lawyer called.", "The attorney wants a retainer.")
    assert advanced(TopicState(), said, PARAMETERS, embed) == advanced(TopicState(), said, PARAMETERS)
