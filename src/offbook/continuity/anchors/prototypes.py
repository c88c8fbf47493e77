"""What an uncertain sentence is compared with: sentences that are anchors, and sentences that only look like them.

The margins were chosen with all-MiniLM-L6-v2, on what the rules are uncertain about in public conversations and on
`UNCERTAIN` of the tests. Other models spread likeness differently: one reason why a difference decides, not a likeness.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from offbook.continuity.likeness import Embed
from offbook.turns import AnchorKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BEST = 2
"""How many of the nearest are averaged: one alone may be near by chance."""
MARGIN: dict[AnchorKind, float] = {"identity": 0.09, "contradiction": 0.11, "tension": 0.12}
"""On the side that leaves an anchor out: of what people write, most that looks like one is none."""
MODELS_KEPT = 2

_FOR: dict[AnchorKind, tuple[str, ...]] = {
    "identity": (
        "I am deaf",
        "I am disabled",
        "I am a native speaker of French",
        "I am not a religious person",
        "I am fluent in Italian",
        "I am lactose intolerant",
        "I am sugar free and eat low carb",
        "I am half German",
        "I am obese",
        "I am a recovering alcoholic",
        "I am an introvert",
        "I am tall and blond",
        "I have high blood pressure",
        "I am in my fifties",
        "I am infertile",
        "I am not a night owl",
    ),
    "contradiction": (
        "What you told me is not true",
        "That is not what you said before",
        "You told me something different earlier",
        "Actually I don't have a dog",
        "Actually, I have never lived there",
        "Actually, the package was sent somewhere else",
        "The number you gave me before is wrong",
        "I said two, but there are three",
        "Not the first one but the second one",
        "It is no longer the case",
        "The old value was different from the new one",
        "What I said earlier was a mistake",
    ),
    "tension": (
        "The same problem again",
        "We have a serious problem",
        "Another issue with the supplier",
        "Big trouble at home",
        "Nobody knows how to solve this problem",
        "Stuck for days",
        "Confused about the instructions",
        "This is a challenge we do not know how to handle",
        "The engine is the problem",
        "The drawer gets stuck all the time",
        "A difficult issue that remains unresolved",
    ),
}
_AGAINST: dict[AnchorKind, tuple[str, ...]] = {
    "identity": (
        "I am tired",
        "I am sleepy",
        "I am eager to begin",
        "I am out of money this week",
        "I am running late",
        "I am alone right now",
        "I am stressed",
        "I am fine",
        "I am sick of this",
        "I am optimistic about it",
        "I am shocked",
        "I am in bed",
        "I am awake",
        "I am unsure about that",
        "I am not a fan of that colour",
        "My phone is almost empty",
        "I am first in line",
        "I am definitely going to do it",
        "I am into that kind of music",
    ),
    "contradiction": (
        "Use the other picture instead",
        "He told me a funny story",
        "I told her about the party",
        "She said hello",
        "You said it well",
        "I actually liked it",
        "I actually cried",
        "Let's walk instead",
        "Wash your hands before dinner",
        "We were there yesterday",
        "It was green before",
        "It is nice, but far away",
        "I told you that you would like it",
        "Before you go, lock the door",
        "What you told me makes sense",
        "What I said was useful",
    ),
    "tension": (
        "The math problem on the exam",
        "I read the newest issue of the magazine",
        "The magazine issue came out in May",
        "An article about a political issue",
        "We discussed the issue of taxes",
        "It was a nice challenge",
        "She enjoys the challenge of running",
        "The contest ended in June",
        "A famous problem in computer science",
        "Problem three is in chapter four",
        "The poster stuck to the wall",
        "A method of solving problems",
        "Together we solve every problem",
        "I want to avoid any issues",
        "That sentence stuck with me",
    ),
}


@lru_cache(MODELS_KEPT)
def _prototypes(embed: Embed) -> dict[AnchorKind, tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Embedded once for each model: pass the same function, or method, every time."""
    return {kind: (embed(_FOR[kind]), embed(_AGAINST[kind])) for kind in _FOR}


def margin_over(vector: NDArray[np.float32], kind: AnchorKind, embed: Embed) -> float:
    """How much nearer a sentence is to anchors of a kind than to what only looks like them, over what it must be."""
    anchors, others = _prototypes(embed)[kind]
    return _nearest((anchors @ vector).tolist()) - _nearest((others @ vector).tolist()) - MARGIN[kind]


def _nearest(likenesses: Sequence[float]) -> float:
    return sum(sorted(likenesses)[-BEST:]) / BEST
