"""Is every message there, once, in its place, as it was sent? Pure: faults as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from offbook.context.tail import SEPARATOR, shown
from offbook.context.validity import faults
from offbook.contrib.conformance.check import partition_faults
from offbook.model.content import tool_results
from offbook.model.summary import Replay, SourceLine, SummaryView, Swap
from offbook.model.types import CompressedContext, LogLine, Message, Scope

_canonical = msgspec.json.Encoder(order="deterministic")


def same(message: Message) -> bytes:
    """Everything of a message that a host gave; the store adds the time where there was none."""
    kept = [message.role, message.content, message.id, message.name, message.tool_call_id, message.meta]
    return _canonical.encode(kept)


def log_faults(lines: Sequence[LogLine], tasks: Sequence[Sequence[Message]]) -> Iterator[str]:
    """The log against what each task has sent, one message after the other."""
    seqs = [line.seq for line in lines]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"the log is not 1 to {len(seqs)}"
    places: dict[bytes, list[int]] = {}
    for line in lines:
        places.setdefault(same(line.message), []).append(line.seq)
    sent = Counter(same(message) for task in tasks for message in task)
    for key, count in sent.items():
        if len(places.get(key, ())) != count:
            yield f"sent {count} times and {len(places.get(key, ()))} times in the log: {key[:200]!r}"
    if strange := set(places) - set(sent):
        yield f"in the log and never sent: {next(iter(strange))[:200]!r}"
    for task in tasks:
        found = [places[same(message)][0] for message in task if sent[same(message)] == 1 and same(message) in places]
        if found != sorted(found):
            yield "what one task said is not in the order that it said it in"


def shown_faults(context: CompressedContext, scope: Scope, lines: Sequence[LogLine], max_chars: int) -> list[str]:
    """A context against the log as it was when it was made."""
    found = cover_faults(context, scope, len(lines), max_chars)
    return found + [f"maxChars {max_chars}: {fault}" for fault in _verbatim(context, lines)]


def cover_faults(context: CompressedContext, scope: Scope, last_seq: int, max_chars: int) -> list[str]:
    """All that can be said of a context without the log."""
    found = [*partition_faults(context.parts, last_seq)]
    found += [f"a model would refuse: {one}" for one in faults(context.messages)]
    if (context.agent_id, context.session_id) != (scope.agent_id, scope.session_id):
        found.append(f"it is of agent {context.agent_id!r}, session {context.session_id!r}")
    if not context.chars == len(context.text) <= max_chars == context.max_chars:
        found.append(f"{len(context.text)} characters; it says {context.chars} of {context.max_chars}")
    if (context.covers.first_seq, context.covers.last_seq) != (1, last_seq):
        found.append(f"it covers {context.covers}, the session has 1 to {last_seq}")
    return [f"maxChars {max_chars}: {fault}" for fault in found]


def _verbatim(context: CompressedContext, lines: Sequence[LogLine]) -> Iterator[str]:
    """What is said to be word for word is, and stands in its order."""
    there = Counter(same(message) for message in context.messages)
    for part in context.parts:
        if part.kind != "verbatim":
            continue
        messages = [line.message for line in lines[part.first_seq - 1 : part.last_seq]]
        for seq, message in enumerate(messages, part.first_seq):
            there[same(message)] -= 1
            if there[same(message)] < 0:
                yield f"message {seq} is said to be verbatim and is not there as it was sent"
        chars = sum(len(shown(message)) for message in messages) + len(SEPARATOR) * (len(messages) - 1)
        if chars != part.chars:
            yield f"{part.first_seq} to {part.last_seq} take {chars} characters, it says {part.chars}"
    seqs = {line.message.id: line.seq for line in lines if line.message.id is not None}
    placed = [(seqs[message.id], message) for message in context.messages if message.id in seqs]
    numbers = sorted(seq for seq, _ in placed)
    if numbers and numbers != list(range(numbers[0], len(lines) + 1)):
        yield f"its messages are {numbers}, of {len(lines)}: not each once, to the last"
    # A result that came late stands behind its call; everything else is where it was.
    unmoved = [seq for seq, message in placed if not tool_results(lines[seq - 1].message)]
    if any(one > other for one, other in pairwise(unmoved)):
        yield f"its messages are not in order: {unmoved}"


def swap_faults(swap: Swap, again: Swap, last_seq: int) -> Iterator[str]:
    """A swap that was to happen, and the same request once more."""
    if not swap.swapped or not swap.messages:
        yield f"not swapped: {swap.reason}"
        return
    yield from (f"a model would refuse the swap: {one}" for one in faults(swap.messages))
    parts = sorted([*swap.ledger.summaries, *swap.ledger.verbatim], key=lambda part: part.first_seq)
    yield from (f"the ledger of a swap: {one}" for one in partition_faults(parts, last_seq))
    if (again.messages, again.generation, again.ledger) != (swap.messages, swap.generation, swap.ledger):
        yield f"asked again, the swap is another: generation {swap.generation}, then {again.generation}"


def replay_faults(replay: Replay, expected: Sequence[Message], generation: int) -> Iterator[str]:
    if replay.generation != generation:
        yield f"the replay of {replay.at} is of generation {replay.generation}, not {generation}"
    if [same(message) for message in replay.messages] != [same(message) for message in expected]:
        yield f"the replay of {replay.at} has {len(replay.messages)} messages other than the {len(expected)} there were"
    if not replay.is_exact:
        yield f"the replay of {replay.at} is not exact"


def expansion_faults(
    summary: SummaryView, found: Sequence[SourceLine], logs: Mapping[str, Sequence[LogLine]]
) -> Iterator[str]:
    """What a summary expands to against the log."""
    expected = [
        (span.session_id, line.seq, same(line.message))
        for span in summary.spans
        for line in logs[span.session_id][span.first_seq - 1 : span.last_seq]
    ]
    if [(one.session_id, one.seq, same(one.message)) for one in found] != expected:
        yield f"{summary.id} expands to {len(found)} messages other than the {len(expected)} that it stands for"
    if summary.source_messages != len(expected):
        yield f"{summary.id} says it has {summary.source_messages} messages, and has {len(expected)}"


def tree_faults(summaries: Sequence[SummaryView], logs: Mapping[str, Sequence[LogLine]]) -> Iterator[str]:
    """All summaries of an agent: those of level 1 lie end to end, every other is exactly what it merges."""
    by_id = {summary.id: summary for summary in summaries}
    after: dict[str, int] = {}
    for summary in sorted(summaries, key=lambda one: one.spans[0].first_seq):
        if summary.level == 1:
            span = summary.spans[0]
            if len(summary.spans) != 1 or span.first_seq != after.get(span.session_id, 0) + 1:
                yield f"{summary.id} begins at {span}, after {after.get(span.session_id, 0)}"
            after[span.session_id] = span.last_seq
            if span.last_seq > len(logs[span.session_id]):
                yield f"{summary.id} ends after the log"
        else:
            merged = [place for source in summary.sources for place in _places(by_id[source])]
            if sorted(merged) != sorted(_places(summary)) or len(set(merged)) != len(merged):
                yield f"{summary.id} is not what it merges"
            if any(by_id[source].parent != summary.id for source in summary.sources):
                yield f"{summary.id} is not the parent of all that it merges"


def _places(summary: SummaryView) -> list[tuple[str, int]]:
    return [(span.session_id, seq) for span in summary.spans for seq in range(span.first_seq, span.last_seq + 1)]
