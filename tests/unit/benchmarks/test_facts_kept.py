from __future__ import annotations

from datetime import UTC, datetime

from benchmarks.facts_kept import WAYS, Answered, Material, PlantedFact, kept_share, wanted_words
from benchmarks.quality.data import Session, Turn

TOLD = PlantedFact(
    id="one",
    sessions=[
        Session(
            id=f"s{day}",
            date=datetime(2023, 5, day, tzinfo=UTC),
            turns=[Turn(id=f"{day}-{n}", speaker="Ada", text=f"I met Person{day}{n} in Town{n}.") for n in range(20)],
        )
        for day in (7, 8)
    ],
    questions=[
        Answered(category="temporal", answer="On 7 May, with the Violin"),
        Answered(category="single-hop", answer=2019),
        Answered(category="single-hop", answer="It was so"),
        Answered(category="adversarial", answer="Berlin"),
        Answered(category="adversarial"),
    ],
)


def test_only_content_words_of_answers_that_have_any_are_wanted() -> None:
    assert wanted_words(TOLD) == [{"7", "may", "violin"}, {"2019"}]


def test_the_share_is_a_mean_over_questions() -> None:
    assert kept_share([{"7", "may"}, {"2019"}], "[7 June] in 2019") == 0.75


def test_every_way_keeps_to_its_room() -> None:
    material = Material(TOLD)
    for shorten in WAYS.values():
        assert 0 < len(shorten(material, 200)) <= 200
