"""`offbook recall`, `pin`, `unpin`, `unlink`, `cross`: what was said about something, whenever it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.output import ROLE_COLOURS, ago, counted, local_minute, printable, warn, wrapped
from offbook.cli.verb_command import Fields, verb_command

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.memory_entry import (
        CrossSearch,
        Explained,
        MemoryEntry,
        Pinned,
        Reach,
        Recollection,
        Unlinked,
        Why,
    )


# ── offbook recall ────────────────────────────────────────────────────────────────────────────────

SHELL_SESSION = "cli"
"""Who asks, where no session is named: the audit shows it."""
RECALL_OPTIONS: dict[str, Fields] = {
    "session_id": {
        "required": False,
        "help": "Session that asks; with --scope session, the one that is searched.",
    },
    "limit": {"names": ["-n", "--limit"]},
}

RECALL_EPILOG = """\b
Examples:
  offbook recall what did we decide about the database?
  offbook recall "my sister" --limit 10
  offbook recall "the deadline" --at 2026-10-03      as it was known that day
  offbook recall "the deadline" --include-superseded
  offbook recall recipe --scope session --session chat
  offbook recall "the deadline" --explain
  offbook recall recipe --json | jq -r '.entries[].id' | xargs offbook pin

\b
What was found is shown in the order it was said, the score of each beside it
(only the order of scores means anything). With --json it comes best first.
What was corrected since is left out; its correction says what it replaces.
"""


def _recall_fields(invocation: Invocation, fields: Fields) -> Fields:
    if fields["scope"] == "session" and fields["session_id"] is None:
        raise click.UsageError(
            "--scope session needs --session: name the one to search; `offbook log` lists the sessions"
        )
    if not fields["query"].strip():
        raise click.BadParameter("it is empty: say what is to be recalled", param_hint="QUERY")
    return fields | {
        "session_id": fields["session_id"] or SHELL_SESSION,
        "query": fields["query"].strip(),
        # The name of who spoke is told with an explanation only, and a person wants to see it.
        "explain": fields["explain"] or not invocation.is_json,
    }


@verb_command("recall", epilog=RECALL_EPILOG, positional=["query"], options=RECALL_OPTIONS, asking=_recall_fields)
def recall_command(found: Recollection, *, scope: Reach, at: datetime | None, explain: bool, **_: Any) -> None:
    """Find what was said that answers QUERY, and when.

    A question, a few words or a whole message will do. Times in it are understood ("last Tuesday", "in May").
    """
    show_recalled(found, explains=explain, names_agents=scope == "all")
    if not found.entries:
        click.echo(_tell_nothing_found(found, scope=scope, at=at), err=True)


def _tell_nothing_found(found: Recollection, *, scope: Reach, at: datetime | None) -> str:
    """What to try where nothing was found."""
    tries = ["other words: names and things rather than a whole sentence"]
    if found.explained is not None and found.explained.times:
        tries.append("leaving out the time")
    if at is not None:
        tries.append("a later --at, or none")
    if scope == "agent":
        tries.append("--agent NAME, for another agent's memory (`offbook status` lists the agents)")
    return "\n".join(["nothing found. Try", *(f"  · {each}" for each in tries)])


# ── what recall answered, in the order it was said ────────────────────────────────────────────────

INDENT = "  "
LEAST_EVIDENCE = 0.05
"""Less than that did not decide anything."""
LEFT_OUT_SHOWN = 10
GLIMPSE_CHARS = 60


def show_recalled(found: Recollection, *, explains: bool, names_agents: bool) -> None:
    for note in found.degraded:
        warn(printable(note))
    best = max(found.entries, key=lambda entry: entry.score).id if len(found.entries) > 1 else None
    texts = {entry.id: entry.text for entry in found.entries}
    for entry in sorted(found.entries, key=lambda entry: (entry.ts, entry.id)):
        click.echo(_head(entry, names_agents=names_agents, is_best=entry.id == best))
        for line in _body(entry, texts, explains=explains):
            click.echo(line)
        click.echo()
    if explains and found.explained is not None:
        _show_explained(found.explained, found)


def _head(entry: MemoryEntry, *, names_agents: bool, is_best: bool) -> str:
    """When, who, where; then how it stands with it."""
    speaker = entry.origin if entry.why is None or entry.why.speaker is None else f"{entry.origin} {entry.why.speaker}"
    place = f"session {entry.session_id}" + (f" of agent {entry.agent_id}" if names_agents else "")
    marks = [entry.tier, *(["pinned"] if entry.pinned else [])]
    score = "the newest there is" if entry.score < 0 else f"score {entry.score:.2f}" + (" (best)" if is_best else "")
    when = click.style(f"{local_minute(entry.ts)} ({ago(entry.ts)})", dim=True)
    who = click.style(printable(speaker), fg=ROLE_COLOURS.get(entry.origin), bold=True)
    rest = click.style(printable(" · ".join([place, *marks, score, entry.id])), dim=True)
    return f"{when}  {who}  {rest}"


def _body(entry: MemoryEntry, texts: dict[str, str], *, explains: bool) -> Iterator[str]:
    yield from wrapped(printable(entry.text), INDENT)
    why = entry.why
    for old in why.replaces if why else ():
        told = f"replaces: {old.text} ({local_minute(old.ts)}, {old.id})"
        yield from (click.style(line, dim=True) for line in wrapped(printable(told), INDENT))
    if entry.superseded_by is not None:
        glimpse = texts.get(entry.superseded_by)
        said = f": {_glimpse(glimpse)}" if glimpse else ""
        told = f"replaced by {entry.superseded_by}{said}"
        yield from (click.style(line, fg="yellow") for line in wrapped(printable(told), INDENT))
    if explains and why is not None:
        yield click.style(f"{INDENT}{_found_by(entry, why)}", dim=True)
        if evidence := _evidence(why):
            yield click.style(f"{INDENT}{evidence}", dim=True)


def _found_by(entry: MemoryEntry, why: Why) -> str:
    """`text 2nd, meaning 1st`: its place in what each retriever found."""
    by = [f"{name} ({_place(why.ranks[name])})" if name in why.ranks else name for name in entry.found_by]
    likeness = f" · similarity {why.similarity:.2f}" if why.similarity is not None else ""
    return f"found by {', '.join(by)}{likeness}"


def _evidence(why: Why) -> str:
    most = sorted(why.evidence.items(), key=lambda pair: -abs(pair[1]))
    told = [f"{name.replace('_', ' ')} {value:+.2f}" for name, value in most if abs(value) >= LEAST_EVIDENCE]
    return f"evidence {', '.join(told)} = {sum(why.evidence.values()):.2f}" if told else ""


def _show_explained(explained: Explained, found: Recollection) -> None:
    recipes = sorted(set(filter(None, explained.recipes.values())))
    rows = {
        "looked for": ", ".join(explained.looked_for) or "no words: by meaning and time only",
        "times": ", ".join(explained.times) or "none in the query",
        "recipe": ", ".join(recipes) or "none",
        "looked at": f"{counted(explained.looked_at, 'message')} in {found.took_ms:,.1f} ms",
        "left out": "" if explained.left_out else "nothing",
    }
    for name, value in rows.items():
        click.echo(printable(f"{name:<12}{value}").rstrip())
    for left in explained.left_out[:LEFT_OUT_SHOWN]:
        click.echo(printable(f"{INDENT}{left.id}  {left.why}"))
    if (more := len(explained.left_out) - LEFT_OUT_SHOWN) > 0:
        click.echo(f"{INDENT}and {more:,} more: --json has all of them")


def _place(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _glimpse(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= GLIMPSE_CHARS else line[: GLIMPSE_CHARS - 1].rstrip() + "…"


# ── offbook pin ───────────────────────────────────────────────────────────────────────────────────

PIN_EPILOG = """\b
Examples:
  offbook pin m100000001 m100000004      by the ids that `offbook recall` shows
  offbook pin --keyword "wifi password"  all that hold these words
  offbook pin --session house-rules      all of a session
  offbook pin --keyword wifi --session chat

