"""What the commands of continuity share: topics and anchors as tables, texts cut to a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from offbook.cli.output import ago, bar, counted, printable, table

if TYPE_CHECKING:
    from offbook.model.turn import Anchor, Topic

Standing = Literal["keeps returning", "fresh", "stale"]

BAR_WIDTH = 5
STANDINGS: tuple[Standing, ...] = ("keeps returning", "fresh", "stale")


def tell_none(what: str, session: str | None) -> None:
    """What to do next where there is nothing to show."""
    steps = ["`offbook record SESSION TEXT`, or a host that records what is said"]
    if session is not None:
        steps = ["leaving out --session, for the newest sessions", "`offbook log`, which lists the sessions"]
    steps.append("--agent NAME, for another agent (`offbook status` lists the agents)")
    where = f" in session {printable(session)}" if session is not None else ""
    click.echo("\n".join([f"no {what}{where} yet. Try", *(f"  · {step}" for step in steps)]), err=True)


# ── topics and anchors ────────────────────────────────────────────────────────────────────────


def standing(topic: Topic) -> Standing:
    if topic.is_fixated:
        return "keeps returning"
    return "stale" if topic.is_stale else "fresh"


def show_topics(topics: Sequence[Topic]) -> None:
    table(
        ["", "topic", "how it stands", "lately", "ever", "freshness", "sessions", "last"],
        [
            [
                "●" if topic.is_fixated else "",
                topic.label,
                standing(topic),
                f"{topic.mentions:,}",
                f"{topic.total:,}",
                freshness(topic.freshness),
                f"{topic.sessions:,}",
                ago(topic.last_at),
            ]
            for topic in topics
        ],
        right=["lately", "ever", "sessions"],
    )


def freshness(share: float) -> str:
    percent = round(100 * share)
    return f"{bar(percent, 100, BAR_WIDTH)} {percent:>3} %"


def show_anchors(anchors: Sequence[Anchor]) -> None:
    table(
        ["kind", "what was said", "when", "times", "how it stands", "where"],
        [
            [
                anchor.kind,
                anchor.text,
                ago(anchor.at),
                f"{anchor.times:,}",
                "fresh" if anchor.is_fresh else "stale",
                f"{anchor.session_id} #{anchor.seq}",
            ]
            for anchor in anchors
        ],
        right=["times"],
    )


# ── long texts ────────────────────────────────────────────────────────────────────────────────


def shortened(text: str, *, max_lines: int, max_chars: int) -> tuple[str, str]:
    """The beginning of a text, and in words how much is left of it; "" where nothing is."""
    shown = "\n".join(text.split("\n")[:max_lines])[:max_chars].rstrip()
    left = len(text.rstrip()) - len(shown)
    return shown, counted(left, "more character") if left > 0 else ""
