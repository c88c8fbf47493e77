"""Answers of the verbs as text that a model reads. Words of others are quoted, so that none can pose as ours.

The answers come as JSON, from this process or from a daemon that may be newer: a field that is missing is passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from offbook.api.mcp.harmless import harmless
from offbook.api.mcp.spoken import conversation, minute
from offbook.context.quotes import defused, quoted
from offbook.ingest.frames import A_RECORD

Json = dict[str, Any]

QUOTED_CHARS = 4_000
"""Of one entry that was recalled; `memory_expand` shows more of it."""
NO_MEMORY = "audit:"
"""How a note begins of what was late without anything of memory being missed."""


def recalled(answer: Json) -> str:
    entries = answer.get("entries", [])
    notes = missing(answer)
    if not entries:
        return "\n".join(["Nothing is remembered of that. Try other words: names and things.", *notes])
    return "\n\n".join([f"{A_RECORD} Best first.", *map(_entry, entries), *notes])


def missing(answer: Json) -> list[str]:
    """What an answer, or a turn, had to go without: a line each."""
    notes = [note for note in answer.get("degraded", []) if not note.startswith(NO_MEMORY)]
    return [f"(Not everything could be searched: {note}.)" for note in notes]


def _entry(entry: Json) -> str:
    seq = entry.get("span", {}).get("firstSeq")
    where = f"session {named(entry['sessionId'])} #{seq}"
    marks = ["pinned"] if entry.get("pinned") else []
    marks += [f"superseded by {entry['supersededBy']}"] if entry.get("supersededBy") else []
    origin = harmless(named(entry.get("origin", ""))[1:-1])
    head = " · ".join([minute(entry["ts"]), origin, where, *marks, f"id {entry['id']}"])
    lines = [f"- {head}", f"  {quoted(entry['text'], QUOTED_CHARS).text}"]
    for old in (entry.get("why") or {}).get("replaces", []):
        lines.append(f"  instead of what was said on {minute(old['ts'])}: {quoted(old['text'], QUOTED_CHARS).text}")
    return "\n".join(lines)


def recorded(answer: Json) -> str:
    if answer.get("conflicts"):
        return "Not stored: this id is already there with other content, which stays. Leave the id out, or use another."
    where = f"message {answer.get('lastSeq')} of session {named(answer['sessionId'])}"
    return f"It was there already, as {where}." if answer.get("duplicates") else f"Stored as {where}."


def context(answer: Json, said: str) -> str:
    """`said` is the text of the answer as `conversation` gives it."""
    if not answer.get("covers", {}).get("lastSeq"):
        return f"Nothing is stored of session {named(answer.get('sessionId', ''))} yet."
    return "\n".join([A_RECORD, "", *(f"> {line}" for line in said.splitlines())])


async def format_context(answer: Json) -> str:
    """A context as text, made beside whatever else is served meanwhile."""
    return context(answer, await asyncio.to_thread(conversation, answer))


def expanded(answer: Json, spoken: Sequence[str]) -> str:
    """`spoken` has the messages of the answer, each as `spoken` gives it."""
    if not spoken:
        return "There are no messages there."
    lines = [A_RECORD, *spoken]
    if answer.get("next"):
        lines.append(f"There are more: call memory_expand again with after={answer['next']!r}.")
    return "\n\n".join(lines)


def pinned(answer: Json, *, is_unpinned: bool) -> str:
    if not answer.get("changed"):
        return "Nothing changed: nothing is meant by that, or all of it was so already."
    changed = counted(answer["changed"], "entry", "entries")
    return f"{changed} can age again." if is_unpinned else f"{changed} newly pinned: never let go of, found first."


def forgotten(answer: Json) -> str:
    receipt = answer.get("receipt", {})
    reached = {name: number for name, number in receipt.get("reached", {}).items() if number}
    what = ", ".join(f"{_words(name)} {number:,}" for name, number in reached.items()) or "nothing"
    where = [
        f"- session {named(span['sessionId'])} #{span['firstSeq']} to #{span['lastSeq']}"
        for span in receipt.get("spans", [])
    ]
    if receipt.get("dryRun"):
        lines = [f"Nothing was erased. This would go for good: {what}.", *where]
        ask = "Show this to the user. If they agree, call again with the same arguments, confirm: true and a reason."
        return "\n".join([*lines, ask] if reached else lines)
    lines = [f"Gone for good: {what}. Receipt {receipt.get('id')}.", *where]
    lines += [f"Offbook cannot reach: {place}" for place in receipt.get("outside", [])]
    lines += [f"Still found, look into it: {one['where']} ({one['what']})" for one in receipt.get("residue", [])]
    return "\n".join(lines)


def status(answer: Json) -> str:
    counts, tiers = answer.get("counts", {}), answer.get("tiers", {})
    capture, index = answer.get("capture", {}), answer.get("index", {})
    lines = [
        f"Offbook {answer.get('version')}, agent {named(answer.get('agentId', ''))}",
        f"{counted(counts.get('messages', 0), 'message')} in {counted(counts.get('sessions', 0), 'session')}",
        f"{tiers.get('hot', 0):,} hot, {tiers.get('warm', 0):,} warm, {tiers.get('cold', 0):,} cold, "
        f"{answer.get('pinned', 0):,} pinned",
        f"found by text {index.get('entries', 0):,}, by meaning {index.get('embedded', 0):,}; "
        f"work waiting {answer.get('backlog', 0):,}",
    ]
    if capture.get("missing"):
        lines.append(f"{counted(capture['missing'], 'message')} went missing on the way: run `offbook doctor`")
    lines += [f"trouble: {trouble}" for trouble in [index.get("trouble")] if trouble]
    return "\n".join(lines)


def sessions(answer: Json) -> str:
    rows = [
        f"- {named(each['sessionId'])}: {counted(each['lastSeq'], 'message')}, last {minute(each['lastAt'])}"
        for each in answer.get("sessions", [])
    ]
    return "\n".join(["The newest sessions:", *rows]) if rows else "There are no sessions yet."


def summaries(answer: Json) -> str:
    found = answer.get("summaries", [])
    return "\n\n".join([A_RECORD, *map(_summary, found)]) if found else "There are no summaries yet."


def summary(one: Json) -> str:
    return f"{A_RECORD}\n\n{_summary(one)}"


def _summary(one: Json) -> str:
    when = f"{minute(one['firstAt'])} to {minute(one['lastAt'])}"
    return f"{one['id']}: {counted(one['sourceMessages'], 'message')}, {when}\n{defused(one['text'])}"


def lessons(answer: Json) -> str:
    rows = [
        f"- {one['id']} ({one['kind']}, {one['status']}, said {one['times']}×): "
        f"{quoted(one['text'], QUOTED_CHARS).text}"
        for one in answer.get("lessons", [])
        if not one.get("replacedBy")
    ]
    return "\n".join([f"{A_RECORD} What was learnt:", *rows]) if rows else "Nothing was learnt yet."


def named(key: str) -> str:
    """A key as one line that can be copied back into an argument, whatever is in it."""
    return msgspec.json.encode(key).decode()


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _words(name: str) -> str:
    """`indexEntries` as people write it."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