Pinned entries stay hot and weigh more in recall. `offbook unpin` lets them age again.
"""


def selected_entries(_invocation: Invocation, fields: Fields) -> Fields:
    """Entries by their ids, or all that hold a keyword, or all of a session."""
    others = (fields["keyword"], fields["session_id"])
    if not fields["entry_ids"] and others == (None, None):
        raise click.UsageError("say what is meant: ENTRY (an id that `offbook recall` shows), --keyword or --session")
    if fields["entry_ids"] and others != (None, None):
        raise click.UsageError("an ENTRY says exactly which one is meant: leave out --keyword and --session")
    return fields


@verb_command(
    "pin", epilog=PIN_EPILOG, positional=["entry_ids"], options={"message_ids": None}, asking=selected_entries
)
def pin_command(changed: Pinned, **_: Any) -> None:
    """Keep entries hot for ever: those named, those that hold a keyword, those of a session."""
    _tell_pinned(changed, "pinned")


def _tell_pinned(changed: Pinned, now_are: str) -> None:
    if changed.changed:
        click.echo(f"{counted(changed.changed, 'entry', 'entries')} {now_are}: {' '.join(changed.entry_ids)}")
    else:
        click.echo("nothing changed: there is no such entry of this agent, or it was so already")


# ── offbook unpin ─────────────────────────────────────────────────────────────────────────────────

UNPIN_EPILOG = """\b
Examples:
  offbook unpin m100000001
  offbook unpin --keyword "wifi password"
  offbook unpin --session house-rules
