"""Who they are, what does not fit together, what is unresolved, of what the user says for themselves."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from offbook.model.settings.sections import AnchorKeywords, Anchors
from offbook.model.turn import AnchorKind
from offbook.statements.anchors import AnchorState, KeptAnchor, SettledTension, advanced, anchors_of
from tests.unit.statements.told import AT, turns

ADA = "My name is Ada and I live in Lisbon with my husband Kevin."


def kept(*said: tuple[str, str], settings: Anchors = Anchors()) -> list[tuple[str, str]]:  # noqa: B008
    return [(one.kind, one.text) for one in advanced(AnchorState(), turns(*said), settings).kept]


@pytest.mark.parametrize(
    "said",
    [
        ADA,
        "Ich bin Katrin und mache das Büro in unserer Tischlerei in Husum.",
        "Vivo en Chicago con mi marido Kevin y los niños, y mi familia está en Morelia.",
        "我叫林岚，住在杭州。",
    ],
)
def test_who_they_are_is_kept_in_their_words(said: str) -> None:
    assert kept(("user", said)) == [("identity", said)]
    assert kept(("assistant", said)) == []


def test_what_is_told_of_others_or_pasted_at_length_says_not_who_they_are() -> None:
    assert kept(("user", "The current in the electron beam of a typical display terminal is 200 μA.")) == []
    assert kept(("user", "\n".join([ADA, *(f"Line {number} of the story went on." for number in range(20))]))) == []


def test_a_later_value_for_the_same_thing_is_a_contradiction_and_the_old_one_goes() -> None:
    old, new = "My budget for the Lisbon trip is 2,000 euros.", "My budget for the Lisbon trip is 1,500 euros."
    assert kept(("user", old), ("user", new)) == [("contradiction", new)]
    assert "contradiction" not in dict(kept(("user", old), ("user", old)))


def test_a_tension_goes_when_something_is_done_about_it() -> None:
    stuck = "The problem with the oven in the bakery is still there."
    assert kept(("user", stuck)) == [("tension", stuck)]
    assert kept(("user", stuck), ("user", "We repaired the oven in the bakery yesterday.")) == []


def test_a_phrase_of_their_own_makes_an_anchor_wherever_it_stands() -> None:
    settings = Anchors(keywords=AnchorKeywords(tension=("problem", "waiting on")))
    assert kept(("user", "Still waiting on the planning office."), settings=settings) == [
        ("tension", "Still waiting on the planning office.")
    ]
    assert kept(("user", ADA), settings=Anchors(enabled=False)) == []


def anchor(kind: AnchorKind, text: str, hours: float, *words: str) -> KeptAnchor:
    return KeptAnchor(kind=kind, text=text, seq=1, at=AT - timedelta(hours=hours), words=list(words))


def test_over_sessions_they_are_told_once_fresh_first_and_never_too_many() -> None:
    identity = anchor("identity", "I run a bakery in Porto.", 100, "bakeri", "porto", "run")
    again = anchor("identity", "I run a bakery in Porto.", 1, "bakeri", "porto", "run")
    worry = anchor("tension", "The oven worries me.", 5, "oven", "worri")
    states = [("a", AnchorState(kept=[identity, worry])), ("b", AnchorState(kept=[again]))]
    told = anchors_of(states, Anchors(), AT)
    assert [(one.text, one.times, one.is_fresh) for one in told] == [
        ("I run a bakery in Porto.", 2, True),
        ("The oven worries me.", 1, False),
    ]
    settled = [*states, ("c", AnchorState(settled=[SettledTension(words=["oven", "worri"], at=AT)]))]
    assert [one.kind for one in anchors_of(settled, Anchors(), AT)] == ["identity"]
    assert [one.kind for one in anchors_of(states, Anchors(max_count=1), AT)] == ["identity"]


def test_it_goes_on_where_it_was() -> None:
    said = turns(("user", ADA), ("user", "I am stuck with the harvest plan."), ("user", ADA))
    state = AnchorState()
    for turn in [said[0], *said]:
        state = advanced(msgspec.json.decode(msgspec.json.encode(state), type=AnchorState), [turn], Anchors())
    assert state == advanced(AnchorState(), said, Anchors())
    assert [one.times for one in state.kept] == [1, 2]
