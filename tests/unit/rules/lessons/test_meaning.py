from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from offbook.rules.lessons.fold import folded
from offbook.rules.lessons.meaning import joined
from tests.unit.rules.lessons.lessons import kept, said

GERMAN = ("Please always answer in German.", "From now on, reply to me in German.")


def embed_all_alike(texts: Sequence[str]) -> np.ndarray:
    """A model to which everything means the same."""
    return np.tile(np.array([1.0, 0.0], np.float32), (len(texts), 1))


def embed_all_different(texts: Sequence[str]) -> np.ndarray:
    return np.eye(max(len(texts), 1), 64, dtype=np.float32)[: len(texts)]


def test_what_means_the_same_is_one_lesson() -> None:
    first = said(GERMAN[0], 1)
    known = kept(folded([], first).drafts, [], first, {})
    (again,) = joined(known, said(GERMAN[1], 2), embed_all_alike)
    assert again.key == known[0].key
    (draft,) = folded(known, [again]).drafts
    assert (draft.times, draft.text) == (2, "They asked me: “From now on, reply to me in German.”")


def test_also_within_one_piece() -> None:
    one, other = joined([], [*said(GERMAN[0], 1), *said(GERMAN[1], 2)], embed_all_alike)
    assert one.key == other.key


def test_what_means_something_else_stays_apart() -> None:
    one, other = joined([], [*said(GERMAN[0], 1), *said(GERMAN[1], 2)], embed_all_different)
    assert one.key != other.key


def test_names_numbers_denials_and_kinds_are_not_left_to_the_model() -> None:
    told = (
        "Please always answer in German.",
        "Please always answer in French.",
        "Never answer in German.",
        "To deploy, run make release and restart the worker.",
        "I love tea.",
        "I hate tea.",
        "我喜欢喝茶和咖啡。",
        "我喜欢看书和电影。",
    )
    found = joined([], [one for seq, text in enumerate(told, 1) for one in said(text, seq)], embed_all_alike)
    assert len({one.key for one in found}) == len(told)


def test_a_denial_is_not_what_it_denies() -> None:
    (one,) = said("My wife works as a nurse.", 1)
    denied = msgspec.structs.replace(one, key="another", text="Their wife does not work as a nurse.", place=2000, seq=9)
    assert [found.key for found in joined([], [one, denied], embed_all_alike)] == [one.key, "another"]


def test_what_has_a_value_is_known_by_that() -> None:
    one, other = joined(
        [], [*said("My birthday is on 5 May.", 1), *said("My address is Lindengasse 5.", 2)], embed_all_alike
    )
    assert one.key != other.key