"""


@verb_command(
    "unpin", epilog=UNPIN_EPILOG, positional=["entry_ids"], options={"message_ids": None}, asking=selected_entries
)
def unpin_command(changed: Pinned, **_: Any) -> None:
    """Let pinned entries age again: those named, those that hold a keyword, those of a session."""
    _tell_pinned(changed, "unpinned")


# ── offbook unlink ────────────────────────────────────────────────────────────────────────────────

UNLINK_EPILOG = """\b
Examples:
  offbook unlink m100000001                  by the id after `replaces:`
  offbook unlink m100000001 --by m100000004  only what that one did to it
  offbook recall "the deadline" --include-superseded

What was unlinked holds again, and so do the lessons that had given way with it. It is not linked again.
"""


@verb_command("unlink", epilog=UNLINK_EPILOG, positional=["entry_id"], options={"by_id": {"metavar": "ENTRY"}})
def unlink_command(taken_back: Unlinked, *, entry_id: str, **_: Any) -> None:
    """Take back that a later message replaced ENTRY, or may be about the same: both hold."""
    if taken_back.changed:
        click.echo(printable(f"{entry_id} holds again: {counted(taken_back.changed, 'link')} taken back"))
    else:
        click.echo("nothing changed: no later message of this agent is linked to that entry")


# ── offbook cross ─────────────────────────────────────────────────────────────────────────────────

CROSS_EPILOG = """\b
Examples:
  offbook cross                          how it is
  offbook cross on
  offbook cross on --agent researcher    the other side has to agree, too
  offbook recall "the deadline" --scope all
  offbook cross off

Both sides have to be on: an agent that is off neither reads nor is read.
"""


WANTED = click.argument("wanted", type=click.Choice(["on", "off"]), required=False, metavar="[on|off]")


def _cross_fields(_invocation: Invocation, fields: Fields) -> Fields:
    return {"enabled": None if fields["wanted"] is None else fields["wanted"] == "on"}


@verb_command("cross", epilog=CROSS_EPILOG, options={"enabled": None}, own=[WANTED], asking=_cross_fields)
def cross_command(found: CrossSearch, *, invocation: Invocation, **_: Any) -> None:
    """Open an agent's memory and that of others to each other, close it, or show how it is."""
    whose = f"agent {printable(invocation.agent)}" if invocation.agent else "this agent"
    if not found.enabled:
        click.echo(f"off: {whose} neither searches other agents' memory nor is searched by them")
    elif found.agents:
        click.echo(f"on: {whose} and {', '.join(map(printable, found.agents))} can search each other's memory")
    else:
        click.echo(f"on for {whose}, but for no other agent yet: `offbook cross on --agent NAME` opens one")
